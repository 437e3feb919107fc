"""Rounds of a lab's four jobs, and what its networks cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import plotly.graph_objects as go

from topox_core.economics.comparison import tornado as swings_of
from topox_core.economics.networks import LINE_NAMES, NETWORKS
from topox_core.figures.cost import money, stacked
from topox_core.figures.palette import Theme
from topox_core.figures.picture import Asking, Picture
from topox_core.figures.template import DOTS, axis, frame, line, margins, note, row_axis, upright
from topox_core.figures.tornado import tornado as tornado_of
from topox_core.labs.generators.four_jobs import GROUPINGS, LONGER_TRAINING, NAMES, FourJobs
from topox_core.labs.generators.price import MINE, OTHER, Price
from topox_core.text.numbers import percent

ROW_PX = 28.0


def named_bars(
    names: Sequence[str],
    values: Sequence[float],
    unit: str,
    theme: Theme,
    marked: Collection[int] = (),
    bound: tuple[float, str] | None = None,
) -> go.Figure:
    """Return one bar a number, all from 0.

    Parameters
    ----------
    unit
        Of the numbers, written behind each.
    marked
        Bars that stand out.
    bound
        Where a dotted line goes, and its words.
    """
    words = [f"{value:,.4g} {unit}" for value in values]
    colours = [theme.primary if k in marked else theme.line for k in range(len(values))]
    figure = go.Figure().add_bar(
        orientation="h",
        x=list(values),
        y=list(range(len(values))),
        width=0.62,
        marker={"color": colours, "line": line(theme.muted, 0.5)},
        text=[f"<b>{one}</b>" if k in marked else one for k, one in enumerate(words)],
        textposition="outside",
        cliponaxis=False,
        textfont={"size": 12 * theme.scale, "color": theme.ink},
        customdata=[[name] for name in names],
        hovertemplate="<b>%{customdata[0]}</b>: %{text}<extra></extra>",
    )
    shapes, notes = [], []
    if bound is not None:
        at, label = bound
        shapes.append(upright(at, line(theme.ink, 2, DOTS)))
        place = {"yref": "paper", "yanchor": "bottom", "xanchor": "center"}
        notes.append(note(label, at, 1, 11.5 * theme.scale, theme.ink, **place))
    longest = max((len(name) for name in names), default=1)
    top = max([*values, bound[0] if bound else 0.0, 1e-9])
    return frame(
        figure,
        theme,
        (len(names) * ROW_PX + 58) * theme.scale,
        shapes=shapes,
        annotations=notes,
        margin=margins((18 + 6.6 * longest) * theme.scale, 8, 20 * theme.scale, 26 * theme.scale),
        xaxis=axis(theme, grid=True, range=[0, 1.22 * top], ticksuffix=f" {unit}", nticks=6),
        yaxis=row_axis(theme, names, 12),
    )


def moves(asking: Asking) -> list[Picture]:
    """Return the rounds of all single moves at their reveal; before the best is known, those that were tried."""
    one = asking.instance
    if not isinstance(one, FourJobs):
        return []
    if asking.screen.stage == "reveal" and not asking.hides("together", "asked"):
        names = [asking.say("round.none")]
        names += [asking.say("round.move", job=name) for name in NAMES]
        groupings = [GROUPINGS[0], "ABBB", "ABAA", "AABA", "AAAB"]
        return [_rounds(asking, "round", groupings, names)]
    tried = list(dict.fromkeys(asking.tried))
    return [_rounds(asking, "tried", tried, tried)] if tried else []


def every_round(asking: Asking) -> list[Picture]:
    """Return all eight rounds with their bound; with longer training once that was asked about."""
    one = asking.instance
    if not isinstance(one, FourJobs) or asking.hides("best"):
        return []
    pictures = [_rounds(asking, "rounds", [*GROUPINGS], [*GROUPINGS], bound=True)]
    if not asking.hides("longer_training"):
        values = [one.round_s(grouping, LONGER_TRAINING) for grouping in GROUPINGS]
        figure = named_bars(GROUPINGS, values, "s", asking.theme, [values.index(min(values))])
        pictures.append(
            Picture(
                "longer",
                asking.say("rounds.longer"),
                asking.say("rounds.longer_note"),
                figure,
                _alt(asking, GROUPINGS, values),
                asking.table(("name", "value"), _rows(GROUPINGS, values)),
            )
        )
    return pictures


def _rounds(
    asking: Asking, kind: str, groupings: list[str], names: list[str], bound: bool = False
) -> Picture:
    one: FourJobs = asking.instance
    values = [one.round_s(grouping) for grouping in groupings]
    line = None
    if bound:
        line = (one.bound_s, asking.say("rounds.bound", bound=f"{one.bound_s:g}"))
    figure = named_bars(names, values, "s", asking.theme, [values.index(min(values))], line)
    return Picture(
        kind,
        asking.say(f"{kind}.title"),
        asking.say(f"{kind}.note"),
        figure,
        _alt(asking, names, values),
        asking.table(("name", "value"), _rows(names, values)),
    )


def _alt(asking: Asking, names: object, values: list[int]) -> str:
    pairs = zip(names, values, strict=True)  # type: ignore[call-overload]
    return asking.say("round.alt", rounds=", ".join(f"{name} {value} s" for name, value in pairs))


def _rows(names: object, values: list[int]) -> list[tuple[str, str]]:
    return [(str(name), f"{value} s") for name, value in zip(names, values, strict=True)]  # type: ignore[call-overload]


def bills(asking: Asking) -> list[Picture]:
    """Return what both networks of instance *price* cost, by part."""
    one = asking.instance
    if not isinstance(one, Price) or asking.hides("photonic", "rail_only"):
        return []
    priced = {name: one.question().bill(name) for name in (OTHER, MINE)}
    said = "; ".join(f"{NETWORKS[name]} {money(bill.cost_usd)}" for name, bill in priced.items())
    rows = [
        (f"{NETWORKS[name]}: {LINE_NAMES[part.part]}", f"{part.amount('cost'):,.0f} $")
        for name, bill in priced.items()
        for part in bill.lines
    ]
    return [
        Picture(
            "bills",
            asking.say("bills.title"),
            asking.say("bills.note"),
            stacked(priced, "cost", asking.theme),
            asking.say("bills.alt", bills=said),
            asking.table(("name", "value"), rows),
        )
    ]


def swings(asking: Asking) -> list[Picture]:
    """Return how far the saving of instance *price* swings with each price."""
    one = asking.instance
    if not isinstance(one, Price) or asking.hides("mover", "saving"):
        return []
    rows = swings_of(one.question(), MINE, OTHER)
    base = one.saving_percent / 100
    ends = [
        (row.name, *(f"{end[0]}: {percent(end[1])}" if end else "–" for end in (row.low, row.high)))
        for row in rows
    ]
    said = "; ".join(f"{name}: {low}, {high}" for name, low, high in ends)
    return [
        Picture(
            "tornado",
            asking.say("tornado.title"),
            asking.say("tornado.note"),
            tornado_of(rows, base, asking.theme),
            asking.say("tornado.alt", saving=percent(base), swings=said),
            asking.table(("name", "value"), [(name, f"{low}; {high}") for name, low, high in ends]),
        )
    ]
