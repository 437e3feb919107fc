"""What networks cost and burn: stacked by part, by cluster size and by year; what a dollar of network buys."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from topox_core.economics.comparison import Year
from topox_core.economics.networks import LINE_NAMES, NETWORKS, Bill
from topox_core.figures.palette import Theme, blend, readable_on
from topox_core.figures.template import (
    HORIZONTAL_LEGEND,
    INSIDE,
    Look,
    axis,
    beside,
    frame,
    kept_apart,
    line,
    log_axis,
    margins,
    multiples,
    named_axis,
    note,
    opaque,
    outside,
    round_step,
    row_axis,
    sideways_bars,
    upright,
)
from topox_core.text.numbers import NBSP, amount_words, energy, money, unit_of

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
    "topoopt_patch_panel": "TopoOpt<br>panel",
    "topoopt_ocs": "TopoOpt<br>OCS",
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
PLOT_PX = 196.0  # of the highest bar: the axis goes on above it
ROOM_PX, MIN_PX = 15.0, 12.0  # a part as high as this has its number, as large as it may be


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
    # As many digits as the highest has: a phone's bars are narrow.
    decimals = 3 if top < factor else max(0, 3 - len(f"{top / factor:.0f}"))
    layers = []
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
        layers.append(
            go.Bar(
                x=[k for k, on in enumerate(shown) if on],
                y=values[shown] / factor,
                base=base[shown] / factor,
                width=0.62,
                name=SHORT_PARTS.get(part, LINE_NAMES[part]),
                marker=_marker(part, theme),
                text=[
                    f"{v / factor:.{decimals}f}" if v / top * PLOT_PX >= MIN_PX else ""
                    for v in values[shown]
                ],
                **INSIDE,
                textfont={
                    "size": [
                        (11.5 if v / top * PLOT_PX >= ROOM_PX else 9.5) * theme.scale
                        for v in values[shown]
                    ],
                    "color": readable_on(part_colour(part, theme)),
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
        )
        base += values
    marks = [
        note(
            f"<b>{amount_words(total, measure)}</b>{' ✗' if name in infeasible else ''}",
            k,
            total / factor,
            12.5 * theme.scale,
            theme.bad if name in infeasible else theme.ink,
            yanchor="bottom",
            yshift=3,
        )
        for k, (name, total) in enumerate(zip(names, totals, strict=True))
    ]
    return frame(
        layers,
        theme,
        318 * theme.scale,
        marks,
        showlegend=True,
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
            size=11,
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


def value_ticks(top: float, prefix: str, unit: str) -> Look:
    """Return about five ticks from 0 to ``top`` with their words; 0 has no unit."""
    ticks = multiples(round_step(top / 6), 0.0, top * 1.1)
    suffix = NBSP + unit if unit else ""
    return {
        "tickvals": ticks,
        "ticktext": [f"{prefix}{t:,.6g}{suffix if t else ''}" for t in ticks],
    }


def _marker(part: str, theme: Theme) -> Look:
    colour = part_colour(part, theme)
    marker: Look = {"color": colour, "line": line(theme.page, 1)}
    if part in _PATTERN:
        marker["pattern"] = {
            "shape": _PATTERN[part],
            "size": 9,
            "solidity": 0.16,
            "fgcolor": blend(colour, theme.page, 0.4),  # so that a number on it can be read
            "bgcolor": colour,
        }
    return marker


HEIGHT = 290


def _style(network: str, theme: Theme) -> Look:
    """Return a network's line: greys for packets, blue for optics."""
    optical = part_colour("ocs_port", theme)
    return {
        "fat_tree": line(theme.ink, 1.6, "dash"),
        "rail_optimized": line(theme.ink, 1.8, "solid"),
        "rail_only": line(theme.muted, 1.8, "solid"),
        "topoopt_patch_panel": line(part_colour("patch_panel_port", theme), 1.8, "dot"),
        "topoopt_ocs": line(optical, 1.8, "dash"),
        "photonic_rails": line(optical, 3, "solid"),
    }[network]


def by_size(
    curves: Mapping[str, Sequence[Bill]],
    measure: str,
    now: int,
    theme: Theme,
    most_photonic: float = float("inf"),
) -> go.Figure:
    """Return cost or power per GPU by cluster size; photonic rails are dotted beyond their ports.

    Parameters
    ----------
    now
        The size that the page shows: a vertical line.
    most_photonic
        GPUs that the optical switch can join; beyond, the line is thin and dotted.
    """
    layers = []
    for network, bills in curves.items():
        limit = most_photonic if network == "photonic_rails" else float("inf")
        within = [one for one in bills if one.gpus <= limit]
        beyond = [one for one in bills if one.gpus > limit]
        style = _style(network, theme)
        if within:
            layers.append(_line(within, NETWORKS[network], measure, style, theme.scale))
        if beyond:
            bills, name = [*within[-1:], *beyond], NETWORKS[network] + ", too few ports"
            style |= {"dash": "dot", "width": 1.4}
            layers.append(_line(bills, name, measure, style, theme.scale))
            layers[-1].marker.color = theme.page
    sizes = sorted({int(one.gpus) for bills in curves.values() for one in bills})
    every = [_a_gpu(one, measure) for bills in curves.values() for one in bills]
    low = min((each for each in every if each > 0), default=1.0) / 1.2
    high = max((each for each in every if each > 0), default=10.0) * 1.2
    span = float(np.log10(low)), float(np.log10(high))
    named = sizes[::-1][:: max(1, -(-len(sizes) // 7))][::-1]
    return frame(
        layers,
        theme,
        HEIGHT * theme.scale,
        [
            upright(now, line(theme.muted, 1, "dot")),
            *_names(curves, measure, span, theme),
        ],
        margin=margins(54 * theme.scale, 128 * theme.scale, 10, 42 * theme.scale),
        xaxis=axis(
            theme,
            type="log",
            title="GPUs, logarithmic",
            tickvals=named,
            ticktext=[f"{n:,}" for n in named],
        ),
        yaxis=log_axis(
            theme, low, high, "${:,g}".format if measure == "cost" else "{:,g} W".format, grid=True
        ),
    )


def _a_gpu(bill: Bill, measure: str) -> float:
    return bill.amount(measure) / bill.gpus


def _line(bills: Sequence[Bill], name: str, measure: str, style: Look, scale: float) -> go.Scatter:
    amounts = [one.amount(measure) for one in bills]
    return go.Scatter(
        x=[one.gpus for one in bills],
        y=[_a_gpu(one, measure) for one in bills],
        mode="lines+markers",
        name=name,
        line=style,
        marker=opaque(
            (6 if style["width"] > 2 else 4) * scale,
            style["color"],
            line=line(style["color"], 1),
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
        "%{customdata[1]} per GPU<extra></extra>",
    )


def _names(
    curves: Mapping[str, Sequence[Bill]], measure: str, span: tuple[float, float], theme: Theme
) -> list[Look]:
    """Return each line's name at its right end, moved apart where lines meet."""
    least = (span[1] - span[0]) * 15 / (HEIGHT - 52)
    ends = sorted(
        (float(np.log10(each)), network)
        for network, bills in curves.items()
        if bills and (each := _a_gpu(bills[-1], measure)) > 0
    )
    places = kept_apart([end for end, _ in ends], least, span[1])
    words = {
        **NETWORKS,
        # Told from another line of its colour.
        "fat_tree": f"{NETWORKS['fat_tree']}, dashed",
        "photonic_rails": f"<b>{NETWORKS['photonic_rails']}</b>",
    }
    pale = "topoopt_patch_panel"  # a colour for lines, too faint for words
    return [
        note(
            words[network],
            1,
            place,
            11.5 * theme.scale,
            blend(_style(network, theme)["color"], theme.ink, 0.5 if network == pale else 0.0),
            xref="paper",
            xanchor="left",
            xshift=4,
        )
        for place, (_, network) in zip(places, ends, strict=True)
    ]


def yearly(years: Mapping[str, Year], theme: Theme) -> go.Figure:
    """Return a bar of dollars per year a network: its share of the purchase, and electricity."""
    purchase = [year.purchase_usd for year in years.values()]
    electric = [year.electricity_usd for year in years.values()]
    top = max([1e-9, *(year.total_usd for year in years.values())])
    factor, unit = unit_of(top, "cost")
    layers = [
        sideways_bars(
            [start / factor for start in starts],
            [value / factor for value in values],
            list(range(len(years))),
            words,
            {"color": colour, "line": line(theme.page, 1)},
            width=0.58,
            customdata=[
                [NETWORKS[name], money(value), energy(years[name].energy_kwh)]
                for name, value in zip(years, values, strict=True)
            ],
            hovertemplate="<b>%{customdata[0]}</b><br>"
            + words
            + " %{customdata[1]} per year; %{customdata[2]}<extra></extra>",
        )
        for words, values, starts, colour in (
            (
                "purchase, written off",
                purchase,
                [0.0] * len(years),
                part_colour("transceiver", theme),
            ),
            (
                "electricity",
                electric,
                purchase,
                theme.muted if theme.name == "light" else "#C3CCD7",
            ),
        )
    ]
    labels = [
        f"<b>{money(year.total_usd)}</b>&nbsp; {energy(year.energy_kwh)}" for year in years.values()
    ]
    return frame(
        layers,
        theme,
        (36 * len(years) + 66) * theme.scale,
        beside(labels, [year.total_usd / factor for year in years.values()], theme, shift=7),
        showlegend=True,
        margin=margins(140 * theme.scale, 8, 28 * theme.scale, 28 * theme.scale),
        xaxis=axis(
            theme, grid=True, range=[0, top / factor * 1.36], **value_ticks(top / factor, "$", unit)
        ),
        yaxis=row_axis(theme, [NETWORKS[name] for name in years], 12),
    )


def worth(
    rows: Sequence[tuple[str, str, float, str]], unit: str, theme: Theme, ticks: str = "~s"
) -> go.Figure:
    """Return a bar for each of ``rows``: (fabric, label, value, the value in words).

    Parameters
    ----------
    unit
        What a hover says behind the value: iterations per dollar.
    ticks
        How the axis writes its values, as plotly has it.
    """
    return frame(
        [
            go.Bar(
                orientation="h",
                y=list(range(len(rows))),
                x=[value for _, _, value, _ in rows],
                width=0.58,
                marker={
                    "color": [theme.fabric_colour(fabric) for fabric, *_ in rows],
                    "line": line(theme.line, 0.5),
                },
                textangle=0,
                **outside([words for *_, words in rows], theme, 12),
                customdata=[[label, f"{value:.6g}"] for _, label, value, _ in rows],
                hovertemplate=f"<b>%{{customdata[0]}}</b><br>%{{customdata[1]}} {unit}<extra></extra>",
            )
        ],
        theme,
        (34 * len(rows) + 44) * theme.scale,
        margin=margins(144 * theme.scale, 8, 4, 30 * theme.scale),
        xaxis=axis(
            theme,
            grid=True,
            # Room for a label on a phone.
            range=[0, 1.36 * max([1e-9, *(value for _, _, value, _ in rows)])],
            nticks=5,
            tickformat=ticks,
        ),
        yaxis=row_axis(theme, [label for _, label, *_ in rows], 12),
    )
