"""Spectra's ratios over a baseline, beside ours over two baselines of our own: both sides of theirs are open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from topox_core.demand.planning import lower_bound, plan_demand
from topox_core.model.transfer_graph import FloatArray
from topox_core.papers.abstract_only import AbstractOnly
from topox_core.papers.card import Card, Choice, Row, Settings
from topox_core.papers.claim import Reading
from topox_core.papers.direct import unprinted
from topox_core.papers.switches import seeds


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


PAPER = AbstractOnly(
    "spectra-ratios",
    "Spectra (arXiv 2603.07373)",
    "the decomposition, its weights and both baselines are ours",
)
SERIES = {
    "bound": "Ours over the lower bound",
    "peeled": "Baseline A over ours: even lines, peeled",
    "shared": "Baseline B over ours: a share for each switch",
}
# Of a kind of matrix: its words, and the ratio that the abstract prints for such traffic.
PRINTED = {
    "gpt": ("language model (band of diagonals), 32 ports", 1.4),
    "moe": ("mixture of experts, 32 ports", 1.9),
    "flows": ("benchmark (4 large, 12 small flows), 100 ports", 2.4),
}
CHOICES = (
    Choice(
        "delay_ms",
        "Delay",
        "What a set-up takes, where the longest line sums up to about 1 ms.",
        ((0.01, "0.01"), (0.001, "0.001"), (0.1, "0.1")),
        0.01,
    ),
    Choice(
        "switches", "Parallel switches", "One port of every server each.", ((2, "2"), (4, "4")), 2
    ),
    seeds("Of the matrices."),
)


def _rows(settings: Settings) -> Iterator[Row]:
    switches, delay_ms = int(settings["switches"]), float(settings["delay_ms"])
    for kind, (words, theirs) in PRINTED.items():
        demand = KINDS[kind](np.random.default_rng(int(settings["seed"])))
        ours, *others = (
            plan_demand(demand, switches, delay_ms, method=method, programme=False).makespan_ms
            for method in ("best", "peeled", "shared")
        )
        about = f"{switches} switches, delay {delay_ms:g} of a line"
        over = ours / lower_bound(demand, switches, delay_ms).ms
        yield unprinted("bound", words, about, over, "No plan is below 1.", unit="×")
        for series, other in zip(("peeled", "shared"), others, strict=True):
            said = f"{theirs:g} for such traffic, over a baseline that it does not name, at a delay that it does not name"
            yield PAPER.beside(series, words, about, other / ours, said, unit="×")


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    over = [row.ours for row in rows if row.series == "bound"]
    gains = [row.ours for row in rows if row.series != "bound"]
    return (
        f"Our plans are {min(over):.3g} to {max(over):.3g} times the lower bound; baselines take {min(gains):.3g} to {max(gains):.3g} "
        "times as long. The printed 1.4, 1.9 and 2.4 cannot be compared with that.",
        (
            "HiGHS is left out here, so that times are a little longer than those of the command demand.",
        ),
    )


CARD = Card(
    name=PAPER.card,
    title="One demand matrix, parallel switches",
    source=PAPER.source,
    shows="A matrix served by parallel switches in 1.4, 1.9 and 2.4 times less time than a baseline: language model, mixture of "
    "experts, benchmark traffic.",
    choices=CHOICES,
    series=SERIES,
    row_count=3 * len(PRINTED),
    play=PAPER.play(_rows, _words),
    takes_s=2.5,
)
CLAIMS = (
    PAPER.claim(
        "Benchmark traffic: a baseline that is not named takes 2.4 times as long",
        2.4,
        Reading("peeled", lambda rows: rows[-1].ours, 2.14),
        "over a baseline of our own",
    ),
)
