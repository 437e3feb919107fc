"""The task graph of a job: the program of one replica, unfolded to all of them and placed on servers.

A tensor-parallel group is one device. Devices are numbered context first, then data, then pipeline, and
fill the servers in that order; a group wider than a server has the device of its first one.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from topox_core.errors import errors_in_file, refuse_if
from topox_core.io.limits import MAX_GENERATED_TASKS
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.training.job import Job
from topox_core.training.pipeline.program import Program, Spread, Step, instances, meetings
from topox_core.training.pipeline.steps import program

# How much less the taste of one sender varies than the popularity of an expert.
OWN_TASTE = 0.25


@lru_cache(maxsize=4096)
def _drawn(ranks: int, skew: float, draw: str) -> tuple[tuple[float, ...], ...]:
    rng = random.Random(draw)
    popular = [math.exp(skew * rng.gauss(0, 1)) for _ in range(ranks)]
    rows = [
        [one * math.exp(OWN_TASTE * skew * rng.gauss(0, 1)) for one in popular]
        for _ in range(ranks)
    ]
    return tuple(tuple(one / sum(row) for one in row) for row in rows)


def routing(job: Job, group: int, microbatch: int, layer: int) -> tuple[tuple[float, ...], ...]:
    """Return the routing of a layer and microbatch in one of the groups that share experts.

    Of the tokens of rank i, entry j of row i is the part that goes to the experts of rank j; each
    row adds up to 1. Popularities are log-normal with the spread ``skew`` and drawn from the job's
    seed, so that the same job always routes alike.
    """
    draw = f"{job.plan.seed} {group} {microbatch} {layer}"
    return _drawn(job.plan.expert, job.plan.skew, draw)


def task_graph(job: Job, most_tasks: int = MAX_GENERATED_TASKS) -> TaskGraph:
    """Return the task graph of a job's iteration.

    Raises
    ------
    InputError
        If there would be more than ``most_tasks`` tasks.
    """
    with errors_in_file(f"job {job.name}"):
        return graph_of(program(job), most_tasks)


def graph_of(built: Program, most_tasks: int, one_rail: bool = False) -> TaskGraph:
    """Return the task graph of a program, with ``one_rail`` the bytes of one GPU of each server.

    Raises
    ------
    InputError
        If there would be more than ``most_tasks`` tasks.
    """
    job, unfolding = built.job, Unfolding(built, one_rail)
    count = unfolding.count()
    refuse_if(
        (
            count > most_tasks,
            f"would have {count:,} tasks, more than {most_tasks:,}: use fewer microbatches or GPUs",
        ),
        item="plan",
        field="microbatches",
    )
    return validated(job.heading, list(unfolding.tasks()), f"job {job.name}")


def suggested_cluster(job: Job, ports: int = 2) -> Cluster:
    """Return a cluster for the graph: all ports of a server together carry what its network cards do."""
    machine = job.machine
    servers = job.servers
    total_gbps = machine.gpus_per_server * machine.network_gbps
    return one_port_a_switch(
        servers,
        ports,
        total_gbps / ports,
        devices_per_server=max(1, machine.gpus_per_server // job.plan.tensor),
        name=f"{servers} servers, {ports} OCS",
    )


class Unfolding:
    """A program on all its replicas, with ``one_rail`` with the bytes of one GPU of each server."""

    def __init__(self, built: Program, one_rail: bool = False) -> None:
        self.job, self.steps = built.job, built.steps
        self.replicas = built.job.plan.replicas
        self.instance = instances(built.job)
        self.step = {step.name: step for step in built.steps}
        self.met = meetings(self.instance)
        # What the ranks of one server carry together of a tensor-parallel group.
        together = min(self.job.plan.tensor, self.job.machine.gpus_per_server)
        self.together = 1 if one_rail else together

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks of all replicas: computing and messages once a replica, collectives once a group."""
        for step in self.steps:
            for group in range(max(self.instance[step.spread]) + 1):
                if self._uneven(step):
                    yield from self._transfers(step, group)
                else:
                    yield self._task(step, group)

    def _name(self, step: Step, group: int) -> str:
        if step.spread is Spread.WEIGHTS:
            return step.name
        kind = "r" if step.spread is Spread.REPLICA else "g"
        return f"{step.word}.{kind}{group}{step.place}"

    def _place(self, stage: int, replica: int) -> tuple[int, int]:
        g, t = self.job.machine.gpus_per_server, self.job.plan.tensor
        server, gpu = divmod((stage * self.replicas + replica) * t, g)
        return server, gpu // t

    def _task(self, step: Step, group: int) -> Task:
        waits = self._waits(step.waits, step.spread, group)
        notes = self._notes(step)
        name = self._name(step, group)
        if step.computes:
            server, device = self._place(step.stage, group)
            ms = round(step.ms + self._more_ms(step, group), 9)
            return Task(
                name,
                step.kind,
                dependencies=waits,
                server=server,
                device=device,
                duration_ms=ms,
                **notes,
            )
        if step.kind == "send":
            return self._sent(step, group, name, waits, notes)
        size = step.size_bytes * self.together
        if step.kind == "all_to_all" and step.group is not None:
            size *= step.group.together
        return Task(
            name,
            step.kind,
            dependencies=waits,
            members=self._members(step, group),
            size_bytes=float(size),
            parallelism=step.parallelism,
            group=f"{step.parallelism}.s{step.stage}.g{group}",
            **notes,
        )

    def count(self) -> int:
        """Return how many tasks there are."""
        copies = {spread: max(many) + 1 for spread, many in self.instance.items()}
        return sum(
            sum(self._pairs(step, group) for group in range(copies[step.spread]))
            if self._uneven(step)
            else copies[step.spread]
            for step in self.steps
        )

    def _pairs(self, step: Step, group: int) -> int:
        """Return how many transfers an uneven exchange is."""
        together = Counter(
            self._place(step.stage, one)[0] for one in self._replicas(step.spread, group)
        )
        members = sum(together.values())
        return sum(here * (members - here) for here in together.values())

    def _waits(self, names: Iterable[str], spread: Spread, group: int) -> tuple[str, ...]:
        """Return the tasks that a step's own wait for."""
        found: list[str] = []
        for step in map(self.step.__getitem__, names):
            if self._uneven(step):
                for replica in self._replicas(spread, group):
                    found += self._arrivals(step, replica)
            else:
                found += [self._name(step, one) for one in self.met[step.spread][spread][group]]
        return tuple(dict.fromkeys(found))

    def _replicas(self, spread: Spread, group: int) -> list[int]:
        return self.met[Spread.REPLICA][spread][group]

    @staticmethod
    def _notes(step: Step) -> dict[str, Any]:
        return {
            "stage": step.stage,
            "microbatch": step.microbatch if step.microbatch >= 0 else None,
            "layer": step.layer if step.layer >= 0 else None,
        }

    # -- tokens that choose experts unevenly -----------------------------------------------------

    def _uneven(self, step: Step) -> bool:
        return step.kind == "all_to_all" and self.job.plan.skew > 0

    def _more_ms(self, step: Step, replica: int) -> float:
        """Return how much longer the experts of a replica work for the rows that they are sent."""
        if not step.loaded_ms or not self.job.plan.skew:
            return 0.0
        group = self.instance[Spread.EXCHANGE][replica]
        rank = self._replicas(Spread.EXCHANGE, group).index(replica)
        share = routing(self.job, group, step.microbatch, step.layer)
        # How many ranks' tokens its experts are sent; 1 if routing is even.
        return (sum(row[rank] for row in share) - 1) * step.loaded_ms

    def _transfers(self, step: Step, group: int) -> Iterator[Task]:
        """Yield a transfer for each two replicas in different servers; each sends once its own tokens are there."""
        share = routing(self.job, group, step.microbatch, step.layer)
        members = self._replicas(step.spread, group)
        servers = [self._place(step.stage, replica)[0] for replica in members]
        for i, source in enumerate(servers):
            waits = self._waits(step.waits, Spread.REPLICA, members[i])
            for j, destination in enumerate(servers):
                if source != destination:
                    part = share[j][i] if step.homeward else share[i][j]
                    yield Task(
                        f"{self._name(step, group)}.{i}-{j}",
                        "communication",
                        dependencies=waits,
                        source=source,
                        destination=destination,
                        size_bytes=float(round(step.size_bytes * self.together * part)),
                        parallelism=step.parallelism,
                        group=f"{step.parallelism}.s{step.stage}.g{group}",
                        **self._notes(step),
                    )

    def _arrivals(self, step: Step, replica: int) -> Iterator[str]:
        """Yield what a replica waits for to have its tokens: transfers, and who is in its own server."""
        group = self.instance[step.spread][replica]
        members = self._replicas(step.spread, group)
        own = self._place(step.stage, replica)[0]
        for i, other in enumerate(members):
            if self._place(step.stage, other)[0] == own:
                yield from self._waits(step.waits, Spread.REPLICA, other)
            else:
                yield f"{self._name(step, group)}.{i}-{members.index(replica)}"

    def _sent(
        self,
        step: Step,
        group: int,
        name: str,
        waits: tuple[str, ...],
        notes: dict[str, Any],
    ) -> Task:
        source, destination = (self._place(stage, group)[0] for stage in (step.stage, step.other))
        if source == destination:
            return Task(name, "barrier", dependencies=waits)
        return Task(
            name,
            "communication",
            dependencies=waits,
            source=source,
            destination=destination,
            size_bytes=float(step.size_bytes * self.together),
            parallelism=step.parallelism,
            group=f"{step.parallelism}.r{group}",
            **notes,
        )

    def _members(self, step: Step, group: int) -> tuple[int, ...]:
        stages = [step.stage] if step.other < 0 else [step.stage, step.other]
        replicas = self._replicas(step.spread, group)
        servers = {self._place(stage, q)[0] for stage in stages for q in replicas}
        return tuple(sorted(servers))
