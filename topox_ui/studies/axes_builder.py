"""What of a study varies and what is fixed, changed by choices."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.studies.axes import Axis
from topox_core.studies.keys import SEED, Key, value_words
from topox_core.studies.study import Study
from topox_ui.shell.page import button, chart_title, escape
from topox_ui.state.notices import notify
from topox_ui.state.widgets import control, menu
from topox_ui.studies.planning import record_now, take
from topox_ui.studies.state import StudiesState

FORMS = {"values": "listed values", "range": "a range", "log": "a logarithmic range"}
# Is given the record of a study and what a control was set to.
Change = Callable[[dict[str, Any], Any], None]


def apply_change(change: Change, value: Any) -> None:
    """Take one change of the study; one that cannot be is said in a line and not taken."""
    record = record_now()
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
        label,
        StudiesState,
        f"build_{name}",
        value=value,
        take=partial(apply_change, change),
        **more,
    )


def axis_row(place: int, axis: Axis) -> None:
    """Draw one axis: its key, how its values are given, the values, and what takes it away."""
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
            partial(_chosen, place),
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
            partial(_ranged, place, "replicates", ""),
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
                partial(_ranged, place, axis.form, end),
                at=column,
                **({"min_value": 1, "max_value": 100_000} if end == "points" else {"format": "%g"}),
            )


def _written(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _listed(place: int, text: bool, record: dict[str, Any], value: Any) -> None:
    words = [word.strip() for word in str(value).split(",") if word.strip()]
    _chosen(place, record, words if text else [_as_number(word, place) for word in words])


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


def _chosen(place: int, record: dict[str, Any], value: Any) -> None:
    record["axes"][place] = {"key": record["axes"][place]["key"], "values": list(value)}


def _ranged(place: int, form: str, end: str, record: dict[str, Any], value: Any) -> None:
    axis = record["axes"][place]
    axis[form] = {**axis[form], end: value} if end else int(value)


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


def new_axis(study: Study, free: dict[str, str]) -> None:
    """Draw the choice of another key to vary."""
    words = {"": "Add an axis …"} | {name: f"{text} ({name})" for name, text in free.items()}
    menu(
        "Add an axis",
        StudiesState,
        "build_new_axis",
        words,
        value="",
        take=lambda name: apply_change(partial(_add_axis, study), name) if name else None,
        label_visibility="collapsed",
    )


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
    wanted = [0, 1, 2, 5, 10] if not key.above and key.least <= 0 else [1, 2, 4, 8]
    values = [
        v for v in wanted if key.least <= v <= key.most and not (key.above and v <= key.least)
    ]
    return values or [key.value(key.least if not key.above else key.most)]


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
