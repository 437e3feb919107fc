"""A strategy: into how many partitions each operator is split, and on which servers they are; and the task graph of its iteration.

Rules of FlexNet (TopoOpt, NSDI 2023): forward and backward of every partition; the backward pass of
a partition waits for its forward pass; each weight is all-reduced over the servers that share it
once all of them have its gradient, and nothing waits for that; partitions of producer and consumer
that share samples exchange them, activations forward and as many bytes of gradient back, over the
network if their servers differ.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from typing import Annotated, Self

from topox_core.errors import InputError, printable, refuse_if, shown, unknown
from topox_core.io.content import FileFormat, entries_of, named, read_object, without_header
from topox_core.io.limits import MAX_GENERATED_TASKS, STRATEGY, check_number, check_whole, is_whole
from topox_core.io.task_graph_rules import validated
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schema.fields import PRINTABLE, setting
from topox_core.schema.records import check_values, from_values
from topox_core.strategy.operators import Edge, OperatorGraph
from topox_core.workloads.workload import compute_task

MAX_NAME = 200
Name = Annotated[str, setting(min_length=1, max_length=MAX_NAME, without=PRINTABLE)]


@dataclass(frozen=True, slots=True)
class Placement:
    """One operator's configuration: partition j of p is on server (start + j * N/p) mod N of N."""

    operator: Name
    partitions: int
    start: int = 0

    def servers(self, servers: int) -> tuple[int, ...]:
        """Return the server of every partition."""
        stride = servers // self.partitions
        return tuple((self.start + j * stride) % servers for j in range(self.partitions))


@dataclass(frozen=True)
class Strategy:
    """A configuration for every operator of a model, in the model's order."""

    model: Name
    servers: Annotated[int, setting("Servers", ge=1)]
    placements: tuple[Placement, ...]

    @cached_property
    def by_operator(self) -> dict[str, Placement]:
        """Configurations by operator."""
        return {placement.operator: placement for placement in self.placements}

    def changed(self, placements: Iterable[Placement]) -> Self:
        """Return the strategy with some operators configured otherwise."""
        new = {placement.operator: placement for placement in placements}
        return replace(self, placements=tuple(new.get(p.operator, p) for p in self.placements))


def data_parallel(graph: OperatorGraph, servers: int) -> Strategy:
    """Return every operator split over all servers; what cannot be split, round robin."""
    placements, whole = [], 0
    for operator in graph.operators:
        most = graph.choices(operator, servers)[-1]
        start = 0
        if most == 1:
            start, whole = whole % servers, whole + 1
        placements.append(Placement(operator.name, most, start))
    return Strategy(graph.name, servers, tuple(placements))


def spread(graph: OperatorGraph, servers: int) -> Strategy:
    """Return every operator whole on one server, servers filled evenly by memory.

    The fall-back where a full copy of the model does not fit on a server.
    """
    sizes = [operator.costs[1].memory_bytes * operator.gpus for operator in graph.operators]
    total = sum(sizes) or 1.0
    before = [0.0, *accumulate(sizes)]
    placements = [
        Placement(
            operator.name, 1, min(servers - 1, int(servers * (before[k] + sizes[k] / 2) / total))
        )
        for k, operator in enumerate(graph.operators)
    ]
    return Strategy(graph.name, servers, tuple(placements))


def blocks(graph: OperatorGraph, servers: int, count: int) -> Strategy:
    """Return ``count`` blocks of operators, each data parallel on its share of the servers.

    Blocks are even in weights and in the time data parallel would take; block i of k is on servers
    i, i + k, i + 2k and so on. What cannot be split so stays as in :func:`data_parallel`.
    """
    base = data_parallel(graph, servers)
    share = servers // count
    rows = [
        (k, float(operator.parameters), operator.costs[placement.partitions].forward_ms)
        for k, (operator, placement) in enumerate(
            zip(graph.operators, base.placements, strict=True)
        )
        if share in graph.choices(operator, servers)
    ]
    weights, times = sum(row[1] for row in rows) or 1.0, sum(row[2] for row in rows) or 1.0
    done, changed = 0.0, []
    for k, parameters, forward_ms in rows:
        size = (parameters / weights + forward_ms / times) / 2
        changed.append(
            Placement(
                graph.operators[k].name, share, min(count - 1, int(count * (done + size / 2)))
            )
        )
        done += size
    return base.changed(changed)


def check_servers(servers: object) -> None:
    """Refuse a number of servers that is none.

    Raises
    ------
    InputError
        If it is not a whole number of at least 1.
    """
    check_whole(servers, file="strategy", field="servers")


def check_strategy(
    strategy: Strategy, graph: OperatorGraph, memory_gb: float | None = None, file: str = "strategy"
) -> None:
    """Check that a strategy configures every operator of the model and fits servers and memory.

    Parameters
    ----------
    memory_gb
        Memory of one GPU in 10^9 bytes; the machine's own if None.

    Raises
    ------
    InputError
        For the first thing that is wrong: an operator missing, unknown or given twice, a number of
        partitions that does not divide servers or samples or has no cost, a start that is no
        server, too much memory.
    """
    check_servers(strategy.servers)
    seen = _check_placements(strategy, graph, file)
    missing = [operator.name for operator in graph.operators if operator.name not in seen]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise InputError(f"is not configured{more}", file=file, item=f"operator {missing[0]}")
    if problem := memory_problem(strategy, graph, server_limit(graph, memory_gb)):
        raise InputError(problem, file=file, field="memory_gb")


def _check_placements(strategy: Strategy, graph: OperatorGraph, file: str) -> set[str]:
    """Refuse a configuration that is not possible or given twice; return the operators."""
    seen: set[str] = set()
    for placement in strategy.placements:
        check_placement(placement, graph, strategy.servers, file)
        refuse_if(
            (placement.operator in seen, "is configured twice"),
            file=file,
            item=f"operator {placement.operator}",
        )
        seen.add(placement.operator)
    return seen


def check_placement(
    placement: Placement, graph: OperatorGraph, servers: int, file: str = "strategy"
) -> None:
    """Check that one operator's configuration is possible.

    Raises
    ------
    InputError
        If it is not; operator and field are named.
    """
    if placement.operator not in graph.position:
        raise InputError(
            f"is an {unknown(placement.operator, graph.position, 'operator')} of model {graph.name}"
            if len(graph.operators) <= 8
            else f"is not an operator of model {graph.name}",
            file=file,
            item=f"operator {printable(str(placement.operator))}",
        )
    item = f"operator {placement.operator}"
    p, start = placement.partitions, placement.start
    check_whole(p, field="partitions", file=file, item=item)
    costs = graph.operator(placement.operator).costs
    refuse_if(
        (p > servers, f"{p} partitions do not fit on {servers} servers"),
        (servers % p, f"must divide the number of servers, {servers} (got {p})"),
        (graph.samples % p, f"must divide the number of samples, {graph.samples} (got {p})"),
        (
            p not in costs,
            f"has no cost for {p} partitions (it has {', '.join(map(str, sorted(costs)))})",
        ),
        (
            not is_whole(start, 0, servers - 1),
            f"must be a server from 0 to {servers - 1} (got {shown(start)})",
            "start",
        ),
        file=file,
        item=item,
        field="partitions",
    )


def server_bytes(strategy: Strategy, graph: OperatorGraph) -> list[float]:
    """Return the memory that each server's GPUs need together."""
    needed = [0.0] * strategy.servers
    for placement in strategy.placements:
        operator = graph.operator(placement.operator)
        for server in placement.servers(strategy.servers):
            needed[server] += operator.costs[placement.partitions].memory_bytes * operator.gpus
    return needed


def server_limit(graph: OperatorGraph, memory_gb: float | None) -> float:
    """Return the memory of a server's GPUs together, in bytes.

    Raises
    ------
    InputError
        If ``memory_gb`` is not a number above 0.
    """
    if memory_gb is None:
        memory_gb = graph.memory_gb
    check_number(memory_gb, above=True, file="strategy", field="memory_gb")
    return memory_gb * 1e9 * graph.gpus_per_server


def memory_problem(strategy: Strategy, graph: OperatorGraph, limit: float) -> str:
    """Return which server needs more than ``limit`` bytes, the fullest one; empty if none does."""
    needed = server_bytes(strategy, graph)
    most = max(needed)
    if most <= limit:
        return ""
    return (
        f"server {needed.index(most)} needs {most / 1e9:,.1f} GB and its {graph.gpus_per_server} GPUs have "
        f"{limit / 1e9:,.1f} GB"
    )


FORMAT = "topox-strategy"
VERSION = 1
_FORM = FileFormat(FORMAT, VERSION, ("model", "servers", "operators", "plan"), STRATEGY)


def load_strategy(data: bytes, file: str, graph: OperatorGraph | None = None) -> Strategy:
    """Read a strategy; it may configure some of the operators only, to fix those in a search.

    Parameters
    ----------
    graph
        The model it is for; if given, every operator is checked against it.

    Raises
    ------
    InputError
        If the file cannot be used; file, operator and key are named.
    """
    strategy = _read(data, file)
    placements = strategy.placements
    if graph is not None:
        refuse_if(
            (
                strategy.model != graph.name,
                f"must be {graph.name} (got {printable(strategy.model)})",
            ),
            file=file,
            field="model",
        )
        _check_placements(strategy, graph, file)
        order = graph.position
        placements = tuple(sorted(placements, key=lambda placement: order[placement.operator]))
    return replace(strategy, placements=placements)


def dump_strategy(strategy: Strategy) -> bytes:
    """Write a strategy, one operator a line; reading it back gives an equal one."""
    model = json.dumps(strategy.model, ensure_ascii=False)
    lines = ",\n  ".join(json.dumps(asdict(p), ensure_ascii=False) for p in strategy.placements)
    return (
        f'{{"format": "{FORMAT}", "version": {VERSION}, "model": {model}, "servers": {strategy.servers},\n'
        f' "operators": [\n  {lines}\n ]}}\n'
    ).encode()


def _read(data: bytes, file: str) -> Strategy:
    file = printable(file, MAX_NAME) if file else "strategy"
    body = read_object(data, file, _FORM)
    refuse_if(
        (
            body.get("plan") is not None,
            "is no longer read here: rank the plans anew and keep one as a job (*.job.json)",
        ),
        file=file,
        field="plan",
    )
    check_values(
        Strategy, without_header(body, "operators", "plan"), file, must=("model", "servers")
    )
    refuse_if((body.get("operators") is None, "is missing"), file=file, field="operators")
    placements = tuple(
        from_values(Placement, entry, file, named(entry, "operator", "operator", number))
        for number, entry in enumerate(entries_of(body, "operators", "operators", _FORM, file), 1)
    )
    return Strategy(body["model"], body["servers"], placements)


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
    refuse_if(
        (
            len(tasks) > MAX_GENERATED_TASKS,
            f"would have more than {MAX_GENERATED_TASKS:,} tasks: use fewer servers",
        ),
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
                    dependencies=(wait,),
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
                dependencies=waits,
                members=members,
                size_bytes=float(weight.size_bytes),
                parallelism="dp",
                group=f"dp{len(members)}",
                layer=k,
            )
