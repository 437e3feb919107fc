"""What is free is chosen on every circuit fabric alike: rings and algorithms, never slower than the default."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.past import load_past
from topox_core.errors import InputError
from topox_core.fabrics import free_choices
from topox_core.fabrics.compare import compare, run_freely, run_one
from topox_core.fabrics.free_choices import Case, fastest_run, ring_choices
from topox_core.fabrics.run import FabricRequest, FabricRun, JobRequest
from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.settings import FREE, Settings

FREELY = Settings.of(engine="list", free=FREE)


def run(fabric: str, graph: TaskGraph, cluster: Cluster, settings: Settings) -> FabricRun:
    return run_freely(fabric, JobRequest(graph, cluster, settings))


@pytest.mark.parametrize("fabric", ["reactive", "provisioned", "scheduled"])
@pytest.mark.parametrize("sample", ["fsdp", "moe", "race"])
def test_a_free_choice_is_never_slower_than_the_settings_own(sample: str, fabric: str) -> None:
    graph, cluster = load_past(sample)
    fixed = run(fabric, graph, cluster, replace(FREELY, free=()))
    free = run(fabric, graph, cluster, FREELY)
    assert free.iteration_ms <= fixed.iteration_ms
    assert fixed.chosen is None
    assert free.chosen is not None
    assert free.chosen.free == FREE
    settled = replace(FREELY, lowering=free.chosen.lowering, free=())
    again = run(fabric, graph, cluster, settled)
    assert again.iteration_ms == free.iteration_ms


def test_rings_on_all_ports_are_found_where_they_pay() -> None:
    graph, cluster = load_past("fsdp")
    for fabric in ("reactive", "provisioned"):
        free = run(fabric, graph, cluster, FREELY)
        assert free.iteration_ms == pytest.approx(244.741196, abs=1e-6)
        assert free.chosen is not None
        assert free.chosen.as_record() == {"rings": 2, "strides": [], "algorithms": {}}


def swap(size_bytes: float) -> TaskGraph:
    task = Task("swap", "all_to_all", (), members=tuple(range(8)), size_bytes=size_bytes)
    return TaskGraph("swap", (task,))


def test_an_algorithm_is_chosen_in_the_whole_graph() -> None:
    cluster = Cluster(8, 1, 1, 8, 100.0)
    free = run("provisioned", swap(8e8), cluster, FREELY)
    assert free.chosen is not None
    assert free.chosen.as_record()["algorithms"] == {"all_to_all:8:8e+08": "pairwise"}
    only_rings = replace(FREELY, free=("rings",))
    assert run("provisioned", swap(8e8), cluster, only_rings).iteration_ms > free.iteration_ms


def test_what_is_fixed_is_not_tried() -> None:
    graph, cluster = load_past("fsdp")
    tried = []

    def on(request: FabricRequest) -> FabricRun:
        tried.append(request.graph.lowering)
        return run_one("provisioned", request)

    named = Lowering(strides=(3,), algorithm={"all_gather": "ring", "reduce_scatter": "ring"})
    for fabric, settings in (
        ("provisioned", replace(FREELY, lowering=named)),
        ("provisioned", Settings.of()),
        ("ideal", FREELY),
    ):
        tried.clear()
        fastest_run(Case(fabric, JobRequest(graph, cluster, settings)), on, on)
        assert tried == [settings.lowering]
    assert ring_choices(Case("static", JobRequest(graph, cluster, FREELY))) == ()
    with pytest.raises(InputError, match="must be some of rings, algorithm"):
        Settings.of(free=("colour",))


def test_the_more_tasks_the_fewer_choices_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, cluster = load_past("fsdp")
    tried: list[tuple[str, int]] = []

    def on(fabric: str, request: FabricRequest) -> FabricRun:
        tried.append((fabric, request.settings.lowering.rings))
        return run_one(fabric, request)

    def planned() -> list[tuple[str, int]]:
        tried.clear()
        job = JobRequest(graph, cluster, replace(FREELY, free=("rings",)))
        case = Case("scheduled", job)
        fastest_run(case, partial(on, "scheduled"), partial(on, "provisioned"), lambda request: 1.0)
        return list(tried)

    at_once = [("provisioned", 1), ("provisioned", 2)]
    assert planned() == [*at_once, ("scheduled", 2)]  # one ring takes 1.28 times as long at once
    monkeypatch.setattr(free_choices, "SLOWER", 2.0)
    # The quick plans tell no difference, and one ring is behind what is provisioned on two.
    monkeypatch.setattr(free_choices, "MAX_COMPARED_NODES", 2_000)
    assert planned() == [("scheduled", 1), ("scheduled", 2)]
    monkeypatch.setattr(free_choices, "MAX_COMPARED_NODES", 50)
    monkeypatch.setattr(free_choices, "MAX_PLANNED_NODES", 100)
    assert planned() == [*at_once, ("scheduled", 2)]
    monkeypatch.setattr(free_choices, "MAX_NODES", 100)
    assert planned() == [("scheduled", 1)]


def test_an_engine_plans_what_was_chosen_and_nothing_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where there is no choice, or the provisioned controller makes it, no list schedule comes first."""
    graph, cluster = load_past("fsdp")
    tried: list[str] = []

    def on(fabric: str, request: FabricRequest) -> FabricRun:
        tried.append(fabric)
        return run_one(fabric, request)

    def lowering(free: tuple[str, ...], most: int) -> Lowering:
        tried.clear()
        monkeypatch.setattr(free_choices, "MAX_COMPARED_NODES", most)
        monkeypatch.setattr(free_choices, "MAX_PLANNED_NODES", most)
        job = JobRequest(graph, cluster, Settings.of(engine="cpsat", free=free))
        case = Case("scheduled", job)
        return free_choices.planned_lowering(
            case, partial(on, "scheduled"), partial(on, "provisioned"), lambda request: 1.0
        )

    assert lowering((), 600) == Lowering()
    assert tried == []
    at_once = lowering(("rings",), 50)
    assert tried == ["provisioned", "provisioned"]
    assert lowering(("rings",), 2_000) == at_once
    assert "scheduled" in tried


@pytest.mark.parametrize("delay_ms", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("sample", ["llama3-8b", "fsdp", "race"])
def test_every_fabric_chooses_alike_so_that_plans_stay_ahead(sample: str, delay_ms: float) -> None:
    graph, cluster = load_past(sample)
    cluster = cluster.changed(reconfiguration_ms=delay_ms)
    runs = compare(graph, cluster, FREELY)
    time_ms = {name: one.iteration_ms * (1 - 1e-9) for name, one in runs.items()}
    assert time_ms["scheduled"] <= runs["provisioned"].iteration_ms
    assert time_ms["provisioned"] <= runs["reactive"].iteration_ms
    assert time_ms["scheduled"] <= runs["static"].iteration_ms
    assert all(
        time_ms["ideal"] <= one.iteration_ms for name, one in runs.items() if name != "fat_tree"
    )
    assert schedule(graph, cluster, FREELY).makespan_ms == runs["scheduled"].iteration_ms
    assert compare(graph, cluster, FREELY, ("ideal",))["ideal"].iteration_ms == pytest.approx(
        runs["ideal"].iteration_ms
    )
