"""What is free is chosen on every circuit fabric alike: rings and algorithms, never slower than the default."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from topox_core.errors import InputError
from topox_core.fabrics import free_choices
from topox_core.fabrics.compare import run_one
from topox_core.fabrics.free_choices import Case, fastest_run, ring_choices
from topox_core.fabrics.run import FabricOptions, FabricRun
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering, TransferGraph
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample

FREELY = Settings.of(engine="list", free=FREE)


def run(case: Case) -> FabricRun:
    def on(fabric: str, graph: TransferGraph, settings: Settings) -> FabricRun:
        return run_one(fabric, graph, case.cluster, settings, FabricOptions())

    return fastest_run(case, partial(on, case.fabric), partial(on, "provisioned"))


@pytest.mark.parametrize("fabric", ["reactive", "provisioned", "scheduled"])
@pytest.mark.parametrize("sample", ["fsdp", "moe", "race"])
def test_a_free_choice_is_never_slower_than_the_settings_own(sample: str, fabric: str) -> None:
    graph, cluster = load_sample(sample)
    case = Case(fabric, graph, cluster, FREELY)
    fixed = run(replace(case, settings=replace(FREELY, free=())))
    free = run(case)
    assert free.iteration_ms <= fixed.iteration_ms
    assert fixed.chosen is None
    assert free.chosen is not None
    assert free.chosen.free == FREE
    again = run(replace(case, settings=replace(FREELY, lowering=free.chosen.lowering, free=())))
    assert again.iteration_ms == free.iteration_ms


def test_rings_on_all_ports_are_found_where_they_pay() -> None:
    graph, cluster = load_sample("fsdp")
    for fabric in ("reactive", "provisioned"):
        free = run(Case(fabric, graph, cluster, FREELY))
        assert free.iteration_ms == pytest.approx(244.741196, abs=1e-6)
        assert free.chosen is not None
        assert free.chosen.as_record() == {"rings": 2, "strides": [], "algorithms": {}}


def swap(size_bytes: float) -> TaskGraph:
    task = Task("swap", "all_to_all", (), members=tuple(range(8)), size_bytes=size_bytes)
    return TaskGraph("swap", (task,))


def test_an_algorithm_is_chosen_in_the_whole_graph() -> None:
    cluster = Cluster(8, 1, 1, 8, 100.0)
    free = run(Case("provisioned", swap(8e8), cluster, FREELY))
    assert free.chosen is not None
    assert free.chosen.as_record()["algorithms"] == {"all_to_all:8:8e+08": "pairwise"}
    only_rings = replace(FREELY, free=("rings",))
    assert run(Case("provisioned", swap(8e8), cluster, only_rings)).iteration_ms > free.iteration_ms


def test_what_is_fixed_is_not_tried() -> None:
    graph, cluster = load_sample("fsdp")
    tried = []

    def on(lowered: TransferGraph, settings: Settings) -> FabricRun:
        tried.append(lowered.lowering)
        return run_one("provisioned", lowered, cluster, settings, FabricOptions())

    named = Lowering(strides=(3,), algorithm={"all_gather": "ring", "reduce_scatter": "ring"})
    for fabric, settings in (
        ("provisioned", replace(FREELY, lowering=named)),
        ("provisioned", Settings.of()),
        ("ideal", FREELY),
    ):
        tried.clear()
        fastest_run(Case(fabric, graph, cluster, settings), on, on)
        assert tried == [settings.lowering]
    assert ring_choices(Case("static", graph, cluster, FREELY)) == ()
    with pytest.raises(InputError, match="must be some of rings, algorithm"):
        Settings.of(free=("colour",))


def test_beyond_some_thousand_tasks_the_provisioned_choice_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, cluster = load_sample("fsdp")
    monkeypatch.setattr(free_choices, "MAX_PLANNED_NODES", 100)
    planned = []

    def on(fabric: str, lowered: TransferGraph, settings: Settings) -> FabricRun:
        planned.append((fabric, settings.lowering.rings))
        return run_one(fabric, lowered, cluster, settings, FabricOptions())

    case = Case("scheduled", graph, cluster, FREELY)
    fastest_run(case, partial(on, "scheduled"), partial(on, "provisioned"))
    assert planned == [("provisioned", 1), ("provisioned", 2), ("scheduled", 2)]
    planned.clear()
    monkeypatch.setattr(free_choices, "MAX_NODES", 100)
    fastest_run(case, partial(on, "scheduled"), partial(on, "provisioned"))
    assert planned == [("scheduled", 1)]
