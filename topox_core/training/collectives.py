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


def _latency_ms(machine: Machine, crosses: bool, steps: int) -> float:
    if crosses:
        return (machine.network_call_us + machine.network_step_us * steps) / 1e3
    return (machine.inside_call_us + machine.inside_step_us * steps) / 1e3


# How often a ring carries the tensor round: an all-reduce adds up, then gives all of them the sum.
ROUNDS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


@dataclass(frozen=True)
class Call:
    """What is done with how many bytes of a member, and who takes part."""

    kind: str
    size_bytes: float
    group: Group

    def ms(self, job: Job) -> float:
        """Return how long one call takes: on a ring, from each straight to each, or from one to another."""
        machine, n, m = job.machine, self.group.size, self.group.together
        if n == 1:
            return 0.0
        crosses, inside = self.group.crosses, machine.inside_per_ms
        if self.kind in ROUNDS:
            rounds = ROUNDS[self.kind]
            speed = min(m * machine.nic_per_ms, inside) if crosses else inside
            carried = rounds * (n - 1) / n * self.size_bytes
            return _latency_ms(machine, crosses, rounds * (n - 1)) + carried / speed
        if self.kind == "send":
            speed = machine.nic_per_ms if crosses else inside
            return _latency_ms(machine, crosses, 1) + self.size_bytes / speed
        inside_ms = (m - 1) / n * self.size_bytes / inside
        network_ms = (n - m) / n * self.size_bytes / machine.nic_per_ms
        return _latency_ms(machine, crosses, 1) + max(network_ms, inside_ms)
