"""Circuits that are re-evaluated at intervals: by hand, against fixed ones, and as a contender."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples, long_after
from tests.topox_core.small_graphs import cluster, compute, graph, transfer
from topox_core.api import load_sample
from topox_core.errors import InputError
from topox_core.fabrics.compare import run_one
from topox_core.fabrics.fluid import Pairs, Simulation
from topox_core.fabrics.reevaluated import mean_ms, reevaluated
from topox_core.fabrics.run import FabricOptions, FabricRequest
from topox_core.fabrics.static_layout import static_layout, wired
from topox_core.model.layout import Layout
from topox_core.model.lowering import lower
from topox_core.runs.stopping import never
from topox_core.schedule.settings import Settings
from topox_core.topology.greedy import greedy_circuits, repaired, with_kept
from topox_core.topology.routing import RoutedNetwork

SETTINGS = Settings.of(engine="list")


def ring(circuits: int) -> Layout:
    """Servers 0 -> 1 -> 2 -> 0, with the routes over it."""
    around = [(a, (a + 1) % 3, (a + 2) % 3) for a in range(3)]
    routes = {(a, b): ((a, b),) for a, b, _ in around} | {
        (a, c): ((a, b, c),) for a, b, c in around
    }
    return Layout(circuits * np.roll(np.eye(3, dtype=np.int32), 1, axis=1), routes)


def far(delay_ms: float = 0.0, **options: object) -> FabricRequest:
    """8 ms from server 0 to 2, which no circuit joins at first; two ports a server."""
    return FabricRequest(
        lower(graph(transfer("far", 0, 2, 8.0))),
        cluster(3, ports_per_server=2, switches=2, reconfiguration_ms=delay_ms),
        SETTINGS,
        FabricOptions(layout=ring(2), **options),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("delay_ms", "options", "expected"),
    [
        # Evaluated at 5 ms, up at 6, then 8 ms on two circuits; the next iterations find them there.
        (1.0, {"reevaluate_ms": 5.0, "forwarding": False}, [10, 4, 4]),
        # At 1 ms 6 of 8 ms are left; two new circuits carry them, forwarded or not, as fast.
        (0.0, {"reevaluate_ms": 1.0}, [4]),
        # Both circuits of the way are given up for the direct ones: either pause stops the transfer.
        (0.5, {"reevaluate_ms": 1.0, "pause": "all"}, [4.5]),
        (0.5, {"reevaluate_ms": 1.0, "pause": "changed"}, [4.5]),
    ],
)
def test_a_transfer_whose_circuits_change_on_its_way_by_hand(
    delay_ms: float, options: dict[str, Any], expected: list[float]
) -> None:
    runs = reevaluated(far(delay_ms, **options), never)
    times = [one.execution.makespan_ms for one in runs for _ in range(one.times)]
    assert times[: len(expected)] == pytest.approx(expected)
    if options == {"reevaluate_ms": 1.0}:
        assert runs[0].traffic.bandwidth_tax == pytest.approx((2 * 2 + 6) / 8)


def test_a_pause_of_all_also_stops_what_does_not_change() -> None:
    """A transfer on circuits that stay goes on if only those that change are dark."""
    both = lower(graph(transfer("far", 0, 2, 9.0), transfer("near", 1, 2, 4.0)))
    paused, changed = (
        reevaluated(replace(far(2.0, reevaluate_ms=1.0, pause=pause), graph=both), never)[0]
        for pause in ("all", "changed")
    )
    assert changed.execution.makespan_ms < paused.execution.makespan_ms


@pytest.mark.parametrize("name", long_after(2, ["race", "patience", "dlrm-16", "moe"]))
def test_until_the_first_interval_ends_it_is_the_fabric_of_fixed_circuits(name: str) -> None:
    task_graph, one = load_sample(name)
    order = FabricRequest(lower(task_graph), one, SETTINGS, FabricOptions(reevaluate_ms=1e9))
    fixed, run = run_one("static", order), reevaluated(order, never)[0]
    assert run.execution.makespan_ms == pytest.approx(fixed.iteration_ms, rel=1e-12)
    assert run.changed == 0 and run.dark_ms == 0
    assert run.traffic.bandwidth_tax == pytest.approx(fixed.traffic.bandwidth_tax)
    assert run.traffic.port_busy == pytest.approx(fixed.traffic.port_busy)


@pytest.mark.parametrize(
    ("name", "variant"), long_after(1, [("race", "published"), ("dlrm-16", "released")])
)
def test_a_run_that_is_carried_over_goes_on_as_if_nothing_happened(name: str, variant: str) -> None:
    """Between any two events, several times over, onto the same links; over several paths bytes are dealt anew."""
    task_graph, one = load_sample(name)
    layout, moved = static_layout(lower(task_graph), one, variant, 0)
    pairs = Pairs.of(moved, one)
    network = wired(layout.layout, pairs, one).network
    whole, cut = (Simulation(moved, one, pairs, network) for _ in range(2))
    while whole.advance(100):
        pass
    for now_ms in np.linspace(0.05, 0.95, 9) * whole.now_ms:
        while cut.advance(100, now_ms):
            pass
        cut = cut.moved_to(network, now_ms)
    while cut.advance(100):
        pass
    assert cut.over
    assert cut.state.end == pytest.approx(whole.state.end, rel=1e-9)


def test_the_typical_iteration_is_near_the_mean() -> None:
    task_graph, one = load_sample("race")
    options = FabricOptions(reevaluate_ms=20.0)
    one = one.changed(reconfiguration_ms=0.1)
    order = FabricRequest(lower(task_graph), one, SETTINGS, options)
    iterations, run = reevaluated(order, never), run_one("reevaluated", order)
    mean = mean_ms(iterations)
    nearest = min(abs(one.execution.makespan_ms - mean) for one in iterations)
    assert abs(run.iteration_ms - mean) == pytest.approx(nearest)
    assert 0 <= run.dark_share < 1
    assert (run.traffic.port_busy <= 1 + 1e-9).all() and (run.traffic.link_busy <= 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reevaluate_ms": 0.0}, "field reevaluate_ms: must be at least 0.001"),
        ({"reevaluate_ms": float("nan")}, "field reevaluate_ms: must be at least"),
        ({"pause": "some"}, "field pause: must be one of all, changed"),
        ({"reevaluate_ms": 0.001}, "more than 5,000 times"),
    ],
)
def test_bad_options_are_one_line(options: dict[str, object], words: str) -> None:
    long = lower(graph(transfer("far", 0, 2, 8.0), compute("long", 0, 50.0)))
    with pytest.raises(InputError, match=words):
        run_one("reevaluated", replace(far(0.0, **options), graph=long))


# --- circuits dealt greedily


def test_circuits_go_to_most_bytes_a_circuit() -> None:
    wanted = np.array([[0.0, 9.0, 4.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert greedy_circuits(wanted, 3).tolist() == [[0, 2, 1], [0, 0, 2], [0, 0, 0]]


@st.composite
def demands(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    n = draw(st.integers(2, 7))
    values = draw(
        st.lists(st.sampled_from([0.0, 0.0, 1.0, 5.0, 30.0]), min_size=n * n, max_size=n * n)
    )
    wanted = np.array(values).reshape(n, n)
    np.fill_diagonal(wanted, 0.0)
    return wanted, draw(st.integers(1, 4))


@examples(60)
@given(demands(), st.integers(0, 5))
def test_repaired_circuits_keep_to_the_ports_and_reach_everybody_who_talks(
    drawn: tuple[np.ndarray, int], seed: int
) -> None:
    wanted, ports = drawn
    before = greedy_circuits(np.random.default_rng(seed).random(wanted.shape), ports)
    pairs = [(int(a), int(b)) for a, b in zip(*np.nonzero(wanted), strict=True)]
    dealt = greedy_circuits(wanted, ports)
    kept = with_kept(dealt, before, ports)
    mended = repaired(kept, pairs, wanted, ports)
    for circuits in (dealt, kept, mended):
        assert (circuits >= 0).all() and not np.diagonal(circuits).any()
        assert circuits.sum(axis=0).max() <= ports and circuits.sum(axis=1).max() <= ports
    assert (kept >= dealt).all()
    network = RoutedNetwork(mended)
    assert all(network.connected(a, b) for a, b in pairs)
