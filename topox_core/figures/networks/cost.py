"""What networks cost and burn: stacked by part, by cluster size and by year; what a dollar of network buys."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from topox_core.economics.comparison import Year
from topox_core.economics.networks import LINE_NAMES, NETWORK_RECORDS, NETWORKS, Bill
from topox_core.figures.builders import Bar, Point, bars, chart, curve, on_top, row_chart
from topox_core.figures.palette import Theme, blend, readable_on
from topox_core.figures.template import (
    Figure,
    Layer,
    Look,
    axis,
    beside,
    kept_apart,
    line,
    log_axis,
    multiples,
    named_axis,
    note,
    opaque,
    round_step,
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
) -> Figure:
    """Return a bar a network, stacked by part, its total on top.

    Parameters
    ----------
    measure
        ``cost`` (dollars) or ``power`` (watts).
    infeasible
        Networks that cannot be built at this size: their total carries a cross.
    """
    totals = {name: bill.amount(measure) for name, bill in bills.items()}
    top = max([1e-9, *totals.values()])
    factor, unit = unit_of(top, measure)
    # As many digits as the highest has: a phone's bars are narrow.
    decimals = 3 if top < factor else max(0, 3 - len(f"{top / factor:.0f}"))
    amounts = {
        part: [
            (k, name, sum(one.amount(measure) for one in bill.lines if one.part == part))
            for k, (name, bill) in enumerate(bills.items())
        ]
        for part in ORDER
    }
    px = PLOT_PX / top
    kinds = on_top(
        [
            Bar(
                k,
                amount / factor,
                f"<b>{NETWORKS[name]}</b><br>{bills[name].count(part):,.6g} "
                f"{LINE_NAMES[part]}: {amount_words(amount, measure)}",
                text=f"{amount / factor:.{decimals}f}" if amount * px >= MIN_PX else "",
            )
            for k, name, amount in of
            if amount > 0
        ]
        for part, of in amounts.items()
    )
    return chart(
        [
            bars(
                SHORT_PARTS.get(part, LINE_NAMES[part]),
                _marker(part, theme),
                kind,
                theme,
                ink=readable_on(part_colour(part, theme)),
                size=[11.5 if one.length * factor * px >= ROOM_PX else 9.5 for one in kind],
                standing=True,
            )
            for part, kind in zip(ORDER, kinds, strict=True)
        ],
        theme,
        318,
        named_axis(
            theme,
            [NETWORK_RECORDS[name].short.replace("\n", "<br>") for name in bills],
            size=11,
            colour=theme.ink,
            range=[-0.5, len(bills) - 0.5],
        ),
        axis(
            theme,
            grid=True,
            range=[0, top / factor * 1.12],
            **value_ticks(top / factor, "$" if measure == "cost" else "", unit),
        ),
        [
            note(
                f"<b>{amount_words(total, measure)}</b>{' ✗' if name in infeasible else ''}",
                k,
                total / factor,
                12.5 * theme.scale,
                theme.bad if name in infeasible else theme.ink,
                yanchor="bottom",
                yshift=3,
            )
            for k, (name, total) in enumerate(totals.items())
        ],
        legend=True,
        room={"left": 46},
    ).update_layout(legend={"x": -0.09, "traceorder": "reversed"})


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
    colour, width, dash = NETWORK_RECORDS[network].line
    return line(getattr(theme, colour, "") or part_colour(colour, theme), width, dash)


def by_size(
    curves: Mapping[str, Sequence[Bill]],
    measure: str,
    now: int,
    theme: Theme,
    most_photonic: float = float("inf"),
) -> Figure:
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
        style, name = _style(network, theme), NETWORKS[network]
        layers += [
            _line(within, name, measure, style, theme),
            _line(
                [*within[-1:], *beyond],
                f"{name}, too few ports",
                measure,
                {**style, "dash": "dot", "width": 1.4},
                theme,
                hollow=True,
            )
            if beyond
            else None,
        ]
    sizes = sorted({int(one.gpus) for bills in curves.values() for one in bills})
    every = [each for bills in curves.values() for one in bills if (each := _a_gpu(one, measure))]
    low, high = min(every, default=1.0) / 1.2, max(every, default=10.0) * 1.2
    named = sizes[::-1][:: max(1, -(-len(sizes) // 7))][::-1]
    return chart(
        layers,
        theme,
        HEIGHT,
        axis(
            theme,
            type="log",
            title="GPUs, logarithmic",
            tickvals=named,
            ticktext=[f"{n:,}" for n in named],
        ),
        log_axis(
            theme, low, high, ("${:,g}" if measure == "cost" else "{:,g} W").format, grid=True
        ),
        [
            upright(now, line(theme.muted, 1, "dot")),
            *_names(curves, measure, (math.log10(low), math.log10(high)), theme),
        ],
        room={"right": 128},
    )


def _a_gpu(bill: Bill, measure: str) -> float:
    return bill.amount(measure) / bill.gpus


def _line(
    bills: Sequence[Bill],
    name: str,
    measure: str,
    style: Look,
    theme: Theme,
    hollow: bool = False,
) -> Layer:
    """Return a network's line; its marks are hollow where the switch has too few ports."""
    size, fill = 6 if style["width"] > 2 else 4, theme.page if hollow else style["color"]
    return curve(
        name,
        [
            Point(
                one.gpus,
                _a_gpu(one, measure),
                f"<b>{name}</b><br>{one.gpus:,} GPUs: {amount_words(one.amount(measure), measure)}, "
                f"{amount_words(_a_gpu(one, measure), measure)} per GPU",
            )
            for one in bills
        ],
        style,
        theme,
        marker=opaque(size * theme.scale, fill, line=line(style["color"], 1)),
        mode="lines+markers",
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


def yearly(years: Mapping[str, Year], theme: Theme) -> Figure:
    """Return a bar of dollars per year a network: its share of the purchase, and electricity."""
    top = max([1e-9, *(year.total_usd for year in years.values())])
    factor, unit = unit_of(top, "cost")
    amounts = {
        "purchase, written off": [year.purchase_usd for year in years.values()],
        "electricity": [year.electricity_usd for year in years.values()],
    }
    kinds = on_top(
        [
            Bar(
                k,
                usd / factor,
                f"<b>{NETWORKS[name]}</b><br>{words} {money(usd)} per year; "
                f"{energy(years[name].energy_kwh)}",
            )
            for k, (name, usd) in enumerate(zip(years, of, strict=True))
        ]
        for words, of in amounts.items()
    )
    looks = part_colour("transceiver", theme), theme.muted if theme.name == "light" else "#C3CCD7"
    return row_chart(
        [NETWORKS[name] for name in years],
        [
            bars(words, colour, kind, theme)
            for words, colour, kind in zip(amounts, looks, kinds, strict=True)
        ],
        theme,
        axis(
            theme, grid=True, range=[0, top / factor * 1.36], **value_ticks(top / factor, "$", unit)
        ),
        36,
        legend=True,
        marks=beside(
            [
                f"<b>{money(year.total_usd)}</b>&nbsp; {energy(year.energy_kwh)}"
                for year in years.values()
            ],
            [year.total_usd / factor for year in years.values()],
            theme,
        ),
    )


def worth(
    rows: Sequence[tuple[str, str, float, str]], unit: str, theme: Theme, ticks: str = "~s"
) -> Figure:
    """Return a bar for each of ``rows``: (fabric, label, value, the value in words).

    Parameters
    ----------
    unit
        What a hover says behind the value: iterations per dollar.
    ticks
        How the axis writes its values, as plotly has it.
    """
    every = [
        Bar(row, value, f"<b>{label}</b><br>{value:.6g} {unit}", text=words)
        for row, (_, label, value, words) in enumerate(rows)
    ]
    return row_chart(
        [label for _, label, *_ in rows],
        [
            bars(
                "",
                {
                    "color": [theme.fabric_colour(fabric) for fabric, *_ in rows],
                    "line": line(theme.line, 0.5),
                },
                every,
                theme,
                size=12,
            )
        ],
        theme,
        axis(
            theme,
            grid=True,
            # Room for a label on a phone.
            range=[0, 1.36 * max([1e-9, *(one.length for one in every)])],
            nticks=5,
            tickformat=ticks,
        ),
        34,
    )
