"""In which order a job computes, what it computes twice, and what it does at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from topox_core.errors import InputError
from topox_core.model.waiting_order import earliest
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields

ORDERS = ("1f1b", "afab", "interleaved")
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
        If given, computing is scaled until the iteration lasts this long.

    Raises
    ------
    InputError
        If a field is out of range, or ``virtual`` does not suit the order.
    """

    order: Annotated[
        str,
        plain_setting(
            "Order", "order of the passes; afab is all forward, then all backward", choices=ORDERS
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
                ge=1e-6,
                le=1e9,
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        check_fields(self, item="schedule")
        if (self.order == "interleaved") != (self.virtual > 1):
            rule = "2 or more when the order is interleaved, and 1 otherwise"
            problem = f"must be {rule} (got {self.virtual})"
            raise InputError(problem, item="schedule", field="virtual")

    @property
    def words(self) -> str:
        """The order, and what is computed again, in words."""
        order = {
            "1f1b": "1F1B",
            "afab": "all forward, all backward",
            "interleaved": f"interleaved x{self.virtual}",
        }[self.order]
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
    result, first = [], 0
    for chunk in range(chunks):
        size = count + (shorter_first <= chunk < shorter_first + longer)
        result.append(range(first, first + size))
        first += size
    return result


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
