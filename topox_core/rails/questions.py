"""Simulations of a job on a rail, plain values in and out, so that a child process can run them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import Rail, RailIteration, RailRun
from topox_core.rails.recorded import recorded
from topox_core.training.job import Job

UNDISTURBED, RUN, BOTH = "undisturbed", "run", "both"


@dataclass(frozen=True, eq=False)
class Recorded:
    """An execution of any fabric as a job on a rail; equal ``key`` means equal execution."""

    key: str
    execution: Execution

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recorded) and other.key == self.key


Running = Job | Recorded
Answer = RailRun | tuple[float, float]


@dataclass(frozen=True)
class Question:
    """One simulation of a job; a job's replicas are folded.

    Attributes
    ----------
    what
        ``undisturbed``: the run when switching takes no time. ``run``: on the rail as it is.
        ``both``: the iteration with ``dark_ms`` a change, on demand and provisioned.
    """

    what: str
    job: Running
    rail: Rail
    dark_ms: float = 0.0

    @property
    def key(self) -> Question:
        """The question without what its answer does not depend on."""
        if self.what == RUN:
            return replace(self, dark_ms=0.0)
        rail = replace(self.rail, reconfiguration_ms=0.0, link_up_ms=0.0, provisioned=True)
        return replace(self, rail=rail, dark_ms=self.dark_ms if self.what == BOTH else 0.0)


@lru_cache(maxsize=4)
def iteration_of(job: Running) -> tuple[RailIteration, FloatArray | None]:
    """Return a job's iteration, and its nodes' durations where the rail does not give them.

    Raises
    ------
    InputError
        As :func:`topox_core.rails.builder.build`, and if an execution has no transfer.
    """
    if isinstance(job, Job):
        return build(job, fold=True), None
    return recorded(job.execution)


@lru_cache(maxsize=2)
def simulation(job: Running, rail: Rail) -> Simulation:
    """Return a job prepared for a rail; the last two are kept.

    Raises
    ------
    InputError
        As :func:`iteration_of`, and if a setting of the rail is out of range.
    """
    iteration, duration_ms = iteration_of(job)
    return Simulation(iteration, rail, duration_ms)


def answer(question: Question) -> Answer:
    """Return the run, or the two iteration times in ms (on demand, provisioned).

    Raises
    ------
    InputError
        As :func:`simulation`.
    """
    key = question.key
    if key.what == BOTH:
        return simulation(key.job, key.rail).both_ms(key.dark_ms)
    return simulation(key.job, key.rail).run(messages=0 if key.what == UNDISTURBED else 500)
