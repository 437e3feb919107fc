"""Sharing below its first screen, a section at a time: links, rings, pod groups, one pod, how the search went, jobs, files."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from topox_core.figures.jobs.gains import climb
from topox_core.figures.jobs.links import MAX_TIMES, link_matrix, ring_drawing, time_unit
from topox_core.figures.jobs.rounds import (
    group_name,
    pod_gantt,
    pod_group_bars,
    pod_view,
    stage_name,
    timeline,
)
from topox_core.figures.palette import Theme
from topox_core.model.execution import Execution
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.bottleneck import LinkView, as_large, in_words, link_view
from topox_core.tdm.model.jobs import PUSH, Cycle, Round
from topox_core.tdm.model.jobs_file import dump_jobs
from topox_core.tdm.model.round_file import to_record
from topox_core.tdm.model.round_words import lasting
from topox_core.tdm.model.rounds import an_iteration_of, both_ways, cycle_in_view, iterations_alike
from topox_core.text.numbers import capitalised, plural, short
from topox_ui.jobs.first_screen import named, rates, stages
from topox_ui.jobs.solving import AT_ONCE, Rounds, token
from topox_ui.jobs.state import JOB, SECTIONS, JobsState
from topox_ui.jobs.study import study
from topox_ui.jobs.words import a_or_an, title_of
from topox_ui.runs.owner import once
from topox_ui.shell.charts import (
    Content,
    chart,
    chart_title,
    csv_of,
    escape,
    frame,
    quiet,
    task_table,
    title_row,
    when_opened,
)
from topox_ui.shell.downloads import execution_files, graph_kept_here, result_json, stem, take_away
from topox_ui.state.address import keep_address
from topox_ui.state.widgets import menu, pick, section

LABEL = 17  # letters that fit beside a chart
MOSTLY = 0.9  # of the pairs that send: so many alike make a picture of one colour
KEPT_HERE = (
    "A link can carry a sample, the paper’s set-up or task graphs of the samples with every slider. "
    "Your own file stays on this machine: send the file, or download the result."
)


@dataclass(frozen=True)
class View:
    """What the figures of one pod group show: the group that communicates, and which way."""

    pod_group: int
    group: int
    way: int
    stage: str

    @property
    def words(self) -> str:
        """In words: pod group 3, A pushes."""
        return f"pod group {self.pod_group}, {self.stage}"


def slowest_of(round_: Round) -> int:
    """Return the pod group that the others wait for."""
    if len(round_.cycles) > 1:
        return max(round_.cycles, key=lambda cycle: cycle.round_s).pod_groups[0]
    return int(round_.communication_s.max(axis=1).argmax())


def stage_options(round_: Round) -> dict[str, str]:
    """Return the stages in which somebody communicates, as ``group.way`` with their words."""
    groups = [k for k in range(round_.groups) if k in set(round_.group)] or [0]
    both = both_ways(round_.cycles[0])
    return {f"{k}.{way}": stage_name(k, way, both) for way in range(1 + both) for k in groups}


def view_of(round_: Round, now: JobsState) -> View:
    """Return what is chosen, or else the slowest pod group in the stage of its slowest group."""
    pod_group = (
        now.pod_group if 0 <= now.pod_group < round_.jobs.network.pod_groups else slowest_of(round_)
    )
    options = stage_options(round_)
    wanted = (now.stage, f"{int(round_.communication_s[pod_group].argmax())}.0", *options)
    stage = next(one for one in wanted if one in options)
    group, way = (int(part) for part in stage.split("."))
    return View(pod_group, group, way, options[stage])


def rings_of(round_: Round, view: View) -> list[int]:
    """Return the jobs whose rings cross pods in a stage of a pod group."""
    return [
        n
        for n in round_.jobs.of_group(view.pod_group)
        if round_.group[n] == view.group and len(round_.rings[n]) > 1
    ]


def _controls(best: Round, now: JobsState, view: View) -> int | None:
    """Draw which pod group, stage and ring the link figures show.

    Return the one job whose ring is drawn, or None for all.
    """
    rings, groups = rings_of(best, view), best.jobs.network.pod_groups
    left, middle, right = st.columns([1, 1.5, 1]) if groups > 1 else (None, *st.columns([2.5, 1]))
    if groups > 1:
        pods = {-1: f"slowest (pod group {slowest_of(best)})"} | {
            g: f"pod group {g}, {plural(len(best.jobs.of_group(g)), 'job')}" for g in range(groups)
        }
        menu(JobsState, "pod_group", pods, label="Pod group", at=left)
    pick(
        JobsState,
        "stage",
        stage_options(best),
        label="Stage",
        value=f"{view.group}.{view.way}",
        at=middle,
    )
    if len(rings) > 1:
        ids = {best.jobs.jobs[n].id: best.jobs.jobs[n].id for n in rings}
        menu(JobsState, "ring", {"": f"all {len(rings)} rings"} | ids, label="Ring", at=right)
    return next((n for n in rings if best.jobs.jobs[n].id == now.ring), None)


def links(rounds: Rounds, now: JobsState, theme: Theme) -> None:
    """Draw the links of one pod group in one stage, the rings on them, and one pod when it is opened."""
    best = an_iteration_of(rounds.best)
    view = view_of(best, now)
    only = _controls(best, now, view)
    drawn = link_view(best, view.pod_group, view.group, view.way)
    rings = rings_of(best, view)
    alike, sending = as_large(drawn.time_s)
    fold = sending > 0 and alike >= MOSTLY * sending
    below = f", {time_unit(drawn)[1]} below" if len(drawn.links) <= MAX_TIMES else ""
    matrix = partial(
        chart,
        link_matrix(drawn, theme),
        "link_matrix",
        _words(drawn, view.words),
        lambda: _pairs(drawn),
        "Every pair",
        title=(
            "Links between pods",
            f"From (row) to (column): links{below}. Deeper: slower"
            + ("; outlined: the slowest" if alike == 1 else ""),
        ),
    )
    left, right = (
        st.columns(2, gap="medium") if rings and not fold else (st.container(), st.container())
    )
    with left:
        if fold:
            when_opened(
                f"Links pair by pair: {alike} of {sending} take as long", "jobs_links", matrix
            )
        else:
            matrix()
    if rings:
        with right:
            chart(
                ring_drawing(best, view.pod_group, view.group, theme, view.way, only),
                "rings",
                f"{plural(len(rings), 'ring')} in {view.words}. The table has each one’s pods in order.",
                lambda: _rings(best, rings, view.way),
                "Every ring",
                title=(
                    "Rings on these links",
                    "Width: number of links. Grey: also used by other traffic; on a pale band: links added for a ring",
                ),
            )
    when_opened("One pod on the clock, port by port", "jobs_pods", lambda: _pod(rounds, theme))


def _words(view: LinkView, where: str) -> str:
    if view.worst is None:
        return f"Links in {where}: nothing is sent."
    i, j = view.worst
    return (
        f"Links in {where}. Slowest: pod {i} to pod {j}, {short(view.demand_gbit[i, j])} Gbit over "
        f"{plural(int(view.links[i, j]), 'link')}, {lasting(float(view.time_s[i, j]))}. Most ports in use: "
        f"{int(view.ports.max())} of {view.limit}."
    )


def _pairs(view: LinkView) -> Content:
    rows = [
        {
            "from": i,
            "to": j,
            "links": int(view.links[i, j]),
            "Gbit": float(view.demand_gbit[i, j]),
            "seconds": float(view.time_s[i, j]),
            "ports in use": f"{view.ports[i]} and {view.ports[j]} of {view.limit}",
        }
        for i in range(len(view.links))
        for j in range(len(view.links))
        if view.links[i, j]
    ]
    return pd.DataFrame(
        rows, columns=["from", "to", "links", "Gbit", "seconds", "ports in use"]
    ).sort_values("seconds", ascending=False)


def _rings(round_: Round, rings: list[int], way: int) -> Content:
    order = [round_.rings[n] if way == PUSH else round_.rings[n][::-1] for n in rings]
    return {
        "job": [round_.jobs.jobs[n].id for n in rings],
        "pods in order": [" → ".join(str(pod) for pod in (*ring, ring[0])) for ring in order],
        "volume (Gbit)": [round_.jobs.jobs[n].volume_gbit for n in rings],
    }


def waits(rounds: Rounds, now: JobsState) -> None:
    """Say what every stage of the round lasts as long as."""
    best = rounds.best
    cycle = cycle_in_view(best, None if now.pod_group < 0 else now.pod_group)
    chart_title("Bottleneck of each stage", ALGORITHMS[best.algorithm].title, beside=True)
    st.html("".join(f'<p class="card">{escape(line)}</p>' for line in in_words(best, cycle)))


def pod_groups(rounds: Rounds, theme: Theme) -> None:
    """Show which pod group holds the others up."""
    best, seconds = rounds.best, rounds.best.communication_s
    together = (
        [0.0] * len(seconds)
        if rounds.together is None
        else rounds.together.communication_s.max(axis=1).tolist()
    )
    slowest = "; ".join(
        f"group {group_name(k)}: pod group {int(seconds[:, k].argmax())}, {lasting(float(seconds[:, k].max()))}"
        for k in range(best.groups)
    )
    jobs = [len(best.jobs.of_group(g)) for g in range(len(seconds))]
    chart(
        pod_group_bars(best, together, theme),
        "pod_groups",
        f"Slowest: {slowest}.",
        lambda: {
            "pod group": range(len(seconds)),
            "jobs": jobs,
            "together (s)": together,
            **{f"{group_name(k)} (s)": seconds[:, k] for k in range(best.groups)},
        },
        "Every pod group",
        title=(
            "Communication by pod group",
            "One stage of each group; the slowest in colour."
            + (" Behind: all jobs at once" if any(together) else ""),
        ),
    )


def how_found(rounds: Rounds, theme: Theme) -> None:
    """Draw hill climbing move by move against all at once, the best and the bound.

    Without it, the search of the best.
    """
    rounds = rounds.by_iteration()
    paper, best, unit = rounds.paper, rounds.best, rounds.unit
    levels = [] if rounds.together is None else [("all at once", rounds.together.round_s, "dash")]
    if paper is not None and best.algorithm not in AT_ONCE:
        title = title_of(best.algorithm).lower()
        levels.append((title if len(title) <= LABEL else "chosen one", best.round_s, "dot"))
    levels.append(("bound", best.bound_s, "2px,3px"))
    if paper is None:
        chart(
            climb(best.trace, levels, theme, by_step=False),
            "climb",
            f"{capitalised(a_or_an(unit))}, from the first found to {lasting(best.round_s)}.",
            lambda: [
                {
                    "after (s)": m.elapsed_s,
                    f"{unit} (s)": m.round_s,
                    "bound (s)": m.bound_s,
                    "by": m.source,
                }
                for m in best.trace
            ],
            "Every step",
            title=("How this round was found", ALGORITHMS[best.algorithm].title),
        )
        return
    chart_title(
        "How hill climbing found its round",
        "Each move puts one job into the other group; it stops when none helps",
    )
    moves = max((point.step for point in paper.trace), default=0)
    begin = paper.trace[0].round_s if paper.trace else None
    if moves < 2:
        where = f"One move, from {lasting(begin or 0)} to {lasting(paper.round_s)}."
        quiet(
            where
            if moves
            else f"No move shortens the {unit} of all jobs at once, {lasting(paper.round_s)}."
        )
    else:
        chart(
            climb(paper.trace, levels, theme),
            "climb",
            f"{plural(moves, 'move')} from {lasting(paper.round_s if begin is None else begin)} to {lasting(paper.round_s)}.",
            lambda: [{"move": m.step, f"{unit} (s)": m.round_s} for m in paper.trace],
            "Every move",
        )


def job_table(rounds: Rounds) -> None:
    """Draw the jobs with their group and their iterations per second."""
    numbers = (
        *("iterations/h", "hill climbing", "all at once", "train (s)", "volume (Gbit)"),
        *("alone (s)", "shared (s)", "longer by (%)"),
    )
    frame(
        rates(rounds),
        column_config={name: st.column_config.NumberColumn(format="%.4g") for name in numbers},
        title=(
            "Every job",
            "A ring or an all-to-all trains twice per round, a parameter server once"
            if rounds.by_iteration().unit == "round"
            else "times of an iteration",
        ),
    )


def files(rounds: Rounds, now: JobsState, title: str) -> None:
    """Draw the two menus: files built when they are asked for, and the link."""
    best = rounds.best
    pod_group = view_of(best, now).pod_group
    rows, together_s = (
        named(rounds.by_iteration()),
        None if rounds.together is None else rounds.together.round_s,
    )
    settings = rounds.case.settings(best.algorithm)
    record = partial(to_record, best, non_tdm_s=together_s, settings=settings)
    inputs = {"jobs": best.jobs.digest}
    drawn = execution_files(
        partial(execution_of, best, pod_group), f"{best.jobs.name}, pod group {pod_group}", inputs
    )
    caption = (
        f"Pod group {pod_group} on the clock of the other pages: pods as servers, jobs as devices"
    )
    of_job = graph_kept_here() if now.origin == JOB else ""
    take_away(
        stem(title, "jobs"),
        [
            ("Jobs (JSON)", ".jobs.json", lambda: dump_jobs(best.jobs)),
            ("Round (JSON)", ".round.json", result_json(record, inputs)),
            ("Iterations of every job (CSV)", ".iterations.csv", lambda: csv_of(rates(rounds))),
            ("Stages (CSV)", ".stages.csv", lambda: csv_of(stages(rows, None))),
            ("Links of every stage (CSV)", ".links.csv", lambda: csv_of(all_links(best))),
        ],
        {"Timeline": lambda look: timeline(rows, look)},
        KEPT_HERE if now.source == "upload" else of_job,
        groups={
            caption: [(label, f".pod-group-{pod_group}{end}", made) for label, end, made in drawn]
        },
    )


def all_links(round_: Round) -> Content:
    """Return the links of every push as rows; a pull has them the other way round."""
    rows = []
    for g, of_group in enumerate(round_.links):
        for k in range(round_.groups):
            view = link_view(round_, g, k)
            rows += [
                {
                    "pod group": g,
                    "group": group_name(k),
                    "from": i,
                    "to": j,
                    "links": int(of_group[k, i, j]),
                    "Gbit": float(view.demand_gbit[i, j]),
                    "seconds": float(view.time_s[i, j]),
                }
                for i, j in zip(*of_group[k].nonzero(), strict=True)
            ]
    return rows


WHOLE = -1


@st.fragment
def _pod(rounds: Rounds, theme: Theme) -> None:
    """Draw the Gantt chart of one pod; its controls redraw nothing else."""
    best = rounds.best
    now = JobsState.now()
    shown = view_of(best, now)
    members = best.jobs.of_group(shown.pod_group)
    cycle = best.cycle_of(shown.pod_group)
    execution = once(
        "pod group",
        f"{token(rounds.case, best)}|{shown.pod_group}",
        lambda: execution_of(best, shown.pod_group),
    )
    left, right = title_row(
        (2, 0.6, 2),
        f"One pod of pod group {shown.pod_group}",
        "Its jobs, then its ports; in a port’s bar: the pod at the other end. Dotted: all wait"
        + "; two iterations, the second (pull) over the links reversed"
        * (iterations_alike(best.jobs) == 2),
    )
    everyone = {p: f"pod {p}" for p in range(best.jobs.network.pods_per_group)}
    busiest = int(link_view(best, shown.pod_group, shown.group, shown.way).ports.argmax())
    pod = menu(
        JobsState,
        "pod",
        everyone,
        label="Pod",
        value=now.pod if now.pod in everyone else busiest,
        at=left,
        label_visibility="collapsed",
    )
    window = _window(cycle, right)
    keep_address()
    own, bars, lanes = pod_view(execution, pod, [best.jobs.jobs[n].id for n in members])
    if not len(bars):
        quiet(f"No job of this pod group uses pod {pod}.")
        return
    chart(
        pod_gantt(own, bars, lanes, window, theme),
        "pod_gantt",
        f"Pod {pod} of pod group {shown.pod_group} in a round of {lasting(cycle.round_s)}: "
        f"{plural(lanes.devices, 'job')}, {plural(len(lanes.ports), 'port')} in use. The table has every task.",
        lambda: _tasks(execution, pod),
        "Every task of this pod",
    )


def _window(cycle: Cycle, place: st.delta_generator.DeltaGenerator) -> tuple[float, float]:
    """Draw which stage fills the axis; return its begin and end in ms."""
    stages = {n: one for n, one in enumerate(cycle.phases) if one.end_s > one.start_s}
    words = {n: stage_name(one.group, one.way) for n, one in stages.items()}
    stage = pick(
        JobsState,
        "pod_stage",
        {WHOLE: "whole round", **words},
        label="Time",
        at=place,
        label_visibility="collapsed",
    )
    if stage == WHOLE:
        return 0.0, 1000 * cycle.round_s
    return 1000 * stages[stage].start_s, 1000 * stages[stage].end_s


def _tasks(execution: Execution, pod: int) -> Content:
    rows = task_table(execution)
    return rows[
        (rows["server"] == pod) | (rows["source"] == pod) | (rows["destination"] == pod)
    ].drop(columns=["device", "switch", "critical"])


def sections(rounds: Rounds, now: JobsState, theme: Theme) -> None:
    """Draw the choice of a section, and that section."""
    draws: dict[str, Callable[[], None]] = {
        "links": partial(links, rounds, now, theme),
        "search": partial(how_found, rounds, theme),
        "jobs": partial(job_table, rounds),
    }
    if now.origin != JOB:  # it draws many jobs of the paper's set-up
        draws["study"] = partial(study, now, theme)
    if rounds.best.jobs.network.pod_groups > 1:
        draws["groups"] = partial(pod_groups, rounds, theme)
    section("Details", JobsState, SECTIONS, draws)
