"""List schedules made in processes of their own are those that this process makes."""

import os
import pickle
import signal
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import pytest

from topox_core.errors import InputError
from topox_core.fabrics.planning.schedule_workers import ScheduleWorkers
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.runs import executor
from topox_core.runs.cores import ALLOWED, keep_to_one_core, on_all_cores
from topox_core.runs.executor import WorkerDied
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

LIST = Settings.of("physical", engine="list")
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def workers() -> Iterator[ScheduleWorkers]:
    made = ScheduleWorkers(1)
    yield made
    made.close()


def test_a_schedule_from_a_worker_equals_one_made_here_and_its_graph_travels_once(
    workers: ScheduleWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, cluster = load_sample("patience")
    packed: list[object] = []
    dumps = pickle.dumps
    monkeypatch.setattr(
        executor.pickle, "dumps", lambda one, *rest: packed.append(one) or dumps(one, *rest)
    )
    for port_gbps in (50.0, 100.0):  # the second time the worker knows the graph
        changed = cluster.changed(port_gbps=port_gbps)
        there = workers.schedule(graph, changed, LIST).result(PATIENCE_S)
        here = schedule(graph, changed, LIST)
        assert (there.makespan_ms, there.bound_ms) == (here.makespan_ms, here.bound_ms)
        assert there.execution.start_ms.tolist() == here.execution.start_ms.tolist()
        assert there.execution.graph.ids == here.execution.graph.ids
    assert [one for one in packed if one is graph] == [graph]
    assert workers.ready


def test_bad_input_comes_back_as_the_line_it_is(workers: ScheduleWorkers) -> None:
    graph, cluster = load_sample("patience")
    with pytest.raises(InputError, match="names server"):
        workers.schedule(graph, cluster.changed(servers=2), LIST).result(PATIENCE_S)


def test_what_nobody_waits_for_any_more_is_not_made(workers: ScheduleWorkers) -> None:
    graph, cluster = load_sample("race")
    asked = [workers.schedule(graph, cluster, replace(LIST, seed=seed)) for seed in range(8)]
    assert all(one.cancel() for one in asked[2:])
    with pytest.raises(CancelledError):
        asked[-1].result(PATIENCE_S)
    assert all(one.result(PATIENCE_S).makespan_ms for one in asked[:2])


@pytest.mark.long
def test_a_worker_that_dies_costs_one_answer() -> None:
    workers = ScheduleWorkers(1)
    graph, cluster = load_sample("patience")
    workers.schedule(graph, cluster, LIST).result(PATIENCE_S)
    worker = workers._executor.submit(os.getpid).result(PATIENCE_S)
    os.kill(worker, signal.SIGSTOP)  # so that it has not answered before it is killed
    dying = workers.schedule(graph, cluster, LIST)
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        dying.result(PATIENCE_S)
    assert workers.schedule(graph, cluster, LIST).result(PATIENCE_S).makespan_ms
    workers.close()


@pytest.mark.skipif(len(ALLOWED) < 2, reason="one core")
def test_a_process_on_one_core_starts_its_workers_on_all() -> None:
    before = os.sched_getaffinity(0)
    try:
        keep_to_one_core()
        assert len(os.sched_getaffinity(0)) == 1
        with on_all_cores():
            assert os.sched_getaffinity(0) == ALLOWED
        assert len(os.sched_getaffinity(0)) == 1
    finally:
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), before)
