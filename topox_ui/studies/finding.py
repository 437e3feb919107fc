"""What a study says in a sentence, as far as it is known."""

from __future__ import annotations

from topox_core.fabrics.compare import EQUAL, ties
from topox_core.fabrics.registry import FABRICS
from topox_core.studies.axes import Axis
from topox_core.studies.keys import (
    MEASURES,
    axis_words,
    lower,
    measure_words,
    named_value,
    value_label,
)
from topox_core.studies.slices import FABRIC_KEY, best, measure_of, wins
from topox_core.studies.study_run import PointRow, StudyResult
from topox_core.text.numbers import count, percent, plural, seconds
from topox_core.text.sentences import and_more, capitalised
from topox_ui.shell.page import escape

# So many points that tie are named.
NAMED = 3


def finding(result: StudyResult) -> str:
    """Return what the points say so far, as HTML."""
    if not result.done:
        return f"<b>{plural(len(result.rows), 'point')}</b> to compute; none is computed yet."
    if result.failed == result.done:
        message = next(row.message for row in result.rows if row.failed)
        return f"None of {plural(result.done, 'point')} can be computed: {escape(message.rstrip('.'))}."
    begin = "" if result.complete else "So far "
    words = _wins(result) or _best(result)
    worth = _worth(result)
    sentence = begin + (words if begin else capitalised(words))
    return f"{sentence} {worth}".strip()


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
    return f"{escape(lower(FABRICS.get(name, name)))} are fastest in <b>{share}</b> of {settings}.".replace(
        "fat-tree are", "the fat-tree is"
    )


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
    words = lower(MEASURES[name].words)
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
        f"Most iterations per dollar{alike}: {where}{more}, {measure_words('iteration_ms', time)} per iteration "
        f"for <b>{measure_words('dollars', dollars)}</b>."
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
    words, values = lower(axis_words(axis.key)), axis.values
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
