"""Kept runs: what is kept of runs, found again, opened, named, deleted, taken away and set side by side."""

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.errors import InputError
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import JobRequest
from topox_core.figures.palette import Theme
from topox_core.library.opening import default_path
from topox_core.library.rows import Deleted, RunFilter, RunRecord, StoredRun
from topox_core.library.run_library import RunLibrary
from topox_core.library.tables import RunComparison, compare_runs, runs_csv, runs_parquet
from topox_core.schedule.settings import Settings
from topox_core.studies.keys import measure_words
from topox_core.studies.point import KeptRun, record_of_solve
from topox_core.studies.subject import Subject, resolved_of
from topox_core.text.numbers import count, plural, size
from topox_core.workloads.samples import load_sample
from topox_ui.answers.keeping import (
    HOW_ON,
    LINKED,
    OFF,
    Linked,
    existing_library,
    keeps_runs,
    open_library,
)
from topox_ui.answers.solving import shipped_answer
from topox_ui.library.listing import (
    LETTERS,
    Listed,
    RunsState,
    asked,
    controls,
    every_run,
    keep_switch,
    listed,
    row_of_example,
    study_menu,
    table,
)
from topox_ui.library.side_by_side import finding, result_record, side_by_side, subject_kept
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import (
    as_label,
    button,
    escape,
    frame,
    headline,
    quiet,
    show_input_errors,
    write_html,
)
from topox_ui.shell.downloads import link_menu, offer
from topox_ui.shell.menu import leave_for, page_link
from topox_ui.state.loading import Loaded, adopt
from topox_ui.state.scenario import ALGORITHM_WORDS, CLUSTER, LOWERING, PARAMETER, Scenario
from topox_ui.state.session import Passing, notify, notify_errors, put, word_of
from topox_ui.state.widgets import bound, sidebar

# Settings of a solve that the state has under the same name.
_SOLVE = (
    "model",
    "circuits",
    "share_circuits",
    "exclusive_devices",
    "any_port",
    "clock",
    "iteration",
    "switching",
)
_OPEN = ("auto", "default")


def query_of(record: RunRecord) -> dict[str, str]:
    """Return the query of the link that shows a run: the one that it was kept with, else what its settings say."""
    if record.link:
        return dict(parse_qsl(record.link))
    if record.kind not in ("fabric", "schedule"):
        return {}
    subject = record.settings.get("subject")
    return {**_source(subject), **_what_ifs(record.settings)} if isinstance(subject, dict) else {}


def _source(subject: Mapping[str, Any]) -> dict[str, str]:
    kind, parameters = subject.get("kind"), subject.get("parameters") or {}
    if kind == "sample":
        return {"sample": str(subject.get("name"))}
    if kind in ("workload", "job"):
        name = subject.get("generator") or subject.get("name")
        return {"workload": str(name)} | {
            PARAMETER + key: word_of(value) for key, value in parameters.items()
        }
    return {}


def _what_ifs(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what a state must say beside its source; settings that hold anyway are left out."""
    usual = Settings.of()
    own = {name: settings.get(f"settings.{name}") for name in _SOLVE}
    lowering = {name: settings.get(f"lowering.{name}") for name in (*LOWERING, *ALGORITHM_WORDS)}
    found = {
        **{name: settings.get(f"cluster.{name}") for name in CLUSTER},
        **{name: value for name, value in own.items() if value != getattr(usual, name)},
        **{k: value for k, value in lowering.items() if value not in _OPEN and value is not True},
        # Parameters of a generator that a study varies are part of its source.
        **{
            PARAMETER + key.partition(".")[2]: value
            for key, value in settings.items()
            if key.startswith(("workload.", "job."))
        },
    }
    return {
        key: word_of(value)
        for key, value in found.items()
        if value is not None and Scenario.owns(key)
    }


# Which page shows a run of a kind.
PAGE_OF_KIND = {
    "schedule": "Schedule",
    "fabric": "Compare",
    "rail": "Rails",
    "round": "Sharing",
    "bill": "Network",
}
# What was deleted last in this session, whole, until something else is deleted.
_DELETED = Passing[Deleted]("deleted_runs")


@notify_errors()
def _open(run: int) -> None:
    """Open a run on the page that shows it."""
    library = open_library()
    one = library.get(run)
    query = _query_of(library, one)
    leave_for(PAGE_OF_KIND[one.record.kind], carries=False, **query)


def _query_of(library: RunLibrary, one: StoredRun) -> dict[str, str]:
    """Return the address of a run's state; its own files are loaded from the library, its result is kept for the page.

    Raises
    ------
    InputError
        If the library keeps neither a link nor the files.
    """
    record, query = one.record, query_of(one.record)
    own = record.settings.get("subject", {})
    own = own if isinstance(own, dict) else {}
    if not {"sample", "workload"} & query.keys() and own.get("kind") == "files":
        found = subject_kept(library, one)
        server_limits().check_tasks(len(found.graph.tasks), found.files[0].name)
        loaded = Loaded(found.graph, found.cluster, record.subject)
        adopt(loaded)
        what_ifs, _ = Scenario.of_query({k: v for k, v in query.items() if Scenario.owns(k)})
        put(what_ifs.changed(source="upload", name=loaded.title))
        query = {key: text for key, text in query.items() if not Scenario.owns(key)}
    elif not query:
        raise InputError("has no page that shows it; its numbers are here", file=f"run {one.id}")
    if record.kind == "schedule" and (result := result_record(library, one)) is not None:
        LINKED.set(Linked(f"run {one.id}", record.graph, result, kept=True))
    return query


def actions(now: Listed) -> None:
    """Draw what can be done with the chosen runs, the most wanted first."""
    chosen = now.chosen
    with st.container(horizontal=True, vertical_alignment="center", key="runs_actions"):
        for letter, one in zip(LETTERS, chosen, strict=False):
            words = f"Open {letter}" if len(chosen) > 1 else "Open"
            shown = bool(query_of(one.record)) or one.has_result
            help_text = (
                f"On the page {PAGE_OF_KIND.get(one.record.kind, '')}, in the state that was kept."
            )
            button(
                words,
                f"open_{letter}",
                "open_in_new",
                _open,
                one.id,
                disabled=not shown,
                help=help_text if shown else "No page shows it; its numbers are here.",
            )
        if chosen:
            _naming(chosen)
            button(
                "Delete",
                "delete_runs",
                "delete",
                _delete,
                [one.id for one in chosen],
                help=f"Takes {plural(len(chosen), 'run')} out of the library. You can undo this until you delete something else.",
            )
        _taking_away()
        link_menu()
        undo_button()


def undo_button() -> None:
    """Offer to put back what was deleted last in this session."""
    deleted = _DELETED.get()
    if deleted is not None and deleted["runs"]:
        words = f"Restore {plural(len(deleted['runs']), 'deleted run')}"
        button(words, "undo_delete", "undo", _undo)


def _naming(chosen: Sequence[StoredRun]) -> None:
    with st.popover("Name", icon=":material/edit:"):
        for letter, one in zip(LETTERS, chosen, strict=False):
            bound(
                "text_input",
                f"Name of {letter}, run {one.id}",
                f"name_{one.id}",
                one.record.name,
                partial(_rename, one.id),
                max_chars=120,
            )


@notify_errors()
def _rename(run: int, name: str) -> None:
    open_library().rename(run, name.strip())


@notify_errors()
def _delete(runs: list[int]) -> None:
    deleted = open_library().delete(runs)
    _DELETED.set(deleted)
    RunsState.choose(chosen=None)
    notify("info", f"Deleted: {plural(len(deleted['runs']), 'run')}.")


@notify_errors()
def _undo() -> None:
    if (deleted := _DELETED.get()) is not None:
        back = open_library().restore(deleted)
        _DELETED.pop()
        notify("info", f"Restored: {plural(back, 'run')}.")


def _taking_away() -> None:
    """Offer the listed runs as tables and as a library of their own, and take in another library."""
    with st.popover("Export", icon=":material/download:"):
        st.caption("All runs that match the filters, on all pages of the list.")
        which = asked()
        offer(
            "runs",
            [
                ("Table (CSV)", ".csv", lambda: runs_csv(open_library(), which)),
                ("Table (Parquet)", ".parquet", lambda: runs_parquet(open_library(), which)),
                (
                    "Library (SQLite), with results and inputs",
                    ".sqlite",
                    lambda: _library_bytes(open_library(), which),
                ),
            ],
        )


def _library_bytes(library: RunLibrary, which: RunFilter) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        library.copy_to(path, which)
        return path.read_bytes()


EXAMPLE = "race"  # the sample whose schedule shows what a kept run is


def headline_of(library: RunLibrary, now: Listed, compared: RunComparison | None) -> None:
    """Write how many runs there are and what the chosen ones say."""
    of_study = RunsState.now().study is not None
    kicker = f"Kept runs · {count(now.total)} kept on this {'server' if server_limits().shared else 'computer'}"
    if of_study:
        kicker = f"Kept runs · {plural(now.matching, 'point')} of a study"
    elif now.matching != now.total:
        kicker += f" · {count(now.matching)} match"
    if now.chosen:
        kicker += f" · {count(len(now.chosen))} chosen"
    for line in library.notices:
        st.warning(as_label(line))
    if compared is not None:
        headline(kicker, finding(compared))
    elif now.chosen:
        headline(kicker, f"{_one(now)} Choose another run to see what differs.")
    elif now.matching:
        headline(
            kicker,
            f"<b>{plural(now.matching, 'run')}</b> to open again. Choose two of them to see what differs.",
        )
    else:
        headline(kicker, "<b>No run matches.</b> Remove a filter on the left.")


def _one(now: Listed) -> str:
    record = now.chosen[0].record
    name = escape(record.name or record.subject)
    takes = {
        "iteration_ms": "an iteration takes",
        "round_s": "a round takes",
        "dollars": "the network costs",
    }
    for measure, what in takes.items():
        value = record.measures.get(measure)
        if value is not None:
            return f"{name}: {what} <b>{measure_words(measure, value)}</b>."
    return f"{name}: {escape((record.message or record.status).rstrip('.'))}."


def nothing_yet() -> None:
    """Say what a kept run is good for and where the first one comes from."""
    headline("Kept runs", "<b>No run is kept yet.</b> Keep one on Schedule or Compare.")
    frame(
        [row_of_example(example())],
        title=("An example: one kept run", "as this page lists it; choose a run to open it again"),
    )
    write_html(
        '<ul class="claim"><li>On Schedule and Compare, under the figures, "Keep this run" puts what you see into the library.'
        "</li><li>This page lists kept runs, opens them in the state that was kept, and compares them.</li>"
        "<li>The points of a study stay with their study.</li></ul>"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        page_link("Schedule", "Open the example", icon=":material/open_in_new:", sample=EXAMPLE)
        page_link("Schedule", "Go to Schedule", icon=":material/arrow_forward:")
        page_link("Compare", "Go to Compare", icon=":material/arrow_forward:")
    undo_button()
    with sidebar():
        st.divider()
        keep_switch()
    where_it_lies()


@st.cache_resource(show_spinner=False)
def example() -> RunRecord:
    """Return the shipped schedule of a sample as the run that "Keep this run" would make of it."""
    graph, cluster = load_sample(EXAMPLE)
    now = Scenario(source="sample", name=EXAMPLE)
    job = JobRequest(graph, now.cluster(cluster), now.settings())
    subject = resolved_of(Subject("sample", {"name": EXAMPLE}), graph, cluster)
    prices = PRICE_SETS[SET_BY_SPEED]
    kept = KeptRun(subject, job.cluster, job.settings, FabricOptions(), prices, SET_BY_SPEED)
    # tools/make_answers.py ships one of every sample
    return record_of_solve(shipped_answer(job), kept)


def switched_off() -> None:
    """Say that this server keeps no runs, and who can change that."""
    headline("Kept runs", f"<b>{OFF[:-1]}</b>, so there is nothing to list.")
    quiet(HOW_ON)
    quiet("A link or a download keeps what a page shows: both are under its figures.")


def where_it_lies(library: RunLibrary | None = None) -> None:
    """Say where the library is, if that is on the reader's own computer, and what may not be done to it now."""
    path = default_path()
    if not server_limits().shared:
        large = f", {size(path.stat().st_size)}" if path.exists() else ""
        with st.expander("Where runs are kept", key="where_kept", type="compact"):
            quiet(
                f"On this computer in {escape(str(path.parent))}, in the file {escape(path.name)}{large}."
            )
    if library is not None and library.read_only:
        quiet(f"The library can only be read: {escape(library.read_only)}.")


def draw(theme: Theme) -> None:
    """Draw the view Kept runs."""
    if not keeps_runs():
        switched_off()
        return
    with show_input_errors("Kept runs", "The run library <b>cannot be read</b>.", reset=None):
        library = existing_library()
        if library is None or not library.count(every_run()):
            nothing_yet()
            return
        controls(library)
        now = listed(library)
        compared = compare_runs(now.chosen) if len(now.chosen) > 1 else None
        headline_of(library, now, compared)
        study_menu(library)
        table(now)
        actions(now)
        if compared is not None:
            side_by_side(library, compared, theme)
    where_it_lies(library)
