"""Published iterations of production runs on A100: half of them were fitted to, the other half was held out."""

from __future__ import annotations

from dataclasses import replace

from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.measurements import Measured
from topox_core.training.plan import Plan
from topox_core.training.schedule import Schedule
from topox_core.training.shape import SHAPES, Shape, gpt

# Rows that the factor of production runs was fitted to: those of MT-NLG, the first ones.
FITTED = 3
_MACHINE = MACHINES["a100-production"]
_RECOMPUTED = Schedule(recompute="full", attention="full")
# Smith et al. (arXiv 2201.11990): replicas, and seconds of an iteration of 1,920 sequences.
_MT_NLG = ((8, 60.1), (10, 50.2), (12, 44.4))
# BigScience's BLOOM (arXiv 2211.05100): about 105 s on 384 GPUs.
_BLOOM = Shape(
    *("bloom-176b", "BLOOM 176B", "BLOOM (arXiv 2211.05100), table 3"),
    *(70, 14_336, 112, 14_336, 57_344, 2, 250_880, 2048),
    tied=True,
)
# LLaMA (arXiv 2302.13971), section 2.4: tokens a second and GPU, of 2,048.
_LLAMA_SPEED = 380.0
_LLAMA = Shape(
    *("llama-65b", "LLaMA 65B", "LLaMA (arXiv 2302.13971), table 2"),
    *(80, 8192, 64, 8192, 22_016, 3, 32_000, 2048),
)
# MegaScale (NSDI 2024), table 2: its baseline, Megatron-LM, with 12,288 GPUs.
_MEGASCALE_S = 8.57


def production_rows() -> list[Measured]:
    """Return published production runs, as the production figures of the A100 predict them.

    The order of GPT-3 is assumed, and the plan of LLaMA 65B, which is not printed: the fastest of those tried.
    """
    shape = gpt("mt-nlg-530b", 105, 20_480, 128)
    plans = [
        Plan(tensor=8, pipeline=35, data=data, microbatches=1920 // data) for data, _ in _MT_NLG
    ]
    jobs = [_job(shape, plan, _RECOMPUTED, "MT-NLG 530B") for plan in plans]
    plan = Plan(tensor=4, pipeline=12, data=8, microbatches=128, microbatch_size=2, zero=1)
    jobs.append(_job(_BLOOM, plan, _RECOMPUTED, "BLOOM 176B"))
    sharded = Plan(tensor=4, data=512, microbatch_size=4, sequence_parallel=True, zero=3)
    jobs.append(_job(_LLAMA, sharded, Schedule(), "LLaMA 65B"))
    plan = Plan(tensor=8, data=192, pipeline=8, microbatches=32, sequence_parallel=True, zero=1)
    turns = Schedule("interleaved", 6, recompute="selective")
    jobs.append(_job(SHAPES["gpt3-175b"], plan, turns, "GPT-3 175B"))
    llama_s = sharded.batch * _LLAMA.sequence / (sharded.gpus * _LLAMA_SPEED)
    times = [*(seconds for _, seconds in _MT_NLG), 105.0, llama_s, _MEGASCALE_S]
    models = ("530", "530", "530", "176", "65", "175")
    return [
        Measured(row, model, job, seconds * 1e3)
        for row, (model, job, seconds) in enumerate(zip(models, jobs, times, strict=True), 1)
    ]


def benchmark_rows() -> list[Measured]:
    """Return the same runs as the benchmark figures of the A100 predict them."""
    benchmark = MACHINES["a100"]
    return [replace(row, job=replace(row.job, machine=benchmark)) for row in production_rows()]


def _job(shape: Shape, plan: Plan, schedule: Schedule, words: str) -> Job:
    title = f"{words} on {plan.gpus:,} A100"
    return Job(shape, plan, _MACHINE, schedule, f"{shape.name}-{plan.gpus}", title)
