"""The one owner of a session's runs: starts them, attends them, keeps their results, ends them."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

from topox_core.errors import InputError
from topox_core.runs.cells import CellsRun
from topox_core.runs.cores import give_way
from topox_core.runs.executor import WorkerDied, call_in_worker
from topox_core.runs.run import POLL_S, FunctionRun, Run, RunProgress, Stop, never
from topox_core.studies.study_run import StudyRun
from topox_core.text.numbers import seconds
from topox_ui.runs.limits import server_limits
from topox_ui.runs.results import Kept, ResultMemory, shared
from topox_ui.runs.slots import SolverPlaces, Ticket, solver_places
from topox_ui.runs.tabs import Connection, Tabs

LATE_S = 15.0  # a solver has this long to heed its own limit, which its start does not count in
CLOSING_S = 2.0  # how long the end of a session waits for the end of its runs
PATIENCE_S = 0.1  # how long Cancel waits for the end
# Functions, cells and those in line go on by themselves; forty sessions that look at theirs at every
# poll keep each other from the interpreter.
BY_THEMSELVES_S = 0.25

T = TypeVar("T")


@dataclass(frozen=True)
class RunKind:
    """One kind of run; a session has at most one of a kind at a time.

    Attributes
    ----------
    name
        Unique among the kinds.
    most_kept
        How many results a session keeps; the oldest are dropped first.
    most_slots
        How many solver places a run may have; 0 if it needs none.
    places
        Of which places, if not of the owner's.
    cancel_help
        What Cancel does, in a sentence.
    cancelled
        Note after a cancel: what was kept.
    """

    name: str
    most_kept: int = 24
    most_slots: int = 1
    places: Callable[[], SolverPlaces] | None = None
    cancel_help: str = "Stops at once; what was computed is kept."
    cancelled: str = ""


@dataclass(eq=False)
class _Entry:
    """A run that was asked for, from its place in the line to its end.

    Attributes
    ----------
    run
        The ticket until it has begun.
    left
        Set once it is none of the session's runs any more; then it is closed.
    """

    kind: RunKind
    key: Hashable
    run: Run[Any]
    ticket: Ticket
    begin: Callable[[int], Run[Any]]
    keep: Callable[[Any], str | None]
    left: threading.Event = field(default_factory=threading.Event)
    cancelled: bool = False
    too_long: bool = False

    @property
    def waits(self) -> bool:
        """Whether it stands in line for a solver place, or has not quite begun."""
        return isinstance(self.run, Ticket)


class RunOwner:
    """Runs of one session by kind; those for which no solver place is free wait in line.

    A thread attends each, so that it begins when it is its turn, its end is noticed, its result
    kept and its places given back whatever page the user is on.

    Parameters
    ----------
    places
        The server's solver places.
    longest_s
        How long a run may hold a place; then it is stopped, and what it has is kept.
    most_bytes
        How much memory the results may take, the oldest are dropped first.
    """

    def __init__(
        self,
        places: SolverPlaces,
        longest_s: float = float("inf"),
        most_bytes: float = float("inf"),
    ) -> None:
        self._memory = ResultMemory(most_bytes)
        self._places, self._longest_s = places, longest_s
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._active: dict[RunKind, _Entry] = {}
        self._results: dict[RunKind, Kept[Any]] = {}
        self._refusals: dict[RunKind, Kept[InputError]] = {}
        self._cancelled: dict[RunKind, Kept[bool]] = {}
        self._notes: defaultdict[RunKind, str | InputError] = defaultdict(str)
        self._failures: dict[RunKind, Exception] = {}
        self._ended: set[RunKind] = set()
        self._attendants: list[threading.Thread] = []

    # -- what is known -----------------------------------------------------------------------------

    def results(self, kind: RunKind) -> Kept[Any]:
        """Return the results of a kind by key."""
        return self._results.setdefault(kind, Kept(kind.most_kept, self._memory))

    def refusals(self, kind: RunKind) -> Kept[InputError]:
        """Return why runs of a kind could not be, by key."""
        return self._refusals.setdefault(kind, Kept(kind.most_kept))

    def run(self, kind: RunKind, key: Hashable = None) -> Any:
        """Return the run of a kind (of this very key, if one is given), or None if none goes on."""
        entry = self._active.get(kind)
        return entry.run if entry is not None and key in (None, entry.key) else None

    @property
    def busy(self) -> bool:
        """Whether any run goes on."""
        return bool(self._active)

    def over(self) -> bool:
        """Return whether the session has ended: a stop criterion for what a page computes itself."""
        return self._closed.is_set()

    def key(self, kind: RunKind) -> Hashable:
        """Return the key of the run that goes on, or None."""
        entry = self._active.get(kind)
        return None if entry is None else entry.key

    def stopping(self, kind: RunKind) -> bool:
        """Return whether the run was cancelled and has not ended yet."""
        entry = self._active.get(kind)
        return entry is not None and entry.cancelled

    def cancelled(self, kind: RunKind, key: Hashable) -> bool:
        """Return whether the last run with this key was cancelled."""
        return key in self._cancelled.get(kind, ())

    def begun(self, kind: RunKind, key: Hashable) -> bool:
        """Return whether one of a kind goes on, or was to and came to nothing: then none begins by itself."""
        return kind in self._active or bool(self.note(kind)) or self.cancelled(kind, key)

    def note(self, kind: RunKind) -> str:
        """Return what must be known about the last run of a kind: why it failed, what was kept."""
        return str(self._notes[kind])

    def refused(self, kind: RunKind) -> bool:
        """Return whether the note says that the last run was refused as bad input."""
        return isinstance(self._notes[kind], InputError)

    def ended(self, kind: RunKind) -> bool:
        """Return True once after a run has ended; raise what ended it, if that was not bad input."""
        with self._lock:
            ended = kind in self._ended
            self._ended.discard(kind)
            failure = self._failures.pop(kind, None)
        if failure is not None:
            raise failure
        return ended

    # -- what is done ------------------------------------------------------------------------------

    def start(
        self,
        kind: RunKind,
        key: Hashable,
        begin: Callable[[int], Run[Any]],
        keep: Callable[[Any], str | None] | None = None,
        at_most_s: float | None = None,
        note: Callable[[Any], str] = lambda _result: "",
    ) -> None:
        """Start a run, or put it in line where no solver place is free; one of the same kind is ended first.

        Parameters
        ----------
        key
            Of its result.
        begin
            Makes the run, given how many solver places it has. It may be called in another thread.
        keep
            Keeps the result and may return a note; by default it goes to :meth:`results`.
        at_most_s
            After which time the run ends in any case, if there is such a time.
        note
            Says what must be known of a result that goes to :meth:`results`.
        """

        def kept(result: Any) -> str:
            self.results(kind)[key] = result
            return note(result)

        keep = keep or kept
        with self._lock:
            self._let_go(kind)
            if self._closed.is_set():
                return
            self._notes[kind] = ""
            self._ended.discard(kind)
            self.refusals(kind).pop(key, None)
            self._cancelled.setdefault(kind, Kept(kind.most_kept)).pop(key, None)
            places = kind.places() if kind.places else self._places
            ticket = places.claim(self, kind.most_slots, at_most_s)
            entry = self._active[kind] = _Entry(kind, key, ticket, ticket, begin, keep)
        try:
            if ticket.places or not kind.most_slots:
                self._begin(entry)
        finally:
            attendant = threading.Thread(
                target=self._attend, args=(entry,), name="attend a run", daemon=True
            )
            with self._lock:  # who closes joins the threads, which must have started
                alive = [one for one in self._attendants if one.is_alive()]
                self._attendants = [*alive, attendant]
                attendant.start()

    def cancel(self, kind: RunKind) -> None:
        """Cancel a run; whatever is complete is kept."""
        entry = self._active.get(kind)
        if entry is None:
            return
        entry.cancelled = self._cancelled[kind][entry.key] = True
        entry.run.cancel()
        self._see_through(entry, PATIENCE_S)
        with self._lock:
            if not entry.left.is_set():
                entry.run.poll()
                if not entry.run.running or entry.run.result() is not None:
                    self._end(entry)

    def wait(self, kind: RunKind, seconds: float) -> None:
        """Wait a little for the end of a run; raise what ended it, if that was not bad input."""
        if (entry := self._active.get(kind)) is not None:
            self._see_through(entry, seconds)
        if kind in self._failures:
            self.ended(kind)

    def end(self, kind: RunKind) -> None:
        """End a run whose result nobody wants any more."""
        with self._lock:
            self._let_go(kind)

    def close(self) -> None:
        """End all runs, and leave every line: the session is over."""
        with self._lock:
            self._closed.set()
            for kind in list(self._active):
                self._let_go(kind)
            attendants = self._attendants
        until = time.monotonic() + CLOSING_S
        for attendant in attendants:
            attendant.join(max(0.0, until - time.monotonic()))

    # -- in the background -------------------------------------------------------------------------

    def _attend(self, entry: _Entry) -> None:
        """Take a run to its end; then close it, and give its places back once it has ended."""
        give_way()
        while not entry.left.is_set():
            if entry.waits and entry.ticket.places:
                self._begin(entry)
            else:
                self._forward(entry)
            if isinstance(entry.run, FunctionRun):
                entry.run.wait(BY_THEMSELVES_S)
            else:
                alone = isinstance(entry.run, StudyRun | Ticket)
                entry.left.wait(BY_THEMSELVES_S if alone else POLL_S)
        while True:
            try:
                entry.run.close()
            except Exception as error:  # a defect is for the page
                self._failures[entry.kind] = error
            if not entry.run.running:
                break
            time.sleep(POLL_S)
        entry.ticket.line.give_back(entry.ticket)

    def _see_through(self, entry: _Entry, seconds: float) -> None:
        """Wait a little for the end of a run, and notice it at once."""
        until = time.monotonic() + seconds
        while not entry.left.is_set() and time.monotonic() < until:
            if not entry.run.running:
                self._forward(entry)
            entry.left.wait(0.01)

    def _forward(self, entry: _Entry) -> None:
        """Take in what a run has done, keep it within its places and its time, and notice its end."""
        with self._lock:
            if entry.left.is_set():
                return
            running = entry.run.running
            if running and entry.ticket.places:
                if isinstance(entry.run, CellsRun | StudyRun):
                    entry.run.use(entry.ticket.line.fit(entry.ticket))
                if not entry.too_long and entry.ticket.held_s > self._longest_s + LATE_S:
                    entry.too_long = True
                    entry.run.cancel()
            try:
                entry.run.poll()
            except Exception as error:
                self._fail(entry, error)
                running = False
            if not running:
                self._end(entry)

    def _begin(self, entry: _Entry) -> None:
        """Begin a run that has its places; one that was given up meanwhile, or replaced, is stopped."""
        try:
            run = entry.begin(entry.ticket.places)
        except Exception as error:
            with self._lock:
                if not entry.left.is_set():
                    self._end(entry)
                    self._fail(entry, error)
            return
        with self._lock:
            entry.run = run
            # Those in line may know how long it will still take.
            entry.ticket.left_s = lambda: run.progress.left_s
            if entry.left.is_set():
                run.cancel()

    def _end(self, entry: _Entry) -> None:
        """Keep what a run brought and let it go."""
        kind = entry.kind
        del self._active[kind]
        self._ended.add(kind)
        entry.left.set()
        try:
            result = entry.run.result()
            if result is not None:
                self._notes[kind] = entry.keep(result) or ""
        except Exception as error:
            self._fail(entry, error)
        if entry.cancelled and kind.cancelled and not entry.waits:
            self._notes[kind] = kind.cancelled
        if entry.too_long:
            self._notes[kind] = (
                f"Stopped: on this server a run takes at most {seconds(self._longest_s)}. What was computed is kept."
            )

    def _fail(self, entry: _Entry, error: Exception) -> None:
        """Note what ended a run: bad input is told, a defect is raised when the page looks at the run."""
        if isinstance(error, InputError):
            self._notes[entry.kind] = self.refusals(entry.kind)[entry.key] = error
        else:
            self._failures[entry.kind] = error

    def _let_go(self, kind: RunKind) -> None:
        """End a run without keeping what it has."""
        entry = self._active.pop(kind, None)
        if entry is not None:
            entry.left.set()
            entry.run.cancel()


@st.cache_resource(show_spinner=False, on_release=lambda tabs: tabs.close())
def all_tabs() -> Tabs:
    """Return the tabs of this server."""
    limits = server_limits()
    places, longest_s, most_bytes = solver_places(), limits.longest_s, limits.session_mb * 1e6
    connected = get_instance().is_active_session if exists() else bool
    return Tabs(lambda: RunOwner(places, longest_s, most_bytes), limits.rejoin_s, connected)


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda one: one.leave())
def connection() -> Connection:
    """Return this session's connection, which knows its tab."""
    return Connection(all_tabs(), get_script_run_ctx().session_id)


def run_owner() -> RunOwner:
    """Return the owner of this tab's runs; they end with the tab."""
    return connection().tab.owner


def worker_run(
    problem: str,
    file: str,
    function: Callable[..., T],
    *given: Any,
    measure: Callable[[tuple[Any, ...], float], RunProgress] | None = None,
) -> Callable[[int], FunctionRun[T | None, Any]]:
    """Return what begins a run of a function in a process of its own, that Cancel and the end of the session end.

    Parameters
    ----------
    problem, file
        Of the line where that process died; its reason stands behind.
    measure
        As of a run of a function, which then tells its steps: ``function(*given, stop, on_step)``.
    """

    def work(stop: Stop, on_step: Callable[[Any], None]) -> T | None:
        try:
            tell = on_step if measure else None
            return call_in_worker(function, *given, stop=stop, on_step=tell)
        except WorkerDied as death:
            if stop():
                return None
            raise InputError(f"{problem}: {death}", file=file) from None

    return lambda _places: FunctionRun(work, measure)


def session_over() -> Stop:
    """Return the stop criterion of what a page computes itself: true once its connection or its tab has ended."""
    if get_script_run_ctx() is None:
        return never
    here = connection()
    return lambda: here.left or here.tab.owner.over()


def once(kind: str, key: str, make: Callable[[], T]) -> T:
    """Return an answer that is worked out once for all sessions, by this one's script if none has it."""
    return shared(kind).get(key, make, session_over())  # type: ignore[no-any-return]
