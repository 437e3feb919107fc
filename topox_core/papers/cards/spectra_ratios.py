"""Spectra's ratios over a baseline, beside ours over two baselines of our own: both sides of theirs are open."""

from collections.abc import Callable

import numpy as np

from topox_core.demand.planning import lower_bound, plan_demand
from topox_core.model.transfer_graph import FloatArray
from topox_core.papers.card import CardRun, Rows


def moe(rng: np.random.Generator) -> FloatArray:
    """Return an experts' exchange on 32 ports: all senders share the popularity of the experts (Dirichlet, all ones), with noise."""
    demand = rng.dirichlet(np.ones(32)) * rng.uniform(0.9, 1.1, (32, 32))
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


# Of a kind of matrix: its words, and the ratio that the abstract prints for such traffic.
PRINTED = {
    "gpt": ("language model (band of diagonals), 32 ports", 1.4),
    "moe": ("mixture of experts, 32 ports", 1.9),
    "flows": ("benchmark (4 large, 12 small flows), 100 ports", 2.4),
}


def rows(run: CardRun) -> Rows:
    switches, delay_ms = int(run.settings["switches"]), float(run.settings["delay_ms"])
    for kind, (words, theirs) in PRINTED.items():
        demand = KINDS[kind](np.random.default_rng(int(run.settings["seed"])))
        ours, *others = (
            plan_demand(demand, switches, delay_ms, method=method, programme=False).makespan_ms
            for method in ("best", "peeled", "shared")
        )
        yield run.row("bound", words, ours / lower_bound(demand, switches, delay_ms).ms)
        for series, other in zip(("peeled", "shared"), others, strict=True):
            yield run.row(series, words, other / ours, printed=theirs)


def said(run: CardRun) -> dict[str, float]:
    gains = [row.ours for row in run.rows if row.series != "bound"]
    return {"least": min(gains), "most": max(gains)}
