"""What a communication is, read from its metadata: kind, bytes, ranks, and the label of its group."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Self

from topox_core.errors import InputError, needed, shown
from topox_core.io.limits import MAX_RANKS
from topox_core.model.task_graph import MAX_SIZE_BYTES

# Kernels that communicate, whatever library made them; ``--communication`` adds to it.
COMMUNICATION = (
    r"nccl(Dev)?Kernel|^nccl|rccl|hccl|mscclpp|nvshmem|deep_ep|"
    r"::ep::(internode|intranode)::(dispatch|combine)"
)
SEND, RECEIVE, BARRIER, UNKNOWN = "send", "recv", "barrier", "unknown"
# The profiler's name of a collective: our kind, and whether its input or output is the whole tensor.
_KINDS = {
    "allreduce": ("all_reduce", "In"),
    "allreduce_coalesced": ("all_reduce", "In"),
    "_allgather_base": ("all_gather", "Out"),
    "allgather": ("all_gather", "Out"),
    "all_gather": ("all_gather", "Out"),
    "allgather_coalesced": ("all_gather", "Out"),
    "allgather_into_tensor_coalesced": ("all_gather", "Out"),
    "all_gather_into_tensor": ("all_gather", "Out"),
    "all_gather_into_tensor_coalesced": ("all_gather", "Out"),
    "_reduce_scatter_base": ("reduce_scatter", "In"),
    "reduce_scatter": ("reduce_scatter", "In"),
    "reduce_scatter_tensor": ("reduce_scatter", "In"),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", "In"),
    "all_to_all": ("all_to_all", "In"),
    "all_to_allv": ("all_to_all", "In"),
    "alltoall": ("all_to_all", "In"),
    "alltoall_base": ("all_to_all", "In"),
    "broadcast": ("broadcast", "In"),
    "_broadcast_oop": ("broadcast", "In"),
    "reduce": ("reduce", "In"),
    "_reduce_oop": ("reduce", "In"),
    "gather": ("gather", "In"),
    "scatter": ("scatter", "Out"),
    "send": (SEND, "In"),
    "recv": (RECEIVE, "Out"),
    "barrier": (BARRIER, "In"),
}
# Words in names of kernels, scopes and operators, the longest first.
_NAMED = (
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("barrier", BARRIER),
    ("sendrecv", UNKNOWN),  # both all-to-all and point to point
)
_ELEMENT = {
    **dict.fromkeys(("float", "int", "uint32", "float32", "int32"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "c10::half", "c10::bfloat16", "float16"), 2),
    **dict.fromkeys(("uint16", "int16"), 2),
    **dict.fromkeys(("double", "long", "longint", "float64", "int64", "uint64"), 8),
    **dict.fromkeys(("byte", "char", "bool", "unsignedchar", "signedchar", "int8", "uint8"), 1),
}
_PARALLELISMS = (
    ("ep", ("expert", "ep")),
    ("tp", ("tensor", "tp")),
    ("pp", ("pipeline", "pp")),
    ("cp", ("context", "cp")),
    ("fsdp", ("shard", "fsdp")),
    ("dp", ("data_parallel", "dp", "ddp", "replicate")),
)


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known of one communication on one rank.

    Attributes
    ----------
    kind
        A collective's kind, ``reduce``, ``gather``, ``scatter``, ``send``, ``recv``, ``barrier`` or
        ``unknown``.
    size_bytes
        The whole tensor of one member; None if nothing told it.
    ranks
        Of its group, in the group's order; None if nothing told them.
    peer
        The other rank of a send or receive.
    root
        Of a broadcast, reduce, gather or scatter.
    sequence, identity
        Number within the group, and a number common to all ranks, where the profiler wrote them.
    splits_bytes
        Of an all-to-all: bytes for each member, if they are known and not shortened.
    source
        Where the size is from: ``metadata``, ``shapes``, ``host trace``, ``speed``.
    """

    kind: str = UNKNOWN
    size_bytes: float | None = None
    ranks: tuple[int, ...] | None = None
    group_size: int | None = None
    group: str = ""
    description: str = ""
    peer: int | None = None
    root: int | None = None
    sequence: int | None = None
    identity: str = ""
    splits_bytes: tuple[float, ...] | None = None
    source: str = ""

    def completed(self, other: Self) -> Self:
        """Return what both know, this one's word first."""
        unknown = [one.name for one in fields(self) if getattr(self, one.name) == one.default]
        return replace(self, **{name: getattr(other, name) for name in unknown})


def element_bytes(word: str) -> int:
    """Return the bytes of one element of a type as the profiler calls it.

    Raises
    ------
    InputError
        If the type is unknown.
    """
    bare = word.lower().replace(" ", "").removeprefix("tensor(").rstrip(")")
    if bare.startswith(("float8", "c10::float8")):
        return 1
    problem = f"{shown(word)} is no type whose size is known"
    return needed(_ELEMENT.get(bare), problem, field="dtype")


def meta_of(args: Mapping[str, Any]) -> Meta | None:
    """Return what the arguments of a kernel or a ``record_param_comms`` event say; None if nothing.

    Raises
    ------
    InputError
        If the type of its elements is unknown.
    """
    name = args.get("Collective name")
    if not isinstance(name, str):
        return None
    kind, side = _KINDS.get(name.lower(), (kind_of_name(name), "In"))
    count = _whole(args.get(f"{side} msg nelems"))
    size: float | None = None
    element = 0
    if kind == BARRIER:
        size = 0.0
    elif count is not None:
        element = element_bytes(str(args.get("dtype", "Byte"))) if count else 1
        size = float(min(count * element, MAX_SIZE_BYTES))
    ranks = _ranks(args)
    splits = _listed(args.get("In split size"))
    of_source = _whole(args.get("Src Rank"))
    return Meta(
        kind,
        size,
        ranks,
        _whole(args.get("Group size")),
        str(args.get("Process Group Name") or "")[:100],
        str(args.get("Process Group Description") or "")[:100],
        _whole(args.get("Dst Rank")) if kind == SEND else of_source if kind == RECEIVE else None,
        of_source,
        _whole(args.get("Seq")),
        str(args.get("Comms Id") or "")[:100],
        tuple(float(one * element) for one in splits) if splits else None,
        "metadata" if size is not None else "",
    )


def meta_of_shapes(args: Mapping[str, Any], name: str) -> Meta:
    """Return what the recorded shapes of an operator's inputs say: kind by its name, size by its first tensor."""
    return Meta(
        kind_of_name(name),
        (size := _shape_bytes(args.get("Input Dims"), args.get("Input type"))),
        source="shapes" if size is not None else "",
    )


def kind_of_name(name: str) -> str:
    """Return the kind that the name of a kernel, scope or operator tells."""
    bare = name.lower().replace("_", "")
    ends = SEND if bare.endswith("send") else RECEIVE if bare.endswith("recv") else UNKNOWN
    return next((kind for word, kind in _NAMED if word in bare), ends)


def parallelism_of(description: str, kind: str) -> str | None:
    """Return the label that the description of a group tells; a bare send is a pipeline's."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", description)
    words = {word for word in re.split(r"[_\-\s]+", split.lower()) if word}
    bare = description.lower()
    labels = (
        label
        for label, signs in _PARALLELISMS
        if any(sign in words or ("_" in sign and sign in bare) for sign in signs)
    )
    # A description that says nothing of use is as good as none.
    plain = not words - {"default", "pg", "undefined"}
    return next(labels, "pp" if plain and kind in (SEND, RECEIVE) else None)


def _ranks(args: Mapping[str, Any]) -> tuple[int, ...] | None:
    if listed := _listed(args.get("Process Group Ranks")):
        return listed
    first, stride, size = (
        _whole(args.get(key)) for key in ("Global rank start", "Global rank stride", "Group size")
    )
    if first is None or not stride or size is None or not 1 < size <= MAX_RANKS:
        return None
    return strided(first, stride, size) if stride > 0 else None


@lru_cache(1_000)
def strided(first: int, stride: int, size: int) -> tuple[int, ...]:
    """Return ranks; all calls of a group share them."""
    return tuple(range(first, first + stride * size, stride))


@lru_cache(1_000)
def _numbers(text: str) -> tuple[int, ...] | None:
    """Return the numbers in a text; all calls that have it share them."""
    if "..." in text or len(text) > 100_000:
        return None
    return tuple(int(word) for word in re.findall(r"\d{1,15}", text)) or None


def _listed(value: object) -> tuple[int, ...] | None:
    """Return the numbers of a list, which may be written as text; None if it is empty or was shortened."""
    if isinstance(value, str):
        return _numbers(value)
    if not isinstance(value, list) or not value:
        return None
    numbers = [_whole(one) for one in value]
    return None if None in numbers else tuple(n for n in numbers if n is not None)


def _whole(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return None
    return int(value)


def _shape_bytes(shapes: object, types: object) -> float | None:
    """Return the bytes of the first input that is a tensor; None if its shape or type is not told."""
    if not isinstance(shapes, list) or not isinstance(types, list):
        return None
    for shape, kind in zip(shapes, types, strict=False):
        known = isinstance(shape, list) and shape and isinstance(kind, str)
        total = _elements(shape) if known else None
        if total is not None:
            with suppress(InputError):
                return float(min(total * element_bytes(kind), MAX_SIZE_BYTES))
    return None


def _elements(shape: Sequence[object]) -> int | None:
    if shape and all(isinstance(one, list) for one in shape):
        parts = [_elements(one) for one in shape if isinstance(one, list)]
        return None if None in parts else sum(part for part in parts if part is not None)
    total = 1
    for one in shape:
        if isinstance(one, bool) or not isinstance(one, int) or one < 0 or total > 10**18:
            return None
        total *= one
    return total
