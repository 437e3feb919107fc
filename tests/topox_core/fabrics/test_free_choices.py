"""What is free is chosen on every circuit fabric alike: rings and algorithms, never slower than the default."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from tests.conftest import long_after
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


@pytest.mark.parametrize(
    ("sample", "fabric"),
    long_after(
        4,
        [
            *(("race", "scheduled"), ("race", "reactive"), ("fsdp", "provisioned")),
            *(("moe", "reactive"), ("fsdp", "reactive"), ("fsdp", "scheduled")),
            *(("race", "provisioned"), ("moe", "provisioned"), ("moe", "scheduled")),
        ],
    ),
)
def test_a_free_choice_is_never_slower_than_the_settings_own(sample: str, fabric: str) -> None:
    graph, cluster = load_past(sample)
    fixed = run(fabric, graph, cluster, replace(FREELY, free=()))
    free = run(fabric, graph, cluster, FREELY)
    assert free.iteration_ms <= fixed.iteration_ms
    assert (fixed.chosen, free.chosen.free) == (None, FREE)
    settled = replace(FREELY, lowering=free.chosen.lowering, free=())
    assert run(fabric, graph, cluster, settled).iteration_ms == free.iteration_ms
    if sample == "fsdp" and fabric != "scheduled":  # rings on all ports pay
        assert free.iteration_ms == pytest.approx(244.741196, abs=1e-6)
        assert free.chosen.as_record() == {"rings": 2, "strides": [], "algorithms": {}}


def test_an_algorithm_is_chosen_in_the_whole_graph() -> None:
    cluster = Cluster(8, 1, 1, 8, 100.0)
    task = Task("swap", "all_to_all", (), members=tuple(range(8)), size_bytes=8e8)
    free, only_rings = (
        run("provisioned", TaskGraph("swap", (task,)), cluster, replace(FREELY, free=choices))
        for choices in (FREE, ("rings",))
    )
    assert free.chosen.as_record()["algorithms"] == {"all_to_all:8:8e+08": "pairwise"}
    assert only_rings.iteration_ms > free.iteration_ms


@pytest.mark.parametrize(
    ("fabric", "settings"),
    [
        (
            "provisioned",
            replace(
                FREELY,
                lowering=Lowering(
                    strides=(3,), algorithm={"all_gather": "ring", "reduce_scatter": "ring"}
                ),
            ),
        ),
        ("provisioned", Settings.of()),
        ("ideal", FREELY),
    ],
)
def test_what_is_fixed_is_not_tried(fabric: str, settings: Settings) -> None:
    tried = []

    def on(request: FabricRequest) -> FabricRun:
        tried.append(request.graph.lowering)
        return run_one("provisioned", request)

    fastest_run(Case(fabric, JobRequest(*load_past("fsdp"), settings)), on, on)
    assert tried == [settings.lowering]


def test_a_free_choice_of_what_is_none_is_refused_and_static_circuits_have_rings_of_their_own() -> (
    None
):
    assert ring_choices(Case("static", JobRequest(*load_past("fsdp"), FREELY))) == ()
    with pytest.raises(InputError, match="must be some of rings, algorithm"):
        Settings.of(free=("colour",))


AT_ONCE = [("provisioned", 1), ("provisioned", 2)]
FEW = {"MAX_COMPARED_NODES": 50, "MAX_PLANNED_NODES": 100}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [*AT_ONCE, ("scheduled", 2)]),  # one ring takes 1.28 times as long at once
        # The quick plans tell no difference, and one ring is behind what is provisioned on two.
        ({"SLOWER": 2.0, "MAX_COMPARED_NODES": 2_000}, [("scheduled", 1), ("scheduled", 2)]),
        (FEW, [*AT_ONCE, ("scheduled", 2)]),
        ({**FEW, "MAX_NODES": 100}, [("scheduled", 1)]),
    ],
)
def test_the_more_tasks_the_fewer_choices_are_planned(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, float], expected: list[tuple[str, int]]
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(free_choices, name, limit)
    tried: list[tuple[str, int]] = []

    def on(fabric: str, request: FabricRequest) -> FabricRun:
        tried.append((fabric, request.settings.lowering.rings))
        return run_one(fabric, request)

    case = Case("scheduled", JobRequest(*load_past("fsdp"), replace(FREELY, free=("rings",))))
    fastest_run(case, partial(on, "scheduled"), partial(on, "provisioned"), lambda request: 1.0)
    assert tried == expected


@pytest.mark.parametrize(
    ("sample", "delay_ms"),
    long_after(
        2, dict.fromkeys([("race", 1.0), *product(("race", "fsdp", "llama3-8b"), (0, 1, 10))])
    ),
)
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
    alone = compare(graph, cluster, FREELY, ("ideal",))["ideal"]
    assert alone.iteration_ms == pytest.approx(runs["ideal"].iteration_ms)
