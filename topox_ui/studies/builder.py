"""A study changed by choices: its subject, design, measures and budget; every change is checked as a file would be."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from topox_core.economics.networks import NETWORKS
from topox_core.errors import InputError
from topox_core.rails.presets import PRESETS
from topox_core.studies.axes import KIND_WORDS
from topox_core.studies.keys import MEASURES, of_runs
from topox_core.studies.study import MAX_AXES, Study
from topox_core.studies.subject import resolved_of, subject_of
from topox_core.workloads.catalogue import WORKLOADS
from topox_core.workloads.samples import SAMPLES
from topox_ui.answers.keeping import named_subject
from topox_ui.answers.run_library import keeps_runs, open_library
from topox_ui.shell.page import chart_title, quiet
from topox_ui.state.loading import loaded
from topox_ui.state.widgets import menu, number
from topox_ui.studies.axes_builder import apply_change, axis_row, field, fixed_keys, new_axis
from topox_ui.studies.first_screen import open_box
from topox_ui.studies.planning import Asked, record_now
from topox_ui.studies.state import StudiesState

SUBJECTS = {
    "loaded": "the loaded job",
    "sample": "a sample",
    "workload": "a generated job",
    "rails": "a photonic rail",
    "tdm": "jobs by time division",
    "network": "a network's cost",
}
DRAWN = ("random", "latin")


def builder(now: Asked) -> None:
    """Draw everything that makes the study."""
    study, record = now.plan.study, record_now()
    quiet(
        "Each change is checked at once. Computed points are kept: a larger study computes only the new points."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        chart_title("Subject")
        field("text_input", "Name", "name", study.name, _rename, max_chars=120)
        _subject(study, record)
        chart_title("Points")
        _design(study)
    with right:
        chart_title("Measures shown", "all measures of a point are kept")
        known = {name: MEASURES[name].words for name in of_runs(study.subject.runs)}
        field(
            "multiselect",
            "Measures",
            "measures",
            tuple(study.measures),
            _set_measures,
            options=known,
        )
        chart_title("Time limits")
        _budget(study)
    chart_title("Axes", "what varies, in the order of the table; the last axis changes fastest")
    for place, axis in enumerate(study.axes):
        axis_row(place, axis)
    if len(study.axes) < MAX_AXES:
        free = {
            name: key.words
            for name, key in study.keys.items()
            if name not in {one.key.name for one in study.axes} and name not in study.fixed
        }
        new_axis(study, free)
    fixed_keys(study)
    open_box()


def _rename(record: dict[str, Any], name: Any) -> None:
    record["name"] = name


def _set_measures(record: dict[str, Any], measures: Any) -> None:
    """Set the measures; without any a study has the usual ones."""
    record.pop("measures", None)
    if measures:
        record["measures"] = list(measures)


# -- the subject -------------------------------------------------------------------------------------


def _subject(study: Study, record: dict[str, Any]) -> None:
    kind = study.subject.kind if study.subject.kind in SUBJECTS else "loaded"
    options = {key: words for key, words in SUBJECTS.items() if key != "loaded" or loaded()}
    if kind not in options:
        options = {kind: SUBJECTS[kind]} | options
    menu(
        "Subject",
        StudiesState,
        "build_subject",
        options,
        value=kind,
        take=partial(apply_change, _other_subject),
        help="Axes that the new subject does not have are removed.",
    )
    values = record["subject"]
    chosen = {
        "sample": ("name", list(SAMPLES)),
        "workload": ("generator", list(WORKLOADS)),
        "rails": ("preset", list(PRESETS)),
        "network": ("network", list(NETWORKS)),
    }.get(kind)
    if chosen is not None:
        key, names = chosen
        menu(
            {"network": "Network", "rails": "Preset"}.get(kind, "Which one"),
            StudiesState,
            "build_which",
            names,
            value=values.get(key, names[0]),
            words=lambda name: str(NETWORKS.get(name, name)),
            take=partial(apply_change, partial(_which, key)),
        )


def _other_subject(record: dict[str, Any], kind: Any) -> None:
    new: dict[str, dict[str, Any]] = {
        "sample": {"kind": "sample", "name": next(iter(SAMPLES))},
        "workload": {"kind": "workload", "generator": next(iter(WORKLOADS))},
        "rails": {"kind": "rails", "preset": next(iter(PRESETS))},
        "tdm": {"kind": "tdm"},
        "network": {"kind": "network"},
    }
    record["subject"] = loaded_subject() if kind == "loaded" else new[str(kind)]
    _drop_unknown(record)


def _which(key: str, record: dict[str, Any], value: Any) -> None:
    record["subject"] = {"kind": record["subject"]["kind"], key: value}
    _drop_unknown(record)


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
    library = open_library()
    for one in resolved.files:
        library.keep_input(one.digest, one.kind, one.name, one.content)
    return resolved.subject.as_record()


def _drop_unknown(record: dict[str, Any]) -> None:
    """Leave out what a new subject does not know."""
    subject = subject_of(record["subject"])
    keys = subject.keys
    record["axes"] = [axis for axis in record.get("axes", []) if axis.get("key") in keys]
    record["fixed"] = {k: v for k, v in record.get("fixed", {}).items() if k in keys}
    known = of_runs(subject.runs)
    _set_measures(record, [name for name in record.get("measures", []) if name in known])


# -- design and budget -------------------------------------------------------------------------------


def _design(study: Study) -> None:
    design = study.design
    menu(
        "Design",
        StudiesState,
        "build_design",
        {kind: words for kind, words in KIND_WORDS.items() if kind != "listed" or design.listed},
        value=design.kind,
        take=partial(apply_change, _other_design),
    )
    if design.kind in DRAWN:
        left, right = st.columns(2)
        number(
            "Points",
            StudiesState,
            "build_points",
            1,
            100_000,
            value=design.count,
            take=partial(apply_change, partial(_of_design, "points")),
            at=left,
        )
        number(
            "Seed of the draw",
            StudiesState,
            "build_seed",
            0,
            2**31,
            value=design.seed,
            take=partial(apply_change, partial(_of_design, "seed")),
            at=right,
        )


def _other_design(record: dict[str, Any], kind: Any) -> None:
    record["design"] = {"kind": kind, "points": 100, "seed": 0} if kind in DRAWN else {"kind": kind}


def _of_design(key: str, record: dict[str, Any], value: Any) -> None:
    record["design"][key] = int(value)


def _budget(study: Study) -> None:
    labels = {
        "seconds": "Seconds of the whole run (0: no limit)",
        "seconds_per_point": "Seconds of one point (0: no limit)",
    }
    for column, (key, label) in zip(st.columns(2), labels.items(), strict=True):
        number(
            label,
            StudiesState,
            f"build_{key}",
            0.0,
            86_400.0,
            value=float(getattr(study.budget, key) or 0.0),
            take=partial(apply_change, partial(_of_budget, key)),
            at=column,
        )


def _of_budget(key: str, record: dict[str, Any], value: Any) -> None:
    budget = {k: v for k, v in record.get("budget", {}).items() if k != key}
    record["budget"] = budget | ({key: float(value)} if value else {})
