"""The control plane's work: circuits group by group in time, and how many windows each stage has."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from topox_core.figures.palette import VERMILION, Theme, parallelism_word
from topox_core.figures.rails import parallelism_look
from topox_core.figures.template import axis, frame, time_axis
from topox_core.rails.iteration import RailRun
from topox_core.text.numbers import count, percent, plural, time

MOST_GROUPS = 48
MOST_CIRCUITS = 4_000


def groups_in_view(run: RailRun, most: int = MOST_GROUPS) -> list[int]:
    """Return the groups that the timeline shows: those with circuits, by parallelism, then in their order."""
    uses = sorted({circuit.group for circuit in run.circuits})
    groups = run.iteration.groups
    return sorted(uses, key=lambda g: (groups[g].parallelism != "pp", groups[g].parallelism, g))[
        :most
    ]


def timeline(run: RailRun, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return when each group's circuits stand: dark (hatched) while they are made, then in place until they make way."""
    shown = groups_in_view(run)
    row = {group: k for k, group in enumerate(shown)}
    circuits = [one for one in run.circuits if one.group in row][:MOST_CIRCUITS]
    groups = run.iteration.groups
    figure = go.Figure()
    least = 0.003 * run.iteration_ms  # of the width: about three pixels
    looks = parallelism_look([groups[g].parallelism for g in shown], theme)
    for use in dict.fromkeys(groups[g].parallelism for g in shown):
        mine = [one for one in circuits if groups[one.group].parallelism == use]
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=[one.start_ms for one in mine],
                x=[max(least, one.end_ms - one.start_ms) for one in mine],
                y=[row[one.group] for one in mine],
                width=0.72,
                name=parallelism_word(use),
                showlegend=True,
                marker=looks[use],
                customdata=[
                    [
                        group_words(run, one.group),
                        _members(run, one.group),
                        time(one.start_ms),
                        time(one.end_ms),
                    ]
                    for one in mine
                ],
                hovertemplate="<b>%{customdata[0]}</b>, %{customdata[1]}<br>in place from %{customdata[2]} to %{customdata[3]}"
                "<extra></extra>",
            )
        )
    dark = [one for one in circuits if one.changed and one.start_ms > one.setup_ms]
    if dark:
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=[one.setup_ms for one in dark],
                x=[one.start_ms - one.setup_ms for one in dark],
                y=[row[one.group] for one in dark],
                width=0.72,
                name="dark (switching)",
                showlegend=True,
                marker={
                    "color": "rgba(0,0,0,0)",
                    "line": {"color": VERMILION, "width": 1},
                    "pattern": {
                        "shape": "/",
                        "size": 5,
                        "solidity": 0.45,
                        "fgcolor": VERMILION,
                        "bgcolor": theme.page,
                    },
                },
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
        ((17 if len(shown) <= 24 else 13.5) * len(shown) + 76) * scale,
        scale,
        showlegend=True,
        margin={
            "l": (18 + 6.2 * max((len(n) for n in names), default=4)) * scale,
            "r": 10,
            "t": 32 * scale,
            "b": 26,
            "pad": 0,
        },
        xaxis=time_axis(theme, scale, max(run.iteration_ms, 1e-9)),
        yaxis=axis(
            theme,
            scale,
            range=[len(shown) - 0.4, -0.6],
            tickvals=list(range(len(shown))),
            ticktext=names,
            ticks="",
            tickfont={"size": 10.5 * scale, "color": theme.ink},
        ),
    )


def group_words(run: RailRun, group: int) -> str:
    """Return a group by its parallelism and the pipeline stages it joins: pp, stages 0 and 1; fsdp, stage 0."""
    iteration = run.iteration
    one = iteration.groups[group]
    stages = sorted({int(iteration.stage[rank]) for rank in one.ranks})
    if len(set(iteration.stage.tolist())) == 1 and iteration.ranks > 1:
        return f"{one.parallelism or 'transfers'}, " + _members(run, group)
    words = (
        f"stage {stages[0]}"
        if len(stages) == 1
        else f"stages {', '.join(map(str, stages[:-1]))} and {stages[-1]}"
    )
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


def counts(exact: Sequence[int], formula: int, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return the number of windows of an iteration by stage, counted, with what the formula says as a dotted line."""
    stages = list(range(len(exact)))
    top = max([*exact, formula, 1]) * 1.16
    figure = go.Figure(
        go.Bar(
            x=stages,
            y=list(exact),
            width=0.7,
            marker={"color": theme.primary, "line": {"width": 0}},
            text=[count(v) for v in exact] if len(exact) <= 24 else None,
            textposition="outside",
            cliponaxis=False,
            textfont={"size": 11.5 * scale, "color": theme.ink},
            customdata=[plural(v, "window") for v in exact],
            hovertemplate="stage %{x}: %{customdata}<extra></extra>",
        )
    )
    line = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": formula,
        "y1": formula,
        "line": {"color": theme.ink, "width": 1.4, "dash": "2px,3px"},
    }
    # Above the picture: beside its line it would stand in the bars' numbers.
    note = {
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "yref": "paper",
        "y": 1,
        "yanchor": "bottom",
        "showarrow": False,
        "text": f"dotted: formula, reconstructed: {count(formula)}",
        "font": {"size": 11.5 * scale, "color": theme.ink},
    }
    every = max(1, len(exact) // 16)
    return frame(
        figure,
        theme,
        232 * scale,
        scale,
        shapes=[line],
        annotations=[note],
        margin={"l": 42 * scale, "r": 8, "t": 22 * scale, "b": 42, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            range=[-0.6, len(exact) - 0.4],
            tickvals=stages[::every],
            title="pipeline stage",
        ),
        yaxis=axis(theme, scale, grid=True, range=[0, top], nticks=5, tickformat=",~g"),
    )


def rivals(
    rows: Sequence[tuple[str, float | None, float]], theme: Theme, scale: float = 1.0
) -> go.Figure:
    """Return a bar a way to wire the rail: the iteration, and hatched what switching adds to it.

    Parameters
    ----------
    rows
        (name, iteration in ms or None where it cannot be wired so, of which stall in ms).
    """
    figure = go.Figure()
    known = [
        (k, name, value, stall) for k, (name, value, stall) in enumerate(rows) if value is not None
    ]
    places = [k for k, *_ in known]
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=places,
            x=[value - stall for _, _, value, stall in known],
            width=0.66,
            name="iteration",
            showlegend=True,
            marker={"color": theme.primary, "line": {"width": 0}},
            customdata=[[name, time(value)] for _, name, value, _ in known],
            hovertemplate="<b>%{customdata[0]}</b>: %{customdata[1]}<extra></extra>",
        )
    )
    stalled = [(k, name, value, stall) for k, name, value, stall in known if stall > 0]
    if stalled:
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=[k for k, *_ in stalled],
                base=[value - stall for _, _, value, stall in stalled],
                x=[stall for *_, stall in stalled],
                width=0.66,
                name="stalled by switching",
                showlegend=True,
                marker={
                    "color": "rgba(0,0,0,0)",
                    "line": {"color": VERMILION, "width": 1},
                    "pattern": {
                        "shape": "/",
                        "size": 5,
                        "solidity": 0.45,
                        "fgcolor": VERMILION,
                        "bgcolor": theme.page,
                    },
                },
                customdata=[[name, time(stall)] for _, name, _, stall in stalled],
                hovertemplate="<b>%{customdata[0]}</b>: stalled %{customdata[1]}<extra></extra>",
            )
        )
    top = max((value for _, _, value, _ in known), default=1.0)
    base = known[0][2] if known else 1.0
    words = []
    for k, (_, value, _) in enumerate(rows):
        text = "✗ cannot be wired so" if value is None else time(value)
        if value is not None and k and base:
            text += f", {'+' if value >= base else '−'}{percent(abs(value / base - 1))}"
        words.append(
            {
                "x": value or 0.0,
                "y": k,
                "xanchor": "left",
                "xshift": 6,
                "showarrow": False,
                "text": text,
                "font": {"size": 12 * scale, "color": theme.bad if value is None else theme.ink},
            }
        )
    return frame(
        figure,
        theme,
        (31 * len(rows) + 66) * scale,
        scale,
        showlegend=True,
        annotations=words,
        margin={
            "l": (20 + 6.3 * max((len(name) for name, *_ in rows), default=4)) * scale,
            "r": 8,
            "t": 32 * scale,
            "b": 28,
            "pad": 0,
        },
        xaxis=time_axis(theme, scale, top * 1.22, grid=True),
        yaxis=axis(
            theme,
            scale,
            range=[len(rows) - 0.45, -0.55],
            tickvals=list(range(len(rows))),
            ticks="",
            ticktext=[name for name, *_ in rows],
            tickfont={"size": 11.5 * scale, "color": theme.ink},
        ),
    )
