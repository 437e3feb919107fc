"""A rail's iteration as an ordinary task graph, so that every fabric can run it."""

from typing import Any

from topox_core.errors import InputError
from topox_core.io.limits import MAX_DEPENDENCIES, MAX_MEMBERS, MAX_TASKS
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.rails.builder import build
from topox_core.rails.folding import unfold, unfolded_size
from topox_core.rails.iteration import COMPUTE, KINDS, SEND, WORK, RailIteration, senders
from topox_core.training.job import Job


def as_task_graph(job: Job, *, by_layer: bool = False) -> tuple[TaskGraph, Cluster]:
    """Return a job's iteration as a task graph on the servers of one rail, and a cluster that suits it.

    A server is a rank. The order of a rank's computing and of a group's communications becomes
    dependencies. The cluster has two switches and two ports a server, half the NIC's speed each,
    for the two neighbours in a ring.

    Parameters
    ----------
    by_layer
        A collective for each layer, else one for all layers of a pass.

    Raises
    ------
    InputError
        If it is larger than a task graph may be.
    """
    folded = build(job, fold=True, by_layer=by_layer)
    _check_counts(job.heading, *unfolded_size(folded, job), _members(folded))
    iteration = unfold(folded, job)
    name = f"{iteration.ranks} servers of one rail, 2 OCS"
    cluster = one_port_a_switch(iteration.ranks, 2, job.machine.nic_gbps / 2, name=name)
    return validated(iteration.name, _tasks(iteration), f"iteration {iteration.name}"), cluster


def _members(iteration: RailIteration) -> int:
    """Return the members of all collectives in the job, those of folded ranks included."""
    covered = [int(iteration.stands_for[list(group.ranks)].sum()) for group in iteration.groups]
    return sum(
        covered[group]
        for group, kind in zip(iteration.group.tolist(), iteration.kind.tolist(), strict=True)
        if kind not in (COMPUTE, SEND)
    )


def _check_counts(name: str, tasks: int, dependencies: int, members: int) -> None:
    # Each task may also wait for the one before it on its rank or in its group.
    for count, most, what in (
        (tasks, MAX_TASKS, "tasks"),
        (dependencies + tasks, MAX_DEPENDENCIES, "dependencies"),
        (members, MAX_MEMBERS, "members of collectives"),
    ):
        if count > most:
            raise InputError(
                f"would have {count:,} {what}, more than the {most:,} a task graph may have: merge the layers, "
                "or use fewer replicas or microbatches",
                file=f"iteration {name}",
            )


def _tasks(iteration: RailIteration) -> list[Task]:
    tasks: list[Task] = []
    ids: list[str] = []
    last: dict[tuple[str, int], int] = {}
    ptr, before = iteration.pred_ptr.tolist(), iteration.pred_idx.tolist()
    columns = (
        iteration.kind,
        iteration.rank,
        iteration.group,
        iteration.duration_ms,
        iteration.size_bytes,
        iteration.microbatch,
        iteration.layer,
        iteration.work,
        senders(iteration),
    )
    for node, (kind, rank, number, ms, size, microbatch, layer, work, sender) in enumerate(
        zip(*(c.tolist() for c in columns), strict=True)
    ):
        label = iteration.label[node]
        ids.append(f"{node}.{label.replace(' ', '-')}")
        place = ("rank", rank) if kind == COMPUTE else ("group", number)
        waits = before[ptr[node] : ptr[node + 1]]
        if last.get(place, -1) not in (-1, *waits):
            waits.append(last[place])
        last[place] = node
        waited = tuple(ids[i] for i in waits)
        notes: dict[str, Any] = {
            "microbatch": microbatch if microbatch >= 0 else None,
            "layer": layer if layer >= 0 else None,
        }
        if kind == COMPUTE:
            stage = int(iteration.stage[rank])
            what, own = WORK[work], {"server": rank, "device": 0, "duration_ms": ms, "stage": stage}
        else:
            group = iteration.groups[number]
            notes |= {"parallelism": group.parallelism, "group": group.name, "size_bytes": size}
            what, own = KINDS[kind], {"members": group.ranks}
            if kind == SEND:
                ends = group.ranks[::-1] if sender == group.ranks[1] else group.ranks
                what, own = "communication", {"source": ends[0], "destination": ends[1]}
        tasks.append(Task(ids[node], what, waited, **own, **notes))
    return tasks
