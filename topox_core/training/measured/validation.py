"""Predicted against measured: how far the model is from iterations that ran, and in which order it puts them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, permutations

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import refuse_if
from topox_core.model.arrays.groups import by_key
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.numbers import percent
from topox_core.training.iteration import iteration, parts
from topox_core.training.machine import LONGER, MACHINES, Machine, status_of
from topox_core.training.measured.measurements import (
    TIME,
    Measured,
    calibration_rows,
    megatron_rows,
    production_rows,
    uncalibrated_rows,
)

# Two rows that differ in their microbatches alone contradict each other where the one that is
# predicted this much faster was measured this much slower.
CONTRADICTION = 1.05
BUILT_IN = {
    "vtrain": calibration_rows,
    "megatron": megatron_rows,
    "uncalibrated": uncalibrated_rows,
    "production": production_rows,
}
# Parts of an iteration that are communication.
MOVED = ("tensor", "context", "expert", "sends", "gradients")
# From this error on a row asks for more to be said.
FAR_OFF = 0.10
# Beyond this factor a time is in another unit.
_FAR = 100.0


@dataclass(frozen=True)
class Compared:
    """A measured iteration beside its prediction.

    Attributes
    ----------
    contradicts
        The row that this one contradicts, whatever the model says; 0 if none.
    alike, alike_error
        Other rows of its model with as much tensor parallelism, and their mean error.
    """

    measured: Measured
    predicted_ms: float
    contradicts: int = 0
    alike: int = 0
    alike_error: float = 0.0

    @property
    def error(self) -> float:
        """Prediction over measurement, less 1."""
        return self.predicted_ms / self.measured.measured_ms - 1

    @property
    def note(self) -> str:
        """What speaks against the row, and of one that is far off by how much, against what; empty of others."""
        notes = [f"contradicts row {self.contradicts}"] if self.contradicts else []
        if abs(self.error) > FAR_OFF:
            notes += self._distance()
        return "; ".join(notes)

    def _distance(self) -> list[str]:
        """Return how much longer or shorter than predicted it ran, and how far rows like it are off."""
        job = self.measured.job
        spent = parts(iteration(job))
        moved_ms = sum(spent[part] for part in MOVED)
        off_ms = self.measured.measured_ms - self.predicted_ms
        said = [
            f"{abs(off_ms) / 1e3:.3g} s {'longer' if off_ms > 0 else 'shorter'} than predicted, with "
            f"{moved_ms / 1e3:.3g} s of communication and {spent['bubble'] / 1e3:.3g} s of bubble in the prediction"
        ]
        if self.alike:
            rows = "row" if self.alike == 1 else "rows"
            said.append(
                f"{self.alike} other {rows} of the model with TP {job.plan.tensor}: {self.alike_error:+.1%}"
            )
        return said


@dataclass(frozen=True)
class Agreement:
    """How well predictions agree with measurements.

    Attributes
    ----------
    rows
        How many there are.
    mean, median, worst
        Absolute errors, as shares of what was measured.
    within
        Rows whose error is at most 5, 10, 20 and 25 %.
    rank_correlation
        Spearman's; None of fewer than two rows, or where all are alike.
    """

    rows: int
    mean: float
    median: float
    worst: float
    within: dict[int, int]
    rank_correlation: float | None


def predicted(rows: Sequence[Measured], file: str = "measurements") -> list[Compared]:
    """Return the rows with their predictions, those that contradict each other marked.

    Raises
    ------
    InputError
        If a time is so far from its prediction that it must be in another unit.
    """
    times = [iteration(row.job).total_ms for row in rows]
    for row, time_ms in zip(rows, times, strict=True):
        ratio = row.measured_ms / time_ms
        refuse_if(
            (
                not 1 / _FAR < ratio < _FAR,
                f"must be in ms (got {row.measured_ms:g}, {ratio:.3g} times the prediction)",
            ),
            file=file,
            item=f"row {row.row}",
            field=TIME,
        )
    found = [
        Compared(row, time_ms, contradicts)
        for row, time_ms, contradicts in zip(rows, times, _contradictions(rows, times), strict=True)
    ]
    kinds = by_key((_kind(one), one.error) for one in found)
    return [_beside(one, kinds[_kind(one)]) for one in found]


def _kind(one: Compared) -> tuple[str, int]:
    return one.measured.model, one.measured.job.plan.tensor


def _beside(one: Compared, errors: Sequence[float]) -> Compared:
    """Return a row beside the errors of all rows like it, its own among them."""
    others = len(errors) - 1
    return replace(one, alike=others, alike_error=(sum(errors) - one.error) / max(1, others))


def _contradictions(rows: Sequence[Measured], times: Sequence[float]) -> list[int]:
    """Return for each row the one it contradicts: only the microbatches differ, and the order is the reverse."""
    found = [0] * len(rows)
    alike = [row.job.changed(microbatches=row.job.plan.pipeline, microbatch_size=1) for row in rows]
    kinds = by_key(((rows[at].job.plan.batch, one), at) for at, one in enumerate(alike))
    for one, other in chain.from_iterable(permutations(same, 2) for same in kinds.values()):
        slower = rows[one].measured_ms > CONTRADICTION * rows[other].measured_ms
        if slower and CONTRADICTION * times[one] < times[other]:
            found[one], found[other] = rows[other].row, rows[one].row
    return found


def agreement(rows: Sequence[Compared]) -> Agreement:
    """Return how well the predictions of some rows agree with what was measured."""
    errors = np.abs([row.error for row in rows])
    measured = np.array([row.measured.measured_ms for row in rows])
    return Agreement(
        len(rows),
        float(errors.mean()),
        float(np.median(errors)),
        float(errors.max()),
        {share: int((errors <= share / 100).sum()) for share in (5, 10, 20, 25)},
        rank_correlation(measured, np.array([row.predicted_ms for row in rows])),
    )


def by_model(rows: Sequence[Compared]) -> dict[str, Agreement]:
    """Return the agreement inside each model size, smallest first."""
    models = sorted({row.measured.model for row in rows}, key=float)
    return {
        model: agreement([row for row in rows if row.measured.model == model]) for model in models
    }


def rank_correlation(one: FloatArray, other: FloatArray) -> float | None:
    """Return Spearman's rank correlation, equal values sharing their mean rank."""
    # From the mean of all ranks on: half of how many values are less, less half of how many are more.
    ranks = [(_less(values) - _less(-values)) / 2 for values in (one, other)]
    spread = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float((ranks[0] * ranks[1]).sum() / spread) if spread > 0 else None


def _less(values: FloatArray) -> NDArray[np.intp]:
    """Return of each value how many are less."""
    return np.searchsorted(np.sort(values), values)


# What is chosen of a machine: the shares of its peaks, and so how sure predictions are, stay the same.
_CHOSEN = ("gpus_per_server", "memory_gb", "nic_gbps")
_TRIED = {"calibrated": "vtrain", "transferred": "uncalibrated"}
# How far predictions have been off, by the rows that ran; a test holds what is no figure of theirs.
_TRUST = {
    "vtrain": "How much of its peak speeds jobs reach was fitted to {rows} benchmark runs of A100: predictions are off by {median} "
    "in the median and {worst} at most; production runs took 19 to 39 % longer than so predicted.",
    "uncalibrated": "How much of its peak speeds jobs reach is taken from the A100, not measured. All {rows} published runs on H100 "
    "were faster than predicted: predictions are too long by {median} in the median and {worst} at most.",
    "production": f"How much of its peak speeds jobs reach is that of benchmark runs over {LONGER:g}, fitted to three production runs "
    "of MT-NLG 530B; of BLOOM, GPT-3 and LLaMA 65B, held out, it is 2, 2 and 13 % off.",
}


@lru_cache(64)
def tried_on(machine: Machine) -> Agreement | None:
    """Return how predictions with a machine's shares of the peaks agree with iterations that ran; None where they are your own."""
    rows = _tried(machine)
    return agreement(predicted(BUILT_IN[rows]())) if rows else None


@lru_cache(64)
def off_on(machine: Machine) -> tuple[FloatArray, float, float]:
    """Return by which share each prediction with a machine's shares of the peaks is longer than what ran, the median, and the scatter.

    The median is the bias, below 0 where predictions are too short; the scatter is how far one is from it in the median, as a
    share: what may change an order. No errors where the shares are your own.
    """
    rows = _tried(machine)
    errors = np.array([one.error for one in predicted(BUILT_IN[rows]())] if rows else [0.0])
    bias = float(np.median(errors))
    scatter = np.median(np.abs((1 + errors) / (1 + bias) - 1))
    return errors if rows else errors[:0], bias, float(scatter)


def trust(machine: Machine) -> str:
    """Return in a sentence how far predictions on a machine have been from what ran; figures count, not names."""
    found = tried_on(machine)
    if found is None:
        return "How far predictions are off is not known: its speeds are not those of a machine that was measured."
    off = {"median": percent(found.median), "worst": percent(found.worst)}
    return _TRUST[_tried(machine)].format(rows=found.rows, **off)


def _tried(machine: Machine) -> str:
    """Return which of the built-in rows ran with a machine's shares of the peaks; none with your own."""
    known = MACHINES["a100-production"]
    if replace(machine, name=known.name, title=known.title, status=known.status) == known:
        return "production"
    usual = MACHINES.get(machine.name, machine)
    chosen = {name: getattr(usual, name) for name in _CHOSEN}
    return _TRIED.get(status_of(replace(machine, **chosen)), "")
