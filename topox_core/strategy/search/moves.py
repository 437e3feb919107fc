"""What a search does and tells: its settings, a proposal, an accepted move, its progress; and the moves of its descent."""

import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from topox_core.model.arrays.groups import by_key
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Placement, Strategy

# FlexNet's two probabilities (TopoOpt, NSDI 2023, released code).
PROPAGATE = 0.25
CONTINUE = 0.75
_Count = Annotated[int, setting(ge=0, le=10**9)]


@dataclass(frozen=True)
class SearchSettings:
    """How a Markov chain walks over strategies.

    Parameters
    ----------
    reset_every
        The chain goes back to the best strategy after this many proposals without a better one;
        None is the published min(1000, proposals / 100), at least 1.
    exhaustive
        Try every strategy afterwards if there are at most this many (fast simulator only): the best
        is then proved.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    proposals: Annotated[
        _Count,
        setting(
            "Strategies to try",
            description="strategies to try",
            steps=(0, 100, 300, 1_000, 3_000, 10_000, 30_000),
        ),
    ] = 1000
    alpha: Annotated[
        float,
        plain_setting(
            "Alpha",
            "a strategy dT ms slower is accepted with probability exp(-alpha dT)",
            ge=0,
        ),
    ] = 1.0
    seed: Annotated[_Count, plain_setting("Seed", "seed of all random choices")] = 0
    memory_gb: Annotated[
        float | None,
        plain_setting("Memory", "memory of one GPU in 10^9 bytes (default: the machine's own)"),
    ] = None
    reset_every: Annotated[int, setting(ge=1, le=10**9)] | None = None
    exhaustive: _Count = 100_000

    def __post_init__(self) -> None:
        check_fields(self, "search")

    @property
    def patience(self) -> int:
        """Proposals without a better strategy after which the chain goes back to the best."""
        return self.reset_every or max(1, min(1000, self.proposals // 100))


@dataclass(frozen=True)
class Move:
    """One accepted change.

    Attributes
    ----------
    proposal
        The number of the strategy among all that were tried, from 1; those after the chain go on from it.
    operator
        The operator it began with.
    before, after
        Configurations of the operators that changed; several if one was passed on to neighbours.
    before_ms, after_ms
        Iteration times.
    reason
        ``better``, ``equal``, ``chance`` (slower, taken by the rule), ``reset`` (back to the best),
        ``descent`` (a boundary between operators moved), ``blocks`` (neighbours in blocks on shares of the
        servers), ``proved`` (found by trying every strategy) or ``topology``.
    """

    proposal: int
    operator: str
    before: tuple[Placement, ...]
    after: tuple[Placement, ...]
    before_ms: float
    after_ms: float
    reason: str


@dataclass(frozen=True)
class MoveProgress:
    """How far a search is."""

    proposals: int
    budget: int
    current_ms: float
    best_ms: float


class Proposer:
    """Draws proposals: one operator at random, or a configuration passed on along the edges.

    Parameters
    ----------
    fixed
        Operators that keep their configuration.
    """

    def __init__(
        self,
        graph: OperatorGraph,
        servers: int,
        rng: random.Random,
        fixed: frozenset[str] = frozenset(),
    ) -> None:
        self.graph, self.servers, self.rng = graph, servers, rng
        self.choices = {
            operator.name: graph.choices(operator, servers) for operator in graph.operators
        }
        self.free = [
            name
            for name, choices in self.choices.items()
            if name not in fixed and len(choices) * servers > 1
        ]
        self._free = frozenset(self.free)
        self._neighbours = by_key(
            (one, (other, edge.bytes_per_sample))
            for edge in graph.edges
            for one, other in ((edge.producer, edge.consumer), (edge.consumer, edge.producer))
        )

    def configurations(self, operator: str) -> list[Placement]:
        """Return all configurations of an operator."""
        return [
            Placement(operator, p, start)
            for p in self.choices[operator]
            for start in range(self.servers)
        ]

    def draw(self, strategy: Strategy) -> tuple[str, list[Placement]]:
        """Return the operator a proposal begins with, and the configurations it sets."""
        if self.rng.random() < PROPAGATE:
            return self._passed_on(strategy)
        name = self.rng.choice(self.free)
        return name, [
            Placement(name, self.rng.choice(self.choices[name]), self.rng.randrange(self.servers))
        ]

    def _passed_on(self, strategy: Strategy) -> tuple[str, list[Placement]]:
        """Copy a configuration to a neighbour, drawn by bytes between them, perhaps further."""
        names = list(self.choices)
        first = at = self.rng.choice(names)
        given = strategy.by_operator[first]
        visited = {first}
        changed: list[Placement] = []
        while True:
            near = [
                (name, size)
                for name, size in self._neighbours[at]
                if name not in visited
                and name in self._free
                and given.partitions in self.choices[name]
            ]
            if not near:
                return first, changed
            weights = [size for _, size in near]
            at = self.rng.choices(
                [name for name, _ in near], weights if sum(weights) > 0 else None
            )[0]
            visited.add(at)
            changed.append(Placement(at, given.partitions, given.start))
            if self.rng.random() >= CONTINUE:
                return first, changed


# How many operators behind a boundary change at once, one behind the other.
REACHES = (1, 2, 4)


def boundary_changes(
    graph: OperatorGraph, strategy: Strategy, fixed: Collection[str] = ()
) -> Iterator[tuple[Placement, ...]]:
    """Yield changes that carry a configuration over an edge whose two ends differ.

    The operator behind the edge takes it, and with it those that follow in the same direction and
    were configured as it was, up to each number of ``REACHES``; or it is split into another number
    of partitions, as a step between the two sides. The Markov chain makes such a change once in
    many proposals; where whole blocks of operators belong together it is the only one that leads on.
    """
    placed = strategy.by_operator
    after = by_key((edge.producer, edge.consumer) for edge in graph.edges)
    before = by_key((edge.consumer, edge.producer) for edge in graph.edges)
    can_take = {
        operator.name: set(graph.choices(operator, strategy.servers))
        if operator.name not in fixed
        else set()
        for operator in graph.operators
    }
    tried: set[tuple[Placement, ...]] = set()
    for edge in graph.edges:
        for giver, taker, ahead in (
            (edge.producer, edge.consumer, after),
            (edge.consumer, edge.producer, before),
        ):
            given, old = placed[giver], placed[taker]
            if _alike(given, old):
                continue
            changes: list[tuple[Placement, ...]] = [
                (Placement(taker, partitions, old.start),)
                for partitions in sorted(can_take[taker] - {old.partitions})
            ]
            if given.partitions in can_take[taker]:
                behind = _behind(taker, ahead, placed)
                changes += [
                    tuple(
                        Placement(name, given.partitions, given.start)
                        for name, steps in behind.items()
                        if steps < reach and given.partitions in can_take[name]
                    )
                    for reach in REACHES
                ]
            for changed in changes:
                if changed not in tried:
                    tried.add(changed)
                    yield changed


def _behind(
    first: str, ahead: Mapping[str, list[str]], placed: Mapping[str, Placement]
) -> dict[str, int]:
    """Return ``first`` and the operators ahead that are configured as it is, with their steps from it."""
    steps = {first: 0}
    level = [first]
    for step in range(1, max(REACHES)):
        level = [
            name
            for at in level
            for name in ahead.get(at, ())
            if name not in steps and _alike(placed[name], placed[first])
        ]
        steps |= dict.fromkeys(level, step)
    return steps


def _alike(one: Placement, other: Placement) -> bool:
    return (one.partitions, one.start) == (other.partitions, other.start)
