"""What a graph is made of: tasks by kind, bytes by parallelism; and what an iteration consists of, piece by piece."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    FORWARD,
    KIND_COLOURS,
    UPDATE,
    Theme,
    parallelism_colour,
    parallelism_word,
)
from topox_core.figures.template import (
    axis,
    frame,
    line,
    margins,
    name_px,
    named_axis,
    note,
    outside,
)
from topox_core.text.numbers import count, percent, size, time
from topox_core.training.iteration import Piece


def _bars(
    names: list[str], values: list[float], colours: list[str], labels: list[str], theme: Theme
) -> go.Figure:
    """Return horizontal bars from zero with the value written at each end."""
    return frame(
        [
            go.Bar(
                orientation="h",
                y=list(range(len(names))),
                x=values,
                width=0.62,
                textangle=0,
                **outside(labels, theme),
                customdata=[[n, t] for n, t in zip(names, labels, strict=True)],
                marker={"color": colours, "line": line(theme.line, 0.5)},
                hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
            )
        ],
        theme,
        (len(names) * 25 + 12) * theme.scale,
        margin=margins(name_px(names, theme, 14, 6.1), 8, 4, 4, pad=4),
        xaxis=axis(theme, visible=False, range=[0, (max(values, default=1.0) or 1.0) * 1.3]),
        yaxis=named_axis(theme, names, None, 11.5, theme.ink, range=[len(names) - 0.5, -0.5]),
    )


def tasks_by_kind(counts: Mapping[str, int], theme: Theme) -> go.Figure:
    """Return how many tasks of each kind the graph has."""
    return _bars(
        [kind.replace("_", " ") for kind in counts],
        [float(v) for v in counts.values()],
        [KIND_COLOURS.get(kind, theme.line) for kind in counts],
        [count(v) for v in counts.values()],
        theme,
    )


def bytes_by_parallelism(sizes: Mapping[str, float], theme: Theme) -> go.Figure:
    """Return how many bytes each kind of traffic moves over the network."""
    return _bars(
        [parallelism_word(use) for use in sizes],
        list(sizes.values()),
        [parallelism_colour(use) for use in sizes],
        [size(v) for v in sizes.values()],
        theme,
    )


def time_by_kind(times_ms: Mapping[str, tuple[float, str]], theme: Theme) -> go.Figure:
    """Return what a chain of tasks spends on each kind of work: words -> (ms, colour)."""
    return _bars(
        list(times_ms),
        [ms for ms, _ in times_ms.values()],
        [colour for _, colour in times_ms.values()],
        [time(ms) for ms, _ in times_ms.values()],
        theme,
    )


# By how the name of a piece begins.
_COLOURS = {
    "computing": CATEGORY_COLOURS[FORWARD],
    "host": CATEGORY_COLOURS[FORWARD],
    "update": CATEGORY_COLOURS[UPDATE],
    "tensor": parallelism_colour("tp"),
    "context": parallelism_colour("cp"),
    "tokens": parallelism_colour("ep"),
    "FSDP": parallelism_colour("fsdp"),
    "stage": parallelism_colour("pp"),
    "gradients": parallelism_colour("dp"),
    "experts' gradients": parallelism_colour("dp"),
    "weights": parallelism_colour("dp"),
    "experts' weights": parallelism_colour("dp"),
    "tied": parallelism_colour("dp"),
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
    begins = [*(sum(one.exposed_ms for one in shown[:k]) for k in range(len(shown))), 0.0]
    names = [*(piece.name for piece in shown), "iteration"]
    lengths = [*(piece.exposed_ms for piece in shown), whole_ms]
    labels = [
        *(f"{time(one.exposed_ms)} ({percent(one.exposed_ms / whole_ms)})" for one in shown),
        time(whole_ms),
    ]
    hover = [*(f"{one.name}: {piece_words(one)}" for one in shown), f"iteration: {time(whole_ms)}"]
    colours = [
        next((look for name, look in _COLOURS.items() if one.name.startswith(name)), theme.line)
        for one in shown
    ]
    # A label follows its bar, or goes before it where the row has no room behind.
    ends = [begin + length for begin, length in zip(begins, lengths, strict=True)]
    behind = [end / whole_ms < 0.72 or row == len(shown) for row, end in enumerate(ends)]
    after, before = {"xanchor": "left", "xshift": 5}, {"xanchor": "right", "xshift": -5}
    words = [
        note(label, end, row, 11 * theme.scale, theme.ink, **after)
        if behind[row]
        else note(label, begins[row], row, 11 * theme.scale, theme.ink, **before)
        for row, (label, end) in enumerate(zip(labels, ends, strict=True))
    ]
    return frame(
        [
            go.Bar(
                orientation="h",
                y=list(range(len(names))),
                base=begins,
                x=lengths,
                width=0.66,
                customdata=[[words] for words in hover],
                marker={
                    "color": [*colours, theme.muted],
                    "line": line(theme.line, 0.5),
                },
                hovertemplate="%{customdata[0]}<extra></extra>",
            )
        ],
        theme,
        (len(names) * 23 + 44) * theme.scale,
        words,
        margin=margins(name_px(names, theme, 14, 6.3), 62, 4, 40, pad=4),
        xaxis=axis(theme, grid=True, title="time, ms", range=[0, whole_ms * 1.02]),
        yaxis=named_axis(theme, names, None, 11.5, theme.ink, range=[len(names) - 0.5, -0.5]),
    )
