"""How a model is spread over GPUs; and in which order they compute, what twice, and what at the same time."""

from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated

from topox_core.errors import InputError
from topox_core.model.arrays.waiting_order import earliest
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields
from topox_core.text.numbers import NBSP, plural
from topox_core.training.checks import degree, divides, obey

MAX_MICROBATCHES = 65_536
MAX_SKEW = 3
FSDP = 3  # the stage of ZeRO that shares out the weights too
# What the degrees of parallelism are called for short.
DEGREES = {"tensor": "TP", "pipeline": "PP", "data": "DP", "context": "CP", "expert": "EP"}


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
        (:mod:`topox_core.training.pipeline.graph`). The closed form takes the mean.

    Raises
    ------
    InputError
        If a field is out of range or ``expert`` does not divide ``data``.
    """

    tensor: Annotated[
        int, degree("Tensor parallel (TP)", "tensor parallel: GPUs that share every product")
    ] = 1
    context: Annotated[
        int, degree("Context parallel (CP)", "context parallel: GPUs that share a sequence")
    ] = 1
    data: Annotated[int, degree("Data parallel (DP)", "copies of the pipeline (data parallel)")] = 1
    pipeline: Annotated[int, degree("Pipeline (PP)", "pipeline stages")] = 1
    expert: Annotated[
        int,
        degree(
            "Expert parallel (EP)",
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
    def degrees(self) -> dict[str, int]:
        """The degrees by their short words."""
        return {word: getattr(self, name) for name, word in DEGREES.items()}

    @property
    def words(self) -> str:
        """The plan in one line."""
        degrees = self.degrees
        parts = [f"{one} {degrees[one]}" for one in ("TP", "CP", "PP", "EP") if degrees[one] > 1]
        parts += ["SP"] if self.sequence_parallel else []
        parts.append(f"{'FSDP' if self.fsdp else 'DP'} {self.data}")
        parts.append(f"{self.microbatches_words} of {self.microbatch_size}")
        return ", ".join(parts)

    @property
    def microbatches_words(self) -> str:
        """How many microbatches there are, within a name: with a plain space."""
        return plural(self.microbatches, "microbatch", "microbatches").replace(NBSP, " ")


# The orders of passes, each with its words.
ORDERS = {"1f1b": "1F1B", "afab": "all forward, all backward", "interleaved": "interleaved"}
RECOMPUTE = ("none", "selective", "full")
ATTENTION = ("flash", "full")
TENSOR_OVERLAP = ("none", "backward")
REDUCTIONS = ("layer", "pass", "last")
EXCHANGES = ("pass", "layer")


@dataclass(frozen=True)
class Schedule:
    """The order of the passes and what overlaps.

    Attributes
    ----------
    order, virtual
        ``1f1b``, ``afab`` (all forward, all backward) or ``interleaved`` with ``virtual`` stages on a
        rank.
    recompute
        What the backward pass computes again: nothing, the attention scores (``selective``), or the
        whole forward pass.
    attention
        ``flash``: one fused kernel that skips the half which the causal mask hides; ``full``: scores
        in memory, nothing skipped.
    overlap_gradients
        A layer's gradients leave while those of earlier layers are computed in the last backward pass.
    overlap_sends
        A sender goes on at once; otherwise when its message has gone.
    split_sends
        Each tensor-parallel rank sends its share of an activation; otherwise each sends all of it.
    tensor_overlap
        ``backward``: the all-reduces of input gradients hide behind the products that make weight
        gradients.
    reshard, regather, reduce
        FSDP as the rails' traffic builds it: whether gathered weights are dropped after a pass, whether
        a backward pass gathers its own, and when gradients are scattered (``layer``, ``pass``,
        ``last``).
    exchanges
        How the task graph has what context and expert parallelism exchange: once after a ``pass`` with
        the bytes of all its layers, or ``layer`` by layer, tokens to the experts and home again.
    overlap_exchanges
        While tokens of one microbatch travel another computes: a rank's passes wait for their own data
        alone, and who schedules the graph orders them. The closed form does not know of it.
    iteration_ms
        Computing is scaled until the iteration lasts this long; 0, where files may say null: not scaled.

    Raises
    ------
    InputError
        If a field is out of range, or ``virtual`` does not suit the order.
    """

    order: Annotated[
        str,
        plain_setting(
            "Order",
            "order of the passes; afab is all forward, then all backward",
            choices=tuple(ORDERS),
        ),
    ] = "1f1b"
    virtual: Annotated[
        int,
        plain_setting(
            "Virtual stages",
            "stages on a rank; 2 or more when the order is interleaved",
            ge=1,
            le=1000,
        ),
    ] = 1
    recompute: Annotated[
        str,
        plain_setting("Recompute", "what the backward pass computes again", choices=RECOMPUTE),
    ] = "none"
    attention: Annotated[
        str,
        plain_setting(
            "Attention", "flash: one fused kernel; full: scores in memory", choices=ATTENTION
        ),
    ] = "flash"
    overlap_gradients: Annotated[
        bool,
        plain_setting(
            "Gradients leave early",
            "whether gradients leave layer by layer during the last backward pass",
        ),
    ] = True
    overlap_sends: Annotated[
        bool,
        plain_setting("Sends overlap", "whether a sender goes on before its message has gone"),
    ] = False
    split_sends: Annotated[
        bool,
        plain_setting("Sends are split", "whether each tensor-parallel GPU sends its share alone"),
    ] = True
    tensor_overlap: Annotated[
        str,
        plain_setting(
            "Tensor overlap",
            "backward: sums of input gradients hide behind weight gradients",
            choices=TENSOR_OVERLAP,
        ),
    ] = "none"
    reshard: Annotated[
        bool, plain_setting("Reshard", "FSDP: whether gathered weights are dropped after a pass")
    ] = True
    regather: Annotated[
        bool,
        plain_setting("Gather again", "FSDP: whether a backward pass gathers its own weights"),
    ] = True
    reduce: Annotated[
        str,
        plain_setting("Reduce", "FSDP: when gradients are scattered", choices=REDUCTIONS),
    ] = "layer"
    exchanges: Annotated[
        str,
        plain_setting(
            "Exchanges",
            "whether context and experts exchange once a pass or layer by layer",
            choices=EXCHANGES,
        ),
    ] = "pass"
    overlap_exchanges: Annotated[
        bool,
        plain_setting(
            "Exchanges overlap", "whether one microbatch computes while tokens of another travel"
        ),
    ] = False
    iteration_ms: (
        Annotated[
            float,
            setting(
                "Iteration",
                "ms",
                "computing is scaled until the iteration lasts this long; 0: not scaled",
                ge=0,
                le=1e9,
            ),
        ]
        | None
    ) = 0.0

    def __post_init__(self) -> None:
        check_fields(self, item="schedule")
        if self.iteration_ms is None:
            object.__setattr__(self, "iteration_ms", 0.0)
        if (self.order == "interleaved") != (self.virtual > 1):
            rule = "2 or more when the order is interleaved, and 1 otherwise"
            problem = f"must be {rule} (got {self.virtual})"
            raise InputError(problem, item="schedule", field="virtual")

    @property
    def words(self) -> str:
        """The order, and what is computed again, in words."""
        order = ORDERS[self.order] + (f" x{self.virtual}" if self.virtual > 1 else "")
        again = {"none": "", "selective": ", scores recomputed", "full": ", recomputed in full"}
        return order + again[self.recompute]


def warm_passes(
    stage: int, stages: int, microbatches: int, schedule: str, virtual_stages: int = 1
) -> int:
    """Return how many forward passes a stage makes before its first backward one."""
    turns = microbatches * virtual_stages
    if schedule == "1f1b":
        return min(stages - 1 - stage, turns)
    if schedule == "afab" or microbatches == stages:
        return turns
    return min(2 * (stages - 1 - stage) + (virtual_stages - 1) * stages, turns)


def pass_order(
    stage: int, stages: int, microbatches: int, schedule: str, virtual_stages: int = 1
) -> list[tuple[str, int, int]]:
    """Return a stage's passes in order: ("f" or "b", microbatch, the stage's model chunk).

    1F1B: ``stages - 1 - stage`` forwards to warm up, then one forward and one backward in turn,
    then the backwards that are left (Narayanan et al., SC 2021, section 2.2). ``afab``: all
    forwards, then all backwards (GPipe). Interleaved, from the same section: P microbatches go
    through a rank's first chunk, then through its second, and so on; 2 (P - 1 - stage) + (v - 1) P
    forward passes warm up; with only P microbatches all of them do (Megatron-LM).
    """
    together = stages if schedule == "interleaved" else max(1, microbatches)
    turns = [
        (group * together + m, chunk)
        for group in range(microbatches // together)
        for chunk in range(virtual_stages)
        for m in range(together)
    ]
    forward = [("f", m, chunk) for m, chunk in turns]
    backward = [("b", m, virtual_stages - 1 - chunk) for m, chunk in turns]
    warm = warm_passes(stage, stages, microbatches, schedule, virtual_stages)
    steady = [one for pair in zip(forward[warm:], backward, strict=False) for one in pair]
    return forward[:warm] + steady + backward[len(turns) - warm :]


def dealt(layers: int, chunks: int) -> list[range]:
    """Return the layers of every chunk, as even as can be; shorter chunks at the ends, last first.

    Llama 3 405B leaves a layer out of the first and the last stage likewise (arXiv 2407.21783,
    section 3.3.2).
    """
    count, longer = divmod(layers, chunks)
    shorter_first = (chunks - longer) // 2
    sizes = [count + (shorter_first <= chunk < shorter_first + longer) for chunk in range(chunks)]
    return [range(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]


# Of a stage: (F or B, microbatch, begin), in order, every pass as long as the other.
Passes = list[list[tuple[str, int, int]]]


def order_1f1b(stages: int, microbatches: int) -> Passes:
    """Return the passes of each stage in the order 1F1B, begun as soon as what they wait for has ended."""
    every = [
        (way, k, stage)
        for stage in range(stages)
        for way, k, _ in pass_order(stage, stages, microbatches, "1f1b")
    ]
    position = {one: at for at, one in enumerate(every)}
    waits: list[list[int]] = []
    for at, (way, k, stage) in enumerate(every):
        # Forward passes wait for the stage before, backward ones for the stage after: at the ends for nobody.
        beyond = way, k, stage - 1 if way == "f" else stage + 1
        befores = [position[beyond]] if beyond in position else []
        if at and every[at - 1][2] == stage:
            befores.append(at - 1)
        waits.append(befores)
    _, begins = earliest(waits, [1.0] * len(every))
    passes: Passes = [[] for _ in range(stages)]
    for (way, k, stage), begin in zip(every, begins, strict=True):
        passes[stage].append((way.upper(), k, int(begin)))
    return passes
