"""What networks cost and burn, stacked by part; dollars, watts and kilowatt-hours in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from topox_core.economics.networks import LINE_NAMES, NETWORKS, Bill
from topox_core.figures.palette import Theme, blend
from topox_core.figures.template import (
    HORIZONTAL_LEGEND,
    INSIDE,
    axis,
    frame,
    line,
    margins,
    named_axis,
    note,
    round_step,
)
from topox_core.text.numbers import NBSP, short

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
    "patch_panel_port": "#2877AC",
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
    "one_by_two_switch": "1-by-2 switches",
    "packet_port": "packet ports",
    "fibre_m": "fibre",
}
PLOT_PX = 220.0
ROOM_PX, LEAST_PX = 15.0, 10.0  # a part as high as this has its number, as large as it may be


_USD = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
_WATTS = ((1e6, "MW"), (1e3, "kW"))
_KWH = ((1e6, "GWh"), (1e3, "MWh"))


def money(usd: float) -> str:
    """Return dollars: $1.29 M, $455 k, $37.5."""
    return "$" + _in_units(usd, _USD, "")


def power(watts: float) -> str:
    """Return watts: 11.0 kW, 1.06 MW, 850 W."""
    return _in_units(watts, _WATTS, "W")


def energy(kwh: float) -> str:
    """Return kilowatt-hours: 126 MWh, 850 kWh."""
    return _in_units(kwh, _KWH, "kWh")


def amount_words(value: float, measure: str) -> str:
    """Return a cost in dollars or a power in watts."""
    return money(value) if measure == "cost" else power(value)


def _in_units(value: float, units: Sequence[tuple[float, str]], smallest: str) -> str:
    for factor, unit in units:
        if abs(value) >= factor * 0.9995:
            return f"{short(value / factor)}{NBSP}{unit}"
    return f"{short(value)}{NBSP}{smallest}" if smallest else short(value)


def part_colour(part: str, theme: Theme) -> str:
    """Return the colour of a part."""
    return (_LIGHT if theme.name == "light" else _DARK)[part]


def stacked(
    bills: Mapping[str, Bill], measure: str, theme: Theme, infeasible: Sequence[str] = ()
) -> go.Figure:
    """Return a bar a network, stacked by part, its total on top.

    Parameters
    ----------
    measure
        ``cost`` (dollars) or ``power`` (watts).
    infeasible
        Networks that cannot be built at this size: their total carries a cross.
    """
    names = list(bills)
    totals = [bills[name].amount(measure) for name in names]
    top = max([1e-9, *totals])
    factor, unit = unit_of(top, measure)
    figure = go.Figure()
    base = np.zeros(len(names))
    for part in ORDER:
        values = np.array(
            [
                sum(line.amount(measure) for line in bills[name].lines if line.part == part)
                for name in names
            ]
        )
        if not values.any():
            continue
        counts = [bills[name].count(part) for name in names]
        shown = values > 0
        figure.add_bar(
            x=[k for k, on in enumerate(shown) if on],
            y=values[shown] / factor,
            base=base[shown] / factor,
            width=0.62,
            name=SHORT_PARTS.get(part, LINE_NAMES[part]),
            marker=_marker(part, theme),
            text=[
                short(v / factor) if v / top * PLOT_PX >= LEAST_PX else "" for v in values[shown]
            ],
            **INSIDE,
            textfont={
                "size": [
                    (11.5 if v / top * PLOT_PX >= ROOM_PX else 9.5) * theme.scale
                    for v in values[shown]
                ],
                "color": "#FFFFFF" if part in _WHITE_TEXT[theme.name] else "#10151C",
            },
            customdata=[
                [NETWORKS[names[k]], f"{counts[k]:,.6g}", amount_words(values[k], measure)]
                for k, on in enumerate(shown)
                if on
            ],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]} "
            + LINE_NAMES[part]
            + ": %{customdata[2]}<extra></extra>",
        )
        base += values
    marks = []
    for k, (name, total) in enumerate(zip(names, totals, strict=True)):
        cross, colour = (" ✗", theme.bad) if name in infeasible else ("", theme.ink)
        text = f"<b>{amount_words(total, measure)}</b>{cross}"
        above = {"yanchor": "bottom", "yshift": 3}
        marks.append(note(text, k, total / factor, 12.5 * theme.scale, colour, **above))
    return frame(
        figure,
        theme,
        318 * theme.scale,
        showlegend=True,
        annotations=marks,
        barmode="overlay",
        margin=margins(46 * theme.scale, 8, 30 * theme.scale, 40 * theme.scale),
        legend={
            **HORIZONTAL_LEGEND,
            "yanchor": "bottom",
            "y": 1.02,
            "xanchor": "left",
            "x": -0.09,
            "traceorder": "reversed",
            "font": {"size": 12 * theme.scale, "color": theme.ink},
        },
        xaxis=named_axis(
            theme,
            [SHORT_NAMES[name] for name in names],
            size=12,
            colour=theme.ink,
            range=[-0.5, len(names) - 0.5],
        ),
        yaxis=axis(
            theme,
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
    units = _USD if measure == "cost" else _WATTS
    return next(
        ((factor, unit) for factor, unit in units if top >= factor * 0.5),
        (1.0, "" if measure == "cost" else "W"),
    )


def _marker(part: str, theme: Theme) -> dict[str, Any]:
    colour = part_colour(part, theme)
    marker: dict[str, Any] = {"color": colour, "line": line(theme.page, 1)}
    if part in _PATTERN:
        faint = blend(colour, theme.page, 0.4)  # so that a number on it can be read
        pattern = {"shape": _PATTERN[part], "size": 9, "solidity": 0.16}
        marker["pattern"] = {**pattern, "fgcolor": faint, "bgcolor": colour}
    return marker
