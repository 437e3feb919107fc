"""What a workload is: a generator with named, ranged parameters; training jobs as workloads, every field a parameter."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from topox_core.errors import InputError, errors_at, look_up, printable
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.schema.fields import Field, fields_of, made_field, problems
from topox_core.training.job import JOBS, Job
from topox_core.training.machine import Machine
from topox_core.training.pipeline.graph import Unfolding, suggested_cluster
from topox_core.training.pipeline.program import Program
from topox_core.training.pipeline.steps import program
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import Shape


@dataclass(frozen=True)
class Parameter:
    """One choice of a workload.

    The type is that of ``default``: int, float or str. Numbers lie from ``least`` to ``most``;
    words (and numbers, if given) are one of ``choices``. ``group`` is what it belongs to, if many do.
    """

    key: str
    default: int | float | str
    unit: str
    meaning: str
    least: float = 0.0
    most: float = math.inf
    choices: tuple[int | str, ...] = ()
    group: str = ""

    @property
    def range(self) -> str:
        """What a value may be, in words."""
        if self.choices:
            return "one of " + ", ".join(str(c) for c in self.choices)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.least:,.12g} to {self.most:,.12g}"

    def value(self, given: object, workload: str) -> int | float | str:
        """Return ``given`` (text or a number) as the parameter's type.

        Raises
        ------
        InputError
            If it has the wrong type or lies outside the range.
        """
        limits: dict[str, Any] = {} if self.choices else {"ge": self.least, "le": self.most}
        one = made_field(type(self.default), choices=self.choices, **limits)
        value: int | float | str = one.value_of(str(given).strip())
        if any(problems(one.hint, value)):
            raise InputError(
                f"must be {self.range} (got {str(given)[:80]})",
                file=f"workload {workload}",
                field=self.key,
            )
        return value


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
    tasks
        Yields the tasks one by one.
    count
        How many tasks it yields at least, without making one: exactly, unless chance decides. What
        is too large is refused before any work begins.
    cluster
        Suggests a cluster that fits.
    words
        Says what it is once parameters were changed; None: its title and what was changed.
    """

    name: str
    title: str
    meaning: str
    source: str
    parameters: tuple[Parameter, ...]
    tasks: Callable[[dict[str, Any]], Iterator[Task]]
    count: Callable[[dict[str, Any]], int]
    cluster: Callable[[dict[str, Any]], Cluster]
    words: Callable[[dict[str, Any]], str] | None = None

    def chosen(self, given: Mapping[str, object], place: str = "") -> dict[str, Any]:
        """Return the values of all parameters; ``place``: what a field's name begins with, if a study gives them.

        Raises
        ------
        InputError
            If a parameter is unknown, or a value has the wrong type or range.
        """
        file = "" if place else f"workload {self.name}"
        known = {one.key: one for one in self.parameters}
        values: dict[str, Any] = {one.key: one.default for one in self.parameters}
        for key, value in given.items():
            field = f"{place}{printable(str(key))}"
            parameter = look_up(key, known, "parameter", file=file, field=field)
            with errors_at(file=file, field=field):
                values[key] = parameter.value(value, self.name)
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
YES_NO = ("no", "yes")
_MAX = 1_000_000
# What a job's parts say of themselves, in the order in which they are shown; not their names.
FIELDS = {
    name: (part, field)
    for part, kind in (
        ("plan", Plan),
        ("schedule", Schedule),
        ("shape", Shape),
        ("machine", Machine),
    )
    for name, field in fields_of(kind).items()
    if field.description
}
PORTS = Parameter(
    "ports", 2, "", "ports of a server, each on a switch of its own", 1, 64, group="machine"
)


def workload_of(job: Job, ports: int = PORTS.default) -> Workload:  # type: ignore[assignment]
    """Return a job as a workload."""
    parameters = [
        _parameter(part, field, getattr(getattr(job, part), field.name))
        for part, field in FIELDS.values()
    ]

    def made(values: dict[str, Any]) -> Job:
        return _changed(job, values)

    def all_tasks(values: dict[str, Any]) -> Iterator[Task]:
        return Unfolding(_program(made(values))).tasks()

    def cluster(values: dict[str, Any]) -> Cluster:
        return suggested_cluster(made(values), values["ports"])

    return Workload(
        job.name,
        job.title,
        f"{job.words}.",
        f"{SOURCE}; model: {job.shape.source}",
        (*parameters, replace(PORTS, default=ports)),
        all_tasks,
        lambda values: _count(made(values)),
        cluster,
        lambda values: made(values).words,
    )


def job_of(name: str, parameters: Mapping[str, object]) -> Job | None:
    """Return the job that a workload with changed parameters is; None of a workload that is none.

    Raises
    ------
    InputError
        If a parameter is unknown or its value cannot be.
    """
    workload = TRAINING_JOBS.get(name)
    return None if workload is None else _changed(JOBS[name], workload.chosen(parameters))


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
    wanted, own = _values(job), _values(base)
    return tuple((key, _text(value)) for key, value in wanted.items() if value != own[key])


def _values(job: Job) -> dict[str, Any]:
    return {key: _as_value(getattr(getattr(job, part), key)) for key, (part, _) in FIELDS.items()}


def _as_value(value: Any) -> Any:
    """Return a field as a parameter has it: words for truth, 0 for nothing."""
    if isinstance(value, bool):
        return YES_NO[value]
    return 0.0 if value is None else value


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _changed(base: Job, values: Mapping[str, Any]) -> Job:
    changes = {}
    for key, value in values.items():
        if key not in FIELDS:
            continue
        part, _ = FIELDS[key]
        old = getattr(getattr(base, part), key)
        new = value == "yes" if isinstance(old, bool) else value
        if key == "iteration_ms":
            new = value or None
        if new != old:
            changes[f"{part}__{key}"] = new
    return base.changed(**changes) if changes else base


def _parameter(part: str, field: Field, value: Any) -> Parameter:
    default, limits = _as_value(value), field.limits
    choices = YES_NO if isinstance(value, bool) else field.choices
    least, most = (0.0, math.inf) if choices else (float(limits.ge or 0), float(limits.le or 0))
    if field.name == "iteration_ms":  # where files say null
        least = 0.0
    return Parameter(
        field.name, default, field.unit, field.description, least, most, choices, group=part
    )


def _count(job: Job) -> int:
    """Count the tasks; where the passes alone are too many, the program is not even built."""
    passes = 2 * job.chunks * job.plan.microbatches * job.plan.replicas
    return passes if passes > _MAX else Unfolding(_program(job)).count()


@lru_cache(maxsize=2)
def _program(job: Job) -> Program:
    return program(job)


TRAINING_JOBS = {
    job.name: workload_of(job, ports=4 if job.name == "llama3-70b" else 2) for job in JOBS.values()
}
