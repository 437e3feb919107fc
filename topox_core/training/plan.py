"""How a model is spread over GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields
from topox_core.training.checks import degree, divides, obey

MAX_MICROBATCHES = 65_536
MAX_SKEW = 3
FSDP = 3  # the stage of ZeRO that shares out the weights too


@dataclass(frozen=True)
class Plan:
    """The degrees of parallelism, and the microbatches.

    Attributes
    ----------
    tensor, context, data, pipeline
        Their product is the number of GPUs, which are numbered tensor first, then context, data,
        pipeline.
    expert
        GPUs that share the experts of a layer; a subset of the ``data`` ranks, whose number it divides.
    microbatches, microbatch_size
        Of one replica: how many an iteration has, and the sequences in each.
    sequence_parallel
        Norms, dropouts and the residual stream are split over the tensor-parallel GPUs.
    zero
        What replicas share out among them (ZeRO, SC 2020): 0 nothing, 1 the optimizer's state, 2 the
        gradients too (here only memory differs from 1), 3 the weights too (FSDP).
    gradient_bytes
        Of a gradient on the network and where it is added up: 4 (FP32) or 2 (FP16, BF16).
    capacity
        Rows of an expert are padded or cut to this multiple of the even share; 1 is even load without
        padding.
    skew, seed
        How unevenly tokens choose experts in the task graph, 0 evenly to 3, and the seed of that choice
        (:mod:`topox_core.training.graph`). The closed form takes the mean.

    Raises
    ------
    InputError
        If a field is out of range or ``expert`` does not divide ``data``.
    """

    tensor: Annotated[
        int, degree("Tensor parallel", "tensor parallel: GPUs that share every product")
    ] = 1
    context: Annotated[
        int, degree("Context parallel", "context parallel: GPUs that share a sequence")
    ] = 1
    data: Annotated[int, degree("Data parallel", "copies of the pipeline (data parallel)")] = 1
    pipeline: Annotated[int, degree("Pipeline", "pipeline stages")] = 1
    expert: Annotated[
        int,
        degree(
            "Expert parallel",
            "expert parallel: GPUs that share a layer's experts; divides data",
        ),
    ] = 1
    microbatches: Annotated[
        int,
        setting(
            "Microbatches",
            description="microbatches of one replica in an iteration",
            ge=1,
            le=MAX_MICROBATCHES,
        ),
    ] = 1
    microbatch_size: Annotated[
        int, degree("Microbatch", "sequences in a microbatch", "sequences")
    ] = 1
    sequence_parallel: Annotated[
        bool,
        plain_setting(
            "Sequence parallel",
            "whether tensor-parallel GPUs split norms and the residual stream",
        ),
    ] = False
    zero: Annotated[
        int,
        plain_setting(
            "ZeRO",
            "what replicas share out (ZeRO): 0 nothing, 1 optimizer, 2 gradients, 3 weights (FSDP)",
            choices=(0, 1, 2, 3),
        ),
    ] = 0
    gradient_bytes: Annotated[
        int, setting("Gradients", "bytes", "of a gradient on the network", choices=(2, 4))
    ] = 4
    capacity: Annotated[
        float,
        plain_setting(
            "Capacity",
            "rows of an expert as a multiple of the even share (mixture of experts)",
            ge=0.01,
            le=100,
        ),
    ] = 1.0
    skew: Annotated[
        float,
        plain_setting(
            "Skew",
            "how unevenly tokens choose experts: 0 evenly, 1 strongly unevenly",
            ge=0,
            le=MAX_SKEW,
        ),
    ] = 0.0
    seed: Annotated[int, plain_setting("Seed", "of the uneven choice", ge=0, le=2**31)] = 0

    def __post_init__(self) -> None:
        check_fields(self, item="plan")
        obey(self, "plan", "expert", [divides(self.data, "data")], self.data)

    @property
    def gpus(self) -> int:
        """GPUs that it takes."""
        return self.tensor * self.context * self.data * self.pipeline

    @property
    def fsdp(self) -> bool:
        """Whether replicas share out the weights too, and gather them layer by layer."""
        return self.zero == FSDP

    @property
    def replicas(self) -> int:
        """Tensor-parallel groups that hold the same weights, experts aside."""
        return self.data * self.context

    @property
    def expert_replicas(self) -> int:
        """Tensor-parallel groups that hold the same experts."""
        return self.replicas // self.expert

    @property
    def batch(self) -> int:
        """Sequences of an iteration."""
        return self.data * self.microbatches * self.microbatch_size

    @property
    def words(self) -> str:
        """The plan in one line."""
        degrees = (
            ("TP", self.tensor),
            ("CP", self.context),
            ("PP", self.pipeline),
            ("EP", self.expert),
        )
        parts = [f"{word} {degree}" for word, degree in degrees if degree > 1]
        parts += ["SP"] if self.sequence_parallel else []
        parts.append(f"{'FSDP' if self.fsdp else 'DP'} {self.data}")
        return f"{', '.join(parts)}, {self.microbatches} microbatches of {self.microbatch_size}"
