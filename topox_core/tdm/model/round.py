"""One round of the shared fabric: its form, phases, links and bound, and the settings of its algorithm."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.schema.fields import setting
from topox_core.tdm.model.jobs import Jobs, Reading

Links = NDArray[np.int32]
Status = Literal["optimal", "feasible", "infeasible", "unknown"]
StoppedBy = Literal["proof", "time_limit", "cancelled", "heuristic"]
PUSH, PULL = 0, 1
NOBODY = -1
# Relative; sums of the same times in another order differ by less.
SAME = 1e-9


@dataclass(frozen=True)
class RoundForm:
    """What a round may look like; the default is the drafts': two groups, four phases, one barrier.

    Attributes
    ----------
    groups
        Time windows that jobs are dealt to.
    all_train
        Whether each half round ends in a phase in which all train; always so unless there are two
        groups.
    per_pod_group
        Whether every pod group has a barrier of its own.
    static
        Whether one topology is kept through the round.
    """

    groups: int = 2
    all_train: bool = False
    per_pod_group: bool = False
    static: bool = False

    @property
    def windows(self) -> bool:
        """Whether windows follow each other in two half rounds, instead of the drafts' four phases."""
        return self.all_train or self.groups != 2

    @property
    def words(self) -> str:
        """The form in words, for :attr:`RoundBound.holds_for`."""
        form = f"{self.groups} group{'s' if self.groups > 1 else ''}"
        form += " with all-train phases" if self.windows else " in four phases"
        return f"{form}, a barrier for each pod group" if self.per_pod_group else form


DRAFT = RoundForm()


@dataclass(frozen=True)
class RoundBound:
    """A time that no round of some kind is below.

    Attributes
    ----------
    by
        What sets it.
    holds_for
        The rounds that it holds for.
    any_rings
        Whether it holds whatever the rings; else only for given ones.
    """

    round_s: float = 0.0
    by: str = ""
    holds_for: str = ""
    any_rings: bool = False


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
    """Best round and bound at one time of the search, and what moved them."""

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
        Of each job, 0 to ``form.groups`` - 1.
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
    message
        What a user must know besides, e.g. that the time limit was reached.
    """

    jobs: Jobs
    reading: Reading
    form: RoundForm
    group: tuple[int, ...]
    rings: tuple[tuple[int, ...], ...]
    links: Links
    communication_s: NDArray[np.float64]
    cycles: tuple[Cycle, ...]
    algorithm: str = ""
    status: Status = "feasible"
    stopped_by: StoppedBy = "heuristic"
    bound: RoundBound = RoundBound()
    wall_s: float = 0.0
    seed: int = 0
    trace: tuple[RoundTracePoint, ...] = ()
    message: str = ""

    @property
    def groups(self) -> int:
        """Number of groups that communicate in turns."""
        return self.form.groups

    @property
    def static(self) -> bool:
        """Whether circuits never change."""
        return self.form.static

    @property
    def bound_s(self) -> float:
        """No round of the bound's kind is shorter."""
        return self.bound.round_s

    @property
    def round_s(self) -> float:
        """The longest cycle: after it every job has had its turn."""
        return max((cycle.round_s for cycle in self.cycles), default=0.0)

    def cycle_of(self, pod_group: int) -> Cycle:
        """Return the cycle that a pod group follows."""
        return next(cycle for cycle in self.cycles if pod_group in cycle.pod_groups)

    @property
    def mean_round_s(self) -> float:
        """Mean over jobs of the cycle that each of them follows."""
        cycles_s = [self.cycle_of(job.pod_group).round_s for job in self.jobs.jobs]
        return float(np.mean(cycles_s)) if cycles_s else 0.0

    @property
    def gap(self) -> float:
        """Relative distance between round and bound."""
        return max(0.0, (self.round_s - self.bound_s) / self.round_s) if self.round_s > 0 else 0.0


def with_bound(answer: Round, bound: RoundBound, stopped_by: StoppedBy) -> Round:
    """Return a round with a bound, which counts for no more than the round; where the two meet, that is a proof.

    Parameters
    ----------
    stopped_by
        Why its search ended, without a proof.
    """
    proved = bound.round_s >= answer.round_s * (1 - SAME)
    return replace(
        answer,
        bound=replace(bound, round_s=min(bound.round_s, answer.round_s)),
        status="optimal" if proved else "feasible",
        stopped_by="proof" if proved else stopped_by,
    )


@dataclass(frozen=True)
class TdmSettings:
    """Algorithm, reading and limits; ``steps`` limits deterministically, ``time_limit_s`` by the clock.

    Attributes
    ----------
    starts
        Random groupings that multi-start climbs from.
    steps
        Of annealing.
    """

    algorithm: str = "hill-climbing"
    reading: Reading = field(default_factory=Reading)
    seed: Annotated[int, setting("Seed", ge=0, le=2**63 - 1)] = 0
    time_limit_s: Annotated[float, setting("Time limit", "s", ge=0, le=86_400)] = 60.0
    starts: Annotated[int, setting("Starts", ge=0, le=10_000)] = 10
    steps: Annotated[int, setting("Steps", ge=0, le=100_000_000)] = 40_000


def shorter_by(value: float, base: float) -> float:
    """Return how much shorter a time is than another one, as a share of that one."""
    return 1.0 - value / base if base > 0 else 0.0


OnRoundTrace = Callable[[RoundTracePoint], None]
