"""Jobs that share an optical fabric of pods, how the drafts on time-division multiplexing are read, and one round of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

from topox_core.model.quantities import MIN_GBPS, DelayMs, Gbps
from topox_core.schema.fields import PRINTABLE, plain_setting, setting

if TYPE_CHECKING:  # the command's options come from these records, and --help loads nothing heavy
    import numpy as np
    from numpy.typing import NDArray

# Limits are named before memory or hours are spent.
MAX_PODS = 16_384
MAX_PODS_PER_GROUP = 64
MAX_PORTS = 1_024
MAX_UNITS = 1_000_000
# Beyond this a sum of squares could overflow; nothing real comes near.
_LARGEST = 1e15
# As much as all ports of a pod send.
TorGbps = Annotated[float, setting("Top-of-rack speed", "Gbit/s", ge=MIN_GBPS, le=_LARGEST)]
# Some thirty years: rounds of such jobs still show a millisecond.
MAX_S = 1e9
MAX_NAME = 200
Collective = Literal["parameter_server", "ring_all_reduce", "all_to_all"]
COLLECTIVES: dict[str, str] = {
    "parameter_server": "Parameter server",
    "ring_all_reduce": "Ring all-reduce",
    "all_to_all": "All-to-all",
}


@dataclass(frozen=True)
class PodNetwork:
    """Pods behind top-of-rack switches, joined by optical switches inside each pod group.

    Attributes
    ----------
    pod_groups, pods_per_group
        Circuits join pods of one group only.
    ports_per_pod
        Optical ports of a pod (N_link): a link i -> j takes one in each of the two pods, whichever
        way it goes (eq. 6).
    port_gbps
        Speed of a link (B), gigabits per second.
    tor_gbps
        Speed between a pod's servers and its top-of-rack switch (B_tor).
    reconfiguration_ms
        Time in which all optical switches change at once.
    """

    pod_groups: Annotated[int, setting("Pod groups", ge=1, le=MAX_PODS)]
    pods_per_group: Annotated[int, setting("Pods per group", ge=1, le=MAX_PODS_PER_GROUP)]
    ports_per_pod: Annotated[
        int,
        setting(
            "Ports per pod",
            ge=1,
            le=MAX_PORTS,
            steps=(2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 32, 48, 64),
        ),
    ]
    port_gbps: Gbps
    tor_gbps: TorGbps
    reconfiguration_ms: DelayMs = 0.5


@dataclass(frozen=True)
class Job:
    """One training job, placed inside one pod group.

    Attributes
    ----------
    units_per_pod
        Parallel units (replicas or expert shards) in each pod of its group.
    volume_gbit
        Of one unit (parameter server, ring: M), or of one ordered pair of units (all-to-all: v).
    train_s, aggregate_s
        Computing of one iteration; what a parameter server computes between push and pull.
    server_pod
        Pod of the parameter server; None for the other collectives.
    """

    id: Annotated[str, setting("Job", min_length=1, max_length=MAX_NAME, without=PRINTABLE)]
    collective: Collective
    pod_group: Annotated[int, setting("Pod group", ge=0)]
    units_per_pod: Annotated[
        tuple[Annotated[int, setting(ge=0, le=MAX_UNITS)], ...],
        setting("Units per pod", max_length=MAX_PODS_PER_GROUP),
    ]
    volume_gbit: Annotated[float, setting("Volume", "Gbit", gt=0, le=_LARGEST)]
    train_s: Annotated[float, setting("Training", "s", ge=0, le=MAX_S)]
    server_pod: Annotated[int | None, setting("Pod of the parameter server")] = None
    aggregate_s: Annotated[float, setting("Aggregation", "s", ge=0, le=MAX_S)] = 0.0

    @property
    def units(self) -> int:
        """All its units (E_n)."""
        return sum(self.units_per_pod)

    @property
    def pods(self) -> tuple[int, ...]:
        """Pods that hold a unit, ascending: those whose masters talk (RM_i = 1)."""
        return tuple(pod for pod, units in enumerate(self.units_per_pod) if units)

    @property
    def total_gbit(self) -> float:
        """Traffic by which jobs are ranked."""
        return total_gbit(self.collective, self.units, self.volume_gbit)


def total_gbit(collective: Collective, units: int, volume_gbit: float) -> float:
    """Return the traffic by which jobs are ranked: E M, or E (E - 1) v of an all-to-all."""
    return units * volume_gbit * (units - 1 if collective == "all_to_all" else 1)


@dataclass(frozen=True)
class Jobs:
    """A network and the jobs on it, validated by :func:`topox_core.tdm.model.jobs_file.validated`."""

    name: str
    network: PodNetwork
    jobs: tuple[Job, ...]

    def __len__(self) -> int:
        return len(self.jobs)

    def of_group(self, pod_group: int) -> tuple[int, ...]:
        """Return the indices of a pod group's jobs."""
        return self._by_group.get(pod_group, ())

    @cached_property
    def _by_group(self) -> dict[int, tuple[int, ...]]:
        groups: dict[int, list[int]] = {}
        for n, job in enumerate(self.jobs):
            groups.setdefault(job.pod_group, []).append(n)
        return {pod_group: tuple(members) for pod_group, members in groups.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of network and jobs; names of the whole do not count."""
        record = [asdict(self.network), [asdict(job) for job in self.jobs]]
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Reading:
    """Choices where the drafts can be read in two ways.

    The defaults are what docs/tdm.md argues for.
    """

    eq3_literal: Annotated[
        bool,
        plain_setting(
            "Eq. 3 as printed",
            "a parameter-server job trains in both stages of the other group, as eq. 3 is printed",
        ),
    ] = False
    physical_ring: Annotated[
        bool,
        plain_setting(
            "Rings carry 2 (N − 1)/N",
            "a ring carries 2 (N - 1) / N times the volume on each arc, instead of the volume once",
        ),
    ] = False
    delay_inside: Annotated[
        bool,
        plain_setting(
            "Delay counts as communication",
            "switching is part of the communication (section II.C), not added to the stage (Algorithm 1)",
        ),
    ] = False


Status = Literal["optimal", "feasible", "infeasible", "unknown"]
StoppedBy = Literal["proof", "time_limit", "cancelled", "heuristic"]
PUSH, PULL = 0, 1
NOBODY = -1
# Relative; sums of the same times in another order differ by less.
SAME = 1e-9
# Relative; a round this near to its bound is the shortest, as an engine proves it on ticks.
TOLERANCE = 1e-6


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
    links: NDArray[np.int32]
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

    @property
    def proved(self) -> bool:
        """Whether no round of the bound's kind is shorter: an engine says so, or the bound meets it."""
        return self.status == "optimal" or self.gap <= TOLERANCE

    def cycle_of(self, pod_group: int) -> Cycle:
        """Return the cycle that a pod group follows."""
        return next(cycle for cycle in self.cycles if pod_group in cycle.pod_groups)

    @property
    def mean_round_s(self) -> float:
        """Mean over jobs of the cycle that each of them follows."""
        cycles_s = [self.cycle_of(job.pod_group).round_s for job in self.jobs.jobs]
        return fmean(cycles_s) if cycles_s else 0.0

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
    """Algorithm, reading and limits; ``steps`` limits deterministically, ``time_limit_s`` by the clock."""

    algorithm: Annotated[str, plain_setting("Algorithm", "who deals")] = "hill-climbing"
    reading: Reading = field(default_factory=Reading)
    seed: Annotated[
        int, plain_setting("Seed", "seed of all random choices", ge=0, le=2**63 - 1)
    ] = 0
    time_limit_s: Annotated[float, setting("Time limit", "s", ge=0, le=86_400)] = 60.0
    steps: Annotated[int, plain_setting("Steps", "steps of annealing", ge=0, le=100_000_000)] = (
        40_000
    )


def shorter_by(value: float, base: float) -> float:
    """Return how much shorter a time is than another one, as a share of that one."""
    return 1.0 - value / base if base > 0 else 0.0


OnRoundTrace = Callable[[RoundTracePoint], None]
