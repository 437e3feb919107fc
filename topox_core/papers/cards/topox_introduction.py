"""TOPO-X's introduction: gradients and communication of a 175-billion-parameter model on 256 GPUs."""

from collections.abc import Iterator
from dataclasses import replace

from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, at_least, printed, unprinted
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
# What one could mean by the gradients of an iteration, each as bytes a weight.
COUNTS = {
    "sent": "sent by each GPU in a ring all-reduce",
    "held": "one copy",
    "split": "sent by each GPU, weights split over 8 GPUs",
}
PLANS = {
    "data parallel": Plan(data=GPUS, zero=3),
    "tensor and data parallel": Plan(tensor=8, data=GPUS // 8, sequence_parallel=True, zero=3),
    "tensor, pipeline and data parallel": Plan(
        tensor=8, pipeline=8, data=4, microbatches=32, sequence_parallel=True, zero=1
    ),
}


def rows(run: CardRun) -> Iterator[Row]:
    weights, each = SHAPE.parameters, int(run.settings["bytes"])
    ring = 2 * (GPUS - 1) / GPUS
    about = f"{weights / 1e9:.0f} billion weights, {each} bytes, {GPUS} GPUs"
    terabytes = {
        "sent": ring * weights * each / 1e12,
        "held": weights * each / 1e12,
        "split": 2 * (GPUS // 8 - 1) / (GPUS // 8) * weights * each / 8 / 1e12,
    }
    for key, words in COUNTS.items():
        yield printed(
            "gradients",
            words,
            about,
            run.card.printed["gradients"],
            terabytes[key],
            "The paper does not say what it counts; the first reading with 4 bytes, or one copy with 8, gives its number.",
            unit="TB",
        )
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
        gradients = 2 if each == 2 else 4
        job = Job(SHAPE, replace(plan, gradient_bytes=gradients), machine, RECOMPUTED)
        slow, fast = iteration(job), iteration(replace(job, machine=endless))
        share = 100 * (1 - fast.total_ms / slow.total_ms)
        needed = memory(job).total_bytes / 1e9
        about = f"{machine.title}, {plan.words}"
        yield at_least(
            "share",
            words,
            about,
            run.card.printed["share"],
            share,
            "Time that a network without delay and with infinite speed would save; needs "
            f"{needed:,.0f} GB of {machine.memory_gb:g} GB. Plan, batch and network are not printed.",
            unit="%",
        )
        yield unprinted("time", words, about, slow.total_ms / 1000, unit="s")
