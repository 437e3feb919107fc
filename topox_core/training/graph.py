"""The task graph of a job: the program of one replica, unfolded to all of them and placed on servers.

A tensor-parallel group is one device. Devices are numbered context first, then data, then pipeline, and
fill the servers in that order; a group wider than a server has the device of its first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topox_core.errors import InputError, errors_in_file
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.training.job import Job
from topox_core.training.program import Program, Spread, Step, instances
from topox_core.training.steps import program

MAX_TASKS = 200_000


def task_graph(job: Job, most_tasks: int = MAX_TASKS) -> TaskGraph:
    """Return the task graph of a job's iteration.

    Raises
    ------
    InputError
        If there would be more than ``most_tasks`` tasks.
    """
    with errors_in_file(f"job {job.name}"):
        built = program(job)
        count = sum(built.copies())
        if count > most_tasks:
            problem = f"would have {count:,} tasks, more than {most_tasks:,}: use fewer microbatches or GPUs"
            raise InputError(problem, item="plan", field="microbatches")
    return validated(job.title or job.words, list(tasks(built)), f"job {job.name}")


def suggested_cluster(job: Job, ports: int = 2) -> Cluster:
    """Return a cluster for the graph: all ports of a server together carry what its network cards do."""
    machine = job.machine
    servers = job.servers
    total_gbps = machine.gpus_per_server * machine.nic_gbps * machine.network_share
    return Cluster(
        servers=servers,
        ports_per_server=ports,
        switches=ports,
        ports_per_switch=servers,
        port_gbps=total_gbps / ports,
        devices_per_server=max(1, machine.gpus_per_server // job.plan.tensor),
        name=f"{servers} servers, {ports} OCS",
    )


def tasks(built: Program) -> Iterator[Task]:
    """Yield the tasks of all replicas: computing and messages once a replica, collectives once a group."""
    return _Unfolding(built).tasks()


class _Unfolding:
    def __init__(self, built: Program) -> None:
        self.job, self.steps = built.job, built.steps
        self.replicas = built.job.plan.replicas
        self.instance = instances(built.job)
        self.spread = {step.name: step.spread for step in built.steps}
        self.word = {step.name: (step.word, step.place) for step in built.steps}
        # Of two spreads: for each group of the second, the groups of the first that it meets.
        self.met = {(one, other): self._met(one, other) for one in Spread for other in Spread}
        # What the ranks of one server carry together of a tensor-parallel group.
        self.together = min(self.job.plan.tensor, self.job.machine.gpus_per_server)

    def _met(self, one: Spread, other: Spread) -> list[list[int]]:
        found: list[dict[int, None]] = [{} for _ in range(max(self.instance[other]) + 1)]
        for first, second in zip(self.instance[one], self.instance[other], strict=True):
            found[second][first] = None
        return [list(each) for each in found]

    def tasks(self) -> Iterator[Task]:
        """Yield every task."""
        for step in self.steps:
            for group in range(max(self.instance[step.spread]) + 1):
                yield self._task(step, group)

    def _name(self, name: str, group: int) -> str:
        word, place = self.word[name]
        spread = self.spread[name]
        if spread is Spread.REPLICA:
            return f"{word}.r{group}{place}"
        return f"{word}{place}" if spread is Spread.WEIGHTS else f"{word}.g{group}{place}"

    def _place(self, stage: int, replica: int) -> tuple[int, int]:
        g, t = self.job.machine.gpus_per_server, self.job.plan.tensor
        server, gpu = divmod((stage * self.replicas + replica) * t, g)
        return server, gpu // t

    def _task(self, step: Step, group: int) -> Task:
        waits = tuple(
            self._name(name, one)
            for name in step.waits
            for one in self.met[self.spread[name], step.spread][group]
        )
        notes: dict[str, Any] = {
            "stage": step.stage,
            "microbatch": step.microbatch if step.microbatch >= 0 else None,
            "layer": step.layer if step.layer >= 0 else None,
        }
        name = self._name(step.name, group)
        if step.computes:
            server, device = self._place(step.stage, group)
            ms = round(step.ms, 9)
            return Task(name, step.kind, waits, server, device, ms, **notes)
        if step.kind == "send":
            return self._sent(step, group, name, waits, notes)
        size = step.size_bytes * self.together
        if step.kind == "all_to_all" and step.group is not None:
            size *= step.group.together
        return Task(
            name,
            step.kind,
            waits,
            members=self._members(step, group),
            size_bytes=float(size),
            parallelism=step.parallelism,
            group=f"{step.parallelism}.s{step.stage}.g{group}",
            **notes,
        )

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
            return Task(name, "barrier", waits)
        return Task(
            name,
            "communication",
            waits,
            source=source,
            destination=destination,
            size_bytes=float(step.size_bytes * self.together),
            parallelism=step.parallelism,
            group=f"{step.parallelism}.r{group}",
            **notes,
        )

    def _members(self, step: Step, group: int) -> tuple[int, ...]:
        stages = [step.stage] if step.other < 0 else [step.stage, step.other]
        replicas = [q for q, one in enumerate(self.instance[step.spread]) if one == group]
        servers = {self._place(stage, q)[0] for stage in stages for q in replicas}
        return tuple(sorted(servers))
