"""The ways on from a recorded run: its task graph as the job of all pages, its windows on the rails, its files."""

from __future__ import annotations

import json

import streamlit as st

from topox_core.errors import InputError
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.rails.window_file import dump_windows_csv, dump_windows_json, load_windows
from topox_core.traces.checks import FAILED
from topox_ui.recorded.found import RecordedStep, report_of
from topox_ui.runs.limits import server_limits
from topox_ui.shell.downloads import File, download_menu, stem
from topox_ui.shell.links import go_to
from topox_ui.shell.page import button, quiet
from topox_ui.state.loading import Loaded, adopt
from topox_ui.state.notices import notify
from topox_ui.state.own_windows import OWN_WINDOWS
from topox_ui.state.session import Passing

# The page that a button asked for: only the script may leave its page, a callback may not.
_GOING = Passing[str]("recorded_going")


def leave_where_asked() -> None:
    """Go to the page that a button asked for."""
    title = _GOING.pop()
    if title == "Rails":
        go_to(title, **{"rails.source": "upload"})
    elif title:
        go_to(title)


def ways_on(found: RecordedStep) -> None:
    """Draw what can be done with the step: schedule it, compare fabrics, look at its windows, save it."""
    with st.container(horizontal=True, vertical_alignment="center", key="recorded_ways"):
        none = found.imported is None
        button(
            "Schedule it",
            "recorded_schedule",
            "arrow_forward",
            _adopt,
            found,
            "Schedule",
            primary=True,
            disabled=none,
            help="Makes the task graph the job of all pages, on a cluster of the chosen speed.",
        )
        button(
            "Compare fabrics",
            "recorded_compare",
            "bar_chart",
            _adopt,
            found,
            "Compare",
            disabled=none,
        )
        button(
            "Windows on Rails",
            "recorded_rails",
            "space_bar",
            _to_rails,
            found,
            disabled=not found.windows.windows,
        )
        download_menu(_name(found), _files(found))
    if any(one.status == FAILED for one in found.checks):
        quiet(
            '<span class="bad">✗</span> A check failed: what follows from this step is not to be trusted.'
        )


def _name(found: RecordedStep) -> str:
    return stem(f"step-{found.number}" if found.number >= 0 else "recorded-run")


def _adopt(found: RecordedStep, title: str) -> None:
    assert found.imported is not None
    graph = found.imported.graph
    try:
        server_limits().check_tasks(len(graph.tasks), graph.name)
        adopt(Loaded(graph, found.cluster(), graph.name))
    except InputError as error:
        notify("error", str(error))
        return
    _GOING.set(title)


def _windows(found: RecordedStep) -> bytes:
    return dump_windows_json(_name(found), found.recorded_ms, found.windows.windows)


def _to_rails(found: RecordedStep) -> None:
    OWN_WINDOWS.set(load_windows(_windows(found), f"{_name(found)}.windows.json"))
    _GOING.set("Rails")


def _files(found: RecordedStep) -> list[File]:
    """Return what the step is saved as; each is built when it is asked for."""
    files: list[File] = []
    known = found.imported
    if known is not None:
        files += [
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(known.graph)),
            ("Cluster (JSON)", ".cluster.json", lambda: dump_cluster(found.cluster())),
            (
                "Report (JSON)",
                ".report.json",
                lambda: (json.dumps(report_of(found), indent=1) + "\n").encode(),
            ),
        ]
    if found.windows.windows:
        files += [
            ("Windows (JSON)", ".windows.json", lambda: _windows(found)),
            ("Windows (CSV)", ".windows.csv", lambda: dump_windows_csv(found.windows.windows)),
        ]
    return files
