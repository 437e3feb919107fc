"""Switch assignment: per slot it meets eqs 7, 9 and 10 for any allowed set of circuits; continuous it books real ports."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples, some
from tests.topox_core.schedule.problem_builder import Fabric, build
from tests.topox_core.small_graphs import cluster, graph, list_schedule, random_graph, transfer
from topox_core.check.checker import check
from topox_core.schedule.circuits.held_ports import changed_rows, per_slot
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings

# From whom, to whom, first slot and slots.
RUN = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 6), st.integers(1, 4))
FABRIC = st.builds(
    lambda switches, k, room: Fabric(5, switches, room, switches * k, k),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 6),
)


def fits(runs: list[tuple[int, int, int, int]], fabric: Fabric) -> bool:
    """Whether out-ports, in-ports and the total of all switches suffice in every slot."""
    for t in range(12):
        now = [(x, y) for x, y, first, slots in runs if first <= t < first + slots]
        held = [Counter(ends).most_common(1) for ends in zip(*now, strict=True)]
        if any(most > fabric.ports_per_server for [(_, most)] in held):
            return False
        if len(now) > fabric.switches * fabric.circuits_per_switch:
            return False
    return True


@examples(400)
@given(st.lists(RUN, max_size=25), FABRIC)
def test_any_allowed_set_of_circuits_splits_into_switches(drawn, fabric):
    accepted = []
    for run in drawn:
        if run[0] != run[1] and fits([*accepted, run], fabric):
            accepted.append(run)
    ends = {j: (x, y) for j, (x, y, _, _) in enumerate(accepted)}
    problem = build([slots for *_, slots in accepted], ends, (), fabric)
    booking = per_slot(problem, np.array([f for *_, f, _ in accepted], np.int64))
    for t in range(12):
        here = np.flatnonzero((booking.first_slot <= t) & (t < booking.end_slot))
        now = [j for j, (_, _, first, slots) in enumerate(accepted) if first <= t < first + slots]
        assert sorted(booking.node[here]) == now  # eq. 6, exactly once a slot
        for r in range(fabric.switches):
            on = here[booking.switch[here] == r]
            assert len(on) <= fabric.circuits_per_switch  # eq. 7
            out = {(accepted[booking.node[i]][0], booking.source_port[i]) for i in on}
            into = {(accepted[booking.node[i]][1], booking.destination_port[i]) for i in on}
            assert len(out) == len(on) == len(into)  # eqs 9 and 10: a port has one peer each way


def test_a_circuit_that_goes_on_keeps_its_switch():
    fabric = Fabric(servers=4, switches=2, ports_per_server=2)
    problem = build([6, 2, 2, 2], {0: (0, 1), 1: (0, 2), 2: (3, 1), 3: (0, 2)}, (), fabric)
    booking = per_slot(problem, np.array([0, 0, 2, 4], np.int64))
    assert (booking.node == 0).sum() == 1
    assert changed_rows(booking, problem.network).sum() <= 1


@pytest.mark.parametrize(
    ("between", "ports", "dark_ms"),
    [
        (1, 1, [0, 0, 0]),  # repeating a circuit is no change
        (2, 1, [0, 3, 3]),  # alternating is
        (2, 2, [0, 0, 0]),  # and a second switch hides it
    ],
)
def test_a_circuit_is_dark_exactly_where_its_port_had_another(between, ports, dark_ms):
    g = graph(
        transfer("a", 0, 1, 2.0), transfer("b", 0, between, 2.0, "a"), transfer("c", 0, 1, 2.0, "b")
    )
    of = cluster(reconfiguration_ms=3.0, switches=ports, ports_per_server=ports)
    result = list_schedule(g, of, Settings.of())
    assert result.makespan_ms == 6.0 + sum(dark_ms)
    circuits = result.execution.circuits
    assert (circuits.start_ms - circuits.setup_ms).tolist() == dark_ms
    assert circuits.changed.tolist() == [ms > 0 for ms in dark_ms]


def test_a_shared_circuit_stands_until_the_last_of_its_transfers_ends():
    # The second joins and is gone again while the first goes on.
    fabric = Fabric(servers=3, switches=2, ports_per_server=2, shares=True)
    problem = build([6, 2, 2], {0: (0, 1), 1: (0, 1), 2: (0, 1)}, (), fabric)
    booking = per_slot(problem, np.array([0, 1, 4], np.int64))
    assert (booking.node.tolist(), booking.end_slot.tolist()) == ([0, 1, 2], [6, 3, 6])
    assert len(set(booking.switch.tolist())) == 1


CASES = [
    ("continuous", {}, {}),
    ("continuous", {"reconfiguration_ms": 1.4}, {}),
    ("continuous", {"duplex": "half"}, {}),
    ("continuous", {"duplex": "half", "reconfiguration_ms": 2.0, "ports_per_server": 4}, {}),
    ("continuous", {"ports_per_server": 4, "reconfiguration_ms": 0.5}, {}),
    ("continuous", {"ports_per_switch": 2}, {}),
    ("continuous", {"ports_per_switch": 1, "reconfiguration_ms": 1.0}, {}),
    ("per-slot", {}, {}),
    ("per-slot", {"ports_per_switch": 2}, {}),
    ("per-slot", {"ports_per_server": 4}, {}),
    ("per-slot", {"duplex": "half"}, {}),
    ("per-slot", {}, {"model": "paper"}),
    ("per-slot", {"ports_per_server": 3, "duplex": "half"}, {"model": "paper"}),
    ("per-slot", {"ports_per_server": 1}, {"model": "paper"}),
    ("per-slot", {}, {"share_circuits": True}),
    ("per-slot", {}, {"exclusive_devices": False}),
]


@pytest.mark.parametrize(("circuits", "keys", "choices"), CASES, ids=str)
def test_the_independent_checker_accepts_every_list_schedule(circuits, keys, choices):
    of = cluster(4, **({"switches": 2, "ports_per_server": 2} | keys))
    settings = Settings.of(**({"model": "physical", "circuits": circuits, "tick": 0.2} | choices))
    for seed in some(range(12), quick=4):
        g = random_graph(seed, tasks=40)
        report = check(g, of, to_record(list_schedule(g, of, settings)))
        assert report.ok, (seed, report.lines())


@pytest.mark.long
def test_more_circuits_at_once_than_a_short_number_holds_still_respect_the_switch():
    g = graph(*(transfer(f"x{i}", i % 2, 2 + i % 2, 2.0) for i in range(40_000)))
    c = cluster(4, ports_per_server=4_096, ports_per_switch=3_000)
    result = list_schedule(g, c, Settings.of(circuits="per-slot"))
    assert (result.bound_ms, result.makespan_ms) == (
        27.0,
        28.0,
    )  # 80,000 circuit-slots, 3,000 at once, two slots each
    assert check(g, c, to_record(result)).ok


def test_thousands_of_ports_cost_no_more_than_those_in_use():
    g = graph(*(transfer(f"x{i}", 0, 1, 1.0) for i in range(60)))
    huge = cluster(100_000, ports_per_server=4_096, ports_per_switch=100_000)
    for circuits in ("continuous", "per-slot"):
        result = list_schedule(g, huge, Settings.of(circuits=circuits))
        assert (result.status, result.makespan_ms) == ("optimal", 1.0)
