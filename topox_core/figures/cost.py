"""What networks cost and burn: stacked by part, and what the saving hangs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.economics.comparison import Swing
from topox_core.economics.networks import LINE_NAMES, NETWORKS, Bill
from topox_core.figures.palette import Theme
from topox_core.figures.template import axis, frame, round_step
from topox_core.text.numbers import NBSP, percent, short

# Two greys and one accent, as optics are what the page is about; parts counted only on request have
# patterns.
_LIGHT = {
    "packet_port": "#5B6673",
    "packet_switch": "#5B6673",
    "transceiver": "#B4BDC8",
    "ocs_port": "#0072B2",
    "patch_panel_port": "#6FAED4",
    "one_by_two_switch": "#A9CFE6",
    "nic": "#98A2AD",
    "fibre_m": "#D9DEE4",
}
_DARK = {
    "packet_port": "#8793A1",
    "packet_switch": "#8793A1",
    "transceiver": "#465361",
    "ocs_port": "#56B4E9",
    "patch_panel_port": "#2F7FB5",
    "one_by_two_switch": "#1F5A82",
    "nic": "#5A6572",
    "fibre_m": "#2C3744",
}
_PATTERN = {"nic": "\\", "fibre_m": ".", "one_by_two_switch": "x"}
_WHITE_TEXT = {
    "light": ("packet_port", "packet_switch", "ocs_port"),
    "dark": ("transceiver", "patch_panel_port", "one_by_two_switch", "nic", "fibre_m"),
}
ORDER = (
    "packet_port",
    "packet_switch",
    "transceiver",
    "nic",
    "fibre_m",
    "patch_panel_port",
    "one_by_two_switch",
    "ocs_port",
)
SHORT_NAMES = {
    "fat_tree": "Fat-tree",
    "rail_optimized": "Rail-<br>optimised",
    "rail_only": "Rail only",
    "topoopt_patch_panel": "TopoOpt,<br>panel",
    "topoopt_ocs": "TopoOpt,<br>OCS",
    "photonic_rails": "Photonic<br>rails",
}
# Shorter than on a bill, so that a legend or a table's head fits one line.
SHORT_PARTS = {
    "ocs_port": "optical ports",
    "patch_panel_port": "panel ports",
    "one_by_two_switch": "1 x 2",
    "packet_port": "packet ports",
    "fibre_m": "fibre",
}
PLOT_PX = 210.0
TORNADO_PX = 190.0  # of the bars, without their labels, on a laptop


def money(usd: float) -> str:
    """Return dollars: $1.29 M, $455 k, $37.5."""
    for factor, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(usd) >= factor * 0.9995:
            return f"${short(usd / factor)}{NBSP}{unit}"
    return f"${short(usd)}"


def power(watts: float) -> str:
    """Return watts: 11.0 kW, 1.06 MW, 850 W."""
    for factor, unit in ((1e6, "MW"), (1e3, "kW")):
        if abs(watts) >= factor * 0.9995:
            return f"{short(watts / factor)}{NBSP}{unit}"
    return f"{short(watts)}{NBSP}W"


def energy(kwh: float) -> str:
    """Return kilowatt-hours: 126 MWh, 850 kWh."""
    for factor, unit in ((1e6, "GWh"), (1e3, "MWh")):
        if abs(kwh) >= factor * 0.9995:
            return f"{short(kwh / factor)}{NBSP}{unit}"
    return f"{short(kwh)}{NBSP}kWh"


def part_colour(part: str, theme: Theme) -> str:
    """Return the colour of a part."""
    return (_LIGHT if theme.name == "light" else _DARK)[part]


def amount(found: Any, measure: str) -> float:
    """Return the cost or the power of a bill or a line."""
    return float(found.cost_usd if measure == "cost" else found.power_w)


def stacked(
    bills: Mapping[str, Bill],
    measure: str,
    theme: Theme,
    scale: float = 1.0,
    infeasible: Sequence[str] = (),
) -> go.Figure:
    """Return a bar a network, stacked by part, its total on top.

    Parameters
    ----------
    measure
        ``cost`` (dollars) or ``power`` (watts).
    infeasible
        Networks that cannot be built at this size: their total carries a cross.
    """
    words = money if measure == "cost" else power
    names = list(bills)
    totals = [amount(bills[name], measure) for name in names]
    top = max([1e-9, *totals])
    factor, unit = unit_of(top, measure)
    figure = go.Figure()
    base = np.zeros(len(names))
    for part in ORDER:
        values = np.array(
            [
                sum(amount(line, measure) for line in bills[name].lines if line.part == part)
                for name in names
            ]
        )
        if not values.any():
            continue
        counts = [bills[name].count(part) for name in names]
        shown = values > 0
        figure.add_trace(
            go.Bar(
                x=[k for k, on in enumerate(shown) if on],
                y=values[shown] / factor,
                base=base[shown] / factor,
                width=0.62,
                name=SHORT_PARTS.get(part, LINE_NAMES[part]),
                marker=_marker(part, theme),
                text=[short(v / factor) if v / top * PLOT_PX >= 15 else "" for v in values[shown]],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                constraintext="none",
                textfont={
                    "size": 11.5 * scale,
                    "color": "#FFFFFF" if part in _WHITE_TEXT[theme.name] else "#10151C",
                },
                customdata=[
                    [NETWORKS[names[k]], f"{counts[k]:,.6g}", words(values[k])]
                    for k, on in enumerate(shown)
                    if on
                ],
                hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} "
                + LINE_NAMES[part]
                + ": %{customdata[2]}<extra></extra>",
            )
        )
        base += values
    marks = [
        {
            "x": k,
            "y": total / factor,
            "yanchor": "bottom",
            "yshift": 3,
            "showarrow": False,
            "text": f"<b>{words(total)}</b>{' ✗' if names[k] in infeasible else ''}",
            "font": {
                "size": 12.5 * scale,
                "color": theme.bad if names[k] in infeasible else theme.ink,
            },
        }
        for k, total in enumerate(totals)
    ]
    return frame(
        figure,
        theme,
        318 * scale,
        scale,
        showlegend=True,
        annotations=marks,
        barmode="overlay",
        margin={"l": 46 * scale, "r": 8, "t": 30 * scale, "b": 40 * scale, "pad": 0},
        legend={
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.02,
            "xanchor": "left",
            "x": -0.09,
            "itemclick": False,
            "itemdoubleclick": False,
            "traceorder": "reversed",
            "font": {"size": 12 * scale, "color": theme.ink},
        },
        xaxis=axis(
            theme,
            scale,
            range=[-0.5, len(names) - 0.5],
            tickvals=list(range(len(names))),
            ticks="",
            ticktext=[SHORT_NAMES[name] for name in names],
            tickfont={"size": 12 * scale, "color": theme.ink},
        ),
        yaxis=axis(
            theme,
            scale,
            grid=True,
            range=[0, top / factor * 1.12],
            **value_ticks(top / factor, "$" if measure == "cost" else "", unit),
        ),
    )


def value_ticks(top: float, prefix: str, unit: str) -> dict[str, Any]:
    """Return about five ticks from 0 to ``top`` with their words; 0 has no unit."""
    step = round_step(top / 6)
    ticks = [k * step for k in range(int(top * 1.1 / step) + 1)]
    suffix = NBSP + unit if unit else ""
    return {
        "tickvals": ticks,
        "ticktext": [f"{prefix}{t:,.6g}{suffix if t else ''}" for t in ticks],
    }


def unit_of(top: float, measure: str) -> tuple[float, str]:
    """Return the factor and the unit of an axis that ends at ``top``."""
    units = (
        ((1e9, "B"), (1e6, "M"), (1e3, "k")) if measure == "cost" else ((1e6, "MW"), (1e3, "kW"))
    )
    return next(
        ((factor, unit) for factor, unit in units if top >= factor * 0.5),
        (1.0, "" if measure == "cost" else "W"),
    )


def _marker(part: str, theme: Theme) -> dict[str, Any]:
    marker: dict[str, Any] = {
        "color": part_colour(part, theme),
        "line": {"color": theme.page, "width": 1},
    }
    if part in _PATTERN:
        marker["pattern"] = {
            "shape": _PATTERN[part],
            "size": 9,
            "solidity": 0.16,
            "fgcolor": _towards(
                part_colour(part, theme), theme.page
            ),  # faint, so that a number on it can be read
            "bgcolor": part_colour(part, theme),
        }
    return marker


def _towards(colour: str, other: str) -> str:
    """Return a colour two fifths of the way to another."""
    mixed = (
        round(0.6 * int(colour[i : i + 2], 16) + 0.4 * int(other[i : i + 2], 16)) for i in (1, 3, 5)
    )
    return "#" + "".join(f"{value:02X}" for value in mixed)


def tornado(swings: Sequence[Swing], base: float, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return the saving's swings round where it is now, the widest on top; each end carries what moved and the saving there.

    Parameters
    ----------
    base
        The saving now, as a share.
    """
    figure = go.Figure()
    smaller, larger = (theme.line, "#4A5666" if theme.name == "light" else "#AEB9C6")
    marks: list[dict[str, Any]] = []
    ends_all = [base]
    for side, colour, words in ((-1, smaller, "smaller saving"), (1, larger, "larger saving")):
        rows = [
            (k, end)
            for k, swing in enumerate(swings)
            for end in (swing.low, swing.high)
            if end is not None and (end[1] - base) * side > 1e-12
        ]
        # Where both ends lie on one side, the longer is drawn beneath, so that neither hides the
        # other.
        rows.sort(key=lambda row: -abs(row[1][1] - base))
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=[k for k, _ in rows],
                x=[100 * (end[1] - base) for _, end in rows],
                base=100 * base,
                width=0.56,
                name=words,
                marker={"color": colour, "line": {"color": theme.page, "width": 1}},
                customdata=[[swings[k].name, end[0], percent(end[1])] for k, end in rows],
                hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}: saving %{customdata[2]}<extra></extra>",
            )
        )
        seen: set[int] = set()
        for k, end in rows:
            ends_all.append(end[1])
            if k in seen:
                continue
            seen.add(k)
            told = f"<b>{_whole_percent(end[1])}</b>"
            marks.append(
                {
                    "x": 100 * end[1],
                    "y": k,
                    "xanchor": "left" if side > 0 else "right",
                    "xshift": 6 * side,
                    "showarrow": False,
                    "text": f"{told}&nbsp; {end[0]}" if side > 0 else f"{end[0]}&nbsp; {told}",
                    "font": {"size": 11.5 * scale, "color": theme.ink},
                }
            )
    low, high = 100 * min(ends_all), 100 * max(ends_all)
    room = max(high - low, 4.0)
    before, after = (
        _label_room([mark["text"] for mark in marks if mark["xanchor"] == side])
        for side in ("right", "left")
    )
    return frame(
        figure,
        theme,
        (29 * max(1, len(swings)) + 60) * scale,
        scale,
        showlegend=True,
        annotations=marks,
        shapes=[
            {
                "type": "line",
                "xref": "x",
                "yref": "paper",
                "x0": 100 * base,
                "x1": 100 * base,
                "y0": 0,
                "y1": 1,
                "line": {"color": theme.ink, "width": 1.5},
            }
        ],
        margin={"l": 178 * scale, "r": 8, "t": 26 * scale, "b": 28 * scale, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            grid=True,
            range=[low - before * room, high + after * room],
            ticksuffix=f"{NBSP}%",
            nticks=7,
        ),
        yaxis=axis(
            theme,
            scale,
            range=[len(swings) - 0.4, -0.6],
            tickvals=list(range(len(swings))),
            ticks="",
            ticktext=[swing.name for swing in swings],
            tickfont={"size": 12 * scale, "color": theme.ink},
        ),
    )


def _label_room(texts: Sequence[str]) -> float:
    """Return what the longest label beside a bar needs, as a share of what all bars need (on a laptop)."""
    wide = max(
        (len(text.replace("<b>", "").replace("</b>", "").replace("&nbsp;", " ")) for text in texts),
        default=0,
    )
    return max(0.12, (6.3 * wide + 12) / TORNADO_PX)


def _whole_percent(share: float) -> str:
    return f"{100 * share:.0f}{NBSP}%".replace("-", "−")
