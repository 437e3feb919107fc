"""In which order a job computes, what it computes twice, and what it does at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.checks import Fields

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

    order: str = "1f1b"
    virtual: int = 1
    recompute: str = "none"
    attention: str = "flash"
    overlap_gradients: bool = True
    overlap_sends: bool = False
    split_sends: bool = True
    tensor_overlap: str = "none"
    reshard: bool = True
    regather: bool = True
    reduce: str = "layer"
    exchanges: str = "pass"
    overlap_exchanges: bool = False
    iteration_ms: float | None = None

    def __post_init__(self) -> None:
        fields = Fields(self, "schedule")
        fields.choice("order", ORDERS)
        fields.choice("recompute", RECOMPUTE)
        fields.choice("attention", ATTENTION)
        fields.choice("tensor_overlap", TENSOR_OVERLAP)
        fields.choice("reduce", REDUCTIONS)
        fields.choice("exchanges", EXCHANGES)
        fields.whole("virtual", most=1000)
        fields.flag(
            "overlap_gradients overlap_sends split_sends reshard regather overlap_exchanges"
        )
        if self.iteration_ms is not None:
            fields.number("iteration_ms", most=1e9)
        if (self.order == "interleaved") != (self.virtual > 1):
            rule = "2 or more when the order is interleaved, and 1 otherwise"
            raise fields.wrong("virtual", f"must be {rule} (got {self.virtual})")

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
