"""Circuits switched on demand, provisioned, phase by phase, and planned: by hand, by rules, and who is never later."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from tests.conftest import examples, long_after
from tests.past import load_past
from tests.topox_core.fabrics.asked import FIRST, run
from tests.topox_core.schedule.circuit_rules import broken_rules
from tests.topox_core.small_graphs import (
    cluster,
    compute,
    graph,
    random_graph,
    sample_with,
    transfer,
)
from topox_core.check.checker import check
from topox_core.fabrics.controllers.circuits import Profile
from topox_core.fabrics.controllers.phases import matching_of_pairs, one_way_matchings, phased
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.schedule.kernels.known_order import IN, OUT
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import SAMPLES

ON_SLOTS = Settings.of(engine="list", iteration="first", tick="slot", clock="slots")
SWITCHING = Settings.of(engine="list", iteration="first", switching="planned")
SLACK = 1 + 1e-9


# -- by hand ---------------------------------------------------------------------------------------


BOTH_WAYS = (transfer("there", 0, 1, 2), transfer("back", 1, 0, 2, "there"))
FAN = tuple(transfer(f"t{i}", 0, i, 1) for i in range(1, 5))
BY_HAND = {  # what runs, on what; when a task starts, or the iteration ends
    "every change of a port costs the delay, and the first circuit stands before": (
        (transfer("a", 0, 1, 2), transfer("b", 0, 2, 2, "a"), transfer("c", 0, 1, 2, "b")),
        cluster(3, reconfiguration_ms=5),
        {"b": 7, "c": 14, "end": 16},
    ),
    "a circuit that still stands costs nothing": (
        (transfer("a", 0, 1, 2), compute("f", 1, 3, "a"), transfer("b", 0, 1, 2, "f")),
        cluster(2, reconfiguration_ms=50),
        {"b": 5, "end": 7},
    ),
    "a request keeps its place at both ports and blocks nobody else": (
        (
            transfer("holds", 0, 1, 10),  # keeps the in-port of 1 busy until 10
            transfer("waits", 2, 1, 3),  # takes its place at the out-port of 2, too
            compute("later", 2, 1.0),
            transfer("behind", 2, 3, 3, "later"),
            transfer("elsewhere", 4, 5, 3),
        ),
        cluster(6),
        {"waits": 10, "behind": 13, "elsewhere": 0},
    ),
    "of those ready together the first in the graph goes first": (
        (transfer("y", 2, 1, 1), transfer("x", 0, 1, 5)),
        cluster(3),
        {"y": 0, "x": 1},
    ),
    "who is ready earlier goes first whatever the position": (
        (
            *(compute("f", 0, 2), transfer("late", 0, 1, 5, "f")),
            *(compute("g", 2, 1), transfer("early", 2, 1, 4, "g")),
        ),
        cluster(3),
        {"early": 1, "late": 5},
    ),
    "ports never used come before ports that must change": (
        (transfer("a", 0, 1, 1), transfer("b", 0, 2, 1, "a"), transfer("c", 0, 3, 1, "b")),
        cluster(4, ports_per_server=2, reconfiguration_ms=7),
        {"a": 0, "b": 1, "c": 9},
    ),
    "ports of both ways need no change to turn round": (
        BOTH_WAYS,
        cluster(2, reconfiguration_ms=3),
        {"end": 4},
    ),
    "a half-duplex port changes when it turns round": (
        BOTH_WAYS,
        cluster(2, reconfiguration_ms=3, duplex="half"),
        {"end": 7},
    ),
    "a switch with room for one circuit carries one at a time": (
        (transfer("a", 0, 1, 2), transfer("b", 2, 3, 2)),
        cluster(4, ports_per_switch=1),
        {"end": 4},
    ),
    "of the places on a switch that are free by then the one left last is taken": (
        (
            *(transfer("long", 0, 1, 5), transfer("short", 2, 3, 1)),  # two places, left at 5 and 1
            *(transfer("then", 0, 4, 2), transfer("soon", 2, 5, 2)),  # the one left at 1 is kept
        ),
        cluster(6, ports_per_switch=2),
        {"then": 5, "soon": 1},
    ),
    "a busy port pays for all its set-ups but the first": (
        FAN,
        cluster(5, reconfiguration_ms=10),
        {"end": 4 * 1 + 3 * 10, "bound": 4 * 1 + 3 * 10},
    ),
    "computing alone needs no circuits": (
        (compute("f", 0, 3), compute("g", 0, 2)),
        cluster(2),
        {"end": 5},
    ),
}


@pytest.mark.parametrize("rule", BY_HAND)
def test_circuits_on_demand_start_when_the_rules_say(rule: str) -> None:
    tasks, of, expected = BY_HAND[rule]
    found = run("reactive", graph(*tasks), of, FIRST)
    times = {"end": found.iteration_ms, "bound": found.bound_ms}
    times |= zip(found.execution.graph.ids, found.execution.start_ms.tolist(), strict=True)
    assert {name: times[name] for name in expected} == pytest.approx(expected)
    assert found.dark_ms == pytest.approx(found.circuits_changed * of.reconfiguration_ms)
    assert (found.traffic.bandwidth_tax, found.traffic.longest_hops <= 1) == (1, True)


@pytest.mark.parametrize(
    ("delay_ms", "stall_ms"),
    [(0.0, 0.0), (1.0, 0.0), (10.0, 8.9), (50.0, 48.9), (70.0, 68.9 + 10.0)],
)
def test_provisioning_hides_the_delay_in_the_windows(delay_ms: float, stall_ms: float) -> None:
    # Two transitions in series with windows of 1.1 and 60 ms: on demand pays twice, provisioned the
    # sum of max(0, R - window).
    chain = graph(
        transfer("a", 0, 1, 4),
        compute("short", 1, 1.1, "a"),
        transfer("b", 0, 2, 4, "short"),
        compute("long", 2, 60.0, "b"),
        transfer("c", 0, 1, 4, "long"),
    )
    of = cluster(3, reconfiguration_ms=delay_ms)
    bare = 4 + 1.1 + 4 + 60 + 4
    times = [run(fabric, chain, of, FIRST).iteration_ms for fabric in ("reactive", "provisioned")]
    assert times == pytest.approx([bare + 2 * delay_ms, bare + stall_ms])


# -- on random graphs and clusters -----------------------------------------------------------------

clusters = st.builds(
    lambda k, switches, room, duplex, delay: cluster(
        4,
        ports_per_server=k * switches,
        switches=switches,
        ports_per_switch=room,
        duplex=duplex,
        reconfiguration_ms=delay,
        slot_ms=0.1,
    ),
    k=st.integers(1, 2),
    switches=st.integers(1, 2),
    room=st.integers(1, 8),
    duplex=st.sampled_from(("full", "half")),
    delay=st.sampled_from((0.0, 0.1, 0.7, 3.0)),
)
seeds = st.integers(0, 10_000)


@examples(60)
@given(seed=seeds, of=clusters)
def test_the_controllers_keep_every_rule_and_asking_early_makes_nothing_later(
    seed: int, of: Cluster
) -> None:
    task_graph = random_graph(seed)
    late, early = (run(fabric, task_graph, of, FIRST) for fabric in ("reactive", "provisioned"))
    assert [*broken_rules(late.execution), *broken_rules(early.execution)] == []
    assert late.bound_ms == pytest.approx(early.bound_ms, rel=1e-9)
    assert early.bound_ms <= early.iteration_ms
    assert (early.execution.start_ms <= late.execution.start_ms * (1 + 1e-12)).all()
    assert early.circuits_changed == late.circuits_changed
    if of.reconfiguration_ms == 0:
        assert np.array_equal(late.execution.start_ms, early.execution.start_ms)


@examples(30)
@given(seed=seeds, of=clusters)
def test_a_plan_on_slots_that_divide_everything_is_never_behind_the_controllers(
    seed: int, of: Cluster
) -> None:
    # All durations and the delay are multiples of the slot, so that rounding costs the plan
    # nothing.
    task_graph = random_graph(seed, collectives=False)
    planned = run("scheduled", task_graph, of, ON_SLOTS)
    assert broken_rules(planned.execution) == []
    assert planned.iteration_ms <= run("provisioned", task_graph, of, FIRST).iteration_ms * SLACK
    assert planned.bound_ms <= planned.iteration_ms
    assert planned.message == ""


@examples(25)
@given(seed=seeds, of=clusters, shuffled=st.permutations(range(4)))
def test_the_names_of_servers_mean_nothing(seed: int, of: Cluster, shuffled: list[int]) -> None:
    def renamed(task: Task) -> Task:
        ends = {end: getattr(task, end) for end in ("server", "source", "destination")}
        named = {end: shuffled[server] for end, server in ends.items() if server is not None}
        return structs.replace(task, **named)

    task_graph = random_graph(seed, collectives=False)
    other = replace(task_graph, tasks=tuple(map(renamed, task_graph.tasks)))
    times = [run("reactive", one, of, FIRST).iteration_ms for one in (task_graph, other)]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


# -- on the samples --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", long_after(3, dict.fromkeys(["blackboard", "patience", "race", *SAMPLES]))
)
def test_the_independent_checker_accepts_the_controllers_and_their_time_adds_up(name: str) -> None:
    task_graph, of = sample_with(name, reconfiguration_ms=2.0)
    runs = [run(one, task_graph, of, SWITCHING) for one in ("reactive", "provisioned", "scheduled")]
    told = replace(runs[-1].result, slotted_ms=None, status="feasible", classes=())
    for found in runs:
        parts = found.breakdown
        spent_ms = parts.compute_ms + parts.exposed_ms + parts.dark_ms + parts.waiting_ms
        assert spent_ms == pytest.approx(found.iteration_ms)
        result = replace(told, execution=found.execution, makespan_ms=found.iteration_ms)
        assert check(task_graph, of, to_record(result)).lines() == ()


@pytest.mark.parametrize("engine", ["list", "auto"])
def test_a_schedule_may_be_kept_to_the_provisioned_order(engine: str) -> None:
    task_graph, of = load_past("moe", reconfiguration_ms=1.0)
    settings = Settings.of(engine=engine, switching="provisioned", time_limit_s=5.0)
    result = schedule(task_graph, of, settings)
    expected_ms = run("provisioned", task_graph, of, settings).iteration_ms
    assert result.makespan_ms == pytest.approx(expected_ms, rel=1e-12)
    assert result.switching == "provisioned"
    assert check(task_graph, of, to_record(result)).ok


def test_coarse_slots_can_lose_and_the_plan_says_so() -> None:
    short = graph(*[transfer(f"t{i}", 0, 1, 0.1, *([f"t{i - 1}"] if i else [])) for i in range(5)])
    planned = run("scheduled", short, cluster(2), ON_SLOTS)
    assert planned.iteration_ms == pytest.approx(5)
    assert "provisioned circuits without slots take 0.5 ms" in planned.message


# -- phase by phase -------------------------------------------------------------------------------


PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), unique=True, max_size=50)


@given(PAIRS)
def test_pairs_fall_into_as_many_matchings_as_the_busiest_server_has_peers(
    pairs: list[tuple[int, int]],
) -> None:
    matching = matching_of_pairs(pairs)
    assert matching.keys() == set(pairs)
    peers = [Counter(pair[side] for pair in pairs) for side in (0, 1)]
    assert len(set(matching.values())) == max(max(one.values(), default=0) for one in peers)
    for side in (0, 1):
        assert len({(pair[side], number) for pair, number in matching.items()}) == len(pairs)
    # A half-duplex port is in one pair of a matching.
    apart = [(x, y) for x, y in pairs if x != y]
    one_way = one_way_matchings(apart)
    assert one_way.keys() == set(apart)
    for number in set(one_way.values()):
        ends = [end for pair in apart if one_way[pair] == number for end in pair]
        assert len(ends) == len(set(ends))


def test_a_port_more_may_stay_unused() -> None:
    """Four transfers in turn, each a phase, on the plane that has carried least: 1 + 2 + 2 + 1 = 6 ms and changes.

    One port changes from 1 to 2: 26 ms. Of two, the second joins 2 and has carried less when the last
    transfer goes there: 6 ms. Of three, the second is the one that joins 2, the third has carried what
    goes back, and the last transfer takes the first: it changes once idle, at 1 ms, and ends at 22 ms.
    """
    chain = (("a", 0, 1, 1.0), ("b", 0, 2, 2.0), ("c", 2, 0, 2.0), ("d", 0, 2, 1.0))
    before = ((), ("a",), ("b",), ("c",))
    job = graph(*(transfer(*one, *after) for one, after in zip(chain, before, strict=True)))
    times_ms = {}
    for ports in (1, 2, 3, 4):
        of = cluster(3, ports_per_server=ports, switches=ports, reconfiguration_ms=20)
        times_ms[ports] = run("phased", job, of, FIRST).iteration_ms
    assert times_ms == pytest.approx({1: 26, 2: 6, 3: 6, 4: 6})


def test_phases_change_nothing_where_the_ports_hold_a_circuit_for_every_pair() -> None:
    """A chain of 1 + 3 + 3 + 3 = 10 ms; server 0 sends to two peers and has two ports.

    The plane that has carried least took the second transfer to the other port of server 0, so that the
    last one changed it: 27 ms.
    """
    chain = (("a", 0, 1, 1.0), ("b", 0, 1, 3.0), ("c", 2, 0, 3.0), ("d", 0, 2, 3.0))
    before = ((), ("a",), ("b",), ("c",))
    job = graph(*(transfer(*one, *after) for one, after in zip(chain, before, strict=True)))
    of = cluster(3, ports_per_server=2, switches=2, reconfiguration_ms=20)
    found = run("phased", job, of, FIRST)
    assert (found.iteration_ms, found.circuits_changed) == (10.0, 0)


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("seed", long_after(4, range(12)))
def test_phases_follow_each_other_as_early_as_possible_and_switches_carry_no_more_than_they_may(
    seed: int, duplex: str
) -> None:
    of = cluster(4, ports_per_server=2, switches=1, ports_per_switch=2, duplex=duplex)
    task_graph = lower(random_graph(seed, tasks=40))
    request = FabricRequest(task_graph, of.changed(reconfiguration_ms=0.5), Settings.of())
    profile = Profile.of(request)
    by_phases = phased(profile)
    graph, orders, start_ms = profile.graph, by_phases.known.orders, by_phases.known.start
    assert start_ms == pytest.approx(by_phases.provisioned_start_ms(), abs=1e-9)
    end_ms = start_ms + by_phases.length_ms
    for j in range(len(graph)):
        before = graph.pred_idx[graph.pred_ptr[j] : graph.pred_ptr[j + 1]]
        assert (end_ms[before] <= start_ms[j] + 1e-9).all()
    begin_ms, node = start_ms - 0.5 * orders.changed, by_phases.booked_ports.node
    for before in orders.before[[OUT, IN]]:
        follows = np.flatnonzero(before >= 0)
        assert (end_ms[before[follows]] <= begin_ms[follows] + 1e-9).all()
    for at in (begin_ms[node] + 1e-9).tolist():
        assert ((begin_ms[node] <= at) & (end_ms[node] > at)).sum() <= 2
