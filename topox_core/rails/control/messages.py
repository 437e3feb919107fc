"""The messages of the control plane, and their log."""

from __future__ import annotations

from collections import Counter

from topox_core.rails.iteration import Message

# A communication is announced; the answer names the network that carries it: the rail (0) or the
# scale-up domain (1).
COMM, CHECKIN_ACK = "COMM", "CHECKIN_ACK"
# Circuits of a group are asked for; the answer is that they are switched, or that nothing had to
# change.
CONFIG_REQ, CONFIG_ACK, NACK = "CONFIG_REQ", "CONFIG_ACK", "NACK"
_ANSWERS = "CONFIG_ACK or NACK"


class Log:
    """Counts every message and keeps the first ones, so that the log's size is bounded.

    Of announcements as many are kept as of requests, so that the many of the former do not push out
    the latter.
    """

    def __init__(self, keep: int) -> None:
        self._room = dict.fromkeys((COMM, CHECKIN_ACK, CONFIG_REQ, _ANSWERS), keep)
        self._kept: list[Message] = []
        self.counts: Counter[str] = Counter()

    def ask(self, at_ms: float, rank: int, word: str, group: str, note: str = "") -> None:
        """Note what a rank's shim says to the controller."""
        self.counts[word] += 1
        if self._room[word] > 0:
            self._room[word] -= 1
            self._kept.append(Message(at_ms, f"server {rank}", "controller", word, group, note))

    def answer(self, at_ms: float, rank: int, word: str, group: str, note: str = "") -> None:
        """Note what the controller says to a rank's shim."""
        self.counts[word] += 1
        kind = word if word == CHECKIN_ACK else _ANSWERS
        if self._room[kind] > 0:
            self._room[kind] -= 1
            self._kept.append(Message(at_ms, "controller", f"server {rank}", word, group, note))

    @property
    def sent(self) -> int:
        """Messages sent, kept or not."""
        return sum(self.counts.values())

    def messages(self) -> tuple[Message, ...]:
        """Return the messages kept, by time; at one time in the order in which they were sent."""
        return tuple(sorted(self._kept, key=lambda one: one.at_ms))
