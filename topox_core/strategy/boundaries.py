"""Changes that move the boundary between operators that are configured alike and others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Placement, Strategy

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
    onward: tuple[dict[str, list[str]], ...] = ({}, {})
    for edge in graph.edges:
        onward[0].setdefault(edge.producer, []).append(edge.consumer)
        onward[1].setdefault(edge.consumer, []).append(edge.producer)
    can_take = {
        operator.name: set(graph.choices(operator, strategy.servers))
        if operator.name not in fixed
        else set()
        for operator in graph.operators
    }
    tried: set[tuple[Placement, ...]] = set()
    for edge in graph.edges:
        for giver, taker, ahead in (
            (edge.producer, edge.consumer, onward[0]),
            (edge.consumer, edge.producer, onward[1]),
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
