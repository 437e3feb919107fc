"""How far off predictions are: a dot for each comparison, by kind, on a logarithmic axis of absolute errors."""

from collections.abc import Sequence

import plotly.graph_objects as go

from topox_core.figures.palette import Theme
from topox_core.figures.template import Look, axis, frame, line, log_axis, margins, note, upright
from topox_core.papers.accuracy import Kind
from topox_core.text.foreign import escape_untrusted

# What is nearer stands at the left end: digits of printed numbers end there.
NEAREST, FURTHEST = 1e-5, 10.0
ROW_PX, AXIS_PX = 46, 56
AT_LEFT: Look = {"xref": "paper", "xanchor": "left", "yanchor": "middle", "showarrow": False}
MARKED = (0.01, 0.1)


def names_of(kinds: Sequence[Kind]) -> list[str]:
    """Return what the rows of the figure are called."""
    return [f"{one.title}, {one.against}" for one in kinds]


def error_dots(kinds: Sequence[Kind], theme: Theme) -> go.Figure:
    """Return a row for each kind: its comparisons as dots, their median as a bar; what a test holds as one hollow dot."""
    layers = []
    for at, kind in enumerate(kinds):
        errors = [abs(one.error) for one in kind.comparisons] or [kind.most]
        words = [
            f"{escape_untrusted(one.subject, 'figure')}: {one.error:+.2%}"
            for one in kind.comparisons
        ] or [f"{kind.count} answers, none further off"]
        layers.append(
            go.Scatter(
                x=[min(max(one, NEAREST), FURTHEST) for one in errors],
                y=[at] * len(errors),
                mode="markers",
                marker={
                    "symbol": "circle" if kind.comparisons else "circle-open",
                    "size": 8 * theme.scale,
                    "color": theme.primary,
                    "opacity": 0.45 if kind.comparisons else 1.0,
                },
                hovertext=words,
                hoverinfo="text",
                showlegend=False,
            )
        )
        median = kind.share(50)
        if median is not None:
            layers.append(
                go.Scatter(
                    x=[max(median, NEAREST)],
                    y=[at],
                    mode="markers",
                    marker={
                        "symbol": "line-ns",
                        "size": 18 * theme.scale,
                        "line": line(theme.ink, 2),
                    },
                    hovertext=f"median {median:.2%}",
                    hoverinfo="text",
                    showlegend=False,
                )
            )
    names = [
        # Above its row: beside it a narrow window would have no room for the dots.
        note(escape_untrusted(name, "figure"), 0, at - 0.44, 12, theme.ink, **AT_LEFT)
        for at, name in enumerate(names_of(kinds))
    ]
    return frame(
        layers,
        theme,
        (ROW_PX * len(kinds) + AXIS_PX) * theme.scale,
        [*names, *(upright(one, line(theme.line, 1, "dot")) for one in MARKED)],
        margin=margins(10, 16, 8, 44 * theme.scale),
        xaxis=log_axis(
            theme,
            NEAREST,
            FURTHEST,
            lambda share: f"{100 * share:g} %",
            0.02,
            title="error, without its sign (log)",
        ),
        yaxis=axis(theme, range=[len(kinds) - 0.6, -0.75], visible=False),
    )
