"""Training jobs on photonic rails: what a rail asks of a job, what its settings are called, and the presets."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from topox_core.errors import check_known, errors_in_file, look_up, refuse_if, shown
from topox_core.training.job import SETTINGS, Job
from topox_core.training.machine import MACHINES
from topox_core.training.plan import FSDP, Plan, Schedule
from topox_core.training.shape import SHAPES, Shape

# What options, links and files call some settings of a job, or their values, as well.
ALIASES: Mapping[str, tuple[str, Mapping[Any, Any]]] = {
    "schedule": ("order", {}),
    "virtual_stages": ("virtual", {}),
    "fsdp": ("zero", {True: FSDP, False: 0}),
    "recompute": ("recompute", {True: "full", False: "none"}),
    "iteration_ms": ("iteration_ms", {"none": 0.0}),
}
# Whoever builds a rail's traffic says how it is exchanged, and that tokens choose experts evenly.
_NOT_ON_RAILS = ("exchanges", "overlap_exchanges", "skew", "seed")
# What a job on rails may change: options of commands, axes of studies, the sidebar.
KEYS = sorted({"shape", "machine", "gpus", *SETTINGS, *ALIASES} - {*_NOT_ON_RAILS})

# What a machine has by the server it is in, and degrees whose product is the GPUs.
_OF_A_SERVER = ("gpus_per_server", "nic_gbps", "network_share", "host_ms")
_SPREAD = ("tensor", "context", "pipeline", "data")


def settings_of(job: Job) -> dict[str, Any]:
    """Return what holds of a job by the names of :data:`KEYS`, shape and machine apart."""
    also = {"schedule": job.schedule.order, "virtual_stages": job.schedule.virtual}
    truths = {"fsdp": job.plan.fsdp, "recompute": job.schedule.recompute == "full"}
    return {**job.values, **also, **truths, "gpus": job.plan.gpus}


def changed(job: Job, settings: Mapping[str, Any]) -> Job:
    """Return a job on rails with some of :data:`KEYS` replaced, checked again.

    Parameters
    ----------
    settings
        Shape and machine by their names; tokens of a sequence, servers and network cards stay. The degrees must
        make ``gpus``, those of ``job`` unless given.

    Raises
    ------
    InputError
        If a key is unknown, or a value does not fit the others or a rail.
    """
    with errors_in_file(f"preset {job.name}"):
        changes: dict[str, Any] = {}
        for key, value in settings.items():
            check_known(key, KEYS, field=key)
            no_truth = key == "fsdp" and not isinstance(value, bool)
            refuse_if((no_truth, f"must be true or false (got {shown(value)})"), field=key)
            name, values = ALIASES.get(key, (key, {}))
            changes[name] = values.get(value, value) if isinstance(value, bool | str) else value
        gpus = changes.pop("gpus", job.plan.gpus)
        if "shape" in changes:
            shape = look_up(changes["shape"], SHAPES, "model", field="shape")
            changes["shape"] = replace(shape, sequence=job.shape.sequence)
        if "machine" in changes:
            machine = look_up(changes["machine"], MACHINES, "machine", field="machine")
            own = {name: getattr(job.machine, name) for name in _OF_A_SERVER}
            changes["machine"] = replace(machine, **own)
        new = job.changed(**changes)
        product = " x ".join(str(getattr(new.plan, name)) for name in _SPREAD)
        must = f"must be {' x '.join(_SPREAD)} = {product} = {new.plan.gpus:,}"
        refuse_if((new.plan.gpus != gpus, f"{must} (got {shown(gpus)})"), field="gpus")
        check_on_rail(new)
    return new


def check_on_rail(job: Job) -> None:
    """Raise InputError unless tensor parallelism fills a server, so that a server is one rank of every rail."""
    tensor, gpus = job.plan.tensor, job.machine.gpus_per_server
    refuse_if(
        (
            tensor != gpus,
            f"must be gpus_per_server, {gpus} (got {tensor}): tensor parallel GPUs fill a server, "
            "which is one rank of every rail",
        ),
        file=f"preset {job.name}",
        field="tensor",
    )


def degrees_in_words(job: Job) -> str:
    """Return GPUs, degrees and order in one line."""
    plan = job.plan
    parts = [(one, plan.degrees[one]) for one in ("TP", "CP", "PP", "DP", "EP")]
    words = {"DP": "FSDP"} if plan.fsdp else {}
    degrees = ", ".join(f"{words.get(one, one)} {degree}" for one, degree in parts if degree > 1)
    order = replace(job.schedule, recompute="none").words
    return f"{plan.gpus:,} GPUs: {degrees or 'one GPU'}; {plan.microbatches_words}, {order}"


# Llama 3.1's context-parallel row trains sequences of 131,072 tokens (arXiv 2407.21783, table 4).
_HERD = "Llama 3 Herd (arXiv 2407.21783), table 4"
_CHOSEN = "; the degrees are our choice"
_TOKENS = 8192


def _job(
    name: str,
    title: str,
    source: str,
    shape: Shape,
    machine: str = "h100",
    zero: int = FSDP,
    **settings: Any,
) -> Job:
    """Return a job whose servers tensor parallelism fills, with sharded weights unless said otherwise."""
    plain = Job(
        replace(shape, sequence=_TOKENS),
        Plan(sequence_parallel=settings.get("split_sends", True), zero=zero),
        MACHINES[machine],
        Schedule(overlap_gradients=False),
        name,
        title,
        source,
    )
    # The papers simulate a rail at its card's full speed.
    return plain.changed(gpus_per_server=settings["tensor"], network_share=1.0, **settings)


def _llama_405b(name: str, words: str = "", source: str = "", **degrees: Any) -> Job:
    """Return Llama 3.1 405B in 16 pipeline stages, on servers of eight H100."""
    gpus = 8 * 16 * degrees["data"] * degrees.get("context", 1)
    title, shape = f"Llama 3.1 405B on {gpus:,} H100{words}", SHAPES["llama3-405b"]
    return _job(name, title, _HERD + source, shape, tensor=8, pipeline=16, **degrees)


PRESETS: dict[str, Job] = {
    job.name: job
    for job in (
        _job(
            "llama3-8b-perlmutter",
            "Llama 3 8B on 16 A100 of Perlmutter",
            "Photonic Rails (arXiv 2507.08119), section 3.1: four servers of four A100, Slingshot 11 at 200 Gbit/s; 10.2 s and "
            "the host's 1.7 ms (median of the recorded windows below 20 ms before a pass): artifact opusfabric/Opus",
            SHAPES["llama3-8b"],
            tensor=4,
            pipeline=2,
            data=2,
            microbatches=2,
            recompute="full",
            regather=False,
            reduce="pass",
            split_sends=False,
            nic_gbps=200.0,
            machine="perlmutter",
            iteration_ms=10_200.0,
            host_ms=1.7,
        ),
        _llama_405b("llama3.1-405b-8192", data=64, microbatches=32),
        _llama_405b("llama3.1-405b-16384", data=128, microbatches=16),
        _llama_405b(
            "llama3.1-405b-16384-cp",
            data=8,
            microbatches=16,
            words=", long context",
            context=16,
            sequence=131_072,
        ),
        _llama_405b(
            "llama3.1-405b-2048", data=16, microbatches=16, source="; scaled down to 16 replicas"
        ),
        _job(
            "llama3-70b",
            "Llama 3 70B on 512 H100",
            _HERD + _CHOSEN,
            SHAPES["llama3-70b"],
            tensor=8,
            pipeline=8,
            data=8,
            microbatches=16,
        ),
        _job(
            "mixtral-8x7b",
            "Mixture of experts 8 x 7B on 256 H100",
            SHAPES["mixtral-8x7b"].source + _CHOSEN,
            SHAPES["mixtral-8x7b"],
            tensor=8,
            pipeline=4,
            data=8,
            expert=8,
            microbatches=8,
        ),
        _job(
            "deepseek-16b",
            "DeepSeekMoE 16B on 256 GPUs",
            SHAPES["deepseek-16b"].source + _CHOSEN,
            SHAPES["deepseek-16b"],
            tensor=4,
            pipeline=1,
            data=64,
            expert=8,
            microbatches=4,
            sequence=4096,
        ),
        _job(
            "toy",
            "Toy: DP 2, PP 2, TP 2",
            "degrees, 62.2416 s and a window of 1.1 ms: the published artifact's toy case; model, microbatches and that "
            "the short window lies before the sum of a tied table are chosen here",
            replace(SHAPES["llama3-8b"], tied=True),
            tensor=2,
            pipeline=2,
            data=2,
            zero=0,
            microbatches=2,
            iteration_ms=62_241.6,
            host_ms=1.1,
        ),
    )
}


def preset(name: str) -> Job:
    """Return a preset by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    return look_up(name, PRESETS, "preset", file="rails", field="preset")
