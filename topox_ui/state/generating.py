"""Large task graphs are generated beside the page, in a process that Cancel and the end of the session end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import FunctionRun
from topox_core.runs.stopping import Stop
from topox_core.workloads.catalogue import count_tasks, generate
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import RunKind, call_or_refuse, run_owner

AT_ONCE = 20_000  # tasks; more take longer than anybody would look at a page that does not answer
GENERATE = RunKind("generate", 1, cancel_help="Stops at once; what was loaded stays.")
Parameters = tuple[tuple[str, str], ...]
Generated = tuple[TaskGraph, Cluster]


class NotYet(Exception):
    """The task graph is being generated beside the page."""


def generated(name: str, parameters: Parameters) -> Generated | None:
    """Return a large workload's task graph, or None if the workload is small; raises InputError where it cannot be.

    Raises
    ------
    NotYet
        If it is being generated; the run begins with the first call.
    """
    owner, key = run_owner(), (name, parameters)
    if key in owner.results(GENERATE):
        graph: Generated = owner.results(GENERATE)[key]
        return graph
    if key in owner.refusals(GENERATE):
        raise owner.refusals(GENERATE)[key]
    if count_tasks(name, dict(parameters), server_limits().most_tasks) <= AT_ONCE:
        return None
    if owner.run(GENERATE, key) is None:
        owner.start(
            GENERATE, key, lambda _places: FunctionRun(partial(_generate, name, parameters))
        )
    raise NotYet


def _generate(
    name: str, parameters: Parameters, stop: Stop, _on_step: Callable[[object], None]
) -> Generated | None:
    most, file = server_limits().most_tasks, f"workload {name}"
    return call_or_refuse(
        "was not generated", file, generate, name, dict(parameters), most, stop=stop
    )
