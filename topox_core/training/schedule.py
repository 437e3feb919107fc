"""In which order a job computes, what it computes twice, and what it does at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from topox_core.errors import InputError
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
