"""What is predicted here against what was measured, published or simulated elsewhere, by kind, and what is not modelled.

Every prediction is computed when it is asked for, but for those of published cards, which are the last
answers kept (:mod:`topox_core.papers.catalogue`), and of recordings, which a test holds.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topox_core.fabrics.comparison.compare import compare
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.settings import Settings
from topox_core.training.measured.validation import BUILT_IN, predicted
from topox_core.workloads.samples import load_sample

_REFERENCES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("accuracy.toml").read_text(encoding="utf-8")
)
RECORDINGS: dict[str, float] = _REFERENCES["recordings"]
NOT_MODELLED: dict[str, str] = _REFERENCES["not_modelled"]
# Of a set of measured iterations: its title, and what was fitted to it.
_MEASURED = {
    "vtrain": ("A100, vTrain's half for calibration", "fitted: two numbers"),
    "megatron": ("A100, Megatron-LM, Table 5", "not fitted; known when the model was chosen"),
    "uncalibrated": ("H100, published", "not fitted; orders assumed"),
    "production": ("A100, production runs", "fitted: one factor, to three rows"),
}
# What both simulators have: no circuits, all servers on one switch that blocks nobody.
_SWITCH = "fat_tree_full"
PORT_GBPS = 100.0


@dataclass(frozen=True)
class Comparison:
    """One prediction beside what it is compared with, in the same unit."""

    subject: str
    predicted: float
    reference: float
    unit: str

    @property
    def error(self) -> float:
        """Prediction over reference, less 1."""
        return self.predicted / self.reference - 1


@dataclass(frozen=True)
class Kind:
    """Predictions of one kind.

    Attributes
    ----------
    against
        What they are compared with.
    fitted
        Whether anything was fitted to that.
    held
        How many comparisons a test holds in place of ``comparisons``, and what none is further off than.
    """

    name: str
    title: str
    against: str
    fitted: str
    comparisons: tuple[Comparison, ...] = ()
    held: tuple[int, float] | None = None

    @property
    def count(self) -> int:
        """How many comparisons there are."""
        return self.held[0] if self.held else len(self.comparisons)

    def share(self, percent: float) -> float | None:
        """Return the absolute error that so many percent of the comparisons do not exceed; None where a test holds them."""
        if self.held:
            return None
        return float(np.percentile([abs(one.error) for one in self.comparisons], percent))

    @property
    def worst(self) -> Comparison | None:
        """The comparison that is furthest off."""
        return max(self.comparisons, key=lambda one: abs(one.error), default=None)

    @property
    def most(self) -> float:
        """The largest absolute error."""
        return self.held[1] if self.held else abs(self.worst.error) if self.worst else 0.0


def kinds() -> Iterator[Kind]:
    """Yield all kinds of prediction with their comparisons, measured ones first."""
    for name, (title, fitted) in _MEASURED.items():
        comparisons = tuple(
            Comparison(
                f"{row.measured.model} B, {row.measured.job.plan.words}, {row.measured.job.schedule.words}",
                row.predicted_ms,
                row.measured.measured_ms,
                "ms",
            )
            for row in predicted(BUILT_IN[name]())
        )
        yield Kind(name, f"Iterations: {title}", "measured iterations", fitted, comparisons)
    yield Kind(
        "recordings",
        "Recorded runs at another speed",
        "jobs of known time",
        "not fitted",
        held=(int(RECORDINGS["answers"]), RECORDINGS["most"]),
    )
    for at, peer in enumerate(("ASTRA-sim", "LogGOPSim")):
        collectives, samples = _collectives(at), _samples(at)
        name = peer.lower()
        yield Kind(f"collectives-{name}", "Collectives", peer, "not fitted", tuple(collectives))
        yield Kind(
            f"samples-{name}", "Iterations of the samples", peer, "not fitted", tuple(samples)
        )
    yield Kind(
        "cards",
        "Published tables and figures",
        "numbers printed in papers",
        "not fitted",
        tuple(_cards()),
    )


def _collectives(peer: int) -> Iterator[Comparison]:
    for kind, servers, size_bytes, *times in _REFERENCES["collectives"]:
        task = Task("collective", kind, members=tuple(range(servers)), size_bytes=size_bytes)
        time_ms = _iteration_ms(
            TaskGraph(kind, (task,)), one_port_a_switch(servers, 1, PORT_GBPS), steps="stepwise"
        )
        subject = f"{kind} of {size_bytes / 1e6:,.0f} MB, {servers} servers"
        yield Comparison(subject, time_ms, times[peer], "ms")


def _samples(peer: int) -> Iterator[Comparison]:
    for name, *times in _REFERENCES["samples"]:
        yield Comparison(name, _iteration_ms(*load_sample(name)), times[peer], "ms")


def _iteration_ms(graph: TaskGraph, cluster: Cluster, **lowering: Any) -> float:
    """Return the iteration time on a switch that blocks nobody, collectives by their default algorithm."""
    settings = Settings.of(engine="list", lowering=Lowering(**lowering))
    return compare(graph, cluster, settings, (_SWITCH,))[_SWITCH].iteration_ms


def _cards() -> Iterator[Comparison]:
    # Reading all cards takes a tenth of a second, which figures of other kinds need not wait for.
    from topox_core.papers.catalogue import shipped_answers

    for name, kept in shipped_answers().items():
        for row in kept.answer.rows:
            if row.kind == "simulated" and row.theirs and not row.counts_with:
                subject = ", ".join(filter(None, (name, row.series, row.item, row.about)))
                yield Comparison(subject, row.ours, row.theirs, row.unit)


def as_record(kind: Kind) -> dict[str, Any]:
    """Return a kind as JSON has it; errors are shares of the reference."""
    worst = kind.worst
    return {
        "name": kind.name,
        "title": kind.title,
        "against": kind.against,
        "fitted": kind.fitted,
        "comparisons": kind.count,
        "median_absolute_error": kind.share(50),
        "p90_absolute_error": kind.share(90),
        "worst_absolute_error": kind.most,
        "worst": worst and worst.subject,
        "rows": [
            {
                "subject": one.subject,
                "predicted": one.predicted,
                "reference": one.reference,
                "unit": one.unit,
                "error": one.error,
            }
            for one in kind.comparisons
        ],
    }
