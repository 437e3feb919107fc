"""What collectives become: ring strides, and the pattern of transfers of each kind of collective.

A pattern is written in positions 0..n-1 within the group and depends only on the kind, the group's
size and the root's position, so that a graph of a thousand equal collectives builds it once.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from math import gcd

from topox_core.errors import InputError
from topox_core.model.lowering_choices import Lowering

RING_KINDS = ("all_reduce", "all_gather", "reduce_scatter")
RING = "ring"  # the algorithm of these kinds whose rings may have any stride


@dataclass(frozen=True)
class Pattern:
    """The transfers of one collective, in positions within its group.

    Attributes
    ----------
    suffix
        What follows the collective's id in a transfer's id, e.g. ``/r0/3``.
    source, destination
        Positions of the members that send and receive.
    numerator, denominator
        Every transfer moves ``size_bytes * numerator / denominator``.
    blocks
        Where transfers differ, how many times that each one moves; else empty.
    after
        For each transfer the transfers of the pattern it waits for; empty if none waits for
        another.
    last
        The transfers that end the collective: all others come before one of them.
    """

    suffix: tuple[str, ...]
    source: tuple[int, ...]
    destination: tuple[int, ...]
    numerator: int
    denominator: int
    after: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    blocks: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.suffix)

    @cached_property
    def dependencies(self) -> int:
        """How many times one of the transfers waits for another."""
        return sum(map(len, self.after))


@lru_cache(maxsize=256)
def distinct_rings(members: int) -> tuple[int, ...]:
    """Return the strides of all distinct directed rings: 1 and others coprime to ``members``.

    There are phi(n) of them (TopoOpt, NSDI 2023, section 4.3, TotientPerms); none for a single
    member.
    """
    return tuple(p for p in range(1, members) if gcd(p, members) == 1)


def ring_strides(members: int, lowering: Lowering, group: str = "") -> tuple[int, ...]:
    """Return the strides of a ring collective: at most ``lowering.rings``, all distinct.

    Raises
    ------
    InputError
        If a given stride shares a factor with the group's size; names the stride and the group.
    """
    if not lowering.strides:
        return distinct_rings(members)[: lowering.rings]
    chosen: dict[int, None] = {}
    for stride in lowering.strides:
        if gcd(stride, members) != 1:
            raise InputError(
                f"stride {stride} makes no ring of {members} members: it must share no factor with {members}",
                file="settings",
                item=group,
                field="strides",
            )
        chosen[stride % members] = None
    return tuple(chosen)[: lowering.rings]


def transfer_count(kind: str, members: int, rings: int, lowering: Lowering) -> int:
    """Return how many transfers a collective becomes, without building them."""
    if members < 2:
        return 0
    if kind in RING_KINDS:
        passes = 2 if kind == "all_reduce" else 1
        return members * rings * (passes * (members - 1) if lowering.steps == "stepwise" else 1)
    if kind == "all_to_all":
        return members * (members - 1)
    return (members - 1) * (rings if lowering.broadcast == "chain" else 1)


def pattern(
    kind: str, members: int, root: int, strides: tuple[int, ...], lowering: Lowering
) -> Pattern:
    """Return the transfers of a collective of two or more members; ``root`` is a position."""
    if kind in RING_KINDS:
        passes = 2 if kind == "all_reduce" else 1
        if lowering.steps == "stepwise":
            return _ring_steps(members, strides, passes * (members - 1))
        return _ring_pass(members, strides, passes)
    if kind == "all_to_all":
        return _all_to_all(members)
    if lowering.broadcast == "tree":
        return _binomial_tree(members, root)
    return _chain(members, root, strides)


def _ring_pass(members: int, strides: tuple[int, ...], passes: int) -> Pattern:
    """One lump a member and ring: a fluid model of the lock steps of ``passes`` passes."""
    pairs = [(r, i, (i + p) % members) for r, p in enumerate(strides) for i in range(members)]
    return _made_of(
        [(f"/r{r}/{i}", i, j) for r, i, j in pairs], passes * (members - 1), members * len(strides)
    )


def _ring_steps(members: int, strides: tuple[int, ...], steps: int) -> Pattern:
    """Lock steps: a step waits for its predecessor's last step (data) and its own (link)."""
    rows: list[tuple[str, int, int]] = []
    after: list[tuple[int, ...]] = []
    last: list[int] = []
    for r, stride in enumerate(strides):
        for q in range(steps):
            before = len(rows) - members
            for i in range(members):
                rows.append((f"/r{r}/s{q}/{i}", i, (i + stride) % members))
                after.append((before + (i - stride) % members, before + i) if q else ())
        last.extend(range(len(rows) - members, len(rows)))
    return _made_of(rows, 1, members * len(strides), tuple(after), tuple(last))


def _all_to_all(members: int) -> Pattern:
    """Every ordered pair moves its share of the send buffer."""
    return _made_of(
        [(f"/{i}-{j}", i, j) for i in range(members) for j in range(members) if i != j], 1, members
    )


def _chain(members: int, root: int, strides: tuple[int, ...]) -> Pattern:
    """Pipelined chain from the root on each ring: n - 1 links active together."""
    rows = []
    for r, stride in enumerate(strides):
        walk = [(root + hop * stride) % members for hop in range(members)]
        rows += [(f"/r{r}/{i}", i, j) for i, j in pairwise(walk)]
    return _made_of(rows, 1, len(strides))


def _binomial_tree(members: int, root: int) -> Pattern:
    """Store and forward from the root: rank v is served by v without its highest bit.

    The id of a transfer names the position that receives, as a member may send several times.
    """
    rows: list[tuple[str, int, int]] = []
    after: list[tuple[int, ...]] = []
    for rank in range(1, members):
        parent = rank - (1 << (rank.bit_length() - 1))
        sender, receiver = (root + parent) % members, (root + rank) % members
        rows.append((f"/r0/{receiver}", sender, receiver))
        after.append((parent - 1,) if parent else ())
    return _made_of(rows, 1, 1, tuple(after))


def _made_of(
    rows: list[tuple[str, int, int]],
    numerator: int,
    denominator: int,
    after: tuple[tuple[int, ...], ...] = (),
    last: tuple[int, ...] = (),
) -> Pattern:
    """Return the pattern of transfers that, unless it is said, wait for none of each other and all end it."""
    suffix, source, destination = zip(*rows, strict=True)
    last = last or tuple(range(len(rows)))
    return Pattern(suffix, source, destination, numerator, denominator, after, last)
