"""The times and circuits of a kept run: read from its result file, or computed again from what is kept of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from topox_core.check.schedule_file import read_schedule
from topox_core.errors import InputError
from topox_core.figures.lanes import Lanes, bars_of, lanes_of, overview_image
from topox_core.figures.palette import traffic
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import RunLibrary
from topox_core.model.execution import Execution, measures
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.window_lengths import lengths_ms
from topox_core.rails.windows import windows_of_execution
from topox_core.runs.identity import code_version
from topox_core.schedule.circuits.standing import crossed
from topox_core.schedule.result_file import from_record, settings_of_record
from topox_core.studies.point import fabric_run_of
from topox_core.studies.subject import resolve, subject_of
from topox_core.text.numbers import time
from topox_ui.answers.linked import refuse_faults
from topox_ui.answers.run_library import kept_input

DRAWN_KINDS = ("fabric", "schedule")
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


def drawn_run(library: RunLibrary, one: StoredRun) -> RunDrawn:
    """Return what is drawn of a run; kept until the server ends, since a run does not change.

    Raises
    ------
    InputError
        If it has no times to draw, what it was computed from is not kept, or its result breaks the model.
    """
    return _drawn(f"{library.path}|{one.id}|{one.record.key}|{one.record.version}", library, one)


@st.cache_resource(max_entries=32, show_spinner="Drawing the runs")
def _drawn(key: str, _library: RunLibrary, _one: StoredRun) -> RunDrawn:  # noqa: ARG001
    execution, note = execution_of(_library, _one)
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
    if one.record.kind not in DRAWN_KINDS:
        raise InputError("has no tasks to draw: only its numbers are kept", file=f"run {one.id}")
    record = result_record(library, one)
    return _again(library, one) if record is None else (_from_file(library, one, record), "")


def result_record(library: RunLibrary, one: StoredRun) -> dict[str, Any] | None:
    """Return the result file of a run; None where only its numbers are kept; raises InputError."""
    content = library.result(one.id) if one.has_result else None
    return None if content is None else dict(read_schedule(content, f"run {one.id}"))


def _from_file(library: RunLibrary, one: StoredRun, record: dict[str, Any]) -> Execution:
    """Return the execution of a result file once the checker has found it sound: a library may come from anywhere."""
    file, kept = f"run {one.id}", kept_input(library)
    resolved = resolve(subject_of(one.record.settings.get("subject"), kept=kept), kept=kept)
    if resolved.graph is None or resolved.cluster is None:
        raise InputError("has no tasks to draw: only its numbers are kept", file=file)
    held = (record.get("settings") or {}).get("cluster") or {}
    known = {name: value for name, value in held.items() if name in vars(resolved.cluster)}
    cluster = resolved.cluster.changed(**known)
    refuse_faults(record, resolved.graph, cluster, file)
    try:
        result = from_record(record, resolved.graph, cluster, settings_of_record(record))
    except InputError as error:
        raise error.in_file(file) from None
    if result.execution is None:
        raise InputError("holds no schedule", file=file)
    return result.execution


def _again(library: RunLibrary, one: StoredRun) -> tuple[Execution, str]:
    """Compute a run again; say so where another version, or another answer, was kept."""
    run = fabric_run_of(one.record.settings, kept_input(library))
    kept_ms = one.record.measures.get("iteration_ms")
    words = []
    if one.record.version != code_version():
        words.append("computed by another version, and computed again by this one to be drawn")
    if kept_ms is None or abs(run.iteration_ms - kept_ms) > SAME * max(1.0, kept_ms):
        was = "nothing" if kept_ms is None else time(kept_ms)
        words.append(f"this version finds {time(run.iteration_ms)} where {was} was kept")
    return run.execution, "; ".join(words)
