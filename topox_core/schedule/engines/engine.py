"""The solver boundary: what an engine is given, says on the way, and returns.

Every engine is ``solve(problem, limits, stop, on_progress) -> Answer``; no solver object leaves its
file. A child process that solves is sent an engine's name, a problem and its limits, then better schedules,
and None to stop; it sends :data:`LOADED`, :data:`READY`, progress, and an answer or why there is none.
All are pickled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from topox_core.runs.run import Stop, never
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.problem import Problem
from topox_core.schedule.source import StoppedBy, TraceSource

LOADED, READY = "loaded", "ready"  # an engine is there, before it is asked; a request has been read
# How the search of a model ended.
Ended = Literal["optimal", "infeasible", "stopped"]


@dataclass(frozen=True)
class Progress:
    """One step of a solve: the best bound so far, in ticks, and the schedule that is new, if one is; ``words`` say what binds."""

    bound: int
    source: TraceSource
    solution: Solution | None = None
    words: str = ""


@dataclass(frozen=True)
class Limits:
    """When to stop, and what is known before: a schedule to start from and a valid lower bound (ticks).

    Where the problem counts set-ups, so do both, and the schedule comes with its ports.
    """

    time_limit_s: float = 60.0
    gap: float = 0.0
    seed: int = 0
    threads: int = 1
    bound: int = 0
    solution: Solution | None = None


@dataclass(frozen=True)
class Answer(Progress):
    """The last step: the best schedule and bound, and why the engine stopped; no ``words`` where it raised no bound."""

    stopped_by: StoppedBy = "time_limit"
    message: str = ""


@dataclass(frozen=True)
class Failed:
    """Why there is no answer; ``refused`` where the problem or the request is at fault."""

    message: str
    refused: bool = False


News = Callable[[], Solution | None]
OnProgress = Callable[[Progress], None]


class Solve(Protocol):
    """How a model of some of a problem's schedules is searched."""

    def __call__(
        self,
        limits: Limits,
        stop: Stop,
        on_solution: Callable[[Solution], None],
        on_bound: Callable[[int], None],
    ) -> Ended:
        """Search until a limit or ``stop``, telling better schedules and bounds (ticks), and return how that ended."""
        ...


class Engine(Protocol):
    """One way of solving the reduced problem."""

    def __call__(
        self,
        problem: Problem,
        limits: Limits,
        stop: Stop = never,
        on_progress: OnProgress | None = None,
        news: News | None = None,
    ) -> Answer:
        """Return the best answer found before a limit or ``stop``; ``news`` gives a better schedule found elsewhere, once."""
        ...
