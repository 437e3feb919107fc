"""A round as others see it: on the common clock, as a file, in a sentence, and jobs made from task graphs."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.conftest import some
from tests.refusal import refusal
from tests.topox_core.check.broken_schedules import broken
from tests.topox_core.schedule.circuit_rules import checked
from tests.topox_core.small_graphs import compute
from tests.topox_core.tdm.test_check import FORMS, made
from topox_core.check.round import demands
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import COMPUTE, TRANSFER
from topox_core.tdm.mixes.from_graph import (
    computing_ms,
    counted_as,
    derived,
    jobs_from_graphs,
    pods_of,
)
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.bottleneck import bottlenecks, in_words
from topox_core.tdm.model.jobs import (
    PUSH,
    Job,
    Jobs,
    PodNetwork,
    Reading,
    Round,
    RoundBound,
    RoundForm,
    TdmSettings,
)
from topox_core.tdm.model.round_file import to_record
from topox_core.tdm.model.round_words import in_turns
from topox_core.tdm.model.rounds import (
    alone_s,
    an_iteration_of,
    bars,
    iterations_per_s,
    round_of,
)
from topox_core.tdm.model.traffic import StageTable
from topox_core.workloads.catalogue import generate

# -- on the common clock ---------------------------------------------------------------------------------


@cache
def executions(form: str) -> list[tuple[Round, int, Execution]]:
    answers = [made(seed, form) for seed in some(range(4), quick=2)]
    return [(answer, g, execution_of(answer, g)) for answer in answers for g in range(2)]


@pytest.mark.parametrize("form", FORMS)
def test_a_round_carries_every_byte_of_its_demand_twice(form: str) -> None:
    """Push and pull: what eq. 4 asks of each pair of pods, each way once."""
    for answer, g, execution in executions(form):
        inter = demands(answer)[0][g].sum(0)
        graph, circuits = execution.graph, execution.circuits
        listed, carried = np.zeros_like(inter), np.zeros_like(inter)
        sends = graph.kind == TRANSFER
        pairs = graph.source[sends], graph.destination[sends]
        np.add.at(listed, pairs, graph.size_bytes[sends] * 8 / 1e9)
        assert np.allclose(listed, inter + inter.T)
        seconds = (circuits.end_ms - circuits.start_ms) / 1000
        np.add.at(
            carried,
            (circuits.source, circuits.destination),
            seconds * answer.jobs.network.port_gbps,
        )
        assert np.allclose(carried, inter + inter.T)


@pytest.mark.parametrize("form", FORMS)
def test_a_round_keeps_every_rule_of_ports_devices_delays_and_waits(form: str) -> None:
    for answer, g, execution in executions(form):
        # A transfer may go over several links at once.
        assert broken(checked(execution)) <= {"duration", "continuity"}
        assert execution.makespan_ms == pytest.approx(answer.cycle_of(g).round_s * 1000)
        assert execution.end_ms.max() <= execution.makespan_ms + 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_every_job_computes_what_an_iteration_needs(form: str) -> None:
    for answer, g, execution in executions(form):
        graph = execution.graph
        for n in answer.jobs.of_group(g):
            job = answer.jobs.jobs[n]
            trains = [
                execution.end_ms[i] - execution.start_ms[i]
                for i in np.flatnonzero(graph.kind == COMPUTE)
                if graph.ids[i].startswith(f"{job.id}/train") and graph.server[i] == job.pods[0]
            ]
            times = 1 if job.collective == "parameter_server" else 2
            assert sum(trains) == pytest.approx(1000 * job.train_s * times)


def test_a_turned_link_is_dark_first() -> None:
    jobs = Jobs(
        "one",
        PodNetwork(1, 2, 2, 10.0, 1e6, 250.0),
        (Job("ps", "parameter_server", 0, (1, 1), 10.0, 0.0, server_pod=0),),
    )
    execution = execution_of(round_of(StageTable(jobs, Reading()), [0]), 0)
    circuits = execution.circuits
    assert circuits.changed.all()
    assert (circuits.start_ms - circuits.setup_ms).tolist() == [250.0] * 4
    assert (
        sorted(zip(circuits.source.tolist(), circuits.destination.tolist(), strict=True))
        == [(0, 1)] * 2 + [(1, 0)] * 2
    )
    assert execution.makespan_ms == pytest.approx(2 * (250.0 + 500.0))


# -- bottlenecks and the file ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_stage_lasts_as_long_as_its_bottleneck(form: str) -> None:
    answer = made(0, form)
    network = answer.jobs.network
    for cycle in answer.cycles:
        for limit, phase in zip(bottlenecks(answer, cycle), cycle.phases, strict=True):
            speed = {"link": limit.links * network.port_gbps, "tor": network.tor_gbps}
            carries = limit.cause in speed
            took = limit.gbit / speed[limit.cause] if carries else phase.computing_s
            assert took + phase.dark_s == pytest.approx(phase.end_s - phase.start_s)
            assert limit.full_pods or answer.static or limit.cause != "link"
            assert (limit.job is None) == (limit.cause == "nothing")


def test_stages_that_wait_for_the_same_have_one_sentence_whoever_sends_and_whichever_way() -> None:
    """Both jobs exchange 10 Gbit between each two of three pods, with ports for one link of 10G each."""
    exchange = [Job(id, "all_to_all", 0, (1, 1, 1), 10.0, 0.5) for id in "ab"]
    mix = Jobs("mix", PodNetwork(1, 3, 4, 10.0, 1e6, 0.0), tuple(exchange))
    (said,) = in_words(round_of(StageTable(mix, Reading()), [0, 1]))
    assert said.replace("\u00a0", " ") == (
        "All 4 stages last 1 s each: all 6 pairs of pods that send take as long, such as one with 10 Gbit over 1 link."
    )
    uneven = replace(mix, jobs=(exchange[0], replace(exchange[1], train_s=3.0)))
    said = [
        one.replace("\u00a0", " ")
        for one in in_words(round_of(StageTable(uneven, Reading()), [0, 1]))
    ]
    assert said[0] == "Stages 1 and 3 last 3 s each: training of job b."
    assert said[1].startswith("Stages 2 and 4 last 1 s each: all 6 pairs")
    one_way = replace(mix, jobs=(replace(exchange[0], units_per_pod=(3, 1, 1)), exchange[1]))
    said = in_words(round_of(StageTable(one_way, Reading()), [0, 1]))
    assert "4 of the 6 pairs" in said[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("inside", [False, True])
def test_where_all_train_twice_the_second_half_of_a_round_repeats_the_first(
    form: str, inside: bool
) -> None:
    jobs = (
        Job("a", "all_to_all", 0, (1, 1, 1), 10.0, 0.5),
        Job("r", "ring_all_reduce", 0, (2, 1, 1), 30.0, 3.0),
    )
    mix = Jobs("mix", PodNetwork(1, 3, 6, 10.0, 1e6, 20.0), jobs)
    group = [0, min(1, FORMS[form].groups - 1)]
    whole = round_of(StageTable(mix, Reading(delay_inside=inside)), group, FORMS[form])
    whole = replace(whole, bound=RoundBound(1.0, "job a: push, compute, pull and compute"))
    half = an_iteration_of(whole)
    assert half.round_s == pytest.approx(whole.round_s / 2) and half.bound_s == 0.5
    assert half.bound.by == "job a: send and compute"
    (cycle,) = half.cycles
    assert [one.way for one in cycle.phases] == [PUSH] * (len(whole.cycles[0].phases) // 2)
    for first, second in zip(
        cycle.phases, whole.cycles[0].phases[len(cycle.phases) :], strict=True
    ):
        again = replace(second, way=PUSH, start_s=first.start_s, end_s=first.end_s)
        assert again == first
        assert second.end_s - second.start_s == pytest.approx(first.end_s - first.start_s)
    assert {one.kind for one in bars(half, cycle)} == {"send", "train"}
    server = replace(mix, jobs=(*jobs, Job("s", "parameter_server", 0, (1, 1, 0), 1.0, 1.0, 2)))
    unlike = round_of(StageTable(server, Reading()), [*group, 0], FORMS[form])
    assert an_iteration_of(unlike) is unlike, "a parameter server trains once"


def test_a_stage_that_no_chart_shows_says_so() -> None:
    short = [
        Job(id, "all_to_all", 0, (1, 1, 1), 10.0, train_s)
        for id, train_s in (("a", 1.001), ("b", 1.0))
    ]
    mix = Jobs("mix", PodNetwork(1, 3, 4, 10.0, 1e6, 0.0), tuple(short))
    one = an_iteration_of(round_of(StageTable(mix, Reading()), [0, 1], RoundForm(all_train=True)))
    assert in_words(one)[-1].startswith(
        "Stage 3 lasts 1\u00a0ms, too short to be seen: training of job a"
    )


@pytest.mark.parametrize(
    ("other", "delay_ms"), [("all_to_all", 20.0), ("all_to_all", 0.0), ("ring_all_reduce", 20.0)]
)
def test_a_delay_that_adds_nothing_is_said_where_all_stages_have_the_same_circuits(other, delay_ms):
    jobs = (
        Job("a", "all_to_all", 0, (1, 1, 1), 10.0, 1.0),
        Job("b", other, 0, (1, 1, 1), 10.0, 1.0),
    )
    mix = Jobs("mix", PodNetwork(1, 3, 4, 10.0, 1e6, delay_ms), jobs)
    turns = round_of(StageTable(mix, Reading()), [0, 1], RoundForm(all_train=True))
    dark = any(phase.dark_s for one in turns.cycles for phase in one.phases)
    assert dark == (other == "ring_all_reduce")
    adds_nothing = in_turns(turns, None).endswith("so the reconfiguration delay adds nothing.")
    assert adds_nothing == (delay_ms > 0 and not dark)


def test_the_file_says_what_the_round_is() -> None:
    answer = replace(made(0, "the drafts' four phases"), bound=RoundBound(float("inf")))
    record = to_record(answer, non_tdm_s=200.0, settings=TdmSettings())
    assert record["round_s"] == answer.round_s
    assert record["reduction"] == pytest.approx(1 - answer.round_s / 200)
    assert record["bound_s"] is None
    assert sum(row["links"] for row in record["links"]) == answer.links.sum()
    told = [row["iterations_per_s"] for row in record["jobs"]]
    assert told == pytest.approx(iterations_per_s(answer).tolist())


# -- jobs from task graphs -------------------------------------------------------------------------------


def graph(*tasks: Task) -> TaskGraph:
    return TaskGraph("g", tasks)


def send(name: str, source: int, destination: int, gigabytes: float, *after: str) -> Task:
    ends = {"source": source, "destination": destination}
    return Task(name, "communication", dependencies=after, size_bytes=gigabytes * 1e9, **ends)


STAR = [
    *(send(f"push{s}", s, 0, 0.5) for s in (1, 2, 3)),
    *(send(f"pull{s}", 0, s, 0.5, f"push{s}") for s in (1, 2, 3)),
]
EXCHANGE = Task("x", "all_to_all", dependencies=(), size_bytes=4e9, members=(0, 1, 2, 3))


@pytest.mark.parametrize(
    ("tasks", "collective", "units", "volume_gbit"),
    [
        (STAR, "parameter_server", 3, 4.0),
        ([EXCHANGE], "all_to_all", 4, 8.0),  # of 32 Gbit, a quarter to each
        ([send(f"s{s}", s, (s + 1) % 4, 1.0) for s in range(4)], "all_to_all", 4, 8 / 3),
    ],
)
def test_a_star_becomes_a_parameter_server_and_exchanges_and_scattered_sends_become_pairs(
    tasks: list[Task], collective: str, units: int, volume_gbit: float
) -> None:
    shape = derived(graph(*tasks))
    assert (shape.collective, shape.units) == (collective, units)
    assert shape.volume_gbit == pytest.approx(volume_gbit)


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        (STAR, "exchange of 3 servers with a parameter server."),
        ([EXCHANGE], "all-to-all of 4 servers."),
        (
            # 12 GB go between all, 6 round the ring.
            [
                EXCHANGE,
                Task("r", "all_reduce", dependencies=(), size_bytes=1e9, members=(0, 1, 2, 3)),
            ],
            "all-to-all of 4 servers, though 33.3 % of its bytes are all-reduces.",
        ),
        (
            [
                Task(k, k, dependencies=(), size_bytes=1e9, members=(0, 1))
                for k in ("all_gather", "reduce_scatter")
            ],
            "ring all-reduce of 2 servers (all-gathers and reduce-scatters are its halves).",
        ),
    ],
)
def test_what_a_graph_sends_as_something_else_is_said(tasks: list[Task], says: str) -> None:
    assert counted_as(graph(*tasks)).replace("\u00a0", " ") == f"What it sends counts as one {says}"


@pytest.mark.parametrize(
    ("name", "collective"), [("dlrm", "ring_all_reduce"), ("moe", "all_to_all")]
)
def test_workloads_keep_their_bytes(name: str, collective: str) -> None:
    """The volume of the job times its pattern is what the lowered graph sends."""
    task_graph, _ = generate(name)
    shape = derived(task_graph)
    lowered = lower(task_graph, Lowering())
    shares = {
        "ring_all_reduce": 2 * (shape.units - 1),
        "all_to_all": shape.units * (shape.units - 1),
    }
    moved_gbit = shares[collective] * shape.volume_gbit
    assert moved_gbit == pytest.approx(np.nansum(lowered.size_bytes) * 8 / 1e9)
    assert shape.collective == collective
    assert shape.train_s > 0


def test_computing_shares_devices_and_ignores_the_network() -> None:
    a, b = compute("a", 0, 3.0), compute("b", 0, 4.0)
    late = compute("c", 1, 5.0, "send")
    # a and b on one device; c after a at once.
    assert computing_ms(graph(a, b, send("send", 0, 1, 1000.0, "a"), late)) == 8.0
    assert computing_ms(graph(a, compute("b", 0, 4.0, device=1))) == 4.0


def test_jobs_are_spread_over_pod_groups_and_pods() -> None:
    sync = Task("sync", "all_reduce", dependencies=(), size_bytes=1e9, members=tuple(range(8)))
    jobs = jobs_from_graphs(
        [(graph(sync), 3), (TaskGraph("last", (sync,)), 1)], PodNetwork(2, 4, 8, 100.0, 800.0)
    )
    assert [job.id for job in jobs.jobs] == ["g-0", "g-1", "g-2", "last"]
    assert [job.pod_group for job in jobs.jobs] == [0, 1, 0, 1]
    assert all(job.units_per_pod == (2, 2, 2, 2) for job in jobs.jobs)


def test_a_job_alone_pushes_and_computes_twice_and_pods_are_as_fast_as_their_servers() -> None:
    """Two jobs on two servers of 2 x 100G: each pushes 1,000 Gbit over 8 of 16 ports of 25G, 5 s, and trains 3 s."""
    cluster = Cluster(
        servers=2, ports_per_server=2, switches=2, ports_per_switch=2, port_gbps=100.0
    )
    network = pods_of(cluster)
    assert network.ports_per_pod * network.port_gbps == 2 * cluster.ports_per_server * 100.0
    jobs = tuple(Job(id, "ring_all_reduce", 0, (1, 1), 1000.0, 3.0) for id in "ab")
    assert alone_s(Jobs("mix", network, jobs), Reading()).tolist() == [16.0, 16.0]
    many = pods_of(cluster.changed(servers=20, duplex="half"))
    assert (many.pods_per_group, many.tor_gbps) == (8, 3 * 200.0)


def test_graphs_that_are_no_jobs_and_mixes_that_do_not_fit_are_refused() -> None:
    timed = Task("t", "communication", dependencies=(), source=0, destination=1, duration_ms=3.0)
    sync = graph(
        Task("sync", "all_reduce", dependencies=(), size_bytes=1e9, members=tuple(range(8)))
    )
    pods = PodNetwork(1, 4, 8, 100.0, 800.0)
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: derived(graph(compute("f", 0, 1.0))), "sends nothing over the network"),
        (lambda: derived(graph(timed)), "needs their bytes"),
        (
            lambda: jobs_from_graphs([(sync, 2)], pods, units_per_pod=3),
            "no pod group has room for 8 units",
        ),
        (lambda: jobs_from_graphs([(sync, 0)], pods), "must be from 1"),
        (lambda: execution_of(made(0, "static"), 2), "must be from 0 to 1"),
    ]
    for call, message in refused:
        assert message in refusal(call)
