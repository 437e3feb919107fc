"""Solver places: how many solves run on this machine at once over all sessions, and the fair line in front of them."""

import heapq
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

import streamlit as st

from topox_core.runs.executor import LocalExecutor
from topox_core.runs.run import RunProgress
from topox_core.text.numbers import seconds
from topox_ui.runs.limits import CORES, server_limits


@st.cache_resource(show_spinner=False)
def shared_workers() -> LocalExecutor:
    """Return the worker processes of all sessions' answers; they end when there is nothing to do."""
    return LocalExecutor(min(CORES, server_limits().solver_places))


TYPICAL_S = 30.0  # how long a run holds its place, until some have ended
LATELY = 20  # runs whose mean is what a run is expected to take
ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")  # fmt: skip


class Ticket:
    """A session's claim to solver places: it waits in line, then holds places, until it is given back.

    While it waits it stands for the run: it has no result, and is replaced by the real one when a place is free.

    Attributes
    ----------
    line
        Where it waits.
    places
        How many it holds; 0 while it waits.
    since_s
        Since when it waits, or holds them.
    left_s
        Says how long it will still hold them, where the run knows.
    """

    def __init__(
        self, line: "SolverPlaces", session: object, most: int, at_most_s: float | None
    ) -> None:
        self.line, self.session, self.most, self.at_most_s = line, session, most, at_most_s
        self.places = 0
        self.since_s = time.monotonic()
        self.left_s: Callable[[], float | None] = lambda: None
        self.running = True

    @property
    def held_s(self) -> float:
        """How long it has held places; 0 while it waits."""
        return time.monotonic() - self.since_s if self.places else 0.0

    @property
    def progress(self) -> RunProgress:
        """The place in the line, in words."""
        words = f"waiting for a solver place, {self.line.words(self)}"
        return RunProgress(time.monotonic() - self.since_s, words=words)

    def poll(self) -> None:
        """Do nothing: whoever attends it looks at its places."""

    def cancel(self) -> None:
        """Leave the line."""
        self.running = False

    close = cancel

    def result(self) -> None:
        """Return None: nothing was computed."""


class SolverPlaces:
    """The solver places of a server, and the line of those that wait for one.

    First come, first served, with a share for every session: a claim goes behind those of sessions
    that hold fewer places and wait with fewer earlier claims. Whoever holds several places gives some
    back when others come. Nobody is turned away.

    Parameters
    ----------
    places
        How many there are.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self._lock = threading.RLock()
        self._tickets: list[Ticket] = []  # that wait or hold places, by arrival
        self._lately: deque[float] = deque(maxlen=LATELY)

    @property
    def free(self) -> int:
        """How many places nobody holds."""
        with self._lock:
            return self.places - sum(one.places for one in self._tickets)

    @property
    def waiting(self) -> int:
        """How many claims wait in line."""
        return sum(not one.places for one in self._tickets)

    def claim(self, session: object, most: int = 1, at_most_s: float | None = None) -> Ticket:
        """Join the line; with places free and nobody waiting the ticket holds some at once.

        Parameters
        ----------
        session
            Who asks: shares are the sessions'.
        most
            How many places are of use; with 0 there is nothing to wait for.
        at_most_s
            After which time the run ends in any case, if there is such a time.
        """
        with self._lock:
            ticket = Ticket(self, session, most, at_most_s)
            if most:
                self._tickets.append(ticket)
                self._serve()
            return ticket

    def give_back(self, ticket: Ticket) -> None:
        """Leave the line, or give the places back; may be called twice."""
        with self._lock:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
                if ticket.places:
                    self._lately.append(ticket.held_s)
                    ticket.places = 0
                self._serve()

    def fit(self, ticket: Ticket) -> int:
        """Give places of a ticket back that others wait for, or take free ones up to its most; return how many it holds."""
        with self._lock:
            if ticket.places and self.waiting:
                ticket.places = min(ticket.places, self._share())
                self._serve()
            elif ticket.places:
                ticket.places += max(0, min(self.free, ticket.most - ticket.places))
            return ticket.places

    def position(self, ticket: Ticket) -> int:
        """Return the place in the line, 1 for the next one to be served; 0 for a ticket that does not wait."""
        with self._lock:
            line = self._line()
            return line.index(ticket) + 1 if ticket in line else 0

    def wait_s(self, ticket: Ticket) -> float:
        """Return in about how many seconds a ticket gets a place: by what runs are known to need, else what they took lately."""
        with self._lock:
            ends = [0.0] * self.free
            ends += [self._left_s(one) for one in self._tickets for _ in range(one.places)]
            heapq.heapify(ends)
            for one in self._line():
                if one is ticket:
                    break
                heapq.heapreplace(ends, ends[0] + self._expected_s(one))
            return ends[0]

    def words(self, ticket: Ticket) -> str:
        """Return the place in the line: third in line, about 40 s."""
        at = self.position(ticket)
        if not at:
            return "next"
        ordinal = ORDINALS[at] if at < len(ORDINALS) else f"number {at}"
        return f"{ordinal} in line, about {seconds(max(1, round(self.wait_s(ticket))))}"

    # -- within the lock ---------------------------------------------------------------------------

    def _serve(self) -> None:
        """Give free places to the heads of the line."""
        while (free := self.free) > 0 and (line := self._line()):
            ticket, share = line[0], self._share() if len(line) > 1 else self.places
            ticket.places = max(1, min(free, ticket.most, share))
            ticket.since_s = time.monotonic()

    def _line(self) -> list[Ticket]:
        """Return who waits, in the order in which they are served as things stand."""
        turn = Counter[int]()
        for one in self._tickets:
            turn[id(one.session)] += one.places
        ranked = []
        for one in self._tickets:
            if not one.places:
                ranked.append((turn[id(one.session)], one))
                turn[id(one.session)] += 1
        return [one for _, one in sorted(ranked, key=lambda entry: entry[0])]

    def _share(self) -> int:
        """Return how many places a session may hold while others wait."""
        sessions = {id(one.session) for one in self._tickets}
        return max(1, self.places // len(sessions))

    def _expected_s(self, ticket: Ticket) -> float:
        typical = sum(self._lately) / len(self._lately) if self._lately else TYPICAL_S
        return typical if ticket.at_most_s is None else min(typical, ticket.at_most_s)

    def _left_s(self, ticket: Ticket) -> float:
        """Return how long a ticket will still hold its places: never nothing, since it has not ended."""
        left_s = ticket.left_s()
        if left_s is None:
            left_s = self._expected_s(ticket) - ticket.held_s
            if left_s <= 0 and ticket.at_most_s is not None:  # it takes longer than most
                left_s = (ticket.at_most_s - ticket.held_s) / 2
        return max(1.0, left_s)


@st.cache_resource(show_spinner=False)
def solver_places() -> SolverPlaces:
    """Return the solver places of this server."""
    return SolverPlaces(server_limits().solver_places)
