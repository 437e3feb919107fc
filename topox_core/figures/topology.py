"""TopologyFinder as a player: what each step lays, drawn on a circle of servers, and how far servers then are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from topox_core.figures.palette import Theme, discrete_scale
from topox_core.figures.template import axis, frame
from topox_core.topology.result import LayoutResult, LayoutStep
from topox_core.topology.routing import Path, RoutedNetwork
from topox_core.topology.traffic import Demand

DASHES = (
    "solid",
    "8px,3px",
    "2px,3px",
    "10px,3px,2px,3px",
    "5px,2px",
    "12px,4px",
    "1px,2px",
    "6px,2px,2px,2px",
)
MOST_ARROWS = 220
MOST_NAMED = 40
MOST_NUMBERED = 20
# Lines need more contrast with the page than cells do: no yellow on white, no navy on black.
_LINES_LIGHT = (
    "#0072B2",
    "#661100",
    "#009E73",
    "#8F86E8",
    "#8A6D00",
    "#56B4E9",
    "#CC79A7",
    "#4A5568",
)
_LINES_DARK = (
    "#56B4E9",
    "#F0E442",
    "#3CC9A0",
    "#CC79A7",
    "#8F86E8",
    "#DDCC77",
    "#B4BDC8",
    "#E07B5A",
)

Pair = tuple[int, int]


@dataclass(frozen=True)
class LinkSet:
    """Circuits that belong together: one stride of a ring in all groups of a size, one matching, the connecting ring.

    ``kind`` is ``ring``, ``matching``, ``connect`` or ``candidate`` (not laid, only looked at).
    """

    name: str
    kind: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Frame:
    """One picture of the player: the step, what it adds, and what lies already."""

    step: LayoutStep
    words: str
    added: tuple[LinkSet, ...]
    laid: tuple[LinkSet, ...]

    def circuits(self, servers: int) -> NDArray[np.int32]:
        """Return the matrix of circuits laid so far, those of this frame included."""
        matrix = np.zeros((servers, servers), np.int32)
        for one in (*self.laid, *self.added):
            if one.kind != "candidate":
                for a, b in one.pairs:
                    matrix[a, b] += 1
        return matrix


def frames(found: LayoutResult) -> tuple[Frame, ...]:
    """Return the player's pictures: a chosen step lays its strides one after the other, a matching all its pairs at once."""
    several = len({len(members) for members in found.rings}) > 1
    result: list[Frame] = []
    laid: tuple[LinkSet, ...] = ()
    for step in found.steps:
        parts = list(_parts(step, found, several))
        if not parts:
            result.append(Frame(step, step.text, (), laid))
        for k, one in enumerate(parts):
            more = f" ({k + 1} of {len(parts)}: {one.name})" if len(parts) > 1 else ""
            result.append(Frame(step, step.text + more, (one,), laid))
            if one.kind != "candidate":
                laid = (*laid, one)
    return tuple(result)


def _parts(step: LayoutStep, found: LayoutResult, several: bool) -> Iterator[LinkSet]:
    data = step.data
    if (
        step.kind == "connect"
        and tuple(data["members"]) not in found.rings
        and data["size"] == len(data["members"])
    ):
        members = data["members"]
        yield LinkSet(
            "connecting ring",
            "connect",
            tuple(zip(members, (*members[1:], members[0]), strict=True)),
        )
    elif step.kind == "candidates":
        yield LinkSet(
            "candidate strides from S0",
            "candidate",
            tuple(
                (0, p * max(1, found.layout.servers // data["size"]) % found.layout.servers)
                for p in data["candidates"]
            ),
        )
    elif step.kind == "choose" and data["chosen"]:
        yield from _strides(step, found, several)
    elif step.kind == "matching":
        pairs = tuple(ends for a, b, _ in data["pairs"] for ends in ((a, b), (b, a)))
        yield LinkSet(f"matching {data['round']}", "matching", pairs)


def _strides(step: LayoutStep, found: LayoutResult, several: bool) -> Iterator[LinkSet]:
    """Yield the circuits of each chosen stride, with those back where rings run in both directions."""
    size = step.data["size"]
    ports = step.data["ports"]
    groups = {
        members: strides
        for members, strides in found.rings.items()
        if len(members) == size
        and (found.variant == "released" or len(strides) >= ports)
        and _is_of(step, members)
    }
    if not groups:
        return
    of = f"groups of {size}, " if several else ""
    strides = next(iter(groups.values()))
    done: set[int] = set()
    for k, p in enumerate(strides):
        if k in done:
            continue
        back = (
            next(
                (
                    j
                    for j in range(k + 1, len(strides))
                    if j not in done and strides[j] == (size - p) % size
                ),
                None,
            )
            if found.variant == "released"
            else None
        )
        done |= {k} if back is None else {k, back}
        ways = (p,) if back is None else (p, strides[back])
        pairs = tuple(
            (members[i], members[(i + q) % size])
            for members in groups
            for q in ways
            for i in range(size)
        )
        yield LinkSet(f"{of}stride {p}" + (" both ways" if back is not None else ""), "ring", pairs)


def _is_of(step: LayoutStep, members: tuple[int, ...]) -> bool:
    listed = step.data.get("groups")
    return listed is None or len(listed) < step.data["group_count"] or list(members) in listed


def place_of(servers: int, server: int | NDArray[np.int64]) -> tuple[Any, Any]:
    """Return where a server stands on the circle, clockwise from the top."""
    angle = np.pi / 2 - 2 * np.pi * np.asarray(server) / max(1, servers)
    return np.cos(angle), np.sin(angle)


def ring(
    found_frame: Frame, servers: int, routes: Sequence[Path], theme: Theme, scale: float = 1.0
) -> go.Figure:
    """Return the servers on a circle and the circuits laid so far; those of this step are heavy, each set has colour and dash.

    Parameters
    ----------
    routes
        Paths to draw on top, server by server.
    """
    figure = go.Figure()
    every = [*found_frame.laid, *found_frame.added]
    new = {one.name for one in found_frame.added}
    laid = [one for one in every if one.kind != "candidate"]
    for one in every:
        number = laid.index(one) if one in laid else 0
        colour = theme.muted if one.kind == "candidate" else _line_colour(number, theme)
        dash = "2px,4px" if one.kind == "candidate" else DASHES[number % len(DASHES)]
        heavy = one.name in new
        figure.add_trace(
            _lines(
                one,
                servers,
                {"color": colour, "width": 2.6 if heavy else 1.2, "dash": dash},
                0.95 if heavy or not new else 0.55,
            )
        )
        if len(one.pairs) <= MOST_ARROWS and one.kind != "candidate":
            figure.add_trace(_arrows(one, servers, colour, 8 if heavy else 6))
    for path in routes:
        x, y = place_of(servers, np.array(path))
        figure.add_trace(
            go.Scatter(
                x=x * 0.965,
                y=y * 0.965,
                mode="lines+markers",
                name=" → ".join(f"S{s}" for s in path),
                showlegend=True,
                line={"color": theme.ink, "width": 4},
                hoverinfo="name",
                marker={"size": 9, "color": theme.ink, "opacity": 1},
            )
        )
    x, y = place_of(servers, np.arange(servers))
    named = servers <= MOST_NAMED
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="markers",
            name="servers",
            customdata=[f"S{s}" for s in range(servers)],
            marker={
                "size": 9 if named else 5,
                "color": theme.page,
                "opacity": 1,
                "line": {"color": theme.ink, "width": 1.5},
            },
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    step = 1 if named else max(1, servers // 16)
    labels = [
        {
            "x": 1.1 * float(x[s]),
            "y": 1.1 * float(y[s]),
            "text": f"<b>S{s}</b>",
            "showarrow": False,
            "font": {"size": 12 * scale, "color": theme.ink},
        }
        for s in range(0, servers, step)
    ]
    plain = {"visible": False, "fixedrange": True}
    return frame(
        figure,
        theme,
        452 * scale,
        scale,
        showlegend=True,
        annotations=labels,
        margin={"l": 8, "r": 8, "t": 48 * scale, "b": 8, "pad": 0},
        xaxis={**plain, "range": [-1.22, 1.22], "constrain": "domain"},
        yaxis={**plain, "range": [-1.18, 1.18], "scaleanchor": "x", "scaleratio": 1},
    )


def _line_colour(number: int, theme: Theme) -> str:
    colours = _LINES_LIGHT if theme.name == "light" else _LINES_DARK
    return colours[number % len(colours)]


def _lines(one: LinkSet, servers: int, line: dict[str, Any], opacity: float) -> go.Scatter:
    ends = np.array(one.pairs, np.int64).reshape(-1, 2)
    x0, y0 = place_of(servers, ends[:, 0])
    x1, y1 = place_of(servers, ends[:, 1])
    gap = np.full(len(ends), np.nan)
    return go.Scatter(
        x=np.stack([x0, x1, gap], axis=1).ravel(),
        y=np.stack([y0, y1, gap], axis=1).ravel(),
        mode="lines",
        name=f"{one.name} ({len(ends)})",
        showlegend=True,
        line=line,
        opacity=opacity,
        hoverinfo="skip",
    )


def _arrows(one: LinkSet, servers: int, colour: str, size: int) -> go.Scatter:
    """Return a small triangle on each circuit, nearer its end, that says which way it leads."""
    ends = np.array(one.pairs, np.int64).reshape(-1, 2)
    x0, y0 = place_of(servers, ends[:, 0])
    x1, y1 = place_of(servers, ends[:, 1])
    along = 0.72
    turn = np.degrees(np.arctan2(x1 - x0, y1 - y0))
    return go.Scatter(
        x=x0 + along * (x1 - x0),
        y=y0 + along * (y1 - y0),
        mode="markers",
        showlegend=False,
        name=one.name,
        marker={
            "symbol": "triangle-up",
            "size": size,
            "angle": turn,
            "color": colour,
            "opacity": 1,
        },
        customdata=[f"S{a} → S{b}" for a, b in one.pairs],
        hovertemplate="%{customdata}<br>" + one.name + "<extra></extra>",
    )


def hop_matrix(circuits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the hops from each server (row) to each other one; 0 on the diagonal, -1 where no path leads."""
    network = RoutedNetwork(circuits)
    return (
        np.array([network.hops_to(b) for b in range(network.servers)], np.int32)
        .reshape(network.servers, -1)
        .T
    )


def hops(matrix: NDArray[np.int32], most: int, theme: Theme, scale: float = 1.0) -> go.Figure:
    """Return the hop counts, sources down, destinations across; the number stands in the cell, a cross where no path leads.

    Parameters
    ----------
    most
        Hops that the darkest colour means, so that colours stay what they are from step to step.
    """
    n, most = len(matrix), max(1, most)
    shades = [_between(theme.cell, theme.primary, k / most) for k in range(1, most + 1)]
    colours = [theme.page, theme.cell_diagonal, *shades]
    z = np.where(matrix < 0, 0, np.minimum(matrix, most) + 1).astype(np.uint8)
    figure = go.Figure(
        go.Heatmap(
            z=z,
            colorscale=discrete_scale(colours),
            zmin=-0.5,
            zmax=len(colours) - 0.5,
            showscale=False,
            xgap=1 if n <= 40 else 0,
            ygap=1 if n <= 40 else 0,
            customdata=matrix if n <= 128 else None,
            hovertemplate="S%{y} → S%{x}: %{customdata} hops<extra></extra>" if n <= 128 else None,
            hoverinfo=None if n <= 128 else "skip",
        )
    )
    words: list[dict[str, Any]] = []
    if n <= MOST_NUMBERED:
        size = float(np.clip(200 / n, 9, 13)) * scale
        for (a, b), value in np.ndenumerate(matrix):
            if a != b:
                colour = (
                    theme.bad if value < 0 else theme.page if value > most * 0.55 else theme.ink
                )
                words.append(
                    {
                        "x": int(b),
                        "y": int(a),
                        "text": "×" if value < 0 else str(value),
                        "showarrow": False,
                        "font": {"size": size, "color": colour},
                    }
                )
    every = 1 if n <= 24 else max(1, n // 16)
    ticks = list(range(0, n, every))
    tick = {"size": 10 * scale, "color": theme.muted}
    return frame(
        figure,
        theme,
        360 * scale,
        scale,
        annotations=words,
        margin={"l": 40, "r": 8, "t": 34, "b": 8, "pad": 0},
        xaxis=axis(
            theme,
            scale,
            side="top",
            tickvals=ticks,
            ticktext=[f"S{s}" for s in ticks],
            ticks="",
            tickfont=tick,
            constrain="domain",
            constraintoward="left",
            range=[-0.5, n - 0.5],
        ),
        yaxis=axis(
            theme,
            scale,
            range=[n - 0.5, -0.5],
            tickvals=ticks,
            ticktext=[f"S{s}" for s in ticks],
            ticks="",
            tickfont=tick,
            scaleanchor="x",
            constrain="domain",
            constraintoward="top",
        ),
    )


def _between(low: str, high: str, share: float) -> str:
    """Return a colour between two, in plain RGB."""
    a, b = (np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) for code in (low, high))
    return "#" + "".join(f"{round(v):02X}" for v in (a + (b - a) * share).tolist())


def bandwidth_tax(found: LayoutResult, demand: Demand) -> float:
    """Return bytes times hops over bytes for a demand on a layout (TopoOpt's measure); rings ride on their strides' routes."""
    paid = total = 0.0
    for members, sent in demand.all_reduce.items():
        strides = found.riding.get(members, ())
        for p in strides:
            pairs = [(members[i], members[(i + p) % len(members)]) for i in range(len(members))]
            total += sent / len(strides) * len(pairs)
            paid += sum(sent / len(strides) * _route_hops(found, a, b) for a, b in pairs)
    for a, b in zip(*np.nonzero(demand.model_parallel), strict=True):
        size = float(demand.model_parallel[a, b])
        total += size
        paid += size * _route_hops(found, int(a), int(b))
    return paid / total if total > 0 else 1.0


def _route_hops(found: LayoutResult, a: int, b: int) -> float:
    paths = found.layout.routes.get((a, b))
    if not paths:
        return float(max(0, found.network.hops_to(b)[a]))
    return sum(len(path) - 1 for path in paths) / len(paths)


def used_for(found: LayoutResult) -> dict[Pair, str]:
    """Return for each linked pair what its circuits were laid for, in words."""
    words: dict[Pair, list[str]] = {}
    pictures = frames(found)
    last = pictures[-1] if pictures else None
    for one in (*last.laid, *last.added) if last else ():
        if one.kind != "candidate":
            for pair in one.pairs:
                words.setdefault(pair, []).append(one.name)
    return {pair: ", ".join(names) for pair, names in words.items()}


def loads(found: LayoutResult, demand: Demand) -> dict[Pair, float]:
    """Return the bytes that each linked pair carries, forwarded ones included."""
    carried: dict[Pair, float] = {}

    def add(a: int, b: int, size: float) -> None:
        paths = found.layout.routes.get((a, b)) or ()
        for path in paths:
            for hop in pairwise(path):
                carried[hop] = carried.get(hop, 0.0) + size / len(paths)

    for members, sent in demand.all_reduce.items():
        strides = found.riding.get(members, ())
        for p in strides:
            for i, a in enumerate(members):
                add(a, members[(i + p) % len(members)], sent / len(strides))
    for a, b in zip(*np.nonzero(demand.model_parallel), strict=True):
        add(int(a), int(b), float(demand.model_parallel[a, b]))
    return carried
