"""Jobs that share a fabric: rounds on one clock, which pod group holds everybody up, and what one pod does."""

import re
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from topox_core.figures.builders import Bar, Point, bars, dots, written
from topox_core.figures.iteration.gantt import Window, gantt
from topox_core.figures.iteration.lanes import Bars, Lanes, bars_of
from topox_core.figures.palette import (
    BACKWARD,
    DARK,
    EXPERT,
    SEND,
    UPDATE,
    VERMILION,
    Theme,
)
from topox_core.figures.template import (
    DOTS,
    Figure,
    Layer,
    Look,
    axis,
    box,
    clock,
    first_that_fits,
    frame,
    line,
    margins,
    multiples,
    named_axis,
    note,
    opaque,
    round_step,
    upright,
)
from topox_core.model.execution import Circuits, Execution
from topox_core.model.transfer_graph import BARRIER, COMPUTE
from topox_core.tdm.model.jobs import NOBODY, PUSH, Cycle, Round
from topox_core.tdm.model.round_words import lasting
from topox_core.tdm.model.rounds import (
    Bar as RoundBar,
    bars as bars_of_cycle,
    cycle_in_view,
    members,
    numbered,
)
from topox_core.text.numbers import short

# What a bar means: words, colour, colour of the text on it.
KINDS = {
    "train": ("train", "#0072B2", "#FFFFFF"),
    "push": ("push", "#E69F00", "#10151C"),
    "send": ("send", "#E69F00", "#10151C"),
    "aggregate": ("aggregate", "#8A8F98", "#10151C"),
    "pull": ("pull", "#CC79A7", "#10151C"),
}
GROUP_NAMES = "ABCDEFGH"
TIMELINE_PX = 900.0  # width of the timeline on a laptop; decides which bars have room for words
LEFT = 84  # room for the lanes' names
HEADER, LANE, GAP = 1.3, 1.0, 0.35  # heights within a round's block
NARROW = 0.29  # of that width on a telephone, where a page hides what is in <span>
IN_MS = 2.0  # a clock shorter than this many s counts in ms


def group_name(group: int) -> str:
    """Return A, B, C ... for a group."""
    return GROUP_NAMES[group % len(GROUP_NAMES)]


def stage_name(group: int, way: int, both: bool = True) -> str:
    """Return a stage in words: A pushes, B pulls, all train; A sends in an iteration, which has no pulls (``both``)."""
    if group == NOBODY:
        return "all train"
    return f"{group_name(group)} {'pulls' if way != PUSH else 'pushes' if both else 'sends'}"


def timeline(
    rounds: Sequence[tuple[str, Round]], theme: Theme, pod_group: int | None = None
) -> Figure:
    """Return rounds under each other on one clock: a lane a group, barriers as lines, changes of circuits as marks.

    Parameters
    ----------
    rounds
        Name and round, from top to bottom.
    pod_group
        Whose cycle is drawn where every pod group has a barrier of its own; None: the longest.
    """
    blocks = [(name, round_, cycle_in_view(round_, pod_group)) for name, round_ in rounds]
    until = max((cycle.round_s for _, _, cycle in blocks), default=1.0) or 1.0
    px = TIMELINE_PX * theme.scale / (until * 1.22)
    placed: list[tuple[float, RoundBar]] = []
    ticks: list[tuple[float, str]] = []
    marks: list[Look] = []
    dark: list[tuple[float, float, float]] = []
    stages: list[tuple[str, float, float]] = []
    y = 0.0
    for name, round_, cycle in blocks:
        at, top = y + HEADER - 0.4, y + HEADER
        lanes = [group for group in range(round_.groups) if members(round_, cycle, group)]
        lane_at = {group: top + (k + 0.5) * LANE for k, group in enumerate(lanes)}
        bottom = top + LANE * len(lanes)
        # The name of the round is on its left, its length behind its end.
        left = {"xref": "paper", "xanchor": "left", "xshift": round(-(LEFT - 8) * theme.scale)}
        length, middle = f"<b>{lasting(cycle.round_s)}</b>", top + LANE * 0.5
        marks += [
            note(f"<b>{name}</b>", 0, y + 0.35, 12 * theme.scale, theme.ink, **left),
            note(
                length, cycle.round_s, middle, 13 * theme.scale, theme.ink, xanchor="left", xshift=6
            ),
            box(
                0,
                cycle.round_s,
                top,
                bottom,
                xref="x",
                layer="below",
                fillcolor=theme.band,
                line={"width": 0},
            ),
        ]
        ends = [phase.end_s for phase in cycle.phases if phase.end_s > phase.start_s]
        usual, last = line(theme.ink, 1, DOTS), line(theme.ink, 2, "solid")
        marks += [
            upright(end, last if end == ends[-1] else usual, top - 0.12, bottom + 0.06, yref="y")
            for end in ends
        ]
        stages += [(*one, at) for one in _stage_numbers(cycle, px, theme)]
        dark += [
            (phase.start_s, top - 0.1, phase.dark_s) for phase in cycle.phases if phase.dark_s > 0
        ]
        sizes = [len(members(round_, cycle, group)) for group in lanes]
        ticks += [
            (lane_at[group], f"{group_name(group)} · {jobs:,} job{'' if jobs == 1 else 's'}")
            for group, jobs in zip(lanes, sizes, strict=True)
        ]
        placed += [(lane_at[bar.group], bar) for bar in bars_of_cycle(round_, cycle)]
        y = bottom + GAP
    marked = opaque(8 * theme.scale, VERMILION, symbol="triangle-down")
    changes = [
        Point(x, at, f"all switches change circuits, {1000 * length:.6g} ms")
        for x, at, length in dark
    ]
    times = multiples(round_step(until / 5), 0.0, until * 1.0001)
    return frame(
        [
            *(_bars(kind, placed, px, theme) for kind in KINDS),
            written(  # text of a trace: a page hides it in a narrow window
                "stages",
                [Point(middle, at, text=words) for words, middle, at in stages],
                theme,
                11,
                theme.muted,
            ),
            dots("circuits change", changes, marked, theme, cliponaxis=False),
        ],
        theme,
        (31.0 * y + 68) * theme.scale,
        marks,
        showlegend=True,
        margin=margins(LEFT * theme.scale, 10, 30 * theme.scale, 26),
        xaxis=axis(
            theme,
            grid=True,
            range=[0, until * 1.22],
            tickvals=times,
            ticktext=[f"{t:,g} s" if until >= IN_MS else f"{1000 * t:,g} ms" for t in times],
        ),
        yaxis=named_axis(
            theme,
            [words for _, words in ticks],
            [at for at, _ in ticks],
            colour=theme.ink,
            range=[y - GAP * 0.5, 0],
        ),
    )


def _stage_numbers(cycle: Cycle, px: float, theme: Theme) -> list[tuple[str, float]]:
    """Return the number of each stage and where it stands, as long as its stage has room for it."""
    numbers = []
    for number, phase in numbered(cycle):
        middle, room = (phase.start_s + phase.end_s) / 2, px * (phase.end_s - phase.start_s)
        text = first_that_fits((f"stage {number}", str(number)), room / (6.2 * theme.scale))
        there = NARROW * room > 8 * theme.scale  # on a telephone it stands on no other
        if text:
            numbers.append((_number_stays(text) if there else f"<span>{text}</span>", middle))
    return numbers


def _number_stays(text: str) -> str:
    """Return a label of which a telephone, where a page hides what is in <span>, shows the number alone."""
    return re.sub(r"[^\d.,]+", r"<span>\g<0></span>", text)


def _bars(kind: str, placed: Sequence[tuple[float, RoundBar]], px: float, theme: Theme) -> Layer:
    """Return the bars of one kind, at their lanes, with words where they fit; None if there is none."""
    words, colour, ink = KINDS[kind]
    thin = kind == "aggregate"
    letters = px / (6.6 * theme.scale)
    return bars(
        words,
        colour,
        [
            Bar(
                at + (0.36 if thin else 0.0),
                one.length_s,
                f"<b>group {group_name(one.group)}</b>: {words} {one.length_s:.6g} s<br>"
                f"{one.start_s:.6g} to {one.start_s + one.length_s:.6g} s"
                f"{f'<br>longest: {one.note}' if one.note else ''}",
                one.start_s,
                ""
                if thin
                else _number_stays(
                    first_that_fits(
                        (f"{words} {lasting(one.length_s)}", words), letters * one.length_s - 0.9
                    )
                ),
            )
            for at, one in placed
            if one.kind == kind
        ],
        theme,
        0.18 if thin else 0.74,
        ink=ink,
    )


def pod_group_bars(round_: Round, together_s: Sequence[float], theme: Theme) -> Figure:
    """Return how long each group's push takes in every pod group, a row per group.

    Behind it, all jobs together.

    Parameters
    ----------
    together_s
        Of each pod group, communication of all its jobs at once (non-TDM): the grey bars, left out
        if all are 0.
    """
    times = np.asarray(round_.communication_s, dtype=float)
    groups = [k for k in range(round_.groups) if times[:, k].any()] or [0]
    top = max(float(times.max(initial=0.0)), float(np.max(together_s, initial=0.0))) * 1.18 or 1.0
    together = [
        Bar(pod, s, f"pod group {pod}: all together {s:.4g} s") for pod, s in enumerate(together_s)
    ]
    layers: list[Layer] = []
    layout: Look = {}
    notes: list[Look] = []
    for row, group in enumerate(groups):
        axis_of = f"y{row + 1 if row else ''}"
        on: Look = {"standing": True, "showlegend": row == 0, "yaxis": axis_of}
        values, worst = times[:, group].tolist(), int(times[:, group].argmax())
        colours = ["#E69F00" if pod == worst else theme.muted for pod in range(len(values))]
        alone = [
            Bar(pod, s, f"pod group {pod}: {group_name(group)} {s:.4g} s")
            for pod, s in enumerate(values)
        ]
        behind = together if any(together_s) else []
        layers += [
            bars("all jobs together", theme.cell_diagonal, behind, theme, 0.82, **on),
            bars("its group alone", colours, alone, theme, 0.5, **on),
        ]
        words, size = f"<b>{short(values[worst])}</b>", 11 * theme.scale
        where: Look = {"yref": axis_of, "yanchor": "bottom"}
        notes.append(note(words, worst, values[worst], size, theme.ink, **where))
        layout[f"yaxis{axis_of[1:]}"] = axis(
            theme,
            grid=True,
            range=[0, top],
            nticks=4,
            domain=[
                1 - (row + 1) / len(groups) + (0.07 if row + 1 < len(groups) else 0.0),
                1 - row / len(groups),
            ],
            anchor="x",
            title=f"group {group_name(group)}, s",
        )
    return frame(
        layers,
        theme,
        (112 * len(groups) + 62) * theme.scale,
        notes,
        showlegend=True,
        margin=margins(52 * theme.scale, 8, 28 * theme.scale, 40),
        xaxis=axis(
            theme,
            range=[-0.6, len(times) - 0.4],
            title="pod group",
            dtick=max(1, len(times) // 16),
            anchor="free",
            position=0,
        ),
        **layout,
    )


LETTERS = 7  # of a job's name that fit beside its lane
# What the bars of a pod mean; their colours are those of the timeline.
POD_WORDS = {BACKWARD: "train", UPDATE: "aggregate", SEND: "push", EXPERT: "pull"}


def pod_view(execution: Execution, pod: int, jobs: Sequence[str]) -> tuple[Execution, Bars, Lanes]:
    """Return what one pod does in an execution whose servers are pods and whose devices are jobs.

    A lane for each of its jobs, then one for each port in use. A link takes a port at both ends, so
    what arrives is drawn on the port that it arrives at.

    Parameters
    ----------
    jobs
        Names of the jobs of the pod group, in the order of the devices.
    """
    graph, every = execution.graph, execution.circuits
    mine = (every.source == pod) | (every.destination == pod)
    links = Circuits(*(getattr(every, one.name)[mine] for one in fields(Circuits)))
    own = replace(execution, circuits=links)
    port = np.where(links.destination == pod, links.destination_port, links.source_port)
    at_pod = replace(links, source=np.full_like(links.source, pod), source_port=port)
    present = np.unique(graph.device[(graph.kind == COMPUTE) & (graph.server == pod)])
    ports = tuple((0, int(port)) for port in np.unique(port))
    names = (jobs[device] for device in present.tolist())
    short_names = (name if len(name) <= LETTERS else name[: LETTERS - 1] + "…" for name in names)
    named = (*short_names, *(f"port {port}" for _, port in ports))
    lanes = Lanes(execution.cluster.servers, len(present), ports, pod, pod, named, "P")
    drawn = bars_of(replace(own, circuits=at_pod), lanes)
    bars = Bars(*(getattr(drawn, one.name)[drawn.server == pod] for one in fields(Bars)))
    row = np.where(bars.circuit < 0, np.searchsorted(present, bars.row), bars.row)
    # By the names of its tasks: job/push/0-1, job/train 2/0.
    kinds = [graph.ids[node].rsplit("/", 2)[1].partition(" ")[0].rstrip(",") for node in bars.node]
    meaning = {word: category for category, word in POD_WORDS.items()}
    category = np.array([meaning[kind] for kind in kinds], np.uint8)
    category[bars.category == DARK] = DARK
    return own, replace(bars, row=row.astype(np.int32), category=category), lanes


def pod_gantt(
    execution: Execution, bars: Bars, lanes: Lanes, window: Window, theme: Theme
) -> Figure:
    """Return the Gantt chart of a pod in the colours of the timeline: jobs above, ports below, and when stages begin."""
    figure = gantt(execution, bars, lanes, window, None, theme, POD_WORDS)
    graph = execution.graph
    named = [i for i in np.flatnonzero(graph.kind == BARRIER).tolist() if graph.ids[i]]
    for begin in sorted({float(execution.start_ms[i]) for i in named}):
        if window[0] < begin < window[1]:
            figure.add_shape(**upright(begin, line(theme.ink, 1, DOTS)))
    ticks, words = clock(*window)
    figure.update_xaxes(tickvals=ticks, ticktext=words, ticksuffix="", minor=None)
    return figure
