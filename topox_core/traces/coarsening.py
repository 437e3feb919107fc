"""A run's graph with fewer tasks: successive calls with little work between them become one.

Bundling k calls of a chain changes the iteration by at most k times the longest segment that was
allowed between two of them.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from topox_core.traces.run_graph import LinkedNodes, RunGraph
from topox_core.traces.source import Refused

MAX_SHARE = 0.01


def coarsened(graph: RunGraph, most: int) -> tuple[RunGraph, float]:
    """Return a graph of at most ``most`` tasks, and the longest segment (ms) that was let go between two calls.

    That is 0 if none was.

    Raises
    ------
    Refused
        If bundles over segments of 1 % of the iteration leave more.
    """
    if len(graph.nodes) <= most:
        return graph, 0.0
    fewer = graph
    for theta in _thetas(MAX_SHARE * graph.recorded_ms):
        fewer = _bundled(graph, theta)
        if len(fewer.nodes) <= most:
            return fewer, theta
    raise Refused(
        f"{len(fewer.nodes):,} tasks even with bundles of 1 % of the iteration: give --ranks or --max-tasks"
    )


def _thetas(most_ms: float) -> Iterator[float]:
    scale = 0.01
    while scale <= most_ms:
        for factor in (1, 2, 5):
            if factor * scale <= most_ms:
                yield factor * scale
        scale *= 10
    yield most_ms


def _bundled(graph: RunGraph, theta_ms: float) -> RunGraph:
    links = LinkedNodes(graph.nodes)
    on_stream: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, node in enumerate(links.nodes):
        if node.is_call and node.kind != "barrier" and node.splits_bytes is None:
            on_stream[node.stream, node.kind].append(at)
    for calls in on_stream.values():
        for c, d in itertools.pairwise(calls):
            pairs = _between(links, c, d, theta_ms)
            if pairs is not None:
                _merge(links, c, d, pairs)
    return replace(graph, nodes=links.left())


def _posts(links: LinkedNodes, call: int) -> dict[int, int]:
    """Return, by rank, the last segment that a call waits for."""
    found: dict[int, int] = {}
    for at in links.waits[call]:
        if not links.nodes[at].is_call:
            rank = links.nodes[at].ranks[0]
            found[rank] = max(at, found.get(rank, -1))
    return found


def _between(links: LinkedNodes, c: int, d: int, theta_ms: float) -> list[tuple[int, int]] | None:
    """Return the pairs (segment before, segment between) of two calls that may be bundled; None if not."""
    waits, waiters = links.waits, links.waiters
    if c not in waits[d]:
        return None
    first, second = _posts(links, c), _posts(links, d)
    if not first or first.keys() != second.keys():
        return None
    pairs = []
    for rank, m in second.items():
        before = first[rank]
        if m == before:
            continue
        lasts = links.nodes[m].duration_ms
        if not waits[m] <= {before, c} or before not in waits[m] or lasts > theta_ms:
            return None
        pairs.append((before, m))
    inside = {m for _, m in pairs}
    for one in waiters[c]:
        if one != d and one not in inside and d not in waits[one]:
            return None
    # Nothing that c waits for may wait for a segment in between.
    if any(waiters[m] & waits[c] for m in inside):
        return None
    return pairs


def _merge(links: LinkedNodes, c: int, d: int, pairs: list[tuple[int, int]]) -> None:
    """Let the second call stand for both, and join the segments that nothing parts any more."""
    one, both = links.nodes[c], links.nodes[d]
    both.size_bytes = (one.size_bytes or 0.0) + (both.size_bytes or 0.0)
    both.duration_ms += one.duration_ms
    for later in links.waiters[c] - {d}:
        links.cut(c, later)
    links.take_out(c)
    for before, m in pairs:
        links.cut(before, d)
        if links.waiters[before] == {m}:
            links.nodes[m].duration_ms += links.nodes[before].duration_ms
            links.nodes[m].kernels_ms += links.nodes[before].kernels_ms
            links.take_out(before)
