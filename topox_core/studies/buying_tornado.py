"""What the answer hangs on: each uncertain figure moved alone, and how far the lead of a switch swings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from topox_core.economics.comparison import Swing
from topox_core.economics.price_sets import SET_BY_SPEED
from topox_core.studies.axes import Axis
from topox_core.studies.buying import (
    DELAY,
    MEASURES,
    POWER,
    PRICE,
    Choice,
    Question,
    Row,
    buying_study,
)
from topox_core.studies.buying_answer import lead
from topox_core.studies.design import Design
from topox_core.studies.fabric_point import priced_at
from topox_core.studies.offers import offer_of
from topox_core.studies.study import Study
from topox_core.text.numbers import time

GPU_HOUR = "gpu_hour"
# Prices that have no range of their own move to half and twice.
_PARTS = {
    "nic": "Price of a NIC",
    "transceiver": "Price of a transceiver",
}
_RIVAL_PARTS = {
    "fixed": ("patch_panel_port", "Price of a patch-panel port"),
    "fat_tree": ("packet_switch", "Price of a packet switch"),
    "same_cost": ("packet_switch", "Price of a packet switch"),
}


@dataclass(frozen=True)
class Uncertain:
    """A figure that moves alone: its key in a study (none for the price of a GPU's hour) and its ends."""

    name: str
    key: str
    low: float
    high: float
    unit: str

    def words(self, value: float) -> str:
        """Return a value with its unit."""
        if self.unit == "ms":
            return time(value)
        text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        return f"${text}" if self.unit == "$" else f"{text} {self.unit}".strip()


def uncertain_figures(question: Question, offer: Choice, rival: Choice) -> tuple[Uncertain, ...]:
    """Return what the lead of an offer over a rival hangs on, figures with a range only."""
    one, assumed = offer_of(question.offers, offer.key), question.assumed
    figures = [
        Uncertain("Reconfiguration delay", DELAY, one.delay_ms.low, one.delay_ms.high, "ms"),
        Uncertain("Price of a switch port", PRICE, one.port_usd.low, one.port_usd.high, "$"),
        Uncertain("Power of a switch port", POWER, one.port_w.low, one.port_w.high, "W"),
    ]
    catalogue = priced_at(str(question.fixed.get("prices", SET_BY_SPEED)), question.fixed)
    parts = dict([*_PARTS.items(), _RIVAL_PARTS[rival.key]])
    for part, words in parts.items():
        usd = catalogue.part(part).price_usd
        figures.append(Uncertain(words, f"prices.{part}.price_usd", usd / 2, usd * 2, "$"))
    for name, key, figure, unit in (
        ("Hour of a GPU", GPU_HOUR, assumed.usd_per_gpu_hour, "$"),
        ("Electricity, per kWh", "running.usd_per_kwh", assumed.usd_per_kwh, "$"),
        ("Written off over", "running.years", assumed.years, "years"),
    ):
        figures.append(Uncertain(name, key, figure.low, figure.high, unit))
    return tuple(one for one in figures if one.low < one.high)


def tornado_study(
    question: Question, choice: Choice, figures: Sequence[Uncertain]
) -> tuple[Study, tuple[Choice, ...]]:
    """Return the study that moves each figure alone round a choice, the base first, and its points as choices.

    The design lists its points: one axis at a time has its base where the subject has it, not at an offer.

    A price changes no simulation: such points cost next to nothing.
    """
    keys = question.resolved.subject.keys
    moved = [one for one in figures if one.key != GPU_HOUR]
    if choice.rival:
        moved = [one for one in moved if one.key not in (DELAY, PRICE, POWER)]
    axes = tuple(
        Axis(keys[one.key], tuple(keys[one.key].value(value) for value in (one.low, one.high)))
        for one in moved
    )
    fixed = question.values(choice)
    names = [axis.key.name for axis in axes]
    base = tuple(fixed.get(name) for name in names)
    points = [base]
    for k, axis in enumerate(axes):
        points += [(*base[:k], value, *base[k + 1 :]) for value in axis.values]
    if not axes:
        return buying_study(question, [choice]), (choice,)
    study = Study(
        f"What the answer hangs on: {choice.title}"[:120],
        question.resolved.subject,
        axes,
        {name: value for name, value in fixed.items() if name not in names},
        Design("listed", listed=tuple(points)),
        MEASURES,
    )
    choices = []
    for point in points:
        given = zip(names, point, strict=True)
        moves = {name: value for name, value in given if value is not None}
        choices.append(replace(choice, values={**choice.values, **moves}))
    return study, tuple(choices)


def swings(
    question: Question,
    figures: Sequence[Uncertain],
    rows: Sequence[Row],
    rival_rows: Sequence[Row],
) -> tuple[Swing, ...]:
    """Return how far the lead swings with each figure, the widest first.

    Parameters
    ----------
    rows, rival_rows
        Of :func:`tornado_study`, the base first.
    """
    base = lead(question, rows[0], rival_rows[0])
    found = []
    for one in figures:
        ends = []
        for value in (one.low, one.high):
            moved = _assuming(question, one, value)
            mine, theirs = _moved(rows, one, value), _moved(rival_rows, one, value)
            ends.append((one.words(value), lead(moved, mine, theirs)))
        span = max(ends[0][1], ends[1][1], base) - min(ends[0][1], ends[1][1], base)
        if isfinite(span) and span >= 0.0005:
            found.append((span, Swing(one.name, ends[0], ends[1])))
    return tuple(swing for _, swing in sorted(found, key=lambda row: -row[0]))


def _moved(rows: Sequence[Row], one: Uncertain, value: float) -> Row:
    """Return the row in which a figure has a value; the base where it concerns another network."""
    for row in rows[1:]:
        if row.choice.values.get(one.key) == value and _only(row, rows[0], one.key):
            return row
    return rows[0]


def _only(row: Row, base: Row, key: str) -> bool:
    mine, theirs = row.choice.values, base.choice.values
    return all(mine.get(name) == theirs.get(name) for name in {*mine, *theirs} if name != key)


def _assuming(question: Question, one: Uncertain, value: float) -> Question:
    name = {
        GPU_HOUR: "usd_per_gpu_hour",
        "running.usd_per_kwh": "usd_per_kwh",
        "running.years": "years",
    }.get(one.key)
    if name is None:
        return question
    figure = getattr(question.assumed, name)
    return question.with_assumed(**{name: replace(figure, low=value, usual=value, high=value)})
