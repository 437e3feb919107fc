"""One graph on every fabric: where each iteration's time goes, and all iterations on one clock."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.fabrics.run import Breakdown, FabricRun
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
    opaque,
    outside,
    row_axis,
    sideways_bars,
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
) -> go.Figure:
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
    names = list(runs)
    times = [runs[name].iteration_ms for name in names]
    until = shown_until(times)
    limit = until * (BEYOND if any(t > until * (1 + 1e-9) for t in times) else 1.0)
    end = limit * 1.01
    spent = np.array([parts_of(runs[name].breakdown) for name in names]).reshape(-1, len(PARTS))
    ends = np.minimum(np.cumsum(spent, axis=1), limit)
    starts = np.concatenate([np.zeros((len(names), 1)), ends[:, :-1]], axis=1)
    markers = [
        {"color": colour, "line": line(theme.page, 1)}
        for colour in (COMPUTE_COLOUR, EXPOSED_COLOUR, theme.line)
    ]
    markers.insert(PARTS.index("dark"), hatched(theme))
    layers = [
        sideways_bars(
            starts[:, k],
            ends[:, k] - starts[:, k],
            list(range(len(names))),
            part,
            markers[k],
            width=0.6,
            **UNFADED,
            customdata=[
                [name, labels[name], f"{value:.6g}", f"{100 * value / total if total else 0:.3g}"]
                for name, value, total in zip(names, spent[:, k].tolist(), times, strict=True)
            ],
            hovertemplate=f"<b>%{{customdata[1]}}</b><br>{part} %{{customdata[2]}} ms, "
            "%{customdata[3]} %<extra></extra>",
        )
        for k, part in enumerate(PARTS)
    ]
    bounded = [(k, name) for k, name in enumerate(names) if runs[name].bound_ms <= limit]
    bounds = go.Scatter(
        x=[runs[name].bound_ms for _, name in bounded],
        y=[k for k, _ in bounded],
        mode="markers",
        name="lower bound",
        showlegend=True,
        marker=opaque(25 * theme.scale, symbol="line-ns", line=line(theme.ink, 2.5)),
        customdata=[
            [
                name,
                labels[name],
                f"{runs[name].bound_ms:.6g}",
                escape_untrusted(runs[name].bound_by, "figure"),
            ]
            for _, name in bounded
        ],
        hovertemplate="<b>%{customdata[1]}</b><br>no less than %{customdata[2]} ms<br>%{customdata[3]}<extra></extra>",
    )
    numbers = _numbers(spent, starts, ends, [run.bound_ms for run in runs.values()], end, theme)
    totals = [
        f"<b>{time(t)}</b>" if name in first else time(t) + (" ›" if t > limit else "")
        for name, t in zip(names, times, strict=True)
    ]
    return frame(
        [*layers, numbers, bounds],
        theme,
        (39 * len(names) + (78 if legend else 46)) * theme.scale,
        beside(totals, [min(t, limit) for t in times], theme, shift=8),
        showlegend=legend,
        margin=margins(
            LABEL_LEFT * theme.scale,
            TIME_RIGHT * theme.scale,
            (34 if legend else 2) * theme.scale,
            30,
        ),
        xaxis=time_axis(theme, end, grid=True, most_ticks=5),
        yaxis=row_axis(
            theme, [_row_name(labels[n], notes.get(n), theme, n in first) for n in names]
        ),
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
) -> go.Scatter:
    """Return the numbers of parts with room for one, clear of the bound's tick; a page hides them in a narrow window."""
    colours, per_px = ("#FFFFFF", "#10151C", theme.ink, theme.ink), limit / PLOT_PX
    numbers: list[tuple[float, int, str, str, float]] = []
    for (row, part), value in np.ndenumerate(spent):
        low, high = float(starts[row, part]), float(ends[row, part])
        words = short(float(value) / (1000 if limit >= IN_SECONDS else 1))
        for size, half_px in ((11.5, 3.6 * len(words) + 3), (10.0, 2.7 * len(words) + 0.5)):
            x = _clear(low, high, bounds[row], half_px * theme.scale * per_px)
            if part != 2 and x is not None:
                numbers.append((x, int(row), words, colours[part], size * theme.scale))
                break
    return go.Scatter(
        x=[x for x, *_ in numbers],
        y=[row for _, row, *_ in numbers],
        text=[words for _, _, words, *_ in numbers],
        textfont={
            "size": [size for *_, size in numbers],
            "color": [colour for *_, colour, _ in numbers],
        },
        mode="text",
        name="numbers",
        hoverinfo="skip",
        showlegend=False,
    )


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
) -> go.Figure:
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


def before_after(rows: Sequence[tuple[str, str, float, float]], theme: Theme) -> go.Figure:
    """Return two bars a row: (label, fabric, undisturbed ms, degraded ms; hatched)."""
    rows_of = {
        fabric: [(k, row) for k, row in enumerate(rows) if row[1] == fabric]
        for fabric in dict.fromkeys(row[1] for row in rows)
    }
    layers = [
        go.Bar(
            orientation="h",
            x=[float(row[column]) for _, row in mine],
            y=[k + shift for k, _ in mine],
            width=0.32,
            marker=marker,
            name=f"{fabric} {words}",
            **outside([time(float(row[column])) for _, row in mine], theme, 12),
            customdata=[[row[0], f"{float(row[column]):.6g}"] for _, row in mine],
            hovertemplate="<b>%{customdata[0]}</b><br>"
            + words
            + " %{customdata[1]} ms<extra></extra>",
        )
        for fabric, mine in rows_of.items()
        for words, column, shift, marker in (
            ("undisturbed", 2, -0.19, {"color": theme.fabric_colour(fabric)}),
            ("degraded", 3, 0.19, hatched(theme, theme.fabric_colour(fabric), 6, 0.35)),
        )
    ]
    top = max([1e-9, *(max(before, after) for _, _, before, after in rows)])
    return frame(
        layers,
        theme,
        (54 * len(rows) + 40) * theme.scale,
        margin=margins(LABEL_LEFT * theme.scale, TIME_RIGHT * theme.scale, 6, 30),
        xaxis=time_axis(theme, top * 1.01, grid=True, most_ticks=3),
        yaxis=row_axis(theme, [row[0].replace(", ", ",<br>") for row in rows]),
    )
