"""One result for one setting, everywhere: list schedule at once, proof beside the page, all kept by digest."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from topox_core.check.checker import check
from topox_core.check.report import CheckReport
from topox_core.cluster import Cluster
from topox_core.errors import InputError
from topox_core.figures.lanes import Bars, Lanes, bars_of, lanes_of
from topox_core.figures.numbers import plural
from topox_core.figures.overview import overview_image
from topox_core.graph.task_graph import TaskGraph
from topox_core.measures import CriticalChain, Measures, critical_tasks, measures
from topox_core.schedule.proof import Proof
from topox_core.schedule.result import Result
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import prove, quick
from topox_ui.loading import Loaded
from topox_ui.scenario import Scenario

MOST_KEPT = 24
WORTH_A_WORD = 5_000  # tasks; fewer are scheduled before a spinner could be read
PATIENCE_S = 0.2  # how long Cancel waits for an engine to stop by itself
BUSY = "All solver places of this machine are in use. Wait for another solve to end, or cancel one, and try again."


@dataclass(frozen=True)
class Case:
    """One graph on one cluster under one model: what a result belongs to."""

    graph: TaskGraph
    cluster: Cluster
    settings: Settings

    @property
    def key(self) -> str:
        """Digest of everything that a schedule depends on; who solves and for how long does not count."""
        model = replace(self.settings, engine="list", time_limit_s=60.0, gap=0.0, seed=0, threads=1)
        return f"{self.graph.digest}|{self.cluster.digest}|{model}"

    def at_delay(self, delay_ms: float) -> Case:
        """Return the same case with another reconfiguration delay."""
        return replace(self, cluster=self.cluster.changed(reconfiguration_ms=delay_ms))


def case_of(loaded: Loaded, scenario: Scenario) -> Case:
    """Return the case of what is loaded and chosen; raises InputError where choices do not go together."""
    return Case(loaded.graph, scenario.changed(loaded.cluster), scenario.made())


@dataclass
class Desk:
    """One session's solves: results that were improved by an exact engine, and the proof that runs."""

    places: threading.BoundedSemaphore
    results: dict[str, Result] = field(default_factory=dict)
    proof: Proof | None = None
    proof_key: str = ""
    note: str = ""
    _holds_place: bool = False

    def start(self, case: Case) -> None:
        """Start a proof of ``case``; one that runs for another case is ended first."""
        self.close()
        self.note = ""
        if not self.places.acquire(blocking=False):
            self.note = BUSY
            return
        self._holds_place = True
        try:
            self.proof, self.proof_key = prove(case.graph, case.cluster, case.settings), case.key
        except InputError as error:
            self.note = str(error)
        finally:
            if self.proof is None:
                self._leave()

    def poll(self) -> bool:
        """Take the proof forward; return True when it has just ended and its result was kept."""
        if self.proof is None:
            return False
        self.proof.poll()
        if self.proof.running:
            return False
        self._keep(self.proof_key, self.proof.result())
        self.close()
        return True

    def cancel(self) -> None:
        """Stop the running proof and keep its best schedule."""
        proof = self.proof
        if proof is None:
            return
        proof.cancel()
        patience = time.monotonic() + PATIENCE_S
        while proof.running and time.monotonic() < patience:
            time.sleep(0.02)
            proof.poll()
        # An engine deep in a phase that does not ask whether to stop is ended: what it found is already here.
        proof.close()
        self.poll()

    def close(self) -> None:
        """End the proof at once: the tab was closed, or another solve begins."""
        proof, self.proof = self.proof, None
        if proof is not None:
            proof.close()
        self._leave()

    def _leave(self) -> None:
        if self._holds_place:
            self._holds_place = False
            self.places.release()

    def _keep(self, key: str, result: Result) -> None:
        before = self.results.pop(key, None)
        if before is not None and before.makespan_ms is not None and result.makespan_ms is not None:
            worse = result.makespan_ms > before.makespan_ms
            weaker = result.makespan_ms == before.makespan_ms and result.bound_ms < before.bound_ms
            result = before if worse or weaker else result
        self.results[key] = result
        while len(self.results) > MOST_KEPT:
            self.results.pop(next(iter(self.results)))


@st.cache_resource(show_spinner=False)
def places() -> threading.BoundedSemaphore:
    """Return the semaphore that bounds how many exact solves run on this machine at once."""
    return threading.BoundedSemaphore(max(1, os.cpu_count() or 1))


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda desk: desk.close())
def desk() -> Desk:
    """Return this session's desk; closing the tab ends its solve."""
    return Desk(places())


@st.cache_resource(max_entries=96, show_spinner=False)
def _quick(key: str, _case: Case) -> Result:  # noqa: ARG001 (the key is what the cache goes by)
    return quick(_case.graph, _case.cluster, _case.settings)


def best(case: Case) -> Result:
    """Return the one result of a case: the list schedule, or what an exact engine made of it in this session."""
    found = desk().results.get(case.key)
    if found is not None:
        return found
    if len(case.graph.tasks) < WORTH_A_WORD:
        return _quick(case.key, case)
    with st.spinner(f"Scheduling {plural(len(case.graph.tasks), 'task')}"):
        return _quick(case.key, case)


def token(case: Case, result: Result) -> str:
    """Return a key for what is derived from this very result."""
    return f"{case.key}|{result.engine}|{result.makespan_ms}|{result.bound_ms}|{result.wall_s}"


@dataclass(frozen=True)
class Drawn:
    """What every chart of a result starts from."""

    lanes: Lanes
    bars: Bars
    chain: CriticalChain
    measures: Measures
    image: Any
    image_rows: int


@st.cache_resource(max_entries=12, show_spinner=False)
def drawn(key: str, _result: Result) -> Drawn:  # noqa: ARG001
    """Return lanes, bars, critical chain, measures and overview image of a result with a schedule."""
    execution = _result.execution
    assert execution is not None
    lanes = lanes_of(execution)
    bars = bars_of(execution, lanes)
    image, rows = overview_image(bars, lanes, execution.makespan_ms)
    return Drawn(lanes, bars, critical_tasks(execution), measures(execution), image, rows)


@st.cache_resource(max_entries=12, show_spinner=False)
def verdict(key: str, _case: Case, _result: Result) -> CheckReport:  # noqa: ARG001
    """Return what the independent checker says of a result, from the input and the result's file alone."""
    return check(_case.graph, _case.cluster, to_record(_result))
