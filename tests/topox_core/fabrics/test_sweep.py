"""The crossover map: its axes, what is run once, and what is left of it when it is cancelled or a worker dies."""

from __future__ import annotations

import concurrent.futures
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.patience import wait_until
from tests.topox_core.small_graphs import cluster, compute, graph, random_graph, transfer
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare
from topox_core.fabrics.map_cells import run_call
from topox_core.fabrics.map_run import MapRun, is_complete
from topox_core.fabrics.refinement import Place, inferred, wanted
from topox_core.fabrics.run import FabricOptions
from topox_core.fabrics.sweep import (
    MAX_POINTS,
    Axes,
    Cell,
    CellResult,
    Column,
    ColumnResult,
    Point,
    Sweep,
    log_range,
    usual_axes,
    with_degree,
)
from topox_core.fabrics.winner import MapOutcome
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
        self.calls: list[Cell | Column] = []

    @property
    def cells(self) -> list[Cell]:
        """The calls that computed something, plans passed on left out."""
        return [call for call in self.calls if isinstance(call, Cell)]

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        self.calls += next(arg for arg in args if isinstance(arg, tuple))
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Later(InThisProcess):
    """Answers a call when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[tuple[concurrent.futures.Future[Any], Callable[[], Any]]] = []

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def answer(self) -> None:
        wait_until(lambda: self.waiting)
        future, call = self.waiting.pop(0)
        future.set_result(call())


class Failing(InThisProcess):
    """Loses every call."""

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_exception(RuntimeError("the worker died"))
        return future


def swept(axes: Axes = AXES, of: Cluster = THREE, **changes: Any) -> Sweep:
    return Sweep(CHAIN, of, Settings(), axes, **changes)


def computed(
    sweep: Sweep,
    executor: concurrent.futures.Executor | None = None,
    known: dict[str, Any] | None = None,
) -> tuple[Point, ...]:
    result = finish(MapRun(sweep, known, executor or InThisProcess()))
    assert result is not None
    assert result.complete
    return result.points


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
    assert [point.winner.fabric for point in computed(two)] == [
        "reactive",
        "static",
    ]


def test_of_equals_the_simplest_controller_wins() -> None:
    free, hidden = computed(swept(Axes((0.0, 1.0), (100.0,)), fabrics=("reactive", "provisioned")))
    assert free.winner.equals == ("reactive", "provisioned")
    assert free.winner.fabric == "reactive"
    assert hidden.winner.equals == ("provisioned",)  # the 1 ms hides in the 3 ms of compute


def test_what_does_not_depend_on_the_delay_runs_once_a_value() -> None:
    executor = InThisProcess()
    computed(swept(fabrics=("ideal", "static", "reactive")), executor)
    assert executor.cells.count(Cell(50.0, None)) == 1
    assert len(executor.cells) == 2 + 2 * 3
    only = InThisProcess()
    computed(swept(fabrics=("static",)), only)
    assert only.cells == [Cell(50.0, None), Cell(100.0, None)]


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
        assert point.winner.fabric in ("reactive", "provisioned", "scheduled")


def test_cells_that_are_known_are_not_run_again() -> None:
    known: dict[str, Any] = {}
    first = computed(swept(), known=known)
    wider = replace(AXES, delay_ms=(*AXES.delay_ms, 2.0))
    executor = InThisProcess()
    second = computed(swept(wider), executor, known)
    assert executor.cells == [Cell(50.0, 2.0), Cell(100.0, 2.0)]
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
        Sweep(replace(CHAIN, name="of another session"), THREE, Settings(), AXES),
    ]
    assert len({sweep.digest for sweep in [swept(), *others]}) == 7


# -- worker processes ------------------------------------------------------------------------------


@pytest.mark.long
def test_worker_processes_give_the_same_map_and_a_point_lacks_while_a_cell_of_it_does() -> None:
    known: dict[str, CellResult | ColumnResult] = {}
    sweep = swept()
    result = finish(MapRun(sweep, known, 2))
    assert result is not None
    assert result.points == computed(sweep)
    assert is_complete(sweep, known)
    del known[sweep.key(Cell(50.0, 1.0))]
    assert len(sweep.points(known)) == len(AXES) - 1
    assert not is_complete(sweep, known)


def test_a_process_unpacks_the_job_of_a_map_once() -> None:
    job = swept().job
    value = job.value()
    assert replace(job, content=b"not a job").value() is value
    assert run_call(value, Cell(100.0, 1.0)) == run_call(
        pickle.loads(job.content), Cell(100.0, 1.0)
    )


def test_a_cancelled_map_keeps_what_is_there_and_another_run_goes_on_from_it() -> None:
    known: dict[str, CellResult | ColumnResult] = {}
    one_at_a_time = Later()
    run = MapRun(swept(), known, one_at_a_time)
    for k in range(3):
        one_at_a_time.answer()
        wait_until(lambda k=k: len(known) > k)
    run.cancel()
    assert not run.running
    assert len(known) == 3
    assert not run.result().complete
    executor = InThisProcess()
    computed(swept(), executor, known)
    assert len(executor.cells) == 2 + len(AXES) - 3


def test_calls_that_are_lost_are_told_and_not_asked_for_for_ever() -> None:
    result = finish(MapRun(swept(), {}, Failing()))
    assert result is not None
    assert not result.complete
    assert result.lost == ("the worker died: 8 calls are missing",)


# -- finer where the winner changes ----------------------------------------------------------------


def outcome(time_ms: float) -> MapOutcome:
    return MapOutcome(time_ms, time_ms, 0, 0.0, 1.0)


def turning_at(delay_of: Callable[[float], float], axes: Axes) -> tuple[set[Place], set[Place]]:
    """Refine a map on which static circuits win beyond a delay that depends on the value.

    Return the places that were computed, and those that were given the wrong winner.
    """

    def point(place: Place) -> Point:
        value, delay_ms = place
        quick = delay_ms <= delay_of(value)
        times = {"static": outcome(100.0), "reactive": outcome(50.0 if quick else 200.0)}
        return Point(value, delay_ms, times, {})

    points: dict[Place, Point] = {}
    while places := wanted(axes, points):
        points |= {place: point(place) for place in places}
    between = inferred(axes, points)
    assert set(points) | set(between) == set(axes.points())
    wrong = {p for p, one in between.items() if one.fabric != point(p).winner.fabric}
    return set(points), wrong


FINE = Axes((0.0, *log_range(0.001, 100.0, 16)), (25.0, 50.0, 100.0, 200.0, 400.0, 800.0))


@pytest.mark.parametrize("at_ms", [-1.0, 0.0, 0.02, 1.0, 30.0, 1e9])
def test_a_map_is_fine_only_where_the_winner_changes(at_ms: float) -> None:
    computed_places, wrong = turning_at(lambda _: at_ms, FINE)
    assert not wrong
    assert len(computed_places) < 0.6 * len(FINE)
    turns = [d for d in FINE.delay_ms if d <= at_ms][-1:] + [d for d in FINE.delay_ms if d > at_ms][
        :1
    ]
    if len(turns) == 2:  # both sides of the turn are computed at every value
        assert {(v, d) for v in FINE.values for d in turns} <= computed_places


def test_a_turn_that_moves_with_the_speed_is_found_at_each() -> None:
    computed_places, wrong = turning_at(lambda gbps: 400.0 / gbps, FINE)
    assert not wrong
    assert len(computed_places) < 0.8 * len(FINE)


def test_the_coarse_grid_has_the_value_in_focus() -> None:
    """Nothing turns, and yet there is a cut at 50G from end to end."""
    computed_places, wrong = turning_at(lambda _: 1e9, replace(FINE, focus=50.0))
    assert not wrong
    cut = sorted(delay for value, delay in computed_places if value == 50.0)
    assert len(cut) == 5
    assert (cut[0], cut[-1]) == (0.0, 100.0)
    with pytest.raises(InputError, match="field focus: must be one of the values"):
        replace(FINE, focus=75.0)


@pytest.mark.parametrize("gbps", [10.0, 40.0, 200.0, 1600.0])
def test_the_usual_axes_have_a_cut_near_the_cluster_s_own_speed(gbps: float) -> None:
    axes = usual_axes(THREE.changed(port_gbps=gbps), "port_gbps")
    assert axes.focus is not None
    assert min(abs(value - gbps) for value in axes.values) == abs(axes.focus - gbps)
    assert min(axes.values) <= gbps <= max(axes.values)


def test_a_map_of_one_value_or_one_delay_is_refined_as_well() -> None:
    line = Axes(FINE.delay_ms, (100.0,))
    computed_places, wrong = turning_at(lambda _: 1.0, line)
    assert not wrong
    assert len(computed_places) < len(line)
    assert turning_at(lambda gbps: gbps - 100.0, Axes((0.0,), FINE.values))[1] == set()


def test_the_planned_time_of_a_map_never_grows_as_the_delay_shrinks() -> None:
    """Alone, the plan of this graph for 0.1 ms is longer than the one for 1 ms."""
    of = cluster(4, ports_per_server=2, switches=1, ports_per_switch=2, duplex="half")
    job = random_graph(61, tasks=30)
    axes = Axes((10.0, 1.0, 0.1, 0.01, 0.0), (of.port_gbps,))
    executor = InThisProcess()
    known: dict[str, CellResult | ColumnResult] = {}
    sweep = Sweep(job, of, Settings(), axes, ("static", "scheduled"))
    times = [p.outcomes["scheduled"].iteration_ms for p in computed(sweep, executor, known)]
    assert times == sorted(times, reverse=True)
    assert any(one.better for one in known.values() if isinstance(one, ColumnResult))
