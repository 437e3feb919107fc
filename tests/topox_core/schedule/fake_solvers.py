"""Children that play a solver's part, and CP-SAT in a child: its library cannot share a process with HiGHS."""

import functools
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.topox_core.schedule.problem_builder import one_after_another
from topox_core.schedule.circuits.held_ports import Solution, held_back
from topox_core.schedule.engines import engine
from topox_core.schedule.engines.engine import Answer, Failed, Limits, Progress
from topox_core.schedule.problem import Problem
from topox_core.schedule.source import TraceSource

ROOT = Path(__file__).resolve().parents[3]
READY, SLEEP = pickle.dumps(engine.READY), "time.sleep(600)"


# Reads a request without what it is made of, which takes a second to load.
READ = """
import sys, os, pickle, time
class Something:
    def __init__(self, *_): pass
    __setstate__ = __init__
class Reader(pickle.Unpickler):
    def find_class(self, *_): return Something
Reader(sys.stdin.buffer).load()
"""


def saying(*words: bytes, then: str = "") -> tuple[str, ...]:
    """A child that reads its request, says the words and then does something else."""
    code = f"{READ}\nfor word in {words!r}:\n    os.write(1, word)\n{then}"
    return (sys.executable, "-c", code)


def _solution(start: np.ndarray | None) -> Solution | None:
    return None if start is None else Solution(start)


def progress(bound: int, start: np.ndarray | None = None) -> bytes:
    """What tells a schedule, a bound or both."""
    return pickle.dumps(Progress(bound, TraceSource("exact", "child"), _solution(start)))


def done(bound: int, start: np.ndarray | None = None, stopped_by: str = "proof") -> bytes:
    """What ends a solve."""
    source = TraceSource("exact", "child")
    return pickle.dumps(Answer(bound, source, _solution(start), "the child", stopped_by))


ENGINE = """
import pickle, sys
from topox_core.schedule.engines.cpsat import solve_cpsat
from topox_core.schedule.engines.engine import Failed
while True:
    try:
        event = solve_cpsat(*pickle.load(sys.stdin.buffer))
    except EOFError:
        break
    except Exception as error:
        event = Failed(str(error))
    pickle.dump(event, sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""


def solved_by_cpsat(problems: Sequence[Problem], limits: Limits | Sequence[Limits]) -> list[Answer]:
    """Solve each problem with the whole engine, within the same limits or each within its own."""
    return [event for event in events_of_cpsat(problems, limits) if isinstance(event, Answer)]


def events_of_cpsat(
    problems: Sequence[Problem], limits: Limits | Sequence[Limits]
) -> list[Answer | Failed]:
    """Return with what the engine ends on each problem."""
    each = [limits] * len(problems) if isinstance(limits, Limits) else limits
    asked = [(one, begun(one, given)) for one, given in zip(problems, each, strict=True)]
    return [_said(one) for one in asked]


def begun(problem: Problem, limits: Limits) -> Limits:
    """Limits with a schedule to start from where a problem counts set-ups: engines have none of their own there."""
    if problem.dark_ticks is None or limits.solution is not None:
        return limits
    return replace(limits, solution=held_back(problem, one_after_another(problem)))


@functools.cache
def _child() -> subprocess.Popen[bytes]:
    """Start a child that answers one by one; it ends with its input, when this process does."""
    return subprocess.Popen(
        [sys.executable, "-c", ENGINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )


def _said(request: tuple[Problem, Limits]) -> Answer | Failed:
    child = _child()
    pickle.dump(request, child.stdin)
    child.stdin.flush()
    return pickle.load(child.stdout)
