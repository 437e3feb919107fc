"""Two or more runs side by side: the finding in a sentence, what differs in words, their times and circuits as pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from topox_core.check.schedule_file import read_schedule
from topox_core.errors import InputError, errors_in_file, refuse_if
from topox_core.fabrics.comparison.compare import EQUAL, same_time, ties
from topox_core.figures.iteration.lanes import (
    Lanes,
    bars_of,
    image_keys,
    lanes_of,
    on_one_clock,
    overview_image,
)
from topox_core.figures.palette import Theme, traffic
from topox_core.figures.rails.windows import windows_side_by_side
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import RunLibrary
from topox_core.library.tables import ComparedValue, RunComparison, alike, different
from topox_core.model.execution import Execution, measures
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.window_lengths import lengths_ms
from topox_core.rails.windows import windows_of_execution
from topox_core.runs.identity import code_version
from topox_core.schedule.circuits.standing import crossed
from topox_core.schedule.results.result_file import from_record, settings_of_record
from topox_core.studies.keys import key_words, value_words
from topox_core.studies.point import fabric_run_of
from topox_core.studies.study_run import kept_by
from topox_core.studies.subject import Resolved, resolve, subject_of
from topox_core.text.numbers import (
    and_more,
    apart,
    count,
    enumeration,
    is_or_are,
    money,
    percent,
    plural,
    time,
    uncapitalised,
)
from topox_ui.answers.keeping import refuse_faults
from topox_ui.library.listing import LETTERS, RunsState
from topox_ui.shell.charts import (
    chart,
    chart_title,
    escape,
    frame,
    html_parts,
    legend_line,
    quiet,
    write_html,
)
from topox_ui.state.widgets import switch

DRAWN_KINDS = ("fabric", "schedule")
NUMBERS_ALONE = "has no tasks to draw: only its numbers are kept"
# Of the iteration time: a run computed again that differs by more is another answer.
SAME = 1e-9


@dataclass(frozen=True)
class RunDrawn:
    """What the page draws of a run.

    Attributes
    ----------
    image, lanes
        Its overview.
    windows_ms
        How long the windows between its transfers are.
    device_busy
        Share of the devices' time in which they compute.
    traffic
        The parallelisms of its transfers.
    note
        Where it comes from, if not from its result file as it is.
    """

    makespan_ms: float
    image: Any
    lanes: Lanes
    windows_ms: FloatArray
    device_busy: float
    traffic: tuple[str, ...] = ()
    note: str = ""


@st.cache_resource(
    max_entries=32,
    show_spinner="Drawing the runs",
    hash_funcs={
        RunLibrary: lambda library: str(library.path),
        StoredRun: lambda one: (one.id, one.record.key, one.record.version),
    },
)
def drawn_run(library: RunLibrary, one: StoredRun) -> RunDrawn:
    """Return what is drawn of a run; kept until the server ends.

    Raises
    ------
    InputError
        If it has no times to draw, what it was computed from is not kept, or its result breaks the model.
    """
    execution, note = execution_of(library, one)
    shown = crossed(execution)
    lanes = lanes_of(shown)
    image, _ = overview_image(bars_of(shown, lanes), lanes, shown.makespan_ms)
    try:
        windows = lengths_ms(windows_of_execution(execution))
    except InputError:  # no transfer, or no window between them
        windows = np.zeros(0)
    busy, uses = measures(shown).device_busy, tuple(traffic(shown.graph))
    return RunDrawn(shown.makespan_ms, image, lanes, windows, busy, uses, note)


def execution_of(library: RunLibrary, one: StoredRun) -> tuple[Execution, str]:
    """Return the times and circuits of a run, and in a line where they come from if not from its file.

    Raises
    ------
    InputError
        As :func:`drawn_run`.
    """
    refuse_if((one.record.kind not in DRAWN_KINDS, NUMBERS_ALONE), file=f"run {one.id}")
    record = result_record(library, one)
    return _again(library, one) if record is None else (_from_file(library, one, record), "")


def result_record(library: RunLibrary, one: StoredRun) -> dict[str, Any] | None:
    """Return the result file of a run; None where only its numbers are kept; raises InputError."""
    content = library.result(one.id) if one.has_result else None
    return None if content is None else dict(read_schedule(content, f"run {one.id}"))


def subject_kept(library: RunLibrary, one: StoredRun) -> Resolved:
    """Return what a run is about, its own files from the library; raises InputError."""
    kept = kept_by(library)
    return resolve(subject_of(one.record.settings.get("subject"), kept=kept), kept=kept)


def _from_file(library: RunLibrary, one: StoredRun, record: dict[str, Any]) -> Execution:
    """Return the execution of a result file once the checker has found it sound: a library may come from anywhere."""
    file, resolved = f"run {one.id}", subject_kept(library, one)
    with errors_in_file(file):
        refuse_if((resolved.graph is None or resolved.cluster is None, NUMBERS_ALONE))
        held = (record.get("settings") or {}).get("cluster") or {}
        known = {name: value for name, value in held.items() if name in vars(resolved.cluster)}
        cluster = resolved.cluster.changed(**known)
        refuse_faults(record, resolved.graph, cluster, file)
        result = from_record(record, resolved.graph, cluster, settings_of_record(record))
        refuse_if((result.execution is None, "holds no schedule"))
    return result.execution


def _again(library: RunLibrary, one: StoredRun) -> tuple[Execution, str]:
    """Compute a run again; say so where another version, or another answer, was kept."""
    run = fabric_run_of(one.record.settings, kept_by(library))
    kept_ms = one.record.measures.get("iteration_ms")
    words = []
    if one.record.version != code_version():
        words.append("computed by another version, and computed again by this one to be drawn")
    if kept_ms is None or abs(run.iteration_ms - kept_ms) > SAME * max(1.0, kept_ms):
        was = "nothing" if kept_ms is None else time(kept_ms)
        words.append(f"this version finds {time(run.iteration_ms)} where {was} was kept")
    return run.execution, "; ".join(words)


# What of the record stands beside the settings, in words.
RECORD_WORDS = {
    "kind": "Kind of run",
    "subject": "Subject",
    "graph": "Task graph",
    "cluster": "Cluster",
    "version": "Version of the workbench",
    "status": "Outcome",
    "stopped_by": "Stopped by",
    "message": "Remark",
    "settings.engine": "Engine",
    "settings.tick": "Clock of tasks",
}
# They follow from others, or say nothing to a reader.
_FOLLOWS = ("graph", "cluster", "kind", "status", "stopped_by", "message")
_MONEY = ("dollars", "watts", "iterations_per_dollar", "joules_per_iteration")


def name_words(name: str) -> str:
    """Return what a setting, a measure or a field of a run's record is called."""
    return key_words(name, RECORD_WORDS)


def finding(compared: RunComparison) -> str:
    """Return what the runs say, as HTML: who is faster and by how much, what was set differently, what it costs."""
    runs = compared.runs
    times = [one.record.measures.get("iteration_ms") for one in runs]
    known = [LETTERS[k] for k, ms in enumerate(times) if ms is not None]
    if len(known) < len(runs):
        has = f"only {', '.join(known)} has" if known else "none of them has"
        return f"{plural(len(runs), 'run')} side by side; {has} an iteration time."
    ms = [float(value) for value in times]
    names = [
        LETTERS[k] + (f" ({escape(one.record.name)})" if one.record.name else "")
        for k, one in enumerate(runs)
    ]
    subjects = {(one.record.subject, one.record.graph) for one in runs}
    words = apart(ms)
    fast, *_, slow = sorted(range(len(ms)), key=ms.__getitem__)
    even = ms[slow] <= ms[fast] * (1 + EQUAL)
    if len(runs) > 2:
        if even:
            return f"All {count(len(runs))} runs take the same time, <b>{words[fast]}</b>."
        first = [names[k] for k in ties(dict(enumerate(ms)))]
        return (
            f"{enumeration(first)} {is_or_are(len(first))} the fastest of {count(len(runs))} runs: <b>{words[fast]}</b>. "
            f"{names[slow]} is the slowest: <b>{words[slow]}</b>."
        )
    if len(subjects) > 1:
        titles = [f"{LETTERS[k]}, {escape(one.record.subject)}," for k, one in enumerate(runs)]
        return f"Two different jobs: {titles[0]} takes <b>{words[0]}</b>, {titles[1]} <b>{words[1]}</b>."
    lead = _difference(compared, fast, slow)
    if even:
        same = " and ".join(dict.fromkeys(words))
        return f"{lead or 'Both runs take'} <b>{same}</b>: there is no difference in time.{_price(runs, fast, slow)}"
    less = percent((ms[slow] - ms[fast]) / ms[slow])
    what = lead or f"{names[fast]} takes"
    than = "instead of" if lead else f"{names[slow]}"
    return f"{what} <b>{words[fast]}</b> {than} <b>{words[slow]}</b>, {less} less.{_price(runs, fast, slow)}"


def _difference(compared: RunComparison, fast: int, slow: int) -> str:
    """Return what one setting does, where it is the only one that differs."""
    different = _different_settings(compared)
    if len(different) != 1:
        return ""
    (one,) = different
    if one.name == "version":
        return "By another version of the workbench the job takes"
    ours, theirs = (escape(value_words(one.name, one.values[k])) for k in (fast, slow))
    return (
        f"With {uncapitalised(name_words(one.name))} {ours} instead of {theirs} an iteration takes"
    )


def _different_settings(compared: RunComparison) -> list[ComparedValue]:
    """Return what was set differently, without what follows from it: a subject is said once, by its name."""
    return [
        one
        for one in different(compared.settings)
        if one.name not in _FOLLOWS
        and (not one.name.startswith("subject.") or one.name.startswith("subject.parameters."))
    ]


def _price(runs: Sequence[StoredRun], fast: int, slow: int) -> str:
    """Return what the faster network costs beside the slower one, if anything."""
    ours, theirs = (runs[k].record.measures.get("dollars") for k in (fast, slow))
    if ours is None or theirs is None or same_time(ours, theirs):
        return ""
    words = "more" if ours > theirs else "less"
    return f" The network costs <b>{money(abs(ours - theirs))}</b> {words}."


def equal_words(equal: Mapping[str, Any], most: int = 8) -> str:
    """Return in a line what is alike."""
    names = [uncapitalised(name_words(name)) for name in equal if not name.startswith("subject.")]
    listed = ", ".join(dict.fromkeys(names[:most]))
    return f"Equal: {listed}{and_more(len(names), most)}." if names else ""


Drawn = dict[str, RunDrawn]


def side_by_side(library: RunLibrary, compared: RunComparison, theme: Theme) -> None:
    """Draw everything that the chosen runs say beside one another."""
    drawn, refused = _all_drawn(library, compared.runs)
    main, rail = st.columns([2.1, 1], gap="medium")
    with main:
        _clocks(drawn, refused, theme)
        _windows(drawn, theme)
    with rail:
        _what_differs(compared)


def _all_drawn(library: RunLibrary, runs: Sequence[StoredRun]) -> tuple[Drawn, list[str]]:
    """Return what is drawn of each run by its letter, and why some cannot be."""
    drawn: Drawn = {}
    refused = []
    for letter, one in zip(LETTERS, runs, strict=False):
        try:
            drawn[letter] = drawn_run(library, one)
        except InputError as error:
            refused.append(f"{letter}: {error}")
    return drawn, refused


def _clocks(drawn: Drawn, refused: Sequence[str], theme: Theme) -> None:
    chart_title(
        "Runs on one clock" if len(drawn) > 2 else "Both runs on one clock",
        "devices and ports of every server; dotted: where the shortest run ends",
        beside=True,
    )
    for line in refused:
        quiet(escape(line))
    if not drawn:
        quiet("No run can be drawn. The numbers that differ are beside.")
        return
    longest = max(one.makespan_ms for one in drawn.values())
    shortest = min(one.makespan_ms for one in drawn.values())
    for letter, one in drawn.items():
        chart(
            on_one_clock(letter, one.makespan_ms, one.image, one.lanes, longest, shortest, theme),
            f"clock_{letter}",
            f"Run {letter} over {time(one.makespan_ms)}, on a clock of {time(longest)}: "
            f"{plural(one.lanes.servers, 'server')}, devices compute {percent(one.device_busy)} of the time.",
            lambda: [  # built when opened, here
                {
                    "Run": letter,  # noqa: B023
                    "Iteration (ms)": one.makespan_ms,  # noqa: B023
                    "Devices compute": one.device_busy,  # noqa: B023
                }
            ],
        )
        quiet(one.note and f"{letter}: {escape(one.note)}.")
    used = sorted({use for one in drawn.values() for use in one.traffic})
    legend_line(image_keys((one.image for one in drawn.values()), used), theme)


def _windows(drawn: Drawn, theme: Theme) -> None:
    chart_title(
        "Windows between transfers",
        "share of windows up to a length, logarithmic; a long window hides a circuit change",
        beside=True,
    )
    there = [(letter, one.windows_ms) for letter, one in drawn.items() if len(one.windows_ms)]
    without = [letter for letter, one in drawn.items() if not len(one.windows_ms)]
    if without:
        quiet(f"No window in {', '.join(without)}: the network carries only one kind of traffic.")
    if not there:
        return
    chart(
        windows_side_by_side(there, theme),
        "windows_compared",
        "Lengths of windows: "
        + "; ".join(
            f"{letter}: {plural(len(ms), 'window')}, the middle one {time(float(np.median(ms))).replace('-', '−')}"
            for letter, ms in there
        ),
        lambda: [
            {"Run": letter, "Length (ms)": length}
            for letter, ms in there
            for length in sorted(ms.tolist())
        ],
        "Every window",
    )


_DIFFERS = html_parts(Path(__file__).with_name("differs.html"), name_words, value_words)


def _what_differs(compared: RunComparison) -> None:
    """Draw what differs in blocks: settings, then the result, then cost and power; none without rows."""
    chart_title("What differs", "settings and measures that are not equal")
    outcome = [one for one in different(compared.outcome) if one.name != "message"]
    blocks = {
        "Settings": _different_settings(compared),
        "Result": [one for one in outcome if one.name not in _MONEY],
        "Cost and power": [one for one in outcome if one.name in _MONEY],
    }
    if any(blocks.values()):
        write_html(_DIFFERS.side_by_side(LETTERS[: len(compared.runs)], blocks))
    else:
        quiet("Nothing: these runs are alike in every setting and every measure.")
    quiet(escape(equal_words(alike(compared.settings))))
    if switch(RunsState, "settings", label="Every setting"):
        frame(
            [
                {
                    "Setting": name_words(one.name),
                    **{LETTERS[k]: value_words(one.name, v) for k, v in enumerate(one.values)},
                }
                for one in compared.settings
            ]
        )
