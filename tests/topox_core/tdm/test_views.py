"""A round as others see it: on the common clock, as a file, in a sentence, and jobs made from task graphs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.tdm.tdm_cases import golden
from tests.topox_core.tdm.test_check import FORMS, made
from topox_core.check.round import demands
from topox_core.errors import InputError
from topox_core.model.execution import Execution
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, Lowering
from topox_core.tdm.mixes.from_graph import computing_ms, derived, jobs_from_graphs
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.bottleneck import bottlenecks
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.round import Round, RoundBound, TdmSettings
from topox_core.tdm.model.round_file import to_json, to_record
from topox_core.tdm.model.rounds import iterations_per_s, round_of
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


def test_the_bottleneck_in_a_sentence() -> None:
    answer = round_of(StageTable(golden(0.5), Reading()), [0] * 5)
    words = [limit.words(answer) for limit in bottlenecks(answer)]
    assert (
        words[0]
        == "stage 1 lasts 18.9 s: job r3, pods 1 to 3, 5,683 Gbit over 2 links, pod 1 has no free port"
    )
    assert words[1] == "stage 2 lasts 40.5 s: training of job r2"
    assert words[2].startswith("stage 3 lasts 18.9 s: job r3, pods 3 to 1")


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


def test_the_file_says_what_the_round_is() -> None:
    answer = replace(made(0, "the drafts' four phases"), bound=RoundBound(float("inf")))
    record = json.loads(to_json(answer, non_tdm_s=200.0, settings=TdmSettings()))
    assert record["round_s"] == answer.round_s
    assert record["reduction"] == pytest.approx(1 - answer.round_s / 200)
    assert record["bound_s"] is None
    assert sum(row["links"] for row in record["links"]) == answer.links.sum()
    told = [row["iterations_per_s"] for row in record["jobs"]]
    assert told == pytest.approx(iterations_per_s(answer).tolist())
    assert "links" not in to_record(answer, links=False)


# -- jobs from task graphs -------------------------------------------------------------------------------


def graph(*tasks: Task) -> TaskGraph:
    return TaskGraph("g", tasks)


def work(name: str, server: int, ms: float, *after: str, device: int = 0) -> Task:
    return Task(name, "forward", after, server=server, device=device, duration_ms=ms)


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


def test_graphs_that_are_no_jobs_and_mixes_that_do_not_fit_are_refused() -> None:
    timed = Task("t", "communication", (), source=0, destination=1, duration_ms=3.0)
    sync = graph(Task("sync", "all_reduce", (), size_bytes=1e9, members=tuple(range(8))))
    pods = PodNetwork(1, 4, 8, 100.0, 800.0)
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: derived(graph(work("f", 0, 1.0))), "sends nothing over the network"),
        (lambda: derived(graph(timed)), "needs their bytes"),
        (
            lambda: jobs_from_graphs([(sync, 2)], pods, units_per_pod=3),
            "needs room for 8 units",
        ),
        (lambda: jobs_from_graphs([(sync, 0)], pods), "must be from 1"),
        (lambda: execution_of(made(0, "static"), 2), "must be from 0 to 1"),
    ]
    for call, message in refused:
        with pytest.raises(InputError, match=message):
            call()
