"""A card while it is being run: progress, cancel, and the rows that are there; nothing here waits."""

from __future__ import annotations

import threading
import traceback

from topox_core.errors import InputError
from topox_core.papers.card import Answer, Card, Row, Settings


class CardRun:
    """One run of a card in a thread of its own, which waits for the card's child processes.

    Parameters
    ----------
    card, settings
        What to run; settings are checked before the thread starts.

    Raises
    ------
    InputError
        If a switch is unknown or has no such position.
    """

    def __init__(self, card: Card, settings: Settings) -> None:
        self.card, self.settings = card, card.settings(settings)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._answer: Answer | None = None
        self._error = ""
        self._thread = threading.Thread(target=self._work, daemon=True, name=f"card {card.name}")
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the answer is still to come."""
        return self._thread.is_alive()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that are there, in the order in which they came."""
        with self._lock:
            return tuple(self._rows)

    @property
    def progress(self) -> float:
        """Share of the rows that are there, 0 to 1."""
        return min(1.0, len(self.rows) / self.card.row_count)

    @property
    def answer(self) -> Answer | None:
        """The answer, or None while it runs or if it failed."""
        return self._answer

    @property
    def error(self) -> str:
        """Why it failed, in a line; empty if it did not."""
        return self._error

    def cancel(self, wait_s: float = 2.0) -> None:
        """Stop, end the children, and keep the rows that are there."""
        self._stop.set()
        self._thread.join(wait_s)

    def close(self) -> None:
        """Stop without waiting (the tab was closed)."""
        self._stop.set()

    def _work(self) -> None:
        try:
            self._answer = self.card.run(self.settings, self._stop.is_set, self._keep)
        except InputError as error:
            self._error = str(error)
        except Exception as error:
            traceback.print_exc()
            self._error = f"the card failed: {error}"

    def _keep(self, row: Row) -> None:
        with self._lock:
            self._rows.append(row)
