"""A result in words: what was found and how sure it is, by whom, and step by step how it came about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from topox_core.schedule.result import MET, ClassBound, Result, TracePoint
from topox_core.schedule.source import Family, TraceSource
from topox_core.text.numbers import about_seconds, apart, percent, time
from topox_core.text.sentences import capitalised, enumeration

FAMILY_WORDS: dict[Family, str] = {
    "rules": "list scheduling",
    "controllers": "the order in which circuits are provisioned",
    "fixed": "circuits that stay fixed",
    "search": "local search",
    "neighbourhoods": "large neighbourhoods",
    "exact": "exact engine",
    "bounds": "bounds without search",
}
CONTROLLER_WORDS = {
    "provisioned": FAMILY_WORDS["controllers"],
    "provisioned order": FAMILY_WORDS["controllers"],
    "provisioned, improved": f"{FAMILY_WORDS['controllers']}, improved",
    "phase by phase": "the order phase by phase",
}


def finding(result: Result) -> str:
    """Return the time of an iteration and how sure it is, in one sentence: against every way of using the circuits."""
    if result.makespan_ms is None:
        return "There is no schedule for this setting."
    own, other = result.own_class, result.other_class
    found, bound = apart((result.makespan_ms, result.bound_ms))
    first = f"One iteration takes {found}"
    if result.status == "optimal":
        words = CLASS_WORDS[own.changes_circuits][1]
        return f"{first}; {'nothing shorter exists' if other else f'no {words} is shorter'}."
    if result.stopped_by == "lowering":
        return f"{first}, proved best for its rings and algorithms; with others nothing is shorter than {bound}."
    if other is None:
        return f"{first}; no {CLASS_WORDS[own.changes_circuits][1]} is shorter than {bound}."
    if own.proved:
        return (
            f"{first}, proved best with {CLASS_WORDS[own.changes_circuits][0]}; "
            f"{CLASS_WORDS[other.changes_circuits][0]} are not excluded from {bound} on."
        )
    return f"{first}; nothing is shorter than {bound}."


# What an iteration spends time on, behind a share of it; shares below the least are not told.
LIMITS = {
    "compute": "computing",
    "transfer": "transferring",
    "port": "waiting for a port that another transfer holds",
    "circuit": "waiting for a circuit to change",
    "slot": "waiting for a slot",
}
LEAST_SHARE = 0.005
# With what an iteration runs, and one of them, by whether circuits change.
CLASS_WORDS = {
    True: ("circuits that change", "plan that changes circuits"),
    False: ("circuits that stay fixed", "iteration on fixed circuits"),
}


def class_words(one: ClassBound) -> tuple[str, str]:
    """Return a class of schedules, and what is known of it: its best and whether that is proved."""
    name, _ = CLASS_WORDS[one.changes_circuits]
    if one.best_ms is None:
        known = f"none found, not excluded from {time(one.bound_ms)} on"
    elif one.proved:
        known = f"{time(one.best_ms)}, proved best of its kind"
    else:
        best, bound = apart((one.best_ms, one.bound_ms))
        known = f"{best} found, none shorter than {bound}"
    return capitalised(name), known


def lowered_words(result: Result) -> list[tuple[str, str]]:
    """Return what is known of plans with the rings and algorithms of this one, where others may be chosen."""
    plan = result.alternative or result
    if result.lowered_bound_ms is None or plan.makespan_ms is None or plan.switching == "fixed":
        return []
    one = ClassBound(True, plan.makespan_ms, result.lowered_bound_ms)
    return [("With the rings and algorithms of this plan", class_words(one)[1])]


def limits(shares: Mapping[str, float]) -> str:
    """Return what an iteration spends its time on along its critical path, in words; shares as of ``CriticalPath.shares``."""
    spent = [(share, LIMITS[what]) for what, share in shares.items() if share >= LEAST_SHARE]
    return enumeration(
        [f"{percent(share)} {words}" for share, words in sorted(spent, reverse=True)]
    )


def found_by(result: Result) -> str:
    """Return who found this schedule, and after how long."""
    step = last_better(events_of(result.trace))
    if step is None:
        return ""
    least_ms = (result.makespan_ms or 0.0) * (1 + MET)
    if step.family == "fixed" and result.switching != "fixed":  # as long, and there before
        for point in result.trace:
            if point.source.family != "fixed" and (point.incumbent_ms or math.inf) <= least_ms:
                return f"{_words(point.source)}, {about_seconds(point.elapsed_s)}"
    return f"{step.words}, {about_seconds(step.elapsed_s)}"


@dataclass(frozen=True)
class Event:
    """One step of a solve: a shorter schedule or a higher bound, with where both stand afterwards (ms).

    ``before_ms`` is what the step improved; None for the first schedule and the first bound.
    """

    elapsed_s: float
    moved: Literal["schedule", "bound"]
    value_ms: float
    before_ms: float | None
    incumbent_ms: float | None
    bound_ms: float
    family: Family
    source: str

    @property
    def words(self) -> str:
        """Who made the step, as a sentence says it: rules and searches by family, the rest by name."""
        return _words(TraceSource(self.family, self.source))


def events_of(trace: Sequence[TracePoint]) -> tuple[Event, ...]:
    """Return every step of a trace in order."""
    events: list[Event] = []
    incumbent: float | None = None
    bound: float | None = None
    for point in trace:
        at, now_ms, bound_ms = point.elapsed_s, point.incumbent_ms, point.bound_ms
        if now_ms is not None and (incumbent is None or now_ms < incumbent):
            by = point.source
            family = "rules" if by.family == "bounds" else by.family
            events.append(
                Event(at, "schedule", now_ms, incumbent, now_ms, bound_ms, family, by.name)
            )
            incumbent = now_ms
        if bound is None or bound_ms > bound:
            by = point.bound_source
            events.append(
                Event(at, "bound", bound_ms, bound, incumbent, bound_ms, by.family, by.name)
            )
            bound = bound_ms
    return tuple(events)


def proof_of(events: Sequence[Event]) -> Event | None:
    """Return the step that closed the gap, if one did."""
    return next(
        (
            e
            for e in events
            if e.incumbent_ms is not None and e.incumbent_ms <= e.bound_ms * (1 + MET)
        ),
        None,
    )


def last_better(events: Sequence[Event]) -> Event | None:
    """Return the step that found the best schedule, if any was found."""
    return next((e for e in reversed(events) if e.moved == "schedule"), None)


def summary_sentence(events: Sequence[Event]) -> str:
    """Return the trace as one sentence or two: who came how far, who raised the bound, whether that is a proof."""
    found = [e for e in events if e.moved == "schedule"]
    bounds = [e for e in events if e.moved == "bound"]
    if not bounds:
        return "Nothing has been found yet."
    ways, rises = _last_of_each(found), _last_of_each(bounds[1:])
    number = dict(
        zip([e.value_ms for e in events], apart([e.value_ms for e in events]), strict=True)
    )
    if not ways:
        return f"No schedule yet; none can beat {number[bounds[-1].value_ms]}."
    proof = proof_of(events)
    if proof is not None and len(ways) == 1 and not rises:
        return (
            f"{capitalised(ways[0].words)} met the bound, {number[ways[0].value_ms]}, after {about_seconds(proof.elapsed_s)}: "
            "nothing shorter exists."
        )
    first = f"{capitalised(ways[0].words)} came to {number[ways[0].value_ms]} in {about_seconds(ways[0].elapsed_s)}"
    rest = [f"{e.words} to {number[e.value_ms]}" for e in ways[1:]]
    schedules = ", ".join([first, *rest]) + (
        f" after {about_seconds(ways[-1].elapsed_s)}" if rest else ""
    )
    if rises:
        raised = [
            f"{rises[0].words} lifted the bound from {number[bounds[0].value_ms]} to {number[rises[0].value_ms]}",
            *(f"{e.words} to {number[e.value_ms]}" for e in rises[1:]),
        ]
        bounded = ", ".join(raised) + (
            f" after {about_seconds(rises[-1].elapsed_s)}"
            if rises[-1].elapsed_s > ways[0].elapsed_s
            else ""
        )
    else:
        bounded = f"nothing is shorter than {number[bounds[0].value_ms]}"
    end = "" if proof is None else " They meet: nothing shorter exists."
    return f"{schedules}; {bounded}.{end}"


def _last_of_each(events: Sequence[Event]) -> list[Event]:
    """Return the furthest step of each who made any, in the order in which these were made."""
    last: dict[str, Event] = {}
    for event in events:
        last.pop(event.words, None)
        last[event.words] = event
    return list(last.values())


def _words(source: TraceSource) -> str:
    if source.family in ("rules", "search", "neighbourhoods"):
        return FAMILY_WORDS[source.family]
    return CONTROLLER_WORDS.get(source.name, source.name)


def event_table(events: Sequence[Event]) -> dict[str, list[object]]:
    """Return every step as a row of a table."""
    return {
        "after (s)": [round(e.elapsed_s, 3) for e in events],
        "moved": [e.moved for e in events],
        "schedule (ms)": [e.incumbent_ms for e in events],
        "bound (ms)": [e.bound_ms for e in events],
        "by": [e.source for e in events],
        "kind": [FAMILY_WORDS[e.family] for e in events],
    }
