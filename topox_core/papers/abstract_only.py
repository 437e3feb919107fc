"""Papers of which only the abstract is public here: ours stands beside the printed number and is not judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.papers.card import Answer, OnRow, Row, Settings
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.direct import RowsOf, WordsOf, direct, unprinted
from topox_core.runs.stopping import Stop


@dataclass(frozen=True)
class AbstractOnly:
    """A paper with nothing public but its abstract, and the card on it.

    Attributes
    ----------
    card
        The card's name.
    paper
        Its name and number.
    ours
        What is built here without the paper, as a sentence goes on after "Built from the abstract: ".
    """

    card: str
    paper: str
    ours: str

    @property
    def source(self) -> str:
        """Where the card's numbers were published."""
        return f"{self.paper}, abstract only: no Table or Figure is public here"

    def play(self, rows: RowsOf, words: WordsOf) -> Callable[[Settings, Stop, OnRow], Answer]:
        """Return how the card plays: as :func:`~topox_core.papers.direct.direct`, its first remark what is ours."""

        def built(known: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
            finding, remarks = words(known)
            return finding, (f"Built from the abstract: {self.ours}.", *remarks)

        return direct(self.card, rows, built)

    def beside(
        self, series: str, item: str, about: str, ours: float, printed: str, **more: Any
    ) -> Row:
        """Return a row that is not judged: ``printed`` says what the abstract prints and what it leaves open."""
        reason = f"The abstract prints {printed}: not comparable."
        return unprinted(series, item, about, ours, reason, **more)

    def claim(
        self, words: str, printed: float, reading: Reading, condition: str, unit: str = "×"
    ) -> Claim:
        """Return a claim whose number ours only stands beside."""
        return Claim(
            self.card, words, printed, reading, unit, condition=condition, comparable=False
        )
