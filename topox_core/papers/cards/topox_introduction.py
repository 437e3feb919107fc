"""TOPO-X's introduction: gradients and communication of a 175-billion-parameter model on 256 GPUs."""

from dataclasses import replace

from topox_core.papers.card import CardRun, Rows
from topox_core.training.iteration import iteration
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.memory import memory
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import SHAPES

# Section I: gradients that an iteration transfers, and the share of training that communicates.
GPUS = 256
ENDLESS = 1e9
RECOMPUTED = Schedule(recompute="full")
SHAPE = SHAPES["gpt3-175b"]
PLANS = {
    "data parallel": Plan(data=GPUS, zero=3),
    "tensor and data parallel": Plan(tensor=8, data=GPUS // 8, sequence_parallel=True, zero=3),
    "tensor, pipeline and data parallel": Plan(
        tensor=8, pipeline=8, data=4, microbatches=32, sequence_parallel=True, zero=1
    ),
}


def rows(run: CardRun) -> Rows:
    weights, each = SHAPE.parameters, int(run.settings["bytes"])
    ring = 2 * (GPUS - 1) / GPUS
    # What one could mean by the gradients of an iteration.
    for item, terabytes in (
        ("sent by each GPU in a ring all-reduce", ring * weights * each / 1e12),
        ("one copy", weights * each / 1e12),
        (
            "sent by each GPU, weights split over 8 GPUs",
            2 * (GPUS // 8 - 1) / (GPUS // 8) * weights * each / 8 / 1e12,
        ),
    ):
        yield run.row("gradients", item, terabytes)
    machine = MACHINES[str(run.settings["machine"])]
    machine = replace(machine, nic_gbps=machine.nic_gbps * float(run.settings["network"]))
    # Links that take no time, inside servers and between them.
    endless = replace(
        machine,
        inside_gb_per_s=ENDLESS,
        nic_gbps=ENDLESS,
        inside_call_us=0.0,
        inside_step_us=0.0,
        network_call_us=0.0,
        network_step_us=0.0,
    )
    for words, plan in PLANS.items():
        job = Job(SHAPE, replace(plan, gradient_bytes=2 if each == 2 else 4), machine, RECOMPUTED)
        slow, fast = iteration(job), iteration(replace(job, machine=endless))
        share = 100 * (1 - fast.total_ms / slow.total_ms)
        needed = memory(job).total_bytes / 1e9
        yield run.row("share", words, share, machine=machine, plan=plan, needed=needed)
        yield run.row("time", words, slow.total_ms / 1000, machine=machine, plan=plan)
