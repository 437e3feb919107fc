"""Every strategy of a small model, tried in compiled code: the best one is then proved."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from topox_core.strategy.evaluator import FastEvaluator
from topox_core.strategy.moves import Proposer
from topox_core.strategy.strategy import Placement, Strategy


def space(proposer: Proposer, start: Strategy, symmetric: bool) -> list[list[Placement]]:
    """Return the configurations of every operator; the first's rotated copies left out."""
    free = set(proposer.free)
    rows = [
        proposer.configurations(p.operator) if p.operator in free else [p] for p in start.placements
    ]
    if symmetric and len(free) == len(rows):
        rows[0] = [placement for placement in rows[0] if placement.start == 0]
    return rows


def count(rows: list[list[Placement]]) -> int:
    """Return how many strategies there are."""
    return prod(len(row) for row in rows)


def best_of(
    rows: list[list[Placement]], start: Strategy, evaluate: FastEvaluator, stop: Callable[[], bool]
) -> tuple[Strategy, float, bool]:
    """Return the best strategy, its time, and whether all were tried."""
    best, best_ms = start, evaluate(start)
    for number, placements in enumerate(product(*rows)):
        if not number & 0xFF and stop():
            return best, best_ms, False
        strategy = Strategy(start.model, start.servers, placements)
        if (found_ms := evaluate(strategy)) < best_ms:
            best, best_ms = strategy, found_ms
    return best, best_ms, True
