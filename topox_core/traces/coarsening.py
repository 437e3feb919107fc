"""A run's graph with fewer tasks: successive calls with little work between them become one.

Bundling k calls of a chain changes the iteration by at most k times the longest segment that was
allowed between two of them.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from topox_core.traces.run_graph import Node, RunGraph
from topox_core.traces.source import Refused

MAX_SHARE = 0.01


@dataclass(frozen=True)
class Coarsened:
    """A graph and the longest segment (ms) that was let go between two calls; 0 if none was."""

    graph: RunGraph
    theta_ms: float


def coarsened(graph: RunGraph, most: int) -> Coarsened:
    """Return a graph of at most ``most`` tasks.

    Raises
    ------
    Refused
        If bundles over segments of 1 % of the iteration leave more.
    """
    if len(graph.nodes) <= most:
        return Coarsened(graph, 0.0)
    fewer = graph
    for theta in _thetas(MAX_SHARE * graph.recorded_ms):
        fewer = _bundled(graph, theta)
        if len(fewer.nodes) <= most:
            return Coarsened(fewer, theta)
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
    nodes = [replace(node, waits=list(node.waits)) for node in graph.nodes]
    waits = [set(node.waits) for node in nodes]
    waiters: list[set[int]] = [set() for _ in nodes]
    for at, before in enumerate(waits):
        for one in before:
            waiters[one].add(at)
    alive = [True] * len(nodes)
    on_stream: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, node in enumerate(nodes):
        if node.is_call and node.kind != "barrier" and node.splits_bytes is None:
            on_stream[node.stream, node.kind].append(at)
    for calls in on_stream.values():
        for c, d in itertools.pairwise(calls):
            between = _between(nodes, waits, waiters, c, d, theta_ms)
            if between is not None:
                _merge(nodes, waits, waiters, alive, (c, d, between))
    number = {at: k for k, at in enumerate(at for at in range(len(nodes)) if alive[at])}
    kept = []
    for at in number:
        nodes[at].waits = sorted(number[one] for one in waits[at])
        kept.append(nodes[at])
    return replace(graph, nodes=kept)


def _posts(nodes: list[Node], waits: list[set[int]], call: int) -> dict[int, int]:
    """Return, by rank, the last segment that a call waits for."""
    found: dict[int, int] = {}
    for at in waits[call]:
        if not nodes[at].is_call:
            rank = nodes[at].ranks[0]
            found[rank] = max(at, found.get(rank, -1))
    return found


def _between(
    nodes: list[Node],
    waits: list[set[int]],
    waiters: list[set[int]],
    c: int,
    d: int,
    theta_ms: float,
) -> list[tuple[int, int]] | None:
    """Return the pairs (segment before, segment between) of two calls that may be bundled; None if not."""
    if c not in waits[d]:
        return None
    first, second = _posts(nodes, waits, c), _posts(nodes, waits, d)
    if not first or first.keys() != second.keys():
        return None
    pairs = []
    for rank, m in second.items():
        before = first[rank]
        if m == before:
            continue
        if not waits[m] <= {before, c} or before not in waits[m] or nodes[m].duration_ms > theta_ms:
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


def _merge(
    nodes: list[Node],
    waits: list[set[int]],
    waiters: list[set[int]],
    alive: list[bool],
    bundle: tuple[int, int, list[tuple[int, int]]],
) -> None:
    """Let the second call stand for both, and join the segments that nothing parts any more."""
    c, d, pairs = bundle
    one, both = nodes[c], nodes[d]
    both.size_bytes = (one.size_bytes or 0.0) + (both.size_bytes or 0.0)
    both.duration_ms += one.duration_ms
    for later in list(waiters[c]):
        _unlink(waits, waiters, c, later)
    for before in list(waits[c]):
        _unlink(waits, waiters, before, c)
        waits[d].add(before)
        waiters[before].add(d)
    alive[c] = False
    for before, m in pairs:
        _unlink(waits, waiters, before, d)
        if waiters[before] != {m}:
            continue
        nodes[m].duration_ms += nodes[before].duration_ms
        nodes[m].kernels_ms += nodes[before].kernels_ms
        _unlink(waits, waiters, before, m)
        for earlier in list(waits[before]):
            _unlink(waits, waiters, earlier, before)
            waits[m].add(earlier)
            waiters[earlier].add(m)
        alive[before] = False


def _unlink(waits: list[set[int]], waiters: list[set[int]], before: int, after: int) -> None:
    waits[after].discard(before)
    waiters[before].discard(after)
