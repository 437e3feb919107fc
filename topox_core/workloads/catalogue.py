"""All workloads by name, so that nobody starts from nothing."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from topox_core.errors import InputError, errors_in_file, refuse_if
from topox_core.io.limits import MAX_GENERATED_TASKS, check_one_of
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.workloads.dlrm import DLRM
from topox_core.workloads.drawn import RANDOM_LAYERED, SERVING_BURSTS
from topox_core.workloads.parameter import Workload
from topox_core.workloads.training_jobs import TRAINING_JOBS

WORKLOADS: dict[str, Workload] = {
    w.name: w for w in (DLRM, *TRAINING_JOBS.values(), SERVING_BURSTS, RANDOM_LAYERED)
}


def workload_of(name: str) -> Workload:
    """Return a workload by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    check_one_of(name, WORKLOADS, file="workload", field="name")
    return WORKLOADS[name]


def generate(
    name: str, overrides: Mapping[str, object] | None = None, most_tasks: int = MAX_GENERATED_TASKS
) -> tuple[TaskGraph, Cluster]:
    """Return a workload's task graph and cluster; same choices give the same bytes.

    Parameters
    ----------
    name
        A key of :data:`WORKLOADS`.
    overrides
        Parameters to change, as text (from the command line) or numbers.
    most_tasks
        How many tasks the graph may have, at most ``MAX_GENERATED_TASKS``.

    Raises
    ------
    InputError
        If the workload or a parameter is unknown, a value has the wrong type or range, or the graph
        would have more than ``most_tasks`` tasks.
    """
    workload = workload_of(name)
    values, changes = _chosen(workload, overrides or {})
    most = _checked(workload, values, most_tasks)
    with errors_in_file(f"workload {name}"):
        tasks: list[Task] = list(islice(workload.tasks(values), most + 1))
    if len(tasks) > most:
        raise _too_many(name, most)
    title = workload.title + (f" ({', '.join(changes)})" if changes else "")
    if changes and workload.words is not None:
        title = workload.words(values)
    return validated(title, tasks, f"workload {name}"), workload.cluster(values)


def count_tasks(
    name: str, overrides: Mapping[str, object], most_tasks: int = MAX_GENERATED_TASKS
) -> int:
    """Return about how many tasks a workload's graph has, without generating it; raises InputError as :func:`generate`."""
    workload = workload_of(name)
    values, _ = _chosen(workload, overrides)
    _checked(workload, values, most_tasks)
    return workload.count(values)


def _chosen(
    workload: Workload, overrides: Mapping[str, object]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of all parameters, and those that were changed in words."""
    name = workload.name
    known = {p.key: p for p in workload.parameters}
    values: dict[str, Any] = {p.key: p.default for p in workload.parameters}
    changes = []
    for key, given in overrides.items():
        refuse_if(
            (key not in known, f"unknown parameter (expected one of {', '.join(known)})"),
            file=f"workload {name}",
            field=str(key)[:80],
        )
        value = values[key] = known[key].value(given, name)
        if value != known[key].default:
            changes.append(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}")
    return values, changes


def _checked(workload: Workload, values: dict[str, Any], most_tasks: int) -> int:
    """Return how many tasks there may be; raises InputError if there would be more."""
    most = min(most_tasks, MAX_GENERATED_TASKS)
    with errors_in_file(f"workload {workload.name}"):
        count = workload.count(values)
    if count > most:
        raise _too_many(workload.name, most)
    return most


def _too_many(name: str, most: int) -> InputError:
    return InputError(
        f"would have more than {most:,} tasks: ask for fewer servers, layers or microbatches",
        file=f"workload {name}",
    )
