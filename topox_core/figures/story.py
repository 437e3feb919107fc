"""The story of a solve, read from its lines: who found which schedule, who raised the bound, and the same as a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from topox_core.schedule.result import TracePoint
from topox_core.text.numbers import apart, seconds

Family = Literal["rules", "controllers", "search", "neighbourhoods", "exact", "bounds"]

FAMILY_WORDS: dict[Family, str] = {
    "rules": "list scheduling",
    "controllers": "provisioned switching",
    "search": "local search",
    "neighbourhoods": "large neighbourhoods",
    "exact": "exact engine",
    "bounds": "bounds without search",
}
_EXACT = ("CP-SAT", "HiGHS", "printed MIP")
_BY_KEY = {
    "cpsat": "CP-SAT",
    "highs": "HiGHS",
    "printed": "printed MIP",
}  # what an engine's last word is noted under
_BOUNDS = ("propagation", "heads and tails", "critical path", "loads")
FIRST_BOUND = "loads and critical path"
OPENING_BOUND = "heads and tails, propagation"
ANOTHER_SOLVE = "another solve"


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
        """Who made the step, as a sentence says it: exact engines and bounds by name, the rest by family."""
        return self.source if self.family in ("exact", "bounds") else FAMILY_WORDS[self.family]


def family_of(source: str) -> Family:
    """Return the family that a line's source belongs to (``parallel LFT`` is a rule of list scheduling)."""
    if "neighbourhood" in source:
        return "neighbourhoods"
    if "search" in source and "CP-SAT" not in source:
        return "search"
    if "provisioned" in source:
        return "controllers"
    if any(word in source for word in (*_EXACT, ANOTHER_SOLVE)):
        return "exact"
    return "bounds" if any(word in source for word in _BOUNDS) else "rules"


def events_of(story: Sequence[TracePoint], bound_by: str = "") -> tuple[Event, ...]:
    """Return every step of a story in order.

    A line names who found its schedule. Where the bound rose in the same line, and its source
    cannot bound, it was raised by what runs before the engines: ``bound_by``, what binds in the
    end, tells which of these for the last rise.
    """
    events: list[Event] = []
    incumbent: float | None = None
    bound: float | None = None
    for line in story:
        who = _BY_KEY.get(line.source, line.source)
        family = family_of(who)
        if line.incumbent_ms is not None and (incumbent is None or line.incumbent_ms < incumbent):
            events.append(
                Event(
                    line.elapsed_s,
                    "schedule",
                    line.incumbent_ms,
                    incumbent,
                    line.incumbent_ms,
                    line.bound_ms,
                    "rules" if family == "bounds" else family,
                    who,
                )
            )
            incumbent = line.incumbent_ms
        if bound is None or line.bound_ms > bound:
            last, source = line.bound_ms >= story[-1].bound_ms, who
            if family not in ("exact", "bounds"):
                source = (
                    FIRST_BOUND if bound is None else _bounder(bound_by) if last else OPENING_BOUND
                )
            elif line.source in _BY_KEY and last and bound_by:
                source = _bounder(bound_by)  # engines bound before they search
            events.append(
                Event(
                    line.elapsed_s,
                    "bound",
                    line.bound_ms,
                    bound,
                    incumbent,
                    line.bound_ms,
                    family_of(source),
                    source,
                )
            )
            bound = line.bound_ms
    return tuple(events)


def _bounder(bound_by: str) -> str:
    """Return who raised a bound by the words that say what binds."""
    named = {
        **{name: name for name in (*_EXACT, "propagation")},
        **{f"({key})": name for key, name in _BY_KEY.items()},
    }
    for words, name in named.items():
        if words in bound_by:
            return name
    return "heads and tails" if bound_by else OPENING_BOUND


def proof_of(events: Sequence[Event]) -> Event | None:
    """Return the step that closed the gap, if one did."""
    return next(
        (e for e in events if e.incumbent_ms is not None and e.incumbent_ms <= e.bound_ms), None
    )


def last_better(events: Sequence[Event]) -> Event | None:
    """Return the step that found the best schedule, if any was found."""
    return next((e for e in reversed(events) if e.moved == "schedule"), None)


def told(events: Sequence[Event]) -> str:
    """Return the story as one sentence or two: who came how far, who raised the bound, whether that is a proof."""
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
            f"{_capital(ways[0].words)} met the bound, {number[ways[0].value_ms]}, after {_after(proof)}: "
            "nothing shorter exists."
        )
    first = f"{_capital(ways[0].words)} came to {number[ways[0].value_ms]} in {_after(ways[0])}"
    rest = [f"{e.words} to {number[e.value_ms]}" for e in ways[1:]]
    schedules = ", ".join([first, *rest]) + (f" after {_after(ways[-1])}" if rest else "")
    if rises:
        raised = [
            f"{rises[0].words} lifted the bound from {number[bounds[0].value_ms]} to {number[rises[0].value_ms]}",
            *(f"{e.words} to {number[e.value_ms]}" for e in rises[1:]),
        ]
        bounded = ", ".join(raised) + (
            f" after {_after(rises[-1])}" if rises[-1].elapsed_s > ways[0].elapsed_s else ""
        )
    else:
        bounded = f"the bound stood at {number[bounds[0].value_ms]} from the start"
    end = "" if proof is None else " They meet: nothing shorter exists."
    return f"{schedules}; {bounded}.{end}"


def _last_of_each(events: Sequence[Event]) -> list[Event]:
    """Return the furthest step of each who made any, in the order in which these were made."""
    last: dict[str, Event] = {}
    for event in events:
        last.pop(event.words, None)
        last[event.words] = event
    return list(last.values())


def _after(event: Event) -> str:
    return seconds(float(f"{event.elapsed_s:.2g}"))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def story_table(events: Sequence[Event]) -> dict[str, list[object]]:
    """Return every step as a row of a table."""
    return {
        "after (s)": [round(e.elapsed_s, 3) for e in events],
        "moved": [e.moved for e in events],
        "schedule (ms)": [e.incumbent_ms for e in events],
        "bound (ms)": [e.bound_ms for e in events],
        "by": [e.source for e in events],
        "kind": [FAMILY_WORDS[e.family] for e in events],
    }
