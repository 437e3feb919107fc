"""What every algorithm returns: one round of the shared fabric, with its bound, and what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from topox_core.runs.stopping import Stop
from topox_core.tdm.model.jobs import Jobs, Reading

Links = NDArray[np.int32]
Status = Literal["optimal", "feasible", "infeasible", "unknown"]
StoppedBy = Literal["proof", "time_limit", "cancelled", "heuristic"]
PUSH, PULL = 0, 1
NOBODY = -1


@dataclass(frozen=True)
class Phase:
    """A stretch of a round: one group communicates (or nobody), all other groups compute.

    Attributes
    ----------
    group
        Who communicates; ``NOBODY`` in a phase in which all train.
    way
        ``PUSH`` or ``PULL``: pull runs on the transposed links of push.
    dark_s
        Reconfiguration at its start, part of ``start_s`` to ``end_s``.
    communication_s
        Of the slowest pod group behind this barrier; ``computing_s`` the longest computing that
        must fit in.
    """

    group: int
    way: int
    start_s: float
    end_s: float
    dark_s: float
    communication_s: float
    computing_s: float


@dataclass(frozen=True)
class Cycle:
    """The phases that repeat behind one barrier: of all pod groups together, or of one."""

    pod_groups: tuple[int, ...]
    phases: tuple[Phase, ...]

    @property
    def round_s(self) -> float:
        """Length of the cycle."""
        return self.phases[-1].end_s if self.phases else 0.0


@dataclass(frozen=True)
class RoundTracePoint:
    """Best round and bound at a moment of the search, and what moved them."""

    elapsed_s: float
    step: int
    round_s: float | None
    bound_s: float
    source: str


@dataclass(frozen=True)
class Round:
    """One round of all jobs under one algorithm.

    Attributes
    ----------
    group
        Of each job, 0 to ``groups`` - 1.
    rings
        Of each job, the pods in the order of its push ring; empty for what is no ring or stays in
        one pod.
    links
        ``[pod group, group, i, j]``: links i -> j while the group pushes; transposed while it
        pulls.
    communication_s
        ``[pod group, group]``: seconds that the group's push (and pull) takes in that pod group.
    cycles
        One for all pod groups, or one for each of them.
    bound_s
        No round of the same kind (``bound_for`` says which) is shorter.
    message
        What a user must know besides, e.g. that the time limit struck.
    """

    jobs: Jobs
    reading: Reading
    algorithm: str
    status: Status
    stopped_by: StoppedBy
    group: tuple[int, ...]
    groups: int
    rings: tuple[tuple[int, ...], ...]
    links: Links
    communication_s: NDArray[np.float64]
    cycles: tuple[Cycle, ...]
    bound_s: float
    bound_by: str
    bound_for: str
    wall_s: float
    seed: int = 0
    static: bool = False
    story: tuple[RoundTracePoint, ...] = ()
    message: str = ""

    @property
    def round_s(self) -> float:
        """The longest cycle: after it every job has had its turn."""
        return max((cycle.round_s for cycle in self.cycles), default=0.0)

    def cycle_of(self, pod_group: int) -> Cycle:
        """Return the cycle that a pod group follows."""
        return next(cycle for cycle in self.cycles if pod_group in cycle.pod_groups)

    @property
    def mean_round_s(self) -> float:
        """Mean over jobs of the round that each of them sees."""
        seen = [self.cycle_of(job.pod_group).round_s for job in self.jobs.jobs]
        return float(np.mean(seen)) if seen else 0.0

    @property
    def gap(self) -> float:
        """Relative distance between round and bound."""
        return max(0.0, (self.round_s - self.bound_s) / self.round_s) if self.round_s > 0 else 0.0


@dataclass(frozen=True)
class TdmSettings:
    """What an algorithm may choose; ``steps`` bounds it deterministically, ``time_limit_s`` by the clock.

    Attributes
    ----------
    starts
        Random groupings that multi-start climbs from.
    steps
        Of annealing.
    """

    algorithm: str = "hill-climbing"
    reading: Reading = field(default_factory=Reading)
    seed: int = 0
    time_limit_s: float = 60.0
    starts: int = 10
    steps: int = 40_000

    def as_record(self) -> dict[str, Any]:
        """Return the settings as the result keeps them."""
        return {**self.__dict__, "reading": self.reading.as_record()}


OnMoment = Callable[[RoundTracePoint], None]


class Algorithm(Protocol):
    """One way to share the fabric."""

    def __call__(
        self, jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment, /
    ) -> Round:
        """Return a round; what was found when ``stop()`` became true or the time was up is kept.

        Raises
        ------
        InputError
            If ports are too few for the pairs that must talk, or a limit of the algorithm is
            passed.
        """
        ...
