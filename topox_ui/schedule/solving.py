"""One result for one setting, everywhere: list schedule at once, proof beside the page, all kept by digest."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import streamlit as st

from topox_core.check.checker import check
from topox_core.check.report import CheckReport
from topox_core.errors import InputError
from topox_core.fabrics.scheduled import prove, schedule
from topox_core.figures.lanes import Bars, Lanes, bars_of, lanes_of
from topox_core.figures.overview import overview_image
from topox_core.figures.story import ANOTHER_SOLVE
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import CriticalPath, critical_path
from topox_core.model.measures import Measures, measures
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.proof import Proof
from topox_core.schedule.result import Result, StoryLine
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import plural
from topox_ui.state.loading import Loaded
from topox_ui.state.scenario import Scenario

MOST_KEPT = 24
WORTH_A_WORD = 5_000  # tasks; fewer are scheduled before a spinner could be read
ATTEND_S = 0.05  # between two looks at a running proof
CLOSING_S = 2.0  # how long another solve waits for the last one's place
PATIENCE_S = 0.1  # how long Cancel waits for a last word of the engines
BUSY = "All solver places of this machine are in use. Wait for another solve to end, or cancel one, and try again."


@dataclass(frozen=True)
class Case:
    """One graph on one cluster under one model: what a result belongs to."""

    graph: TaskGraph
    cluster: Cluster
    settings: Settings

    @cached_property
    def key(self) -> str:
        """Digest of everything that a schedule depends on; who solves and for how long does not count."""
        model = replace(self.settings, engine="list", time_limit_s=60.0, gap=0.0, seed=0, threads=1)
        return f"{self.graph.digest}|{self.cluster.digest}|{model}"

    def at_delay(self, delay_ms: float) -> Case:
        """Return the same case with another reconfiguration delay."""
        return replace(self, cluster=self.cluster.changed(reconfiguration_ms=delay_ms))


def listing(settings: Settings) -> Settings:
    """Return the settings of a list schedule, which the limits of exact solves do not concern."""
    return replace(settings, engine="list", time_limit_s=Settings.time_limit_s)


def case_of(loaded: Loaded, scenario: Scenario) -> Case:
    """Return the case of what is loaded and chosen; raises InputError where choices do not go together."""
    return Case(loaded.graph, scenario.changed(loaded.cluster), scenario.made())


@dataclass
class Desk:
    """One session's solves: results that were improved by an exact engine, and the proof that runs.

    A thread attends the proof, so that its end is noticed, its result kept and its place given back
    whatever page the user is on. Pages read ``proof`` and ask :meth:`ended`.
    """

    places: threading.BoundedSemaphore
    results: dict[str, Result] = field(default_factory=dict)
    proof: Proof | None = None
    proof_key: str = ""
    note: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _attendant: threading.Thread | None = None
    _ended: bool = False

    def start(self, case: Case) -> None:
        """Start a proof of ``case``; one that runs for another case is ended first."""
        self.close()
        self.note = ""
        if not self.places.acquire(blocking=False):
            self.note = BUSY
            return
        try:
            proof = prove(case.graph, case.cluster, case.settings)
        except InputError as error:
            self.note = str(error)
            self.places.release()
            return
        except BaseException:
            self.places.release()
            raise
        self.proof, self.proof_key, self._ended = proof, case.key, False
        self._attendant = threading.Thread(
            target=self._attend, args=(proof,), name="attend proof", daemon=True
        )
        self._attendant.start()

    def ended(self) -> bool:
        """Return True once after a proof has come to its end and its result was kept."""
        with self._lock:
            ended, self._ended = self._ended, False
        return ended

    def cancel(self) -> None:
        """Stop the running proof and keep its best schedule; engines that do not listen are ended after the answer."""
        proof, attendant = self.proof, self._attendant
        if proof is None or attendant is None:
            return
        proof.cancel()
        attendant.join(PATIENCE_S)
        with self._lock:
            if self.proof is proof:
                proof.poll()
                self._take(proof)

    def close(self) -> None:
        """End the proof at once: the tab was closed, or another solve begins."""
        with self._lock:
            proof, self.proof = self.proof, None
        if proof is not None:
            proof.close()
        if self._attendant is not None:
            self._attendant.join(CLOSING_S)

    def keep(self, key: str, result: Result) -> None:
        """Take in what was found elsewhere in this session."""
        with self._lock:
            self._keep(key, result)

    def _attend(self, proof: Proof) -> None:
        """Take the proof forward until it ends, then keep its result and give its place back."""
        try:
            while self._forward(proof):
                time.sleep(ATTEND_S)
        finally:
            proof.close()
            self.places.release()

    def _forward(self, proof: Proof) -> bool:
        """Take the proof one step forward; return whether it goes on and somebody still wants it."""
        with self._lock:
            if self.proof is not proof:
                return False
            running = proof.running
            proof.poll()
            if not running:
                self._take(proof)
        return running

    def _take(self, proof: Proof) -> None:
        self._keep(self.proof_key, proof.result())
        self.proof, self._ended = None, True

    def _keep(self, key: str, result: Result) -> None:
        before = self.results.pop(key, None)
        if before is not None and before.makespan_ms is not None and result.makespan_ms is not None:
            if _cost(before) < _cost(result):
                before, result = result, before
            if before.bound_ms > result.bound_ms:
                proved = before.bound_ms >= (result.makespan_ms or 0.0)
                line = StoryLine(result.wall_s, result.makespan_ms, before.bound_ms, ANOTHER_SOLVE)
                result = replace(
                    result,
                    bound_ms=before.bound_ms,
                    bound_by=before.bound_by,
                    bound_tasks=before.bound_tasks,
                    story=(*result.story, line),
                    status="optimal" if proved else result.status,
                    stopped_by="proof" if proved else result.stopped_by,
                )
        self.results[key] = result
        while len(self.results) > MOST_KEPT:
            self.results.pop(next(iter(self.results)))


def _cost(result: Result) -> tuple[float, int]:
    """Return what is minimised: the makespan, then the number of circuit changes."""
    changes = 0 if result.execution is None else int(result.execution.circuits.changed.sum())
    return result.makespan_ms or 0.0, changes


@st.cache_resource(show_spinner=False)
def places() -> threading.BoundedSemaphore:
    """Return the semaphore that bounds how many exact solves run on this machine at once."""
    return threading.BoundedSemaphore(max(1, os.cpu_count() or 1))


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda desk: desk.close())
def desk() -> Desk:
    """Return this session's desk; closing the tab ends its solve."""
    return Desk(places())


@st.cache_resource(max_entries=96, show_spinner=False)
def _listed(key: str, _case: Case) -> Result:  # noqa: ARG001 (the key is what the cache goes by)
    return schedule(_case.graph, _case.cluster, listing(_case.settings))


def listed(case: Case) -> Result:
    """Return the list schedule of a case."""
    return _listed(case.key, case)


def best(case: Case) -> Result:
    """Return the one result of a case: the list schedule, or what an exact engine made of it in this session."""
    found = desk().results.get(case.key)
    if found is not None:
        return found
    if len(case.graph.tasks) < WORTH_A_WORD:
        return listed(case)
    with st.spinner(f"Scheduling {plural(len(case.graph.tasks), 'task')}"):
        return listed(case)


def token(case: Case, result: Result) -> str:
    """Return a key for what is derived from this very result."""
    return f"{case.key}|{result.engine}|{result.makespan_ms}|{result.bound_ms}|{result.wall_s}"


@dataclass(frozen=True)
class Drawn:
    """What every chart of a result starts from."""

    lanes: Lanes
    bars: Bars
    path: CriticalPath
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
    path = critical_path(execution, _result.settings.exclusive_devices)
    return Drawn(lanes, bars, path, measures(execution), image, rows)


@st.cache_resource(max_entries=12, show_spinner=False)
def verdict(key: str, _case: Case, _result: Result) -> CheckReport:  # noqa: ARG001
    """Return what the independent checker says of a result, from the input and the result's file alone."""
    return check(_case.graph, _case.cluster, to_record(_result))
