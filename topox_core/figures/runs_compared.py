"""Runs side by side: their overviews on one clock, and how long the windows between their transfers are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.lanes import Lanes, overview_height, overview_trace, server_axis
from topox_core.figures.palette import Theme
from topox_core.figures.rails_windows import log_length_axis, share_by_length
from topox_core.figures.template import (
    DOTS,
    LANE_LEFT,
    frame,
    line,
    margins,
    note,
    time_axis,
    upright,
)
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.window_lengths import cdf
from topox_core.text.numbers import time

BEHIND_PX = 84  # room behind the longest run for its length
# Of the runs in their order: which fabric's colour, and the dash.
_LOOKS = (
    ("scheduled", "solid"),
    ("reactive", "7px,5px"),
    ("fat_tree", "2px,3px"),
    ("provisioned", "9px,3px,2px,3px"),
)


@dataclass(frozen=True)
class RunPicture:
    """One run as an overview: its letter, its length, its image (as ``overview_image`` makes it) and lanes."""

    letter: str
    makespan_ms: float
    image: NDArray[np.uint8]
    lanes: Lanes


def on_one_clock(run: RunPicture, longest_ms: float, shortest_ms: float, theme: Theme) -> go.Figure:
    """Return a run's overview on the clock of the longest one, with a line where the shortest ends.

    One figure a run, all with the same clock and the same margins, so that they stand under one
    another like one chart.
    """
    until = max(longest_ms, 1e-9)
    figure = go.Figure(overview_trace(run.image, run.makespan_ms, theme))
    beside = {"xanchor": "left", "xshift": 7, "yref": "paper"}
    # The run's own length, and its letter where the page has no room beside the figure.
    words = f"<b>{run.letter}</b>&nbsp; {time(run.makespan_ms)}"
    return frame(
        figure,
        theme,
        overview_height(run.lanes, theme) + 26,
        shapes=[upright(shortest_ms, line(theme.ink, 1.5, DOTS))],
        annotations=[note(words, run.makespan_ms, 0.5, 12.5 * theme.scale, theme.ink, **beside)],
        margin=margins(LANE_LEFT, BEHIND_PX * theme.scale, 2, 24),
        xaxis=time_axis(theme, until),
        yaxis=server_axis(len(run.image), run.lanes, theme),
    )


def windows_side_by_side(runs: Sequence[tuple[str, FloatArray]], theme: Theme) -> go.Figure:
    """Return the distribution of the windows' lengths of each run (letter, lengths in ms), length logarithmic.

    A run without a window has no line.
    """
    there = [(letter, lengths) for letter, lengths in runs if len(lengths)]
    every = [v for _, lengths in there for v in lengths.tolist()]
    low, high, ticks, words = log_length_axis(every, 0.0)
    figure = go.Figure()
    marks = []
    for number, (letter, lengths) in enumerate(there):
        fabric, dash = _LOOKS[number % len(_LOOKS)]
        colour = theme.fabric_colour(fabric)
        ascending, shares = (values.tolist() for values in cdf(lengths.tolist()))
        x = [low, *(min(max(v, low), high) for v in ascending), high]
        figure.add_scatter(
            x=x,
            y=[0.0, *(100 * share for share in shares), 100.0],
            mode="lines",
            name=letter,
            line={"shape": "hv", **line(colour, 2.2, dash)},
            customdata=[[letter, time(v)] for v in x],
            hovertemplate="<b>%{customdata[0]}</b>: %{y:.1f} % are no longer than %{customdata[1]}<extra></extra>",
        )
        half = float(np.median(lengths))
        at = min(max(half, low), high)
        # On the side that has more room, each at a height of its own.
        side = 1 if math.log10(at / low) < 0.45 * math.log10(high / low) else -1
        marks.append(
            note(
                f'<span style="color:{colour}"><b>{letter}</b></span>, {_half_words(half)}',
                math.log10(at),
                30 + 14 * number,
                11.5 * theme.scale,
                theme.ink,
                xanchor="left" if side > 0 else "right",
                xshift=10 * side,
            )
        )
    return frame(
        figure,
        theme,
        250 * theme.scale,
        annotations=marks,
        **share_by_length(low, high, ticks, words, theme),
    )


def _half_words(half_ms: float) -> str:
    """Return what half of the windows are: longer than a time, or no window at all but an overlap."""
    return f"half longer than {time(half_ms)}" if half_ms > 0 else "half of them overlaps"
