"""The list of kept runs: which of them are meant, a page of the list, and which are chosen."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.registry import FABRICS
from topox_core.library.rows import CARD, FAILED, RUNS_ONLY, RunFilter, RunRecord, StoredRun
from topox_core.library.run_library import RunLibrary
from topox_core.runs.identity import code_version
from topox_core.schema.fields import setting
from topox_core.text.numbers import STOPPED_BY, delay_label, percent, seconds, time, when
from topox_ui.answers.keeping import EVERY_SOLVE
from topox_ui.shell.charts import button, editor
from topox_ui.state.address import keep_address
from topox_ui.state.session import Index, PageState
from topox_ui.state.widgets import bound, control, menu, sidebar_part, switch

MAX_COMPARED = 4
KINDS = {
    "": "all kinds",
    "fabric": "a job on one fabric",
    "schedule": "a solve",
    "rail": "a rail",
    "round": "jobs by time division",
    "bill": "a network's cost",
    CARD: "an answer of a published card",
}
Words = Annotated[str, setting(max_length=200)]
# Where a page of the list begins: after the run that started then and has that number.
Place = Annotated[str, setting(pattern=r"^$|^\d{1,12}(\.\d{1,9})?:\d{1,12}$")]
FROM_FIRST = ("before",)


class RunsState(PageState):
    """Which runs are listed, and which of them are chosen (``chosen``, in the order of their letters)."""

    prefix = "runs."
    resets: ClassVar = dict.fromkeys(
        ("subject", "status", "kind", "mine", "study", "text"), FROM_FIRST
    )

    subject: Words = ""
    status: Annotated[str, setting(max_length=40)] = ""
    kind: Literal["", "fabric", "schedule", "rail", "round", "bill", "card"] = ""
    mine: bool = False
    study: Index | None = None
    text: Words = ""
    before: Place = ""
    chosen: Annotated[tuple[Index, ...], setting(max_length=MAX_COMPARED)] = ()
    settings: bool = False

    @property
    def place(self) -> tuple[float, int] | None:
        """Return where the page of the list begins; None at the newest run."""
        if not self.before:
            return None
        started, _, run = self.before.partition(":")
        return float(started), int(run)


PAGE = 50  # runs of one page of the list
LETTERS = "ABCDEFGHIJ"
STATUS_WORDS = {
    "optimal": "proved",
    "feasible": "not proved",
    "simulated": "simulated",
    "counted": "counted",
    "compared": "compared",
    FAILED: "failed",
}


@dataclass(frozen=True)
class Listed:
    """A page of the list: its runs, the chosen ones (which may lie elsewhere), and how many there are.

    Attributes
    ----------
    runs
        Of this page, newest first.
    chosen
        In the order of their letters.
    total, matching
        Of the whole library, and of those that are meant.
    """

    runs: tuple[StoredRun, ...]
    chosen: tuple[StoredRun, ...]
    total: int
    matching: int

    @property
    def letters(self) -> dict[int, str]:
        """The letters of the chosen runs."""
        return dict(zip((one.id for one in self.chosen), LETTERS, strict=False))


def asked() -> RunFilter:
    """Return which runs the page lists."""
    now = RunsState.now()
    return replace(
        _listable(points=now.study is not None),
        subject=now.subject,
        status=now.status,
        kind=now.kind,
        version=code_version() if now.mine else "",
        study=now.study,
        text=now.text,
    )


def every_run() -> RunFilter:
    """Return what the page can show with its choices: points of studies where a study, or one of its points, is chosen."""
    now = RunsState.now()
    return _listable(points=bool(now.chosen) or now.study is not None)


def _listable(points: bool) -> RunFilter:
    """Return what the page lists: answers of cards are left out unless they are asked for."""
    if RunsState.now().kind == CARD:
        return RunFilter(kind=CARD)
    return replace(RUNS_ONLY, kept_only=not points)


def listed(library: RunLibrary) -> Listed:
    """Return the page of the list that is asked for; a chosen run that is gone is no longer chosen.

    Raises
    ------
    InputError
        If the library cannot be read.
    """
    now, which = RunsState.now(), asked()
    runs = tuple(library.runs(which, now.place, PAGE))
    chosen: list[StoredRun] = []
    for run in now.chosen:
        with suppress(InputError):
            chosen.append(library.get(run))
    if len(chosen) < len(now.chosen):
        RunsState.choose(chosen=tuple(one.id for one in chosen) or None)
        keep_address()
    return Listed(runs, tuple(chosen), library.count(_listable(points=False)), library.count(which))


def controls(library: RunLibrary) -> None:
    """Draw the sidebar: which runs are listed, and whether every solve is kept."""
    with sidebar_part("Show only"):
        subjects = {name: name or "no name" for name in library.subjects(every_run())[:200]}
        menu(RunsState, "subject", {"": "all subjects"} | subjects, label="Subject")
        statuses = {word: STATUS_WORDS.get(word, word) for word in library.statuses()}
        menu(RunsState, "status", {"": "any outcome"} | statuses, label="Outcome")
        menu(RunsState, "kind", KINDS, label="Kind")
        control("text_input", RunsState, "text", label="Name or subject holds", max_chars=200)
        switch(
            RunsState,
            "mine",
            label="Made by this version",
            help="Another version of the workbench may give another result for the same setting.",
        )
        st.divider()
        keep_switch()


def study_menu(library: RunLibrary) -> None:
    """Offer the points of a study in place of the kept runs; each study with the time at which it was begun."""
    studies = {
        one.id: f"{one.name or f'study {one.id}'}, begun {when(one.created)}"
        for one in library.studies()[:100]
    }
    now = RunsState.now().study
    if studies or now is not None:
        options: dict[Any, str] = {None: "kept runs, no points of studies"}
        if now is not None:
            options[now] = f"study {now}"
        menu(RunsState, "study", options | studies, label="Kept runs, or the points of a study")


def keep_switch() -> None:
    """Offer to keep every solve of this session."""
    bound(
        "toggle",
        "Keep every solve",
        "w__keep_every_solve",
        bool(EVERY_SOLVE.get()),
        EVERY_SOLVE.set,
        help="Keeps every schedule that the page Schedule shows in this tab. A run can also be kept there "
        "one by one.",
    )


def table(now: Listed) -> None:
    """Draw the page of the list, with a box to tick before each run, and what leads to the pages before and behind."""
    others = any(one.record.version != code_version() for one in now.runs)
    rows = [_row(one, now.letters.get(one.id, ""), others) for one in now.runs]
    if all(row["Name"] == row["Subject"] for row in rows):
        rows = [{name: row[name] for name in row if name != "Subject"} for row in rows]
    editor(
        rows,
        "runs_table",
        partial(_ticked, [one.id for one in now.runs]),
        height="content" if len(rows) <= 8 else 330,
        disabled=[name for name in rows[0] if name != "Choose"] if rows else True,
        column_config={
            "Choose": st.column_config.CheckboxColumn(width=82),
            " ": st.column_config.TextColumn(width=30),
            "Stopped by": st.column_config.TextColumn(width=128),
        },
        alt=f"{len(rows)} kept runs, newest first",
    )
    _pages(now)
    # By name, which does by keyboard what the boxes do, and reaches other pages of the list.
    known = {one.id: run_words(one) for one in (*now.runs, *now.chosen)}
    control(
        "multiselect",
        RunsState,
        "chosen",
        label=f"Runs side by side (at most {MAX_COMPARED})",
        options=known,
        max_selections=MAX_COMPARED,
        take=lambda runs: RunsState.choose(chosen=tuple(runs) or None),
        placeholder="Tick runs above, or choose them here",
    )


def _ticked(ids: Sequence[int], row: int, cells: Mapping[str, Any]) -> None:
    """Take what was ticked or unticked."""
    chosen = [run for run in RunsState.now().chosen if run != ids[row]]
    if cells.get("Choose"):
        chosen.append(ids[row])
    # The oldest choice gives way where there would be too many.
    RunsState.choose(chosen=tuple(chosen[-MAX_COMPARED:]) or None)


def _pages(now: Listed) -> None:
    """Draw the ways to older and to the newest runs, where there are any."""
    older, newer = len(now.runs) == PAGE, bool(RunsState.now().before)
    if not older and not newer:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if newer:
            button(
                "Newest runs", "runs_newest", "first_page", partial(RunsState.choose, before=None)
            )
        if older:
            started, run = now.runs[-1].place
            place = f"{started:.9f}".rstrip("0").rstrip(".") + f":{run}"
            button(
                "Older runs", "runs_older", "chevron_right", partial(RunsState.choose, before=place)
            )


def run_words(one: StoredRun) -> str:
    """Return a run in a few words that no other run has: number, name, fabric, delay, time, when."""
    shown = _row(one, "", several_versions=False)
    said = (
        shown["Name"],
        *(shown[k] for k in ("Fabric", "Delay", "Iteration", "When")),
    )
    return f"{one.id}: {', '.join(str(words) for words in said if words)}"


def row_of_example(record: RunRecord) -> dict[str, object]:
    """Return a run that is not in the library as a row of the list."""
    shown = _row(StoredRun(0, record, has_result=True), "", several_versions=False)
    left_out = ["Choose", " ", "Run", *(["Subject"] if shown["Name"] == shown["Subject"] else [])]
    return {name: value for name, value in shown.items() if name not in left_out}


def _row(one: StoredRun, letter: str, several_versions: bool) -> dict[str, object]:
    record, settings = one.record, one.record.settings
    iteration, gap = record.measures.get("iteration_ms"), record.measures.get("gap")
    delay = settings.get("cluster.reconfiguration_ms", settings.get("rails.reconfiguration_ms"))
    speed, ports = settings.get("cluster.port_gbps"), settings.get("cluster.ports_per_server")
    version = "this one" if record.version == code_version() else "another one"
    return {
        "Choose": bool(letter),
        " ": letter,
        "Run": one.id,
        "Name": record.name or record.subject,
        "When": when(record.started),
        "Fabric": FABRICS.get(str(settings.get("fabric", "")), ""),
        "Delay": delay_label(delay) if isinstance(delay, int | float) else "",
        "Port speed": f"{speed:g}G" if isinstance(speed, int | float) else "",
        "Ports": ports if isinstance(ports, int) else None,
        "Iteration": time(iteration) if iteration is not None else "",
        "Gap": percent(gap) if gap is not None else "",
        "Outcome": STATUS_WORDS.get(record.status, record.status),
        "Stopped by": stopped_words(record),
        "Subject": record.subject,
        **({"Version": version} if several_versions else {}),
    }


def stopped_words(record: RunRecord) -> str:
    """Return what ended a run and when, in a few words."""
    words = STOPPED_BY.get(record.stopped_by, record.stopped_by.replace("_", " "))
    return f"{words}, {seconds(record.wall_s)}" if words else ""
