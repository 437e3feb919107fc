"""Solves in child processes: they report, stop, die and leave the last schedule behind; some load before they are asked."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import long_after
from tests.patience import PATIENCE_S, wait_until
from tests.topox_core.schedule.fake_solvers import READY, ROOT, SLEEP, progress, saying
from tests.topox_core.schedule.problem_builder import (
    Fabric,
    build,
    makespan,
    random_problem,
)
from topox_core.schedule.bounds.windows import critical_path
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines import engine as protocol, waiting_workers
from topox_core.schedule.engines.engine import Answer, Failed, Limits, Progress
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.engines.waiting_workers import (
    end_all,
    expect_request,
    wait_until_loaded,
    worker_of,
)
from topox_core.schedule.planning.list_scheduler import serial_schedule
from topox_core.schedule.problem import Problem
from topox_core.schedule.rcpsp.feasibility import violation

WORKER = (sys.executable, "-m", "topox_core.worker")
EASY = random_problem(104, Fabric(servers=3, half_duplex=True), tasks=9, density=0.12)
START = serial_schedule(EASY)
# Far too hard to prove while a test lasts.
HARD = random_problem(0, Fabric(servers=5, half_duplex=True), tasks=120, longest=9, density=0.02)
MINUTE = Limits(time_limit_s=60)


def finished(process: SolverProcess) -> Answer:
    wait_until(lambda: not process.running)
    assert process.answer is not None
    return process.answer


def answered(problem: Problem, limits: Limits, command: tuple[str, ...]) -> Answer:
    """What comes of asking a child in the place of HiGHS."""
    with closing(SolverProcess("highs", problem, limits, command)) as process:
        return finished(process)


def heard_from(process: SolverProcess) -> list[Progress]:
    """The first news; the child is solving by then."""
    news: list[Progress] = []
    wait_until(lambda: news.extend(process.poll()) or news)
    return news


@pytest.mark.parametrize("engine", ["highs", "cpsat"])
def test_cancelling_keeps_the_schedule_and_the_bound(engine):
    start = serial_schedule(HARD)
    with closing(
        SolverProcess(engine, HARD, Limits(time_limit_s=60, solution=Solution(start)))
    ) as process:
        process.cancel()
        answer = finished(process)
    assert answer.stopped_by == "cancelled"
    assert violation(HARD, answer.solution.start) is None
    assert answer.bound <= makespan(HARD, answer.solution.start) <= makespan(HARD, start)


def test_a_child_that_overshoots_its_limit_is_killed_and_what_it_said_is_kept():
    command = saying(READY, progress(critical_path(EASY), START), then=SLEEP)
    answer = answered(EASY, Limits(time_limit_s=0.1), command)
    assert answer.stopped_by == "time_limit"
    assert np.array_equal(answer.solution.start, START)
    assert answer.bound == critical_path(EASY)


@pytest.mark.parametrize("end", [SolverProcess.cancel, SolverProcess.close])
def test_a_child_that_does_not_listen_is_killed(end):
    with closing(SolverProcess("highs", EASY, Limits(), saying(READY, then=SLEEP))) as process:
        end(process)
        assert finished(process).stopped_by == "cancelled"
        wait_until(lambda: process._process.poll() is not None)


def test_a_killed_child_is_reported_and_the_last_schedule_kept():
    with closing(SolverProcess("highs", HARD, MINUTE)) as process:
        news = heard_from(process)
        process._process.kill()
        answer = finished(process)
        news += process.poll()
    assert answer.stopped_by == "failed"
    assert answer.message.startswith("the solver process ended (signal 9")
    assert answer.message.endswith("the last schedule is kept")
    assert violation(HARD, answer.solution.start) is None
    assert makespan(HARD, answer.solution.start) == min(
        makespan(HARD, p.solution.start) for p in news if p.solution is not None
    )


TOLD = pickle.loads(progress(1))


@pytest.mark.parametrize(
    "word",
    [
        b"Segmentation fault\n",
        b"{}\n",
        b"[" * 10_000,
        pickle.dumps("dance"),
        pickle.dumps(b"step"),
        pickle.dumps(Progress),
        pickle.dumps(replace(TOLD, bound="high")),
        pickle.dumps(replace(TOLD, bound=1_000_000)),
        pickle.dumps(replace(TOLD, solution=3)),
        pickle.dumps(replace(TOLD, solution=Solution(np.zeros(2)))),
        pickle.dumps(replace(TOLD, solution=Solution(np.zeros(3, np.int64)))),
    ],
)
def test_a_child_that_talks_nonsense_is_stopped_and_the_schedule_given_is_kept(word):
    limits = Limits(time_limit_s=60, solution=Solution(START))
    answer = answered(EASY, limits, saying(READY, word, then=SLEEP))
    assert answer.stopped_by == "failed"
    assert answer.message.endswith("the last schedule is kept")
    assert np.array_equal(answer.solution.start, START)


def test_a_schedule_that_breaks_a_rule_is_not_believed():
    problem = build([2, 2], {0: (0, 1), 1: (0, 2)})
    good, bad = np.array([0, 2]), np.array([0, 1])
    answer = answered(problem, MINUTE, saying(READY, progress(2, good), progress(2, bad)))
    assert answer.stopped_by == "failed"
    assert "more than 1 of out-ports of server 0 in slot 1" in answer.message
    assert np.array_equal(answer.solution.start, good)


def test_a_child_that_ends_early_without_a_word_is_reported():
    answer = answered(EASY, Limits(), (sys.executable, "-c", "raise SystemExit(7)"))
    assert (answer.solution, answer.stopped_by) == (None, "failed")
    assert answer.message == "the solver process ended (exit code 7) before it was done"


def test_an_engine_that_refuses_the_problem_says_why_and_nothing_is_lost():
    shared = random_problem(0, Fabric(shares=True), tasks=8)
    with closing(SolverProcess("cpsat", shared, Limits())) as process:
        answer = finished(process)
    assert (answer.solution, answer.bound, answer.stopped_by) == (None, 0, "heuristic")
    assert answer.message.startswith("No exact solve: CP-SAT has no model of shared circuits")


PARENT = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from tests.topox_core.schedule.test_worker import HARD, Limits, SolverProcess, heard_from
process = SolverProcess("highs", HARD, Limits(time_limit_s=300))
heard_from(process)
print(process._process.pid, flush=True)
time.sleep(300)
"""


@pytest.mark.long
def test_the_child_ends_when_its_parent_dies():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    os.kill(child, 0)
    parent.kill()
    parent.communicate()

    def gone() -> bool:
        try:
            return Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_until(gone)


def test_the_worker_speaks_its_protocol_and_nothing_else():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(WORKER, cwd=ROOT, **pipes) as worker:
        pickle.dump(("highs", EASY, MINUTE), worker.stdin)
        worker.stdin.flush()  # and left open: its end would ask the worker to stop
        told = [pickle.load(worker.stdout)]
        while not isinstance(told[-1], Answer):
            told.append(pickle.load(worker.stdout))
        assert worker.stdout.read() == b""
        assert worker.wait(PATIENCE_S) == 0
    assert told[0] == protocol.READY
    assert {type(event) for event in told[1:-1]} <= {Progress}


@pytest.mark.parametrize(
    "request_line",
    long_after(2, [b"hello\n", pickle.dumps(("nobody", build([1]), Limits())), b"", b"{}\n"]),
)
def test_a_worker_given_nonsense_says_so(request_line):
    ran = subprocess.run(
        WORKER, input=request_line, capture_output=True, cwd=ROOT, timeout=PATIENCE_S, check=False
    )
    event = pickle.loads(ran.stdout)
    assert isinstance(event, Failed)
    assert (ran.returncode, event.refused) == (1, False)
    assert event.message


@pytest.fixture
def nobody_waits() -> Iterator[None]:
    end_all()
    yield
    end_all()


@pytest.mark.parametrize("engine", long_after(1, ["highs", "cpsat"]))
def test_a_child_that_has_loaded_takes_the_next_request(nobody_waits, engine):
    expect_request(engine)
    expect_request(engine)  # one is enough
    wait_until_loaded(engine, PATIENCE_S)
    with worker_of(engine) as waiting, worker_of(engine) as late:
        assert waiting.args[-1] == engine
        assert late.args[-1] != engine  # nobody waited any more
        waiting.kill()
        late.kill()


@pytest.fixture
def many_files_open() -> Iterator[None]:
    """Every descriptor up to 1023 is taken."""
    resource = pytest.importorskip("resource", reason="no limits on descriptors here")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2048), before[1]))
    except ValueError:
        pytest.skip("no process may open so many files here")
    taken = [os.dup(0)]
    while taken[-1] < 1023:
        taken.append(os.dup(0))
    yield
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_child_is_waited_for_in_a_process_with_many_open_files(
    nobody_waits, many_files_open, monkeypatch
):
    program = "print('loaded', flush=True); input()"
    monkeypatch.setattr(waiting_workers, "WORKER", (sys.executable, "-c", program))
    expect_request("highs")
    wait_until_loaded("highs", PATIENCE_S)
    with worker_of("highs") as waiting:
        assert waiting.stdout.fileno() > 1023
        assert waiting.stdout.readline() == b"loaded\n"
        waiting.kill()


def test_a_child_that_died_while_it_waited_is_replaced(nobody_waits):
    expect_request("cpsat")
    dead = worker_of("cpsat")
    dead.kill()
    dead.wait()
    expect_request("cpsat")
    with worker_of("cpsat") as waiting:
        assert waiting.pid != dead.pid
        assert waiting.poll() is None
        waiting.kill()
