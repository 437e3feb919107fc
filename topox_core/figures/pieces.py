"""What a training iteration consists of, one piece after another: the bars add up to it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    FORWARD,
    UPDATE,
    Theme,
    parallelism_colour,
)
from topox_core.figures.template import axis, frame, line, margins, named_axis
from topox_core.text.numbers import percent, size, time
from topox_core.training.pieces import Piece

ROW = 23
# By how the name of a piece begins.
_TRAFFIC = {
    "tensor": "tp",
    "context": "cp",
    "tokens": "ep",
    "FSDP": "fsdp",
    "stage": "pp",
    "gradients": "dp",
    "experts' gradients": "dp",
    "weights": "dp",
    "experts' weights": "dp",
    "tied": "dp",
}


def piece_words(piece: Piece) -> str:
    """Return a piece in words: what is moved, how often and among how many GPUs, and what of it is hidden."""
    parts = [time(piece.exposed_ms)]
    if piece.group is not None:
        where = "across servers" if piece.group.crosses else "inside a server"
        parts.append(
            f"{piece.calls:,} x {size(piece.size_bytes)} among {piece.group.size:,} GPUs {where}"
        )
    if piece.hidden_ms:
        parts.append(f"{time(piece.hidden_ms)} more hidden behind computing")
    return "; ".join(parts)


def pieces_bars(pieces: Sequence[Piece], theme: Theme) -> go.Figure:
    """Return one bar a piece, each beginning where the one above ends, and the iteration below."""
    shown = [piece for piece in pieces if piece.exposed_ms > 0]
    whole_ms = sum(piece.exposed_ms for piece in shown)
    begins = [sum(one.exposed_ms for one in shown[:k]) for k in range(len(shown))]
    names = [*(piece.name for piece in shown), "iteration"]
    lengths = [*(piece.exposed_ms for piece in shown), whole_ms]
    labels = [
        *(f"{time(one.exposed_ms)} ({percent(one.exposed_ms / whole_ms)})" for one in shown),
        time(whole_ms),
    ]
    hover = [*(f"{one.name}: {piece_words(one)}" for one in shown), f"iteration: {time(whole_ms)}"]
    figure = go.Figure().add_bar(
        orientation="h",
        y=list(range(len(names))),
        base=[*begins, 0.0],
        x=lengths,
        width=0.66,
        customdata=[[words] for words in hover],
        marker={
            "color": [*(_colour(one, theme) for one in shown), theme.muted],
            "line": line(theme.line, 0.5),
        },
        hovertemplate="%{customdata[0]}<extra></extra>",
    )
    # A label follows its bar, or goes before it where the row has no room behind.
    for row, (begin, length, label) in enumerate(zip([*begins, 0.0], lengths, labels, strict=True)):
        behind = (begin + length) / whole_ms < 0.72
        figure.add_annotation(
            x=begin + length if behind else begin,
            y=row,
            xanchor="left" if behind else "right",
            xshift=5 if behind else -5,
            text=label,
            showarrow=False,
            font={"size": 11 * theme.scale, "color": theme.ink},
        )
    last = figure.layout.annotations[-1]
    last.update(x=whole_ms, xanchor="left", xshift=5)
    longest = max(len(name) for name in names)
    return frame(
        figure,
        theme,
        (len(names) * ROW + 44) * theme.scale,
        margin=margins((14 + 6.3 * longest) * theme.scale, 62, 4, 40, pad=4),
        xaxis=axis(theme, grid=True, title="time, ms", range=[0, whole_ms * 1.02]),
        yaxis=named_axis(theme, names, None, 11.5, theme.ink, range=[len(names) - 0.5, -0.5]),
    )


def _colour(piece: Piece, theme: Theme) -> str:
    if piece.name in ("computing", "host"):
        return str(CATEGORY_COLOURS[FORWARD])
    if piece.name == "update":
        return str(CATEGORY_COLOURS[UPDATE])
    for begin, parallelism in _TRAFFIC.items():
        if piece.name.startswith(begin):
            return parallelism_colour(parallelism)
    return theme.line
