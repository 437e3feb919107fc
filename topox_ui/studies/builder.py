"""A study changed by choices: subject, design, measures, budget, axes, fixed keys; every change is checked as a file would be."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, reduce
from operator import getitem
from typing import Any

import streamlit as st

from topox_core.economics.networks import NETWORKS
from topox_core.errors import InputError
from topox_core.rails.presets import PRESETS
from topox_core.studies.axes import KIND_WORDS, Axis
from topox_core.studies.keys import MEASURES, SEED, Key, of_runs, value_words
from topox_core.studies.study import MAX_AXES, Study
from topox_core.studies.subject import MINE, subject_of
from topox_core.workloads.catalogue import WORKLOADS
from topox_core.workloads.samples import SAMPLES
from topox_ui.shell.charts import button, chart_title, escape, quiet
from topox_ui.state.loading import loaded
from topox_ui.state.session import notify
from topox_ui.state.widgets import control, menu
from topox_ui.studies.choosing import StudiesState
from topox_ui.studies.first_screen import open_box
from topox_ui.studies.planning import Asked, loaded_subject, record_of, take

FORMS = {"values": "listed values", "range": "a range", "log": "a logarithmic range"}
# Is given the record of a study and what a control was set to.
Change = Callable[[dict[str, Any], Any], None]


def apply_change(change: Change, value: Any) -> None:
    """Take one change of the study; one that cannot be is said in a line and not taken."""
    record = record_of()
    try:
        change(record, value)
        take(record)
    except InputError as error:
        notify("error", str(error))
    except (ValueError, KeyError, IndexError) as error:
        notify("error", f"This value is refused: {error}")


def field(kind: str, label: str, name: str, value: Any, change: Change, **more: Any) -> None:
    """Draw a control of one part of the study's record."""
    control(
        kind,
        StudiesState,
        f"build_{name}",
        label=label,
        value=value,
        take=partial(apply_change, change),
        **more,
    )


def _put(path: tuple[str | int, ...], record: Any, value: Any) -> None:
    """Set what keys one within another lead to in the study's record."""
    reduce(getitem, path[:-1], record)[path[-1]] = value


def axis_row(place: int, axis: Axis) -> None:
    """Draw one axis: its key, how its values are given, the values, and what takes it away."""
    key = axis.key
    with st.container(border=True, key=f"axis_{place}"):
        name, form, values, away = st.columns([1.3, 1, 2.0, 0.7], vertical_alignment="bottom")
        name.html(
            f'<p class="question"><b>{escape(key.title)}</b><br>{len(axis.values):,} values</p>'
        )
        if key.numeric:
            forms = FORMS | ({"replicates": "drawn seeds"} if key.name == SEED else {})
            menu(
                StudiesState,
                f"build_form_{place}",
                forms,
                label=f"How, axis {place + 1}",
                value=axis.form,
                take=partial(apply_change, partial(_other_form, place, axis)),
                at=form,
                label_visibility="collapsed",
            )
        with values:
            _axis_values(place, axis)
        with away:
            button(
                "Remove",
                f"remove_axis_{place}",
                "close",
                apply_change,
                lambda record, _value: record["axes"].pop(place),
                None,
            )


def _axis_values(place: int, axis: Axis) -> None:
    key = axis.key
    label = f"Values of {key.words}"
    if axis.form == "values" and key.kind in ("choice", "truth"):
        options: list[Any] = list(key.choices) if key.kind == "choice" else [True, False]
        field(
            "multiselect",
            label,
            f"values_{place}",
            tuple(axis.values),
            partial(_put, ("axes", place, "values")),
            options=options,
            words=lambda v: value_words(key.name, v),
        )
    elif axis.form == "values":
        field(
            "text_input",
            f"{label}, separated by commas",
            f"values_{place}",
            ", ".join(map(_written, axis.values)),
            partial(_listed, place, not key.numeric),
            max_chars=2_000,
        )
    elif axis.form == "replicates":
        field(
            "number_input",
            "How many seeds",
            f"replicates_{place}",
            int(axis.given),
            partial(_put, ("axes", place, "replicates")),
            min_value=1,
            max_value=1_000,
        )
    else:
        ends = ("from", "to", "points" if "points" in axis.given or axis.form == "log" else "step")
        for column, end in zip(st.columns(3), ends, strict=True):
            given = axis.given.get(end, 1)
            field(
                "number_input",
                f"{end.capitalize()}, axis {place + 1}",
                f"{end}_{place}",
                int(given) if end == "points" else float(given),
                partial(_put, ("axes", place, axis.form, end)),
                at=column,
                **({"min_value": 1, "max_value": 100_000} if end == "points" else {"format": "%g"}),
            )


def _written(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _listed(place: int, text: bool, record: dict[str, Any], value: Any) -> None:
    words = [word.strip() for word in str(value).split(",") if word.strip()]
    record["axes"][place]["values"] = words if text else [_as_number(word, place) for word in words]


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


def _other_form(place: int, axis: Axis, record: dict[str, Any], form: Any) -> None:
    """Give an axis in another form: with the ends that its values have."""
    numbers = [v for v in axis.values if isinstance(v, int | float)]
    low, high = (min(numbers), max(numbers)) if numbers else (1.0, 100.0)
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


def _add_axis(study: Study, record: dict[str, Any], name: Any) -> None:
    record.setdefault("axes", []).append({"key": name, "values": _usual(study.keys[name])})


def _usual(key: Key) -> list[Any]:
    """Return values to begin with, within what a key may have."""
    if key.kind == "choice":
        return list(key.choices)
    if key.kind == "truth":
        return [False, True]
    if key.kind == "text":
        return ["a"]
    wanted = (0, 1, 2, 5, 10) if _may_be(key, 0) else (1, 2, 4, 8)
    limits = key.field.limits
    least = limits.le if limits.ge is None else limits.ge
    return [value for value in wanted if _may_be(key, value)] or [key.value(least)]


def _may_be(key: Key, value: int) -> bool:
    with suppress(InputError):
        key.value(value)
        return True
    return False


# -- fixed keys --------------------------------------------------------------------------------------


def fixed_keys(study: Study) -> None:
    """Draw what is not as the subject has it, and the choice of another key to fix."""
    if not study.fixed:
        return
    chart_title("Fixed settings", "at every point, in place of the subject's own value")
    for k, (name, value) in enumerate(study.fixed.items()):
        with st.container(horizontal=True, vertical_alignment="bottom", key=f"fixed_{k}"):
            field(
                "text_input",
                study.keys[name].title,
                f"fixed_{k}",
                _written(value) if not isinstance(value, bool) else ("true" if value else "false"),
                partial(_fix, name),
                max_chars=200,
            )
            button(
                "Do not fix",
                f"unfix_{k}",
                "close",
                apply_change,
                lambda record, name: record["fixed"].pop(name),
                name,
            )


def _fix(name: str, record: dict[str, Any], value: Any) -> None:
    try:
        record["fixed"][name] = json.loads(str(value))
    except ValueError:
        record["fixed"][name] = str(value)


SUBJECTS = {
    "loaded": "the loaded job",
    "sample": "a sample",
    "workload": "a generated job",
    "rails": "a photonic rail",
    "tdm": "jobs by time division",
    "network": "a network's cost",
}
# Of a subject that is chosen by name: the key that has it, and its names, the usual one first.
NAMED: dict[str, tuple[str, Mapping[str, object]]] = {
    "sample": ("name", SAMPLES),
    "workload": ("generator", WORKLOADS),
    "rails": ("preset", PRESETS),
    "network": ("network", {MINE: NETWORKS[MINE], **NETWORKS}),
}
DRAWN = ("random", "latin")


def builder(now: Asked) -> None:
    """Draw everything that makes the study."""
    study, record = now.plan.study, record_of()
    quiet(
        "Each change is checked at once. Computed points are kept: a larger study computes only the new points."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        chart_title("Subject")
        field("text_input", "Name", "name", study.name, partial(_put, ("name",)), max_chars=120)
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
        taken = {*study.fixed, *(one.key.name for one in study.axes)}
        free = {k: f"{key.words} ({k})" for k, key in study.keys.items() if k not in taken}
        menu(
            StudiesState,
            "build_new_axis",
            {"": "Add an axis …"} | free,
            label="Add an axis",
            value="",
            take=lambda name: apply_change(partial(_add_axis, study), name) if name else None,
            label_visibility="collapsed",
        )
    fixed_keys(study)
    open_box()


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
        StudiesState,
        "build_subject",
        options,
        label="Subject",
        value=kind,
        take=partial(apply_change, _other_subject),
        help="Axes that the new subject does not have are removed.",
    )
    values = record["subject"]
    if kind in NAMED and not ("name" in values and kind == "rails"):
        key, names = NAMED[kind]
        menu(
            StudiesState,
            "build_which",
            list(names),
            label={"network": "Network", "rails": "Preset"}.get(kind, "Which one"),
            value=values.get(key, next(iter(names))),
            words=lambda name: str(NETWORKS.get(name, name)),
            take=partial(apply_change, partial(_which, kind)),
        )


def _other_subject(record: dict[str, Any], kind: Any) -> None:
    if kind in NAMED:
        _which(kind, record, next(iter(NAMED[kind][1])))
        return
    record["subject"] = loaded_subject() if kind == "loaded" else {"kind": kind}
    _drop_unknown(record)


def _which(kind: str, record: dict[str, Any], value: Any) -> None:
    record["subject"] = {"kind": kind, NAMED[kind][0]: value}
    _drop_unknown(record)


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
        StudiesState,
        "build_design",
        {kind: words for kind, words in KIND_WORDS.items() if kind != "listed" or design.listed},
        label="Design",
        value=design.kind,
        take=partial(apply_change, _other_design),
    )
    if design.kind in DRAWN:
        left, right = st.columns(2)
        for column, label, name, value, least, most in (
            (left, "Points", "points", design.count, 1, 100_000),
            (right, "Seed of the draw", "seed", design.seed, 0, 2**31),
        ):
            more = {"at": column, "min_value": least, "max_value": most}
            field("number_input", label, name, value, partial(_put, ("design", name)), **more)


def _other_design(record: dict[str, Any], kind: Any) -> None:
    record["design"] = {"kind": kind, "points": 100, "seed": 0} if kind in DRAWN else {"kind": kind}


def _budget(study: Study) -> None:
    labels = {
        "seconds": "Seconds of the whole run (0: no limit)",
        "seconds_per_point": "Seconds of one point (0: no limit)",
    }
    for column, (key, label) in zip(st.columns(2), labels.items(), strict=True):
        field(
            "number_input",
            label,
            key,
            float(getattr(study.budget, key) or 0.0),
            partial(_of_budget, key),
            at=column,
            min_value=0.0,
        )


def _of_budget(key: str, record: dict[str, Any], value: Any) -> None:
    budget = {k: v for k, v in record.get("budget", {}).items() if k != key}
    record["budget"] = budget | ({key: float(value)} if value else {})
