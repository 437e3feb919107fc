"""How collectives become transfers: the choices, with the words and ranges that files and commands read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields


@dataclass(frozen=True)
class Lowering:
    """How collectives become transfers; every choice is the user's to see and change.

    Parameters
    ----------
    rings
        Cut to the number of distinct rings, phi(n), of a collective's n members.
    strides
        In order; empty means automatic: the smallest ones coprime to n.
    all_reduce_on_network
        False drops all-reduces from the network (they become zero-time joins): what rows 5-8 and
        10-12 of TOPO-X Table III fit.
    broadcast
        In a ``chain`` all links are active together; a ``tree`` is binomial.
    algorithm
        Algorithms of collectives step by step, in place of ``steps`` and ``broadcast``: pairs of a
        key and a name (:mod:`topox_core.model.lowering.algorithm_choice`), given as pairs or as a mapping.
    group
        0 is the divisor nearest the square root of n.
    chunks
        0 is 8.
    parts
        So that an algorithm uses several ports; rings have ``rings``.
    """

    rings: Annotated[
        int,
        plain_setting(
            "Rings",
            "rings of a ring collective (default auto: 1, 2, 4 or one per port, whichever is fastest)",
            ge=1,
            le=1_000_000,
        ),
    ] = 1
    strides: Annotated[
        tuple[Annotated[int, setting(ge=1)], ...],
        plain_setting("Strides", "strides of the rings instead of the smallest that fit"),
    ] = ()
    all_reduce_on_network: Annotated[
        bool,
        plain_setting(
            "All-reduces on the network",
            "no: all-reduces take no time on the network (default yes)",
        ),
    ] = True
    steps: Annotated[
        Literal["fluid", "stepwise"],
        plain_setting(
            "Steps",
            "one lump a member and ring, or the lock steps one by one (default fluid)",
        ),
    ] = "fluid"
    broadcast: Annotated[
        Literal["chain", "tree"],
        plain_setting(
            "Broadcast", "pipelined chain, or tree that stores and forwards (default chain)"
        ),
    ] = "chain"
    algorithm: Annotated[
        tuple[tuple[str, str], ...],
        plain_setting(
            "Algorithms",
            "algorithms of collectives, e.g. all_reduce=two_level(4),all_to_all=pairwise "
            "(docs/collectives.md; default auto: the fastest on each fabric)",
        ),
    ] = ()
    group: Annotated[
        int,
        plain_setting("Group", "neighbours of a group of two_level (default near root n)", ge=0),
    ] = 0
    chunks: Annotated[
        int, plain_setting("Chunks", "chunks of a broadcast chain (default 8)", ge=0)
    ] = 0
    parts: Annotated[
        int, plain_setting("Parts", "parts of each message of such an algorithm (default 1)", ge=1)
    ] = 1

    def __post_init__(self) -> None:
        if isinstance(self.algorithm, Mapping):
            object.__setattr__(self, "algorithm", tuple(sorted(self.algorithm.items())))
        check_fields(self, "settings")

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
