"""What two or more runs say side by side: the finding in a sentence, and what differs in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topox_core.fabrics.compare import EQUAL, same_time, ties
from topox_core.library.comparison import ComparedValue, RunComparison
from topox_core.library.rows import StoredRun
from topox_core.studies.keys import key_words, lower, value_words
from topox_core.text.numbers import apart, count, money, percent, plural
from topox_core.text.sentences import enumeration, is_or_are
from topox_ui.library.listing import LETTERS
from topox_ui.shell.page import escape

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
    if any(value is None for value in times):
        known = [LETTERS[k] for k, value in enumerate(times) if value is not None]
        has = f"only {', '.join(known)} has" if known else "none of them has"
        return f"{plural(len(runs), 'run')} side by side; {has} an iteration time."
    ms = [float(value) for value in times if value is not None]
    names = [
        LETTERS[k] + (f" ({escape(one.record.name)})" if one.record.name else "")
        for k, one in enumerate(runs)
    ]
    subjects = {(one.record.subject, one.record.graph) for one in runs}
    words = apart(ms)
    if len(runs) > 2:
        fast, slow = ms.index(min(ms)), ms.index(max(ms))
        if ms[slow] <= ms[fast] * (1 + EQUAL):
            return f"All {count(len(runs))} runs take the same time, <b>{words[fast]}</b>."
        first = [names[k] for k in ties(dict(enumerate(ms)))]
        return (
            f"{enumeration(first)} {is_or_are(len(first))} the fastest of {count(len(runs))} runs: <b>{words[fast]}</b>. "
            f"{names[slow]} is the slowest: <b>{words[slow]}</b>."
        )
    fast, slow = (0, 1) if ms[0] <= ms[1] else (1, 0)
    if len(subjects) > 1:
        titles = [f"{LETTERS[k]}, {escape(one.record.subject)}," for k, one in enumerate(runs)]
        return f"Two different jobs: {titles[0]} takes <b>{words[0]}</b>, {titles[1]} <b>{words[1]}</b>."
    lead = _difference(compared, fast, slow)
    if ms[slow] <= ms[fast] * (1 + EQUAL):
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
    return f"With {lower(name_words(one.name))} {ours} instead of {theirs} an iteration takes"


def _different_settings(compared: RunComparison) -> list[ComparedValue]:
    """Return what was set differently, without what follows from it: a subject is said once, by its name."""
    return [
        one
        for one in compared.different_settings
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


def differing(compared: RunComparison) -> list[tuple[str, list[ComparedValue]]]:
    """Return what differs in blocks: settings, then the result, then cost and power; none without rows."""
    outcome = [one for one in compared.different_outcome if one.name != "message"]
    blocks = [
        ("Settings", _different_settings(compared)),
        ("Result", [one for one in outcome if one.name not in _MONEY]),
        ("Cost and power", [one for one in outcome if one.name in _MONEY]),
    ]
    return [(title, several) for title, several in blocks if several]


def setting_rows(compared: RunComparison) -> list[dict[str, str]]:
    """Return every setting, a row each."""
    return [
        {
            "Setting": name_words(one.name),
            **{LETTERS[k]: value_words(one.name, value) for k, value in enumerate(one.values)},
        }
        for one in compared.settings
    ]


def equal_words(equal: Mapping[str, Any], most: int = 8) -> str:
    """Return in a line what is alike."""
    names = [lower(name_words(name)) for name in equal if not name.startswith("subject.")]
    listed = ", ".join(dict.fromkeys(names[:most]))
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"Equal: {listed}{more}." if names else ""
