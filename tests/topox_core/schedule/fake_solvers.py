"""Children that play a solver's part, and CP-SAT in a child: its library cannot share a process with HiGHS."""

import functools
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.topox_core.schedule.problem_builder import one_after_another
from topox_core.schedule.circuits.held_ports import Solution, held_back
from topox_core.schedule.engines import wire
from topox_core.schedule.engines.engine import Answer, Limits, Progress
from topox_core.schedule.problem import Problem
from topox_core.schedule.source import TraceSource

ROOT = Path(__file__).resolve().parents[3]
READY, SLEEP = '{"event":"ready"}', "time.sleep(600)"


def saying(*lines: str, then: str = "") -> tuple[str, ...]:
    """A child that reads its request, says the lines and then does something else."""
    code = f"import sys, os, time\nsys.stdin.readline()\nfor line in {list(lines)!r}:\n    print(line, flush=True)\n{then}"
    return (sys.executable, "-c", code)


def _solution(start: np.ndarray | None) -> Solution | None:
    return None if start is None else Solution(start)


def progress(bound: int, start: np.ndarray | None = None) -> str:
    """The line that tells a schedule, a bound or both."""
    told = Progress(bound, TraceSource("exact", "child"), _solution(start))
    return wire.line(wire.Step(told)).decode().strip()


def done(bound: int, start: np.ndarray | None = None, stopped_by: str = "proof") -> str:
    """The line that ends a solve."""
    source = TraceSource("exact", "child")
    answer = Answer(bound, source, _solution(start), "the child", stopped_by)
    return wire.line(wire.Done(answer)).decode().strip()


ENGINE = """
import sys
from topox_core.schedule.engines import wire
from topox_core.schedule.engines.cpsat import solve_cpsat
for line in sys.stdin.buffer:
    asked = wire.read_request(line)
    try:
        event = wire.Done(solve_cpsat(asked.problem, asked.limits))
    except Exception as error:
        event = wire.failed(error)
    sys.stdout.buffer.write(wire.line(event))
    sys.stdout.buffer.flush()
"""


def solved_by_cpsat(problems: Sequence[Problem], limits: Limits | Sequence[Limits]) -> list[Answer]:
    """Solve each problem with the whole engine, within the same limits or each within its own."""
    return [event.answer for event in events_of_cpsat(problems, limits)]


def events_of_cpsat(
    problems: Sequence[Problem], limits: Limits | Sequence[Limits]
) -> list[wire.Event]:
    """Return the event with which the engine ends on each problem: ``done`` or ``failed``."""
    each = [limits] * len(problems) if isinstance(limits, Limits) else limits
    asked = [(one, begun(one, given)) for one, given in zip(problems, each, strict=True)]
    return [wire.read_event(_said(wire.line(wire.Request("cpsat", *one)))) for one in asked]


def begun(problem: Problem, limits: Limits) -> Limits:
    """Limits with a schedule to start from where a problem counts set-ups: engines have none of their own there."""
    if problem.dark_ticks is None or limits.solution is not None:
        return limits
    return replace(limits, solution=held_back(problem, one_after_another(problem)))


@functools.cache
def _child() -> subprocess.Popen[bytes]:
    """Start a child that answers line by line; it ends with its input, when this process does."""
    return subprocess.Popen(
        [sys.executable, "-c", ENGINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )


def _said(request: bytes) -> bytes:
    child = _child()
    child.stdin.write(request)
    child.stdin.flush()
    line = child.stdout.readline()
    assert line, f"the child ended with {child.wait()}"
    return line
