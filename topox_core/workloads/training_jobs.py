"""Training jobs as workloads: every field of a job is a parameter, the task graph is the job's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.training.graph import count_tasks, suggested_cluster, tasks
from topox_core.training.job import Job
from topox_core.training.jobs import JOBS
from topox_core.training.plan import MAX_MICROBATCHES, MAX_SKEW
from topox_core.training.program import Program
from topox_core.training.schedule import ATTENTION, EXCHANGES, ORDERS, RECOMPUTE, REDUCTIONS
from topox_core.training.steps import program
from topox_core.workloads.parameter import Parameter, Workload

SOURCE = (
    "one training iteration as docs/iteration.md has it; two shares were fitted to measured A100 iterations, other "
    "machines are transferred"
)
YES_NO = ("no", "yes")
_MOST, _WIDEST = 1_000_000, 100_000_000
_DEGREE = (1.0, float(_MOST))
_SPEED, _SHARE, _DELAY = (1e-6, 1e12), (0.001, 1.0), (0.0, 1e6)
_Row = tuple[str, str, str, tuple[Any, ...]]

# Field, unit, meaning, and its range or its choices; in the order in which they are shown.
_ROWS: dict[str, tuple[_Row, ...]] = {
    "plan": (
        ("tensor", "", "tensor parallel: GPUs that share every product", _DEGREE),
        ("pipeline", "", "pipeline stages", _DEGREE),
        ("data", "", "copies of the pipeline (data parallel)", _DEGREE),
        ("context", "", "context parallel: GPUs that share a sequence", _DEGREE),
        (
            "expert",
            "",
            "expert parallel: GPUs that share a layer's experts; divides data",
            _DEGREE,
        ),
        (
            "microbatches",
            "",
            "microbatches of one replica in an iteration",
            (1.0, float(MAX_MICROBATCHES)),
        ),
        ("microbatch_size", "sequences", "sequences in a microbatch", _DEGREE),
        (
            "zero",
            "",
            "what replicas share out (ZeRO): 0 nothing, 1 optimizer, 2 gradients, 3 weights (FSDP)",
            (0, 1, 2, 3),
        ),
        (
            "sequence_parallel",
            "",
            "whether tensor-parallel GPUs split norms and the residual stream",
            YES_NO,
        ),
        ("gradient_bytes", "bytes", "of a gradient on the network", (2, 4)),
        (
            "capacity",
            "",
            "rows of an expert as a multiple of the even share (mixture of experts)",
            (0.01, 100.0),
        ),
        (
            "skew",
            "",
            "how unevenly tokens choose experts: 0 evenly, 1 strongly unevenly",
            (0.0, MAX_SKEW),
        ),
        ("seed", "", "of the uneven choice", (0.0, float(2**31))),
    ),
    "schedule": (
        (
            "order",
            "",
            "order of the passes; afab is all forward, then all backward",
            ORDERS,
        ),
        ("virtual", "", "stages on a rank; 2 or more when the order is interleaved", (1.0, 1000.0)),
        ("recompute", "", "what the backward pass computes again", RECOMPUTE),
        ("attention", "", "flash: one fused kernel; full: scores in memory", ATTENTION),
        (
            "overlap_gradients",
            "",
            "whether gradients leave layer by layer during the last backward pass",
            YES_NO,
        ),
        ("overlap_sends", "", "whether a sender goes on before its message has gone", YES_NO),
        ("split_sends", "", "whether each tensor-parallel GPU sends its share alone", YES_NO),
        (
            "tensor_overlap",
            "",
            "backward: sums of input gradients hide behind weight gradients",
            ("none", "backward"),
        ),
        (
            "exchanges",
            "",
            "whether context and experts exchange once a pass or layer by layer",
            EXCHANGES,
        ),
        (
            "overlap_exchanges",
            "",
            "whether one microbatch computes while tokens of another travel",
            YES_NO,
        ),
        ("reshard", "", "FSDP: whether gathered weights are dropped after a pass", YES_NO),
        ("regather", "", "FSDP: whether a backward pass gathers its own weights", YES_NO),
        ("reduce", "", "FSDP: when gradients are scattered", REDUCTIONS),
        (
            "iteration_ms",
            "ms",
            "computing is scaled until the iteration lasts this long; 0: not scaled",
            (0.0, 1e9),
        ),
    ),
    "shape": (
        ("layers", "", "transformer layers", _DEGREE),
        ("hidden", "", "width of the residual stream", (1.0, float(_WIDEST))),
        ("heads", "", "attention heads", _DEGREE),
        (
            "key_value",
            "",
            "width of all key heads together (hidden without grouped queries)",
            (1.0, float(_WIDEST)),
        ),
        (
            "feed_forward",
            "",
            "width of the feed-forward block, or of one expert",
            (1.0, float(_WIDEST)),
        ),
        ("matrices", "", "of the block: 2 (GELU) or 3 (gated)", (2, 3)),
        ("vocabulary", "", "entries of the vocabulary", (1.0, float(_WIDEST))),
        ("sequence", "tokens", "sequence length", (1.0, float(_WIDEST))),
        ("experts", "", "experts of a layer; 1: dense", _DEGREE),
        ("top_k", "", "experts a token is sent to", _DEGREE),
        ("tied", "", "whether input and output table are one", YES_NO),
        ("positions", "", "whether positions are learned", YES_NO),
        ("dropout", "", "three dropouts a layer (GPT-2, GPT-3)", YES_NO),
    ),
    "machine": (
        ("gpus_per_server", "", "GPUs that the fast links of a server join", _DEGREE),
        ("tflops", "TFLOP/s", "dense BF16 peak of a GPU", _SPEED),
        ("memory_gb", "GB", "memory of a GPU", _SPEED),
        ("memory_gb_per_s", "GB/s", "bandwidth of that memory", _SPEED),
        ("inside_gb_per_s", "GB/s", "what a GPU sends inside its server, one way", _SPEED),
        ("nic_gbps", "Gbit/s", "network card of a GPU; all of a server feed its ports", _SPEED),
        ("matmul_share", "", "of the peak that matrix products reach", _SHARE),
        ("memory_share", "", "of the bandwidth that memory reaches", _SHARE),
        ("inside_share", "", "of their speed that links inside reach", _SHARE),
        ("network_share", "", "of its speed that a network card reaches", _SHARE),
        ("inside_call_us", "us", "of a collective inside a server, once", _DELAY),
        ("inside_step_us", "us", "the same, each step of its ring", _DELAY),
        ("network_call_us", "us", "of a collective across servers, once", _DELAY),
        ("network_step_us", "us", "the same, each step of its ring", _DELAY),
        ("host_ms", "ms", "what the host takes to launch a pass", _DELAY),
    ),
}
PART_OF = {row[0]: part for part, rows in _ROWS.items() for row in rows}
PORTS = Parameter(
    "ports", 2, "", "ports of a server, each on a switch of its own", 1, 64, group="machine"
)


def workload_of(job: Job, ports: int = PORTS.default) -> Workload:  # type: ignore[assignment]
    """Return a job as a workload."""
    parameters = [
        _parameter(part, row, getattr(getattr(job, part), row[0]))
        for part, rows in _ROWS.items()
        for row in rows
    ]

    def made(values: dict[str, Any]) -> Job:
        return _changed(job, values)

    def all_tasks(values: dict[str, Any]) -> Iterator[Task]:
        return tasks(_program(made(values)))

    def cluster(values: dict[str, Any]) -> Cluster:
        return suggested_cluster(made(values), values["ports"])

    return Workload(
        job.name,
        job.title,
        f"{job.words}.",
        f"{SOURCE}; model: {job.shape.source}",
        (*parameters, replace(PORTS, default=ports)),
        all_tasks,
        lambda values: _count(made(values)),
        cluster,
        lambda values: made(values).words,
    )


def job_of(name: str, parameters: Mapping[str, object]) -> Job | None:
    """Return the job that a workload with changed parameters is; None of a workload that is none.

    Raises
    ------
    InputError
        If a parameter is unknown or its value cannot be.
    """
    workload = TRAINING_JOBS.get(name)
    if workload is None:
        return None
    known = {one.key: one for one in workload.parameters}
    values = {
        key: known[key].value(value, name) for key, value in parameters.items() if key in known
    }
    return _changed(JOBS[name], values)


def as_workload(job: Job) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a job as the name of a workload and the parameters that differ from its own.

    The known job of the same name is taken, else the first one of the same model, else the one from which
    fewest parameters differ.
    """
    alike = [one for one in JOBS.values() if job.name == one.name]
    alike = alike or [one for one in JOBS.values() if job.shape.name == one.shape.name]
    found = [(base.name, _differences(job, base)) for base in alike[:1] or JOBS.values()]
    return min(found, key=lambda one: len(one[1]))


def _differences(job: Job, base: Job) -> tuple[tuple[str, str], ...]:
    wanted, own = _values(job), _values(base)
    return tuple((key, _text(value)) for key, value in wanted.items() if value != own[key])


def _values(job: Job) -> dict[str, Any]:
    return {key: _as_value(getattr(getattr(job, part), key)) for key, part in PART_OF.items()}


def _as_value(value: Any) -> Any:
    """Return a field as a parameter has it: words for truth, 0 for nothing."""
    if isinstance(value, bool):
        return YES_NO[value]
    return 0.0 if value is None else value


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _changed(base: Job, values: Mapping[str, Any]) -> Job:
    changes = {}
    for key, value in values.items():
        if key not in PART_OF:
            continue
        part = PART_OF[key]
        old = getattr(getattr(base, part), key)
        new = value == "yes" if isinstance(old, bool) else value
        if key == "iteration_ms":
            new = value or None
        if new != old:
            changes[f"{part}__{key}"] = new
    return base.changed(**changes) if changes else base


def _parameter(part: str, row: _Row, value: Any) -> Parameter:
    key, unit, meaning, limits = row
    default = _as_value(value)
    whole = isinstance(default, int)
    if isinstance(limits[0], str) or (whole and isinstance(limits[0], int)):
        return Parameter(key, default, unit, meaning, choices=limits, group=part)
    return Parameter(key, default, unit, meaning, limits[0], limits[1], group=part)


def _count(job: Job) -> int:
    """Count the tasks; where the passes alone are too many, the program is not even built."""
    passes = 2 * job.chunks * job.plan.microbatches * job.plan.replicas
    return passes if passes > _MOST else count_tasks(_program(job))


@lru_cache(maxsize=2)
def _program(job: Job) -> Program:
    return program(job)


TRAINING_JOBS = {
    job.name: workload_of(job, ports=4 if job.name == "llama3-70b" else 2) for job in JOBS.values()
}
assert all(
    {one.name for one in fields(type(getattr(job, part)))} - {"name", "title", "source", "status"}
    == {row[0] for row in rows}
    for job in JOBS.values()
    for part, rows in _ROWS.items()
)
