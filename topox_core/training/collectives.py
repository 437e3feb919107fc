"""How long a group of GPUs communicates, alone on its links.

Rings (Patarasuk and Yuan, 2009): of a tensor of S bytes every one of n members sends (n-1)/n S, in an
all-reduce twice that, in as many steps. Across servers the members of one server use their network cards
together; the other cards belong to other groups of the kind, which run at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.job import Job
from topox_core.training.machine import Machine


@dataclass(frozen=True)
class Group:
    """GPUs that take part in one collective.

    Attributes
    ----------
    size
        Members.
    together
        Members in one server, whose network cards carry its part of the group at once.
    """

    size: int
    together: int

    @property
    def crosses(self) -> bool:
        """Whether members are in several servers."""
        return self.together < self.size


def strided(size: int, stride: int, gpus_per_server: int) -> Group:
    """Return a group whose members are every ``stride`` GPUs."""
    return Group(size, max(1, min(size, gpus_per_server // stride)))


@dataclass(frozen=True)
class Groups:
    """The groups of a job, GPUs numbered tensor first, then context, data, pipeline."""

    tensor: Group
    context: Group
    experts: Group
    neighbours: Group
    weights: Group
    same_experts: Group
    ends: Group

    @staticmethod
    def of(job: Job) -> Groups:
        """Return a job's groups.

        ``neighbours`` are two stages in a row, ``ends`` the first and the last, ``weights`` all that
        hold the same weights, ``same_experts`` all that hold the same experts.
        """
        plan, g = job.plan, job.machine.gpus_per_server
        t, c, stage = plan.tensor, plan.context, plan.tensor * plan.context * plan.data
        contexts, spread = (
            strided(c, t, g),
            strided(plan.data // plan.expert, t * c * plan.expert, g),
        )
        return Groups(
            tensor=strided(t, 1, g),
            context=contexts,
            experts=strided(plan.expert, t * c, g),
            neighbours=strided(min(2, plan.pipeline), stage, g),
            weights=strided(plan.replicas, t, g),
            same_experts=Group(plan.expert_replicas, contexts.together * spread.together),
            ends=strided(min(2, plan.pipeline), stage * max(1, plan.pipeline - 1), g),
        )


def all_reduce_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time to add up ``size_bytes`` of every member and give all of them the sum."""
    return _ring_ms(machine, group, size_bytes, 2)


def gather_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time in which all get the whole of ``size_bytes``, of which each has a part."""
    return _ring_ms(machine, group, size_bytes, 1)


# Adding up ``size_bytes`` of every member and leaving each a part of the sum moves the same bytes.
scatter_ms = gather_ms


def all_to_all_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time in which each sends every other its part of ``size_bytes``."""
    n, m = group.size, group.together
    if n == 1:
        return 0.0
    inside_ms = (m - 1) / n * size_bytes / machine.inside_per_ms
    if not group.crosses:
        return _latency_ms(machine, group.crosses, 1) + inside_ms
    network_ms = (n - m) / n * size_bytes / machine.nic_per_ms
    return _latency_ms(machine, group.crosses, 1) + max(network_ms, inside_ms)


def message_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time in which one member sends ``size_bytes`` to another."""
    if group.size == 1:
        return 0.0
    speed = machine.nic_per_ms if group.crosses else machine.inside_per_ms
    return _latency_ms(machine, group.crosses, 1) + size_bytes / speed


def _ring_ms(machine: Machine, group: Group, size_bytes: float, rounds: int) -> float:
    n = group.size
    if n == 1:
        return 0.0
    speed = machine.inside_per_ms
    if group.crosses:
        speed = min(group.together * machine.nic_per_ms, speed)
    carried = rounds * (n - 1) / n * size_bytes
    return _latency_ms(machine, group.crosses, rounds * (n - 1)) + carried / speed


def _latency_ms(machine: Machine, crosses: bool, steps: int) -> float:
    if crosses:
        return (machine.network_call_us + machine.network_step_us * steps) / 1e3
    return (machine.inside_call_us + machine.inside_step_us * steps) / 1e3


TIME_OF = {
    "all_reduce": all_reduce_ms,
    "all_gather": gather_ms,
    "reduce_scatter": scatter_ms,
    "all_to_all": all_to_all_ms,
    "send": message_ms,
}


@dataclass(frozen=True)
class Call:
    """What is done with how many bytes of a member, and who takes part."""

    kind: str
    size_bytes: float
    group: Group

    def ms(self, job: Job) -> float:
        """Return how long one call takes."""
        return TIME_OF[self.kind](job.machine, self.group, self.size_bytes)
