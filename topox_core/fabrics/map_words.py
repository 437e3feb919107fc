"""What a crossover map says: its winners place by place, in words and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.fabrics.compare import EQUAL
from topox_core.fabrics.registry import FABRICS, LETTERS
from topox_core.fabrics.sweep import Axes, Point
from topox_core.fabrics.winner import Winner
from topox_core.text.numbers import delay_label, percent, short, whole_percent
from topox_core.text.sentences import enumeration

OPEN = {"gap": "◐", "rounding": "≈"}
OPEN_WORDS = {
    "gap": "◐ open: a better plan would change this",
    "rounding": "≈ decided by rounding to slots",
}


@dataclass(frozen=True)
class MapPicture:
    """What a map shows: the points that were computed, who is taken to win between them, and the words for it."""

    axes: Axes
    points: Sequence[Point]
    between: Mapping[tuple[float, float], Winner]
    labels: Mapping[str, str]

    @property
    def winners(self) -> dict[tuple[float, float], Winner]:
        """The winner of every place (value, delay) that is known or taken as known."""
        computed = {(p.value, p.delay_ms): p.winner for p in self.points}
        return {**self.between, **computed}


def cell_words(one: Winner) -> str:
    """Return what stands in a cell that was computed: who wins, the lead over the next in %, and whether it is open."""
    if not one.fabric:
        words = "=" if one.equals else "none"
    else:
        lead = "=" if not one.lead else whole_percent(one.lead)
        words = f"{LETTERS[one.fabric]} {lead}"
    return f"{words} {OPEN[one.doubt]}" if one.doubt else words


def winner_words(one: Winner, labels: Mapping[str, str]) -> str:
    """Return who wins a point, and by how much over which fabric, in words."""
    if not one.equals:
        return "no fabric can run"
    names = [labels[name] for name in one.equals]
    if not one.fabric:
        return f"{enumeration(names)} are equal"
    if len(names) == 1:
        over = f" leads {labels[one.next]} by {100 * one.lead:.3g} %" if one.next else " runs alone"
        return f"{names[0]}{over}"
    over = f"; leads {labels[one.beyond]} by {100 * one.beyond_lead:.3g} %" if one.beyond else ""
    return f"{names[0]}, as fast as {enumeration(names[1:])} within {percent(EQUAL)}{over}"


def outcome_words(name: str, point: Point, labels: Mapping[str, str]) -> str:
    """Return the time of a fabric at a point, and what else is to be said of it."""
    one = point.outcomes[name]
    words = f"{labels[name]} {short(one.iteration_ms)} ms"
    if one.keeps_fixed and one.plan_ms is not None:
        words += f", circuits fixed; best plan that switches {short(one.plan_ms)} ms"
    return words


def setting_words(picture: MapPicture, now: tuple[float, float]) -> str:
    """Return who wins at the setting (value, delay in ms), in a sentence; empty where it is not on the map."""
    at = {(p.value, p.delay_ms): p for p in picture.points}.get(now)
    if at is None:
        return ""
    words = winner_words(at.winner, picture.labels)
    sign = f" ({OPEN_WORDS[at.winner.doubt]})" if at.winner.doubt else ""
    return f"At your setting: {words}{sign}."


def point_names(picture: MapPicture) -> dict[tuple[float, float], str]:
    """Return every cell of a map, (value, delay in ms), with where it is and who wins it in words."""
    unit = "G" if picture.axes.by == "port_gbps" else " ports"
    return {
        (
            value,
            delay,
        ): f"{value:g}{unit}, {delay_label(delay)}: {picture.labels.get(one.fabric, 'equal')}"
        for (value, delay), one in sorted(picture.winners.items())
    }


def points_won(picture: MapPicture) -> str:
    """Return how many computed points each fabric wins, in words."""
    won = [p.winner.fabric for p in picture.points]
    return ", ".join(f"{picture.labels[n]} {won.count(n)}" for n in FABRICS if n in won) or "none"


def map_rows(picture: MapPicture, value: float | None = None) -> list[dict[str, Any]]:
    """Return the table of a map: every computed point, or those of one value."""
    labels = picture.labels
    rows = []
    for p in picture.points:
        one = p.winner
        if value is not None and p.value != value:
            continue
        row: dict[str, Any] = {
            "value": p.value,
            "delay (ms)": p.delay_ms,
            "winner": labels.get(one.fabric, "equal"),
            f"equal (within {percent(EQUAL)})": enumeration([labels[name] for name in one.equals])
            if len(one.equals) > 1
            else "",
            "lead over the next": f"{100 * one.lead:.3g} %" if one.lead else "",
            "next": labels.get(one.next, ""),
            "open": OPEN_WORDS.get(one.doubt, ""),
        }
        row |= {f"{labels[n]} (ms)": p.outcomes[n].iteration_ms for n in FABRICS if n in p.outcomes}
        plan = p.outcomes.get("scheduled")
        if plan is not None and plan.plan_ms is not None:
            row |= {
                "best plan that switches (ms)": plan.plan_ms,
                "its bound (ms)": plan.plan_bound_ms,
            }
        if p.failed:
            row["cannot run"] = "; ".join(p.failed.values())
        rows.append(row)
    return rows
