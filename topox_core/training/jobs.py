"""Training jobs that ship, by name; and jobs from and to files: ``*.job.json``, format ``topox-job`` version 1."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TypeVar

from topox_core.errors import InputError, errors_in_file, printable, shown, unknown
from topox_core.io.assertions import KEY as ASSERT, Assertion, assertions_of
from topox_core.io.json import FileFormat, read_object, without_header
from topox_core.io.limits import TRAINING_JOB
from topox_core.schema.records import from_values
from topox_core.training.job import PARTS, Job
from topox_core.training.machine import MACHINES, Machine
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import SHAPES, Shape

_CHOSEN = "the degrees are our choice"
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


FORMAT, VERSION, HEADER_BYTES = "topox-job", 1, 400
_FORM = FileFormat(FORMAT, VERSION, (*PARTS, ASSERT), TRAINING_JOB)
# What a job file may assert: of its schedule, and of its verdict.
ASSERTED = ("iteration_ms", "bound_ms", "gap", "pays_up_to_ms", "cannot_pay_from_ms")
_Part = TypeVar("_Part", Shape, Plan, Machine, Schedule)


def is_job(data: bytes) -> bool:
    """Whether a file that is a task graph or a training job is the latter, by how it begins."""
    return f'"{FORMAT}"'.encode() in data[:HEADER_BYTES]


def load_job(data: bytes, file: str) -> Job:
    """Read a job; shape and machine are objects, or the names of known ones.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, part and field.
    """
    return load_design(data, file)[0]


def load_design(data: bytes, file: str) -> tuple[Job, tuple[Assertion, ...]]:
    """Read a job and what its file asserts of it.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, part and field.
    """
    file = printable(file, 200) if file else "job"
    record = without_header(read_object(data, file, _FORM))
    for part in ("shape", "plan", "machine"):
        if part not in record:
            raise InputError("is missing", file=file, field=part)
    with errors_in_file(file):
        asserted = assertions_of(record.get(ASSERT, []), ASSERTED)
        job = Job(
            _named(SHAPES, record["shape"], "shape") or _part(Shape, record["shape"], "shape"),
            _part(Plan, record["plan"], "plan"),
            _named(MACHINES, record["machine"], "machine")
            or _part(Machine, record["machine"], "machine"),
            _part(Schedule, record.get("schedule", {}), "schedule"),
            **{key: record[key] for key in ("name", "title", "source") if key in record},
        )
        return job, asserted


def dump_job(job: Job) -> bytes:
    """Write a job, all of its fields; reading it back gives an equal one."""
    values = asdict(job)
    names = ("name", "title", "source", "shape", "plan", "machine", "schedule")
    record = {"format": FORMAT, "version": VERSION, **{name: values[name] for name in names}}
    return (json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _named(known: Mapping[str, _Part], entry: object, what: str) -> _Part | None:
    """Return the known one that is named; None if the entry is no name."""
    if not isinstance(entry, str):
        return None
    if entry not in known:
        raise InputError(f"{unknown(entry, known, 'name')} (got {shown(entry)})", field=what)
    return known[entry]


def _part(kind: type[_Part], entry: object, item: str) -> _Part:
    if not isinstance(entry, dict):
        words = "a name or an object" if kind in (Shape, Machine) else "an object in braces"
        raise InputError(f"must be {words} (got {shown(entry)})", field=item)
    return from_values(kind, entry, "", item)
