"""What a workload is: a generator with parameters, which are fields; training jobs as workloads, every field a parameter."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Protocol

from topox_core.errors import look_up, printable
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.schema.fields import Field, fields_of, text_of
from topox_core.schema.records import check_value
from topox_core.training.job import JOBS, SETTINGS, Job
from topox_core.training.pipeline.graph import Unfolding, suggested_cluster
from topox_core.training.pipeline.program import Program
from topox_core.training.pipeline.steps import program


class Generator(Protocol):
    """A workload with values for its parameters."""

    @property
    def words(self) -> str:
        """What it is; empty: the title of the workload and what was changed."""

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks one by one."""

    def count(self) -> int:
        """Return how many tasks it yields at least, without making one: exactly, unless chance decides."""

    def cluster(self) -> Cluster:
        """Return a cluster that fits."""


@dataclass(frozen=True)
class Workload:
    """A generator of task graphs.

    Attributes
    ----------
    name, title, meaning
        The word on the command line, a heading, and a line on what it models.
    source
        Where its formulas and numbers come from.
    parameters
        Its choices, in the order they are shown.
    made
        Takes values of them by name.
    """

    name: str
    title: str
    meaning: str
    source: str
    parameters: tuple[Field, ...]
    made: Callable[..., Generator]

    def chosen(self, given: Mapping[str, object], place: str = "") -> dict[str, Any]:
        """Return the values of all parameters; ``place``: what a field's name begins with, if a study gives them.

        Raises
        ------
        InputError
            If a parameter is unknown, or a value has the wrong type or range.
        """
        file = "" if place else f"workload {self.name}"
        known = {one.name: one for one in self.parameters}
        values: dict[str, Any] = {one.name: one.default for one in self.parameters}
        for key, value in given.items():
            field = f"{place}{printable(str(key))}"
            parameter = look_up(key, known, "parameter", file=file, field=field)
            # Numbers as text has them: 8.0 is a whole one.
            plain = isinstance(value, bool | None)
            values[key] = value if plain else parameter.value_of(str(value).strip())
            check_value(parameter.hint, values[key], file=file, field=field)
        return values


def compute_task(
    name: str, kind: str, waits: tuple[str, ...], server: int, duration_ms: float, **notes: Any
) -> Task:
    """Return a task that computes on the first device of a server."""
    return Task(
        name, kind, dependencies=waits, server=server, device=0, duration_ms=duration_ms, **notes
    )


SOURCE = (
    "one training iteration in closed form; two shares were fitted to measured A100 iterations, other "
    "machines are transferred"
)
_MAX = 1_000_000
PORTS = replace(
    fields_of(Cluster)["ports_per_server"],
    name="ports",
    description="ports of a server, each on a switch of its own",
    group="machine",
)


@dataclass(frozen=True)
class GeneratedJob:
    """The task graph of a job, whose servers have so many ports."""

    job: Job
    ports: int

    @property
    def words(self) -> str:
        """The job in one line."""
        return self.job.words

    def tasks(self) -> Iterator[Task]:
        """Yield the passes, exchanges and updates of all replicas."""
        return Unfolding(_program(self.job)).tasks()

    def count(self) -> int:
        """Count the tasks; where the passes alone are too many, the program is not even built."""
        job = self.job
        passes = 2 * job.chunks * job.plan.microbatches * job.plan.replicas
        return passes if passes > _MAX else Unfolding(_program(job)).count()

    def cluster(self) -> Cluster:
        """Return its servers, whose ports carry what their network cards do."""
        return suggested_cluster(self.job, self.ports)


def workload_of(job: Job, ports: int = 2) -> Workload:
    """Return a job as a workload."""
    parameters = [replace(SETTINGS[name], default=value) for name, value in job.values.items()]
    return Workload(
        job.name,
        job.title,
        f"{job.words}.",
        f"{SOURCE}; model: {job.shape.source}",
        (*parameters, replace(PORTS, default=ports)),
        partial(_generated, job),
    )


def job_of(name: str, parameters: Mapping[str, object]) -> Job | None:
    """Return the job that a workload with changed parameters is; None of a workload that is none.

    Raises
    ------
    InputError
        If a parameter is unknown or its value cannot be.
    """
    workload = TRAINING_JOBS.get(name)
    return None if workload is None else _generated(JOBS[name], **workload.chosen(parameters)).job


def as_workload(job: Job) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a job as the name of a workload and the parameters that differ from its own.

    The known job of the same name is taken, else the first one of the same model, else the one from which
    fewest parameters differ.
    """
    alike = [one for one in JOBS.values() if job.name == one.name]
    alike = alike or [one for one in JOBS.values() if job.shape.name == one.shape.name]
    found = [(base.name, _differences(job, base)) for base in alike[:1] or JOBS.values()]
    return min(found, key=lambda one: len(one[1]))


def _differences(job: Job, base: Job) -> tuple[tuple[str, str], ...]:
    own = base.values
    return tuple((key, text_of(value)) for key, value in job.values.items() if value != own[key])


def _generated(base: Job, *, ports: int, **values: Any) -> GeneratedJob:
    return GeneratedJob(base.changed(**values), ports)


@lru_cache(maxsize=2)
def _program(job: Job) -> Program:
    return program(job)


TRAINING_JOBS = {
    job.name: workload_of(job, ports=4 if job.name == "llama3-70b" else 2) for job in JOBS.values()
}
