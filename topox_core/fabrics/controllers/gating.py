"""Exchanges of expert parallelism in a graph, and their bytes where the gating changes from iteration to iteration."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from topox_core.fabrics.options import GIVEN, FabricOptions
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import COLLECTIVE_KINDS
from topox_core.model.transfer_graph import (
    BARRIER,
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    durations_ms,
    work_bytes,
)

EXPERTS = "ep"
_MICROBATCH = re.compile(r"^m\d+$")
_LAYER = re.compile(r"^l\d+$")


@dataclass(frozen=True)
class Exchange:
    """The transfers of one exchange between experts.

    Attributes
    ----------
    name
        Their common id up to the last dot, or that of the collective they come from.
    nodes
        The transfers, in the order of the graph.
    """

    name: str
    nodes: IntArray

    @property
    def layer(self) -> str:
        """The layer of the exchange, in words that all its exchanges share whatever their microbatch."""
        words = self.name.split(".")
        at = next((i for i, word in enumerate(words) if _LAYER.match(word)), None)
        if at is None:
            return self.name
        first = next((i for i, word in enumerate(words) if re.match(r"^[a-z]\d+$", word)), at)
        return ".".join(word for word in words[first : at + 1] if not _MICROBATCH.match(word))

    @property
    def batch(self) -> str:
        """Layer and microbatch."""
        return ".".join([self.layer, *filter(_MICROBATCH.match, self.name.split("."))])


def exchanges(graph: TransferGraph, cluster: Cluster) -> tuple[Exchange, ...]:
    """Return the exchanges between experts, in the order in which they may begin."""
    moved = work_bytes(graph, cluster)
    closing = {
        int(graph.origin[i]): graph.ids[i]
        for i in np.flatnonzero(graph.kind == BARRIER).tolist()
        if graph.ids[i]
    }
    nodes: dict[str, list[int]] = {}
    for i in np.flatnonzero((graph.kind == TRANSFER) & (moved > 0)).tolist():
        if graph.parallelism[i] == EXPERTS:
            name = graph.ids[i].rpartition(".")[0]
            if graph.task_kind[i] in COLLECTIVE_KINDS:
                name = closing.get(int(graph.origin[i]), name)
            nodes.setdefault(name, []).append(i)
    head = graph.heads(durations_ms(graph, cluster))
    found = [
        (float(head[of].min()), of[0], Exchange(name, np.array(of, np.int32)))
        for name, of in nodes.items()
    ]
    return tuple(one for _, _, one in sorted(found, key=lambda row: row[:2]))


class Gating:
    """The graph of every iteration, with the bytes between experts that its gating gives.

    The shares of the experts of a layer hold for all its microbatches. The first exchange of a
    layer and microbatch sends every server's tokens by these shares, the second brings them back,
    and so on in turn. A server's tokens are what it sends in the first exchange of the given graph,
    its own share added as if that were even; how long experts compute stays as it is.
    """

    def __init__(
        self, graph: TransferGraph, cluster: Cluster, options: FabricOptions, seed: int
    ) -> None:
        self.graph, self.cluster, self.options = graph, cluster, options
        self.exchanges = exchanges(graph, cluster)
        self._moved = work_bytes(graph, cluster)
        self._graphs: dict[int, TransferGraph] = {}
        self.members: dict[str, IntArray] = {}  # the servers of each layer
        for one in self.exchanges:
            before = self.members.get(one.layer, one.nodes[:0])
            ends = before, graph.source[one.nodes], graph.destination[one.nodes]
            self.members[one.layer] = np.unique(np.concatenate(ends))
        rng = random.Random(seed)
        # Of each layer for every iteration; drawn layer by layer.
        self._shares = {
            layer: list(drawn_shares(len(servers), options, rng))
            for layer, servers in self.members.items()
            if options.gating != GIVEN
        }

    def on(self, graph: TransferGraph) -> Gating:
        """Return the same gating of a graph whose other collectives run on other rings."""
        other = copy(self)
        other.graph, other.exchanges = graph, exchanges(graph, self.cluster)
        other._moved, other._graphs = work_bytes(graph, self.cluster), {}
        return other

    def is_first(self, number: int) -> bool:
        """Return whether an exchange is the first of its layer and microbatch, whose gate is known last."""
        batch = self.exchanges[number].batch
        return not any(one.batch == batch for one in self.exchanges[:number])

    def graph_of(self, iteration: int) -> TransferGraph:
        """Return the graph of an iteration."""
        if self.options.gating == GIVEN:
            return self.graph
        if iteration not in self._graphs:
            self._graphs[iteration] = self._gated(iteration)
        return self._graphs[iteration]

    def bytes_of(self, number: int, iteration: int) -> FloatArray:
        """Return the bytes of an exchange in an iteration; before the first one those of the given graph."""
        graph = self.graph if iteration < 0 else self.graph_of(iteration)
        moved = work_bytes(graph, self.cluster)
        return graph.matrix(moved, self.exchanges[number].nodes, self.cluster.servers)

    def _gated(self, iteration: int) -> TransferGraph:
        graph, cluster = self.graph, self.cluster
        factor = np.ones(len(graph))
        tokens: dict[str, FloatArray] = {}
        place: dict[str, int] = {}
        for one in self.exchanges:
            given = graph.matrix(self._moved, one.nodes, cluster.servers)
            at = place.get(one.batch, 0)
            place[one.batch] = at + 1
            servers = self.members[one.layer]
            if at == 0:
                tokens[one.batch] = given.sum(axis=1) * len(servers) / max(1, len(servers) - 1)
            share = np.zeros(cluster.servers)
            share[servers] = self._shares[one.layer][iteration]
            sent = np.outer(tokens[one.batch], share)
            sent = sent if at % 2 == 0 else sent.T
            ends = graph.source[one.nodes], graph.destination[one.nodes]
            factor[one.nodes] = sent[ends] / given[ends]
        digest = hashlib.sha256(f"{graph.digest} gated {factor.tobytes().hex()}".encode())
        return replace(
            graph,
            size_bytes=graph.size_bytes * factor,
            duration_ms=graph.duration_ms * factor,
            digest=digest.hexdigest(),
            task_graph=None,  # it has other bytes
        )


def drawn_shares(experts: int, options: FabricOptions, rng: random.Random) -> Iterator[FloatArray]:
    """Yield the shares of a layer's experts, one array an iteration; each adds up to 1."""
    skew, keep = options.gating_skew, options.gating_persistence
    if options.gating == "walk":
        popular = np.zeros(experts)
        for iteration in range(options.gating_iterations):
            drawn = np.array([rng.gauss(0.0, 1.0) for _ in range(experts)])
            fresh = skew if iteration == 0 else skew * math.sqrt(1.0 - keep * keep)
            popular = keep * popular + fresh * drawn
            shares = np.exp(popular - popular.max())
            yield shares / shares.sum()
    elif options.gating == "dirichlet":
        for _ in range(options.gating_iterations):
            shares = np.array([rng.gammavariate(skew, 1.0) for _ in range(experts)])
            # Very small concentrations may leave nothing of any share in floating point.
            yield shares / shares.sum() if shares.sum() > 0 else np.full(experts, 1.0 / experts)
    else:
        ranking = list(range(experts))
        rng.shuffle(ranking)
        for _ in range(options.gating_iterations):
            shares = np.array([(1.0 + rank) ** -skew for rank in ranking])
            yield shares / shares.sum()
            if experts > 1:
                a, b = rng.sample(range(experts), 2)
                ranking[a], ranking[b] = ranking[b], ranking[a]
