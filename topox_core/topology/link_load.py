"""The load of a demand on a layout: bytes a link, and the bandwidth tax."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from topox_core.topology.result import LayoutResult
from topox_core.topology.ring_circuits import ring_pairs
from topox_core.topology.traffic import Demand, Pair


def sent_bytes(result: LayoutResult, demand: Demand) -> Iterator[tuple[Pair, float]]:
    """Yield who sends how much to whom: rings in equal shares, then all other transfers."""
    for members, sent in demand.all_reduce.items():
        strides = result.riding.get(members, ())
        for p in strides:
            for pair in ring_pairs(members, (p,)):
                yield pair, sent / len(strides)
    for a, b in zip(*(ends.tolist() for ends in np.nonzero(demand.model_parallel)), strict=True):
        yield (a, b), float(demand.model_parallel[a, b])


def bandwidth_tax(result: LayoutResult, demand: Demand) -> float:
    """Return bytes times hops over bytes of a demand on a layout (TopoOpt's measure)."""
    paid = total = 0.0
    for pair, size in sent_bytes(result, demand):
        total += size
        paid += size * _route_hops(result, pair)
    return paid / total if total > 0 else 1.0


def _route_hops(result: LayoutResult, pair: Pair) -> float:
    paths = result.layout.routes.get(pair)
    if not paths:
        return float(max(0, result.network.hops_to(pair[1])[pair[0]]))
    return sum(len(path) - 1 for path in paths) / len(paths)


def link_loads(result: LayoutResult, demand: Demand) -> dict[Pair, float]:
    """Return the bytes that each linked pair carries, forwarded ones included."""
    carried: dict[Pair, float] = {}
    for pair, size in sent_bytes(result, demand):
        paths = result.layout.routes.get(pair) or ()
        for path in paths:
            for hop in pairwise(path):
                carried[hop] = carried.get(hop, 0.0) + size / len(paths)
    return carried
