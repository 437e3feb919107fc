"""Regional circuits for experts: the reference's times, circuits by hand, what must be equal and what can never be faster."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples, long_after
from tests.past import load_past
from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph
from topox_core.economics.clusters import cluster_bill
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.errors import InputError
from topox_core.fabrics.bills import fabric_bill
from topox_core.fabrics.compare import compare, run_one
from topox_core.fabrics.fluid import Stopped, simulate
from topox_core.fabrics.gating import Gating, drawn_shares, exchanges
from topox_core.fabrics.packet import non_blocking
from topox_core.fabrics.regional import dealt_circuits, regional_iterations
from topox_core.fabrics.regional_options import RegionalOptions
from topox_core.fabrics.run import FabricOptions, FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.durations import work_bytes
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.runs.stopping import never
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

SETTINGS = Settings.of(engine="list")
SLACK = 1 + 1e-9


def request(
    task_graph: TaskGraph, of: Cluster, delay_ms: float = 0.0, **options: object
) -> FabricRequest:
    of = of.changed(reconfiguration_ms=delay_ms)
    return FabricRequest(lower(task_graph), of, SETTINGS, FabricOptions(**options))  # type: ignore[arg-type]


def time_ms(order: FabricRequest) -> float:
    return run_one("regional", order).iteration_ms


def packets_ms(order: FabricRequest, ports: int) -> float:
    """Return the time on a packet switch alone, with so many ports a server."""
    of = order.cluster.changed(ports_per_server=ports, switches=ports)
    wiring = non_blocking(replace(order, cluster=of))
    _, end = simulate(order.graph, of, wiring.pairs, wiring.network, True, never)
    return float(end.max())


# --- what the reference reports

TABLE = [
    # graph, packet ports, deal; fixed; gate at 0, 1, 10, 25 ms; foreseen at the same delays
    (
        *("moe-n8l4-seed1", 2, "bottleneck", 333.526978),
        *((310.562875, 312.503387, 335.868205, 369.023602),),
        *((306.767885, 306.799317, 334.649701, 345.171472),),
    ),
    (
        *("moe-n8l4-seed1", 4, "bottleneck", 302.639642),
        *((293.645474, 295.335044, 311.782185, 331.523578),),
        *((288.324657, 289.436181, 307.787936, 315.859455),),
    ),
    (
        *("moe-n16l4-seed1", 2, "bottleneck", 540.074697),
        *((513.619457, 516.576818, 537.538533, 563.341222),),
        *((498.202667, 498.603884, 521.543298, 552.833162),),
    ),
    (
        *("moe-n16l4-seed0", 4, "bytes", 415.151544),
        *((402.888799, 404.711116, 417.700118, 439.402871),),
        *((406.341500, 407.214279, 417.089364, 430.918246),),
    ),
    (
        *("moe-n16l4-seed1", 4, "bottleneck", 400.860570),
        *((384.507911, 386.237743, 404.706469, 428.126758),),
        *((381.169140, 382.567771, 403.409571, 422.916026),),
    ),
]


@pytest.mark.parametrize(
    ("name", "packet_ports", "dealt", "fixed_ms", "gate_ms", "foreseen_ms"), long_after(2, TABLE)
)
def test_regional_circuits_take_what_the_reference_says(
    name: str,
    packet_ports: int,
    dealt: str,
    fixed_ms: float,
    gate_ms: tuple[float, ...],
    foreseen_ms: tuple[float, ...],
) -> None:
    order = request(*load_past(name), regional_packet_ports=packet_ports, regional_dealt=dealt)
    fixed = replace(order, options=replace(order.options, regional_circuits="fixed"))
    assert time_ms(fixed) == pytest.approx(fixed_ms, abs=1e-6)
    for mode, expected in (("gate", gate_ms), ("foreseen", foreseen_ms)):
        options = replace(order.options, regional_circuits=mode)
        for delay_ms, known_ms in zip((0.0, 1.0, 10.0, 25.0), expected, strict=True):
            of = order.cluster.changed(reconfiguration_ms=delay_ms)
            one = replace(order, cluster=of, options=options)
            assert time_ms(one) == pytest.approx(known_ms, abs=1e-6), (mode, delay_ms)


def test_without_optical_ports_it_is_the_packet_switch() -> None:
    """8 servers with 4 ports each, skew 1, seed 0: 445.351452 ms."""
    task_graph, of = load_past("moe-n8l4-seed0")
    four = of.changed(ports_per_server=4, switches=4)
    order = request(task_graph, four, regional_packet_ports=4)
    assert time_ms(order) == pytest.approx(445.351452, abs=1e-6)


# --- by hand


def expert(task: str, source: int, destination: int, ms: float, *after: str) -> Task:
    return Task(
        task,
        "communication",
        tuple(after),
        source=source,
        destination=destination,
        size_bytes=ms * GBIT_MS,
        parallelism="ep",
    )


# Two exchanges of four servers, one after the other: first 0-1 and 2-3 are heavy, then 0-2 and 1-3.
PAIRS = (((0, 1), (2, 3)), ((0, 2), (1, 3)))


def two_exchanges(heavy_ms: float, between_ms: float = 0.0) -> TaskGraph:
    tasks: list[Task] = []
    for k, pairs in enumerate(PAIRS):
        after = (f"wait{k - 1}",) if k else ()
        ends = [(a, b) for one in pairs for a, b in (one, one[::-1])]
        tasks += [expert(f"x{k}.{a}-{b}", a, b, heavy_ms, *after) for a, b in ends]
        names = [f"x{k}.{a}-{b}" for a, b in ends]
        tasks.append(compute(f"wait{k}", 0, between_ms, *names))
    return graph(*tasks)


TWO_PORTS = cluster(4, ports_per_server=2, switches=2)


@pytest.mark.parametrize(
    ("mode", "delay_ms", "expected_ms"),
    [
        # Each exchange alone on its circuits: 4 + 3 of computing + 4 + 3.
        ("gate", 0.0, 14.0),
        ("foreseen", 0.0, 14.0),
        # Asked for when the exchange is ready: the packet port carries it meanwhile.
        ("gate", 1.0, 14.0),
        # Asked for when the first one has ended: up 2 ms before the second one needs it.
        ("foreseen", 1.0, 14.0),
        # One exchange has circuits, the other the packet ports, which it shares with nobody.
        ("fixed", 1.0, 14.0),
    ],
)
def test_pairs_with_a_port_of_their_own_lose_nothing(
    mode: str, delay_ms: float, expected_ms: float
) -> None:
    order = request(two_exchanges(4.0, 3.0), TWO_PORTS, delay_ms, regional_circuits=mode)
    assert time_ms(order) == pytest.approx(expected_ms)


def without_packets(mode: str, delay_ms: float, between_ms: float) -> FabricRequest:
    """Return two exchanges on optical ports alone: what has no circuit waits."""
    return request(
        two_exchanges(4.0, between_ms),
        cluster(4, ports_per_server=1, switches=1),
        delay_ms,
        regional_circuits=mode,
        regional_packet_ports=0,
    )


def test_without_packet_ports_experts_wait_for_their_circuits() -> None:
    """Two exchanges of 4 ms with 3 ms between: the delay shows whole at the gate, and beyond 3 ms if foreseen."""
    for delay_ms in (0.0, 1.0, 2.0, 5.0):
        gate, foreseen = (
            time_ms(without_packets(mode, delay_ms, 3.0)) for mode in ("gate", "foreseen")
        )
        assert gate == pytest.approx(14.0 + delay_ms)
        assert foreseen == pytest.approx(14.0 + max(0.0, delay_ms - 3.0))
        run = run_one("regional", without_packets("gate", delay_ms, 3.0))
        assert run.circuits_changed == 4
        assert run.dark_ms == pytest.approx(4 * delay_ms)


def test_circuits_go_to_the_bottleneck_and_not_to_most_bytes() -> None:
    """Server 0 sends 4 to each of 1, 2 and 3, which send nothing else; 4 and 5 exchange 6 both ways."""
    wanted = np.zeros((6, 6))
    wanted[0, 1:4] = 4.0
    wanted[4, 5] = wanted[5, 4] = 6.0
    bottleneck = dealt_circuits(wanted, 1, 1, "bottleneck")
    assert bottleneck[0].sum() == 1  # 12 ms out of server 0 become 8
    by_bytes = dealt_circuits(wanted, 1, 1, "bytes")
    assert by_bytes[4, 5] == by_bytes[5, 4] == 1


@st.composite
def demands(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    n = draw(st.integers(2, 7))
    values = draw(st.lists(st.sampled_from([0.0, 1.0, 2.5, 30.0]), min_size=n * n, max_size=n * n))
    wanted = np.array(values).reshape(n, n)
    np.fill_diagonal(wanted, 0.0)
    return wanted, draw(st.integers(0, 4)), draw(st.integers(1, 4))


def slowest(wanted: np.ndarray, circuits: np.ndarray, packet_ports: int) -> tuple[float, float]:
    """Return the largest time of a pair or a packet port, and the sum of all squares."""
    joined = circuits > 0
    pair = np.where(joined, wanted / np.maximum(circuits, 1), 0.0)
    rest = np.where(joined, 0.0, wanted) / packet_ports
    times = np.concatenate([pair.ravel(), rest.sum(axis=1), rest.sum(axis=0)])
    return float(times.max()), float((times**2).sum())


@examples(60)
@given(demands())
def test_dealt_circuits_are_symmetric_keep_to_the_ports_and_no_further_one_helps(
    drawn: tuple[np.ndarray, int, int],
) -> None:
    wanted, ports, packet_ports = drawn
    for deal in ("bottleneck", "bytes"):
        circuits = dealt_circuits(wanted, ports, packet_ports, deal)
        assert (circuits == circuits.T).all() and not np.diagonal(circuits).any()
        assert circuits.sum(axis=0).max(initial=0) <= ports
    circuits = dealt_circuits(wanted, ports, packet_ports, "bottleneck")
    most, squares = slowest(wanted, circuits, packet_ports)
    assert most <= slowest(wanted, np.zeros_like(circuits), packet_ports)[0] * SLACK
    for a in range(len(wanted)):
        for b in range(a):
            if max(circuits[a].sum(), circuits[b].sum()) < ports and wanted[a, b] + wanted[b, a]:
                more = circuits.copy()
                more[a, b] += 1
                more[b, a] += 1
                then, other = slowest(wanted, more, packet_ports)
                assert then >= most * (1 - 1e-9)
                assert then > most * SLACK or other >= squares * (1 - 1e-9)


# --- properties


def random_experts(seed: int, servers: int = 5) -> TaskGraph:
    """Return a few exchanges with computing and other transfers between them, bytes at random."""
    rng = random.Random(seed)
    tasks: list[Task] = []
    before: list[str] = []
    for k in range(rng.randint(1, 3)):
        names = []
        for a in range(servers):
            tasks.append(compute(f"gate{k}.{a}", a, rng.choice((0.3, 1.0, 2.0)), *before))
            for b in range(servers):
                if a != b and rng.random() < 0.8:
                    names.append(f"f.m0.l{k}.{a}-{b}")
                    tasks.append(expert(names[-1], a, b, rng.random() * 4, f"gate{k}.{a}"))
        other = Task(
            f"other{k}",
            "communication",
            tuple(before),
            source=0,
            destination=1 + k % (servers - 1),
            size_bytes=2 * GBIT_MS,
        )
        tasks.append(other)
        before = names or [other.id]
    return graph(*tasks)


def random_request(seed: int) -> FabricRequest:
    ports = 2 + seed % 3
    of = cluster(
        5,
        ports_per_server=ports,
        switches=ports,
        duplex=("full", "half")[seed // 3 % 2],
        latency_us=10.0 * (seed % 2),
    )
    return request(
        random_experts(seed),
        of,
        (0.0, 0.01, 0.5, 3.0)[seed % 4],
        regional_packet_ports=1 + seed % ports,
        region_servers=(0, 2, 3)[seed // 2 % 3],
        regional_circuits=("gate", "foreseen", "fixed")[seed % 3],
        regional_dealt=("bottleneck", "bytes")[seed // 6 % 2],
    )


@pytest.mark.parametrize("seed", long_after(6, range(300)))
def test_bytes_are_kept_ports_are_not_overrun_and_the_ideal_switch_is_never_behind(
    seed: int,
) -> None:
    order = random_request(seed)
    run = run_one("regional", order)
    assert run.bound_ms <= run.iteration_ms * SLACK
    assert run.execution.end_ms.min() >= 0 and np.isfinite(run.execution.end_ms).all()
    assert (run.traffic.link_busy <= SLACK).all() and (run.traffic.port_busy <= SLACK).all()
    speed = order.cluster.ports_per_server * order.cluster.port_gbps * 1e6 / 8
    moved = run.traffic.port_busy.sum() * speed * run.iteration_ms
    assert moved == pytest.approx(work_bytes(order.graph, order.cluster).sum())
    ideal = run_one("ideal", replace(order, runs={"regional": run}))
    assert ideal.iteration_ms <= run.iteration_ms * SLACK


@pytest.mark.parametrize("seed", long_after(3, range(60)))
def test_what_must_be_equal_is_equal(seed: int) -> None:
    order = random_request(seed)
    whole = replace(order.options, regional_packet_ports=order.cluster.ports_per_server)
    packets = packets_ms(order, order.cluster.ports_per_server)
    assert time_ms(replace(order, options=whole)) == pytest.approx(packets, rel=1e-9)
    # One region for each server: nobody has a circuit, and e ports carry everything.
    alone = replace(order.options, region_servers=1)
    packets = packets_ms(order, order.options.regional_packet_ports)  # type: ignore[arg-type]
    assert time_ms(replace(order, options=alone)) == pytest.approx(packets, rel=1e-9)


@pytest.mark.parametrize("delay_ms", [0.0, 7.0])
def test_one_exchange_without_delay_is_the_same_in_every_mode(delay_ms: float) -> None:
    tasks = [
        expert(f"x.{a}-{b}", a, b, 1.0 + (3 * a + b) % 4)
        for a in range(4)
        for b in range(4)
        if a != b
    ]
    order = request(graph(*tasks), TWO_PORTS, delay_ms)
    times = [
        time_ms(replace(order, options=replace(order.options, regional_circuits=mode)))
        for mode in ("fixed", "foreseen", "gate")
    ]
    assert times == pytest.approx([times[0]] * 3)


def test_iterations_of_a_given_gating_are_alike_once_circuits_come_round() -> None:
    order = request(*load_past("moe-n8l4-seed1"), 1.0, gating_iterations=3)
    one, two, three = (it.execution.makespan_ms for it in regional_iterations(order, never))
    assert one <= two * SLACK
    assert two == pytest.approx(three, rel=1e-9)


# --- gating


def test_the_sample_has_two_exchanges_each_way_a_layer_and_microbatch() -> None:
    task_graph, of = load_sample("moe")
    found = exchanges(lower(task_graph), of)
    names = [one.name for one in found]
    assert names[0] == "fep.out.g0.s0.m0.l0"
    assert names.index("fep.home.g0.s0.m0.l0") < names.index("bep.out.g0.s0.m0.l0")
    assert {one.layer for one in found} == {"g0.s0.l0", "g0.s0.l1"}
    batches = [one.batch for one in found]
    assert {batches.count(one) for one in batches} == {4}


@pytest.mark.parametrize("gating", ["walk", "dirichlet", "zipf"])
def test_a_drawn_gating_moves_the_same_tokens_elsewhere(gating: str) -> None:
    task_graph, of = load_sample("moe")
    options = RegionalOptions(gating=gating, skew=1.0, iterations=3)
    lowered = lower(task_graph)
    drawn = Gating(lowered, of, options, seed=1)
    again = Gating(lowered, of, options, seed=1)
    graphs = [drawn.graph_of(k) for k in range(3)]
    assert len({one.digest for one in graphs}) == 3
    assert [one.digest for one in graphs] == [again.graph_of(k).digest for k in range(3)]
    names = [one.name for one in drawn.exchanges]
    places = [names.index(f"fep.{way}.g0.s0.m1.l0") for way in ("out", "home")]
    for k in range(3):
        out, home = (drawn.bytes_of(place, k) for place in places)
        assert np.allclose(out, home.T)  # what went out comes back
        received = out.sum(axis=0)
        tokens = drawn.bytes_of(places[0], -1).sum(axis=1) * 8 / 7
        assert received.max() <= tokens.sum() * SLACK
    order = request(task_graph, of, 1.0, gating=gating, gating_iterations=3)
    run = run_one("regional", order)
    assert "mean of 3 iterations" in run.message
    runs = compare(task_graph, of, SETTINGS, ("ideal", "regional"), order.options)
    assert runs["ideal"].iteration_ms > 0  # of the graph as it is: other bytes are no candidate


def test_an_even_walk_gives_everybody_the_same() -> None:
    options = RegionalOptions(gating="walk", skew=0.0, iterations=2)
    for shares in drawn_shares(5, options, random.Random(0)):
        assert shares == pytest.approx(np.full(5, 0.2))


def test_popularity_that_persists_wholly_never_changes() -> None:
    options = RegionalOptions(gating="walk", skew=2.0, persistence=1.0, iterations=4)
    first, *others = drawn_shares(6, options, random.Random(3))
    assert all(other == pytest.approx(first) for other in others)
    assert first.max() > 2 * first.min()


@pytest.mark.parametrize("gating", ["walk", "dirichlet", "zipf"])
def test_shares_add_up_to_one(gating: str) -> None:
    options = RegionalOptions(gating=gating, skew=1.5, iterations=20)
    drawn = list(drawn_shares(7, options, random.Random(2)))
    assert len(drawn) == 20
    assert all(one.sum() == pytest.approx(1.0) and (one >= 0).all() for one in drawn)


# --- cost, and what is refused


def test_both_parts_are_paid_for() -> None:
    task_graph, of = load_past("moe-n8l4-seed1")
    prices = PRICE_SETS[SET_BY_SPEED]
    usd = {
        packet_ports: fabric_bill(
            "regional", of, prices, FabricOptions(regional_packet_ports=packet_ports)
        ).cost_usd  # type: ignore[union-attr]
        for packet_ports in (0, 4, 8)
    }
    assert usd[0] == pytest.approx(cluster_bill("topoopt_ocs", of, prices).cost_usd)
    assert usd[8] == pytest.approx(cluster_bill("fat_tree", of, prices).cost_usd)
    assert usd[4] == pytest.approx((usd[0] + usd[8]) / 2)
    assert request(task_graph, of).options.regional.packet_ports_of(of) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"regional_packet_ports": 3}, "regional_packet_ports: must be a whole number from 0 to 2"),
        ({"regional_packet_ports": "third"}, "regional_packet_ports: must be"),
        ({"region_servers": -1}, "region_servers: must be a whole number from 0 to 4"),
        ({"regional_circuits": "soon"}, "regional_circuits: must be one of gate, foreseen, fixed"),
        ({"regional_dealt": "luck"}, "regional_dealt: must be one of bottleneck, bytes"),
        ({"gating": "coin"}, "gating: must be one of given, walk, dirichlet, zipf"),
        ({"gating_skew": float("nan")}, "gating_skew: must be from 0 to 100"),
        ({"gating_persistence": 1.5}, "gating_persistence: must be from 0 to 1"),
        ({"gating_iterations": 0}, "gating_iterations: must be a whole number from 1 to 1,000"),
        ({"regional_packet_ports": 0, "region_servers": 2}, "server 0 sends to server 2"),
    ],
)
def test_bad_options_are_one_line(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        run_one("regional", request(two_exchanges(1.0), TWO_PORTS, **options))
    assert "\n" not in str(error.value)


def test_a_transfer_that_waits_for_ever_is_named() -> None:
    order = without_packets("fixed", 1.0, 0.0)
    with pytest.raises(InputError, match="waits for ever for a circuit to server"):
        run_one("regional", order)


def test_a_run_can_be_stopped() -> None:
    with pytest.raises(Stopped):
        regional_iterations(request(*load_past("moe-n16l4-seed1"), 1.0), lambda: True)
