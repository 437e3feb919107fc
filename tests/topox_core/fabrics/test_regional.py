"""Regional circuits for experts: the reference's times, circuits by hand, what must be equal and what can never be faster."""

import random
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra.numpy import arrays

from tests.conftest import examples, long_after
from tests.past import load_past
from tests.topox_core.small_graphs import GBIT_MS, cluster, compute, graph, transfer
from topox_core.fabrics.comparison.compare import compare, run_one
from topox_core.fabrics.controllers.gating import Gating, drawn_shares
from topox_core.fabrics.controllers.regional import dealt_circuits, regional_iterations
from topox_core.fabrics.fluid.simulator import FluidNetwork, Simulation
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.runs.run import never
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

SETTINGS = Settings.of(engine="list", iteration="first")
SLACK = 1 + 1e-9


def request(
    task_graph: TaskGraph, of: Cluster, delay_ms: float = 0.0, **options: object
) -> FabricRequest:
    of = of.changed(reconfiguration_ms=delay_ms)
    return FabricRequest(lower(task_graph), of, SETTINGS, FabricOptions(**options))  # type: ignore[arg-type]


def time_ms(request: FabricRequest) -> float:
    return run_one("regional", request).iteration_ms


def packets_ms(request: FabricRequest, ports: int) -> float:
    """Return the time on a packet switch alone, with so many ports a server."""
    of = request.cluster.changed(ports_per_server=ports, switches=ports)
    return run_one("fat_tree", replace(request, cluster=of)).iteration_ms


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
    ("name", "packet_ports", "dealt", "fixed_ms", "gate_ms", "foreseen_ms"), long_after(1, TABLE)
)
def test_regional_circuits_take_what_the_reference_says(
    name: str,
    packet_ports: int,
    dealt: str,
    fixed_ms: float,
    gate_ms: tuple[float, ...],
    foreseen_ms: tuple[float, ...],
) -> None:
    options = {"regional_packet_ports": packet_ports, "regional_dealt": dealt}
    for mode, expected in (("fixed", (fixed_ms,)), ("gate", gate_ms), ("foreseen", foreseen_ms)):
        times = [
            time_ms(request(*load_past(name), delay_ms, regional_circuits=mode, **options))
            for delay_ms in (0.0, 1.0, 10.0, 25.0)[: len(expected)]
        ]
        assert times == pytest.approx(expected, abs=1e-6), mode


# --- by hand


def expert(task: str, source: int, destination: int, ms: float, *after: str) -> Task:
    return Task(
        task,
        "communication",
        dependencies=tuple(after),
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
        ends = [*pairs, *(one[::-1] for one in pairs)]
        sent = [expert(f"x{k}.{a}-{b}", a, b, heavy_ms, *after) for a, b in ends]
        tasks += [*sent, compute(f"wait{k}", 0, between_ms, *(task.id for task in sent))]
    return graph(*tasks)


TWO_PORTS = cluster(4, ports_per_server=2, switches=2)


@pytest.mark.parametrize(
    ("mode", "delay_ms", "packet_ports", "expected_ms"),
    [
        # Each exchange alone on its circuits: 4 + 3 of computing + 4 + 3. What is asked for late, or
        # has no circuit, goes over packet ports of its own, as fast.
        ("gate", 0.0, 1, 14.0),
        ("gate", 1.0, 1, 14.0),
        ("foreseen", 1.0, 1, 14.0),
        ("fixed", 1.0, 1, 14.0),
        # Without packet ports the delay shows whole at the gate, and beyond 3 ms if foreseen.
        ("gate", 2.0, 0, 16.0),
        ("foreseen", 2.0, 0, 14.0),
        ("foreseen", 5.0, 0, 16.0),
    ],
)
def test_two_exchanges_of_pairs_by_hand(
    mode: str, delay_ms: float, packet_ports: int, expected_ms: float
) -> None:
    of = cluster(4, ports_per_server=1 + packet_ports, switches=1 + packet_ports)
    options = {"regional_circuits": mode, "regional_packet_ports": packet_ports}
    run = run_one("regional", request(two_exchanges(4.0, 3.0), of, delay_ms, **options))
    assert run.iteration_ms == pytest.approx(expected_ms)
    if mode == "gate":
        assert (run.circuits_changed, run.dark_ms) == (4, pytest.approx(4 * delay_ms))


# Server 0 sends 4 to each of 1, 2 and 3, which send nothing else; 4 and 5 exchange 6 both ways.
FAN = [[0.0, 4.0, 4.0, 4.0, 0.0, 0.0], *[[0.0] * 6] * 3, [0.0] * 5 + [6.0], [0.0] * 4 + [6.0, 0.0]]


@st.composite
def demands(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    n = draw(st.integers(2, 7))
    bytes_of_pair = st.sampled_from([0.0, 1.0, 2.5, 30.0])
    wanted = draw(arrays(float, (n, n), elements=bytes_of_pair, fill=st.nothing()))
    return wanted * (1 - np.eye(n)), draw(st.integers(0, 4)), draw(st.integers(1, 4))


def slowest(wanted: np.ndarray, circuits: np.ndarray, packet_ports: int) -> tuple[float, float]:
    """Return the largest time of a pair or a packet port, and the sum of all squares."""
    joined = circuits > 0
    pair = np.where(joined, wanted / np.maximum(circuits, 1), 0.0)
    rest = np.where(joined, 0.0, wanted) / packet_ports
    times = np.concatenate([pair.ravel(), rest.sum(axis=1), rest.sum(axis=0)])
    return float(times.max()), float((times**2).sum())


@examples(60)
@given(demands())
@example((np.array(FAN), 1, 1))
def test_dealt_circuits_are_symmetric_keep_to_the_ports_and_no_further_one_helps(
    drawn: tuple[np.ndarray, int, int],
) -> None:
    wanted, ports, packet_ports = drawn
    for deal in ("bytes", "bottleneck"):
        circuits = dealt_circuits(wanted, ports, packet_ports, deal)
        assert (circuits == circuits.T).all() and not np.diagonal(circuits).any()
        assert circuits.sum(axis=0).max(initial=0) <= ports
    most, squares = slowest(wanted, circuits, packet_ports)
    assert most <= slowest(wanted, np.zeros_like(circuits), packet_ports)[0] * SLACK
    for a, b in combinations(range(len(wanted)), 2):
        if max(circuits[a].sum(), circuits[b].sum()) < ports and wanted[a, b] + wanted[b, a]:
            more = circuits.copy()
            more[[a, b], [b, a]] += 1
            then, other = slowest(wanted, more, packet_ports)
            assert then >= most * (1 - 1e-9)
            assert then > most * SLACK or other >= squares * (1 - 1e-9)


def test_circuits_go_to_the_bottleneck_and_not_to_most_bytes() -> None:
    wanted = np.array(FAN)
    assert dealt_circuits(wanted, 1, 1, "bottleneck")[0].sum() == 1  # 12 ms out of 0 become 8
    assert dealt_circuits(wanted, 1, 1, "bytes")[4, 5] == 1


# --- properties


def random_experts(seed: int, servers: int = 5) -> TaskGraph:
    """Return a few exchanges with computing and other transfers between them, bytes at random."""
    rng = random.Random(seed)
    tasks, before = [], []
    for k in range(rng.randint(1, 3)):
        gates = [
            compute(f"gate{k}.{a}", a, rng.choice((0.3, 1.0, 2.0)), *before) for a in range(servers)
        ]
        exchange = [
            expert(f"f.m0.l{k}.{a}-{b}", a, b, rng.random() * 4, f"gate{k}.{a}")
            for a, b in permutations(range(servers), 2)
            if rng.random() < 0.8
        ]
        other = transfer(f"other{k}", 0, 1 + k % (servers - 1), 2, *before)
        tasks += [*gates, *exchange, other]
        before = [task.id for task in exchange] or [other.id]
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


@pytest.mark.parametrize("seed", long_after(6, range(72)))
def test_bytes_are_kept_ports_are_not_overrun_and_the_ideal_switch_is_never_behind(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not sent when circuits change is what is sent afterwards; the bound counts what the ports of a server carry."""
    move = Simulation.moved_to

    def moved(run: Simulation, network: FluidNetwork, now_ms: float) -> Simulation:
        after = move(run, network, now_ms)
        assert after.plan.part_bytes.sum() == pytest.approx(run.unsent(now_ms).sum())
        return after

    monkeypatch.setattr(Simulation, "moved_to", moved)
    order = random_request(seed)
    run = run_one("regional", order)
    assert run.bound_ms <= run.iteration_ms * SLACK
    assert run.execution.end_ms.min() >= 0 and np.isfinite(run.execution.end_ms).all()
    ideal = run_one("ideal", replace(order, runs={"regional": run}))
    assert ideal.iteration_ms <= run.iteration_ms * SLACK


@pytest.mark.parametrize("seed", long_after(3, range(24)))
def test_what_must_be_equal_is_equal(seed: int) -> None:
    order = random_request(seed)
    whole = replace(order.options, regional_packet_ports=order.cluster.ports_per_server)
    # One region for each server: nobody has a circuit, and e ports carry everything.
    alone = replace(order.options, region_servers=1)
    for options in (whole, alone):
        packets = packets_ms(order, options.regional_packet_ports)  # type: ignore[arg-type]
        assert time_ms(replace(order, options=options)) == pytest.approx(packets, rel=1e-9)


@pytest.mark.parametrize("delay_ms", [0.0, 7.0])
def test_one_exchange_is_the_same_in_every_mode(delay_ms: float) -> None:
    tasks = [
        expert(f"x.{a}-{b}", a, b, 1.0 + (3 * a + b) % 4) for a, b in permutations(range(4), 2)
    ]
    times = [
        time_ms(request(graph(*tasks), TWO_PORTS, delay_ms, regional_circuits=mode))
        for mode in ("fixed", "foreseen", "gate")
    ]
    assert times == pytest.approx([times[0]] * 3)


def test_from_the_second_iteration_on_the_circuits_of_the_first_exchange_come_back() -> None:
    """Two changes of 2 ms instead of one, for 4 + 3 + 4 + 3 ms of work on optical ports alone."""
    options = {"regional_circuits": "gate", "regional_packet_ports": 0, "gating_iterations": 3}
    order = request(two_exchanges(4.0, 3.0), cluster(4), 2.0, **options)
    times = [one.execution.makespan_ms for one in regional_iterations(order, never)]
    assert times == pytest.approx([16, 18, 18])


# --- gating


@pytest.mark.parametrize("gating", long_after(1, ["walk", "dirichlet", "zipf"]))
def test_a_drawn_gating_moves_the_same_tokens_elsewhere(gating: str) -> None:
    task_graph, of = load_sample("moe")
    options = FabricOptions(gating=gating, gating_skew=1.0, gating_iterations=3)
    drawn, again = (Gating(lower(task_graph), of, options, seed=1) for _ in range(2))
    digests, same = ([one.graph_of(k).digest for k in range(3)] for one in (drawn, again))
    assert (len(set(digests)), digests) == (3, same)
    names = [one.name for one in drawn.exchanges]
    there, back = (names.index(f"fep.{way}.g0.s0.m1.l0") for way in ("out", "home"))
    tokens = drawn.bytes_of(there, -1).sum(axis=1) * 8 / 7
    for k in range(3):
        out = drawn.bytes_of(there, k)
        assert np.allclose(out, drawn.bytes_of(back, k).T)  # what went out comes back
        assert out.sum(axis=0).max() <= tokens.sum() * SLACK


def test_drawn_iterations_are_averaged_and_no_candidate_for_the_ideal_switch() -> None:
    options = FabricOptions(gating="walk", gating_iterations=2)
    runs = compare(*load_sample("moe"), SETTINGS, ("ideal", "regional"), options)
    assert "mean of 2 iterations" in runs["regional"].message
    assert runs["ideal"].iteration_ms > 0  # of the graph as it is: other bytes are no candidate


@pytest.mark.parametrize(
    ("gating", "skew", "persistence"),
    [
        *(("walk", 0.0, 0.5), ("walk", 2.0, 0.5), ("walk", 2.0, 1.0)),
        *(("dirichlet", 1.5, 0.5), ("zipf", 1.5, 0.5)),
    ],
)
def test_shares_of_tokens_add_up_and_change_as_skew_and_persistence_say(
    gating: str, skew: float, persistence: float
) -> None:
    options = FabricOptions(
        gating=gating, gating_skew=skew, gating_persistence=persistence, gating_iterations=4
    )
    shares = list(drawn_shares(6, options, random.Random(3)))
    assert len(shares) == 4
    assert all(one.sum() == pytest.approx(1.0) and (one >= 0).all() for one in shares)
    if gating == "walk":
        assert (shares[0] == pytest.approx(np.full(6, 1 / 6))) == (skew == 0)
        assert (shares[0] == pytest.approx(shares[3])) == (skew == 0 or persistence == 1)
