"""One graph on every fabric: where each iteration's time goes, and all iterations on one clock."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.run import Breakdown, FabricRun
from topox_core.figures.builders import Bar, Point, bars, row_chart, ticks_across, written
from topox_core.figures.iteration.lanes import COLUMNS, MAX_STRIP_ROWS
from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    DARK,
    VERMILION,
    Theme,
)
from topox_core.figures.template import (
    CLEAR,
    IN_SECONDS,
    UNFADED,
    Figure,
    Layer,
    Look,
    band,
    beside,
    frame,
    hatched,
    line,
    margins,
    name_px,
    named_axis,
    note,
    time_axis,
    time_image,
    upright,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import short, time

COMPUTE_COLOUR, EXPOSED_COLOUR = "#0072B2", "#CC79A7"
LABEL_LEFT = 124  # room for the names of fabrics
TIME_RIGHT = 58  # room for a time behind the longest bar
PLOT_PX = 390.0  # width of the bars on a laptop; decides which parts have room for a number
# An iteration this many times the fastest would flatten all others: its bar is cut, its number
# stands.
CUT_AT = 3.5
BEYOND = 1.08  # a bar that is cut is drawn up to here

PARTS = ("compute", "exposed transfer", "dark", "waiting")


def parts_of(spent: Breakdown) -> tuple[float, float, float, float]:
    """Return a breakdown in the order of ``PARTS``, in ms."""
    return spent.compute_ms, spent.exposed_ms, spent.dark_ms, spent.waiting_ms


def shown_until(times_ms: Sequence[float]) -> float:
    """Return the end of a time axis: the longest iteration below ``CUT_AT`` times the fastest, or a little above."""
    best = min(times_ms, default=0.0)
    until = max((t for t in times_ms if t <= CUT_AT * best), default=best) or 1.0
    return max((t for t in times_ms if t <= until * BEYOND), default=until)


def bar_legend(runs: Mapping[str, FabricRun], theme: Theme) -> list[tuple[str, str]]:
    """Return what the colours in the bars mean, each as CSS draws it: for a legend beside the figure, which wraps."""
    stripes = f"repeating-linear-gradient(135deg,{VERMILION} 0 2px,{theme.page} 2px 4px)"
    tick = f"linear-gradient({theme.ink},{theme.ink}) center/3px 100% no-repeat"
    looks = (COMPUTE_COLOUR, EXPOSED_COLOUR, stripes, theme.line, tick)
    present = [
        any(part > 0 for part in spent)
        for spent in zip(*(parts_of(run.breakdown) for run in runs.values()), strict=True)
    ]
    words = zip(looks, (*PARTS, "lower bound"), (*present, True), strict=True)
    return [(look, word) for look, word, there in words if there]


def iteration_bars(
    runs: Mapping[str, FabricRun],
    labels: Mapping[str, str],
    notes: Mapping[str, str],
    theme: Theme,
    first: Collection[str] = (),
    legend: bool = True,
) -> Figure:
    """Return a stacked bar of time a fabric, with its lower bound as a tick across it.

    Parameters
    ----------
    labels
        Name of each fabric, in words.
    notes
        What to write under a fabric's name; absent for most.
    first
        The fastest, which are bold.
    legend
        Whether it has its own, which grows into the bars in a narrow window.
    """
    times = {name: run.iteration_ms for name, run in runs.items()}
    until = shown_until(list(times.values()))
    limit = until * (BEYOND if any(t > until * (1 + 1e-9) for t in times.values()) else 1.0)
    end = limit * 1.01
    spent = np.array([parts_of(run.breakdown) for run in runs.values()]).reshape(-1, len(PARTS))
    ends = np.minimum(np.cumsum(spent, axis=1), limit)
    starts = np.concatenate([np.zeros((len(runs), 1)), ends[:, :-1]], axis=1)
    looks = (COMPUTE_COLOUR, EXPOSED_COLOUR, hatched(theme), theme.line)
    bounds = [
        Point(
            run.bound_ms,
            row,
            f"<b>{labels[name]}</b><br>no less than {run.bound_ms:.6g} ms<br>"
            f"{escape_untrusted(run.bound_by, 'figure')}",
        )
        for row, (name, run) in enumerate(runs.items())
        if run.bound_ms <= limit
    ]
    numbers = _numbers(spent, starts, ends, [run.bound_ms for run in runs.values()], end, theme)
    totals = [
        f"<b>{time(t)}</b>" if name in first else time(t) + (" ›" if t > limit else "")
        for name, t in times.items()
    ]
    return row_chart(
        [_row_name(labels[n], notes.get(n), theme, n in first) for n in runs],
        [
            *[
                bars(
                    part,
                    look,
                    [
                        Bar(
                            row,
                            high - low,
                            f"<b>{labels[name]}</b><br>{part} {ms:.6g} ms, "
                            f"{100 * ms / times[name] if times[name] else 0:.3g} %",
                            low,
                        )
                        for row, (name, low, high, ms) in enumerate(
                            zip(
                                runs,
                                *(of[:, k].tolist() for of in (starts, ends, spent)),
                                strict=True,
                            )
                        )
                    ],
                    theme,
                    0.6,
                    **UNFADED,
                )
                for k, (part, look) in enumerate(zip(PARTS, looks, strict=True))
            ],
            numbers,
            ticks_across("lower bound", bounds, theme, 25),
        ],
        theme,
        time_axis(theme, end, grid=True, most_ticks=5),
        44,
        12.5,
        legend,
        {"left": LABEL_LEFT, "right": TIME_RIGHT, "top": 34 if legend else 2},
        marks=beside(totals, [min(t, limit) for t in times.values()], theme, shift=8),
    )


def _row_name(label: str, words: str | None, theme: Theme, first: bool) -> str:
    """Return the name of a row, with what is to be said of it in a second line."""
    if words is None:
        return label
    size, colour = 10.5 * theme.scale, theme.good if first else theme.muted
    label = f"<b>{label}</b>" if first else label
    return f'{label}<br><span style="font-size:{size:g}px;color:{colour}">{words}</span>'


def _numbers(
    spent: FloatArray,
    starts: FloatArray,
    ends: FloatArray,
    bounds: Sequence[float],
    limit: float,
    theme: Theme,
) -> Layer:
    """Return the numbers of parts with room for one, clear of the bound's tick; a page hides them in a narrow window."""
    colours, per_px = ("#FFFFFF", "#10151C", theme.ink, theme.ink), limit / PLOT_PX
    numbers: list[tuple[Point, str, float]] = []
    for (row, part), value in np.ndenumerate(spent):
        low, high = float(starts[row, part]), float(ends[row, part])
        words = short(float(value) / (1000 if limit >= IN_SECONDS else 1))
        for size, half_px in ((11.5, 3.6 * len(words) + 3), (10.0, 2.7 * len(words) + 0.5)):
            x = _clear(low, high, bounds[row], half_px * theme.scale * per_px)
            if part != 2 and x is not None:
                numbers.append((Point(x, row, text=words), colours[part], size))
                break
    sizes, inks = [size for *_, size in numbers], [ink for _, ink, _ in numbers]
    return written("numbers", [point for point, *_ in numbers], theme, sizes, inks)


def _clear(low: float, high: float, bound: float, half: float) -> float | None:
    """Return where a number of this half width stands within a part, clear of the bound's tick; None without room."""
    if high - low < 2 * half:
        return None
    x = (low + high) / 2
    if abs(bound - x) >= half:
        return x
    x = (low + bound) / 2 if bound - low > high - bound else (bound + high) / 2
    return x if min(x - low, high - x, abs(x - bound)) >= half else None


def strip_words(servers: int) -> str:
    """Return what two rows of a strip show."""
    each = -(-2 * servers // MAX_STRIP_ROWS)
    whose = "a server" if each <= 1 else f"{each} neighbouring servers together"
    return f"{whose}: compute, under it what is sent"


def strips(
    images: Mapping[str, NDArray[np.uint8]],
    labels: Mapping[str, str],
    times_ms: Mapping[str, float],
    until_ms: float,
    theme: Theme,
) -> Figure:
    """Return all fabrics' iterations on one clock; the end of each is a line with its time."""
    names = list(images)
    rows = max((len(images[name]) for name in names), default=1)
    gap = max(1, round(rows * 0.18))
    stacked = np.zeros(((rows + gap) * max(1, len(names)), COLUMNS), np.uint8)
    for k, name in enumerate(names):
        stacked[k * (rows + gap) : k * (rows + gap) + rows] = images[name]
    words_of = {
        name: time(end) + ("" if end <= until_ms * (1 + 1e-9) else " ›")
        for name, end in times_ms.items()
    }
    colours = [CLEAR, *(CATEGORY_COLOURS[category] for category in range(1, DARK + 1))]
    marks: list[Look] = []
    for k, name in enumerate(names):
        top, bottom, end = k * (rows + gap) - 0.5, k * (rows + gap) + rows - 0.5, times_ms[name]
        x, y, size = min(end, until_ms), (top + bottom) / 2, 11.5 * theme.scale
        inside = end <= until_ms * (1 + 1e-9)
        marks += [
            band(top, bottom, theme.band),
            note(words_of[name], x, y, size, theme.ink, xanchor="left", xshift=5),
        ]
        if inside:
            marks.append(upright(end, line(theme.ink, 1.5), top, bottom, "y"))
    middle = [k * (rows + gap) + (rows - 1) / 2 for k in range(len(names))]
    return frame(
        [time_image(stacked, colours, until_ms, y0=0, dy=1, zsmooth=False)],
        theme,
        max(40.0, 5.2 * rows) * (1 + gap / rows) * len(names) * theme.scale + 34,
        marks,
        margin=margins(
            LABEL_LEFT * theme.scale, name_px(list(words_of.values()), theme, 14, 7), 4, 28
        ),
        xaxis=time_axis(theme, until_ms * 1.01, most_ticks=5),
        yaxis=named_axis(
            theme,
            [labels[name] for name in names],
            middle,
            12.5,
            theme.ink,
            range=[len(stacked) - gap - 0.5, -0.5],
        ),
    )


def before_after(rows: Sequence[tuple[str, str, float, float]], theme: Theme) -> Figure:
    """Return two bars a row: (label, fabric, undisturbed ms, degraded ms; hatched)."""
    every = [
        (fabric, words, Bar(k + at, ms, f"<b>{label}</b><br>{words} {ms:.6g} ms", text=time(ms)))
        for k, (label, fabric, *both) in enumerate(rows)
        for at, words, ms in zip((-0.19, 0.19), ("undisturbed", "degraded"), both, strict=True)
    ]
    layers = []
    for fabric, words in dict.fromkeys((fabric, words) for fabric, words, _ in every):
        colour = theme.fabric_colour(fabric)
        layers.append(
            bars(
                f"{fabric} {words}",
                colour if words == "undisturbed" else hatched(theme, colour, 6, 0.35),
                [bar for *kind, bar in every if kind == [fabric, words]],
                theme,
                0.32,
                size=12,
            )
        )
    return row_chart(
        [row[0].replace(", ", ",<br>") for row in rows],
        layers,
        theme,
        time_axis(
            theme,
            1.01 * max([1e-9, *(bar.length for *_, bar in every)]),
            grid=True,
            most_ticks=3,
        ),
        54,
        12.5,
        room={"right": TIME_RIGHT},
    )
