"""What networks cost by cluster size and by year, and what a dollar of network buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from topox_core.economics.comparison import Year
from topox_core.economics.networks import NETWORKS, Bill
from topox_core.figures.cost import amount_words, energy, money, part_colour, unit_of, value_ticks
from topox_core.figures.palette import Theme, blend
from topox_core.figures.template import (
    axis,
    frame,
    line,
    margins,
    note,
    opaque,
    row_axis,
    sideways_bars,
    upright,
)
from topox_core.text.numbers import short

HEIGHT = 290


class Style(NamedTuple):
    """Colour, dash and width of a line."""

    colour: str
    dash: str
    width: float


def _style(network: str, theme: Theme) -> Style:
    """Return a network's line: greys for packets, blue for optics."""
    optical = part_colour("ocs_port", theme)
    return {
        "fat_tree": Style(theme.ink, "dash", 1.6),
        "rail_optimized": Style(theme.ink, "solid", 1.8),
        "rail_only": Style(theme.muted, "solid", 1.8),
        "topoopt_patch_panel": Style(part_colour("patch_panel_port", theme), "dot", 1.8),
        "topoopt_ocs": Style(optical, "dash", 1.8),
        "photonic_rails": Style(optical, "solid", 3),
    }[network]


def by_size(
    curves: Mapping[str, Sequence[Bill]],
    measure: str,
    now: int,
    theme: Theme,
    most_photonic: float = float("inf"),
) -> go.Figure:
    """Return cost or power a GPU by cluster size; photonic rails are dotted beyond their ports.

    Parameters
    ----------
    now
        The size that the page shows: a vertical line.
    most_photonic
        GPUs that the optical switch can join; beyond, the line is thin and dotted.
    """
    figure = go.Figure()
    for network, bills in curves.items():
        limit = most_photonic if network == "photonic_rails" else float("inf")
        within = [one for one in bills if one.gpus <= limit]
        beyond = [one for one in bills if one.gpus > limit]
        style = _style(network, theme)
        if within:
            figure.add_trace(_line(within, NETWORKS[network], measure, style, theme.scale))
        if beyond:
            bills, name = [*within[-1:], *beyond], NETWORKS[network] + ", too few ports"
            too_few = _line(
                bills, name, measure, style._replace(dash="dot", width=1.4), theme.scale
            )
            too_few.marker.color = theme.page
            figure.add_trace(too_few)
    sizes = sorted({int(one.gpus) for bills in curves.values() for one in bills})
    values = [
        each for bills in curves.values() for one in bills if (each := _a_gpu(one, measure)) > 0
    ]
    low, high = (
        np.log10(min(values, default=1.0)) - 0.08,
        np.log10(max(values, default=10.0)) + 0.08,
    )
    steps = (1, 2, 5) if high - low > 0.8 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    ticks = [step * 10.0**decade for decade in range(-3, 7) for step in steps]
    every = sizes[::-1][:: max(1, -(-len(sizes) // 7))][::-1]
    return frame(
        figure,
        theme,
        HEIGHT * theme.scale,
        shapes=[upright(now, line(theme.muted, 1, "dot"))],
        annotations=_names(curves, measure, (low, high), theme),
        margin=margins(54 * theme.scale, 128 * theme.scale, 10, 42 * theme.scale),
        xaxis=axis(
            theme,
            type="log",
            title="GPUs, logarithmic",
            tickvals=every,
            ticktext=[f"{n:,}" for n in every],
        ),
        yaxis=axis(
            theme,
            grid=True,
            type="log",
            range=[low, high],
            tickvals=ticks,
            ticktext=[f"${t:,g}" if measure == "cost" else f"{t:,g} W" for t in ticks],
        ),
    )


def _a_gpu(bill: Bill, measure: str) -> float:
    return bill.amount(measure) / bill.gpus


def _line(bills: Sequence[Bill], name: str, measure: str, style: Style, scale: float) -> go.Scatter:
    amounts = [one.amount(measure) for one in bills]
    return go.Scatter(
        x=[one.gpus for one in bills],
        y=[_a_gpu(one, measure) for one in bills],
        mode="lines+markers",
        name=name,
        line=line(style.colour, style.width, style.dash),
        marker=opaque(
            (6 if style.width > 2 else 4) * scale, style.colour, line=line(style.colour, 1)
        ),
        customdata=[
            [
                amount_words(amount, measure),
                amount_words(amount / one.gpus, measure),
                f"{one.gpus:,}",
            ]
            for amount, one in zip(amounts, bills, strict=True)
        ],
        hovertemplate=f"<b>{name}</b><br>%{{customdata[2]}} GPUs: %{{customdata[0]}}, "
        "%{customdata[1]} a GPU<extra></extra>",
    )


def _names(
    curves: Mapping[str, Sequence[Bill]], measure: str, span: tuple[float, float], theme: Theme
) -> list[dict[str, Any]]:
    """Return each line's name at its right end, moved apart where lines meet."""
    least = (span[1] - span[0]) * 15 / (HEIGHT - 52)
    ends = sorted(
        (float(np.log10(each)), network)
        for network, bills in curves.items()
        if bills and (each := _a_gpu(bills[-1], measure)) > 0
    )
    places = [end for end, _ in ends]
    for _ in range(60):
        for k in range(1, len(places)):
            short_of = least - (places[k] - places[k - 1])
            if short_of > 1e-9:
                places[k - 1], places[k] = places[k - 1] - short_of / 2, places[k] + short_of / 2
        places = [
            min(max(place, span[0] + k * least), span[1] - (len(places) - 1 - k) * least)
            for k, place in enumerate(places)
        ]
    words = {
        **NETWORKS,
        # Told from another line of its colour.
        "fat_tree": f"{NETWORKS['fat_tree']}, dashed",
        "photonic_rails": f"<b>{NETWORKS['photonic_rails']}</b>",
    }
    at_right = {"xref": "paper", "xanchor": "left", "xshift": 4}
    pale = "topoopt_patch_panel"  # a colour for lines, too faint for words
    return [
        note(
            words[network],
            1,
            place,
            11.5 * theme.scale,
            blend(_style(network, theme).colour, theme.ink, 0.5 if network == pale else 0.0),
            **at_right,
        )
        for place, (_, network) in zip(places, ends, strict=True)
    ]


def yearly(years: Mapping[str, Year], theme: Theme) -> go.Figure:
    """Return a bar of dollars a year a network: its share of the purchase, and electricity."""
    names = list(years)
    rows = list(range(len(names)))
    figure = go.Figure()
    purchase = [years[name].purchase_usd for name in names]
    electric = [years[name].electricity_usd for name in names]
    top = max([1e-9, *(years[name].total_usd for name in names)])
    factor, unit = unit_of(top, "cost")
    for words, values, starts, colour in (
        ("purchase, written off", purchase, [0.0] * len(names), part_colour("transceiver", theme)),
        ("electricity", electric, purchase, theme.muted if theme.name == "light" else "#C3CCD7"),
    ):
        figure.add_trace(
            sideways_bars(
                [start / factor for start in starts],
                [value / factor for value in values],
                rows,
                words,
                {"color": colour, "line": line(theme.page, 1)},
                width=0.58,
                customdata=[
                    [NETWORKS[name], money(value), energy(years[name].energy_kwh)]
                    for name, value in zip(names, values, strict=True)
                ],
                hovertemplate="<b>%{customdata[0]}</b><br>"
                + words
                + " %{customdata[1]} a year; %{customdata[2]}<extra></extra>",
            )
        )
    marks = []
    for k, year in enumerate(years.values()):
        text = f"<b>{money(year.total_usd)}</b>&nbsp; {energy(year.energy_kwh)}"
        beside = {"xanchor": "left", "xshift": 7}
        marks.append(note(text, year.total_usd / factor, k, 12 * theme.scale, theme.ink, **beside))
    return frame(
        figure,
        theme,
        (36 * len(names) + 66) * theme.scale,
        showlegend=True,
        annotations=marks,
        margin=margins(140 * theme.scale, 8, 28 * theme.scale, 28 * theme.scale),
        xaxis=axis(
            theme, grid=True, range=[0, top / factor * 1.36], **value_ticks(top / factor, "$", unit)
        ),
        yaxis=row_axis(theme, [NETWORKS[name] for name in names], 12),
    )


def worth(rows: Sequence[tuple[str, str, float]], theme: Theme) -> go.Figure:
    """Return a bar for each of ``rows``: (fabric, label, iterations for a dollar of network)."""
    top = max([1e-9, *(value for _, _, value in rows)])
    figure = go.Figure().add_bar(
        orientation="h",
        y=list(range(len(rows))),
        x=[value for _, _, value in rows],
        width=0.58,
        marker={
            "color": [theme.fabric_colour(fabric) for fabric, _, _ in rows],
            "line": line(theme.line, 0.5),
        },
        text=[short(value) for _, _, value in rows],
        textposition="outside",
        cliponaxis=False,
        textangle=0,
        textfont={"size": 12 * theme.scale, "color": theme.ink},
        customdata=[[label, f"{value:.6g}"] for _, label, value in rows],
        hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} iterations for a dollar<extra></extra>",
    )
    return frame(
        figure,
        theme,
        (34 * len(rows) + 44) * theme.scale,
        margin=margins(140 * theme.scale, 8, 4, 30 * theme.scale),
        xaxis=axis(theme, grid=True, range=[0, 1.2 * top], nticks=5, tickangle=0, tickformat="~s"),
        yaxis=row_axis(theme, [label for _, label, _ in rows], 12),
    )
