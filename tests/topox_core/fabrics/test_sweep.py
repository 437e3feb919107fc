"""The crossover map: its axes, what is run once, and what is left of it when it is cancelled or a worker dies."""

import concurrent.futures
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, pairwise, product
from typing import Any

import numpy as np
import pytest

from tests.patience import wait_until
from tests.refusal import refusal
from tests.topox_core.small_graphs import cluster, compute, graph, random_graph, transfer
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.crossover.map_run import inferred, is_complete, map_run, wanted
from topox_core.fabrics.crossover.sweep import (
    Axes,
    Call,
    ColumnResult,
    MapOutcome,
    Place,
    Point,
    Sweep,
    usual_axes,
    with_degree,
)
from topox_core.fabrics.options import FabricOptions
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
FINE = Axes(
    (0.0, *np.geomspace(0.001, 100.0, 16).tolist()), (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
)
CIRCUITS = ("static", "reactive", "provisioned")


class InThisProcess(concurrent.futures.Executor):
    """Runs each call at once and notes it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    @property
    def places(self) -> list[Place]:
        """What was computed, plans passed on left out."""
        return [call for call in self.calls if isinstance(call, tuple)]

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        self.calls += next(arg for arg in args if isinstance(arg, tuple))
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


class AnswersThree(InThisProcess):
    """And keeps whoever asks for more waiting."""

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        if len(self.calls) < 3:
            return super().submit(fn, *args, **kwargs)
        return concurrent.futures.Future()


def every_place(axes: Axes) -> list[Place]:
    return list(product(axes.values, axes.delay_ms))


def swept(axes: Axes = AXES, of: Cluster = THREE, **changes: Any) -> Sweep:
    return Sweep(CHAIN, of, Settings(), axes, **changes)


def computed(
    sweep: Sweep,
    executor: concurrent.futures.Executor | None = None,
    known: dict[str, Any] | None = None,
) -> tuple[Point, ...]:
    result = finish(map_run(sweep, known, executor or InThisProcess()))
    assert result.complete
    return result.points


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: swept(fabrics=("static", "wormhole")), "field fabrics"),
        (lambda: swept(of=cluster(2)), "names server 2"),
        (lambda: swept(Axes((1.0,), (5000.0,), "degree")), "field ports_per_server: must be"),
        (
            lambda: swept(
                Axes((1.0,), (3.0,), "degree"), cluster(3, ports_per_server=4, switches=2)
            ),
            "field degree: must be multiples of the 2 switches",
        ),
    ],
)
def test_what_cannot_be_swept_is_refused_in_one_line(asked: Callable[[], Any], said: str) -> None:
    assert said in refusal(asked)


# -- the map ---------------------------------------------------------------------------------------


def test_every_point_of_the_map_is_what_a_comparison_gives() -> None:
    points = computed(swept())
    assert [(point.value, point.delay_ms) for point in points] == every_place(AXES)
    for point in points:
        of = THREE.changed(port_gbps=point.value, reconfiguration_ms=point.delay_ms)
        runs = compare(CHAIN, of, Settings.of(engine="list"), list(point.outcomes))
        times = {name: one.iteration_ms for name, one in point.outcomes.items()}
        assert times == {name: one.iteration_ms for name, one in runs.items()}


def test_circuits_that_change_win_while_changing_is_quick_and_of_equals_the_simplest() -> None:
    axes = Axes((0.001, 100.0), (34.0,))
    race = Sweep(*load_sample("race"), Settings(), axes, ("static", "reactive"))
    assert [point.winner.fabric for point in computed(race)] == ["reactive", "static"]
    switched = swept(Axes((0.0, 1.0), (100.0,)), fabrics=("reactive", "provisioned"))
    free, hidden = (point.winner for point in computed(switched))
    assert (free.fabric, free.equals) == ("reactive", ("reactive", "provisioned"))
    assert hidden.equals == ("provisioned",)  # the 1 ms hides in the 3 ms of compute


def test_a_digest_tells_maps_apart_and_equal_ones_together() -> None:
    assert swept(of=THREE.changed(reconfiguration_ms=9.0)).digest == swept().digest  # by the axes
    others = [
        swept(Axes((0.0,), (50.0,))),
        swept(of=THREE.changed(slot_ms=0.5)),
        swept(fabrics=("static",)),
        swept(options=FabricOptions(oversubscription=2.0)),
        swept(nic_gbps=(40.0, 70.0)),
        Sweep(CHAIN, THREE, Settings(seed=1), AXES),
        Sweep(replace(CHAIN, name="of another session"), THREE, Settings(), AXES),
    ]
    assert len({sweep.digest for sweep in [swept(), *others]}) == 8


def test_a_fabric_that_cannot_run_at_a_point_says_why_and_the_others_do() -> None:
    for point in computed(swept(options=FabricOptions(topology_variant="released"))):
        assert "must be even in the released variant" in point.failed["static"]
        assert {"static_graph", "scheduled"} <= point.outcomes.keys()


def test_what_is_known_is_not_run_again() -> None:
    known: dict[str, Any] = {}
    one, other = InThisProcess(), InThisProcess()
    first = computed(swept(fabrics=CIRCUITS), one, known)
    assert sorted(one.places) == every_place(AXES)
    wider = replace(AXES, delay_ms=(*AXES.delay_ms, 2.0))
    second = computed(swept(wider, fabrics=CIRCUITS), other, known)
    assert other.places == [(50.0, 2.0), (100.0, 2.0)]
    assert [point for point in second if point.delay_ms != 2.0] == list(first)


# -- worker processes ------------------------------------------------------------------------------


def test_a_cancelled_map_keeps_what_is_there_and_another_run_goes_on_from_it() -> None:
    known: dict[str, Point | ColumnResult] = {}
    run = map_run(swept(), known, AnswersThree())
    wait_until(lambda: len(known) == 3)
    run.cancel()
    assert (run.running, len(known), run.result().complete) == (False, 3, False)
    executor = InThisProcess()
    computed(swept(), executor, known)
    assert len(executor.places) == len(every_place(AXES)) - 3


def test_calls_that_are_lost_are_told_and_not_asked_for_for_ever() -> None:
    class Dies(concurrent.futures.Executor):
        def submit(self, *_: Any) -> concurrent.futures.Future[Any]:
            future: concurrent.futures.Future[Any] = concurrent.futures.Future()
            future.set_exception(RuntimeError("the worker died"))
            return future

    result = finish(map_run(swept(), {}, Dies()))
    assert not result.complete
    assert result.lost == ("the worker died: 6 of 6 calls are missing",)


@pytest.mark.long
def test_worker_processes_give_the_same_map_and_a_point_that_is_lost_is_missing() -> None:
    known: dict[str, Point | ColumnResult] = {}
    sweep = swept()
    assert finish(map_run(sweep, known, 2)).points == computed(sweep)
    assert is_complete(sweep, known)
    del known[sweep.key((50.0, 1.0))]
    assert len(sweep.points(known)) == len(every_place(AXES)) - 1
    assert not is_complete(sweep, known)


# -- finer where the winner changes ----------------------------------------------------------------


@pytest.mark.parametrize(("ports", "degree", "expected"), [(2, 4, (4, 4)), (4, 8, (8, 2))])
def test_with_one_port_on_each_switch_the_switches_follow_the_degree(
    ports: int, degree: int, expected: tuple[int, int]
) -> None:
    of = with_degree(cluster(3, ports_per_server=ports, switches=2), degree)
    assert (of.ports_per_server, of.switches) == expected


def turning_at(delay_of: Callable[[float], float], axes: Axes) -> set[Place]:
    """Refine a map on which fixed circuits win beyond a delay that depends on the value; return what was computed.

    Of places between them, none is given the wrong winner.
    """

    def point(place: Place) -> Point:
        value, delay_ms = place
        reactive = MapOutcome(50.0 if delay_ms <= delay_of(value) else 200.0)
        return Point(value, delay_ms, {"static": MapOutcome(100.0), "reactive": reactive}, {})

    points: dict[Place, Point] = {}
    while places := wanted(axes, points):
        points |= {place: point(place) for place in places}
    between = inferred(axes, points)
    assert set(points) | set(between) == set(every_place(axes))
    assert all(one.fabric == point(place).winner.fabric for place, one in between.items())
    return set(points)


@pytest.mark.parametrize("at_ms", [-1.0, 0.0, 0.02, 1.0, 30.0, 1e9])
def test_a_map_is_fine_only_where_the_winner_changes(at_ms: float) -> None:
    computed_places = turning_at(lambda _: at_ms, FINE)
    assert len(computed_places) < 0.6 * len(every_place(FINE))
    turns = [ends for ends in pairwise(FINE.delay_ms) if ends[0] <= at_ms < ends[1]]
    # Both sides of the turn are computed at every value.
    assert set(product(FINE.values, chain(*turns))) <= computed_places


@pytest.mark.parametrize(
    ("axes", "delay_of", "share"),
    [
        (FINE, lambda gbps: 400.0 / gbps, 0.8),  # a turn that moves with the speed
        (Axes(FINE.delay_ms, (100.0,)), lambda _: 1.0, 1.0),
        (Axes((0.0,), FINE.values), lambda gbps: gbps - 100.0, 1.01),
    ],
)
def test_a_turn_is_found_wherever_it_is(axes: Axes, delay_of: Any, share: float) -> None:
    assert len(turning_at(delay_of, axes)) < share * len(every_place(axes))


def test_the_coarse_grid_has_a_cut_at_the_value_in_focus_which_is_near_the_cluster_s_own() -> None:
    """Nothing turns, and yet there is a cut at 50G from end to end."""
    computed_places = turning_at(lambda _: 1e9, replace(FINE, focus=50.0))
    cut = sorted(delay for value, delay in computed_places if value == 50.0)
    assert (len(cut), cut[0], cut[-1]) == (5, 0.0, 100.0)
    for gbps in (10.0, 40.0, 1600.0):
        axes = usual_axes(THREE.changed(port_gbps=gbps), "port_gbps")
        assert axes.focus == min(axes.values, key=lambda value: abs(value - gbps))


def test_the_planned_time_of_a_map_never_grows_as_the_delay_shrinks() -> None:
    """Alone, the plan of this graph for 0.1 ms is longer than the one for 1 ms."""
    of = cluster(4, ports_per_server=2, switches=1, ports_per_switch=2, duplex="half")
    job = random_graph(61, tasks=30)
    axes = Axes((10.0, 1.0, 0.1, 0.01, 0.0), (of.port_gbps,))
    known: dict[str, Point | ColumnResult] = {}
    sweep = Sweep(job, of, Settings(), axes, ("static", "scheduled"))
    times = [p.outcomes["scheduled"].iteration_ms for p in computed(sweep, known=known)]
    assert times == sorted(times, reverse=True)
    assert any(one for one in known.values() if isinstance(one, dict)), "no plan was passed on"
