"""Collective algorithms as step lists: who sends which blocks of the tensor to whom, step by step.

Members are positions 0..n-1 within the group. The tensor is cut into equal blocks; all messages of
a step are independent and carry what their sender held before the step. In an all-to-all, block
``i * n + j`` is what member i has for member j; everywhere else a block is a part of the tensor.

Sources: ring and direct (Patarasuk and Yuan 2009), recursive halving and doubling with folding
(Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005), Bruck et al. 1997, binomial trees and
pipelined chains (van de Geijn), two levels (hierarchical all-reduce, pairwise by groups).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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


def log2_up(n: int) -> int:
    """Return the smallest k with ``2**k >= n``."""
    return (n - 1).bit_length()


def is_power_of_two(n: int) -> bool:
    """Return whether n is 1, 2, 4, 8, ..."""
    return n & (n - 1) == 0


# Parts that several algorithms share. ``at`` maps a rank to a position.


def _ring_scatter(at: Sequence[int], shares: Sequence[tuple[int, ...]]) -> list[Step]:
    """Return a ring's reduce-scatter: rank i ends with ``shares[i]``."""
    n = len(at)
    return [
        tuple(Message(at[i], at[(i + 1) % n], shares[(i - q - 1) % n], True) for i in range(n))
        for q in range(n - 1)
    ]


def _ring_gather(at: Sequence[int], shares: Sequence[tuple[int, ...]]) -> list[Step]:
    """Return a ring's all-gather: rank i starts with ``shares[i]``."""
    n = len(at)
    return [
        tuple(Message(at[i], at[(i + 1) % n], shares[(i - q) % n]) for i in range(n))
        for q in range(n - 1)
    ]


def _halving(at: Sequence[int]) -> list[Step]:
    """Return recursive halving: rank i keeps the half of its range that holds block i, sends the other."""
    p = len(at)
    steps = []
    for k in reversed(range(log2_up(p))):
        d = 1 << k
        step = []
        for i in range(p):
            start = (i & ~(2 * d - 1)) + (0 if i & d else d)
            step.append(Message(at[i], at[i ^ d], tuple(range(start, start + d)), True))
        steps.append(tuple(step))
    return steps


def _doubling(at: Sequence[int]) -> list[Step]:
    """Return recursive doubling: rank i starts with block i and exchanges all it holds."""
    p = len(at)
    steps = []
    for k in range(log2_up(p)):
        d = 1 << k
        starts = [i & ~(d - 1) for i in range(p)]
        steps.append(
            tuple(Message(at[i], at[i ^ d], tuple(range(s, s + d))) for i, s in enumerate(starts))
        )
    return steps


def _one_each(n: int) -> list[tuple[int, ...]]:
    return [(i,) for i in range(n)]


def _pairs(n: int) -> Iterable[tuple[int, int]]:
    return ((i, j) for i in range(n) for j in range(n) if i != j)


def _merged(rings: Iterable[list[Step]]) -> list[Step]:
    """Return the steps of several groups that run side by side."""
    return [tuple(one for step in steps for one in step) for steps in zip(*rings, strict=True)]


# Reduce-scatter: member i ends with block i of the sum.


def _reduce_scatter_ring(n: int) -> StepList:
    return StepList(tuple(_ring_scatter(range(n), _one_each(n))), n)


def _reduce_scatter_direct(n: int) -> StepList:
    return StepList((tuple(Message(i, j, (j,), True) for i, j in _pairs(n)),), n)


def _reduce_scatter_halving(n: int) -> StepList:
    return StepList(tuple(_halving(range(n))), n)


# All-gather: member i starts with block i.


def _all_gather_ring(n: int) -> StepList:
    return StepList(tuple(_ring_gather(range(n), _one_each(n))), n)


def _all_gather_direct(n: int) -> StepList:
    return StepList((tuple(Message(i, j, (i,)) for i, j in _pairs(n)),), n)


def _all_gather_doubling(n: int) -> StepList:
    return StepList(tuple(_doubling(range(n))), n)


def _all_gather_bruck(n: int) -> StepList:
    steps = []
    for k in range(log2_up(n)):
        d = 1 << k
        held = range(min(d, n - d))
        steps.append(
            tuple(Message(i, (i - d) % n, tuple((i + b) % n for b in held)) for i in range(n))
        )
    return StepList(tuple(steps), n)


# All-reduce.


def _in_turn(scatter: StepList, gather: StepList) -> StepList:
    return StepList(scatter.steps + gather.steps, scatter.blocks)


def _all_reduce_halving_doubling(n: int) -> StepList:
    """Fold to a power of two, halve, double, unfold."""
    p = 1 << (n.bit_length() - 1)
    folded = range(n - p)
    whole = tuple(range(p))
    active = [*range(0, 2 * (n - p), 2), *range(2 * (n - p), n)]
    fold = [tuple(Message(2 * i + 1, 2 * i, whole, True) for i in folded)] if folded else []
    unfold = [tuple(Message(2 * i, 2 * i + 1, whole) for i in folded)] if folded else []
    return StepList((*fold, *_halving(active), *_doubling(active), *unfold), p)


def _all_reduce_tree(n: int) -> StepList:
    """Binomial tree to position 0, then the reverse; the whole tensor each time."""
    levels = [range(1 << q, n, 2 << q) for q in range(log2_up(n))]
    up = [
        tuple(Message(v, v - (1 << q), (0,), True) for v in ranks) for q, ranks in enumerate(levels)
    ]
    down = [tuple(Message(v - (1 << q), v, (0,)) for v in ranks) for q, ranks in enumerate(levels)]
    return StepList((*up, *reversed(down)), 1)


def _all_reduce_two_level(n: int, m: int) -> StepList:
    """Ring reduce-scatter in groups of m neighbours, ring all-reduce across them, ring all-gather."""
    g = n // m
    groups = [range(i * m, (i + 1) * m) for i in range(g)]
    shares = [tuple(range(x * g, (x + 1) * g)) for x in range(m)]
    across = [(range(x, n, m), [(block,) for block in shares[x]]) for x in range(m)]
    steps = [
        *_merged(_ring_scatter(members, shares) for members in groups),
        *_merged(_ring_scatter(members, blocks) for members, blocks in across),
        *_merged(_ring_gather(members, blocks) for members, blocks in across),
        *_merged(_ring_gather(members, shares) for members in groups),
    ]
    return StepList(tuple(steps), n)


# Broadcast from rank 0.


def _broadcast_tree(at: Sequence[int]) -> StepList:
    n = len(at)
    steps = [
        tuple(Message(at[v], at[v + (1 << q)], (0,)) for v in range(min(1 << q, n - (1 << q))))
        for q in range(log2_up(n))
    ]
    return StepList(tuple(steps), 1)


def _broadcast_flat(at: Sequence[int]) -> StepList:
    return StepList((tuple(Message(at[0], other, (0,)) for other in at[1:]),), 1)


def _broadcast_scatter_gather(at: Sequence[int]) -> StepList:
    n = len(at)
    scatter = tuple(Message(at[0], at[v], (v,)) for v in range(1, n))
    return StepList((scatter, *_ring_gather(at, _one_each(n))), n)


def _broadcast_chain(at: Sequence[int], chunks: int) -> StepList:
    """Chain of C chunks: in step t rank v passes chunk t - v on."""
    n = len(at)
    steps = [
        tuple(Message(at[v], at[v + 1], (t - v,)) for v in range(n - 1) if 0 <= t - v < chunks)
        for t in range(n - 2 + chunks)
    ]
    return StepList(tuple(steps), chunks)


# All-to-all: block i * n + j goes from i to j.


def _all_to_all_direct(n: int) -> StepList:
    return StepList((tuple(Message(i, j, (i * n + j,)) for i, j in _pairs(n)),), n)


def _all_to_all_pairwise(n: int) -> StepList:
    steps = [
        tuple(Message(i, (i + q) % n, (i * n + (i + q) % n,)) for i in range(n))
        for q in range(1, n)
    ]
    return StepList(tuple(steps), n)


def _all_to_all_bruck(n: int) -> StepList:
    """In the step of distance d every block moves on whose way to its target still has bit d."""
    held = [[i * n + j for j in range(n)] for i in range(n)]
    steps = []
    for k in range(log2_up(n)):
        d = 1 << k
        moves = [tuple(b for b in held[i] if ((b % n - i) % n) & d) for i in range(n)]
        steps.append(tuple(Message(i, (i + d) % n, moves[i]) for i in range(n)))
        stay = [[b for b in held[i] if not ((b % n - i) % n) & d] for i in range(n)]
        held = [stay[i] + list(moves[(i - d) % n]) for i in range(n)]
    return StepList(tuple(steps), n)


def _all_to_all_two_level(n: int, m: int) -> StepList:
    """Inside the group to the member with the target's index, then across groups."""
    g = n // m
    steps = []
    for q in range(1, m):
        step = []
        for i in range(n):
            group, index = i // m, (i % m + q) % m
            blocks = tuple(i * n + to * m + index for to in range(g))
            step.append(Message(i, group * m + index, blocks))
        steps.append(tuple(step))
    for q in range(1, g):
        step = []
        for i in range(n):
            group, target = i // m, (i + q * m) % n
            blocks = tuple((group * m + x) * n + target for x in range(m))
            step.append(Message(i, target, blocks))
        steps.append(tuple(step))
    return StepList(tuple(steps), n)


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
        Its step list.
    size
        Its size.
    power_of_two
        Whether it needs 2, 4, 8, ... members.
    on_rings
        Whether its messages go round one ring, which may have any stride.
    """

    build: Callable[[Shape], StepList]
    size: Callable[[Shape], Size]
    power_of_two: bool = False
    on_rings: bool = False


def _passes(count: int, n: int) -> Size:
    """Return the size of ``count`` passes in which every member sends n - 1 blocks one by one."""
    messages = count * n * (n - 1)
    return Size(messages, 2 * messages)


def _logarithmic(n: int) -> Size:
    k = log2_up(n)
    return Size(n * k, n * (n + k))


def _folded(n: int) -> Size:
    p, k = 1 << (n.bit_length() - 1), n.bit_length() - 1
    return Size(2 * (n - p) + 2 * p * k, 2 * n * (p + k))


def _two_level_all_reduce(n: int, m: int) -> Size:
    g = n // m
    return Size(2 * n * (m + g - 2), 4 * n * (n + g))


def _two_level_all_to_all(n: int, m: int) -> Size:
    g = n // m
    return Size(n * (m + g - 2), 2 * n * n + n * (m + g))


def _bruck_all_to_all(n: int) -> Size:
    k = log2_up(n)
    return Size(n * k, n * n * k)


ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = MappingProxyType(
    {
        "all_reduce": {
            "ring": Algorithm(
                lambda s: _in_turn(_reduce_scatter_ring(s.members), _all_gather_ring(s.members)),
                lambda s: _passes(2, s.members),
                on_rings=True,
            ),
            "direct": Algorithm(
                lambda s: _in_turn(
                    _reduce_scatter_direct(s.members), _all_gather_direct(s.members)
                ),
                lambda s: Size(
                    2 * s.members * (s.members - 1), 2 * s.members * (s.members - 1) ** 2
                ),
            ),
            "halving_doubling": Algorithm(
                lambda s: _all_reduce_halving_doubling(s.members), lambda s: _folded(s.members)
            ),
            "tree": Algorithm(
                lambda s: _all_reduce_tree(s.members),
                lambda s: Size(2 * s.members - 2, 4 * s.members),
            ),
            "two_level": Algorithm(
                lambda s: _all_reduce_two_level(s.members, s.parameter),
                lambda s: _two_level_all_reduce(s.members, s.parameter),
            ),
        },
        "all_gather": {
            "ring": Algorithm(
                lambda s: _all_gather_ring(s.members),
                lambda s: _passes(1, s.members),
                on_rings=True,
            ),
            "direct": Algorithm(
                lambda s: _all_gather_direct(s.members), lambda s: _passes(1, s.members)
            ),
            "doubling": Algorithm(
                lambda s: _all_gather_doubling(s.members),
                lambda s: _logarithmic(s.members),
                power_of_two=True,
            ),
            "bruck": Algorithm(
                lambda s: _all_gather_bruck(s.members), lambda s: _logarithmic(s.members)
            ),
        },
        "reduce_scatter": {
            "ring": Algorithm(
                lambda s: _reduce_scatter_ring(s.members),
                lambda s: _passes(1, s.members),
                on_rings=True,
            ),
            "direct": Algorithm(
                lambda s: _reduce_scatter_direct(s.members), lambda s: _passes(1, s.members)
            ),
            "halving": Algorithm(
                lambda s: _reduce_scatter_halving(s.members),
                lambda s: _logarithmic(s.members),
                power_of_two=True,
            ),
        },
        "broadcast": {
            "tree": Algorithm(
                lambda s: _broadcast_tree(s.ranks), lambda s: Size(s.members - 1, 2 * s.members)
            ),
            "flat": Algorithm(
                lambda s: _broadcast_flat(s.ranks), lambda s: Size(s.members - 1, s.members)
            ),
            "scatter_gather": Algorithm(
                lambda s: _broadcast_scatter_gather(s.ranks),
                lambda s: Size(s.members**2 - 1, 3 * s.members**2),
            ),
            "chain": Algorithm(
                lambda s: _broadcast_chain(s.ranks, s.parameter),
                lambda s: Size((s.members - 1) * s.parameter, 2 * s.members * s.parameter),
            ),
        },
        "all_to_all": {
            "direct": Algorithm(
                lambda s: _all_to_all_direct(s.members), lambda s: _passes(1, s.members)
            ),
            "pairwise": Algorithm(
                lambda s: _all_to_all_pairwise(s.members), lambda s: _passes(1, s.members)
            ),
            "bruck": Algorithm(
                lambda s: _all_to_all_bruck(s.members), lambda s: _bruck_all_to_all(s.members)
            ),
            "two_level": Algorithm(
                lambda s: _all_to_all_two_level(s.members, s.parameter),
                lambda s: _two_level_all_to_all(s.members, s.parameter),
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
    return ALGORITHMS[kind][name].build(shape)
