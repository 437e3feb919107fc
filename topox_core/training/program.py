"""What one replica's ranks do in an iteration, step by step; a rank stands for all that do the same at the same time.

:mod:`topox_core.training.graph` makes the task graph of all replicas of it.
"""

from dataclasses import dataclass
from enum import IntEnum

from topox_core.training.collectives import Group
from topox_core.training.job import Job

COMPUTING = ("forward", "backward", "update")


class Spread(IntEnum):
    """Which replicas of a stage do a step together."""

    REPLICA = 0  # each alone
    WEIGHTS = 1  # all of them
    CONTEXT = 2  # those that share their sequences
    EXCHANGE = 3  # those among which tokens go to experts
    EXPERTS = 4  # those that hold the same experts


@dataclass(frozen=True)
class Step:
    """One thing that a rank does, or that several do together.

    Attributes
    ----------
    word, place
        Its name is ``word`` followed by ``place``, such as ``f`` and ``.s0.m3``.
    kind
        Of a task: forward, backward, update, send, or a collective.
    stage
        Of its rank, or of its sender.
    waits
        Names of the steps before it.
    ms, loaded_ms
        How long it computes, and how much of that grows with the rows that experts are sent.
    size_bytes, group, spread
        Of a communication: bytes of one GPU, who takes part, and which replicas do it together.
    calls
        How many calls it stands for, each with its latency.
    other
        The stage that receives a message, or that shares the tied tables; -1 if none.
    homeward
        Of tokens: whether they come home from the experts.
    """

    word: str
    place: str
    kind: str
    stage: int
    waits: tuple[str, ...]
    ms: float = 0.0
    size_bytes: float = 0.0
    group: Group | None = None
    spread: Spread = Spread.REPLICA
    other: int = -1
    calls: int = 1
    parallelism: str = ""
    microbatch: int = -1
    layer: int = -1
    loaded_ms: float = 0.0
    homeward: bool = False

    @property
    def name(self) -> str:
        """What others wait for."""
        return self.word + self.place

    @property
    def computes(self) -> bool:
        """Whether it holds a device."""
        return self.kind in COMPUTING


@dataclass(frozen=True)
class Program:
    """The steps of a job's iteration, folded: in any order, each after nothing but what it names."""

    job: Job
    steps: tuple[Step, ...]


def instances(job: Job) -> dict[Spread, list[int]]:
    """Return for each spread which group a replica is in; replicas are numbered context first, then data."""
    context, expert = job.plan.context, job.plan.expert
    replicas = [divmod(replica, context) for replica in range(job.plan.replicas)]
    return {
        Spread.REPLICA: list(range(job.plan.replicas)),
        Spread.WEIGHTS: [0 for _ in replicas],
        Spread.CONTEXT: [data for data, _ in replicas],
        Spread.EXCHANGE: [data // expert * context + c for data, c in replicas],
        Spread.EXPERTS: [data % expert for data, _ in replicas],
    }


# By two spreads: for each group of the second, the groups of the first that it meets in some replica.
Meetings = list[list[list[list[int]]]]


def meetings(instance: dict[Spread, list[int]]) -> Meetings:
    """Return which groups meet, given for each spread the group of every replica."""

    def met(one: Spread, other: Spread) -> list[list[int]]:
        found: list[dict[int, None]] = [{} for _ in range(max(instance[other]) + 1)]
        for first, second in zip(instance[one], instance[other], strict=True):
            found[second][first] = None
        return [list(each) for each in found]

    return [[met(one, other) for other in Spread] for one in Spread]
