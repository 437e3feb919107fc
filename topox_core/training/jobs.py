"""Jobs to begin with, by name."""

from __future__ import annotations

from dataclasses import replace

from topox_core.errors import InputError
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.plan import Plan
from topox_core.training.schedule import Schedule
from topox_core.training.shape import SHAPES

_CHOSEN = "degrees chosen here"
# One GPU a server, so that every exchange is on the network.
_SMALL_SERVER = replace(MACHINES["a100"], title="A100 alone", gpus_per_server=1, nic_gbps=50.0)
_HERD = "Llama 3 Herd (arXiv 2407.21783), table 4"


def _llama_405b(data: int, microbatches: int) -> Job:
    gpus = 8 * 16 * data
    # FSDP shares out the optimizer's state and the gradients, not the weights (section 3.3.2).
    plan = Plan(
        tensor=8,
        data=data,
        pipeline=16,
        microbatches=microbatches,
        sequence_parallel=True,
        zero=2,
    )
    title = f"Llama 3.1 405B on {gpus:,} H100"
    shape, machine = SHAPES["llama3-405b"], MACHINES["h100"]
    return Job(shape, plan, machine, Schedule(), f"llama3.1-405b-{gpus}", title, _HERD)


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            SHAPES["llama3-8b"],
            Plan(tensor=8, pipeline=4, data=2, microbatches=8),
            MACHINES["h100"],
            Schedule(overlap_gradients=False),
            "llama3-8b",
            "Llama 3 8B on 64 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["gpt2-small"],
            Plan(pipeline=4, data=2, microbatches=8, microbatch_size=8),
            _SMALL_SERVER,
            Schedule(overlap_gradients=False),
            "gpt-small",
            "GPT-2 small on 8 A100, one per server",
            _CHOSEN,
        ),
        Job(
            SHAPES["llama3-70b"],
            Plan(tensor=8, pipeline=16, data=8, microbatches=20),
            MACHINES["h100"],
            Schedule(overlap_gradients=False),
            "llama3-70b",
            "Llama 3 70B on 1,024 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["llama3-8b"],
            Plan(tensor=8, data=8, zero=3),
            MACHINES["h100"],
            Schedule(),
            "fsdp",
            "Llama 3 8B, fully sharded, on 64 H100",
            _CHOSEN,
        ),
        Job(
            replace(SHAPES["mixtral-8x7b"], layers=2, sequence=4096),
            Plan(tensor=8, data=8, expert=8, microbatches=2, microbatch_size=4),
            MACHINES["h100"],
            Schedule(exchanges="layer", overlap_exchanges=True),
            "moe",
            "Mixture of experts, two layers, on 64 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["llama3-8b"],
            Plan(tensor=4, data=2, pipeline=2, microbatches=2, zero=3),
            MACHINES["perlmutter"],
            Schedule(recompute="full", split_sends=False, regather=False, reduce="pass"),
            "llama3-8b-perlmutter",
            "Llama 3 8B on 16 A100 of Perlmutter",
            "Photonic Rails (arXiv 2507.08119), section 3.1, computing not scaled to its measured time",
        ),
        Job(
            SHAPES["gpt3-175b"],
            Plan(
                tensor=8,
                data=4,
                pipeline=16,
                microbatches=128,
                microbatch_size=3,
                gradient_bytes=2,
            ),
            MACHINES["vtrain"],
            Schedule(recompute="full", attention="full", overlap_gradients=False),
            "gpt3-175b",
            "GPT-3 175B on 512 A100",
            "a measured iteration of vTrain (MICRO 2024): 55.678 s",
        ),
        Job(
            SHAPES["mixtral-8x7b"],
            Plan(
                tensor=8,
                pipeline=4,
                data=8,
                expert=8,
                microbatches=8,
                capacity=1.25,
                sequence_parallel=True,
            ),
            MACHINES["h100"],
            Schedule(recompute="selective", overlap_gradients=False),
            "mixtral-8x7b",
            "Mixture of experts 8 x 7B on 256 H100",
            _CHOSEN,
        ),
        Job(
            SHAPES["deepseek-16b"],
            Plan(tensor=4, data=64, expert=8, microbatches=4),
            replace(MACHINES["h100"], title="H100, four a server", gpus_per_server=4),
            Schedule(overlap_gradients=False),
            "deepseek-16b",
            "DeepSeekMoE 16B on 256 H100",
            _CHOSEN,
        ),
        _llama_405b(64, 32),
        _llama_405b(128, 16),
    )
}


def job_of(name: str) -> Job:
    """Return a job by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in JOBS:
        problem = f"must be a file or one of {', '.join(JOBS)} (got {name[:80]})"
        raise InputError(problem, file="job")
    return JOBS[name]
