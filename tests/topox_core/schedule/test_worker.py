"""Solves in child processes: they report, stop, die and leave the last schedule behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.topox_core.schedule.fake_solvers import saying, solved_by_cpsat
from tests.topox_core.schedule.problem_builder import Fabric, build, random_problem
from topox_core.errors import InputError
from topox_core.schedule.bounds.windows import critical_path, serial_schedule
from topox_core.schedule.circuits.held_ports import Solution, one_after_another, with_set_ups
from topox_core.schedule.engines import wire
from topox_core.schedule.engines.engine import Answer, Limits, Progress
from topox_core.schedule.engines.highs import solve_highs
from topox_core.schedule.engines.printed import solve_printed
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.feasibility import violation
from topox_core.schedule.problem import Problem
from topox_core.schedule.source import TraceSource

ROOT = Path(__file__).resolve().parents[3]


def easy_problem() -> Problem:
    return random_problem(104, Fabric(servers=3, half_duplex=True), tasks=9, density=0.12)


def long_problem() -> Problem:
    """Far too hard to prove while a test lasts."""
    return random_problem(
        0, Fabric(servers=5, half_duplex=True), tasks=120, longest=9, density=0.02
    )


def makespan(problem: Problem, start: np.ndarray) -> int:
    return int((start + problem.duration).max())


def finished(process: SolverProcess) -> Answer:
    wait_until(lambda: not process.running)
    assert process.answer is not None
    return process.answer


def heard_from(process: SolverProcess) -> list[Progress]:
    """The first news; the child is solving by then."""
    news: list[Progress] = []
    wait_until(lambda: news.extend(process.poll()) or news)
    return news


@pytest.mark.parametrize(("engine", "solve"), [("highs", solve_highs), ("printed", solve_printed)])
@pytest.mark.long
def test_a_process_finds_what_the_engine_finds(engine, solve):
    problem = easy_problem()
    with SolverProcess(engine, problem, Limits(time_limit_s=60)) as process:
        answer = finished(process)
        heard = process.poll()
    here = solve(problem, Limits(time_limit_s=60))
    assert (answer.bound, answer.stopped_by, answer.bound_by) == (
        here.bound,
        "proof",
        here.bound_by,
    )
    assert makespan(problem, answer.start) == answer.bound
    assert heard
    assert heard[-1].incumbent == heard[-1].bound == answer.bound


@pytest.mark.long
def test_a_process_finds_what_cp_sat_finds():
    problem = easy_problem()
    with SolverProcess("cpsat", problem, Limits(time_limit_s=60)) as process:
        answer = finished(process)
    (here,) = solved_by_cpsat([problem], Limits(time_limit_s=60))
    assert (answer.bound, answer.stopped_by, answer.bound_by) == (
        here.bound,
        "proof",
        here.bound_by,
    )
    assert (
        makespan(problem, answer.start)
        == answer.bound
        == solve_highs(problem, Limits(time_limit_s=60)).bound
    )


def test_a_schedule_that_is_offered_survives_the_journey_and_any_other_line_means_stop():
    problem = easy_problem()
    start = serial_schedule(problem)
    arrived = wire.read_offer(wire.offer(Solution(start)))
    assert np.array_equal(arrived.start, start)
    assert (arrived.start.dtype, arrived.ports) == (start.dtype, None)
    with_ports = one_after_another(with_set_ups(problem, 2))
    again = wire.read_offer(wire.offer(with_ports))
    assert np.array_equal(again.ports, with_ports.ports)
    assert again.ports.shape == (3, problem.n)
    floats = json.dumps({"start": {"dtype": "<f8", "base64": ""}}).encode()
    for line in (b"", b"stop\n", b"{}\n", b'{"start": 3}\n', floats):
        assert wire.read_offer(line) is None


def test_a_request_survives_the_journey():
    problem = random_problem(3, Fabric(shares=True), tasks=8, ticks_per_slot=4)
    limits = Limits(
        time_limit_s=3.5, gap=0.01, seed=7, threads=2, bound=5, start=serial_schedule(problem)
    )
    engine, arrived, told = wire.read_request(wire.request("highs", problem, limits))
    assert engine == "highs"
    for field in problem.__dataclass_fields__:
        there, here = getattr(arrived, field), getattr(problem, field)
        if isinstance(here, np.ndarray):
            assert np.array_equal(there, here)
            assert there.dtype == here.dtype
        elif field == "network":
            assert np.array_equal(there.source, here.source)
            assert (there.servers, there.shares) == (here.servers, here.shares)
        else:
            assert there == here
    assert np.array_equal(told.start, limits.start)
    assert (told.time_limit_s, told.gap, told.seed, told.threads, told.bound) == (
        3.5,
        0.01,
        7,
        2,
        5,
    )


@pytest.mark.long
def test_polling_never_waits_and_tells_each_piece_once():
    problem = long_problem()
    with SolverProcess("highs", problem, Limits(time_limit_s=60)) as process:
        first = heard_from(process)
        assert process.running
        assert process.answer is None
        for progress in first:
            assert progress.bound >= critical_path(problem)
            assert progress.start is None or violation(problem, progress.start) is None


@pytest.mark.parametrize("engine", ["highs", "cpsat"])
def test_cancelling_keeps_the_schedule_and_the_bound(engine):
    problem = long_problem()
    start = serial_schedule(problem)
    with SolverProcess(engine, problem, Limits(time_limit_s=60, start=start)) as process:
        wait_until(lambda: process._process.poll() is None)
        process.cancel()
        answer = finished(process)
    assert answer.stopped_by == "cancelled"
    assert violation(problem, answer.start) is None
    assert makespan(problem, answer.start) <= makespan(problem, start)
    assert answer.bound <= makespan(problem, answer.start)


@pytest.mark.long
def test_a_solve_in_a_process_is_cancelled():
    problem = long_problem()
    with SolverProcess("highs", problem, Limits(time_limit_s=60)) as process:
        heard_from(process)
        process.cancel()
        answer = finished(process)
    assert answer.stopped_by == "cancelled"
    assert violation(problem, answer.start) is None


@pytest.mark.parametrize("engine", ["highs", "cpsat"])
@pytest.mark.long
def test_the_time_limit_ends_the_process(engine):
    problem = long_problem()
    with SolverProcess(engine, problem, Limits(time_limit_s=1.0)) as process:
        answer = finished(process)
    assert answer.stopped_by == "time_limit"
    assert violation(problem, answer.start) is None
    assert critical_path(problem) <= answer.bound <= makespan(problem, answer.start)


def test_a_child_that_overshoots_its_limit_is_killed_and_what_it_said_is_kept():
    problem = easy_problem()
    start = serial_schedule(problem)
    bound = critical_path(problem)
    said = (
        wire.progress_event(
            Progress(0.1, makespan(problem, start), bound, TraceSource("exact", "child"), start)
        )
        .decode()
        .strip()
    )
    command = saying('{"event":"ready"}', said, then="time.sleep(600)")
    with SolverProcess("highs", problem, Limits(time_limit_s=0.1), command) as process:
        answer = finished(process)
    assert answer.stopped_by == "time_limit"
    assert np.array_equal(answer.start, start)
    assert answer.bound == bound


def test_a_child_that_does_not_listen_is_killed_on_cancel():
    with SolverProcess(
        "highs", easy_problem(), Limits(), saying('{"event":"ready"}', then="time.sleep(600)")
    ) as process:
        process.cancel()
        assert finished(process).stopped_by == "cancelled"
        wait_until(lambda: process._process.poll() is not None)


def test_a_killed_child_is_reported_and_the_last_schedule_kept():
    problem = long_problem()
    with SolverProcess("highs", problem, Limits(time_limit_s=60)) as process:
        news = heard_from(process)
        os.kill(process.pid, signal.SIGKILL)
        answer = finished(process)
        news += process.poll()
    assert answer.stopped_by == "failed"
    assert answer.message.startswith("the solver process ended (signal 9")
    assert answer.message.endswith("the last schedule is kept")
    assert violation(problem, answer.start) is None
    best = min(p.incumbent for p in news if p.start is not None)
    assert makespan(problem, answer.start) == best


@pytest.mark.parametrize(
    "line",
    [
        "Segmentation fault",
        "{}",
        "[1, 2]",
        '{"event": "dance"}',
        '{"event": "incumbent"}',
        '{"event": "done", "start": 3}',
        '{"event": "bound", "elapsed_s": 0, "incumbent": null, "bound": "high", '
        '"source": {"family": "exact", "name": "x"}}',
        "[" * 10_000,
        '{"event": "bound", "elapsed_s": 0.1, "incumbent": null, "bound": 1000000, '
        '"source": {"family": "exact", "name": "x"}, "start": null}',
        '{"event": "bound", "elapsed_s": 0.1, "incumbent": null, "bound": 1, '
        '"source": {"family": "guess", "name": "x"}, "start": null}',
    ],
)
def test_a_child_that_talks_nonsense_is_stopped_and_the_schedule_given_is_kept(line):
    problem = easy_problem()
    start = serial_schedule(problem)
    command = saying('{"event":"ready"}', line, then="time.sleep(600)")
    with SolverProcess("highs", problem, Limits(time_limit_s=60, start=start), command) as process:
        answer = finished(process)
    assert answer.stopped_by == "failed"
    assert answer.message.endswith("the last schedule is kept")
    assert np.array_equal(answer.start, start)


def test_a_schedule_that_breaks_a_rule_is_not_believed():
    problem = build([2, 2], {0: (0, 1), 1: (0, 2)})
    good, bad = np.array([0, 2]), np.array([0, 1])
    told = [
        wire.progress_event(Progress(0.1, 0, 2, TraceSource("exact", "child"), start))
        .decode()
        .strip()
        for start in (good, bad)
    ]
    with SolverProcess(
        "highs", problem, Limits(time_limit_s=60), saying('{"event":"ready"}', *told)
    ) as process:
        answer = finished(process)
    assert answer.stopped_by == "failed"
    assert "more than 1 of out-ports of server 0 in slot 1" in answer.message
    assert np.array_equal(answer.start, good)


def test_a_child_that_ends_early_without_a_word_is_reported():
    with SolverProcess(
        "highs", easy_problem(), Limits(), (sys.executable, "-c", "raise SystemExit(7)")
    ) as process:
        answer = finished(process)
    assert (answer.start, answer.stopped_by) == (None, "failed")
    assert answer.message == "the solver process ended (exit code 7) before it was done"


def test_an_engine_that_refuses_the_problem_says_so_as_bad_input():
    problem = random_problem(
        1, Fabric(servers=16, switches=8, ports_per_server=8), tasks=300, longest=40, density=0.01
    )
    with (
        SolverProcess("printed", problem, Limits()) as process,
        pytest.raises(InputError, match="settings, field engine: the printed model would have"),
    ):
        finished(process)


@pytest.mark.long
def test_two_solves_at_once_do_not_disturb_each_other():
    problems = [
        easy_problem(),
        random_problem(111, Fabric(servers=3, half_duplex=True), tasks=9, density=0.12),
    ]
    optima = [solve_highs(problem, Limits(time_limit_s=60)).bound for problem in problems]
    with SolverProcess("highs", long_problem(), Limits(time_limit_s=60)) as busy:
        heard_from(busy)
        processes = [
            SolverProcess("highs", problem, Limits(time_limit_s=60)) for problem in problems
        ]
        assert [finished(process).bound for process in processes] == optima
        assert busy.running


def test_closing_ends_the_child():
    process = SolverProcess("highs", long_problem(), Limits(time_limit_s=60))
    heard_from(process)
    process.close()
    assert process._process.poll() is not None
    assert finished(process).stopped_by == "cancelled"


@pytest.mark.long
def test_the_child_ends_when_its_parent_dies():
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from tests.topox_core.schedule.test_worker import heard_from, long_problem
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.solver_process import SolverProcess
process = SolverProcess("highs", long_problem(), Limits(time_limit_s=300))
heard_from(process)
print(process.pid, flush=True)
time.sleep(300)
""",
        ],
        stdout=subprocess.PIPE,
    )
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
    problem = easy_problem()
    request = wire.request("highs", problem, Limits(time_limit_s=60))
    worker = subprocess.Popen(
        [sys.executable, "-m", "topox_core.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write(request)
    worker.stdin.flush()  # and left open: its end would ask the worker to stop
    events = [json.loads(line) for line in worker.stdout]
    assert worker.wait(PATIENCE_S) == 0
    worker.stdin.close()
    assert events[0] == {"event": "ready"}
    assert events[-1]["event"] == "done"
    assert {event["event"] for event in events[1:-1]} <= {"incumbent", "bound"}


@pytest.mark.parametrize(
    "request_line", [b"", b"hello\n", b"{}\n", wire.request("nobody", build([1]), Limits())]
)
def test_a_worker_given_nonsense_says_so(request_line):
    ran = subprocess.run(
        [sys.executable, "-m", "topox_core.worker"],
        input=request_line,
        capture_output=True,
        cwd=ROOT,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 1
    event = json.loads(ran.stdout)
    assert event["event"] == "failed"
    assert event["message"]
