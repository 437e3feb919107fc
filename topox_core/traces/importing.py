"""A recorded run of PyTorch's profiler into a task graph, a cluster and a report: the one way in."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from topox_core.errors import refuse_if
from topox_core.io.limits import MAX_TASKS
from topox_core.model.arrays.groups import by_key
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.traces.checks import Check, busy_share, checks_of, host_ms
from topox_core.traces.recorded.assembly import short_list
from topox_core.traces.recorded.matching import between_hosts_us
from topox_core.traces.recorded.recorded_run import RecordedRun, RunStep, read_run, step_of
from topox_core.traces.run_graph import (
    Node,
    RunGraph,
    at_speed,
    free,
    recorded_time,
    replay_ms,
    share_moved,
    spans,
)
from topox_core.traces.source import ImportSettings, Progress, Refused, Source
from topox_core.traces.tasks import (
    coarsened,
    fitting_cluster,
    keep_inside_servers,
    task_graph,
    uneven,
)

SENTENCE = (
    "One rank stands for all. Its waiting for others counts as network time in the recorded "
    "figures, and is left out of the graph."
)


def for_all(graph: RunGraph, world: int, file: str) -> RunGraph:
    """Return the graph in which every rank has the segments of the one that was recorded.

    Raises
    ------
    Refused
        If it sends or receives (stages of a pipeline differ), a group has no stride, or there would
        be more tasks than a graph may have.
    """
    (rank,) = graph.present
    refuse_if(
        (
            graph.segments * world > MAX_TASKS,
            f"would have more than the {MAX_TASKS:,} tasks a graph may have on {world:,} ranks",
        ),
        file=file,
        kind=Refused,
    )
    nodes: list[Node] = []
    # Where each node of the recorded rank is for rank q.
    place: list[list[int]] = []
    for node in graph.nodes:
        if not node.is_call:
            place.append(list(range(len(nodes), len(nodes) + world)))
            tail = node.id.partition(".")[2]
            nodes += [replace(node, id=f"r{q}.{tail}", ranks=(q,), waits=[]) for q in range(world)]
            continue
        groups = _images(node, rank, world, file)
        number = {members: len(nodes) + k for k, members in enumerate(dict.fromkeys(groups))}
        words = node.group.rpartition(".")[0]
        nodes += [
            replace(
                node,
                id=node.id + f".g{k}" * (len(node.ranks) < world),
                ranks=members,
                waits=[],
                root=members[node.ranks.index(node.root)] if node.root in node.ranks else None,
                group=f"{words}.{short_list(members)}" if words else short_list(members),
                stream=f"{members}|{node.stream}",
            )
            for k, members in enumerate(number)
        ]
        place.append([number[members] for members in groups])
    for at, node in enumerate(graph.nodes):
        for q in range(world):
            nodes[place[at][q]].waits += [place[before][q] for before in node.waits]
    for node in nodes:
        node.waits = list(dict.fromkeys(node.waits))
    return RunGraph(nodes, world, tuple(range(world)), graph.recorded_ms, [*graph.notes, SENTENCE])


def _images(node: Node, rank: int, world: int, file: str) -> list[tuple[int, ...]]:
    """Return the group of every rank that looks like the recorded one."""
    if node.kind == "send":
        source, destination = node.ranks
        other = destination if source == rank else source
        verb = "sends to" if source == rank else "receives from"
        raise Refused(
            f"{verb} rank {other}: one rank cannot stand for a pipeline; give a file of each stage",
            file=file,
        )
    ranks = tuple(sorted(node.ranks))
    n = len(ranks)
    stride = ranks[1] - ranks[0] if n > 1 else 1

    def image(q: int) -> tuple[int, ...]:
        base = q - stride * ((q // stride) % n)
        return tuple(base + stride * k for k in range(n))

    groups = [image(q) for q in range(world)]
    refuse_if(
        (
            image(rank) != ranks,
            f"ranks {spans(ranks)} have no stride: the other ranks' groups cannot be made",
        ),
        (
            max(map(max, groups)) >= world,
            f"groups of {n} ranks do not fit into {world} ranks: give --world",
        ),
        file=file,
        item=f"group {node.group!r}",
        kind=Refused,
    )
    return groups


_KERNEL_WORD = re.compile(r"(?:nccl(?:Dev)?Kernel_?|^)([A-Za-z]\w{2,30}?)(?:_|\(|$)")


@dataclass(frozen=True)
class Imported:
    """A recorded run as a task graph, the cluster that fits it, and what is to be known of both.

    Attributes
    ----------
    run
        The run's graph before it became tasks; it answers at any network speed at once.
    """

    graph: TaskGraph
    cluster: Cluster
    report: dict[str, Any]
    checks: tuple[Check, ...]
    run: RunGraph


def import_kineto(
    sources: Sequence[Source],
    settings: ImportSettings | None = None,
    hosts: Sequence[Source] = (),
    progress: Progress | None = None,
    name: str = "recorded run",
) -> Imported:
    """Read a run and return its task graph.

    Raises
    ------
    InputError
        If a file cannot be used.
    Refused
        If the run cannot carry it: sizes unknown, calls unmatched, one rank of a pipeline.
    """
    settings = settings or ImportSettings()
    return import_run(read_run(sources, settings, hosts, progress), settings, name)


def import_run(run: RecordedRun, settings: ImportSettings, name: str = "recorded run") -> Imported:
    """Return the task graph of a run that was read.

    Raises
    ------
    Refused
        As :func:`import_kineto`.
    """
    step = step_of(run, settings)
    graph = step.graph
    for node in graph.nodes:
        if settings.uneven == "one" or not uneven(node.splits_bytes):
            node.splits_bytes = None
    if settings.assume_gbps is not None:
        _assume_sizes(graph, settings.assume_gbps)
    inside = keep_inside_servers(graph, settings.gpus_per_server)
    _check_sizes(graph, step)
    checks = checks_of(step)
    whole = graph
    if settings.symmetry:
        whole = for_all(
            graph, settings.world or run.world, run.ranks[min(run.ranks)].recording.file
        )
        keep_inside_servers(whole, settings.gpus_per_server)
    found = made_import(graph, whole, settings, name, checks, _facts(run, step, settings), whole)
    warnings = found.report["warnings"]
    warnings[:0] = [*run.warnings, *step.warnings]
    if inside:
        n, m = settings.gpus_per_server, max(len(node.ranks) for node in graph.calls)
        warnings.append(
            f"{inside:,} calls stay inside servers of {n}; a ring over servers moves 2(m-1)/m of its bytes where "
            f"its ranks (up to {m}) moved 2(n-1)/n"
        )
    found.report["replay_ms"]["recorded"] = replay_ms(graph, recorded_time)
    return found


def _assume_sizes(graph: RunGraph, gbps: float) -> None:
    """Set sizes that nothing tells from how long the shortest kernel of the call lasted."""
    for node in graph.calls:
        if node.size_bytes is None and node.kind != "barrier":
            share = share_moved(node) or 1.0
            node.size_bytes = node.shortest_ms * gbps * 125_000 / share
            node.size_from = "speed"


def _check_sizes(graph: RunGraph, step: RunStep) -> None:
    """Refuse a graph with unknown sizes: it would answer nothing."""
    unknown = [
        (number, node)
        for number, node in enumerate(graph.calls)
        if node.size_bytes is None and node.kind != "barrier" and node.server_ms is None
    ]
    if not unknown:
        return
    number, node = unknown[0]
    found = _KERNEL_WORD.search(node.source_name)
    word = found[1] if found else node.source_name[:30]
    file = step.steps[min(step.steps)].recording.file
    more = f" (and {len(unknown) - 1:,} more)" if len(unknown) > 1 else ""
    raise Refused(
        f"is not recorded{more}: record with record_shapes=True, give --host-trace, or --assume-gbps 400",
        file=file,
        item=f"call {number} ({word} at {node.end_ms:.1f} ms)",
        field="size",
    )


FORMAT, VERSION = "topox-import", 1


def made_import(
    graph: RunGraph,
    whole: RunGraph,
    settings: ImportSettings,
    name: str,
    checks: tuple[Check, ...],
    facts: Mapping[str, Any],
    before: RunGraph | None = None,
    calls: Sequence[Node] | None = None,
) -> Imported:
    """Return a run's graph as a task graph of at most as many tasks as the settings say, with its report.

    Parameters
    ----------
    graph
        As it was recorded or written down: what the report counts.
    whole
        The same for all ranks: what becomes tasks.
    facts
        What the report says of files and ranks before it comes to the graph.
    before
        What the graph is compared with once calls are bundled; None: nothing is said of that.
    calls
        Those of the graph that are the file's own; None: all.

    Raises
    ------
    Refused
        If it cannot be made small enough.
    """
    calls = graph.calls if calls is None else calls
    speed = at_speed(settings.nic_gbps)
    fewer, theta_ms = coarsened(whole, settings.max_tasks)
    tasks, notes = task_graph(fewer, name, settings.gpus_per_server, settings.parallelism)
    at_speed_ms = replay_ms(fewer, speed)
    report = {
        "format": FORMAT,
        "version": VERSION,
        **facts,
        "segments": graph.segments,
        "calls": len(calls),
        "calls_by_kind": dict(Counter(node.kind for node in calls)),
        "size_bytes": sum(node.size_bytes or 0.0 for node in calls),
        "groups": groups_of(calls),
        "tasks": len(tasks.tasks),
        "digest": tasks.digest,
        "replay_ms": {
            "free_network": replay_ms(fewer, free),
            f"{settings.nic_gbps:g}_gbps": at_speed_ms,
        },
        "checks": [asdict(one) for one in checks],
        "warnings": [*fewer.notes, *notes],
    }
    if before is not None:
        report["coarsening"] = {
            "theta_ms": theta_ms,
            "nodes_before": len(before.nodes),
            "nodes_after": len(fewer.nodes),
            "replay_before_ms": replay_ms(before, speed),
            "replay_after_ms": at_speed_ms,
        }
    cluster = fitting_cluster(tasks, graph.recorded_ms, settings.nic_gbps)
    return Imported(tasks, cluster, report, checks, fewer)


def _facts(run: RecordedRun, step: RunStep, settings: ImportSettings) -> dict[str, Any]:
    graph = step.graph
    return {
        "files": list(run.files),
        "ranks": sorted(run.ranks),
        "world": run.world,
        "step": step.number if step.number >= 0 else None,
        "steps": list(run.ranks[min(run.ranks)].numbers),
        "recorded_ms": graph.recorded_ms,
        "host_step_ms": host_ms(step),
        "gpu_busy": busy_share(step),
        "clocks": {
            "offset_us": {
                str(r): v for r, v in sorted(between_hosts_us(step.steps, step.clocks).items())
            },
            "residual_us": step.clocks.residual_us,
            "largest_us": step.clocks.largest_us,
        },
        "waits": dict(sorted(step.evidence().items())),
        "unmatched": list(step.matched.unmatched[:20]),
        "recorded_call_ms": sum(node.duration_ms for node in graph.calls),
        "settings": asdict(settings) | {"parallelism": dict(settings.parallelism)},
    }


def groups_of(calls: Sequence[Node]) -> list[dict[str, Any]]:
    """Return ranks, calls, bytes and label of each group, in order of bytes."""
    found = [
        {
            "group": group,
            "description": description,
            "ranks": spans(sorted(nodes[0].ranks)),
            "members": len(nodes[0].ranks),
            "calls": len(nodes),
            "size_bytes": sum((node.size_bytes or 0.0 for node in nodes), 0.0),
            "parallelism": nodes[0].parallelism,
        }
        for (group, description), nodes in by_key(
            ((node.group, node.description), node) for node in calls
        ).items()
    ]
    return sorted(found, key=lambda one: (-one["size_bytes"], one["group"]))


def inspect_run(run: RecordedRun, settings: ImportSettings) -> dict[str, Any]:
    """Return what a run holds, step by step; sizes may be unknown, nothing is built."""
    rows = []
    lowest = run.ranks[min(run.ranks)]
    common = [n for n in lowest.numbers if all(n in one.numbers for one in run.ranks.values())]
    for number in common:
        step = step_of(run, settings, number)
        graph = step.graph
        rows.append(
            {
                "step": number if number >= 0 else None,
                "recorded_ms": graph.recorded_ms,
                "host_step_ms": host_ms(step),
                "free_network_ms": replay_ms(graph, free),
                "gpu_busy": busy_share(step),
                "calls": len(graph.calls),
                "sizes_known": sum(node.size_bytes is not None for node in graph.calls),
                "size_bytes": sum(node.size_bytes or 0.0 for node in graph.calls),
            }
        )
    chosen = step_of(run, settings)
    graph = chosen.graph
    return {
        "files": [
            {
                "file": one.recording.file,
                "rank": rank,
                "events": one.recording.events,
                "kernels": len(one.recording.work),
                "communications": len(one.entries),
                "steps": [n for n in one.numbers if n >= 0],
                "cut": one.recording.cut,
            }
            for rank, one in sorted(run.ranks.items())
        ],
        "world": run.world,
        "steps": rows,
        "warnings": [*run.warnings, *chosen.warnings],
        "step": chosen.number if chosen.number >= 0 else None,
        "groups": groups_of(graph.calls),
        "calls_by_kind": dict(Counter(node.kind for node in graph.calls)),
        "checks": [asdict(one) for one in checks_of(chosen)],
    }
