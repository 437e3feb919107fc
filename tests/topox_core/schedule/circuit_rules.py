"""The rules of circuits on continuous time for any execution, asked of the independent checker."""

import numpy as np

from tests.topox_core.check.broken_schedules import made, said
from topox_core.check.report import CheckReport
from topox_core.model.execution import Execution
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, TransferGraph

COLUMNS = ("switch", "source", "destination", "source_port", "destination_port")
TIMES = ("setup_ms", "start_ms", "end_ms")


def broken_rules(execution: Execution) -> list[str]:
    """Every rule that an execution breaks, in words; empty for a valid one."""
    return list(checked(execution).lines())


def checked(execution: Execution) -> CheckReport:
    """What the checker says of an execution.

    Each node of its graph is checked as a task of its own: how collectives were lowered is not asked.
    """
    graph, circuits = execution.graph, execution.circuits
    columns = {name: getattr(circuits, name).tolist() for name in (*COLUMNS, *TIMES)}
    columns["task"] = [f"n{i}" for i in circuits.node]
    rows = [{name: values[row] for name, values in columns.items()} for row in range(len(circuits))]
    spans = zip(execution.start_ms.tolist(), execution.end_ms.tolist(), strict=True)
    times = {f"n{i}": span for i, span in enumerate(spans)}
    tasks = [task_of(graph, i) for i in range(len(graph))]
    return made(tasks, execution.cluster, times, rows).checked(said(clock="continuous"))


def task_of(graph: TransferGraph, i: int) -> Task:
    after = tuple(f"n{j}" for j in graph.pred_idx[graph.pred_ptr[i] : graph.pred_ptr[i + 1]])
    duration_ms, size_bytes = (
        None if np.isnan(value) else float(value)
        for value in (graph.duration_ms[i], graph.size_bytes[i])
    )
    if graph.kind[i] == COMPUTE:
        place = {"server": int(graph.server[i]), "device": int(graph.device[i])}
        return Task(f"n{i}", "forward", dependencies=after, duration_ms=duration_ms, **place)
    if graph.kind[i] == TRANSFER:
        ends = {"source": int(graph.source[i]), "destination": int(graph.destination[i])}
        long = {"size_bytes": size_bytes} if duration_ms is None else {"duration_ms": duration_ms}
        return Task(f"n{i}", "communication", dependencies=after, **ends, **long)
    return Task(f"n{i}", "barrier", dependencies=after)
