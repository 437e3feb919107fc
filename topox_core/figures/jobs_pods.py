"""One pod on the common clock: what trains in it, and what each of its ports carries, whichever way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.gantt import PLOT_PX, Window, gantt
from topox_core.figures.jobs import IN_MS, KINDS
from topox_core.figures.lanes import Bars, Lanes, bars_of
from topox_core.figures.palette import Theme
from topox_core.figures.template import DOTS, line, round_step, upright
from topox_core.model.execution import Circuits, Execution
from topox_core.model.transfer_graph import BARRIER, COMPUTE

LETTERS = 7  # of a job's name that fit beside its lane


@dataclass(frozen=True)
class PodLanes(Lanes):
    """Lanes of one pod: a lane for each of its jobs, then one for each port in use."""

    jobs: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return the short names: jobs, then ports."""
        short = [name if len(name) <= LETTERS else name[: LETTERS - 1] + "…" for name in self.jobs]
        return short + [f"port {port}" for _, port in self.ports]


@dataclass(frozen=True)
class PodView:
    """One pod of a round: its circuits as the pod sees them (the pod is every circuit's source), its lanes and bars."""

    pod: int
    execution: Execution
    lanes: PodLanes
    bars: Bars

    @property
    def stage_begins_ms(self) -> list[float]:
        """When the stages of the round begin, and when it ends."""
        graph = self.execution.graph
        named = [i for i in np.flatnonzero(graph.kind == BARRIER).tolist() if graph.ids[i]]
        return sorted({float(self.execution.start_ms[i]) for i in named})


def pod_view(execution: Execution, pod: int, jobs: Sequence[str]) -> PodView:
    """Return what one pod does in an execution whose servers are pods and whose devices are jobs.

    A link takes a port at both ends, so what arrives is drawn on the port that it arrives at.

    Parameters
    ----------
    jobs
        Names of the jobs of the pod group, in the order of the devices.
    """
    graph = execution.graph
    own = replace(execution, circuits=_seen_from(execution.circuits, pod))
    present = np.unique(graph.device[(graph.kind == COMPUTE) & (graph.server == pod)])
    ports = tuple((0, int(port)) for port in np.unique(own.circuits.source_port))
    lanes = PodLanes(
        execution.cluster.servers,
        len(present),
        ports,
        pod,
        pod,
        tuple(jobs[device] for device in present.tolist()),
    )
    every = bars_of(own, lanes)
    mine = every.server == pod
    bars = Bars(*(getattr(every, one.name)[mine] for one in fields(Bars)))
    row = np.where(bars.circuit < 0, np.searchsorted(present, bars.row), bars.row).astype(np.int32)
    return PodView(pod, own, lanes, replace(bars, row=row))


def _seen_from(circuits: Circuits, pod: int) -> Circuits:
    """Return a pod's circuits with the pod as their source, those that end there turned round."""
    mine = (circuits.source == pod) | (circuits.destination == pod)
    turned = (circuits.destination == pod)[mine]
    own = Circuits(*(getattr(circuits, one.name)[mine] for one in fields(Circuits)))
    return replace(
        own,
        source=np.where(turned, own.destination, own.source),
        destination=np.where(turned, own.source, own.destination),
        source_port=np.where(turned, own.destination_port, own.source_port),
        destination_port=np.where(turned, own.source_port, own.destination_port),
    )


def kind_of(task: str) -> str:
    """Return what a task of a round is for, by its name: ``train``, ``aggregate``, ``push`` or ``pull``."""
    what = task.rsplit("/", 2)[1] if task.count("/") > 1 else ""
    return "train" if what.startswith("train") else what


def pod_gantt(view: PodView, window: Window, theme: Theme) -> go.Figure:
    """Return the Gantt chart of a pod in the colours of the timeline: jobs above, ports below, in s from the round's begin."""
    figure = gantt(view.execution, view.bars, view.lanes, window, None, theme)
    pixels = PLOT_PX / max(window[1] - window[0], 1e-9)
    shown: set[str] = set()
    for trace in figure.data:
        trace.showlegend = trace.name.startswith("dark")
        facts = [[str(cell) for cell in row] for row in trace.customdata]
        kinds = [kind_of(row[0]) for row in facts]
        if not trace.showlegend:
            shown |= set(kinds)
            trace.marker.color = [KINDS[kind][1] for kind in kinds]
            trace.textfont.color = [KINDS[kind][2] for kind in kinds]
            trace.text = [
                _label(row[0], view.pod, pixels * float(length))
                for row, length in zip(facts, trace.x, strict=True)
            ]
        trace.customdata = [
            [row[0], *_where(row, view.pod), *(f"{float(ms) / 1000:.6g}" for ms in row[3:6]), ""]
            for row in facts
        ]
        trace.hovertemplate = (
            "<b>%{customdata[0]}</b>  %{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]} to "
            "%{customdata[4]} s, %{customdata[5]} s<extra></extra>"
        )
    for kind in (kind for kind in KINDS if kind in shown):
        words, colour, _ = KINDS[kind]
        key = {"name": words, "marker": {"color": colour}, "showlegend": True}
        figure.add_bar(x=[None], y=[None], **key)
    for note in figure.layout.annotations:
        note.text = f"<b>P{view.pod}</b>"
    for begin in view.stage_begins_ms:
        if window[0] < begin < window[1]:
            figure.add_shape(**upright(begin, line(theme.ink, 1, DOTS)))
    step = round_step((window[1] - window[0]) / 8)
    marks = np.arange(np.ceil(window[0] / step) * step, window[1] * (1 + 1e-9), step).tolist()
    in_ms = window[1] < 1000 * IN_MS
    figure.update_xaxes(
        tickvals=marks,
        ticktext=[f"{t:,g} ms" if in_ms else f"{t / 1000:,g} s" for t in marks],
        ticksuffix="",
        minor=None,
    )
    return figure


def _ends(task: str) -> tuple[int, int]:
    """Return from which pod to which a transfer goes, by its name."""
    source, destination = task.rsplit("/", 1)[1].split("-")
    return int(source), int(destination)


def _label(task: str, pod: int, pixels: float) -> str:
    """Return what fits into a bar: the job's kind of work, or the pod at the other end."""
    kind = kind_of(task)
    if kind not in ("push", "pull"):
        return KINDS[kind][0] if pixels > 8 + 6.0 * len(KINDS[kind][0]) else ""
    source, destination = _ends(task)
    out = source == pod
    words = f"to {destination}" if out else f"from {source}", str(destination if out else source)
    return next((word for word in words if pixels > 6 + 6.0 * len(word)), "")


def _where(row: Sequence[str], pod: int) -> tuple[str, str]:
    """Return what a bar is and where, in words."""
    kind = kind_of(row[0])
    if kind in ("push", "pull"):
        source, destination = _ends(row[0])
        return ("switching" if row[1].startswith("dark") else kind), f"P{source} → P{destination}"
    return KINDS[kind][0], f"in P{pod}"
