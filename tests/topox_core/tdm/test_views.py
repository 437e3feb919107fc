"""A round as others see it: on the common clock, as a file, in a sentence, and jobs made from task graphs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.topox_core.tdm.test_check import FORMS, golden, made, mixed
from topox_core.check.round import demands
from topox_core.errors import InputError
from topox_core.figures.gantt import gantt
from topox_core.figures.lanes import bars_of, lanes_of
from topox_core.figures.palette import LIGHT
from topox_core.io.exports import cross_connects, tasks_csv
from topox_core.io.perfetto import perfetto_trace
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import Execution
from topox_core.model.lowering import lower
from topox_core.model.measures import measures
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, Lowering
from topox_core.tdm.mixes.from_graph import computing_ms, derived, jobs_from_graphs
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.bottleneck import bottlenecks
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.round import PULL, PUSH, Round, RoundBound, TdmSettings
from topox_core.tdm.model.round_file import to_json, to_record
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.stage_table import StageTable
from topox_core.workloads.catalogue import generate

# -- on the common clock ---------------------------------------------------------------------------------


def overlaps(rows: Iterable[tuple[object, float, float]]) -> list[object]:
    """Return the lanes of (lane, start, end) rows on which two overlap."""
    lanes: defaultdict[object, list[tuple[float, float]]] = defaultdict(list)
    for lane, start, end in rows:
        lanes[lane].append((start, end))
    return [
        lane
        for lane, spans in lanes.items()
        if any(later[0] < earlier[1] - 1e-6 for earlier, later in pairwise(sorted(spans)))
    ]


def executions(form: str) -> list[tuple[Round, int, Execution]]:
    answers = [made(mixed(seed), form, seed=seed) for seed in range(4)]
    return [(answer, g, execution_of(answer, g)) for answer in answers for g in range(2)]


@pytest.mark.parametrize("form", FORMS)
def test_a_round_carries_every_byte_of_its_demand_twice(form: str) -> None:
    """Push and pull: what eq. 4 asks of each pair of pods, each way once."""
    for answer, g, execution in executions(form):
        inter = demands(answer)[0][g].sum(0)
        graph, circuits = execution.graph, execution.circuits
        listed = np.zeros_like(inter)
        for i in np.flatnonzero(graph.kind == TRANSFER):
            listed[graph.source[i], graph.destination[i]] += graph.size_bytes[i] * 8 / 1e9
        assert np.allclose(listed, inter + inter.T)
        carried = np.zeros_like(inter)
        seconds = (circuits.end_ms - circuits.start_ms) / 1000
        np.add.at(
            carried,
            (circuits.source, circuits.destination),
            seconds * answer.jobs.network.port_gbps,
        )
        assert np.allclose(carried, inter + inter.T)


@pytest.mark.parametrize("form", FORMS)
def test_no_port_holds_two_circuits_and_no_device_two_tasks(form: str) -> None:
    for answer, _, execution in executions(form):
        circuits, graph = execution.circuits, execution.graph
        ends = [
            (circuits.source, circuits.source_port),
            (circuits.destination, circuits.destination_port),
        ]
        # Half-duplex: one port, whether it sends or receives.
        held = [
            ((int(pod), int(port)), float(start), float(end))
            for pods, ports in ends
            for pod, port, start, end in zip(
                pods, ports, circuits.setup_ms, circuits.end_ms, strict=True
            )
        ]
        assert overlaps(held) == []
        assert (
            max((port for (_, port), _, _ in held), default=0) < answer.jobs.network.ports_per_pod
        )
        compute = np.flatnonzero(graph.kind == COMPUTE)
        assert (
            overlaps(
                (
                    (int(graph.server[i]), int(graph.device[i])),
                    float(execution.start_ms[i]),
                    float(execution.end_ms[i]),
                )
                for i in compute
            )
            == []
        )


@pytest.mark.parametrize("form", FORMS)
def test_everything_waits_for_what_it_depends_on(form: str) -> None:
    for answer, g, execution in executions(form):
        graph = execution.graph
        waits = np.repeat(np.arange(len(graph)), np.diff(graph.pred_ptr))
        assert (execution.start_ms[waits] >= execution.end_ms[graph.pred_idx] - 1e-6).all()
        assert execution.makespan_ms == pytest.approx(answer.cycle_of(g).round_s * 1000)
        assert execution.end_ms.max() <= execution.makespan_ms + 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_every_job_computes_what_an_iteration_needs(form: str) -> None:
    for answer, g, execution in executions(form):
        graph = execution.graph
        for n in answer.jobs.of_group(g):
            job = answer.jobs.jobs[n]
            pod = job.pods[0]
            spent = (
                sum(
                    execution.end_ms[i] - execution.start_ms[i]
                    for i in np.flatnonzero(graph.kind == COMPUTE)
                    if graph.ids[i].startswith(f"{job.id}/train") and graph.server[i] == pod
                )
                / 1000
            )
            assert spent == pytest.approx(
                job.train_s * (1 if job.collective == "parameter_server" else 2)
            )


def test_links_of_one_direction_keep_their_ports() -> None:
    """Two rings of two pods in two groups push over the same links: the second stage changes nothing and is not dark."""
    network = PodNetwork(1, 2, 2, 10.0, 1e6, 5.0)
    ring = [Job(f"r{n}", "ring_all_reduce", 0, (1, 1), 10.0, 0.0) for n in range(2)]
    answer = round_of(StageTable(Jobs("two", network, tuple(ring)), Reading()), [0, 1])
    execution = execution_of(answer, 0)
    assert not execution.circuits.changed.any()
    assert answer.round_s == 4.0


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


def test_the_other_pages_can_show_a_round() -> None:
    execution = execution_of(made(golden(), "all-train phases"), 0)
    lanes = lanes_of(execution)
    bars = bars_of(execution, lanes)
    chain = critical_path(execution)
    figure = gantt(execution, bars, lanes, (0.0, execution.makespan_ms), chain, LIGHT)
    assert figure.data
    assert len(cross_connects(execution)) > 0
    assert 0 < measures(execution).port_carrying <= 1
    assert b"b90/push" in tasks_csv(execution)
    assert json.loads(perfetto_trace(execution, "a round"))["traceEvents"]


def test_a_pod_group_that_is_not_there() -> None:
    with pytest.raises(InputError, match="must be from 0 to 0"):
        execution_of(made(golden(), "static"), 1)
    with pytest.raises(InputError, match="has no round"):
        execution_of(replace(made(golden(), "static"), cycles=()), 0)


# -- bottlenecks and the file ----------------------------------------------------------------------------


def test_the_bottleneck_in_a_sentence() -> None:
    answer = round_of(StageTable(golden(), Reading()), [0] * 5)
    words = [limit.words(answer) for limit in bottlenecks(answer)]
    assert (
        words[0]
        == "stage 1 lasts 18.9 s: job b90, pods 1 to 3, 5,683 Gbit over 2 links, pod 1 has no free port"
    )
    assert words[1] == "stage 2 lasts 40.5 s: training of job b3"
    assert words[2].startswith("stage 3 lasts 18.9 s: job b90, pods 3 to 1")


def test_every_stage_lasts_as_long_as_its_bottleneck() -> None:
    for form in FORMS:
        for seed in range(4):
            answer = made(mixed(seed), form, seed=seed)
            for cycle in answer.cycles:
                for limit, phase in zip(bottlenecks(answer, cycle), cycle.phases, strict=True):
                    if limit.cause == "link":
                        took = limit.gbit / (limit.links * answer.jobs.network.port_gbps)
                    elif limit.cause == "tor":
                        took = limit.gbit / answer.jobs.network.tor_gbps
                    else:
                        took = phase.computing_s
                    assert took + phase.dark_s == pytest.approx(phase.end_s - phase.start_s)
                    if limit.cause == "link":
                        assert limit.full_pods or answer.static
                    assert (limit.job is None) == (limit.cause == "nothing")


def test_the_servers_of_a_pod_can_be_the_bottleneck() -> None:
    jobs = Jobs(
        "slow servers",
        PodNetwork(1, 2, 4, 100.0, 10.0, 0.0),
        (Job("r", "ring_all_reduce", 0, (3, 1), 10.0, 1.0),),
    )
    first = bottlenecks(answer := round_of(StageTable(jobs, Reading()), [0]))[0]
    assert (
        first.words(answer)
        == "stage 1 lasts 6.0 s: job r, servers of pod 0, 60 Gbit through its top-of-rack switch"
    )


def test_the_file_says_what_the_round_is() -> None:
    answer = replace(made(golden(), "the drafts' four phases"), bound=RoundBound(float("inf")))
    record = json.loads(to_json(answer, non_tdm_s=200.0, settings=TdmSettings()))
    assert record["format"] == "topox-round"
    assert record["round_s"] == answer.round_s
    assert record["reduction"] == pytest.approx(1 - answer.round_s / 200)
    assert record["bound_s"] is None
    assert sorted(name for group in record["groups"] for name in group) == sorted(
        job.id for job in answer.jobs.jobs
    )
    assert [stage["what"] for stage in record["cycles"][0]["stages"]] == [
        "group 0 pushes",
        "group 1 pushes",
        "group 0 pulls",
        "group 1 pulls",
    ]
    assert sum(row["links"] for row in record["links"]) == answer.links.sum()
    assert record["settings"]["algorithm"] == "hill-climbing"
    assert {row["id"]: row["iterations_per_s"] for row in record["jobs"]}["b8"] == pytest.approx(
        1 / answer.round_s
    )
    assert "links" not in to_record(answer, links=False)


def test_ways_are_push_then_pull() -> None:
    assert (PUSH, PULL) == (0, 1)


# -- jobs from task graphs -------------------------------------------------------------------------------


def graph(*tasks: Task) -> TaskGraph:
    return TaskGraph("g", tasks)


def work(name: str, server: int, ms: float, *after: str, device: int = 0) -> Task:
    return Task(name, "forward", after, server=server, device=device, duration_ms=ms)


def test_an_all_reduce_becomes_a_ring_that_moves_as_much() -> None:
    tasks = [work(f"f{s}", s, 1000.0 * (s + 1)) for s in range(4)]
    sync = Task(
        "sync", "all_reduce", tuple(task.id for task in tasks), size_bytes=1e9, members=(0, 1, 2, 3)
    )
    shape = derived(graph(*tasks, sync))
    assert (shape.collective, shape.units, shape.share) == ("ring_all_reduce", 4, 1.0)
    assert shape.volume_gbit == pytest.approx(8.0)  # the tensor itself
    assert shape.total_gbit == pytest.approx(2 * 3 * 8.0)
    assert shape.train_s == pytest.approx(4.0)


def test_a_star_becomes_a_parameter_server() -> None:
    push = [
        Task(f"push{s}", "communication", (), source=s, destination=0, size_bytes=5e8)
        for s in (1, 2, 3)
    ]
    pull = [
        Task(f"pull{s}", "communication", (f"push{s}",), source=0, destination=s, size_bytes=5e8)
        for s in (1, 2, 3)
    ]
    shape = derived(graph(*push, *pull))
    assert (shape.collective, shape.units) == ("parameter_server", 3)
    assert shape.volume_gbit == pytest.approx(4.0)


def test_an_all_to_all_and_scattered_sends_become_pairs() -> None:
    shape = derived(graph(Task("x", "all_to_all", (), size_bytes=4e9, members=(0, 1, 2, 3))))
    assert (shape.collective, shape.units) == ("all_to_all", 4)
    assert shape.volume_gbit == pytest.approx(8.0)  # of 32 Gbit, a quarter to each
    ring = [
        Task(f"s{s}", "communication", (), source=s, destination=(s + 1) % 4, size_bytes=1e9)
        for s in range(4)
    ]
    assert derived(graph(*ring)).collective == "all_to_all"


@pytest.mark.parametrize(
    ("name", "collective"), [("dlrm", "ring_all_reduce"), ("moe", "all_to_all")]
)
def test_workloads_keep_their_bytes(name: str, collective: str) -> None:
    """The volume of the job times its pattern is what the lowered graph sends."""
    task_graph, _ = generate(name)
    shape = derived(task_graph)
    lowered = lower(task_graph, Lowering())
    assert shape.total_gbit == pytest.approx(np.nansum(lowered.size_bytes) * 8 / 1e9)
    assert shape.collective == collective
    assert shape.train_s > 0


def test_computing_shares_devices_and_ignores_the_network() -> None:
    a, b = work("a", 0, 3.0), work("b", 0, 4.0)
    send = Task("send", "communication", ("a",), source=0, destination=1, size_bytes=1e12)
    assert (
        computing_ms(graph(a, b, send, work("c", 1, 5.0, "send"))) == 8.0
    )  # a, b on one device; c after a at once
    assert computing_ms(graph(a, work("b", 0, 4.0, device=1))) == 4.0


def test_jobs_are_spread_over_pod_groups_and_pods() -> None:
    sync = Task("sync", "all_reduce", (), size_bytes=1e9, members=tuple(range(8)))
    jobs = jobs_from_graphs(
        [(graph(sync), 3), (graph(sync), "last")], PodNetwork(2, 4, 8, 100.0, 800.0)
    )
    assert [job.id for job in jobs.jobs] == ["g-0", "g-1", "g-2", "last"]
    assert [job.pod_group for job in jobs.jobs] == [0, 1, 0, 1]
    assert all(job.units_per_pod == (2, 2, 2, 2) for job in jobs.jobs)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ((work("f", 0, 1.0),), "sends nothing over the network"),
        (
            (Task("t", "communication", (), source=0, destination=1, duration_ms=3.0),),
            "needs their bytes",
        ),
    ],
)
def test_graphs_that_are_no_jobs(tasks: tuple[Task, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        derived(graph(*tasks))


def test_mixes_that_do_not_fit() -> None:
    sync = graph(Task("sync", "all_reduce", (), size_bytes=1e9, members=tuple(range(8))))
    with pytest.raises(InputError, match="needs room for 8 units"):
        jobs_from_graphs([(sync, 2)], PodNetwork(1, 4, 8, 100.0, 800.0), units_per_pod=3)
    with pytest.raises(InputError, match="must be from 1"):
        jobs_from_graphs([(sync, 0)], PodNetwork(1, 4, 8, 100.0, 800.0))
