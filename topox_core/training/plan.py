"""How a model is spread over GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.checks import Fields, divides

MAX_MICROBATCHES = 65_536
MAX_SKEW = 3.0


@dataclass(frozen=True)
class Plan:
    """The degrees of parallelism, and the microbatches.

    Attributes
    ----------
    tensor, context, data, pipeline
        Their product is the number of GPUs, which are numbered tensor first, then context, data,
        pipeline.
    expert
        GPUs that share the experts of a layer; taken out of ``data``, which it divides.
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

    tensor: int = 1
    context: int = 1
    data: int = 1
    pipeline: int = 1
    expert: int = 1
    microbatches: int = 1
    microbatch_size: int = 1
    sequence_parallel: bool = False
    zero: int = 0
    gradient_bytes: int = 4
    capacity: float = 1.0
    skew: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        fields = Fields(self, "plan")
        fields.whole("tensor context data pipeline expert microbatch_size")
        fields.whole("microbatches", most=MAX_MICROBATCHES)
        fields.flag("sequence_parallel")
        fields.choice("zero", (0, 1, 2, 3))
        fields.choice("gradient_bytes", (2, 4))
        fields.number("capacity", 0.01, 100.0)
        fields.number("skew", 0.0, MAX_SKEW)
        fields.whole("seed", 0, 2**31)
        fields.obey("expert", [divides(self.data, "data")], self.data)

    @property
    def gpus(self) -> int:
        """GPUs that it takes."""
        return self.tensor * self.context * self.data * self.pipeline

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
        parts.append(f"{'FSDP' if self.zero == 3 else 'DP'} {self.data}")
        return f"{', '.join(parts)}, {self.microbatches} microbatches of {self.microbatch_size}"
