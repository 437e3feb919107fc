"""Where predictions of iterations are biased, and what one more number would gain.

    python -m benchmarks.iteration_residuals

Prints the mean error of vTrain's calibration rows by model and tensor parallelism, then for each candidate
term the mean absolute error and the rank correlation inside each model size: fitted to all rows, and with
each plan predicted by a fit to all others. The last lines are no terms but ceilings: a factor of its own for
each model and tensor degree, and for each plan, judged on the rows that it was fitted to.
"""

from __future__ import annotations

import sys

import numpy as np

from topox_core.training.costs.collectives import message
from topox_core.training.costs.memory import memory
from topox_core.training.iteration import iteration, parts
from topox_core.training.measured.measurements import calibration_rows
from topox_core.training.measured.validation import rank_correlation

ROWS = calibration_rows()
JOBS = [row.job for row in ROWS]
MEASURED = np.array([row.measured_ms for row in ROWS])
ITERATIONS = [iteration(job) for job in JOBS]
PREDICTED = np.array([one.total_ms for one in ITERATIONS])
PARTS = [parts(one) for one in ITERATIONS]
MODEL = np.array([float(row.model) for row in ROWS])
TENSOR, DATA, STAGES, MANY = (
    np.array([getattr(job.plan, field) for job in JOBS], float)
    for field in ("tensor", "data", "pipeline", "microbatches")
)
PLANS = [(row.model, row.job.plan.tensor, row.job.plan.data, row.job.plan.pipeline) for row in ROWS]
PLAN = np.array([sorted(set(PLANS)).index(plan) for plan in PLANS])
NARROW = (TENSOR < 8).astype(float)
MIDDLE = (MODEL > 10) & (MODEL < 100) & (TENSOR < 8)


def part(name: str) -> np.ndarray:
    """Return a part of all predictions, in ms."""
    return np.array([one[name] for one in PARTS])


def terms() -> dict[str, np.ndarray]:
    """Return what each candidate adds, in ms, if its number is 1; a column a number."""
    slots = MANY + STAGES - 1
    sent_mb = np.array([message(job).size_bytes / 1e6 for job in JOBS]) * (STAGES > 1)
    layers = np.array([job.shape.layers for job in JOBS]) / STAGES
    held_gb = np.array([memory(job).total_bytes / 1e9 for job in JOBS])
    width = np.array([job.shape.hidden for job in JOBS]) / TENSOR
    launches = slots * layers
    found = {
        "computing, TP < 8": PREDICTED * NARROW,
        "computing by log2 DP (stragglers)": PREDICTED * np.log2(DATA),
        "computing by log2 DP, TP < 8": PREDICTED * np.log2(DATA) * NARROW,
        "computing by replicas in a server": PREDICTED * np.maximum(8 / TENSOR - 1, 0),
        "computing by 1 / width of products": PREDICTED * 1e3 / width,
        "computing by memory in use": PREDICTED * held_gb,
        "gradients": part("gradients"),
        "gradients, TP < 8": part("gradients") * NARROW,
        "tensor-parallel exchanges": part("tensor"),
        "messages by bytes": sent_mb * slots,
        "messages by bytes, TP < 8": sent_mb * slots * NARROW,
        "messages by calls, TP < 8": slots * NARROW * (STAGES > 1),
        "bubble": part("bubble"),
        "launching, a layer and pass": launches,
    }
    columns = {name: values[:, None] for name, values in found.items()}
    both = np.stack([launches, part("tensor")], axis=1)
    return columns | {"launching and tensor-parallel exchanges": both}


def fitted(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the numbers that make the absolute errors of some rows least (reweighted least squares)."""
    wanted, share = 1 - PREDICTED / MEASURED, columns / MEASURED[:, None]
    weight = np.ones(len(rows))
    numbers = np.zeros(columns.shape[1])
    for _ in range(60):
        a, b = share[rows] * weight[:, None], wanted[rows] * weight
        numbers = np.linalg.lstsq(a, b, rcond=None)[0]
        weight = np.abs(wanted[rows] - share[rows] @ numbers).clip(1e-3) ** -0.5
    return numbers


def show(name: str, times: np.ndarray) -> None:
    """Print how far times are from the measured ones, and how well they rank plans of one size."""
    errors = times / MEASURED - 1
    ranks = [rank_correlation(MEASURED[m == MODEL], times[m == MODEL]) for m in np.unique(MODEL)]
    print(
        f"{name:42} {100 * np.abs(errors).mean():6.2f} % {100 * errors[MIDDLE].mean():+7.1f} % "
        + " ".join(f"{rank:6.3f}" for rank in ranks)
    )


def main() -> int:
    errors = PREDICTED / MEASURED - 1
    for model in np.unique(MODEL):
        for tensor in np.unique(TENSOR[model == MODEL]):
            rows = (model == MODEL) & (tensor == TENSOR)
            print(f"{model:5g} B, TP {tensor:2g}: {rows.sum():2} rows, {errors[rows].mean():+.1%}")
    sizes = " ".join(f"{m:4g} B" for m in np.unique(MODEL))
    print(f"\n{'':42} {'error':>8} {'TP < 8*':>9} {sizes}   (* 18.4 B and 39.1 B)")
    show("as it is", PREDICTED)
    everything = np.arange(len(ROWS))
    for name, columns in terms().items():
        show(name, PREDICTED + columns @ fitted(columns, everything))
        left_out = PREDICTED.copy()
        for plan in np.unique(PLAN):
            numbers = fitted(columns, np.flatnonzero(plan != PLAN))
            left_out[plan == PLAN] += columns[plan == PLAN] @ numbers
        show("  each plan left out", left_out)
    for name, kinds in (("model and TP", MODEL * 100 + TENSOR), ("plan", PLAN)):
        times = PREDICTED.copy()
        for kind in np.unique(kinds):
            rows = kinds == kind
            times[rows] *= np.exp(np.median(np.log(MEASURED[rows] / PREDICTED[rows])))
        show(f"ceiling: a factor for each {name}", times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
