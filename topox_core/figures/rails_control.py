"""The control plane's work: the circuits of each group in time."""

from __future__ import annotations

import plotly.graph_objects as go

from topox_core.figures.palette import Theme, parallelism_word
from topox_core.figures.rails_pattern import parallelism_markers
from topox_core.figures.template import frame, hatched, margins, row_axis, sideways_bars, time_axis
from topox_core.rails.iteration import RailRun
from topox_core.text.numbers import time

MOST_GROUPS = 48
MOST_CIRCUITS = 4_000


def groups_in_view(run: RailRun, most: int = MOST_GROUPS) -> list[int]:
    """Return the groups of the timeline: those with circuits, by parallelism, then in order."""
    with_circuits = sorted({circuit.group for circuit in run.circuits})
    groups = run.iteration.groups

    def place(g: int) -> tuple[bool, str, int]:
        return groups[g].parallelism != "pp", groups[g].parallelism, g

    return sorted(with_circuits, key=place)[:most]


def timeline(run: RailRun, theme: Theme) -> go.Figure:
    """Return when each group's circuits stand: dark (hatched) first, then in place."""
    shown = groups_in_view(run)
    row = {group: k for k, group in enumerate(shown)}
    circuits = [one for one in run.circuits if one.group in row][:MOST_CIRCUITS]
    groups = run.iteration.groups
    figure = go.Figure()
    least = 0.003 * run.iteration_ms  # of the width: about three pixels
    markers = parallelism_markers([groups[g].parallelism for g in shown], theme)
    for name in dict.fromkeys(groups[g].parallelism for g in shown):
        same = [one for one in circuits if groups[one.group].parallelism == name]
        figure.add_trace(
            sideways_bars(
                [one.start_ms for one in same],
                [max(least, one.end_ms - one.start_ms) for one in same],
                [row[one.group] for one in same],
                parallelism_word(name),
                markers[name],
                width=0.72,
                customdata=[
                    [
                        group_words(run, one.group),
                        _members(run, one.group),
                        time(one.start_ms),
                        time(one.end_ms),
                    ]
                    for one in same
                ],
                hovertemplate="<b>%{customdata[0]}</b>, %{customdata[1]}<br>in place from %{customdata[2]} to %{customdata[3]}"
                "<extra></extra>",
            )
        )
    dark = [one for one in circuits if one.changed and one.start_ms > one.setup_ms]
    if dark:
        figure.add_trace(
            sideways_bars(
                [one.setup_ms for one in dark],
                [one.start_ms - one.setup_ms for one in dark],
                [row[one.group] for one in dark],
                "dark (switching)",
                hatched(theme),
                width=0.72,
                customdata=[
                    [
                        group_words(run, one.group),
                        time(one.setup_ms),
                        time(one.start_ms - one.setup_ms),
                    ]
                    for one in dark
                ],
                hovertemplate="<b>%{customdata[0]}</b> dark from %{customdata[1]}, %{customdata[2]}<extra></extra>",
            )
        )
    names = [group_words(run, g) for g in shown]
    return frame(
        figure,
        theme,
        ((17 if len(shown) <= 24 else 13.5) * len(shown) + 76) * theme.scale,
        showlegend=True,
        margin=margins(
            (18 + 6.2 * max(map(len, names), default=4)) * theme.scale, 10, 32 * theme.scale, 26
        ),
        xaxis=time_axis(theme, max(run.iteration_ms, 1e-9)),
        yaxis=row_axis(theme, names, 10.5, range=[len(shown) - 0.4, -0.6]),
    )


def group_words(run: RailRun, group: int) -> str:
    """Return a group's parallelism and stages in words: pp, stages 0 and 1; fsdp, stage 0."""
    iteration = run.iteration
    one = iteration.groups[group]
    stages = sorted({int(iteration.stage[rank]) for rank in one.ranks})
    if len(set(iteration.stage.tolist())) == 1 and iteration.ranks > 1:
        return f"{one.parallelism or 'transfers'}, " + _members(run, group)
    words = f"stage {stages[0]}"
    if len(stages) > 1:
        words = f"stages {', '.join(map(str, stages[:-1]))} and {stages[-1]}"
    return f"{one.parallelism or 'transfers'}, {words}"


def _members(run: RailRun, group: int) -> str:
    ranks = run.iteration.groups[group].ranks
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + (
        ", ".join(map(str, ranks))
        if len(ranks) <= 8
        else f"{ranks[0]} to {ranks[-1]}, {len(ranks)} of them"
    )
