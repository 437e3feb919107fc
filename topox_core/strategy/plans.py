"""A transformer's plan: tensor x pipeline x data x context x expert, microbatches."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from topox_core.errors import InputError
from topox_core.io.errors import shown
from topox_core.io.ranges import check_number, check_whole
from topox_core.model.durations import bytes_per_ms
from topox_core.strategy.transformers import Shape

_CLUSTER = "cluster of GPUs"


@dataclass(frozen=True)
class ParallelPlan:
    """How a transformer is spread over GPUs.

    Attributes
    ----------
    tensor, pipeline, data, context
        Their product is the number of GPUs; tensor is innermost, then context, data, pipeline.
    expert
        GPUs that share the experts of a layer; taken out of the data-parallel ones, so it divides
        ``data``.
    microbatches, microbatch_size
        Of one replica: how many, and sequences in each.
    recompute
        Whether the backward pass repeats the forward pass and only layer inputs are kept.
    """

    tensor: int
    pipeline: int
    data: int
    context: int
    expert: int
    microbatches: int
    microbatch_size: int
    recompute: bool = False

    @property
    def gpus(self) -> int:
        """GPUs that it takes."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def batch(self) -> int:
        """Sequences of an iteration."""
        return self.data * self.microbatches * self.microbatch_size

    @property
    def words(self) -> str:
        """The plan in one line."""
        return (
            f"TP {self.tensor}, PP {self.pipeline}, DP {self.data}, CP {self.context}, EP {self.expert}, "
            f"{self.microbatches} microbatches of {self.microbatch_size}"
            + (", recomputing" if self.recompute else "")
        )

    def as_record(self) -> dict[str, Any]:
        """Return the plan as the file writes it."""
        return asdict(self)


@dataclass(frozen=True)
class GpuCluster:
    """The machines that a plan is for.

    Attributes
    ----------
    tflops, efficiency
        Peak of one GPU in TFLOP/s, and the share of it that a layer's products reach (before any
        waiting).
    memory_gb, memory_gb_per_s
        Memory of one GPU in 10^9 bytes, and its bandwidth.
    inside_gb_per_s, network_gbps
        What one GPU sends to others of its server (NVLink, one way), and to other servers.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    servers: int
    gpus_per_server: int = 8
    tflops: float = 989.0
    efficiency: float = 0.55
    memory_gb: float = 80.0
    memory_gb_per_s: float = 3350.0
    inside_gb_per_s: float = 450.0
    network_gbps: float = 400.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("servers", "gpus_per_server"):
                check_whole(value, 1, 100_000, file=_CLUSTER, field=field.name)
            else:
                check_number(value, above=True, file=_CLUSTER, field=field.name)
        if self.efficiency > 1:
            problem = f"must be at most 1 (got {shown(self.efficiency)})"
            raise InputError(problem, file=_CLUSTER, field="efficiency")

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.servers * self.gpus_per_server

    def bytes_per_ms(self, span: int) -> float:
        """Return what a GPU sends in a group that lies within ``span`` neighbouring GPUs."""
        return (
            self.inside_gb_per_s * 1e6
            if span <= self.gpus_per_server
            else bytes_per_ms(self.network_gbps)
        )


def check_plan(plan: ParallelPlan, shape: Shape, cluster: GpuCluster, file: str = "plan") -> None:
    """See that a plan suits a model and the number of GPUs.

    Raises
    ------
    InputError
        If a number is out of range or does not divide what it must.
    """
    for field, value in plan.as_record().items():
        if field != "recompute":
            check_whole(value, file=file, field=field)
    if plan.gpus != cluster.gpus:
        raise InputError(
            f"tensor x pipeline x data x context is {plan.gpus:,} and there are {cluster.gpus:,} GPUs",
            file=file,
        )
    for field, whole, what in (
        ("tensor", shape.heads, "attention heads"),
        ("tensor", shape.key_heads, "heads of keys"),
        ("tensor", shape.base.feed_forward, "feed-forward columns"),
        ("tensor", cluster.gpus_per_server, "GPUs of a server"),
        ("context", shape.sequence, "tokens of a sequence"),
        ("expert", shape.experts, "experts"),
        ("expert", plan.data, "data"),
    ):
        if whole % getattr(plan, field):
            problem = f"must divide the number of {what}, {whole} (got {getattr(plan, field)})"
            raise InputError(problem, file=file, field=field)
    if plan.pipeline > shape.base.layers:
        problem = f"must be at most the number of layers, {shape.base.layers} (got {plan.pipeline})"
        raise InputError(problem, file=file, field="pipeline")
