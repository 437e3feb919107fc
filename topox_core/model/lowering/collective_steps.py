"""Collective algorithms as step lists: who sends which blocks of the tensor to whom, step by step.

Members are positions 0..n-1 within the group. The tensor is cut into equal blocks; all messages of
a step are independent and carry what their sender held before the step. In an all-to-all, block
``i * n + j`` is what member i has for member j; everywhere else a block is a part of the tensor.

Sources: ring and direct (Patarasuk and Yuan 2009), recursive halving and doubling with folding
(Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005), Bruck et al. 1997, binomial trees and
pipelined chains (van de Geijn), two levels (hierarchical all-reduce, pairwise by groups).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

PARAMETERS: Mapping[str, str] = MappingProxyType({"two_level": "group", "chain": "chunks"})


class Message(NamedTuple):
    """One message of a step; ``reduces`` adds the blocks at the receiver, else they overwrite."""

    source: int
    destination: int
    blocks: tuple[int, ...]
    reduces: bool = False


Step = tuple[Message, ...]


@dataclass(frozen=True)
class StepList:
    """The steps of one collective.

    Attributes
    ----------
    steps
        Messages of each step.
    blocks
        A message of k blocks moves ``size_bytes * k / blocks``.
    """

    steps: tuple[Step, ...]
    blocks: int

    @property
    def messages(self) -> list[tuple[int, Message]]:
        """All messages with their step, in order."""
        return [(q, one) for q, step in enumerate(self.steps) for one in step]

    def dependencies(self) -> list[tuple[int, ...]]:
        """Return for each message the earlier ones it waits for, by position in :attr:`messages`.

        A message waits for those that brought one of its blocks to its sender in earlier steps,
        since the block was last overwritten there, and for what its sender sent in the last earlier
        step in which it sent.
        """
        brought: dict[tuple[int, int], list[int]] = {}
        sent: dict[int, list[int]] = {}
        result: list[tuple[int, ...]] = []
        for step in self.steps:
            first = len(result)
            for one in step:
                waits: dict[int, None] = {}
                for block in one.blocks:
                    waits.update(dict.fromkeys(brought.get((one.source, block), ())))
                waits.update(dict.fromkeys(sent.get(one.source, ())))
                result.append(tuple(waits))
            left: dict[int, list[int]] = {}
            for i, one in enumerate(step, first):
                left.setdefault(one.source, []).append(i)
                for block in one.blocks:
                    key = (one.destination, block)
                    if one.reduces:
                        brought.setdefault(key, []).append(i)
                    else:
                        brought[key] = [i]
            sent.update(left)
        return result


class Shape(NamedTuple):
    """What a step list depends on besides its name: members, the root's position, the parameter."""

    members: int
    root: int = 0
    parameter: int = 1

    @property
    def ranks(self) -> list[int]:
        """Positions by rank: that of rank v is v places after the root."""
        return [(self.root + v) % self.members for v in range(self.members)]

    @property
    def groups(self) -> int:
        """How many groups of as many neighbours as the parameter says there are."""
        return self.members // self.parameter


def log2_up(n: int) -> int:
    """Return the smallest k with ``2**k >= n``."""
    return (n - 1).bit_length()


def is_power_of_two(n: int) -> bool:
    """Return whether n is 1, 2, 4, 8, ..."""
    return n & (n - 1) == 0


# Parts that several algorithms share. ``at`` maps a rank to a position.


def _around(at: Sequence[int], shares: Sequence[tuple[int, ...]], reduces: bool) -> list[Step]:
    """Return a pass round a ring: all-gather from ``shares[i]`` at rank i, or the reduce-scatter that ends with it."""
    n = len(at)
    return [
        tuple(
            Message(at[i], at[(i + 1) % n], shares[(i - q - reduces) % n], reduces)
            for i in range(n)
        )
        for q in range(n - 1)
    ]


def _exchanged(at: Sequence[int], reduces: bool) -> list[Step]:
    """Return recursive doubling, in which ranks i and i ^ d exchange all that they hold, or recursive halving.

    In both rank i begins or ends with block i; halving goes from the largest distance d down, and sends the
    half of its range that the other rank keeps.
    """
    steps = [
        tuple(
            Message(at[i], at[i ^ d], _range((i ^ d) if reduces else i, d), reduces)
            for i in range(len(at))
        )
        for d in _distances(len(at))
    ]
    return steps[::-1] if reduces else steps


def _range(rank: int, size: int) -> tuple[int, ...]:
    """Return the blocks of the range of a size that a rank is in."""
    first = rank - rank % size
    return tuple(range(first, first + size))


def _distances(n: int) -> list[int]:
    """Return 1, 2, 4, ... below n."""
    return [1 << k for k in range(log2_up(n))]


def _one_each(n: int) -> list[tuple[int, ...]]:
    return [(i,) for i in range(n)]


def _at_once(n: int, block: Callable[[int, int], int], reduces: bool = False) -> Step:
    """Return one step in which everybody sends everybody else a block."""
    every = range(n)
    return tuple(Message(i, j, (block(i, j),), reduces) for i in every for j in every if i != j)


def _merged(rings: Sequence[list[Step]]) -> list[Step]:
    """Return the steps of several groups that run side by side."""
    return [tuple(one for step in steps for one in step) for steps in zip(*rings, strict=True)]


# Reduce-scatter: member i ends with block i of the sum. All-gather: member i starts with block i.


def _reduced(n: int) -> list[Step]:
    return _around(range(n), _one_each(n), True)


def _gathered(n: int) -> list[Step]:
    return _around(range(n), _one_each(n), False)


def _all_gather_bruck(n: int) -> list[Step]:
    return [
        tuple(
            Message(i, (i - d) % n, tuple((i + b) % n for b in range(min(d, n - d))))
            for i in range(n)
        )
        for d in _distances(n)
    ]


# All-reduce.


def _folded_to(n: int) -> int:
    """Return the largest power of two that is no more than n."""
    return 1 << (n.bit_length() - 1)


def _all_reduce_halving_doubling(n: int) -> list[Step]:
    """Fold to a power of two, halve, double, unfold."""
    p = _folded_to(n)
    folded = range(n - p)
    whole = tuple(range(p))
    active = [*range(0, 2 * (n - p), 2), *range(2 * (n - p), n)]
    fold = [tuple(Message(2 * i + 1, 2 * i, whole, True) for i in folded)] if folded else []
    unfold = [tuple(Message(2 * i, 2 * i + 1, whole) for i in folded)] if folded else []
    return [*fold, *_exchanged(active, True), *_exchanged(active, False), *unfold]


def _all_reduce_tree(n: int) -> list[Step]:
    """Binomial tree to position 0, then the reverse; the whole tensor each time."""
    levels = [(d, range(d, n, 2 * d)) for d in _distances(n)]
    up = [tuple(Message(v, v - d, (0,), True) for v in ranks) for d, ranks in levels]
    down = [tuple(Message(v - d, v, (0,)) for v in ranks) for d, ranks in reversed(levels)]
    return [*up, *down]


def _all_reduce_two_level(s: Shape) -> list[Step]:
    """Ring reduce-scatter in groups of neighbours, ring all-reduce across them, ring all-gather."""
    n, m, g = s.members, s.parameter, s.groups
    shares = [tuple(range(x * g, (x + 1) * g)) for x in range(m)]
    inside = [(range(i, i + m), shares) for i in range(0, n, m)]
    across = [(range(x, n, m), [(block,) for block in shares[x]]) for x in range(m)]
    passes = ((inside, True), (across, True), (across, False), (inside, False))
    return [
        step
        for groups, reduces in passes
        for step in _merged([_around(members, blocks, reduces) for members, blocks in groups])
    ]


# Broadcast from rank 0.


def _broadcast_tree(at: Sequence[int]) -> list[Step]:
    n = len(at)
    return [
        tuple(Message(at[v], at[v + d], (0,)) for v in range(min(d, n - d))) for d in _distances(n)
    ]


def _broadcast_scatter_gather(at: Sequence[int]) -> list[Step]:
    n = len(at)
    scatter = tuple(Message(at[0], at[v], (v,)) for v in range(1, n))
    return [scatter, *_around(at, _one_each(n), False)]


def _broadcast_chain(at: Sequence[int], chunks: int) -> list[Step]:
    """Chain of C chunks: in step t rank v passes chunk t - v on."""
    n = len(at)
    return [
        tuple(Message(at[v], at[v + 1], (t - v,)) for v in range(n - 1) if 0 <= t - v < chunks)
        for t in range(n - 2 + chunks)
    ]


# All-to-all: block i * n + j goes from i to j.


def _all_to_all_pairwise(n: int) -> list[Step]:
    return [
        tuple(Message(i, (i + q) % n, (i * n + (i + q) % n,)) for i in range(n))
        for q in range(1, n)
    ]


def _all_to_all_bruck(n: int) -> list[Step]:
    """In the step of distance d every block moves on whose way to its target still has bit d."""
    held = [[i * n + j for j in range(n)] for i in range(n)]
    steps = []
    for d in _distances(n):
        moves = [tuple(b for b in held[i] if ((b % n - i) % n) & d) for i in range(n)]
        steps.append(tuple(Message(i, (i + d) % n, moves[i]) for i in range(n)))
        stay = [[b for b in held[i] if not ((b % n - i) % n) & d] for i in range(n)]
        held = [stay[i] + list(moves[(i - d) % n]) for i in range(n)]
    return steps


def _all_to_all_two_level(s: Shape) -> list[Step]:
    """Inside the group to the member with the target's index, then across groups."""
    n, m = s.members, s.parameter
    inside = [[(i, i - i % m + (i + q) % m) for i in range(n)] for q in range(1, m)]
    across = [[(i, (i + q * m) % n) for i in range(n)] for q in range(1, s.groups)]
    return [
        *(
            tuple(Message(i, j, tuple(range(i * n + j % m, (i + 1) * n, m))) for i, j in ends)
            for ends in inside
        ),
        *(
            tuple(Message(i, j, tuple(x * n + j for x in _range(i, m))) for i, j in ends)
            for ends in across
        ),
    ]


class Size(NamedTuple):
    """How large a step list is, known without building it.

    ``work`` is an upper bound on the blocks moved and on the dependencies, whichever are more.
    """

    messages: int
    work: int


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of a kind of collective.

    Attributes
    ----------
    build
        Its steps.
    size
        Their size.
    blocks
        Into how many blocks it cuts the tensor.
    power_of_two
        Whether it needs 2, 4, 8, ... members.
    on_rings
        Whether its messages go round one ring, which may have any stride.
    """

    build: Callable[[Shape], Sequence[Step]]
    size: Callable[[Shape], Size]
    blocks: Callable[[Shape], int] = lambda s: s.members
    power_of_two: bool = False
    on_rings: bool = False


def _passes(count: int, n: int) -> Size:
    """Return the size of ``count`` passes in which every member sends n - 1 blocks one by one."""
    messages = count * n * (n - 1)
    return Size(messages, 2 * messages)


def _one_pass(s: Shape) -> Size:
    return _passes(1, s.members)


def _logarithmic(s: Shape) -> Size:
    n, k = s.members, log2_up(s.members)
    return Size(n * k, n * (n + k))


def _folded(s: Shape) -> Size:
    n, p, k = s.members, _folded_to(s.members), s.members.bit_length() - 1
    return Size(2 * (n - p) + 2 * p * k, 2 * n * (p + k))


ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = MappingProxyType(
    {
        "all_reduce": {
            "ring": Algorithm(
                lambda s: [*_reduced(s.members), *_gathered(s.members)],
                lambda s: _passes(2, s.members),
                on_rings=True,
            ),
            "direct": Algorithm(
                lambda s: [
                    _at_once(s.members, lambda _, j: j, True),
                    _at_once(s.members, lambda i, _: i),
                ],
                lambda s: Size(
                    2 * s.members * (s.members - 1), 2 * s.members * (s.members - 1) ** 2
                ),
            ),
            "halving_doubling": Algorithm(
                lambda s: _all_reduce_halving_doubling(s.members),
                _folded,
                blocks=lambda s: _folded_to(s.members),
            ),
            "tree": Algorithm(
                lambda s: _all_reduce_tree(s.members),
                lambda s: Size(2 * s.members - 2, 4 * s.members),
                blocks=lambda _: 1,
            ),
            "two_level": Algorithm(
                _all_reduce_two_level,
                lambda s: Size(
                    2 * s.members * (s.parameter + s.groups - 2),
                    4 * s.members * (s.members + s.groups),
                ),
            ),
        },
        "all_gather": {
            "ring": Algorithm(lambda s: _gathered(s.members), _one_pass, on_rings=True),
            "direct": Algorithm(lambda s: [_at_once(s.members, lambda i, _: i)], _one_pass),
            "doubling": Algorithm(
                lambda s: _exchanged(range(s.members), False), _logarithmic, power_of_two=True
            ),
            "bruck": Algorithm(lambda s: _all_gather_bruck(s.members), _logarithmic),
        },
        "reduce_scatter": {
            "ring": Algorithm(lambda s: _reduced(s.members), _one_pass, on_rings=True),
            "direct": Algorithm(lambda s: [_at_once(s.members, lambda _, j: j, True)], _one_pass),
            "halving": Algorithm(
                lambda s: _exchanged(range(s.members), True), _logarithmic, power_of_two=True
            ),
        },
        "broadcast": {
            "tree": Algorithm(
                lambda s: _broadcast_tree(s.ranks),
                lambda s: Size(s.members - 1, 2 * s.members),
                blocks=lambda _: 1,
            ),
            "flat": Algorithm(
                lambda s: [tuple(Message(s.root, one, (0,)) for one in s.ranks[1:])],
                lambda s: Size(s.members - 1, s.members),
                blocks=lambda _: 1,
            ),
            "scatter_gather": Algorithm(
                lambda s: _broadcast_scatter_gather(s.ranks),
                lambda s: Size(s.members**2 - 1, 3 * s.members**2),
            ),
            "chain": Algorithm(
                lambda s: _broadcast_chain(s.ranks, s.parameter),
                lambda s: Size((s.members - 1) * s.parameter, 2 * s.members * s.parameter),
                blocks=lambda s: s.parameter,
            ),
        },
        "all_to_all": {
            "direct": Algorithm(
                lambda s: [_at_once(s.members, lambda i, j: i * s.members + j)], _one_pass
            ),
            "pairwise": Algorithm(lambda s: _all_to_all_pairwise(s.members), _one_pass),
            "bruck": Algorithm(
                lambda s: _all_to_all_bruck(s.members),
                lambda s: Size(s.members * log2_up(s.members), s.members**2 * log2_up(s.members)),
            ),
            "two_level": Algorithm(
                _all_to_all_two_level,
                lambda s: Size(
                    s.members * (s.parameter + s.groups - 2),
                    2 * s.members**2 + s.members * (s.parameter + s.groups),
                ),
            ),
        },
    }
)


def divisor_near_root(n: int) -> int:
    """Return the divisor of n nearest its square root, the smaller of two equally near."""
    divisors = [m for m in range(1, n + 1) if n % m == 0]
    return min(divisors, key=lambda m: (abs(m - n**0.5), m))


@lru_cache(maxsize=64)
def step_list(kind: str, name: str, shape: Shape) -> StepList:
    """Return the steps of an algorithm of :data:`ALGORITHMS` for two or more members."""
    algorithm = ALGORITHMS[kind][name]
    return StepList(tuple(algorithm.build(shape)), algorithm.blocks(shape))
