"""Engines against each other on one graph: their searches on one time axis, a table, and the finding in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.search import FIRST_S, LOG_ABOVE, time_axis
from topox_core.figures.template import axis, frame, line, margins, note, opaque
from topox_core.schedule.result import Result, TracePoint, gap
from topox_core.schedule.story import Event, events_of, last_better, proof_of
from topox_core.text.numbers import apart, percent, seconds
from topox_core.text.sentences import STOPPED_BY, enumeration

ENGINES = ("list", "highs", "cpsat", "auto")
ENGINE_WORDS = {"list": "list", "highs": "HiGHS", "cpsat": "CP-SAT", "auto": "auto"}
COLOURS = {
    "light": {"list": "#8A8F98", "highs": "#AA4499", "cpsat": "#B8860B", "auto": "#0072B2"},
    "dark": {"list": "#8A8F98", "highs": "#D67BC4", "cpsat": "#E0B84A", "auto": "#56B4E9"},
}
# Lines that run on top of each other stay apart by their widths: the later an engine is drawn, the
# thinner.
_WIDTHS = {"list": 8.0, "highs": 5.5, "cpsat": 3.5, "auto": 1.75}
SYMBOLS = {"list": "circle", "highs": "square", "cpsat": "diamond", "auto": "star"}
SAME_S, SAME_SHARE = 0.1, 0.2  # proofs this close in time count as equally fast
ROUNDING = 1e-9  # bounds and times closer than this are the same number


@dataclass(frozen=True)
class Contestant:
    """One engine's solve, ended or still running: its steps, where it stands and how it ended (empty while it runs)."""

    engine: str
    events: tuple[Event, ...]
    wall_s: float
    ended: str = ""
    message: str = ""

    @staticmethod
    def of(engine: str, result: Result) -> Contestant:
        """Return the runner of a solve that has ended."""
        return Contestant(
            engine, events_of(result.trace), result.wall_s, result.stopped_by, result.message
        )

    @staticmethod
    def running(engine: str, trace: Sequence[TracePoint], elapsed_s: float) -> Contestant:
        """Return the runner of a solve on its way."""
        return Contestant(engine, events_of(trace), elapsed_s)

    @property
    def name(self) -> str:
        """The engine's name."""
        return ENGINE_WORDS.get(self.engine, self.engine)

    @property
    def makespan_ms(self) -> float | None:
        """Makespan of the best schedule."""
        return self.events[-1].incumbent_ms if self.events else None

    @property
    def bound_ms(self) -> float:
        """The best bound."""
        return self.events[-1].bound_ms if self.events else 0.0

    @property
    def best_s(self) -> float | None:
        """When the best schedule was found."""
        found = last_better(self.events)
        return found.elapsed_s if found else None

    @property
    def found_by(self) -> str:
        """Who found the best schedule: the engine itself, a rule, or the local search beside it."""
        found = last_better(self.events)
        return found.words if found else ""

    @property
    def proved_s(self) -> float | None:
        """When schedule and bound met; None if they did not."""
        proof = proof_of(self.events)
        return proof.elapsed_s if proof else None

    @property
    def proved_by(self) -> str:
        """Who raised the bound up to the schedule; empty without a proof."""
        return (
            next((e.words for e in reversed(self.events) if e.moved == "bound"), "")
            if self.proved_s is not None
            else ""
        )


def race(runners: Sequence[Contestant], limit_s: float, theme: Theme) -> go.Figure:
    """Return every engine's schedule (a falling line) and bound (a rising dotted one) over its own wall time."""
    shown = sorted((r for r in runners if r.events), key=lambda r: ENGINES.index(r.engine))
    end = max([limit_s, *(r.wall_s for r in shown), FIRST_S])
    begin = max(FIRST_S, min((e.elapsed_s for r in shown for e in r.events), default=0.0))
    log = end / begin > LOG_ABOVE
    begin = begin if log else 0.0
    figure = go.Figure()
    for runner in shown:
        for moved in ("schedule", "bound"):
            steps = [e for e in runner.events if e.moved == moved]
            if steps:
                figure.add_trace(_line(runner, steps, moved, begin, theme))
    for runner in shown:
        figure.add_trace(_end(runner, begin, theme))
    values = [e.value_ms for r in shown for e in r.events]
    low, high = min(values, default=0.0), max(values, default=1.0)
    spread = max(high - low, 0.02 * high, 1e-9)
    title = (
        "seconds since each engine began, logarithmic" if log else "seconds since each engine began"
    )
    return frame(
        figure,
        theme,
        320 * theme.scale,
        showlegend=True,
        annotations=_labels(shown, spread, theme),
        margin=margins(52, 150 * theme.scale, 30 * theme.scale, 42),
        xaxis=time_axis(begin, end, log, theme, title),
        yaxis=axis(
            theme,
            grid=True,
            range=[low - 0.12 * spread, high + 0.1 * spread],
            nticks=6,
            tickformat=",~g",
            ticksuffix=" ms",
        ),
    )


def _line(
    runner: Contestant, steps: Sequence[Event], moved: str, begin: float, theme: Theme
) -> go.Scatter:
    """Return one engine's schedules or bounds as steps."""
    schedule = moved == "schedule"
    until = max(runner.wall_s if runner.proved_s is None else runner.proved_s, begin)
    x = [max(e.elapsed_s, begin) for e in steps]
    y = [e.value_ms for e in steps]
    width = _WIDTHS[runner.engine]
    facts = [[e.source, f"{e.value_ms:.6g}", f"{e.elapsed_s:.3g}"] for e in steps]
    return go.Scatter(
        x=[*x, until],
        y=[*y, y[-1]],
        mode="lines",
        name=runner.name,
        legendgroup=runner.engine,
        showlegend=False,
        opacity=1,
        line={
            "shape": "hv",
            "width": width if schedule else max(1.5, 0.6 * width),
            "color": COLOURS[theme.name][runner.engine],
            "dash": "solid" if schedule else "2px,3px",
        },
        customdata=[*facts, facts[-1]],
        hovertemplate=f"{runner.name}: {moved} %{{customdata[1]}} ms after %{{customdata[2]}} s<br>"
        "%{customdata[0]}<extra></extra>",
    )


def _end(runner: Contestant, begin: float, theme: Theme) -> go.Scatter:
    """Return the mark where an engine ended: filled if it proved, open if not."""
    proved = runner.proved_s is not None
    at = max(runner.proved_s if runner.proved_s is not None else runner.wall_s, begin)
    colour = COLOURS[theme.name][runner.engine]
    how = "proved" if proved else STOPPED_BY.get(runner.ended, "running")
    return go.Scatter(
        x=[at],
        y=[runner.makespan_ms],
        mode="markers",
        name=runner.name,
        legendgroup=runner.engine,
        cliponaxis=False,
        opacity=1,
        hovertemplate=f"{runner.name}: {how} after {seconds(at)}<extra></extra>",
        marker=opaque(
            13 if runner.engine == "auto" else 11,
            colour if proved else theme.page,
            symbol=SYMBOLS[runner.engine],
            line=line(colour, 2),
        ),
    )


def _labels(shown: Sequence[Contestant], spread: float, theme: Theme) -> list[dict[str, Any]]:
    """Return one label at the right for every level at which an engine ended, engines at the same level together."""
    levels: dict[tuple[str, float], list[Contestant]] = {}
    for runner in shown:
        if runner.makespan_ms is not None:
            levels.setdefault(("", runner.makespan_ms), []).append(runner)
    for runner in shown:
        if runner.proved_s is None:
            levels.setdefault(("bound ", runner.bound_ms), []).append(runner)
    order = sorted(levels, key=lambda level: -level[1])
    words = apart([value for _, value in order])
    labels: list[dict[str, Any]] = []
    previous = float("inf")
    for (kind, value), word in zip(order, words, strict=True):
        y = min(value, previous - 0.075 * spread)
        previous = y
        who = _who(levels[kind, value], shown)
        labels.append(
            note(
                f"{kind}{word} <span style='color:{theme.muted}'>{who}</span>"
                if kind
                else f"<b>{word}</b> {who}",
                1,
                y,
                12 * theme.scale,
                theme.muted if kind else theme.ink,
                xref="paper",
                xanchor="left",
                xshift=10,
                yanchor="middle",
                align="left",
            )
        )
    return labels


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


def race_table(runners: Sequence[Contestant]) -> dict[str, list[object]]:
    """Return one row for every engine."""
    best = min((r.makespan_ms for r in runners if r.makespan_ms is not None), default=0.0)
    table: dict[str, list[object]] = {
        "engine": [r.name for r in runners],
        "iteration (ms)": [r.makespan_ms for r in runners],
        "above best (%)": [
            round(100 * (r.makespan_ms / best - 1), 3)
            if r.makespan_ms is not None and best > 0
            else None
            for r in runners
        ],
        "bound (ms)": [r.bound_ms for r in runners],
        "gap (%)": [
            round(100 * gap(r.makespan_ms, r.bound_ms), 3) if r.makespan_ms else None
            for r in runners
        ],
        "best after (s)": [None if r.best_s is None else round(r.best_s, 3) for r in runners],
        "found by": [r.found_by for r in runners],
        "proof after (s)": [None if r.proved_s is None else round(r.proved_s, 3) for r in runners],
        "proved by": [r.proved_by for r in runners],
        "ended by": [
            "proof" if r.proved_s is not None else STOPPED_BY.get(r.ended, r.ended) for r in runners
        ],
    }
    return (
        {**table, "remark": [r.message for r in runners]}
        if any(r.message for r in runners)
        else table
    )


def finding(runners: Sequence[Contestant]) -> str:
    """Return who won, as a sentence: who proves and how fast, who comes how close without a proof."""
    found = [r for r in runners if r.makespan_ms is not None]
    if not found:
        return ""
    best = min(float(r.makespan_ms or 0.0) for r in found)
    proved = sorted((r for r in found if r.proved_s is not None), key=lambda r: r.proved_s or 0.0)
    others = [r for r in found if r.proved_s is None]
    word = apart(
        [best, *(float(r.makespan_ms or 0.0) for r in found), max(r.bound_ms for r in found)]
    )
    parts = _proofs(proved, word[0]) if proved else _closest(found, best, word[0])
    if proved:
        parts += _behind(
            others, best, "reaches the same without proving it", "reach the same without proving it"
        )
    else:
        bound = max(r.bound_ms for r in found)
        high = [r for r in found if r.bound_ms >= bound * (1 - ROUNDING)]
        whose = (
            "the same for all"
            if len(high) == len(found) > 1
            else f"that of {enumeration([r.name for r in high])}"
        )
        parts.append(f"nobody proves it; the best bound, {word[-1]}, is {whose}")
    text = "; ".join(parts) + "."
    return text[:1].upper() + text[1:]


def _proofs(proved: Sequence[Contestant], word: str) -> list[str]:
    """Return who proves first, and how much longer the others need."""
    fastest = proved[0].proved_s or 0.0
    level = max(fastest + SAME_S, fastest * (1 + SAME_SHARE))
    first = [r for r in proved if (r.proved_s or 0.0) <= level]
    verb = "proves" if len(first) == 1 else "both prove" if len(first) == 2 else "all prove"
    parts = [
        f"{enumeration([r.name for r in first])} {verb} {word} after {seconds(round(fastest, 3))}"
    ]
    slower = [r for r in proved if r not in first]
    return parts + [
        f"{r.name} needs {seconds(round((r.proved_s or 0.0) - fastest, 2))} longer" for r in slower
    ]


def _closest(found: Sequence[Contestant], best: float, word: str) -> list[str]:
    """Return who comes to the best schedule when nobody proves it, the fastest first, and how far the others are."""
    first = sorted(
        (r for r in found if float(r.makespan_ms or 0.0) <= best * (1 + ROUNDING)),
        key=lambda r: r.best_s or 0.0,
    )
    fastest = first[0]
    after = seconds(float(f"{fastest.best_s or 0.0:.2g}"))
    by = f" by {fastest.found_by}" if fastest.found_by != fastest.name else ""
    head = (
        f"{fastest.name} comes to {word}, the shortest,{by} after {after}"
        if len(first) == 1
        else f"{enumeration([r.name for r in first])} come to {word}, {fastest.name} first,{by} after {after}"
    )
    return [head, *_behind([r for r in found if r not in first], best, "", "")]


def _behind(others: Sequence[Contestant], best: float, same: str, same_many: str) -> list[str]:
    """Return how far engines are above the best, those at the same distance together."""
    by_distance: dict[str, list[str]] = {}
    for runner in sorted(others, key=lambda r: r.makespan_ms or 0.0):
        share = float(runner.makespan_ms or 0.0) / best - 1 if best > 0 else 0.0
        by_distance.setdefault("" if share <= ROUNDING else percent(share), []).append(runner.name)
    parts = []
    for distance, names in by_distance.items():
        if distance:
            parts.append(
                f"{enumeration(names)} {'is' if len(names) == 1 else 'are'} {distance} above"
            )
        else:
            parts.append(f"{enumeration(names)} {same if len(names) == 1 else same_many}")
    return parts
