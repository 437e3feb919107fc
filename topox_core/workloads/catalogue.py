"""All workloads by name, so that nobody starts from nothing."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from topox_core.errors import errors_in_file, refuse_if
from topox_core.io.limits import MAX_GENERATED_TASKS, check_one_of
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.workloads.generators import DLRM, RANDOM_LAYERED, SERVING_BURSTS
from topox_core.workloads.workload import TRAINING_JOBS, Workload

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
    usual, values = workload.chosen({}), workload.chosen(overrides or {})
    most = _checked(workload, values, most_tasks)
    with errors_in_file(f"workload {name}"):
        tasks: list[Task] = list(islice(workload.tasks(values), most + 1))
    _check_size(len(tasks), most, workload)
    changed = [key for key in overrides or () if values[key] != usual[key]]
    title = workload.title
    if changed and workload.words is not None:
        title = workload.words(values)
    elif changed:
        words = (f"{k}={v:g}" if isinstance(v := values[k], float) else f"{k}={v}" for k in changed)
        title += f" ({', '.join(words)})"
    return validated(title, tasks, f"workload {name}"), workload.cluster(values)


def count_tasks(
    name: str, overrides: Mapping[str, object], most_tasks: int = MAX_GENERATED_TASKS
) -> int:
    """Return about how many tasks a workload's graph has, without generating it; raises InputError as :func:`generate`."""
    workload = workload_of(name)
    values = workload.chosen(overrides)
    _checked(workload, values, most_tasks)
    return workload.count(values)


def _checked(workload: Workload, values: dict[str, Any], most_tasks: int) -> int:
    """Return how many tasks there may be; raises InputError if there would be more."""
    most = min(most_tasks, MAX_GENERATED_TASKS)
    with errors_in_file(f"workload {workload.name}"):
        count = workload.count(values)
    _check_size(count, most, workload)
    return most


def _check_size(count: int, most: int, workload: Workload) -> None:
    refuse_if(
        (
            count > most,
            f"would have more than {most:,} tasks: ask for fewer servers, layers or microbatches",
        ),
        file=f"workload {workload.name}",
    )
