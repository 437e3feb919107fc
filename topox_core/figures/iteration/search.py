"""The search as it ran, engines raced against each other on one time axis, and the iteration time under other delays."""

import math
from collections.abc import Sequence

from topox_core.figures.builders import Point, chart, curve, dots
from topox_core.figures.palette import Theme
from topox_core.figures.template import (
    DOTS,
    Figure,
    Layer,
    Look,
    axis,
    frame,
    kept_apart,
    level,
    line,
    log_axis,
    margins,
    named_axis,
    note,
    opaque,
    roomy,
)
from topox_core.model.arrays.groups import by_key
from topox_core.schedule.results.result import TracePoint
from topox_core.schedule.results.story import ENGINES, FAMILY_WORDS, Contestant, Event, events_of
from topox_core.schedule.source import Family
from topox_core.text.numbers import STOPPED_BY, apart, seconds, short

GLYPHS: dict[Family, str] = {
    "rules": "●",
    "controllers": "⬟",
    "passed": "★",
    "fixed": "✚",
    "search": "▲",
    "neighbourhoods": "◆",
    "exact": "■",
    "bounds": "▼",
}
SYMBOLS: dict[Family, str] = {
    "rules": "circle",
    "controllers": "pentagon",
    "passed": "star",
    "fixed": "cross",
    "search": "triangle-up",
    "neighbourhoods": "diamond",
    "exact": "square",
    "bounds": "triangle-down",
}
LOG_ABOVE = 30.0  # from this ratio of last to first moment on, time is logarithmic
FIRST_S = 1e-3
MAX_MARKS = 60
HEIGHT, ROOM = 180, 0.12


def search(
    trace: Sequence[TracePoint], until_s: float, theme: Theme, height: float = HEIGHT
) -> Figure:
    """Return best schedule against bound over wall time, each step marked by its source.

    Time is logarithmic where it spans more than a factor of 30, since most solves do most of their
    work at once.
    """
    events = events_of(trace)
    moments = [point.elapsed_s for point in trace]
    begin, end = _clock([until_s, *moments], moments)
    falling, rising = [[e for e in events if e.moved == what] for what in ("schedule", "bound")]
    layers = [
        curve(
            name,
            [Point(max(e.elapsed_s, begin), e.value_ms) for e in steps],
            style,
            theme,
            steps=True,
            until=end,
            # Where the incumbent starts later than the bound, the band between them starts there too.
            fill=fill,
            fillcolor="rgba(86,180,233,0.18)",
        )
        for name, steps, fill, style in (
            ("bound", rising, None, line(theme.ink, 2, DOTS)),
            ("best found", falling, "tonexty" if rising else None, line(theme.primary, 2.5)),
        )
    ]
    layers += [
        _marks(f, [e for e in events if e.family == f], begin, theme) for f in families_of(events)
    ]
    low, high, _ = roomy((e.value_ms for e in events), ROOM, ROOM)
    return chart(
        layers,
        theme,
        height,
        _time_axis(begin, end, theme),
        axis(theme, grid=True, range=[low, high], nticks=5, tickformat=",~g"),
        _ends(falling, rising, (height - 38) * theme.scale / (high - low), theme),
        room={"left": 46, "right": 60},
    )


def _marks(family: Family, events: Sequence[Event], begin: float, theme: Theme) -> Layer:
    """Return the steps of one family: shape for the family, colour for schedule or bound."""
    few = list(events[:: -(-len(events) // MAX_MARKS)])
    few += [events[-1]] if few[-1] is not events[-1] else []
    return dots(
        FAMILY_WORDS[family],
        [
            Point(
                max(one.elapsed_s, begin),
                one.value_ms,
                f"{one.moved} {one.value_ms:.6g} ms after {one.elapsed_s:.3g} s<br>{one.source}",
            )
            for one in few
        ],
        opaque(
            9 * theme.scale,
            [theme.primary if one.moved == "schedule" else theme.ink for one in few],
            symbol=SYMBOLS[family],
            line=line(theme.page, 1),
        ),
        theme,
        cliponaxis=False,
        opacity=1,
    )


def _clock(ends_s: Sequence[float], moments_s: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis of wall time: it begins at 0 unless it is logarithmic."""
    end = max([*ends_s, FIRST_S])
    begin = max(FIRST_S, min(moments_s, default=0.0))
    return begin if end / begin > LOG_ABOVE else 0.0, end


def _time_axis(begin: float, end: float, theme: Theme, title: str = "") -> Look:
    """Return the axis of wall time, which says so when it is logarithmic."""
    if not begin:
        return axis(
            theme, title=title, range=[0, end * 1.02], ticksuffix=" s", nticks=5, tickformat=",~g"
        )
    title = f"{title}, logarithmic" if title else ""
    return log_axis(
        theme,
        begin,
        end,
        lambda time_s: f"{1000 * time_s:g} ms" if time_s < 0.1 else f"{time_s:g} s",
        0.03,
        title=title,
    )


def families_of(events: Sequence[Event]) -> list[Family]:
    """Return the families that made a step, in the order of the legend."""
    return [family for family in SYMBOLS if any(e.family == family for e in events)]


def _ends(
    falling: Sequence[Event], rising: Sequence[Event], px_per_ms: float, theme: Theme
) -> list[Look]:
    """Return the values that the lines end at, beside their right ends and clear of each other."""
    bound, best = (steps[-1].value_ms if steps else None for steps in (rising, falling))
    if bound is not None and best is not None and best <= bound:
        bound = None  # proved: one number for both
    colour = theme.good if rising and bound is None else theme.primary
    ends = [(bound, theme.ink), (best, colour)]
    values = [value for value, _ in ends if value is not None]
    places = kept_apart(values, 15 * theme.scale / px_per_ms)
    return [
        _at_right(f"<b>{word}</b>" if value == best else word, y, ink, 5, theme)
        for word, y, (value, ink) in zip(
            apart(values), places, (one for one in ends if one[0] is not None), strict=True
        )
    ]


def _at_right(text: str, y: float, colour: str, shift: float, theme: Theme) -> Look:
    """Return words at the right of the picture."""
    at = {"xref": "paper", "xanchor": "left", "yanchor": "middle", "align": "left"}
    return note(text, 1, y, 12 * theme.scale, colour, xshift=shift, **at)


def delays(
    delay_ms: Sequence[float],
    makespan_ms: Sequence[float | None],
    bound_ms: float | None,
    now: float,
    theme: Theme,
) -> Figure:
    """Return the iteration time (log) for a few delays, today's marked, the bound dotted."""
    known = list(zip(delay_ms, makespan_ms, strict=True))
    points = [
        Point(
            k,
            value,
            f"delay {delay:g} ms: {value:.6g} ms",
            f"<b>{short(value)}</b>" if delay == now else short(value),
        )
        for k, (delay, value) in enumerate(known)
        if value is not None
    ]
    here = [delay == now for delay, value in known if value is not None]
    low = min([*(one.y for one in points), *([bound_ms] if bound_ms else [])], default=1.0)
    high = max((one.y for one in points), default=1.0)
    span = max(math.log10(high / low) if low > 0 else 1.0, 0.05)
    ends = [math.log10(low) - 0.12 * span, math.log10(high) + 0.3 * span] if low > 0 else None
    return chart(
        [
            curve(
                "",
                points,
                line(theme.line, 2),
                theme,
                mode="lines+markers",
                marker=opaque(
                    [(11 if today else 8) * theme.scale for today in here],
                    [theme.primary if today else theme.muted for today in here],
                ),
            )
        ],
        theme,
        170,
        named_axis(
            theme,
            [f"{d:g}" for d in delay_ms],
            range=[-0.4, len(delay_ms) - 0.6],
            title="reconfiguration delay, ms",
        ),
        axis(theme, type="log", visible=False, range=ends),
        [level(bound_ms, line(theme.ink, 1.5, DOTS)) if bound_ms else None],
        room={"right": 16},
    )


COLOURS = {
    "light": {"list": "#8A8F98", "highs": "#AA4499", "cpsat": "#B8860B", "auto": "#0072B2"},
    "dark": {"list": "#8A8F98", "highs": "#D67BC4", "cpsat": "#E0B84A", "auto": "#56B4E9"},
}
# Lines that run on top of each other stay apart by their widths: the later an engine is drawn, the
# thinner.
_WIDTHS = {"list": 8.0, "highs": 5.5, "cpsat": 3.5, "auto": 1.75}
ENGINE_SYMBOLS = {"list": "circle", "highs": "square", "cpsat": "diamond", "auto": "star"}


def race(runners: Sequence[Contestant], limit_s: float, theme: Theme) -> Figure:
    """Return every engine's schedule (a falling line) and bound (a rising dotted one) over its own wall time."""
    shown = sorted((r for r in runners if r.events), key=lambda r: ENGINES.index(r.engine))
    begin, end = _clock(
        [limit_s, *(r.wall_s for r in shown)], [e.elapsed_s for r in shown for e in r.events]
    )
    lines = [
        _line(runner, steps, moved, begin, theme)
        for runner in shown
        for moved in ("schedule", "bound")
        if (steps := [e for e in runner.events if e.moved == moved])
    ]
    low, high, spread = roomy((e.value_ms for r in shown for e in r.events), 0.12, 0.1)
    return frame(
        [*lines, *(_end(runner, begin, theme) for runner in shown)],
        theme,
        320 * theme.scale,
        _labels(shown, spread, theme),
        showlegend=True,
        margin=margins(52, 150 * theme.scale, 30 * theme.scale, 42),
        xaxis=_time_axis(begin, end, theme, "seconds since each engine began"),
        yaxis=axis(
            theme, grid=True, range=[low, high], nticks=6, tickformat=",~g", ticksuffix=" ms"
        ),
    )


def _line(
    runner: Contestant, steps: Sequence[Event], moved: str, begin: float, theme: Theme
) -> Layer:
    """Return one engine's schedules or bounds as steps."""
    width, colour = _WIDTHS[runner.engine], COLOURS[theme.name][runner.engine]
    return curve(
        runner.name,
        [
            Point(
                max(one.elapsed_s, begin),
                one.value_ms,
                f"{runner.name}: {moved} {one.value_ms:.6g} ms after {one.elapsed_s:.3g} s<br>{one.source}",
            )
            for one in steps
        ],
        line(colour, width, "solid")
        if moved == "schedule"
        else line(colour, max(1.5, 0.6 * width), DOTS),
        theme,
        steps=True,
        until=max(runner.wall_s if runner.proved_s is None else runner.proved_s, begin),
        showlegend=False,
        legendgroup=runner.engine,
        opacity=1,
    )


def _end(runner: Contestant, begin: float, theme: Theme) -> Layer:
    """Return the mark where an engine ended: filled if it proved, open if not."""
    proved = runner.proved_s is not None
    at = max(runner.wall_s if runner.proved_s is None else runner.proved_s, begin)
    colour = COLOURS[theme.name][runner.engine]
    how = "proved" if proved else STOPPED_BY.get(runner.ended, "running")
    if runner.makespan_ms is None:
        return None
    more: Look = {"legendgroup": runner.engine, "cliponaxis": False, "opacity": 1}
    return dots(
        runner.name,
        [Point(at, runner.makespan_ms, f"{runner.name}: {how} after {seconds(at)}")],
        opaque(
            (13 if runner.engine == "auto" else 11) * theme.scale,
            colour if proved else theme.page,
            symbol=ENGINE_SYMBOLS[runner.engine],
            line=line(colour, 2),
        ),
        theme,
        **more,
    )


def _labels(shown: Sequence[Contestant], spread: float, theme: Theme) -> list[Look]:
    """Return one label at the right for every level at which an engine ended, engines at the same level together."""
    found = [("", r.makespan_ms, r) for r in shown if r.makespan_ms is not None]
    unproved = [("bound ", r.bound_ms, r) for r in shown if r.proved_s is None]
    levels = by_key(((kind, value), runner) for kind, value, runner in (*found, *unproved))
    order = sorted(levels, key=lambda level: level[1])
    values = [value for _, value in order]
    return [
        _at_right(
            f"{kind}{word} <span style='color:{theme.muted}'>{_who(levels[kind, value], shown)}</span>"
            if kind
            else f"<b>{word}</b> {_who(levels[kind, value], shown)}",
            y,
            theme.muted if kind else theme.ink,
            10,
            theme,
        )
        for (kind, value), word, y in zip(
            order, apart(values), kept_apart(values, 0.075 * spread), strict=True
        )
    ]


def _who(here: Sequence[Contestant], shown: Sequence[Contestant]) -> str:
    """Return the names of those at one level, in few letters where most are there."""
    absent = [r.name for r in shown if r not in here]
    if len(here) > 2:
        return (
            f"all but {absent[0]}"
            if len(absent) == 1
            else "all"
            if not absent
            else f"{len(here)} engines"
        )
    return ", ".join(r.name for r in here)
