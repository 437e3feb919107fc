"""Engines one after another on the same case: run beside the page, each alone, kept by setting, cancelled at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.scheduled import prove, schedule
from topox_core.figures.race import ENGINES, Contestant
from topox_core.schedule.proof import Proof
from topox_core.schedule.result import Result
from topox_ui.schedule.solving import ATTEND_S, BUSY, CLOSING_S, MOST_KEPT, Case, desk, places
from topox_ui.shell.page import warmed


@dataclass(frozen=True)
class Ask:
    """One race: a case, and the time limit that every engine has for itself."""

    case: Case
    limit_s: float

    @property
    def key(self) -> str:
        """Everything that the outcome depends on."""
        settings = self.case.settings
        return f"{self.case.key}|{self.limit_s}|{settings.threads}|{settings.gap}|{settings.seed}"

    def of(self, engine: str) -> Case:
        """Return the case as one engine is asked."""
        return replace(
            self.case,
            settings=replace(self.case.settings, engine=engine, time_limit_s=self.limit_s),
        )


@dataclass
class Heat:
    """A race on its way; its thread writes, the page reads."""

    ask: Ask
    stop: threading.Event = field(default_factory=threading.Event)
    engine: str = ""
    began: float = field(default_factory=time.monotonic)
    proof: Proof | None = None

    def on_the_way(self) -> Contestant | None:
        """Return where the engine that runs now stands."""
        proof = self.proof
        return (
            None
            if proof is None
            else Contestant.running(self.engine, tuple(proof.story), proof.elapsed_s)
        )


@dataclass
class RaceDesk:
    """One session's races: what every engine reached, by setting, and the race that runs.

    ``keep`` is told every result, so that the page shows the best that any engine found.
    """

    places: threading.BoundedSemaphore
    keep: Callable[[str, Result], None]
    kept: dict[str, dict[str, Contestant]] = field(default_factory=dict)
    heat: Heat | None = None
    note: str = ""
    _thread: threading.Thread | None = None
    _ended: bool = False
    _failure: Exception | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def runners(self, ask: Ask) -> list[Contestant]:
        """Return the engines that have ended their solve, in the order in which they run."""
        known = self.kept.get(ask.key, {})
        return [known[engine] for engine in ENGINES if engine in known]

    def start(self, ask: Ask, warming: threading.Thread | None = None) -> None:
        """Run the engines that have not run yet; a race that goes on is ended first."""
        self.close()
        self.note = ""
        if not self.places.acquire(blocking=False):
            self.note = BUSY
            return
        self.heat, self._ended = Heat(ask), False
        self._thread = threading.Thread(
            target=self._work, args=(self.heat, warming), name="race", daemon=True
        )
        self._thread.start()

    def ended(self) -> bool:
        """Return True once after a race has come to its end; what went wrong besides bad input is raised here."""
        with self._lock:
            ended, self._ended = self._ended, False
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return ended

    def cancel(self) -> None:
        """Stop at once; what the engines before have reached is kept."""
        with self._lock:
            heat, self.heat = self.heat, None
            self._ended = heat is not None
        if heat is not None:
            heat.stop.set()
            self.note = (
                "Stopped. The engines that had ended are kept; the others can be run from here."
            )

    def close(self) -> None:
        """End the race: the tab was closed, or another begins."""
        with self._lock:
            heat, self.heat = self.heat, None
        if heat is not None:
            heat.stop.set()
        if self._thread is not None:
            self._thread.join(CLOSING_S)

    def _work(self, heat: Heat, warming: threading.Thread | None) -> None:
        """Run one engine after another until told to stop; runs in a thread."""
        try:
            if warming is not None:
                warming.join()  # no engine shares the cores with a compiler
            for engine in ENGINES:
                if heat.stop.is_set():
                    break
                if engine in self.kept.get(heat.ask.key, {}):
                    continue
                heat.engine, heat.began, heat.proof = engine, time.monotonic(), None
                result = _run(heat, engine)
                if result is not None:
                    self._take(heat.ask, engine, result)
        except InputError as error:
            self.note = str(error)
        except Exception as error:
            self._failure = error
        finally:
            self.places.release()
            with self._lock:
                if self.heat is heat:
                    self.heat, self._ended = None, True

    def _take(self, ask: Ask, engine: str, result: Result) -> None:
        self.kept.setdefault(ask.key, {})[engine] = Contestant.of(engine, result)
        while len(self.kept) > MOST_KEPT:
            self.kept.pop(next(iter(self.kept)))
        if engine != "list":  # the page has the list schedule already
            self.keep(ask.case.key, result)


def _run(heat: Heat, engine: str) -> Result | None:
    """Return what one engine makes of the case, or None if the race was stopped before it came to its end."""
    case = heat.ask.of(engine)
    if engine == "list":
        try:
            result = schedule(case.graph, case.cluster, case.settings, heat.stop.is_set)
        except Stopped:
            return None
        return None if heat.stop.is_set() else result
    proof = heat.proof = prove(case.graph, case.cluster, case.settings)
    try:
        while proof.running and not heat.stop.is_set():
            proof.poll()
            time.sleep(ATTEND_S)
        proof.poll()
        return None if heat.stop.is_set() else proof.result()
    finally:
        proof.close()


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda race: race.close())
def race_desk() -> RaceDesk:
    """Return this session's races; closing the tab ends the one that runs."""
    return RaceDesk(places(), desk().keep)


def start(ask: Ask) -> None:
    """Start a race, once what must be compiled is."""
    race_desk().start(ask, warmed())
