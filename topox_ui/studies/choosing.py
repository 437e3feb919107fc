"""What of a study is looked at (measure, axes of the map, values of the others), and what it says in a sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from msgspec import defstruct

from topox_core.economics.comparison import Swing
from topox_core.fabrics.comparison.compare import EQUAL, ties
from topox_core.fabrics.comparison.words import FULL
from topox_core.fabrics.registry import ENTRIES, SPOKEN
from topox_core.schema.fields import setting
from topox_core.studies.axes import Point
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
    fastest_at,
    wins,
)
from topox_core.studies.study_run import DELAY, PLANNED, PointRow, StudyResult
from topox_core.text.numbers import (
    and_more,
    capitalised,
    count,
    delay_label,
    enumeration,
    first_that_holds,
    percent,
    plural,
    uncapitalised,
)
from topox_ui.shell.charts import escape
from topox_ui.state.session import PageState

VIEWS = {
    "lines": "Lines",
    "parallel": "Parallel coordinates",
    "table": "Table",
    "build": "Change the study",
}
Name = Annotated[str, setting(max_length=80)]
Item = Annotated[str, setting(max_length=160, pattern=r"^[^,|]+(\|[^,|]+){1,2}$")]
# The measures and axes in view, each by its name; empty for the usual one.
NAMES = ("measure", "against", "across", "up", "along", "each", "cloud_x", "cloud_y")
Items = Annotated[tuple[Item, ...], setting(max_length=24)]


class StudiesState(  # type: ignore[misc]
    defstruct("Named", [(name, Name, "") for name in NAMES], bases=(PageState,), frozen=True)
):
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

    of: Annotated[str, setting(max_length=20_000)] = ""
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
        return self.chosen("against", ("", *self.rivals))

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
    for k, axis in enumerate(result.study.axes):
        base = ("",) * any(row.point[k] is None for row in result.rows[:1])
        values[axis.key.name] = (*base, *axis_values(result, axis.key.name))
    few = [key for key, found in values.items() if 1 < len(found) <= MAX_CELLS]
    usual = [key for key in few if key not in (SEED, LABEL, FABRIC_KEY)]
    rest = [key for key in few if key not in usual and key != SEED]
    return View(result, values, (*usual, *rest))


# So many points that tie are named; swings of so much of the widest count as wide as it.
NAMED, ALIKE = 3, 0.95
# Measures that say by themselves what something gains or costs.
COMPARING = ("reduction", "overhead")


def finding(result: StudyResult, held: Mapping[str, Any], of: str = "") -> str:
    """Return what the points say so far, as HTML.

    Parameters
    ----------
    held
        What holds where an axis is at its base, by key.
    of
        What the points are of, as HTML.
    """
    points = f"<b>{count(result.done)} of {plural(len(result.rows), 'point')}</b>{f' of {of}' * bool(of)}"
    if not result.done:
        return f"<b>{plural(len(result.rows), 'point')}</b> to compute; none is computed yet."
    if result.failed == result.done:
        message = next(row.message for row in result.rows if row.failed)
        return f"None of {plural(result.done, 'point')} can be computed: {escape(message.rstrip('.'))}."
    if alone(result) and not all(row.done for row in result.rows[:2]):
        return f"{points} are computed."
    found = _moves_most(result, held) if alone(result) else _wins(result, held) or _at_most(result)
    words = found or _best(result)
    said = capitalised(words) if result.complete else f"{points} are computed: so far {words}"
    return f"{said} {_worth(result)}".strip()


def alone(result: StudyResult) -> bool:
    """Whether a study moves one axis at a time."""
    return result.study.design.kind == "one_at_a_time"


def _wins(result: StudyResult, held: Mapping[str, Any]) -> str:
    """Return who is fastest up to which delay, or how often; empty where the fabrics do not vary, or no setting is complete."""
    values = {one.key.name: one.values for one in result.study.axes}
    if len(values.get(FABRIC_KEY, ())) < 2 or not (firsts := fastest_at(result)):
        return ""
    won = wins(firsts.values())
    full = FULL in values[FABRIC_KEY] or held.get("fabric.fat_tree") == "full"
    end = "." if full else "; a full fat-tree is not compared."
    settings, apart = plural(len(firsts), "setting"), DELAY not in values and DELAY in held
    begin = f"at a delay of {delay_label(held[DELAY])} " if apart else ""
    if not won:
        return f"{begin}no network is faster than all others in any of {settings}{end}"
    name = max(sorted(won), key=won.__getitem__)
    lost = [rest for rest, first in firsts.items() if first != (name,)]
    where = f"in <b>{won[name]} of {settings}</b>"
    if result.complete and 0 < len(lost) <= NAMED:
        where += f", not with {escape('; '.join(point_words(result, PointRow(0, rest)) for rest in lost))}"
    if result.complete and name == PLANNED and len(values.get(DELAY, ())) > 1:
        where = _up_to(result, firsts)
    verb = "are" if ENTRIES[name].plural else "is"
    return f"{begin}{escape(SPOKEN[name])} {verb} fastest {where}{end}"


def _up_to(result: StudyResult, firsts: Mapping[Point, tuple[str, ...]]) -> str:
    """Return up to which delay planned circuits are fastest, for all values of the other axes and for some, as HTML."""
    axes = {axis.key.name: axis for axis in result.study.axes}
    at = [(float(rest[list(axes).index(DELAY)] or 0.0), first) for rest, first in firsts.items()]
    won, lost = ([d for d, first in at if (first == (PLANNED,)) is so] for so in (True, False))
    last = f"<b>{delay_label(max(won))}</b>"
    if not lost:
        return f"at every delay up to {last}"
    others = [
        one for name, one in axes.items() if name not in (DELAY, FABRIC_KEY) and one.values[1:]
    ]
    what = uncapitalised(axis_words(others[0].key)) if len(others) == 1 else "setting"
    if not (every := [delay for delay in won if delay < min(lost)]):
        return f"up to a delay of {last}, but not for every {what}"
    more = f", for some up to {last}" if max(won) > max(every) else ""
    first_to = f"up to a delay of <b>{delay_label(max(every))}</b>"
    return f"{f'for every {what} ' * bool(others)}{first_to}{more}"


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
            if row.point[k] is not None and (value := row.measure(measure)) is not None
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
    """Return what an axis is moved to: twice, 10 ms, 4 ports, with it."""
    own = held.get(key.name)
    if isinstance(value, bool):
        return "with it" if value else "without it"
    if key.numeric and isinstance(own, int | float) and own and value in (own / 2, 2 * own):
        return "half" if value < own else "twice"
    return end_label(key, value)


def _moves_most(result: StudyResult, held: Mapping[str, Any]) -> str:
    """Return which axes move the first measure most and how far, and the next one; without an answer at the base empty."""
    name = result.study.measures[0]
    base = result.rows[0].measure(name)
    if base is None:
        return ""
    keys = {axis_words(axis.key): axis.key for axis in result.study.axes}
    words, usual = uncapitalised(MEASURES[name].words), measure_words(name, base)
    swings = swings_of(result, name, base, partial(_moved_to, held))
    if not swings:
        return f"{words} stays <b>{usual}</b> whatever the {enumeration([*map(uncapitalised, keys)], 'or')}."
    most, *rest = swings
    near = (1 - ALIKE) * most.width(base)
    alike = [
        one
        for one in rest
        if [to for to, _ in one.ends] == [to for to, _ in most.ends]
        and all(abs(a[1] - b[1]) <= near for a, b in zip(one.ends, most.ends, strict=True))
    ]
    # Ports matter, a price of ports matters.
    verb = (
        "matter" if most.name.partition(" per ")[0].partition(" of ")[0][-1] == "s" else "matters"
    )
    much = {one.name: [f"<b>{measure_words(name, v)}</b>" for _, v in one.ends] for one in swings}
    at = [
        f"{span} {to if to[:4] == 'with' else f'at {escape(to)}'}"
        for span, (to, _) in zip(much[most.name], most.ends, strict=True)
    ]
    said = f"{uncapitalised(most.name)} {verb} most: {', '.join(at)}"
    for one in alike:
        own = much[one.name]
        nearly = "as much" if own == much[most.name] else f"nearly as much ({', '.join(own)})"
        said += f"; {uncapitalised(one.name)} {nearly}"
    for one in [one for one in rest if one not in alike][:1]:
        each = [
            f"{escape(_with(keys[one.name], to, k > 0))}{' it is' * (not k)} {much[one.name][k]}"
            for k, (to, _) in enumerate(one.ends)
        ]
        wide = one.width(base) >= ALIKE * most.width(base)
        said += f". {capitalised(', '.join(each))}{', which matters as much' * wide}"
    gpus = held.get("network.gpus")
    of = f", for {named_value(result.study.keys['network.gpus'], gpus)}" if gpus else ""
    return f"{said}. {MEASURES[name].words} now{of}: <b>{usual}</b>."


def _with(key: Key, to: str, again: bool) -> str:
    """Return where an axis is moved to within a sentence, in short where it was said of another end: with twice the port speed."""
    words = uncapitalised(axis_words(key))
    return first_that_holds(
        (to[:4] == "with", to if again else to.replace(" it", f" {words}")),
        (not again and to in ("half", "twice"), f"with {to} the {words}"),
        (again or key.name in COUNTED, f"with {to}"),
        (key.unit == "ms", f"with a {words} of {to}"),
        (True, f"with {words} {to}"),
    )


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
    values = [v for one in result.rows if (v := one.measure(name)) is not None]
    first = row.measure(name)
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
    known = {k: value for k, one in enumerate(result.rows) if (value := one.measure(name))}
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
