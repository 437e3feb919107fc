"""Published iterations on a machine that no number here was fitted to."""

from __future__ import annotations

from topox_core.training.jobs import JOBS
from topox_core.training.measurements import Measured

# Llama 3 Herd (arXiv 2407.21783), table 4: BF16 TFLOP/s a GPU. The paper does not say whether
# attention is counted; here it is not, six operations a parameter and token.
_HERD_TFLOPS = {"llama3.1-405b-8192": 430.0, "llama3.1-405b-16384": 400.0}
# As many virtual stages as leave none of the 126 layers' chunks empty.
_INTERLEAVED = {"schedule__order": "interleaved", "schedule__virtual": 7}


def uncalibrated_rows() -> list[Measured]:
    """Return published iterations where nothing was calibrated; rows of Llama 3.1 once in 1F1B order, once interleaved.

    Times of Llama 3.1 405B are derived from its published speed. The orders are assumed: the papers do
    not print them.
    """
    found: list[Measured] = []
    for name, tflops in _HERD_TFLOPS.items():
        job = JOBS[name]
        operations = 6.0 * job.shape.parameters * job.plan.batch * job.shape.sequence
        derived_ms = operations / (job.plan.gpus * tflops * 1e9)
        for changes in ({}, _INTERLEAVED):
            found.append(Measured(len(found) + 1, "405", job.changed(**changes), derived_ms))
    return found
