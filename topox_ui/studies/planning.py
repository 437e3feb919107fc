"""A study as the page has it: its record, its points, what of them is there, and the run that computes the rest."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.library.run_library import RunLibrary
from topox_core.rails.presets import check_on_rail
from topox_core.runs.identity import code_version
from topox_core.runs.run import FunctionRun
from topox_core.studies.ready import SHIPPED, Ready
from topox_core.studies.study import Study, study_of
from topox_core.studies.study_run import (
    PointRow,
    StudyPlan,
    StudyResult,
    StudyRun,
    kept_by,
    known_rows,
    plan_of,
    probe_s,
    shipped_rows,
)
from topox_core.studies.subject import NOWHERE, resolved_of
from topox_core.training.job import Job
from topox_core.workloads.workload import as_workload
from topox_ui.answers.keeping import (
    existing_library,
    keeps_runs,
    named_subject,
    open_library,
)
from topox_ui.runs.limits import CORES, server_limits
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.state.loading import loaded, loaded_job, scenario
from topox_ui.state.scenario import CLUSTER
from topox_ui.studies.choosing import StudiesState

# Whether the first study of a job of no more tasks is computed without a click.
AUTOMATIC, MAX_TASKS = True, 5_000
POINTS = RunKind(
    "study_points",
    most_kept=4,
    most_slots=CORES,
    cancel_help="Stops within a second; computed points are kept, and the study can go on from them.",
    cancelled="Stopped. Every point that was computed is kept; computing goes on from there.",
)
PROBE = RunKind("study_probe", most_kept=24, most_slots=1, cancel_help="Leaves the time unknown.")
# The work of studies in s, as measured first: later this process knows parts of their points, new ones do not.
_MEASURED: dict[str, float] = {}


@dataclass(frozen=True)
class Asked:
    """A study with its subject read, what is known of it, and where its points are kept.

    Attributes
    ----------
    library
        None where this server keeps no runs: points then stay in this session.
    others
        How many points another version of the program computed, and this one did not.
    """

    plan: StudyPlan
    result: StudyResult
    library: RunLibrary | None
    others: int = 0

    @property
    def digest(self) -> str:
        """Tells studies apart; a point that took too long may have more time in the next one."""
        return _key(self.plan.study)

    @property
    def running(self) -> bool:
        """Whether it is being computed, or waits for its turn."""
        return run_owner().run(POINTS, self.digest) is not None

    @property
    def different(self) -> int:
        """How many different points it has: equal ones are computed once."""
        return len(self.plan.keys)

    @property
    def missing(self) -> int:
        """How many of them are not there."""
        there = {self.plan.key_of(row.number) for row in self.result.rows if row.done}
        return self.different - len(there)


def _key(study: Study) -> str:
    return f"{study.digest}|{study.budget.seconds_per_point}"


def text_of(record: Mapping[str, Any]) -> str:
    """Return a study's record on one line, as the page's state and a link hold it."""
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def take(record: Mapping[str, Any]) -> None:
    """Make a study the one of the page once it is known to be one.

    Raises
    ------
    InputError
        If it is none, or its subject cannot be had here.
    """
    _planned(text_of(record), existing_library())
    StudiesState.choose(of=text_of(record))


def record_of(text: str = "") -> dict[str, Any]:
    """Return the record of a study's text, if none is given the page's.

    Raises
    ------
    InputError
        If the text is none.
    """
    try:
        record = json.loads(text or StudiesState.now().of)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InputError("must be an object in braces", file="study")
    return record


def asked(text: str = "") -> Asked:
    """Return a study, if none is given the page's, with what is known of it; raises InputError as :func:`take`."""
    library = existing_library()
    plan = _planned(text or StudiesState.now().of, library)
    key = _key(plan.study)
    run = run_owner().run(POINTS, key)
    if isinstance(run, StudyRun):
        return Asked(plan, run.result(), library)
    if library is None:
        kept = run_owner().results(POINTS).get(key)
        return Asked(plan, kept or StudyResult(plan.study, plan.rows(_shipped())), None)
    own = {**_shipped(), **known_rows(plan, library)}
    every = known_rows(plan, library, any_version=True)
    shown = {**every, **own} if StudiesState.now().others else own
    others = len(every.keys() - own.keys())
    return Asked(plan, StudyResult(plan.study, plan.rows(shown)), library, others)


@st.cache_resource(show_spinner=False)
def _shipped() -> Mapping[str, PointRow]:
    """Return the points that come with the release: those of the first ready study about the samples."""
    return shipped_rows(SHIPPED)


def _planned(text: str, library: RunLibrary | None) -> StudyPlan:
    return _plan(f"{code_version()}|{text}", text, library)


@st.cache_resource(max_entries=16, show_spinner="Reading the study")
def _plan(key: str, _text: str, _library: RunLibrary | None) -> StudyPlan:  # noqa: ARG001
    record = record_of(_text)
    name = str(record.get("name", "")) or "study"
    plan = plan_of(study_of(record, name, NOWHERE, kept_by(_library)), _library, NOWHERE)
    graph = plan.resolved.graph
    if graph is not None:
        server_limits().check_tasks(len(graph.tasks), plan.resolved.title)
    return plan


def about_loaded(one: Ready, subject: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a ready study about the loaded job from its cluster as it is now; without a subject about its own one."""
    opened = loaded()
    if opened is None or subject is None:
        return one.record() | _for_job(one, loaded_job())
    own, now = opened.cluster, scenario().cluster(opened.cluster)
    changed = [name for name in CLUSTER if getattr(now, name) != getattr(own, name)]
    return one.record(subject, now, {f"cluster.{name}": getattr(now, name) for name in changed})


def _for_job(one: Ready, job: Job | None) -> dict[str, Any]:
    """Return what of a ready study about a network or a rail is another one for the loaded training job."""
    if job is None:
        return {}
    if "network" in one.kinds:
        fixed = {"gpus": job.plan.gpus, "gpus_per_server": job.machine.gpus_per_server}
        return {"fixed": one.record()["fixed"] | {f"network.{k}": v for k, v in fixed.items()}}
    with suppress(InputError):
        if "rails" in one.kinds:
            check_on_rail(job)
            name, parameters = as_workload(job)
            return {"subject": {"kind": "rails", "name": name, "parameters": dict(parameters)}}
    return {}


def loaded_subject() -> dict[str, Any]:
    """Return the loaded job as a subject; files of the reader's own go into the library, where points find them.

    Raises
    ------
    InputError
        If nothing is loaded, or this server keeps no files.
    """
    opened, named = loaded(), named_subject()
    if opened is None:
        raise InputError("no job is loaded", file="study", field="subject")
    if named is not None:
        return named.as_record()
    if not keeps_runs():
        raise InputError(
            "own files need the run library, which this server does not have: study a sample or a generated job",
            file="study",
            field="subject",
        )
    resolved = resolved_of(None, opened.graph, opened.cluster)
    open_library().keep_inputs(resolved.files)
    return resolved.subject.as_record()


def start(now: Asked, listed: bool = True) -> None:
    """Compute what is missing, beside the page; every point is kept the moment it is done, and the study with them if it is listed."""
    plan, keeps = now.plan, keeps_runs()

    def begin(places: int) -> StudyRun:
        # A library has every point of a study that it lists, those of the release too.
        whole = keeps and listed
        library, known = (open_library(), None) if whole else (existing_library(), dict(_shipped()))
        return StudyRun(plan, library, max(1, places), known, listed)

    run_owner().start(POINTS, now.digest, begin, note=lambda result: "; ".join(result.lost[:2]))


def begun_by_itself(now: Asked) -> bool:
    """Return whether a study that is missed of a sample or a generated job is computed, and compute it; not once it was stopped."""
    owner, graph = run_owner(), now.plan.resolved.graph
    small = AUTOMATIC and graph is not None and len(graph.tasks) <= MAX_TASKS
    ended = now.digest in owner.results(POINTS) or now.digest in owner.refusals(POINTS)
    stopped = owner.cancelled(POINTS, now.digest)
    if small and now.missing and not (ended or stopped) and owner.run(POINTS) is None:
        start(now, listed=False)
    return owner.run(POINTS, now.digest) is not None


def expected_s(now: Asked) -> float | None:
    """Return about how long the missing points take; None while that is being measured."""
    known = {now.plan.key_of(row.number): row for row in now.result.rows if row.done}
    seconds = now.plan.seconds(known, processes())
    if seconds is not None:
        return seconds
    owner, digest = run_owner(), now.digest
    if digest in owner.results(PROBE):
        _MEASURED.setdefault(digest, float(owner.results(PROBE)[digest]))
    if digest in _MEASURED:
        return _MEASURED[digest] / processes()
    if owner.run(PROBE, digest) is None and not owner.cancelled(PROBE, digest):
        plan = now.plan
        owner.start(
            PROBE,
            digest,
            lambda _places: FunctionRun(lambda _stop, _step: probe_s(plan, {}), name="probe study"),
            at_most_s=120.0,
        )
    return None


def processes() -> int:
    """Return how many processes a study gets where nobody else computes."""
    return max(1, min(CORES, server_limits().solver_places))
