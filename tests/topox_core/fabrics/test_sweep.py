"""The crossover map: its axes, what is run once, and what is left of it when it is cancelled or a worker dies."""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.topox_core.small_graphs import cluster, compute, graph, transfer
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare
from topox_core.fabrics.run import FabricOptions
from topox_core.fabrics.sweep import MAX_POINTS, Axes, Cell, Sweep, log_range, run_cell, with_degree
from topox_core.fabrics.sweep_run import CrossoverMap, SweepRun, run_sweep
from topox_core.model.cluster import Cluster
from topox_core.runs.child_processes import ChildProcesses, WorkerDied
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
WAIT_S = 120.0


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


class OneDies(ChildProcesses):
    """The child that is given one certain cell ends instead of answering."""

    def __init__(self, victim: Cell) -> None:
        super().__init__(1)
        self.victim = victim

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        return (
            super().submit(os._exit, 7)
            if args[-1] == self.victim
            else super().submit(fn, *args, **kwargs)
        )


def swept(axes: Axes = AXES, of: Cluster = THREE, **changes: Any) -> Sweep:
    return Sweep(CHAIN, of, Settings(), axes, **changes)


def finished(run: SweepRun) -> CrossoverMap:
    deadline = time.monotonic() + WAIT_S
    while run.running:
        assert time.monotonic() < deadline, "the sweep does not end"
        time.sleep(0.01)
    return run.result()


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
    found = run_sweep(swept(), InThisProcess())
    assert found.complete
    assert [(point.value, point.delay_ms) for point in found.points] == list(AXES.points())
    for point in found.points:
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
    assert [point.winner for point in run_sweep(two, InThisProcess()).points] == [
        "reactive",
        "static",
    ]


def test_of_equals_the_simplest_controller_wins() -> None:
    found = run_sweep(
        swept(Axes((0.0, 1.0), (100.0,)), fabrics=("reactive", "provisioned")), InThisProcess()
    )
    free, hidden = found.points
    assert free.fastest == ("reactive", "provisioned")
    assert free.winner == "reactive"
    assert hidden.fastest == ("provisioned",)  # the 1 ms hides in the 3 ms of compute


def test_what_does_not_depend_on_the_delay_runs_once_a_value() -> None:
    executor = InThisProcess()
    run_sweep(swept(fabrics=("ideal", "static", "reactive")), executor)
    assert executor.calls.count(Cell(50.0, None)) == 1
    assert len(executor.calls) == 2 + 2 * 3
    only = InThisProcess()
    run_sweep(swept(fabrics=("static",)), only)
    assert only.calls == [Cell(50.0, None), Cell(100.0, None)]


def test_a_map_over_the_degree() -> None:
    task_graph, of = load_sample("dlrm-16")
    found = run_sweep(
        Sweep(
            task_graph,
            of,
            Settings(),
            Axes((0.01, 10.0), (2.0, 4.0), "degree"),
            ("static", "reactive"),
        ),
        InThisProcess(),
    )
    slow, quick = found.points[0], found.points[2]
    assert (slow.value, quick.value) == (2.0, 4.0)
    assert quick.outcomes["static"].iteration_ms < slow.outcomes["static"].iteration_ms


def test_a_fabric_that_cannot_run_at_a_point_says_why_and_the_others_do() -> None:
    found = run_sweep(swept(options=FabricOptions(topology_variant="released")), InThisProcess())
    for point in found.points:
        assert "must be even in the released variant" in point.failed["static"]
        assert point.winner in ("reactive", "provisioned", "scheduled")


def test_cells_that_are_known_are_not_run_again() -> None:
    known: dict[str, Any] = {}
    first = run_sweep(swept(), InThisProcess(), known=known)
    wider = replace(AXES, delay_ms=(*AXES.delay_ms, 2.0))
    executor = InThisProcess()
    second = run_sweep(swept(wider), executor, known=known)
    assert executor.calls == [Cell(50.0, 2.0), Cell(100.0, 2.0)]
    assert [point for point in second.points if point.delay_ms != 2.0] == list(first.points)


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


# -- child processes -------------------------------------------------------------------------------


def test_child_processes_give_the_same_map() -> None:
    shares: list[float] = []
    found = run_sweep(swept(), on_progress=shares.append)
    assert found == run_sweep(swept(), InThisProcess())
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_worker_that_dies_costs_its_point_and_is_reported() -> None:
    executor = OneDies(Cell(50.0, 1.0))
    found = finished(SweepRun(swept(), executor))
    executor.kill()
    assert len(found.points) == len(AXES) - 1
    assert (50.0, 1.0) not in [(point.value, point.delay_ms) for point in found.points]
    assert found.lost == ("the worker process ended (exit code 7): 1 of 8 calls are missing",)
    assert not found.cancelled


def test_a_sweep_that_is_cancelled_keeps_the_points_it_has() -> None:
    task_graph, of = load_sample("race")
    run = SweepRun(
        Sweep(
            task_graph,
            of,
            Settings(),
            Axes(log_range(0.001, 100.0, 50), log_range(10.0, 400.0, 20)),
        )
    )
    deadline = time.monotonic() + WAIT_S
    while not run.result().points and time.monotonic() < deadline:
        time.sleep(0.01)
    children = run.process_ids
    run.cancel()
    assert not run.running
    found = run.result()
    assert found.cancelled
    assert 0 < len(found.points) < found.total
    assert found.lost == ()
    assert children
    deadline = time.monotonic() + WAIT_S
    while any(_alive(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(_alive(child) for child in children)


def test_workers_that_die_one_after_the_other_are_given_up() -> None:
    with ChildProcesses(1) as children:
        futures = [children.submit(os._exit, 1) for _ in range(3)] + [children.submit(abs, -3)]
        errors = [future.exception(WAIT_S) for future in futures]
    assert all(isinstance(error, WorkerDied) for error in errors)
    assert str(errors[-1]) == "no process was left to run it"


def test_a_call_that_fails_raises_its_own_error_and_the_child_goes_on() -> None:
    with ChildProcesses(1) as children:
        refused = children.submit(with_degree, cluster(3, ports_per_server=4, switches=2), 3)
        fine = children.submit(abs, -3)
        assert fine.result(WAIT_S) == 3
        with pytest.raises(InputError, match="field degree"):
            refused.result(WAIT_S)


def test_what_a_call_prints_does_not_come_between_the_answers() -> None:
    with ChildProcesses(1) as children:
        assert children.submit(print, "noise").result(WAIT_S) is None
        assert children.submit(abs, -4).result(WAIT_S) == 4


def test_nothing_is_taken_after_the_end() -> None:
    children = ChildProcesses(1)
    children.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        children.submit(abs, -1)


def test_a_cell_unpacks_its_job_once() -> None:
    sweep = swept()
    first = run_cell(sweep.job_digest, sweep.job, Cell(100.0, 1.0))
    assert run_cell(sweep.job_digest, b"not a job", Cell(100.0, 1.0)) == first


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
