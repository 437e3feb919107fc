"""A link with its result: a file that opens the same state, and in it the same schedule, on another machine without a solve."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from topox_core.check.checker import check
from topox_core.check.schedule_file import read_linked
from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.result import Result
from topox_core.schedule.result_file import from_record, to_record
from topox_core.text.numbers import time
from topox_ui.answers.solving import PROOF, Case, first_answer, joined, keep
from topox_ui.runs.owner import run_owner, session_over
from topox_ui.shell.charts import file_box
from topox_ui.shell.downloads import result_json
from topox_ui.state.address import follow_address
from topox_ui.state.session import Lasting, link_query, notify, notify_errors

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


_OPENED = Lasting[Linked]("linked")


def linked_record(case: Case, result: Result, link: dict[str, str]) -> dict[str, Any]:
    """Return a link and a result of its case as one file has them (docs/files.md)."""
    return to_record(result) | {
        "format": "topox-link",
        "version": 1,
        "link": link,
        "graph_digest": case.graph.digest,
    }


def link_with_result(name: str, case: Case, result: Result) -> None:
    """Offer the file, and the way to open one."""
    st.download_button(
        "Link with result",
        data=result_json(
            partial(linked_record, case, result, link_query()),
            {"graph": case.graph.digest},
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


def open_with_result(linked: Linked) -> None:
    """Let the page Schedule take a kept result when it is drawn next."""
    _OPENED.set(linked)


def opened_file() -> str | None:
    """Return the name of a file whose result waits for the page Schedule; None where none does."""
    linked = _OPENED.get()
    return None if linked is None else linked.file


def _take(data: bytes, file: str) -> None:
    link, digest, record = read_linked(data, file)
    _OPENED.set(Linked(file, digest, record))
    if link:  # a page reads the address when it begins
        follow_address()
        own = {key: text for key, text in link.items() if not key.startswith("embed")}
        st.query_params.from_dict(own)  # Streamlit keeps those words for itself


@notify_errors()
def take_linked(case: Case) -> None:
    """Take the result of a file that was opened, now that its case is there; say in one line why where it cannot be."""
    linked = _OPENED.pop()
    if linked is None:
        return
    result = _checked(case, linked)
    keep(run_owner().results(PROOF), case.key, result)
    best = time(result.makespan_ms or 0.0)
    where = "from the run library" if linked.kept else "found on another machine"
    notify("info", f"{linked.file} is open: a schedule of {best}, {where}.")


def _checked(case: Case, linked: Linked) -> Result:
    """Return the result of a file once nothing in it speaks against it, joined with the list schedule of this page.

    Raises
    ------
    InputError
        If it belongs to another graph or other choices, breaks a constraint, or its bound is above a
        schedule that there is.
    """
    file, record = linked.file, linked.record
    if linked.graph_digest != case.graph.digest:
        problem = f"belongs to another task graph than {case.graph.name or 'the one that is loaded'}: load its graph first"
        raise InputError(problem, file=file)
    if record.get("makespan_ms") is None:
        raise InputError("holds no schedule", file=file, field="makespan_ms")
    refuse_faults(record, case.graph, case.cluster, file)
    try:
        result = from_record(record, case.graph, case.cluster, case.settings)
    except InputError as error:
        raise error.in_file(file) from None
    refuse_faults(to_record(result), case.graph, case.cluster, file)
    own = first_answer(case, session_over())
    if own.makespan_ms is not None and result.bound_ms > own.makespan_ms * (1 + 1e-9):
        problem = f"says that no schedule is shorter than {result.bound_ms:g} ms, but this page has one of {own.makespan_ms:g} ms"
        raise InputError(problem, file=file, field="bound_ms")
    return replace(joined(own, result), message=CHECKED_KEPT if linked.kept else CHECKED_HERE)


def refuse_faults(record: Mapping[str, Any], graph: TaskGraph, cluster: Cluster, file: str) -> None:
    """Raise InputError with the first rule that a result breaks, if it breaks one: a file may come from anywhere."""
    report = check(graph, cluster, record, file=file)
    if not report.ok:
        raise InputError(f"breaks the model: {report.lines(1)[0]}", file=file)
