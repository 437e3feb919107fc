"""A result in words: what was found and how sure it is, by whom, and step by step how it came about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from topox_core.schedule.results.result import MET, ClassBound, Result, TracePoint, gap
from topox_core.schedule.source import Family, TraceSource
from topox_core.text.numbers import (
    STOPPED_BY,
    about_seconds,
    apart,
    capitalised,
    enumeration,
    percent,
    seconds,
    time,
)

FAMILY_WORDS: dict[Family, str] = {
    "rules": "list scheduling",
    "controllers": "the order in which circuits are provisioned",
    "passed": "a plan made for another setting",
    "fixed": "circuits that stay fixed",
    "search": "local search",
    "neighbourhoods": "large neighbourhoods",
    "exact": "exact engine",
    "bounds": "bounds without search",
}
# The same where a cell of a table has room for two words.
SHORT_FAMILY_WORDS: dict[Family, str] = {
    **FAMILY_WORDS,
    "controllers": "provisioned order",
    "passed": "another setting's plan",
    "fixed": "fixed circuits",
    "bounds": "bound alone",
}
CONTROLLER_WORDS = {
    "provisioned": FAMILY_WORDS["controllers"],
    "provisioned order": FAMILY_WORDS["controllers"],
    "provisioned, improved": "the provisioned order after improvement",
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
            f"{CLASS_WORDS[other.changes_circuits][0]} could still reach {bound}."
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
MIN_SHARE = 0.005
# With what an iteration runs, and one of them, by whether circuits change.
CLASS_WORDS = {
    True: ("circuits that change", "plan that changes circuits"),
    False: ("circuits that stay fixed", "iteration on fixed circuits"),
}


def class_words(one: ClassBound) -> tuple[str, str]:
    """Return a class of schedules, and what is known of it: its best and whether that is proved."""
    name, _ = CLASS_WORDS[one.changes_circuits]
    if one.best_ms is None:
        known = f"none found; none can be shorter than {time(one.bound_ms)}"
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
    """Return what the critical path spends its time on, in words of a fixed order; shares as of ``CriticalPath.shares``."""
    return enumeration(
        [
            f"{percent(shares[what])} {words}"
            for what, words in LIMITS.items()
            if shares.get(what, 0.0) >= MIN_SHARE
        ]
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
    """One step of a solve: a shorter schedule or a higher bound, with where both stand afterwards (ms)."""

    elapsed_s: float
    moved: Literal["schedule", "bound"]
    value_ms: float
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
            events.append(Event(at, "schedule", now_ms, now_ms, bound_ms, family, by.name))
            incumbent = now_ms
        if bound is None or bound_ms > bound:
            by = point.bound_source
            events.append(Event(at, "bound", bound_ms, incumbent, bound_ms, by.family, by.name))
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
    first = f"{capitalised(ways[0].words)} reached {number[ways[0].value_ms]} in {about_seconds(ways[0].elapsed_s)}"
    rest = [f"{e.words} {number[e.value_ms]}" for e in ways[1:]]
    schedules = ", ".join([first, *rest]) + (
        f" after {about_seconds(ways[-1].elapsed_s)}" if rest else ""
    )
    if rises:
        raised = [
            f"{rises[0].words} raised the bound from {number[bounds[0].value_ms]} to {number[rises[0].value_ms]}",
            *(f"{e.words} to {number[e.value_ms]}" for e in rises[1:]),
        ]
        bounded = ", ".join(raised) + (
            f" after {about_seconds(rises[-1].elapsed_s)}"
            if rises[-1].elapsed_s > ways[0].elapsed_s
            else ""
        )
    else:
        bounded = f"nothing is shorter than {number[bounds[0].value_ms]}"
    end = "" if proof is None else " Schedule and bound are equal: nothing shorter exists."
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
        "kind": [SHORT_FAMILY_WORDS[e.family] for e in events],
    }


ENGINES = ("list", "highs", "cpsat", "auto")
ENGINE_WORDS = {"list": "list", "highs": "HiGHS", "cpsat": "CP-SAT", "auto": "auto"}
SAME_S, SAME_SHARE = 0.1, 0.2  # proofs this close in time count as equally fast
ROUNDING = 1e-9  # bounds and times closer than this are the same number


@dataclass(frozen=True)
class Contestant:
    """One engine's solve, ended or still running: its steps, where it stands and how it ended (empty while it runs)."""

    engine: str
    events: tuple[Event, ...]
    wall_s: float
    ended: str = ""
    message: str = ""

    @staticmethod
    def of(engine: str, result: Result) -> Contestant:
        """Return the runner of a solve that has ended."""
        return Contestant(
            engine, events_of(result.trace), result.wall_s, result.stopped_by, result.message
        )

    @property
    def name(self) -> str:
        """The engine's name."""
        return ENGINE_WORDS.get(self.engine, self.engine)

    @property
    def makespan_ms(self) -> float | None:
        """Makespan of the best schedule."""
        return self.events[-1].incumbent_ms if self.events else None

    @property
    def bound_ms(self) -> float:
        """The best bound."""
        return self.events[-1].bound_ms if self.events else 0.0

    @property
    def best_s(self) -> float | None:
        """When the best schedule was found."""
        found = last_better(self.events)
        return found.elapsed_s if found else None

    @property
    def found_by(self) -> str:
        """Who found the best schedule: the engine itself, a rule, or the local search beside it."""
        found = last_better(self.events)
        return found.words if found else ""

    @property
    def proved_s(self) -> float | None:
        """When schedule and bound met; None if they did not."""
        proof = proof_of(self.events)
        return proof.elapsed_s if proof else None

    @property
    def proved_by(self) -> str:
        """Who raised the bound up to the schedule; empty without a proof."""
        return (
            next((e.words for e in reversed(self.events) if e.moved == "bound"), "")
            if self.proved_s is not None
            else ""
        )


def race_table(runners: Sequence[Contestant]) -> dict[str, list[object]]:
    """Return one row for every engine."""
    best = min((r.makespan_ms for r in runners if r.makespan_ms is not None), default=0.0)
    table: dict[str, list[object]] = {
        "engine": [r.name for r in runners],
        "iteration (ms)": [r.makespan_ms for r in runners],
        "above best (%)": [
            round(100 * (r.makespan_ms / best - 1), 3)
            if r.makespan_ms is not None and best > 0
            else None
            for r in runners
        ],
        "bound (ms)": [r.bound_ms for r in runners],
        "gap (%)": [
            round(100 * gap(r.makespan_ms, r.bound_ms), 3) if r.makespan_ms else None
            for r in runners
        ],
        "best after (s)": [None if r.best_s is None else round(r.best_s, 3) for r in runners],
        "found by": [r.found_by for r in runners],
        "proof after (s)": [None if r.proved_s is None else round(r.proved_s, 3) for r in runners],
        "proved by": [r.proved_by for r in runners],
        "ended by": [
            "proof" if r.proved_s is not None else STOPPED_BY.get(r.ended, r.ended) for r in runners
        ],
    }
    return (
        {**table, "remark": [r.message for r in runners]}
        if any(r.message for r in runners)
        else table
    )


def race_finding(runners: Sequence[Contestant]) -> str:
    """Return who won, as a sentence: who proves and how fast, who comes how close without a proof."""
    found = [r for r in runners if r.makespan_ms is not None]
    if not found:
        return ""
    best = min(float(r.makespan_ms or 0.0) for r in found)
    proved = sorted((r for r in found if r.proved_s is not None), key=lambda r: r.proved_s or 0.0)
    others = [r for r in found if r.proved_s is None]
    word = apart(
        [best, *(float(r.makespan_ms or 0.0) for r in found), max(r.bound_ms for r in found)]
    )
    parts = _proofs(proved, word[0]) if proved else _closest(found, best, word[0])
    if proved:
        parts += _behind(
            others, best, "reaches the same without proving it", "reach the same without proving it"
        )
    else:
        bound = max(r.bound_ms for r in found)
        high = [r for r in found if r.bound_ms >= bound * (1 - ROUNDING)]
        whose = (
            "the same for all"
            if len(high) == len(found) > 1
            else f"that of {enumeration([r.name for r in high])}"
        )
        parts.append(f"no engine proves it; the best bound, {word[-1]}, is {whose}")
    text = "; ".join(parts) + "."
    return capitalised(text)


def _proofs(proved: Sequence[Contestant], word: str) -> list[str]:
    """Return who proves first, and how much longer the others need."""
    fastest = proved[0].proved_s or 0.0
    level = max(fastest + SAME_S, fastest * (1 + SAME_SHARE))
    first = [r for r in proved if (r.proved_s or 0.0) <= level]
    verb = "proves" if len(first) == 1 else "both prove" if len(first) == 2 else "all prove"
    parts = [
        f"{enumeration([r.name for r in first])} {verb} {word} after {seconds(round(fastest, 3))}"
    ]
    slower = [r for r in proved if r not in first]
    return parts + [
        f"{r.name} needs {seconds(round((r.proved_s or 0.0) - fastest, 2))} longer" for r in slower
    ]


def _closest(found: Sequence[Contestant], best: float, word: str) -> list[str]:
    """Return who comes to the best schedule when nobody proves it, the fastest first, and how far the others are."""
    first = sorted(
        (r for r in found if float(r.makespan_ms or 0.0) <= best * (1 + ROUNDING)),
        key=lambda r: r.best_s or 0.0,
    )
    fastest = first[0]
    after = seconds(float(f"{fastest.best_s or 0.0:.2g}"))
    by = f" by {fastest.found_by}" if fastest.found_by != fastest.name else ""
    head = (
        f"{fastest.name} reaches {word}, the shortest,{by} after {after}"
        if len(first) == 1
        else f"{enumeration([r.name for r in first])} reach {word}, {fastest.name} first,{by} after {after}"
    )
    return [head, *_behind([r for r in found if r not in first], best, "", "")]


def _behind(others: Sequence[Contestant], best: float, same: str, same_many: str) -> list[str]:
    """Return how far engines are above the best, those at the same distance together."""
    by_distance: dict[str, list[str]] = {}
    for runner in sorted(others, key=lambda r: r.makespan_ms or 0.0):
        share = float(runner.makespan_ms or 0.0) / best - 1 if best > 0 else 0.0
        by_distance.setdefault("" if share <= ROUNDING else percent(share), []).append(runner.name)
    parts = []
    for distance, names in by_distance.items():
        if distance:
            parts.append(
                f"{enumeration(names)} {'is' if len(names) == 1 else 'are'} {distance} above"
            )
        else:
            parts.append(f"{enumeration(names)} {same if len(names) == 1 else same_many}")
    return parts
