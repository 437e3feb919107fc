"""What networks cost by cluster size and by year, and what a dollar of network buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.economics.comparison import Year
from topox_core.economics.networks import NETWORKS, Bill
from topox_core.figures.cost import amount, energy, money, part_colour, power, unit_of, value_ticks
from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame
from topox_core.text.numbers import short

HEIGHT = 290
# Colour, dash and width of each network's line: greys for packets, blue for optics.
_LINES = {
    "fat_tree": ("ink", "dash", 1.6),
    "rail_optimized": ("ink", "solid", 1.8),
    "rail_only": ("muted", "solid", 1.8),
    "topoopt_patch_panel": ("patch", "dot", 1.8),
    "topoopt_ocs": ("optical", "dash", 1.8),
    "photonic_rails": ("optical", "solid", 3),
}


def by_size(
    curves: Mapping[str, Sequence[Bill]],
    measure: str,
    now: int,
    theme: Theme,
    scale: float = 1.0,
    most_photonic: float = float("inf"),
) -> go.Figure:
    """Return cost or power a GPU against the number of GPUs; photonic rails are dotted where switches run out of ports.

    Parameters
    ----------
    now
        The size that the page shows: a vertical line.
    most_photonic
        GPUs that the optical switch can join; beyond, the line is thin and dotted.
    """
    colours = {
        "ink": theme.ink,
        "muted": theme.muted,
        "optical": part_colour("ocs_port", theme),
        "patch": part_colour("patch_panel_port", theme),
    }
    figure = go.Figure()
    for network, found in curves.items():
        colour, dash, width = _LINES[network]
        limit = most_photonic if network == "photonic_rails" else float("inf")
        within, beyond = (
            [one for one in found if one.gpus <= limit],
            [one for one in found if one.gpus > limit],
        )
        if within:
            figure.add_trace(
                _line(within, network, "", measure, colours[colour], dash, width, scale)
            )
        if beyond:
            too_few = _line(
                [*within[-1:], *beyond],
                network,
                ", too few ports",
                measure,
                colours[colour],
                "dot",
                1.4,
                scale,
            )
            too_few.marker.color = theme.page
            figure.add_trace(too_few)
    sizes = sorted({int(one.gpus) for found in curves.values() for one in found})
    values = [
        each
        for found in curves.values()
        for one in found
        if (each := amount(one, measure) / one.gpus) > 0
    ]
    low, high = (
        np.log10(min(values, default=1.0)) - 0.08,
        np.log10(max(values, default=10.0)) + 0.08,
    )
    steps = (1, 2, 5) if high - low > 0.8 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    ticks = [step * 10.0**decade for decade in range(-3, 7) for step in steps]
    every = max(1, -(-len(sizes) // 7))
    now_line = {"type": "line", "x0": now, "x1": now, "yref": "paper", "y0": 0, "y1": 1}
    return frame(
        figure,
        theme,
        HEIGHT * scale,
        scale,
        shapes=[now_line | {"line": {"color": theme.muted, "width": 1, "dash": "dot"}}],
        annotations=_names(curves, measure, (low, high), colours, scale),
        margin={"l": 54 * scale, "r": 128 * scale, "t": 10, "b": 42 * scale, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            type="log",
            title="GPUs, logarithmic",
            tickvals=sizes[::-1][::every][::-1],
            ticktext=[f"{n:,}" for n in sizes[::-1][::every][::-1]],
        ),
        yaxis=axis(
            theme,
            scale,
            grid=True,
            type="log",
            range=[low, high],
            tickvals=ticks,
            ticktext=[f"${t:,g}" if measure == "cost" else f"{t:,g} W" for t in ticks],
        ),
    )


def _line(
    found: Sequence[Bill],
    network: str,
    suffix: str,
    measure: str,
    colour: str,
    dash: str,
    width: float,
    scale: float,
) -> go.Scatter:
    words = money if measure == "cost" else power
    return go.Scatter(
        x=[one.gpus for one in found],
        y=[amount(one, measure) / one.gpus for one in found],
        mode="lines+markers",
        name=NETWORKS[network] + suffix,
        line={"color": colour, "dash": dash, "width": width},
        marker={
            "size": (6 if width > 2 else 4) * scale,
            "color": colour,
            "opacity": 1,
            "line": {"color": colour, "width": 1},
        },
        customdata=[
            [words(amount(one, measure)), words(amount(one, measure) / one.gpus), f"{one.gpus:,}"]
            for one in found
        ],
        hovertemplate=f"<b>{NETWORKS[network]}{suffix}</b><br>%{{customdata[2]}} GPUs: %{{customdata[0]}}, "
        "%{customdata[1]} a GPU<extra></extra>",
    )


def _names(
    curves: Mapping[str, Sequence[Bill]],
    measure: str,
    span: tuple[float, float],
    colours: Mapping[str, str],
    scale: float,
) -> list[dict[str, Any]]:
    """Return each line's name at its right end, moved apart where lines meet."""
    least = (span[1] - span[0]) * 15 / (HEIGHT - 52)
    ends = sorted(
        (float(np.log10(each)), network)
        for network, found in curves.items()
        if found and (each := amount(found[-1], measure) / found[-1].gpus) > 0
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
    return [
        {
            "x": 1,
            "xref": "paper",
            "y": place,
            "xanchor": "left",
            "xshift": 4,
            "showarrow": False,
            "text": f"<b>{NETWORKS[network]}</b>"
            if network == "photonic_rails"
            else NETWORKS[network] + _dashed(network),
            "font": {"size": 11.5 * scale, "color": colours[_LINES[network][0]]},
        }
        for place, (_, network) in zip(places, ends, strict=True)
    ]


def _dashed(network: str) -> str:
    """Return the word that tells a line from another one of its colour."""
    return ", dashed" if network == "fat_tree" else ""


def yearly(years: Mapping[str, Year], theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return a bar of dollars a year for each network: the share of the purchase, and electricity."""
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
            go.Bar(
                orientation="h",
                y=rows,
                x=[v / factor for v in values],
                base=[s / factor for s in starts],
                width=0.58,
                name=words,
                marker={"color": colour, "line": {"color": theme.page, "width": 1}},
                customdata=[
                    [NETWORKS[name], money(value), energy(years[name].energy_kwh)]
                    for name, value in zip(names, values, strict=True)
                ],
                hovertemplate="<b>%{customdata[0]}</b><br>"
                + words
                + " %{customdata[1]} a year; %{customdata[2]}<extra></extra>",
            )
        )
    marks = [
        {
            "x": years[name].total_usd / factor,
            "y": k,
            "xanchor": "left",
            "xshift": 7,
            "showarrow": False,
            "text": f"<b>{money(years[name].total_usd)}</b>&nbsp; {energy(years[name].energy_kwh)}",
            "font": {"size": 12 * scale, "color": theme.ink},
        }
        for k, name in enumerate(names)
    ]
    return frame(
        figure,
        theme,
        (36 * len(names) + 66) * scale,
        scale,
        showlegend=True,
        annotations=marks,
        margin={"l": 140 * scale, "r": 8, "t": 28 * scale, "b": 28 * scale, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            grid=True,
            range=[0, top / factor * 1.36],
            **value_ticks(top / factor, "$", unit),
        ),
        yaxis=axis(
            theme,
            scale,
            range=[len(names) - 0.45, -0.55],
            tickvals=rows,
            ticks="",
            ticktext=[NETWORKS[name] for name in names],
            tickfont={"size": 12 * scale, "color": theme.ink},
        ),
    )


def worth(rows: Sequence[tuple[str, str, float]], theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return iterations for a dollar of network, a bar a fabric: (fabric, label, iterations for a dollar)."""
    place = list(range(len(rows)))
    top = max([1e-9, *(value for _, _, value in rows)])
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=place,
            x=[value for _, _, value in rows],
            width=0.58,
            marker={
                "color": [theme.fabric_colour(fabric) for fabric, _, _ in rows],
                "line": {"color": theme.line, "width": 0.5},
            },
            text=[short(value) for _, _, value in rows],
            textposition="outside",
            cliponaxis=False,
            textangle=0,
            textfont={"size": 12 * scale, "color": theme.ink},
            customdata=[[label, f"{value:.6g}"] for _, label, value in rows],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} iterations for a dollar<extra></extra>",
        )
    )
    return frame(
        figure,
        theme,
        (34 * len(rows) + 44) * scale,
        scale,
        margin={"l": 140 * scale, "r": 8, "t": 4, "b": 30 * scale, "pad": 0},
        xaxis=axis(
            theme, scale, grid=True, range=[0, 1.2 * top], nticks=5, tickangle=0, tickformat="~s"
        ),
        yaxis=axis(
            theme,
            scale,
            range=[len(rows) - 0.45, -0.55],
            tickvals=place,
            ticks="",
            ticktext=[label for _, label, _ in rows],
            tickfont={"size": 12 * scale, "color": theme.ink},
        ),
    )
