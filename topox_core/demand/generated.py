"""Demand matrices of the kinds that papers plan for, drawn at random: the longest lines sum up to about 1 ms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topox_core.model.transfer_graph import FloatArray


def moe(rng: np.random.Generator) -> FloatArray:
    """Return an experts' exchange on 32 ports: all senders share the popularity of the experts (Dirichlet, all ones), with noise."""
    popular = rng.dirichlet(np.ones(32))
    demand = popular * rng.uniform(0.9, 1.1, (32, 32))
    return np.asarray(demand / max(demand.sum(axis=0).max(), demand.sum(axis=1).max()))


def moe_each(rng: np.random.Generator) -> FloatArray:
    """Return such an exchange with shares of its own for each receiver."""
    return np.asarray(rng.dirichlet(np.ones(32), 32).T)


def gpt(rng: np.random.Generator) -> FloatArray:
    """Return a band of three diagonals on 32 ports: neighbours in a pipeline and in rings of two strides."""
    ports, demand = 32, np.zeros((32, 32))
    for stride, share in ((1, 0.5), (4, 0.3), (8, 0.2)):
        at = np.arange(ports)
        demand[at, (at + stride) % ports] = share * rng.uniform(0.9, 1.1, ports)
    return demand


def flows(rng: np.random.Generator) -> FloatArray:
    """Return four large and twelve small flows from and to each of 100 ports, 70 and 30 % of the bytes, with noise."""
    ports, demand = 100, np.zeros((100, 100))
    for count, share in ((4, 0.7), (12, 0.3)):
        for _ in range(count):
            sizes = share / count * rng.uniform(0.9, 1.1, ports)
            demand[np.arange(ports), rng.permutation(ports)] += sizes
    return demand


KINDS: dict[str, Callable[[np.random.Generator], FloatArray]] = {
    "moe": moe,
    "each": moe_each,
    "gpt": gpt,
    "flows": flows,
}
