"""Several cards one after the other, in a process of their own: every row as it comes, every answer as it is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from topox_core.errors import InputError
from topox_core.papers.card import Answer, Card
from topox_core.papers.catalogue import CARDS
from topox_core.papers.rows import Row
from topox_core.runs.pace import slowness
from topox_core.runs.run import RunProgress
from topox_core.runs.stopping import Stop


@dataclass(frozen=True)
class CardStep:
    """A row of a card, or its answer with how long it took; or in words why it has none."""

    card: str
    row: Row | None = None
    answer: Answer | None = None
    wall_s: float = 0.0
    failed: str = ""


OnStep = Callable[[CardStep], None]


def run_cards(
    names: Sequence[str], stop: Stop, on_step: OnStep, executor: Executor | None = None
) -> None:
    """Run cards with every switch in its first position, the quickest first, until ``stop()``.

    Parameters
    ----------
    executor
        As of :meth:`~topox_core.papers.card.Card.run`.
    """
    for card in by_time(CARDS[name] for name in names):
        if stop():
            return
        began = time.monotonic()
        try:
            rows = partial(_pass_on, card.name, on_step)
            answer = card.run(None, stop, rows, executor)
        except InputError as error:
            on_step(CardStep(card.name, failed=str(error)))
            continue
        on_step(CardStep(card.name, answer=answer, wall_s=time.monotonic() - began))


def _pass_on(name: str, on_step: OnStep, row: Row) -> None:
    on_step(CardStep(name, row))


def by_time(cards: Iterable[Card]) -> list[Card]:
    """Return cards by how long they take, the quickest first."""
    return sorted(cards, key=lambda card: card.takes_s)


def measured(names: Sequence[str], steps: Sequence[CardStep], elapsed_s: float) -> RunProgress:
    """Return how far a run of cards is, by how long each is known to take."""
    done = {step.card for step in steps if step.answer is not None or step.failed}
    whole = sum(CARDS[name].takes_s for name in names)
    behind = sum(CARDS[name].takes_s for name in names if name in done)
    rows = [step for step in steps if step.row is not None]
    now = next((step.card for step in reversed(rows) if step.card not in done), "")
    if now:
        card = CARDS[now]
        share = sum(step.card == now for step in rows) / max(1, card.row_count)
        behind += card.takes_s * min(1.0, share)
    share = behind / whole if whole else 1.0
    left_s = elapsed_s / share * (1 - share) if share > 0.02 else whole * slowness()
    words = CARDS[now].title if now else ""
    return RunProgress(elapsed_s, share, len(done), len(names), "cards", words, left_s)
