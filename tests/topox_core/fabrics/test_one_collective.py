"""Inside one collective: circuits that change between steps while other ports send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from topox_core.errors import InputError
from topox_core.fabrics.one_collective import OneCollective, StepsOnPorts
from topox_core.fabrics.split_exact import shortest_split


def of(
    n: int, c: int, delay: float, kind: str = "all_reduce", latency: float = 0.0
) -> OneCollective:
    name = {"all_reduce": "halving_doubling", "all_to_all": "pairwise"}[kind]
    return OneCollective(kind, name, n, c, 8.0, latency, delay)


def assert_carried_out(one: OneCollective, way: StepsOnPorts) -> None:
    """Every step sends all it has, after the step before, and no port changes faster than it can."""
    busy, circuits = one.steps.busy, one.steps.circuits
    assert way.share_ms.sum(axis=1) == pytest.approx(busy, abs=1e-6)
    used = way.share_ms > 1e-9
    end = way.start_ms + way.share_ms + one.latency_ms
    before = 0.0
    for q in range(len(busy)):
        assert (way.start_ms[q, used[q]] >= before - 1e-6).all()
        before = max(before, end[q, used[q]].max())
        for r in used[q].nonzero()[0].tolist():
            for p in used[:q, r].nonzero()[0].tolist():
                dark = one.delay_ms if circuits[p] != circuits[q] else 0.0
                assert way.start_ms[q, r] >= end[p, r] + dark - 1e-6
    assert way.makespan_ms == pytest.approx(before, abs=1e-6)


STATED = [  # members, ports, delay; together, one port a step, the optimum, a ring on each port
    (8, 2, 1.0, 11.0, 14.0, 11.0, 7.0),
    (8, 2, 2.0, 15.0, 14.0, 12.0, 7.0),
    (8, 2, 5.0, 27.0, 20.0, 18.0, 7.0),
    (8, 4, 0.5, 5.5, 14.0, 5.333333, 3.5),
    (8, 4, 1.0, 7.5, 14.0, 6.0, 3.5),
    (8, 4, 2.0, 11.5, 14.0, 7.333333, 3.5),
    (8, 4, 5.0, 23.5, 14.0, 10.0, 3.5),
    (8, 4, 20.0, 83.5, 14.0, 10.0, 3.5),
    (16, 2, 1.0, 13.5, 15.0, 12.0, 7.5),
    (16, 2, 2.0, 19.5, 17.0, 15.0, 7.5),
    (16, 2, 5.0, 37.5, 23.0, 23.0, 7.5),
]


@pytest.mark.parametrize(("n", "c", "delay", "together", "one_port", "optimum", "rings"), STATED)
def test_halving_and_doubling_takes_what_was_computed_beforehand(
    n: int, c: int, delay: float, together: float, one_port: float, optimum: float, rings: float
) -> None:
    one = of(n, c, delay)
    assert one.together().makespan_ms == pytest.approx(together)
    assert one.one_port_a_step().makespan_ms == pytest.approx(one_port)
    assert one.rings_ms == pytest.approx(rings)
    found = one.split()
    assert optimum - 1e-6 <= found.makespan_ms <= min(together, one_port) + 1e-9
    assert found.makespan_ms <= optimum * 1.1
    assert_carried_out(one, found)


@pytest.mark.parametrize(("n", "c", "delay", "optimum"), [(8, 2, 2.0, 12.0), (8, 2, 5.0, 18.0)])
def test_the_programme_proves_the_optimum(n: int, c: int, delay: float, optimum: float) -> None:
    one = of(n, c, delay)
    best = shortest_split(one)
    assert best.makespan_ms == pytest.approx(optimum, abs=1e-5)
    assert best.proved_ms == pytest.approx(optimum, abs=1e-4)
    assert_carried_out(one, best)


@pytest.mark.long
@pytest.mark.parametrize(("n", "c", "delay", "together", "one_port", "optimum", "rings"), STATED)
def test_the_programme_reaches_every_stated_optimum(
    n: int, c: int, delay: float, together: float, one_port: float, optimum: float, rings: float
) -> None:
    one = of(n, c, delay)
    best = shortest_split(one, 30.0)
    assert best.makespan_ms <= optimum + 1e-5
    assert_carried_out(one, best)


@pytest.mark.parametrize(
    ("c", "delay", "together", "optimum"),
    [(2, 0.1, 4.1, 4.1), (2, 1.0, 9.5, 7.0), (2, 5.0, 33.5, 19.0), (4, 5.0, 31.75, 9.0)],
)
def test_an_exchange_in_pairs_hides_set_ups_behind_other_ports(
    c: int, delay: float, together: float, optimum: float
) -> None:
    one = of(8, c, delay, "all_to_all")
    assert one.together().makespan_ms == pytest.approx(together)
    assert one.split().makespan_ms == pytest.approx(optimum)


@given(
    st.sampled_from([("all_reduce", 4), ("all_reduce", 8), ("all_to_all", 5), ("all_to_all", 8)]),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3, 1.0, 7.0]),
    st.sampled_from([0.0, 0.05]),
)
@examples(30)
def test_no_way_is_shorter_than_the_bound_and_the_split_is_behind_none(
    of_kind: tuple[str, int], c: int, delay: float, latency: float
) -> None:
    one = of(of_kind[1], c, delay, of_kind[0], latency)
    ways = [one.together(), one.one_port_a_step(), one.split()]
    for way in ways:
        assert_carried_out(one, way)
        assert way.makespan_ms >= one.bound_ms - 1e-9
    assert ways[2].makespan_ms <= min(way.makespan_ms for way in ways) + 1e-9
    if delay == 0:
        assert ways[2].makespan_ms == pytest.approx(one.bound_ms)


@pytest.mark.parametrize(
    ("kind", "name", "n", "words"),
    [
        ("all_to_all", "direct", 8, "a member sends or receives twice in a step"),
        ("reduce_scatter", "halving", 6, "needs 2, 4, 8, ... members (got 6)"),
        ("all_reduce", "magic", 8, "must be one of ring, direct"),
        ("all_reduce", "ring", 1000, "from 2 to 256"),
    ],
)
def test_what_has_no_such_steps_is_refused_in_one_line(
    kind: str, name: str, n: int, words: str
) -> None:
    with pytest.raises(InputError) as error:
        OneCollective(kind, name, n, 2, 8.0, 0.0, 1.0)
    assert words in str(error.value)
