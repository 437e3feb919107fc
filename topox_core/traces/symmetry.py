"""One rank's recording as that of every rank: for jobs whose ranks all do the same."""

from __future__ import annotations

from dataclasses import replace

from topox_core.io.limits import MAX_TASKS
from topox_core.traces.refused import Refused
from topox_core.traces.run_graph import Node, RunGraph

SENTENCE = (
    "One rank stands for all. What it waited for others is counted as network time in the recorded "
    "figures, and is absent from the graph."
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
    if graph.segments * world > MAX_TASKS:
        raise Refused(
            f"would have more than the {MAX_TASKS:,} tasks a graph may have on {world:,} ranks",
            file=file,
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
        number, of_rank = {}, []
        for q in range(world):
            members = groups[q]
            if members not in number:
                number[members] = len(nodes)
                suffix = f".g{len(number) - 1}" if len(node.ranks) < world else ""
                root = (
                    None
                    if node.root is None
                    else members[node.ranks.index(node.root)]
                    if node.root in node.ranks
                    else None
                )
                listed = "-".join(map(str, members[:4])) + ("-..." if len(members) > 4 else "")
                words = node.group.rpartition(".")[0]
                nodes.append(
                    replace(
                        node,
                        id=node.id + suffix,
                        ranks=members,
                        waits=[],
                        root=root,
                        group=f"{words}.{listed}" if words else listed,
                        stream=f"{members}|{node.stream}",
                    )
                )
            of_rank.append(number[members])
        place.append(of_rank)
    for at, node in enumerate(graph.nodes):
        for q in range(world):
            image = nodes[place[at][q]]
            image.waits += [place[before][q] for before in node.waits]
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

    if image(rank) != ranks:
        shown = ", ".join(map(str, node.ranks[:8])) + (", ..." if n > 8 else "")
        raise Refused(
            f"[{shown}] has no stride: the other ranks' groups cannot be made",
            file=file,
            item=f"group {node.group!r}",
        )
    groups = [image(q) for q in range(world)]
    if max(map(max, groups)) >= world:
        raise Refused(
            f"groups of {n} ranks do not fit into {world} ranks: give --world",
            file=file,
            item=f"group {node.group!r}",
        )
    return groups
