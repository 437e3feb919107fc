"""All workloads by name, so that nobody starts from nothing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from topox_core.errors import InputError, errors_in_file
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.workloads.dlrm import DLRM
from topox_core.workloads.experts import EXPERTS
from topox_core.workloads.parameter import Parameter, Workload
from topox_core.workloads.pipeline import GPT_SMALL, LLAMA3_8B, LLAMA3_70B, PIPELINE
from topox_core.workloads.random_layered import RANDOM_LAYERED
from topox_core.workloads.sharded import FSDP

__all__ = ["MAX_TASKS", "WORKLOADS", "Parameter", "Workload", "generate"]

# Beyond this no engine is of use; generators are stopped here, before memory is spent.
MAX_TASKS = 200_000

WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (DLRM, GPT_SMALL, LLAMA3_8B, LLAMA3_70B, PIPELINE, FSDP, EXPERTS, RANDOM_LAYERED)
}


def workload_of(name: str) -> Workload:
    """Return a workload by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in WORKLOADS:
        problem = f"must be one of {', '.join(WORKLOADS)} (got {name[:80]})"
        raise InputError(problem, file="workload", field="name")
    return WORKLOADS[name]


def generate(
    name: str, overrides: Mapping[str, object] | None = None, most_tasks: int = MAX_TASKS
) -> tuple[TaskGraph, Cluster]:
    """Return a workload's task graph and cluster; same choices give the same bytes.

    Parameters
    ----------
    name
        A key of :data:`WORKLOADS`.
    overrides
        Parameters to change, as text (from the command line) or numbers.
    most_tasks
        How many tasks the graph may have, at most ``MAX_TASKS``.

    Raises
    ------
    InputError
        If the workload or a parameter is unknown, a value has the wrong type or range, or the graph
        would have more than ``most_tasks`` tasks.
    """
    workload = workload_of(name)
    known = {p.key: p for p in workload.parameters}
    values = {p.key: p.default for p in workload.parameters}
    changes = []
    for key, given in (overrides or {}).items():
        if key not in known:
            problem = f"unknown parameter (expected one of {', '.join(known)})"
            raise InputError(problem, file=f"workload {name}", field=str(key)[:80])
        values[key] = known[key].value(given, name)
        if values[key] != known[key].default:
            changes.append(
                f"{key}={values[key]:g}"
                if isinstance(values[key], float)
                else f"{key}={values[key]}"
            )
    most = min(most_tasks, MAX_TASKS)
    too_many = InputError(
        f"would have more than {most:,} tasks: ask for fewer servers, layers or microbatches",
        file=f"workload {name}",
    )
    if workload.count(values) > most:
        raise too_many
    with errors_in_file(f"workload {name}"):
        tasks: list[Task] = list(islice(workload.tasks(values), most + 1))
    if len(tasks) > most:
        raise too_many
    title = workload.title + (f" ({', '.join(changes)})" if changes else "")
    return validated(title, tasks, f"workload {name}"), workload.cluster(values)
