"""The crossover map: its axes, what is run once, and what is left of it when it is cancelled or a worker dies."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.topox_core.small_graphs import cluster, compute, graph, transfer
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare
from topox_core.fabrics.run import FabricOptions
from topox_core.fabrics.sweep import (
    MAX_POINTS,
    Axes,
    Cell,
    Point,
    Sweep,
    log_range,
    run_cell,
    with_degree,
)
from topox_core.model.cluster import Cluster
from topox_core.runs.run import finish
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

# The circuit to 2 is wanted 3 ms after the one to 1 was used; over host 1 it would take two hops.
CHAIN = graph(
    transfer("a", 0, 1, 4),
    compute("f", 1, 3, "a"),
    transfer("b", 0, 2, 4, "f"),
    transfer("c", 1, 2, 4, "f"),
)
THREE = cluster(3)
AXES = Axes((0.0, 1.0, 30.0), (50.0, 100.0))


class InThisProcess(concurrent.futures.Executor):
    """Runs each call at once and notes it."""

    def __init__(self) -> None:
        self.calls: list[Cell] = []

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        self.calls.append(args[-1])
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def swept(axes: Axes = AXES, of: Cluster = THREE, **changes: Any) -> Sweep:
    return Sweep(CHAIN, of, Settings(), axes, **changes)


def computed(
    sweep: Sweep,
    executor: concurrent.futures.Executor | None = None,
    known: dict[str, Any] | None = None,
) -> tuple[Point, ...]:
    result = finish(sweep.start(known, executor or InThisProcess()))
    assert result is not None
    return sweep.points(result.results)


# -- axes ------------------------------------------------------------------------------------------


def test_a_logarithmic_range_has_equal_ratios_and_keeps_its_ends() -> None:
    assert log_range(0.001, 100.0, 6) == pytest.approx((0.001, 0.01, 0.1, 1.0, 10.0, 100.0))
    assert log_range(5.0, 5.0, 1) == (5.0,)


@pytest.mark.parametrize(
    ("low", "high", "points"),
    [
        (0.0, 1.0, 5),
        (-1.0, 1.0, 5),
        (2.0, 1.0, 5),
        (1.0, float("inf"), 5),
        (float("nan"), 1.0, 5),
        (1.0, 2.0, 0),
        (1.0, 2.0, 10**9),
    ],
)
def test_ranges_that_are_none_are_refused_in_one_line(low: float, high: float, points: int) -> None:
    with pytest.raises(InputError, match=r"^sweep, field delay_ms: must ") as error:
        log_range(low, high, points, "delay_ms")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("delays", "values", "by", "said"),
    [
        ((), (1.0,), "port_gbps", "field delay_ms: is empty"),
        ((1.0,), (), "port_gbps", "field port_gbps: is empty"),
        ((1.0, 1.0), (1.0,), "port_gbps", "field delay_ms: holds a value twice"),
        ((-1.0,), (1.0,), "port_gbps", "field delay_ms: must be from 0 to 3,600,000 (got -1)"),
        ((1e9,), (1.0,), "port_gbps", "field delay_ms: must be from 0 to 3,600,000 (got 1e+09)"),
        ((float("nan"),), (1.0,), "port_gbps", "field delay_ms: must be finite numbers"),
        ((1.0,), (0.0,), "port_gbps", "field port_gbps: must be greater than 0"),
        ((1.0,), (0.0,), "degree", "field degree: must be from 1 to 4,096 (got 0)"),
        ((1.0,), (2.5,), "degree", "field degree: must be whole numbers (got 2.5)"),
        ((1.0,), (1.0,), "colour", "field by: must be 'port_gbps' or 'degree'"),
        (
            tuple(range(60)),
            tuple(range(1, 61)),
            "port_gbps",
            f"has 3,600 points (limit {MAX_POINTS:,}): 60 delays times 60 values",
        ),
    ],
)
def test_axes_that_cannot_be_swept_are_refused_in_one_line(
    delays: Any, values: Any, by: Any, said: str
) -> None:
    with pytest.raises(InputError) as error:
        Axes(delays, values, by)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_fabric_that_is_none_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="field fabrics"):
        swept(fabrics=("static", "wormhole"))


def test_a_graph_that_does_not_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="names server 2"):
        swept(of=cluster(2))


def test_with_one_port_on_each_switch_the_switches_follow_the_degree() -> None:
    four = with_degree(cluster(3, ports_per_server=2, switches=2), 4)
    assert (four.ports_per_server, four.switches) == (4, 4)
    spread = with_degree(cluster(3, ports_per_server=4, switches=2), 8)
    assert (spread.ports_per_server, spread.switches) == (8, 2)
    with pytest.raises(InputError, match="field degree: must be multiples of the 2 switches"):
        Sweep(
            CHAIN,
            cluster(3, ports_per_server=4, switches=2),
            Settings(),
            Axes((1.0,), (3.0,), "degree"),
        )


# -- the map ---------------------------------------------------------------------------------------


def test_every_point_of_the_map_is_what_a_comparison_gives() -> None:
    points = computed(swept())
    assert [(point.value, point.delay_ms) for point in points] == list(AXES.points())
    for point in points:
        runs = compare(
            CHAIN,
            THREE.changed(port_gbps=point.value, reconfiguration_ms=point.delay_ms),
            Settings.of(engine="list"),
            list(point.outcomes),
        )
        assert {name: one.iteration_ms for name, one in point.outcomes.items()} == {
            name: one.iteration_ms for name, one in runs.items()
        }


def test_circuits_that_change_win_while_changing_is_quick() -> None:
    task_graph, of = load_sample("race")
    two = Sweep(task_graph, of, Settings(), Axes((0.001, 100.0), (34.0,)), ("static", "reactive"))
    assert [point.winner for point in computed(two)] == [
        "reactive",
        "static",
    ]


def test_of_equals_the_simplest_controller_wins() -> None:
    free, hidden = computed(swept(Axes((0.0, 1.0), (100.0,)), fabrics=("reactive", "provisioned")))
    assert free.fastest == ("reactive", "provisioned")
    assert free.winner == "reactive"
    assert hidden.fastest == ("provisioned",)  # the 1 ms hides in the 3 ms of compute


def test_what_does_not_depend_on_the_delay_runs_once_a_value() -> None:
    executor = InThisProcess()
    computed(swept(fabrics=("ideal", "static", "reactive")), executor)
    assert executor.calls.count(Cell(50.0, None)) == 1
    assert len(executor.calls) == 2 + 2 * 3
    only = InThisProcess()
    computed(swept(fabrics=("static",)), only)
    assert only.calls == [Cell(50.0, None), Cell(100.0, None)]


def test_a_map_over_the_degree() -> None:
    task_graph, of = load_sample("dlrm-16")
    axes = Axes((0.01, 10.0), (2.0, 4.0), "degree")
    points = computed(Sweep(task_graph, of, Settings(), axes, ("static", "reactive")))
    slow, quick = points[0], points[2]
    assert (slow.value, quick.value) == (2.0, 4.0)
    assert quick.outcomes["static"].iteration_ms < slow.outcomes["static"].iteration_ms


def test_a_fabric_that_cannot_run_at_a_point_says_why_and_the_others_do() -> None:
    for point in computed(swept(options=FabricOptions(topology_variant="released"))):
        assert "must be even in the released variant" in point.failed["static"]
        assert point.winner in ("reactive", "provisioned", "scheduled")


def test_cells_that_are_known_are_not_run_again() -> None:
    known: dict[str, Any] = {}
    first = computed(swept(), known=known)
    wider = replace(AXES, delay_ms=(*AXES.delay_ms, 2.0))
    executor = InThisProcess()
    second = computed(swept(wider), executor, known)
    assert executor.calls == [Cell(50.0, 2.0), Cell(100.0, 2.0)]
    assert [point for point in second if point.delay_ms != 2.0] == list(first)


def test_a_digest_tells_maps_apart_and_equal_ones_together() -> None:
    assert swept().digest == swept().digest
    assert (
        swept(of=THREE.changed(reconfiguration_ms=9.0)).digest == swept().digest
    )  # the axes say the delay
    others = [
        swept(Axes((0.0,), (50.0,))),
        swept(of=THREE.changed(slot_ms=0.5)),
        swept(fabrics=("static",)),
        swept(options=FabricOptions(oversubscription=2.0)),
        Sweep(CHAIN, THREE, Settings(seed=1), AXES),
    ]
    assert len({sweep.digest for sweep in [swept(), *others]}) == 6


# -- worker processes ------------------------------------------------------------------------------


def test_worker_processes_give_the_same_map_and_a_point_lacks_while_a_cell_of_it_does() -> None:
    result = finish(swept().start(workers=2))
    assert result is not None
    assert swept().points(result.results) == computed(swept())
    del result.results[Cell(50.0, 1.0)]
    assert len(swept().points(result.results)) == len(AXES) - 1


def test_a_cell_unpacks_its_job_once() -> None:
    sweep = swept()
    first = run_cell(sweep.job_digest, sweep.job, Cell(100.0, 1.0))
    assert run_cell(sweep.job_digest, b"not a job", Cell(100.0, 1.0)) == first
