"""A study changed by choices: its subject, axes, design, measures and budget; every change is checked as a file would be."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from topox_core.economics.networks import NETWORKS
from topox_core.errors import InputError
from topox_core.figures.study_words import value_words
from topox_core.rails.presets import PRESETS
from topox_core.studies.axes import Axis
from topox_core.studies.design import KIND_WORDS
from topox_core.studies.keys import SEED, Key
from topox_core.studies.measures import MEASURES, of_runs
from topox_core.studies.study import MAX_AXES, Study
from topox_core.studies.subject import resolved_of, subject_of
from topox_core.workloads.catalogue import WORKLOADS
from topox_core.workloads.samples import SAMPLES
from topox_ui.answers.run_library import keeps_runs, open_library
from topox_ui.shell.page import button, chart_title, escape, quiet
from topox_ui.state.loading import loaded, scenario
from topox_ui.state.notices import notify
from topox_ui.state.widgets import control, menu, number
from topox_ui.studies.first_screen import open_box, typed_parameters
from topox_ui.studies.planning import Asked, record_now, take
from topox_ui.studies.state import StudiesState

LOADED = "the loaded job"
SUBJECTS = {
    "loaded": LOADED,
    "sample": "a sample",
    "workload": "a generated job",
    "rails": "a photonic rail",
    "tdm": "jobs by time division",
    "network": "a network's cost",
}
FORMS = {"values": "listed values", "range": "a range", "log": "a logarithmic range"}
FIRST_RANGE = {"from": 1, "to": 100, "points": 7}
DRAWN = ("random", "latin")

Change = Callable[[dict[str, Any], Any], None]


def _apply(change: Change, value: Any) -> None:
    """Take one change of the study; one that cannot be is said in a line and not taken."""
    record = copy.deepcopy(record_now())
    try:
        change(record, value)
        take(record)
    except InputError as error:
        notify("error", str(error))
    except (ValueError, KeyError, IndexError) as error:
        notify("error", f"This cannot be taken: {error}")


def _field(kind: str, label: str, name: str, value: Any, change: Change, **more: Any) -> None:
    """Draw a control of one part of the study's record."""
    control(
        kind,
        label,
        StudiesState,
        f"build_{name}",
        value=value,
        take=partial(_apply, change),
        **more,
    )


def builder(now: Asked) -> None:
    """Draw everything that makes the study."""
    study, record = now.plan.study, record_now()
    quiet(
        "Each change is checked at once. Points that are there are kept: a study that is widened computes only what is new."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        chart_title("What it is about")
        _field("text_input", "Name", "name", study.name, _set("name"), max_chars=120)
        _subject(study, record)
        chart_title("Which points")
        _design(study)
    with right:
        chart_title("What is shown", "every measure of a point is kept in any case")
        known = {name: MEASURES[name].words for name in of_runs(study.subject.runs)}
        _field(
            "multiselect",
            "Measures",
            "measures",
            tuple(study.measures),
            _set_measures,
            options=known,
            words=known.__getitem__,
        )
        chart_title("When it stops by itself")
        _budget(study)
    chart_title("What varies", "axes, in the order of the table; the last one changes fastest")
    for place, axis in enumerate(study.axes):
        _axis(place, axis)
    if len(study.axes) < MAX_AXES:
        free = {
            name: key.words
            for name, key in study.keys.items()
            if name not in {one.key.name for one in study.axes} and name not in study.fixed
        }
        _new_axis(study, free)
    _fixed(study)
    open_box()


def _set(key: str) -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        record[key] = value

    return change


def _set_measures(record: dict[str, Any], value: Any) -> None:
    record["measures"] = list(value) or None
    if not value:
        del record["measures"]


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
        take=partial(_apply, _other_subject),
        help="Axes that the new subject does not know are left out.",
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
            take=partial(_apply, _which(key)),
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


def _which(key: str) -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        kind = record["subject"]["kind"]
        record["subject"] = {"kind": kind, key: value}
        _drop_unknown(record)

    return change


def loaded_subject() -> dict[str, Any]:
    """Return the loaded job as a subject; files of the reader's own go into the library, where points find them.

    Raises
    ------
    InputError
        If nothing is loaded, or this server keeps no files.
    """
    opened, now = loaded(), scenario()
    if opened is None:
        raise InputError("no job is loaded", file="study", field="subject")
    if now.source == "sample":
        return {"kind": "sample", "name": now.name}
    if now.source == "workload":
        return {
            "kind": "workload",
            "generator": now.name,
            "parameters": dict(typed_parameters(now.name, now.parameters)),
        }
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
    measures = [name for name in record.get("measures", []) if name in known]
    record.pop("measures", None)
    if measures:
        record["measures"] = measures


# -- design and budget -------------------------------------------------------------------------------


def _design(study: Study) -> None:
    design = study.design
    menu(
        "Design",
        StudiesState,
        "build_design",
        {kind: words for kind, words in KIND_WORDS.items() if kind != "listed" or design.listed},
        value=design.kind,
        take=partial(_apply, _other_design),
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
            take=partial(_apply, _of_design("points")),
            at=left,
        )
        number(
            "Seed of the draw",
            StudiesState,
            "build_seed",
            0,
            2**31,
            value=design.seed,
            take=partial(_apply, _of_design("seed")),
            at=right,
        )


def _other_design(record: dict[str, Any], kind: Any) -> None:
    record["design"] = {"kind": kind, "points": 100, "seed": 0} if kind in DRAWN else {"kind": kind}


def _of_design(key: str) -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        record["design"][key] = int(value)

    return change


def _budget(study: Study) -> None:
    left, right = st.columns(2)
    for column, key, label, most in (
        (left, "seconds", "Seconds of the whole run (0: no limit)", 86_400.0),
        (right, "seconds_per_point", "Seconds of one point (0: no limit)", 86_400.0),
    ):
        number(
            label,
            StudiesState,
            f"build_{key}",
            0.0,
            most,
            value=float(getattr(study.budget, key) or 0.0),
            take=partial(_apply, _of_budget(key)),
            at=column,
        )


def _of_budget(key: str) -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        budget = {k: v for k, v in record.get("budget", {}).items() if k != key}
        record["budget"] = budget | ({key: float(value)} if value else {})

    return change


# -- axes --------------------------------------------------------------------------------------------


def _axis(place: int, axis: Axis) -> None:
    key = axis.key
    with st.container(border=True, key=f"axis_{place}"):
        name, form, values, away = st.columns([1.3, 1, 2.2, 0.5], vertical_alignment="bottom")
        with name:
            st.html(
                f'<p class="question"><b>{escape(key.title)}</b><br>{len(axis.values):,} values</p>'
            )
        if key.numeric:
            forms = FORMS | ({"replicates": "drawn seeds"} if key.name == SEED else {})
            menu(
                f"How, axis {place + 1}",
                StudiesState,
                f"build_form_{place}",
                forms,
                value=axis.form,
                take=partial(_apply, _other_form(place, axis)),
                at=form,
                label_visibility="collapsed",
            )
        with values:
            _axis_values(place, axis)
        with away:
            button("Remove", f"remove_axis_{place}", "close", _apply, _without_axis(place), None)


def _axis_values(place: int, axis: Axis) -> None:
    key = axis.key
    label = f"Values of {key.words}"
    if axis.form == "values" and key.numeric:
        _field(
            "text_input",
            f"{label}, separated by commas",
            f"values_{place}",
            ", ".join(_written(v) for v in axis.values),
            _listed(place),
            max_chars=2_000,
        )
    elif axis.form == "values" and key.kind in ("choice", "truth"):
        options: list[Any] = list(key.choices) if key.kind == "choice" else [True, False]
        _field(
            "multiselect",
            label,
            f"values_{place}",
            tuple(axis.values),
            _chosen(place),
            options=options,
            words=lambda v: value_words(key.name, v),
        )
    elif axis.form == "values":
        _field(
            "text_input",
            f"{label}, separated by commas",
            f"values_{place}",
            ", ".join(map(str, axis.values)),
            _listed(place, text=True),
            max_chars=2_000,
        )
    elif axis.form == "replicates":
        _field(
            "number_input",
            "How many seeds",
            f"replicates_{place}",
            int(axis.given),
            _ranged(place, "replicates"),
            min_value=1,
            max_value=1_000,
        )
    else:
        ends = ("from", "to", "points" if "points" in axis.given or axis.form == "log" else "step")
        for column, end in zip(st.columns(3), ends, strict=True):
            given = axis.given.get(end, 1)
            _field(
                "number_input",
                f"{end.capitalize()}, axis {place + 1}",
                f"{end}_{place}",
                int(given) if end == "points" else float(given),
                _ranged(place, axis.form, end),
                at=column,
                **({"min_value": 1, "max_value": 100_000} if end == "points" else {"format": "%g"}),
            )


def _written(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _listed(place: int, text: bool = False) -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        words = [word.strip() for word in str(value).split(",") if word.strip()]
        values = words if text else [_as_number(word, place) for word in words]
        record["axes"][place] = {"key": record["axes"][place]["key"], "values": values}

    return change


def _as_number(word: str, place: int) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        if word.isalpha():  # a word that a key takes instead of a number
            return word
        raise InputError(
            f"must be numbers separated by commas (got {word[:40]!r})",
            file="study",
            item=f"axis {place + 1}",
            field="values",
        ) from None


def _chosen(place: int) -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        record["axes"][place] = {"key": record["axes"][place]["key"], "values": list(value)}

    return change


def _ranged(place: int, form: str, end: str = "") -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        axis = record["axes"][place]
        if end:
            axis[form] = {**axis[form], end: value}
        else:
            axis[form] = int(value)

    return change


def _other_form(place: int, axis: Axis) -> Change:
    """Return the change of how an axis is given: with the ends that its values have."""
    numbers = [v for v in axis.values if isinstance(v, int | float)]
    low, high = (min(numbers), max(numbers)) if numbers else (1.0, 100.0)

    def change(record: dict[str, Any], form: Any) -> None:
        new: dict[str, Any] = {"key": record["axes"][place]["key"]}
        if form == "replicates":
            new[form] = max(2, min(100, len(axis.values)))
        elif form == "values":
            new[form] = list(axis.values[:100])
        else:
            least = min((v for v in numbers if v > 0), default=0.01)
            start = least if form == "log" else low
            new[form] = {
                "from": start,
                "to": high if high > start else start * 10 or 1.0,
                "points": max(2, min(100, len(axis.values))),
            }
        record["axes"][place] = new

    return change


def _without_axis(place: int) -> Change:
    def change(record: dict[str, Any], _value: Any) -> None:
        del record["axes"][place]

    return change


def _new_axis(study: Study, free: dict[str, str]) -> None:
    words = {"": "Add an axis …"} | {name: f"{text} ({name})" for name, text in free.items()}
    menu(
        "Add an axis",
        StudiesState,
        "build_new_axis",
        words,
        value="",
        take=lambda name: _apply(_with_axis(study, str(name)), None) if name else None,
        label_visibility="collapsed",
    )


def _with_axis(study: Study, name: str) -> Change:
    def change(record: dict[str, Any], _value: Any) -> None:
        record.setdefault("axes", []).append({"key": name, "values": _usual(study.keys[name])})

    return change


def _usual(key: Key) -> list[Any]:
    """Return values to begin with, within what a key may have."""
    if key.kind == "choice":
        return list(key.choices)
    if key.kind == "truth":
        return [False, True]
    if key.kind == "text":
        return ["a"]
    wanted = [0, 1, 2, 5, 10] if not key.above and key.least <= 0 else [1, 2, 4, 8]
    values = [
        v for v in wanted if key.least <= v <= key.most and not (key.above and v <= key.least)
    ]
    return values or [key.value(key.least if not key.above else key.most)]


# -- fixed keys --------------------------------------------------------------------------------------


def _fixed(study: Study) -> None:
    if not study.fixed:
        return
    chart_title("What is fixed", "at every point, instead of what the subject has")
    for k, (name, value) in enumerate(study.fixed.items()):
        with st.container(horizontal=True, vertical_alignment="bottom", key=f"fixed_{k}"):
            _field(
                "text_input",
                study.keys[name].title,
                f"fixed_{k}",
                _written(value) if not isinstance(value, bool) else ("true" if value else "false"),
                _fix(name),
                max_chars=200,
            )
            button("Let it be", f"unfix_{k}", "close", _apply, _unfix(name), None)


def _fix(name: str) -> Change:
    def change(record: dict[str, Any], value: Any) -> None:
        try:
            record["fixed"][name] = json.loads(str(value))
        except ValueError:
            record["fixed"][name] = str(value)

    return change


def _unfix(name: str) -> Change:
    def change(record: dict[str, Any], _value: Any) -> None:
        del record["fixed"][name]

    return change
