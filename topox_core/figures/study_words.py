"""Settings and measures as people read them, on every page and figure of studies and kept runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.cost import money, power
from topox_core.figures.study_axes import MeasureWords, StudyAxis
from topox_core.studies.keys import (
    GRAPH_KEYS,
    NETWORK_KEYS,
    RAIL_KEYS,
    ROUND_KEYS,
    Key,
    Value,
    by_name,
)
from topox_core.studies.measures import MEASURES
from topox_core.text.numbers import count, delay_label, percent, plural, short, time

KEYS = by_name((*GRAPH_KEYS, *RAIL_KEYS, *ROUND_KEYS, *NETWORK_KEYS))
_DIGESTS = ("graph", "cluster")
# Axes whose values are counts of something; and a shorter name for one that says how it is counted.
_COUNTED = {
    "cluster.degree": ("port", "ports"),
    "cluster.ports_per_server": ("port", "ports"),
    "cluster.switches": ("switch", "switches"),
    "network.gpus": ("GPU", "GPUs"),
    "rails.gpus": ("GPU", "GPUs"),
    "tdm.jobs": ("job", "jobs"),
}
_SHORTER = {"cluster.degree": "Ports a server"}


def key_words(name: str, others: Mapping[str, str] | None = None) -> str:
    """Return what a setting or a measure is called; ``others`` names what is neither."""
    if name in KEYS:
        return KEYS[name].words
    if name in MEASURES:
        return MEASURES[name].words
    words = (others or {}).get(name)
    return words if words is not None else name.replace(".", ", ").replace("_", " ")


def value_words(name: str, value: Any) -> str:
    """Return the value of a setting or a measure, with its unit."""
    words = _words(name, value)
    return words.replace("-", "−") if _is_number(value) else words


def _words(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in _DIGESTS:
        return str(value)[:12]
    if name == "fabric":
        return FABRICS.get(value, str(value))
    if not _is_number(value):
        return str(value).replace("_", " ")
    if name in MEASURES:
        return measure_words(name, float(value))
    unit = KEYS[name].unit if name in KEYS else ""
    if unit == "ms":
        return time(float(value))
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return f"{number}\u00a0{unit}" if unit else number


def measure_words(name: str, value: float) -> str:
    """Return a measure's value with its unit: 32.2 ms, 43 %, $1.29 M."""
    one = MEASURES[name]
    if one.share:
        return percent(value)
    if one.unit in ("ms", "s"):
        return time(value if one.unit == "ms" else 1000 * value)
    if one.unit == "$":
        return money(value)
    if one.unit == "W":
        return power(value)
    if name in ("changes", "windows") and value == round(value):
        return count(round(value))
    return f"{short(value)}\u00a0{one.unit}" if one.unit else short(value)


def lower(words: str) -> str:
    """Return words for the middle of a sentence: abbreviations keep their capitals."""
    return words if words[:2].isupper() else words[:1].lower() + words[1:]


def axis_label(key: Key, value: Value) -> str:
    """Return a value as an axis has it, short: 1 ms, 400G, Planned circuits."""
    if _is_number(value):
        if key.unit == "ms":
            return delay_label(float(value))
        if key.unit == "Gbit/s":
            return f"{float(value):g}G"
        return f"{value:,}" if isinstance(value, int) else f"{float(value):g}"
    if value == "":
        return "as it is"
    return value_words(key.name, value)


def axis_words(key: Key) -> str:
    """Return what an axis is called where there is little room."""
    return _SHORTER.get(key.name, key.words)


def named_value(key: Key, value: Value) -> str:
    """Return a value so that it says by itself what it is of: 2 ports, 1 ms, seed 3, Planned circuits."""
    if key.name in _COUNTED and isinstance(value, int) and not isinstance(value, bool):
        return plural(value, *_COUNTED[key.name])
    words = axis_label(key, value)
    bare = isinstance(value, bool) or words.replace(",", "").replace(".", "").isdigit()
    return f"{lower(axis_words(key))} {words}" if bare else words


def study_axis(key: Key, values: tuple[Value, ...]) -> StudyAxis:
    """Return an axis of a study for figures; units that the labels carry are not in its title."""
    in_labels = key.unit in ("", "ms", "Gbit/s")
    title = lower(axis_words(key)) if in_labels else f"{lower(axis_words(key))}, {key.unit}"
    return StudyAxis(title, values, tuple(axis_label(key, value) for value in values))


def measure_of_study(name: str, against: str = "") -> MeasureWords:
    """Return a measure for figures; against a fabric it is a ratio."""
    one = MEASURES[name]
    more = one.better == "most"
    if against:
        other = lower(FABRICS.get(against, against))
        return MeasureWords(f"{lower(one.words)} against {other}", _times, more)
    return MeasureWords(lower(one.words), lambda value: value_words(name, value), more)


def _times(ratio: float) -> str:
    return f"{short(ratio)}x"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
