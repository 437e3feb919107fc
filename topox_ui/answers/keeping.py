"""Results that outlast a visit: in the run library of this server, at a click or every one, and as a link with its result.

Such a file opens the same state, and in it the same schedule, on another machine without a solve.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from topox_core.check.checker import check
from topox_core.check.schedule_file import read_linked
from topox_core.errors import InputError
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import JobRequest
from topox_core.library.opening import default_path
from topox_core.library.rows import RunRecord
from topox_core.library.run_library import RunLibrary
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.latest import Latest
from topox_core.schedule.results.result import Result
from topox_core.schedule.results.result_file import from_record, to_record
from topox_core.studies.point import KeptRun, record_of_fabric_run, record_of_solve
from topox_core.studies.subject import Subject, resolved_of
from topox_core.text.numbers import enumeration, time
from topox_ui.answers.contest import Contest, Runs
from topox_ui.answers.solving import PROOF, first_answer, joined, keep, token
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import run_owner, session_over
from topox_ui.shell.charts import button, file_box, quiet, show_error
from topox_ui.shell.downloads import result_json
from topox_ui.state.address import follow_address
from topox_ui.state.loading import Loaded, scenario
from topox_ui.state.prices import Prices, catalogue
from topox_ui.state.session import Lasting, Passing, link_query, notify, notify_errors

OFF = "This server keeps no runs."
HOW_ON = (
    "It is off where several people share one server, because all of them would see the same runs. The owner of the "
    "server can switch it on: TOPOX_RUN_LIBRARY=yes."
)


def keeps_runs() -> bool:
    """Return whether there is a run library on this server."""
    return server_limits().keeps_runs


@st.cache_resource(show_spinner=False)
def _opened(path: str) -> RunLibrary:
    return RunLibrary.open(Path(path))


def open_library() -> RunLibrary:
    """Return the run library; the first use of it begins its file.

    Raises
    ------
    InputError
        If its file cannot be used.
    """
    return _opened(str(default_path()))


def existing_library() -> RunLibrary | None:
    """Return the run library if this server keeps runs and its file is there: who only looks begins none.

    Raises
    ------
    InputError
        If its file cannot be used.
    """
    return open_library() if keeps_runs() and default_path().exists() else None


def writable_library() -> RunLibrary | None:
    """Return the run library where this server keeps runs and it can be written."""
    if not keeps_runs():
        return None
    try:
        library = open_library()
    except InputError:
        return None
    return None if library.read_only else library


# What of a page's link is no part of what a run shows: how pages look, and what is asked of offers.
_NOT_OF_RUNS = re.compile(r"buy\.|large$")
MAX_SEEN = 500


# Whether every solve that Schedule shows goes into the library; no link may switch this on.
EVERY_SOLVE = Lasting[bool]("keep_every_solve")
# What became of the last click, said beside the button, which may be far below the headline.
_SAID = Passing[str]("kept_said")
# Solves that this session has put into the library, so that drawing a page again does not ask it.
_SEEN = Passing[Latest[None]]("kept_solves")


def keep_every(opened: Loaded, job: JobRequest, result: Result) -> None:
    """Put a solve that a page shows into the library, where the reader wants all of them there."""
    if not (keeps_runs() and EVERY_SOLVE.get()):
        return
    seen, key = _SEEN.get_or(partial(Latest, MAX_SEEN)), token(job, result)
    if key in seen:
        return
    seen[key] = None
    try:
        _put(kept_of(opened, job), lambda kept: [record_of_solve(result, kept)])
    except InputError as error:
        show_error(error)


def keep_solve_button(opened: Loaded, job: JobRequest, result: Result) -> None:
    """Offer to keep the solve that Schedule shows."""
    _button(
        "Keep this run",
        opened,
        job,
        FabricOptions(),
        lambda kept: [record_of_solve(result, kept)],
    )


def keep_contest_button(opened: Loaded, job: JobRequest, contest: Contest, runs: Runs) -> None:
    """Offer to keep the runs that Compare shows, one a fabric; they are made by list scheduling."""
    _button(
        "Keep these runs",
        opened,
        job.by_rules,
        contest.options,
        lambda kept: [record_of_fabric_run(run, kept) for run in runs.values()],
    )


def _button(words: str, *given: object) -> None:
    on = keeps_runs()
    where = "Kept in the run library: Kept runs (Studies) lists it, opens it again and compares it with other runs."
    button(
        words,
        "keep_run",
        "bookmark_add",
        _keep,
        *given,
        disabled=not on,
        help=where if on else OFF,
    )
    quiet(_SAID.pop())


Records = Callable[[KeptRun], Iterable[RunRecord]]


@notify_errors()
def _keep(opened: Loaded, job: JobRequest, options: FabricOptions, records: Records) -> None:
    """Put runs into the library and say which numbers they have there."""
    new = _put(kept_of(opened, job, options), records)
    added = [run for run, is_new in new.items() if is_new]
    before = [run for run, is_new in new.items() if not is_new]
    words = [f"Kept as run {enumeration(added)}."] if added else []
    words += [f"Kept before as run {enumeration(before)}."] if before else []
    _SAID.set(" ".join(words))


def _put(kept: KeptRun, records: Records) -> dict[int, bool]:
    """Put runs and the files that they need into the library; return by number whether each is new there."""
    library = open_library()
    new = dict(library.add_each(records(kept)))
    if any(new.values()):
        library.keep_inputs(kept.resolved.files)
    return new


def kept_of(opened: Loaded, job: JobRequest, options: FabricOptions | None = None) -> KeptRun:
    """Return what runs of what is loaded belong to."""
    return KeptRun(
        resolved_of(named_subject(), opened.graph, opened.cluster),
        job.cluster,
        job.settings,
        options or FabricOptions(),
        catalogue(),
        Prices.now().prices,
        run_link(),
    )


def named_subject() -> Subject | None:
    """Return what is loaded as a study names it; None of own files, or where nothing is loaded."""
    now = scenario()
    if now.source == "sample":
        return Subject("sample", {"name": now.name})
    if now.source == "workload":
        return Subject("workload", {"generator": now.name, "parameters": now.typed_parameters})
    return None


def run_link() -> str:
    """Return the state of this session that shows its runs, as the query of a link; of own files the what-ifs on them."""
    query = {k: text for k, text in link_query().items() if not _NOT_OF_RUNS.match(k)}
    now = scenario()
    if now.source == "upload":
        what_ifs = now.changed(source="sample", name="")
        query |= {k: text for k, text in what_ifs.to_query().items() if k != "sample"}
    # Never empty: by its link a run that a person kept is told from a study's point.
    return urlencode(query or {"large": "no"})


CHECKED_HERE = (
    "Opened from a file. This page has checked the schedule; the lower bound was proved on the machine that made the "
    "file."
)
CHECKED_KEPT = (
    "Opened from the run library. This page has checked the schedule; the lower bound was proved when the run was "
    "kept."
)


UPLOAD = "up_linked"


@dataclass(frozen=True)
class Linked:
    """A file (or a kept run) that was opened, until the page has its task graph."""

    file: str
    graph_digest: str
    record: Mapping[str, Any]
    kept: bool = False


# The page Schedule takes its result when it is drawn next.
LINKED = Lasting[Linked]("linked")


def linked_record(job: JobRequest, result: Result, link: dict[str, str]) -> dict[str, Any]:
    """Return a link and a result of its job as one file has them (docs/files.md)."""
    return to_record(result) | {
        "format": "topox-link",
        "version": 1,
        "link": link,
        "graph_digest": job.task_graph.digest,
    }


def link_with_result(name: str, job: JobRequest, result: Result) -> None:
    """Offer the file, and the way to open one."""
    st.download_button(
        "Link with result",
        data=result_json(
            partial(linked_record, job, result, link_query()),
            {"graph": job.task_graph.digest},
        ),
        file_name=f"{name}.link.json",
        mime="application/json",
        on_click="ignore",
        key="get_linked",
        icon=":material/download:",
        help="A file with the link and this schedule: on any workbench (Home, Your own files) it opens with the same time, "
        "without a new solve.",
    )
    open_linked("Open a link with result: a .link.json file")


def open_linked(label: str) -> None:
    """Draw the box for such a file."""
    file_box(label, UPLOAD, _take)


def _take(data: bytes, file: str) -> None:
    link, digest, record = read_linked(data, file)
    LINKED.set(Linked(file, digest, record))
    if link:  # a page reads the address when it begins
        follow_address()
        own = {key: text for key, text in link.items() if not key.startswith("embed")}
        st.query_params.from_dict(own)  # Streamlit keeps those words for itself


@notify_errors()
def take_linked(job: JobRequest) -> None:
    """Take the result of a file that was opened, now that its job is there; say in one line why where it cannot be."""
    linked = LINKED.pop()
    if linked is None:
        return
    result = _checked(job, linked)
    keep(run_owner().results(PROOF), job.key, result)
    best = time(result.makespan_ms or 0.0)
    where = "from the run library" if linked.kept else "found on another machine"
    notify("info", f"{linked.file} is open: a schedule of {best}, {where}.")


def _checked(job: JobRequest, linked: Linked) -> Result:
    """Return the result of a file once nothing in it speaks against it, joined with the list schedule of this page.

    Raises
    ------
    InputError
        If it belongs to another graph or other choices, breaks a constraint, or its bound is above a
        schedule that there is.
    """
    file, record = linked.file, linked.record
    if linked.graph_digest != job.task_graph.digest:
        problem = f"belongs to another task graph than {job.task_graph.name or 'the one that is loaded'}: load its graph first"
        raise InputError(problem, file=file)
    if record.get("makespan_ms") is None:
        raise InputError("holds no schedule", file=file, field="makespan_ms")
    refuse_faults(record, job.task_graph, job.cluster, file)
    try:
        result = from_record(record, job.task_graph, job.cluster, job.settings)
    except InputError as error:
        raise error.in_file(file) from None
    refuse_faults(to_record(result), job.task_graph, job.cluster, file)
    own = first_answer(job, session_over())
    if own.makespan_ms is not None and result.bound_ms > own.makespan_ms * (1 + 1e-9):
        problem = f"says that no schedule is shorter than {result.bound_ms:g} ms, but this page has one of {own.makespan_ms:g} ms"
        raise InputError(problem, file=file, field="bound_ms")
    return replace(joined(own, result), message=CHECKED_KEPT if linked.kept else CHECKED_HERE)


def refuse_faults(record: Mapping[str, Any], graph: TaskGraph, cluster: Cluster, file: str) -> None:
    """Raise InputError with the first rule that a result breaks, if it breaks one: a file may come from anywhere."""
    report = check(graph, cluster, record, file=file)
    if not report.ok:
        raise InputError(f"breaks the model: {report.lines(1)[0]}", file=file)
