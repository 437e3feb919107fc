"""Published iterations on machines and at sizes that no number here was fitted to."""

from __future__ import annotations

from topox_core.training.job import Job
from topox_core.training.jobs import JOBS
from topox_core.training.machines import MACHINES
from topox_core.training.measurements import Measured
from topox_core.training.plan import Plan
from topox_core.training.schedule import Schedule
from topox_core.training.shapes import SHAPES

# Llama 3 Herd (arXiv 2407.21783), table 4: BF16 TFLOP/s a GPU. The paper does not say whether
# attention is counted; here it is not, six operations a parameter and token.
_HERD_TFLOPS = {"llama3.1-405b-8192": 430.0, "llama3.1-405b-16384": 400.0}
# As many virtual stages as leave none of the 126 layers' chunks empty.
_INTERLEAVED = {"schedule__order": "interleaved", "schedule__virtual": 7}
# MegaScale (NSDI 2024), table 2: its baseline, Megatron-LM, with 12,288 GPUs.
_MEGASCALE_MS = 8_570.0


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
    found.append(Measured(len(found) + 1, "175", _megascale(), _MEGASCALE_MS))
    return found


def _megascale() -> Job:
    plan = Plan(tensor=8, data=192, pipeline=8, microbatches=32, sequence_parallel=True, zero=1)
    schedule = Schedule("interleaved", 6, recompute="selective")
    title = "GPT-3 175B on 12,288 A100"
    return Job(SHAPES["gpt3-175b"], plan, MACHINES["a100"], schedule, "megascale-175b", title)
