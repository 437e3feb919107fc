"""What of a study is looked at (measure, axes of the map, values of the others), and what it says in a sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import streamlit as st
from pydantic import BeforeValidator, Field, create_model

from topox_core.economics.comparison import Swing
from topox_core.fabrics.compare import EQUAL, ties
from topox_core.fabrics.registry import FABRICS
from topox_core.studies.axes import Axis
from topox_core.studies.keys import (
    COUNTED,
    LABEL,
    MEASURES,
    SEED,
    Key,
    Value,
    axis_words,
    measure_words,
    named_value,
    of_runs,
    value_label,
)
from topox_core.studies.slices import (
    FABRIC_KEY,
    Slice,
    at_most,
    axis_values,
    best,
    measure_of,
    place,
    wins,
)
from topox_core.studies.study_run import PointRow, StudyResult
from topox_core.text.numbers import (
    and_more,
    capitalised,
    count,
    enumeration,
    percent,
    plural,
    seconds,
    uncapitalised,
)
from topox_ui.shell.charts import escape
from topox_ui.state.session import PageState, split_words
from topox_ui.state.widgets import menu, sidebar_part, slide

VIEWS = {
    "lines": "Lines",
    "parallel": "Parallel coordinates",
    "table": "Table",
    "build": "Change the study",
}
Name = Annotated[str, Field(max_length=80)]
Item = Annotated[str, Field(max_length=160, pattern=r"^[^,|]+(\|[^,|]+){1,2}$")]
# The measures and axes in view, each by its name; empty for the usual one.
NAMES = ("measure", "against", "across", "up", "along", "each", "cloud_x", "cloud_y")
OF_NAMES: Any = dict.fromkeys(NAMES, (Name, ""))
Items = Annotated[tuple[Item, ...], BeforeValidator(split_words), Field(max_length=24)]


class StudiesState(create_model("Named", __base__=PageState, **OF_NAMES)):  # type: ignore[misc, call-overload]
    """The study and how it is looked at.

    Attributes
    ----------
    of
        The study as its file has it, on one line; empty while none is chosen.
    measure, against
        What the map and the lines show, and the fabric it is divided by.
    across, up
        The axes of the map.
    at
        ``key|position``: which value of an axis that the map does not span; its first value else.
    along, each
        The axis of the lines, and that of which each value is a line.
    cloud_x, cloud_y
        The measures of the cloud.
    ranges
        ``number|from|to``: what parallel coordinates leave in.
    """

    prefix = "study."
    resets: ClassVar = {"of": (*NAMES, "at", "ranges")}

    of: Annotated[str, Field(max_length=20_000)] = ""
    at: Items = ()
    ranges: Items = ()
    see: Literal["lines", "parallel", "table", "build"] = "lines"
    others: bool = False

    def position(self, key: str) -> int | None:
        """Return which value of an axis was chosen; None where none was."""
        found = self.items("at").get(key)
        return int(found[0]) if found and found[0].isascii() and found[0].isdigit() else None

    def items(self, field: str) -> Mapping[str, tuple[str, ...]]:
        """Return the items of a field by what they begin with."""
        pairs = (one.split("|") for one in getattr(self, field))
        return {first: tuple(rest) for first, *rest in pairs}

    def with_item(self, field: str, first: str, *rest: object) -> tuple[str, ...]:
        """Return the items of a field with one set anew; without anything behind it is left out."""
        now = {k: v for k, v in self.items(field).items() if k != first}
        if rest:
            now[first] = tuple(map(str, rest))
        return tuple("|".join((k, *v)) for k, v in now.items())


MAX_CELLS = 60  # values of an axis that a map still shows as cells
PAYS = ("iteration_ms", "joules_per_iteration")


@dataclass(frozen=True)
class View:
    """A study with what is chosen of it.

    Attributes
    ----------
    values
        Of every axis, by key, in the order in which figures have them.
    map_axes
        Those that a map or lines may span, the usual ones first.
    """

    result: StudyResult
    values: dict[str, tuple[Value, ...]]
    map_axes: tuple[str, ...]

    def key(self, name: str) -> Key:
        """Return an axis's key."""
        return next(axis.key for axis in self.result.study.axes if axis.key.name == name)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the study asks for, then the others of its kind."""
        asked = self.result.study.measures
        others = of_runs(self.result.study.subject.runs)
        return tuple(dict.fromkeys((*asked, *others)))

    def chosen(self, field: str, options: Sequence[str], default: int = 0) -> str:
        """Return a choice if it is one of the options, else the usual one; empty where there is none."""
        value = str(getattr(StudiesState.now(), field))
        if value in options:
            return value
        return options[min(default, len(options) - 1)] if options else ""

    @property
    def measure(self) -> str:
        """What the map and the lines show."""
        return self.chosen("measure", self.measures)

    @property
    def against(self) -> str:
        """The fabric that it is divided by; empty for the measure itself."""
        now = StudiesState.now().against
        return now if now in self.rivals else ""

    @property
    def rivals(self) -> tuple[str, ...]:
        """The fabrics that a measure may be divided by."""
        fabrics = tuple(str(v) for v in self.values.get(FABRIC_KEY, ()))
        return fabrics if len(fabrics) > 1 and self.measure in PAYS else ()

    @property
    def across(self) -> str:
        """The axis of the map's columns."""
        return self.chosen("across", self.map_axes)

    @property
    def up(self) -> str:
        """The axis of the map's rows."""
        rest = [key for key in self.map_axes if key != self.across]
        return self.chosen("up", rest)

    @property
    def priced(self) -> tuple[str, ...]:
        """The measures of which one way is better."""
        return tuple(name for name in self.measures if MEASURES[name].better)

    @property
    def cloud(self) -> tuple[str, str]:
        """The two measures of the front: first price and time, where there are both."""
        names = self.priced
        x = self.chosen("cloud_x", names, names.index("dollars") if "dollars" in names else 1)
        return x, self.chosen("cloud_y", [name for name in names if name != x])

    def at(self, used: Sequence[str]) -> dict[str, Value]:
        """Return the one value of each axis that is not used; seeds are averaged over."""
        now, found = StudiesState.now(), {}
        for key, values in self.values.items():
            if key in used or key in (SEED, LABEL):
                continue
            position = now.position(key)
            usual = values.index("scheduled") if "scheduled" in values else 0
            found[key] = values[usual if position is None else min(position, len(values) - 1)]
        return found

    def slice(self, used: Sequence[str]) -> Slice:
        """Return what is looked at, with one value for each axis that is not used."""
        return Slice(self.measure, self.at(used), self.against)


def view_of(result: StudyResult) -> View:
    """Return how a study is looked at."""
    values = {}
    for axis in result.study.axes:
        key = axis.key.name
        found = axis_values(result, key)
        keys = [one.key.name for one in result.study.axes]
        if any(place(row, keys, key) == "" for row in result.rows[:1]):
            found = ("", *found)
        values[key] = found
    few = [key for key, found in values.items() if 1 < len(found) <= MAX_CELLS]
    usual = [key for key in few if key not in (SEED, LABEL, FABRIC_KEY)]
    rest = [key for key in few if key not in usual and key != SEED]
    return View(result, values, (*usual, *rest))


def controls(view: View) -> None:
    """Draw the sidebar: the measure, the map's axes, and a value for each other axis."""
    with sidebar_part("Show"):
        names = {name: MEASURES[name].words for name in view.measures}
        menu("Measure", StudiesState, "measure", names, value=view.measure)
        if view.rivals:
            rivals = {"": "as it is"} | {
                name: f"against {FABRICS.get(name, name)}" for name in view.rivals
            }
            menu("Compared", StudiesState, "against", rivals, value=view.against)
        if alone(view.result):
            return  # each axis stands at its base while another one moves
        used: list[str] = []
        if len(view.map_axes) > 1:
            titles = {key: axis_words(view.key(key)) for key in view.map_axes}
            menu("Across", StudiesState, "across", titles, value=view.across)
            rest = {key: words for key, words in titles.items() if key != view.across}
            menu("Up", StudiesState, "up", rest, value=view.up)
            used = [view.across, view.up]
        _front_menus(view)
        for key, value in view.at(used).items():
            if len(view.values[key]) > 1:
                _value_slider(view, key, value)


def _front_menus(view: View) -> None:
    """Draw the choice of the two measures of the front."""
    names = view.priced
    if len(names) < 2:
        return
    with st.expander("Measures of the front", key="front_menus", type="compact"):
        words = {name: MEASURES[name].words for name in names}
        menu("To the right", StudiesState, "cloud_x", words, value=view.cloud[0])
        rest = {name: text for name, text in words.items() if name != view.cloud[0]}
        menu("Upwards", StudiesState, "cloud_y", rest, value=view.cloud[1])


def _value_slider(view: View, key: str, value: Value) -> None:
    """Draw the choice of one value of an axis."""
    words, values = view.key(key), view.values[key]
    positions = {k: value_label(words, one) for k, one in enumerate(values)}

    def take(position: int) -> None:
        StudiesState.choose(at=StudiesState.now().with_item("at", key, position))

    now = values.index(value)
    field = f"at_{key.replace('.', '_')}"
    if words.numeric and len(set(positions.values())) == len(positions):
        slide(
            words.words,
            StudiesState,
            field,
            list(positions),
            value=now,
            words=positions.__getitem__,
            take=take,
        )
    else:
        menu(words.words, StudiesState, field, positions, value=now, take=take)


# So many points that tie are named; swings of so much of the widest count as wide as it.
NAMED, ALIKE = 3, 0.95
# Measures that say by themselves what something gains or costs.
COMPARING = ("reduction", "overhead")


def finding(result: StudyResult, held: Mapping[str, Any]) -> str:
    """Return what the points say so far, as HTML; ``held`` is what holds where an axis is at its base, by key."""
    if not result.done:
        return f"<b>{plural(len(result.rows), 'point')}</b> to compute; none is computed yet."
    if result.failed == result.done:
        message = next(row.message for row in result.rows if row.failed)
        return f"None of {plural(result.done, 'point')} can be computed: {escape(message.rstrip('.'))}."
    begin = "" if result.complete else "So far "
    if alone(result) and not all(row.done for row in result.rows[:2]):
        return f"<b>{count(result.done)} of {plural(len(result.rows), 'point')}</b> are computed."
    found = _moves_most(result, held) if alone(result) else _wins(result) or _at_most(result)
    words = found or _best(result)
    worth = _worth(result)
    sentence = begin + (words if begin else capitalised(words))
    return f"{sentence} {worth}".strip()


def alone(result: StudyResult) -> bool:
    """Whether a study moves one axis at a time."""
    return result.study.design.kind == "one_at_a_time"


def _wins(result: StudyResult) -> str:
    """Return who is fastest how often; empty where the fabrics do not vary, or no setting is complete."""
    if not any(one.key.name == FABRIC_KEY and len(one.values) > 1 for one in result.study.axes):
        return ""
    found = wins(result)
    if not found.settings:
        return ""
    name = max(found.by_fabric, key=lambda one: found.by_fabric[one])
    won = found.by_fabric[name]
    settings = plural(found.settings, "setting")
    if not won:
        return f"no fabric is faster than all others in any of {settings}."
    share = f"{round(100 * won / found.settings)}\u00a0%"
    return f"{escape(uncapitalised(FABRICS.get(name, name)))} are fastest in <b>{share}</b> of {settings}.".replace(
        "fat-tree are", "the fat-tree is"
    )


def swings_of(
    result: StudyResult,
    measure: str,
    base: float,
    label: Callable[[Key, Value], str] | None = None,
) -> list[Swing]:
    """Return how far each axis moves a measure alone, the one that moves it most first; those that do not are left out."""
    swings = []
    for k, axis in enumerate(result.study.axes):
        ends = [
            ((label or end_label)(axis.key, row.point[k]), value)
            for row in result.rows
            if row.point[k] is not None and (value := measure_of(row, measure)) is not None
        ]
        moved = [end for end in ends if abs(end[1] - base) > 1e-9 * max(1.0, abs(base))]
        if moved:
            low, high = (f(moved, key=lambda end: end[1]) for f in (min, max))
            swings.append(Swing(axis_words(axis.key), low, high if high != low else None))

    return sorted(swings, key=lambda one: one.width(base), reverse=True)


def end_label(key: Key, value: Value) -> str:
    """Return a value at the end of a bar: 400G, $260; of what is counted with its noun: 4 ports."""
    return named_value(key, value) if key.name in COUNTED else value_label(key, value)


def _moved_to(held: Mapping[str, Any], key: Key, value: Value) -> str:
    """Return what an axis is moved to: twice the port speed, 4 ports, reconfiguration delay 10 ms."""
    words, own = uncapitalised(axis_words(key)), held.get(key.name)
    if key.numeric and own and value in (own / 2, 2 * own):
        return f"{'half' if value < own else 'twice'} the {words}"
    return end_label(key, value) if key.name in COUNTED else f"{words} {value_label(key, value)}"


def _moves_most(result: StudyResult, held: Mapping[str, Any]) -> str:
    """Return how far the axes that move the first measure most move it, and the next one; empty where none does."""
    name = result.study.measures[0]
    base = measure_of(result.rows[0], name)
    label = partial(_moved_to, held)
    swings = [] if base is None else swings_of(result, name, base, label)
    if base is None or not swings:
        return ""
    near = (1 - ALIKE) * swings[0].width(base)
    first = [
        one
        for one in swings
        if len(one.ends) == len(swings[0].ends)
        and all(abs(a[1] - b[1]) <= near for a, b in zip(one.ends, swings[0].ends, strict=True))
    ]
    sides = [_ends_words(name, ends) for ends in zip(*(one.ends for one in first), strict=True)]
    # Of the same settings the second side says only how much: twice the ports, then half.
    alike = {tuple(to.partition(" ")[2] for to in tos) for tos, _ in sides}
    told = [
        f"{tos[0].partition(' ')[0] if k and len(alike) == 1 else enumeration(tos, 'or')}: {span}"
        for k, (tos, span) in enumerate(sides)
    ]
    for one in [one for one in swings if one not in first][:1]:
        far = max(one.ends, key=lambda end: abs(end[1] - base))
        (to,), span = _ends_words(name, [far])
        much = " (as much)" if one.width(base) >= ALIKE * swings[0].width(base) else ""
        told.append(f"{to}{much}: {span}")
    words = f"{uncapitalised(MEASURES[name].words)} with {'; '.join(told)}"
    return f"{words}; now <b>{measure_words(name, base)}</b>."


def _ends_words(name: str, ends: Sequence[tuple[str, float]]) -> tuple[list[str], str]:
    """Return what axes are moved to at ends of bars, and what a measure becomes there: 85.7 ms to 87.2 ms."""
    low, high = (measure_words(name, f(value for _, value in ends)) for f in (min, max))
    span = low if low == high else f"{low} to {high}"
    return [escape(to) for to, _ in ends], f"<b>{span}</b>"


def _at_most(result: StudyResult) -> str:
    """Return what a measure is at the largest value of the numbers, by the words; empty where there are no two such axes."""
    own = [one for one in COMPARING if one in result.study.measures]
    name = (*own, result.study.measures[0])[0]
    found = at_most(result, name)
    if found is None or not found[1]:
        return ""
    where, means = found
    each = [
        f"<b>{measure_words(name, mean)}</b> ({escape(uncapitalised(words))})"
        for words, mean in sorted(means.items(), key=lambda one: -one[1])
    ]
    return f"{uncapitalised(MEASURES[name].words)}, with {escape(where)}: {enumeration(each)}."


def _best(result: StudyResult) -> str:
    name = next(
        (one for one in result.study.measures if MEASURES[one].better), result.study.measures[0]
    )
    row = best(result, name)
    if row is None:
        return f"{plural(result.done, 'point')} are computed, none of them with a value."
    values = [v for one in result.rows if (v := measure_of(one, name)) is not None]
    first = measure_of(row, name)
    assert first is not None
    last = min(values) if MEASURES[name].better == "most" else max(values)
    words = uncapitalised(MEASURES[name].words)
    if len(values) == 1 or first == last:
        return f"{words}: <b>{measure_words(name, first)}</b>."
    where = escape(point_words(result, row))
    return (
        f"{words} ranges from <b>{measure_words(name, first)}</b> ({where}) "
        f"to <b>{measure_words(name, last)}</b>."
    )


def _worth(result: StudyResult) -> str:
    """Return where a dollar buys most, if the study asks for money."""
    name = "iterations_per_dollar"
    row = best(result, name) if name in result.study.measures else None
    if row is None or row.measures is None:
        return ""
    known = {k: value for k, one in enumerate(result.rows) if (value := measure_of(one, name))}
    first = ties({k: 1.0 / value for k, value in known.items()})
    places = [
        point_words(result, result.rows[k]) for k in sorted(first, key=known.__getitem__)[::-1]
    ]
    where = ", ".join(f"<b>{escape(place)}</b>" for place in places[:NAMED])
    more = and_more(len(places), NAMED)
    alike = f" (within {percent(EQUAL)})" if len(places) > 1 else ""
    time, dollars = row.measures.get("iteration_ms"), row.measures.get("dollars")
    if time is None or dollars is None:
        return ""
    return (
        f"Counted by the dollar, not by time, most iterations{alike} come from {where}{more}: "
        f"{measure_words('iteration_ms', time)} each, for <b>{measure_words('dollars', dollars)}</b> of network."
    )


def point_words(result: StudyResult, row: PointRow) -> str:
    """Return where a row is, in a few words: Planned circuits, 1 ms, 400G; a label alone where it has one."""
    words = []
    for axis, value in zip(result.study.axes, row.point, strict=True):
        if value is None:
            continue
        if axis.key.name == "label":
            return str(value)
        words.append(named_value(axis.key, value))
    return ", ".join(words) or "as it is"


def axis_chip(axis: Axis) -> str:
    """Return an axis as a chip says it: delay 7 values, 0 ms to 100 ms."""
    words, values = uncapitalised(axis_words(axis.key)), axis.values
    if axis.form == "replicates":
        return f"{words} <b>{count(len(values))} drawn</b>"
    labels = [escape(value_label(axis.key, value)) for value in values]
    if len(values) <= 3:
        return f"{words} <b>{', '.join(labels)}</b>"
    if axis.key.numeric:
        numbers = [v for v in values if isinstance(v, int | float)]
        low, high = (value_label(axis.key, f(numbers)) for f in (min, max))
        return f"{words} <b>{count(len(values))} values, {escape(low)} to {escape(high)}</b>"
    return f"{words} <b>{count(len(values))} values</b>"


def time_words(left_s: float) -> str:
    """Return an expected time, which is no better known than to two digits."""
    if left_s < 1:
        return "less than a second"
    return (
        f"about {seconds(float(f'{left_s:.2g}'))}"
        if left_s < 7200
        else f"about {left_s / 3600:.1f} hours"
    )
