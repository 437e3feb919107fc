"""Rounds, prices and windows of a lab's instance."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from topox_core.economics.comparison import tornado as swings_of
from topox_core.economics.networks import LINE_NAMES, NETWORKS
from topox_core.figures.builders import Bar, bars, marked, row_chart
from topox_core.figures.labs.picture import Asking, Picture
from topox_core.figures.networks.buying import tornado as tornado_of
from topox_core.figures.networks.cost import stacked
from topox_core.figures.palette import BACKWARD, CATEGORY_COLOURS, CATEGORY_WORDS, FORWARD, Theme
from topox_core.figures.rails.delay import Curve, overhead_curves
from topox_core.figures.rails.windows import by_length, cdf as cdf_of, counts as counts_of
from topox_core.figures.template import (
    DOTS,
    Figure,
    axis,
    line,
)
from topox_core.labs.generators.four_jobs import GROUPINGS, LONGER_TRAINING, NAMES, FourJobs
from topox_core.labs.generators.rails import DELAY_MS, MINE, OTHER, Price, Windows
from topox_core.rails.delay import RAIL_DELAYS_MS, on_demand_ms, provisioned_ms
from topox_core.rails.iteration import Window
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.text.numbers import money, percent
from topox_core.training.plan import Passes, order_1f1b


def named_bars(
    names: Sequence[str],
    values: Sequence[float],
    unit: str,
    theme: Theme,
    marked_rows: Collection[int] = (),
    bound: tuple[float, str] | None = None,
) -> Figure:
    """Return one bar a number, all from 0.

    Parameters
    ----------
    unit
        Of the numbers, written behind each.
    marked_rows
        Bars that stand out.
    bound
        Where a dotted line goes, and its words.
    """
    every = []
    for row, (name, value) in enumerate(zip(names, values, strict=True)):
        words = f"{value:,.4g} {unit}"
        words = f"<b>{words}</b>" if row in marked_rows else words
        every.append(Bar(row, value, f"<b>{name}</b>: {words}", text=words))
    colours = [theme.primary if row in marked_rows else theme.line for row in range(len(names))]
    look = {"color": colours, "line": line(theme.muted, 0.5)}
    top = max([*values, bound[0] if bound else 0.0, 1e-9])
    return row_chart(
        names,
        [bars("", look, every, theme, size=12)],
        theme,
        axis(theme, grid=True, range=[0, 1.22 * top], ticksuffix=f" {unit}", nticks=6),
        28,
        room={"top": 20},
        marks=marked(*bound, line(theme.ink, 2, DOTS), theme) if bound else (),
    )


def moves(asking: Asking, _one: FourJobs) -> list[Picture]:
    """Return the rounds of all single moves at their reveal; before the best is known, those that were tried."""
    if asking.screen.stage == "reveal" and not asking.hides("together", "asked"):
        names = [asking.say("round.none"), *(asking.say("round.move", job=job) for job in NAMES)]
        return [_rounds(asking, "round", [GROUPINGS[0], "ABBB", "ABAA", "AABA", "AAAB"], names)]
    tried = list(dict.fromkeys(asking.tried))
    return [_rounds(asking, "tried", tried, tried)] if tried else []


def every_round(asking: Asking, one: FourJobs) -> list[Picture]:
    """Return all eight rounds with their bound; with longer training once that was asked about."""
    names = [*GROUPINGS]
    pictures = [
        _rounds(
            asking,
            "rounds",
            names,
            names,
            bound=(one.bound_s, asking.say("rounds.bound", bound=f"{one.bound_s:g}")),
        )
    ]
    if not asking.hides("longer_training"):
        pictures.append(
            replace(
                _rounds(asking, "rounds", names, names, LONGER_TRAINING),
                id="longer",
                title=asking.say("rounds.longer"),
                note=asking.say("rounds.longer_note"),
            )
        )
    return pictures


def _rounds(
    asking: Asking,
    kind: str,
    groupings: list[str],
    names: list[str],
    longer: int = 1,
    bound: tuple[float, str] | None = None,
) -> Picture:
    values = [asking.instance.round_s(grouping, longer) for grouping in groupings]
    rows = [(name, f"{value} s") for name, value in zip(names, values, strict=True)]
    return Picture(
        kind,
        asking.say(f"{kind}.title"),
        asking.say(f"{kind}.note"),
        named_bars(names, values, "s", asking.theme, [values.index(min(values))], bound),
        asking.say("round.alt", rounds=", ".join(" ".join(row) for row in rows)),
        asking.table(("name", "value"), rows),
    )


def bills(asking: Asking, one: Price) -> list[Picture]:
    """Return what both networks of instance *price* cost, by part."""
    priced = {name: one.question().bill(name) for name in (OTHER, MINE)}
    said = "; ".join(f"{NETWORKS[name]} {money(bill.cost_usd)}" for name, bill in priced.items())
    rows = [
        (f"{NETWORKS[name]}: {LINE_NAMES[part.part]}", f"{part.amount('cost'):,.0f} $")
        for name, bill in priced.items()
        for part in bill.lines
    ]
    return [
        asking.picture(
            "bills",
            stacked(priced, "cost", asking.theme),
            asking.table(("name", "value"), rows),
            bills=said,
        )
    ]


def swings(asking: Asking, one: Price) -> list[Picture]:
    """Return how far the saving of instance *price* swings with each price."""
    rows = swings_of(one.question(), MINE, OTHER)
    base = one.saving_percent / 100
    ends = [
        (row.name, *(f"{end[0]}: {percent(end[1])}" if end else "–" for end in (row.low, row.high)))
        for row in rows
    ]
    return [
        asking.picture(
            "tornado",
            tornado_of(rows, base, asking.theme),
            asking.table(("name", "value"), [(name, f"{low}; {high}") for name, low, high in ends]),
            saving=percent(base),
            swings="; ".join(f"{name}: {low}, {high}" for name, low, high in ends),
        )
    ]


_COUNTED = ("first_stage", "last_stage", "middle", "afab_first")


def windows(asking: Asking, one: Windows) -> list[Picture]:
    """Return the pipeline before its windows were counted, the counts at their reveal, the lengths after it."""
    if asking.hides(*_COUNTED) or not asking.computed:
        names = [asking.say("order.stage", stage=stage) for stage in range(one.stages)]
        passes = order_1f1b(one.stages, one.microbatches)
        shown = asking.picture(
            "order",
            pipeline(passes, names, asking.theme),
            asking.table(
                ("stage", "value"),
                list(enumerate([" ".join(kind for kind, _, _ in row) for row in passes])),
            ),
            stages=one.stages,
            microbatches=one.microbatches,
        )
        return [replace(shown, id="pipeline")]
    if asking.screen.stage == "reveal":
        exact = [one.counted(stage) for stage in range(one.stages)]
        return [
            asking.picture(
                "counts",
                counts_of(exact, one.counted(0, "afab"), asking.theme),
                asking.table(("stage", "value"), list(enumerate(exact))),
                last=one.stages - 1,
                counts=", ".join(map(str, exact)),
            )
        ]
    return [
        replace(
            asking.picture(
                "lengths_of",
                by_length(_spans(one), None, asking.theme),
                asking.table(("window", "length"), list(enumerate(one.lengths_ms, 1))),
                lengths=", ".join(map(str, one.lengths_ms)),
            ),
            id="lengths",
        )
    ]


def _spans(one: Windows) -> tuple[Window, ...]:
    begins = [sum(one.lengths_ms[:k]) for k in range(len(one.lengths_ms))]
    return tuple(
        Window(0, 0, str(k), "", "", float(begin), float(ms), 0.0)
        for k, (begin, ms) in enumerate(zip(begins, one.lengths_ms, strict=True), 1)
    )


def delay_costs(asking: Asking, one: Windows) -> list[Picture]:
    """Return what a switch adds to the iteration over its delay, with the products and the limit."""
    now = float(asking.value or DELAY_MS)
    delays = tuple(sorted({*RAIL_DELAYS_MS, now}))
    base, lengths = float(one.base_ms), one.lengths_ms
    curves = [
        Curve(control, base, delays, tuple(cost(base, lengths, delay) for delay in delays))
        for control, cost in (("on_demand", on_demand_ms), ("provisioned", provisioned_ms))
    ]
    products = {product.name: product.reconfiguration_ms for product in TECHNOLOGIES}
    at = delays.index(now)
    demand, ahead = (curve.iteration_ms for curve in curves)
    labels = [asking.say(f"delay.{k}") for k in ("reactive", "provisioned")]
    rows = [(f"{d:g}", f"{demand[k]:g} ms", f"{ahead[k]:g} ms") for k, d in enumerate(delays)]
    return [
        asking.picture(
            "overhead",
            overhead_curves(curves, now, one.limit_percent / 100, products, asking.theme),
            asking.table(("delay",), rows, labels),
            delay=f"{now:g}",
            on_demand=f"{demand[at]:g}",
            ahead=f"{ahead[at]:g}",
            limit=one.limit_percent,
        )
    ]


def cdf(asking: Asking, one: Windows) -> list[Picture]:
    """Return the distribution of the seven windows, with the delay as a threshold."""
    now = float(asking.value or DELAY_MS)
    shorter = sum(ms < now for ms in one.lengths_ms) / len(one.lengths_ms)
    return [
        asking.picture(
            "cdf",
            cdf_of(_spans(one), now, asking.theme),
            asking.table(("window", "length"), list(enumerate(sorted(one.lengths_ms), 1))),
            share=f"{100 * shorter:.1f}",
            delay=f"{now:g}",
        )
    ]


def pipeline(passes: Passes, names: list[str], theme: Theme) -> Figure:
    """Return every pass of every stage as a bar; a hover says which of a microbatch it is."""
    of_kind: dict[str, list[Bar]] = {"F": [], "B": []}
    for stage, row in enumerate(passes):
        for kind, k, begin in row:
            of_kind[kind].append(Bar(stage, 1, f"{kind}{k}", begin))
    return row_chart(
        names,
        [
            bars(CATEGORY_WORDS[category], CATEGORY_COLOURS[category], of_kind[kind], theme, 0.8)
            for kind, category in (("F", FORWARD), ("B", BACKWARD))
        ],
        theme,
        axis(
            theme, range=[0, max(begin + 1 for row in passes for _, _, begin in row)], visible=False
        ),
        24,
        11.5,
    )
