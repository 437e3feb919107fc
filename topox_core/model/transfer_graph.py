"""The lowered graph, as arrays: compute tasks, point-to-point transfers and barriers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.model.csr import transposed

COMPUTE, TRANSFER, BARRIER = 0, 1, 2

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Lowering:
    """How collectives become transfers; every choice is the user's to see and change.

    Parameters
    ----------
    rings
        Rings per ring collective; cut to the number of distinct rings, phi(n), of its n members.
    strides
        Strides to use, in order, instead of the smallest ones coprime to n; empty means automatic.
    all_reduce_on_network
        False drops all-reduces from the network (they become zero-time joins): what rows 5-8 and
        10-12 of TOPO-X Table III fit.
    steps
        ``fluid``: one lump a member and ring; ``stepwise``: the lock steps of a ring one by one.
    broadcast
        ``chain`` (pipelined, all links active together) or ``tree`` (binomial, store and forward).
    algorithm
        Algorithms of collectives step by step, in place of ``steps`` and ``broadcast``: pairs of a
        key and a name (:mod:`topox_core.model.algorithm_choice`), given as pairs or as a mapping.
    group
        Neighbours of one group of ``two_level``; 0 is the divisor nearest the square root of n.
    chunks
        Chunks of ``chain``; 0 is 8.
    parts
        Equal parts that the messages of an algorithm are cut into, so that it uses several ports;
        rings have ``rings``.
    """

    rings: int = 1
    strides: tuple[int, ...] = ()
    all_reduce_on_network: bool = True
    steps: Literal["fluid", "stepwise"] = "fluid"
    broadcast: Literal["chain", "tree"] = "chain"
    algorithm: tuple[tuple[str, str], ...] = ()
    group: int = 0
    chunks: int = 0
    parts: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.algorithm, Mapping):
            object.__setattr__(self, "algorithm", tuple(sorted(self.algorithm.items())))

    def as_record(self) -> dict[str, Any]:
        """Return the choices as JSON has them."""
        return {**asdict(self), "strides": list(self.strides), "algorithm": dict(self.algorithm)}

    def choices(self) -> dict[str, Any]:
        """Return what a fabric may choose by itself, as files name it."""
        return {
            "rings": self.rings,
            "strides": list(self.strides),
            "algorithms": dict(self.algorithm),
        }


@dataclass(frozen=True, slots=True)
class LoweredTransfer:
    """One transfer that a collective was lowered to, whole, as the result file lists it."""

    id: str
    collective: str
    source: int
    destination: int
    size_bytes: float
    dependencies: tuple[str, ...]


@dataclass(frozen=True)
class TransferGraph:
    """A lowered task graph of n nodes, in any order; arrays run over nodes.

    It has no name: results are shared between graphs of one digest, and whoever shows a result
    knows what it is called.

    Attributes
    ----------
    ids
        Task id, lowered transfer id, or ``""`` for a barrier that lowering added (kept out of
        files). A collective's own id sits on its closing barrier.
    kind
        ``COMPUTE``, ``TRANSFER`` or ``BARRIER``.
    origin
        Position in ``TaskGraph.tasks`` of the task that a node came from.
    server, device
        Of compute nodes, else -1.
    source, destination
        Of transfers, else -1.
    duration_ms
        Compute time; a transfer's given time; NaN for a transfer given by its size.
    size_bytes
        Of transfers given by size, else NaN.
    pred_ptr, pred_idx
        Predecessors in compressed rows: of node i, ``pred_idx[pred_ptr[i]:pred_ptr[i + 1]]``.
    task_kind, parallelism
        Words of the task a node came from, for colours and measures (``""`` if none).
    lowered
        What collectives were lowered to.
    algorithm
        Names of the algorithms of collectives that are lowered step by step, by ``origin``.
    """

    ids: tuple[str, ...]
    kind: NDArray[np.uint8]
    origin: IntArray
    server: IntArray
    device: IntArray
    source: IntArray
    destination: IntArray
    duration_ms: FloatArray
    size_bytes: FloatArray
    pred_ptr: IntArray
    pred_idx: IntArray
    task_kind: tuple[str, ...]
    parallelism: tuple[str, ...]
    lowered: tuple[LoweredTransfer, ...]
    lowering: Lowering
    digest: str
    algorithm: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def successors(self) -> tuple[IntArray, IntArray]:
        """The edges turned round: ``succ_ptr, succ_idx`` in the same layout as the predecessors."""
        return transposed(self.pred_ptr, self.pred_idx, len(self))
