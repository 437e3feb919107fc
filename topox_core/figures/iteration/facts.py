"""What a graph is made of: tasks by kind, bytes by parallelism; and what an iteration consists of, piece by piece."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from topox_core.figures.builders import Bar, bars, row_chart
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
    Figure,
    axis,
    line,
    note,
)
from topox_core.text.numbers import count, percent, size, time
from topox_core.training.iteration import Piece


def _bars(rows: Sequence[tuple[str, float, str, str]], theme: Theme) -> Figure:
    """Return bars from zero: what each is called, its value, the value in words, its colour."""
    names, colours = [name for name, *_ in rows], [colour for *_, colour in rows]
    return row_chart(
        names,
        [
            bars(
                "",
                {"color": colours, "line": line(theme.line, 0.5)},
                [
                    Bar(row, value, f"{name}: {said}", text=said)
                    for row, (name, value, said, _) in enumerate(rows)
                ],
                theme,
            )
        ],
        theme,
        axis(
            theme,
            visible=False,
            range=[0, (max((value for _, value, *_ in rows), default=1.0) or 1.0) * 1.3],
        ),
        25,
        11.5,
    )


def tasks_by_kind(counts: Mapping[str, int], theme: Theme) -> Figure:
    """Return how many tasks of each kind the graph has."""
    colours = {kind: KIND_COLOURS.get(kind, theme.line) for kind in counts}
    return _bars(
        [(kind.replace("_", " "), v, count(v), colours[kind]) for kind, v in counts.items()], theme
    )


def bytes_by_parallelism(sizes: Mapping[str, float], theme: Theme) -> Figure:
    """Return how many bytes each kind of traffic moves over the network."""
    return _bars(
        [(parallelism_word(use), v, size(v), parallelism_colour(use)) for use, v in sizes.items()],
        theme,
    )


def time_by_kind(times_ms: Mapping[str, tuple[float, str]], theme: Theme) -> Figure:
    """Return what a chain of tasks spends on each kind of work: words -> (ms, colour)."""
    return _bars([(name, ms, time(ms), look) for name, (ms, look) in times_ms.items()], theme)


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


def pieces_bars(pieces: Sequence[Piece], theme: Theme) -> Figure:
    """Return one bar a piece, each beginning where the one above ends, and the iteration below."""
    shown = [piece for piece in pieces if piece.exposed_ms > 0]
    ends = list(accumulate(piece.exposed_ms for piece in shown))
    whole_ms = ends[-1] if ends else 0.0
    colours = [
        next((look for name, look in _COLOURS.items() if one.name.startswith(name)), theme.line)
        for one in shown
    ]
    labels = [f"{time(one.exposed_ms)} ({percent(one.exposed_ms / whole_ms)})" for one in shown]
    every = [
        Bar(row, one.exposed_ms, f"{one.name}: {piece_words(one)}", end - one.exposed_ms)
        for row, (one, end) in enumerate(zip(shown, ends, strict=True))
    ]
    every.append(Bar(len(shown), whole_ms, f"iteration: {time(whole_ms)}"))
    # A label follows its bar, or goes before it where the row has no room behind.
    after, before = {"xanchor": "left", "xshift": 5}, {"xanchor": "right", "xshift": -5}
    size = 11 * theme.scale
    words = [
        note(label, end, one.row, size, theme.ink, **after)
        if one.row == len(shown) or end / whole_ms < 0.72
        else note(label, one.start, one.row, size, theme.ink, **before)
        for one, label, end in zip(every, [*labels, time(whole_ms)], [*ends, whole_ms], strict=True)
    ]
    look = {"color": [*colours, theme.muted], "line": line(theme.line, 0.5)}
    return row_chart(
        [*(piece.name for piece in shown), "iteration"],
        [bars("", look, every, theme, 0.66)],
        theme,
        axis(theme, grid=True, title="time, ms", range=[0, whole_ms * 1.02]),
        23,
        11.5,
        marks=words,
        room={"right": 62},
    )
