"""From a model and a strategy to the task graph of one training iteration.

Rules of FlexNet (TopoOpt, NSDI 2023): forward and backward of every partition; the backward pass of
a partition waits for its forward pass; each weight is all-reduced over the servers that share it
once all of them have its gradient, and nothing waits for that; partitions of producer and consumer
that share samples exchange them, activations forward and as many bytes of gradient back, over the
network if their servers differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from topox_core.errors import InputError
from topox_core.io.limits import MAX_GENERATED_TASKS
from topox_core.io.task_graph_rules import validated
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.strategy.operators import Edge, OperatorGraph
from topox_core.strategy.strategy import Strategy, check_strategy
from topox_core.workloads.parameter import compute_task


def task_graph(
    graph: OperatorGraph, strategy: Strategy, memory_gb: float | None = None
) -> TaskGraph:
    """Return the task graph of one iteration.

    Parameters
    ----------
    memory_gb
        Memory of one GPU in 10^9 bytes; the machine's own if None.

    Raises
    ------
    InputError
        If the strategy does not suit the model (see :func:`check_strategy`), or there would be more
        than ``MAX_GENERATED_TASKS`` tasks.
    """
    check_strategy(strategy, graph, memory_gb)
    tasks = list(islice(_tasks(graph, strategy), MAX_GENERATED_TASKS + 1))
    if len(tasks) > MAX_GENERATED_TASKS:
        raise InputError(
            f"would have more than {MAX_GENERATED_TASKS:,} tasks: use fewer servers",
            file=f"model {graph.name}",
        )
    return validated(
        f"{graph.title or graph.name} on {strategy.servers} servers", tasks, f"model {graph.name}"
    )


def overlaps(samples: int, producers: int, consumers: int) -> Iterator[tuple[int, int, int]]:
    """Yield (producer's partition, consumer's partition, samples that both have)."""
    for i in range(producers):
        for j in range(i * consumers // producers, -(-(i + 1) * consumers // producers)):
            yield (
                i,
                j,
                min((i + 1) * samples // producers, (j + 1) * samples // consumers)
                - max(i * samples // producers, j * samples // consumers),
            )


def _tasks(graph: OperatorGraph, strategy: Strategy) -> Iterator[Task]:
    at = {
        name: placement.servers(strategy.servers)
        for name, placement in strategy.by_operator.items()
    }
    forward: dict[tuple[str, int], list[str]] = {}
    backward: dict[tuple[str, int], list[str]] = {}
    for edge in graph.edges:
        yield from _exchange(graph, edge, at, forward, backward)
    for k, operator in enumerate(graph.operators):
        cost = operator.costs[len(at[operator.name])]
        for j, server in enumerate(at[operator.name]):
            key = operator.name, j
            yield compute_task(
                f"f.{operator.name}.{j}",
                "forward",
                tuple(forward.get(key, ())),
                server,
                cost.forward_ms,
                layer=k,
            )
            yield compute_task(
                f"b.{operator.name}.{j}",
                "backward",
                (f"f.{operator.name}.{j}", *backward.get(key, ())),
                server,
                cost.backward_ms,
                layer=k,
            )
    yield from _gradients(graph, at)


def _exchange(
    graph: OperatorGraph,
    edge: Edge,
    at: dict[str, tuple[int, ...]],
    forward: dict[tuple[str, int], list[str]],
    backward: dict[tuple[str, int], list[str]],
) -> Iterator[Task]:
    """Yield an edge's transfers, and note what each partition waits for."""
    for i, j, shared in overlaps(graph.samples, len(at[edge.producer]), len(at[edge.consumer])):
        there, here = at[edge.producer][i], at[edge.consumer][j]
        ready, gradient = f"f.{edge.producer}.{i}", f"b.{edge.consumer}.{j}"
        if there != here:
            size = shared * edge.bytes_per_sample
            names = (
                f"x.{edge.producer}.{i}-{edge.consumer}.{j}",
                f"y.{edge.consumer}.{j}-{edge.producer}.{i}",
            )
            for name, wait, ends in (
                (names[0], ready, (there, here)),
                (names[1], gradient, (here, there)),
            ):
                yield Task(
                    name,
                    "nominal_communication",
                    (wait,),
                    source=ends[0],
                    destination=ends[1],
                    size_bytes=size,
                    parallelism="mp",
                    group=edge.producer,
                )
            ready, gradient = names
        forward.setdefault((edge.consumer, j), []).append(ready)
        backward.setdefault((edge.producer, i), []).append(gradient)


def _gradients(graph: OperatorGraph, at: dict[str, tuple[int, ...]]) -> Iterator[Task]:
    """Yield an all-reduce for every weight that several servers hold."""
    for k, operator in enumerate(graph.operators):
        members = at[operator.name]
        if len(members) == 1:
            continue
        waits = tuple(f"b.{operator.name}.{j}" for j in range(len(members)))
        for weight in operator.weights:
            yield Task(
                f"sum.{operator.name}.{weight.name}",
                "all_reduce",
                waits,
                members=members,
                size_bytes=float(weight.size_bytes),
                parallelism="dp",
                group=f"dp{len(members)}",
                layer=k,
            )
