"""Which GPUs communicate: the groups of a job, and how many of a group are in one server."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.job import Job


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
