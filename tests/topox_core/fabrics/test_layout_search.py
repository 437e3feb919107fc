"""Fixed circuits from the task graph: by hand, against every layout, against the exact program, and never behind their starts."""

import math
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from tests.conftest import examples, long_after, suite_instance
from tests.past import load_past
from tests.topox_core.fabrics.asked import LIST, request
from tests.topox_core.fabrics.exact_layout import exact_direct_layout
from tests.topox_core.small_graphs import (
    cluster,
    collective,
    compute,
    graph,
    random_graph,
    transfer,
)
from topox_core.api import load_cluster, load_graph
from topox_core.check.checker import check
from topox_core.cli.main import main
from topox_core.fabrics.comparison.compare import compare, run_one
from topox_core.fabrics.fixed.layout_search import every_layout, layout_by_graph, layout_by_matrix
from topox_core.fabrics.fixed.layout_times import LayoutTimes
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.registry import BY_RULE
from topox_core.fabrics.run import FabricRequest
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import never
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.topology.greedy import chordal_rings, greedy_circuits, minimax_circuits
from topox_core.topology.routing import RoutedNetwork

SLACK = 1 + 1e-9


def loaded(name: str) -> tuple[TaskGraph, Cluster]:
    """A sample, or an instance of the suite, which may not be on this machine."""
    if not name.startswith(("small-", "medium-")):
        return load_past(name)
    graph, cluster = suite_instance(name)
    return load_graph(graph), load_cluster(cluster)


# --- by hand

# Two transfers leave server 0: 6 ms to a server that then computes, 7 ms to one that does not.
TWO = (transfer("x", 0, 1, 6.0), compute("after", 1, 10.0, "x"), transfer("y", 0, 2, 7.0))
THREE = (*TWO, transfer("z", 3, 1, 2.0), compute("last", 2, 1.0, "z"))


@pytest.mark.parametrize(
    ("tasks", "by_matrix_ms", "by_graph_ms", "circuits"),
    long_after(
        1,
        [
            (TWO, 16.0, 13.0, [[0, 2, 1], [0] * 3, [0] * 3]),
            (THREE, 13.0, 12.0, [[0, 3, 1, 0], [0] * 4, [0] * 4, [0, 1, 0, 0]]),
        ],
    ),
)
def test_the_graph_gives_circuits_to_what_computing_waits_for(
    tasks: tuple, by_matrix_ms: float, by_graph_ms: float, circuits: list[list[int]]
) -> None:
    servers = len(circuits)
    order = request(graph(*tasks), cluster(servers, ports_per_server=servers, switches=servers))
    times = LayoutTimes(order.graph, order.cluster, True)
    by_matrix = greedy_circuits(times.bytes_between, servers)
    assert times.time_ms(by_matrix) == pytest.approx(by_matrix_ms)
    answer = layout_by_graph(order, never)
    assert answer.best.time_ms == pytest.approx(by_graph_ms)
    assert answer.best.layout.circuits.tolist() == circuits
    exact = exact_direct_layout(order.graph, order.cluster, by_matrix_ms)
    assert exact.proved and exact.makespan_ms == pytest.approx(by_graph_ms, rel=1e-5)
    laid = np.array(circuits)
    assert (exact.circuits == laid)[laid > 0].all()


def test_of_the_nine_permutations_of_race_the_best_is_found_and_the_command_tells_it(
    capsys: pytest.CaptureFixture[str],
    ask: Any,
) -> None:
    order = request(*load_past("race"))
    times = LayoutTimes(order.graph, order.cluster, True)
    every = (np.eye(4, dtype=np.int32)[list(ends)] for ends in permutations(range(4)))
    found = sorted(times.time_ms(one) for one in every if not one.diagonal().any())
    connected = [86.192794, 86.825501, 86.825501, 87.548183, 91.110107, 91.110107]
    assert found == pytest.approx([*connected, *[math.inf] * 3], abs=1e-6)
    race = str(SAMPLE_FOLDER / "race.taskgraph.json")
    asked = ["topology", "--servers", "4", "--degree", "1", "--graph", race, "--port-gbps", "40"]
    record = ask(*asked, "--layout-by", "graph")
    assert (record["iteration_ms"], record["every_layout"]) == (pytest.approx(found[0]), True)
    assert record["starts_ms"]["greedy by bytes"] == pytest.approx(found[4], abs=1e-6)
    assert main([*asked[:5], "--layout-by", "matrix"]) == 2
    assert "--layout-by: matrix needs a task graph" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "servers", "ports", "topoopt_ms", "by_graph_ms"),
    [
        # The root sends 100 MB on four ports, each quarter down a chain of its own: 100 / 4.
        ("broadcast", 8, 4, 75.0, 25.0),
        # Everybody sends 25 MB to each of three others: two next to it, one two circuits away, so that
        # 4 x 25 MB cross circuits for each server, which has two. TopoOpt lays one ring twice over.
        ("all_to_all", 4, 2, 100.0, 50.0),
        # 12.5 MB to each of seven: two are one circuit away (strides 1 and 3), three two (2, 4 and 6),
        # two three (5 and 7): 2 + 6 + 6 = 14 times 12.5 MB on two circuits. Strides 1 and 2 take 16 times.
        ("all_to_all", 8, 2, 200.0, 87.5),
    ],
)
def test_fixed_circuits_of_one_collective_are_the_best_that_are_known(
    kind: str, servers: int, ports: int, topoopt_ms: float, by_graph_ms: float
) -> None:
    """100 MB on ports of 1 MB a ms; TopoOpt's own circuits stay what they are under their name."""
    job = graph(collective(kind, servers, 1e8))
    of = cluster(servers, ports_per_server=ports, switches=ports, port_gbps=8.0)
    settings = Settings.of(engine="list", free=FREE)
    runs = compare(job, of, settings, ("static", "static_graph"))
    found = [run.iteration_ms for run in runs.values()]
    assert found == pytest.approx([topoopt_ms, by_graph_ms])


def test_on_fixed_circuits_transfers_may_take_turns() -> None:
    """Two transfers of 2 ms from 0 to 1, and 2 ms of computing after the first.

    Shared fairly, both are there at 4 ms, and computing ends at 6. In turn, the second crosses while
    the first is computed with: 4 ms, which on demand takes too, without a change.
    """
    job = graph(transfer("a", 0, 1, 2.0), transfer("b", 0, 1, 2.0), compute("c", 1, 2.0, "a"))
    of = cluster(2, reconfiguration_ms=50.0)
    runs = compare(job, of, LIST, ("static", "static_graph", "reactive"))
    found = {name: run.iteration_ms for name, run in runs.items()}
    assert found == pytest.approx({"static": 6, "static_graph": 4, "reactive": 4})
    assert runs["static_graph"].execution.layout.circuits.tolist() == [[0, 1], [0, 0]]
    kept = schedule(job, of, replace(LIST, switching="fixed"))
    assert (kept.makespan_ms, kept.switching) == (pytest.approx(4), "fixed")
    report = check(job, of, to_record(kept))
    assert report.ok, report.lines()


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("seed", long_after(3, [*range(12)]))
def test_circuits_that_nobody_changes_are_no_faster_than_fixed_ones(seed: int, duplex: str) -> None:
    of = cluster(4, ports_per_server=3, switches=3, duplex=duplex, latency_us=20.0 * (seed % 2))
    of = of.changed(reconfiguration_ms=(0.1, 5.0)[seed // 2 % 2], port_gbps=(100.0, 30.0)[seed % 2])
    job = random_graph(seed, tasks=12)
    settings = Settings.of(engine="list", free=FREE)
    runs = compare(job, of, settings, ("static", "static_graph", *BY_RULE, "scheduled"))
    fixed = runs["static_graph"]
    both_ways = duplex == "half"  # a fixed circuit and its way back are one port there
    for name in (*BY_RULE, "scheduled"):
        if not runs[name].circuits_changed and not both_ways:
            assert fixed.iteration_ms <= runs[name].iteration_ms * SLACK, name
    kept = schedule(job, of, replace(settings, switching="fixed"))
    assert kept.makespan_ms <= fixed.iteration_ms * SLACK
    report = check(job, of, to_record(kept))
    assert report.ok, report.lines()


def test_rings_of_several_strides_take_bytes_over_few_circuits() -> None:
    """Of eight in a circle the stride 3 brings nobody further than three circuits; servers that do not talk have none."""
    everybody = np.ones((9, 9)) - np.eye(9)
    everybody[3], everybody[:, 3] = 0, 0
    circuits = chordal_rings(everybody, 2)
    circle = [0, 1, 2, 4, 5, 6, 7, 8]
    expected = {(circle[i], circle[(i + one) % 8]) for i in range(8) for one in (1, 3)}
    assert set(zip(*(ends.tolist() for ends in np.nonzero(circuits)), strict=True)) == expected
    assert circuits.max() == 1
    # Two servers have one stride; nobody, none.
    assert chordal_rings(np.array([[0.0, 1.0], [0.0, 0.0]]), 2).tolist() == [[0, 2], [2, 0]]
    assert not chordal_rings(np.zeros((3, 3)), 2).any()


def test_circuits_that_save_no_time_are_given_back() -> None:
    """3 ms of computing hide the transfer from 2 to 1 on one circuit; the other three can go."""
    tasks = (transfer("x", 0, 1, 4.0), compute("c", 0, 9.0), transfer("y", 2, 1, 2.0))
    of = cluster(3, ports_per_server=4, switches=4)
    answer = layout_by_graph(request(graph(*tasks), of, layout_steps=200), never)
    found = answer.best.time_ms, answer.circuits, answer.given_back > 0
    assert found == (pytest.approx(9.0), 2, True)


# --- routes and times


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(2, 8))
    circuits = draw(arrays(np.int32, (n, n), elements=st.integers(0, 2), fill=st.nothing()))
    return circuits * (1 - np.eye(n, dtype=np.int32))


@examples(60)
@given(matrices())
def test_compiled_routes_are_those_of_the_routed_network(circuits: np.ndarray) -> None:
    n = len(circuits)
    network = RoutedNetwork(circuits)
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b and network.connected(a, b)]
    tasks = graph(*(transfer(f"t{a}-{b}", a, b, 1.0) for a, b in pairs), compute("c", 0, 1.0))
    times = LayoutTimes(lower(tasks), cluster(n, ports_per_server=2 * n), True)
    routes = times.layout(circuits, "any").routes
    assert routes == {pair: network.shortest_paths(*pair, 2) for pair in pairs}


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("seed", long_after(5, range(8)))
def test_a_layout_takes_the_time_of_the_static_fabric(seed: int, duplex: str) -> None:
    of = cluster(4, ports_per_server=2, switches=2, duplex=duplex, latency_us=20.0 * (seed % 2))
    order = request(random_graph(seed, tasks=30), of)
    times = LayoutTimes(order.graph, of, True)
    circuits = greedy_circuits(np.random.default_rng(seed).random((4, 4)), 2)
    time_ms = times.time_ms(circuits)
    if time_ms == math.inf:
        with pytest.raises(ValueError, match="not connected"):
            times.layout(circuits, "none")
        return
    options = FabricOptions(layout=times.layout(circuits, "drawn"))
    run = run_one("static", replace(order, options=options))
    assert run.iteration_ms == pytest.approx(time_ms, rel=1e-12)
    again = LayoutTimes(order.graph, of, True)
    for share in (0.2, 0.95, 0.95, 0.999999):  # given up as soon as it is late, and remembered so
        assert again.time_ms(circuits, share * time_ms) == math.inf
    assert again.time_ms(circuits, time_ms * SLACK) == pytest.approx(time_ms, rel=1e-12)
    assert (times.busy_ms(circuits) <= time_ms * SLACK).all()


@pytest.mark.parametrize(("servers", "ports"), [(2, 3), (3, 1), (3, 2)])
def test_every_layout_is_every_layout(servers: int, ports: int) -> None:
    found = {one.tobytes() for one in every_layout(servers, list(range(servers)), ports)}
    every = (
        np.array(counts, np.int32).reshape(servers, servers)
        for counts in product(range(ports + 1), repeat=servers**2)
    )
    assert found == {
        one.tobytes()
        for one in every
        if not one.diagonal().any() and max(*one.sum(axis=0), *one.sum(axis=1)) <= ports
    }


@examples(60)
@given(matrices(), st.integers(1, 5), st.integers(0, 99))
def test_least_load_is_no_larger_than_greedy_and_keeps_to_the_ports(
    drawn: np.ndarray, ports: int, seed: int
) -> None:
    wanted = drawn * np.random.default_rng(seed).random(drawn.shape)
    circuits, greedy = minimax_circuits(wanted, ports), greedy_circuits(wanted, ports)
    assert circuits.sum(axis=0).max() <= ports and circuits.sum(axis=1).max() <= ports
    talking = wanted > 0
    if circuits.any() and (greedy[talking] > 0).all():
        load, other = ((wanted[talking] / one[talking]).max() for one in (circuits, greedy))
        assert load <= other * SLACK


# --- never behind


def assert_never_behind(order: FabricRequest) -> None:
    answer = layout_by_graph(order, never)
    assert answer.best.time_ms <= min(time_ms for _, time_ms in answer.starts) * SLACK
    by_graph = run_one("static_graph", order)
    assert by_graph.iteration_ms == pytest.approx(answer.best.time_ms, rel=1e-12)
    assert by_graph.bound_ms <= by_graph.iteration_ms * SLACK
    for laid_by in ("topoopt", "matrix", "graph"):
        options = replace(order.options, layout_by=laid_by)
        run = run_one("static", replace(order, options=options))
        assert by_graph.iteration_ms <= run.iteration_ms * SLACK, laid_by


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("seed", long_after(3, range(12)))
def test_the_graph_is_never_behind_on_random_graphs(seed: int, duplex: str) -> None:
    of = cluster(5, ports_per_server=1 + seed % 3, switches=1 + seed % 3, duplex=duplex)
    assert_never_behind(request(random_graph(seed, tasks=30, servers=5), of, layout_steps=60))


@pytest.mark.parametrize("name", long_after(2, ["patience", "race", "moe", "fsdp", "dlrm-16"]))
def test_the_graph_is_never_behind_on_samples(name: str) -> None:
    assert_never_behind(request(*load_past(name), layout_steps=60))


def test_a_plan_keeps_the_circuits_that_were_searched_whatever_runs_beside_it() -> None:
    task_graph, of = load_past("race", reconfiguration_ms=100.0)
    for names in (("static", "static_graph", "scheduled"), ("scheduled",)):
        plan = compare(task_graph, of, LIST, names)["scheduled"]
        assert plan.iteration_ms == pytest.approx(86.192794, abs=1e-6)
        assert "circuits searched for the task graph" in plan.message


# --- what the reference reports


@pytest.mark.parametrize(
    ("name", "published_ms", "released_ms", "matrix_ms"),
    long_after(
        2,
        [
            ("moe", 368.572939, 336.480320, 263.049321),
            ("llama3-8b", 647.119006, 1038.390004, 647.119006),
            ("dlrm-16", 40.712773, 44.907077, 40.712773),
            ("small-1f1b-p4d2m6", 191.894593, 187.484184, 176.559435),
            ("small-random-200", 180.736269, 185.759927, 200.983818),
            ("small-dlrm-n8l3", 60.093175, 76.357556, 55.050130),
            ("small-moe-n4l4", 178.334470, 191.789429, 228.511738),
            ("medium-flexnet-dlrm16", 111.779262, 298.936152, 73.881964),
            ("medium-1f1b-p8d2m16", 591.992427, 456.087100, 451.882683),
            ("medium-moe-n8l4x2", 340.280606, 386.878035, 320.940435),
            ("medium-dlrm-n16l8", 196.142425, 213.281733, 126.279837),
            ("medium-fsdp-n16l12", 477.309138, 476.400388, 188.084207),
        ],
    ),
)
def test_the_layouts_to_begin_with_take_what_the_reference_says(
    name: str, published_ms: float, released_ms: float, matrix_ms: float
) -> None:
    order = request(*loaded(name))
    for variant, expected_ms in (("published", published_ms), ("released", released_ms)):
        options = FabricOptions(topology_variant=variant)
        run = run_one("static", replace(order, options=options))
        assert run.iteration_ms == pytest.approx(expected_ms, abs=1e-6)
    assert layout_by_matrix(order).best.time_ms == pytest.approx(matrix_ms, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "most_ms"),
    [
        # The reference's own searches.
        ("llama3-8b", 647.119006),
        ("moe", 263.049321),
        ("dlrm-16", 40.712773),
        ("fsdp", 244.741196),
        ("small-moe-n4l4", 176.356756),
        ("medium-flexnet-dlrm16", 73.881964),
        ("medium-fsdp-n16l12", 188.084207),
        ("small-random-200", 158.317574),
        ("medium-1f1b-p8d2m16", 444.874539),
        # Where they were better than a first answer, what it must at least gain.
        ("small-1f1b-p4d2m6", 170.128211),
        ("small-dlrm-n8l3", 46.513),
        ("medium-moe-n8l4x2", 311.719066),
    ],
)
def test_a_first_answer_gains_at_least_what_was_measured(name: str, most_ms: float) -> None:
    order = request(*loaded(name))
    assert layout_by_graph(order, never).best.time_ms <= most_ms * (1 + 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_no_direct_layout_beats_the_exact_program(seed: int) -> None:
    """Three servers, two ports: every layout with fair shares against free rates, and the bound below both."""
    of = cluster(3, ports_per_server=2, switches=2)
    lowered = lower(random_graph(seed, tasks=4, servers=3, collectives=False))
    times = LayoutTimes(lowered, of, True)
    if not times.bytes_between.any():
        return
    talking = times.pairs.source, times.pairs.destination
    direct = (one for one in every_layout(3, [0, 1, 2], 2) if (one[talking] > 0).all())
    fair_ms = min(map(times.time_ms, direct))
    exact = exact_direct_layout(lowered, of, fair_ms * SLACK, time_limit_s=30.0)
    assert exact.bound_ms <= fair_ms * (1 + 1e-4)
    if exact.proved:  # on a busy machine the time may not suffice
        assert exact.makespan_ms <= fair_ms * (1 + 1e-5)
