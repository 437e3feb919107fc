"""The first screen of Sharing: the finding, KPIs, rounds on one clock, the certificate, the search while it runs."""

import html
import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from topox_core.check.report import equation_words
from topox_core.fabrics.comparison.compare import EQUAL, same_time
from topox_core.figures.jobs.gains import climb
from topox_core.figures.jobs.rounds import group_name, stage_name, timeline
from topox_core.figures.palette import Theme
from topox_core.model.cluster import Cluster
from topox_core.runs.run import FunctionRun
from topox_core.schedule.bounds.open_bound import busiest_sending
from topox_core.schedule.results.result import Result
from topox_core.schedule.results.what_limits import computing_alone_ms, most_data
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.from_graph import counted_as
from topox_core.tdm.model.jobs import COLLECTIVES, Jobs, Round, RoundTracePoint
from topox_core.tdm.model.round_words import in_turns, lasting
from topox_core.tdm.model.rounds import (
    both_ways,
    iterations_per_round,
    iterations_per_s,
    numbered,
    per_iteration,
)
from topox_core.tdm.model.traffic import Floats, TooFewPortsError
from topox_core.text.numbers import (
    NBSP,
    ROUND_STOPPED_BY,
    apart,
    capitalised,
    count,
    percent,
    plural,
    seconds,
    short,
    time,
)
from topox_ui.answers.other_times import schedule_of_loaded
from topox_ui.jobs.solving import (
    AT_ONCE,
    BOUND,
    ROUND,
    Rounds,
    bound_stopped,
    search_again,
    search_bound,
    search_round,
    time_limit_s,
    verdict,
)
from topox_ui.jobs.state import COPY, JOB, JobsState
from topox_ui.jobs.words import (
    UNREADABLE,
    a_or_an,
    about,
    against,
    all_of,
    bound_figure,
    crowding,
    finding,
    hill_climbing_differs,
    hopeless,
    in_model,
    kicker,
    slowed,
    title_of,
    without_rings,
)
from topox_ui.runs.owner import once, run_owner
from topox_ui.shell.charts import (
    Content,
    Kpi,
    as_label,
    button,
    chart,
    checker_card,
    emphasised,
    escape,
    facts,
    frame,
    headline,
    kpis,
    quiet,
    show_error,
)
from topox_ui.shell.panel import run_note, run_panel
from topox_ui.state.loading import Loaded, cluster_words, loaded, scenario

WORTH_A_CHART_S = 3.0
AT_ONE_TIME = "All at once"  # without time division


def first_lines(rounds: Rounds, title: str) -> None:
    """Write headline and KPIs."""
    together, paper, best = rounds.together, rounds.paper, rounds.best
    opened = loaded() if JobsState.now().origin == JOB else None
    if opened is None:
        headline(kicker(best.jobs, title), finding(rounds))
    else:
        cluster, there = scenario().cluster(opened.cluster), schedule_of_loaded(soon=True)
        servers = math.ceil(cluster.servers / best.jobs.network.pods_per_group)
        on_ports, how = _on_same_ports(opened, there, best.jobs)
        headline(
            kicker(best.jobs, title)
            if JobsState.now().network
            else f"Sharing · {escape(title)} · {cluster_words(cluster)}",
            f"{on_ports} {in_model(rounds, servers)}" if on_ports else finding(rounds),
        )
        if how:
            quiet(how)
    quiet(emphasised(in_turns(best, together)))
    mean = f", mean {lasting(best.mean_round_s)}" if len(best.cycles) > 1 else ""
    alone_s, alike = rounds.beside
    row: list[Kpi] = []
    if rounds.algorithm not in AT_ONCE:
        name = title_of(rounds.algorithm)
        found: Kpi = (name, "…", "not found yet")
        if rounds.chosen is not None or rounds.algorithm == "best":  # hill climbing is one of those
            more = mean if rounds.chosen is not None else ", so far"
            found = (name, lasting(best.round_s), *against(best.round_s, rounds, more))
        row.append(found)
    if paper is None:
        row.append(("Hill climbing", "none", "found no groups that fit"))
    elif hill_climbing_differs(rounds):
        row.append(("Hill climbing", lasting(paper.round_s), *against(paper.round_s, rounds)))
    if together is None:
        row.append((AT_ONE_TIME, "none", "ports too few for all"))
    else:
        beside = against(together.round_s, rounds) if alike == "alone" else ("no time division",)
        row.append((AT_ONE_TIME, lasting(together.round_s), *beside))
    row.append(bound_figure(best))
    if alike == "alone":
        row.append(("Alone", lasting(alone_s), f"{a_or_an(rounds.unit)} with all ports to itself"))
    else:
        an_hour = 3600 * float(iterations_per_s(best).mean()) / rounds.each
        row.append(("Iterations per job per hour", short(an_hour), "mean of all jobs"))
    kpis(*row)
    if together is None:
        st.html(f'<p class="note">{escape(crowding(rounds))}</p>')
    if opened is not None:
        with st.expander("What this rests on", key="jobs_rests", type="compact"):
            model = once("counted as", opened.graph.digest, lambda: counted_as(opened.graph))
            quiet(f"{_beside_schedule(rounds, there)} {model} {_pods(cluster, best, servers)}")


def _on_same_ports(opened: Loaded, there: Result | None, jobs: Jobs) -> tuple[str, str]:
    """Return what ports allow copies of the loaded job, planned as on Schedule, in a sentence, and how that is known.

    Empty of other jobs, beside this page's own what-ifs, until Schedule's plan is known, and where transfers of
    one pair share a circuit, each at its full speed.
    """
    now, copies = JobsState.now(), len(jobs)
    of_copies = copies > 1 and jobs.jobs[0].id == COPY.format(1) and not now.network
    if there is None or there.execution is None or not of_copies:
        return "", ""
    cluster, alone_ms = there.execution.cluster, there.makespan_ms or 0.0
    settings = scenario().settings()
    _, any_ms = once(
        "busiest sending",
        f"{opened.graph.digest}|{cluster.digest}|{settings!r}",
        partial(busiest_sending, opened.graph, cluster, settings),
    )
    if not any_ms:
        return "", ""
    ports, each_ms = most_data(there.execution)
    second, both, times = (
        ("A second copy", "two", "twice")
        if copies == 2
        else (*[f"{copies} copies"] * 2, f"{copies} times")
    )
    least, alone, longer = time(copies * each_ms), time(alone_ms), copies * each_ms / alone_ms - 1
    fixed = there.switching == "fixed"  # servers forward, and transfers share circuits
    how = (
        f"In Schedule’s plan {ports} carry {'their own and forwarded ' * fixed}data for {time(each_ms)} of {alone}"
        f"{' at full speed' * fixed}"
    )
    if cluster.reconfiguration_ms and not fixed:
        how += ", dark time not counted"
    if longer <= EQUAL:
        words = f"<b>may cost nothing</b>: by Schedule’s plan the busiest ports carry the data of {both} in {least}, and an "
        return f"{second} on the same ports {words}iteration takes {alone}.", f"{how}."
    how += f"; {both} at the same pace need {times} that."
    if any_ms < each_ms * (1 - 1e-6):
        how += f" By any plan an iteration of each takes at least {time(copies * any_ms)}."
    # Iterations of equal plans follow each other on the same circuits as those of one job.
    most = time(copies * alone_ms)
    makes = f"make{'s' * (copies == 2)} an iteration of Schedule’s plan"
    words = f"{makes} <b>{about(longer)} to {about(copies - 1)} longer</b>"
    ends = f"at least {least}, at most {most}, one after the other, in place of {alone}"
    return f"{second} on the same ports {words}: {ends}.", how


def _beside_schedule(rounds: Rounds, there: Result | None) -> str:
    """Return how long an iteration of the loaded job takes alone, here and on Schedule, and why computing differs."""
    here_s = float(rounds.alone_s[0] / (iterations_per_round(rounds.case.jobs)[0] / rounds.each))
    words = f"In this model an iteration of your job alone takes {lasting(here_s)}: it first computes and then sends"
    if there is None or there.execution is None:
        return f"{words}; on Schedule both overlap."
    there_s, train_s = (there.makespan_ms or 0.0) / 1000, rounds.case.jobs.jobs[0].train_s
    how = "where both overlap" if there_s < here_s else "which has each transfer by itself"
    least_s = computing_alone_ms(there.execution.graph, there.settings.exclusive_devices) / 1000
    included = f"{lasting(train_s)}, includes waits of tasks for each other; Schedule's {lasting(least_s)} do not"
    computing = "" if same_time(least_s, train_s) else f" Computing, {included}."
    return f"{words}. On Schedule, {how}, it takes {lasting(there_s)}.{computing}"


def _pods(cluster: Cluster, round_: Round, servers: int) -> str:
    """Return what a pod is of a cluster, and how its ports compare with those of its servers."""
    network = round_.jobs.network
    ports = (
        f" with {plural(network.ports_per_pod, 'one-way port')} of {network.port_gbps:,g}G in place of "
        f"{plural(servers * cluster.ports_per_server, 'two-way port' if cluster.duplex == 'full' else 'port')} of "
        f"{cluster.port_gbps:,g}G, as fast together"
    )
    pod = "a server" if servers == 1 else f"{servers} servers"
    return f"A pod is {pod}{'' if JobsState.now().network else ports}."


def no_round_yet(rounds: Rounds, title: str, theme: Theme) -> None:
    """Say what is known where there is no round: that all jobs at once do not fit, and whether time division may help."""
    case = rounds.case
    refused = run_owner().refusals(ROUND).get(case.key(rounds.algorithm))
    jobs, every = plural(len(case.jobs), "job"), capitalised(all_of(case.jobs))
    if refused is None:
        headline(
            kicker(case.jobs, title),
            f"{every} at once need <b>more ports</b> than there are. Searching for a time division in which they fit.",
        )
        st.html(f'<p class="note">{escape(crowding(rounds))}</p>')
        searching(rounds, theme)
        return
    if isinstance(refused, TooFewPortsError):
        headline(
            kicker(case.jobs, title),
            f'<span class="bad">✗ <b>Infeasible</b></span>: no round of these {jobs}, ports are too few.',
        )
        show_error(f"{crowding(rounds)} {hopeless(case)}")
    else:
        headline(
            kicker(case.jobs, title), f"{every} at once need <b>more ports</b> than there are."
        )
        show_error(f"{crowding(rounds)} {ALGORITHMS[rounds.algorithm].title}: {refused}")


def named(rounds: Rounds) -> list[tuple[str, Round]]:
    """Return the rounds side by side, the best first, with their names."""
    paper, together = rounds.paper, rounds.together
    moved = together is None or paper is None or not same_time(paper.round_s, together.round_s)
    paper = paper if moved and hill_climbing_differs(rounds) else None
    beside = (("Hill climbing", paper), (AT_ONE_TIME, together))
    best = (
        [(title_of(rounds.best.algorithm), rounds.best)]
        if rounds.best.algorithm not in AT_ONCE
        else []
    )
    return best + [(name, round_) for name, round_ in beside if round_ is not None]


def clock(rounds: Rounds, now: JobsState, theme: Theme) -> None:
    """Draw the rounds on one clock."""
    best = rounds.best
    own = len(best.cycles) > 1
    rows = named(rounds)
    where = ""
    if own:
        where = f" Each pod group has a barrier of its own: shown is {'the slowest' if now.pod_group < 0 else 'the one chosen below'}."
    both, unit = both_ways(best.cycles[0]), rounds.unit
    once_a_round = (
        " (with a parameter server, which gets gradients and gives weights: after pull only)"
        if any(job.collective == "parameter_server" for job in best.jobs.jobs)
        else ""
    )
    pod_group = None if now.pod_group < 0 else now.pod_group
    lengths = "; ".join(f"{name} {lasting(round_.round_s)}" for name, round_ in rows)
    chart(
        timeline(rows, theme, pod_group),
        "clock",
        f"{capitalised(a_or_an(unit))} on one time axis: {lengths}. The table has every stage.",
        lambda: stages(rows, pod_group),
        "Every stage",
        title=(
            f"{capitalised(a_or_an(unit))} on one clock",
            "A lane for each group of jobs. "
            + (
                f"Push: it sends over its links; pull: over the same links reversed; after each it trains{once_a_round}. "
                if both
                else "It sends, then trains. "
            )
            + f"Dotted line: all wait for each other; solid: the next {unit} begins.{where}",
        ),
    )


MOST_ROWS = 8  # of the table on the first screen


def alone_and_shared(rounds: Rounds) -> None:
    """Draw how long each job takes alone and shared, the most slowed down first."""
    best, alone = rounds.best, rounds.alone_s
    shared = shared_s(best)
    slower = np.divide(shared, alone, out=np.ones_like(shared), where=alone > 0)
    order = np.argsort(-slower, kind="stable")[:MOST_ROWS]
    left_out = len(alone) - len(order)
    together = "none" if rounds.together is None else lasting(rounds.together.round_s)
    frame(
        [
            {
                "job": best.jobs.jobs[n].id,
                "alone": lasting(float(alone[n])),
                "shared": lasting(float(shared[n])),
                "longer by": slowed(float(slower[n]) - 1) or f"0{NBSP}%",
                "all at once": together,
            }
            for n in order
        ],
        title=(
            "Each job alone and shared",
            f"{a_or_an(rounds.unit)}; alone: with all ports to itself"
            + (f". The {len(order)} most slowed down; Every job has the rest" if left_out else ""),
        ),
    )


def shared_s(round_: Round) -> Floats:
    """Return how long each job takes on the shared fabric, in seconds."""
    return np.array([round_.cycle_of(job.pod_group).round_s for job in round_.jobs.jobs])


def stages(rows: list[tuple[str, Round]], pod_group: int | None) -> Content:
    """Return every stage of every round as a table."""
    table = []
    for name, round_ in rows:
        cycle = (
            max(round_.cycles, key=lambda c: c.round_s)
            if pod_group is None
            else round_.cycle_of(pod_group)
        )
        table += [
            {
                "way": name,
                "stage": number,
                "what": stage_name(phase.group, phase.way, both_ways(cycle)),
                "begin (s)": phase.start_s,
                "length (s)": phase.end_s - phase.start_s,
                "communication (s)": phase.communication_s,
                "computing beside it (s)": phase.computing_s,
                "dark time (ms)": 1000 * phase.dark_s,
            }
            for number, phase in numbered(cycle)
        ]
    return table


def certificate(rounds: Rounds, whole: Round) -> None:
    """Draw the card of the best round: status, bound, who stopped it, the checker's verdict on it as a ``whole``."""
    case, round_ = rounds.case, rounds.best
    with st.container(border=True, key="certificate"):
        words, colour = _seal(round_)
        length, bound = apart((1000 * round_.round_s, 1000 * round_.bound_s))
        sizes = [sum(k == group for k in round_.group) for group in range(round_.groups)]
        spent = seconds(round_.wall_s) if round_.wall_s >= 1 else lasting(round_.wall_s)
        rows = [
            (capitalised(rounds.unit), f"<b>{length}</b>"),
            ("Lower bound", f"<b>{bound}</b>"),
            ("Bound holds for", escape(without_rings(round_.bound.holds_for, round_.jobs))),
            (
                "Jobs in a group",
                ", ".join(f"{group_name(k)} {count(n)}" for k, n in enumerate(sizes)),
            ),
            ("Stopped by", f"{ROUND_STOPPED_BY[round_.stopped_by]}, {spent}"),
        ]
        if (
            rounds.chosen is not None
            and rounds.chosen.status == "optimal"
            and round_.status != "optimal"
        ):
            proved = without_rings(rounds.chosen.bound.holds_for, round_.jobs)
            rows.append(("Proved shortest for", escape(proved)))
        st.html(
            f'<p class="seal {colour}">{words}</p><p class="quiet" style="margin:-.3rem 0 .35rem">'
            f"{escape(ALGORITHMS[round_.algorithm].title)}</p>"
            + facts(
                rows, [("What sets the bound", escape(without_rings(round_.bound.by, round_.jobs)))]
            )
        )
        if round_.message:
            st.html(f'<p class="note">{escape(round_.message)}</p>')
        report = verdict(case, whole)
        rules = Counter(one.equation for one in report.constraints)
        verdicts = [
            (ok, f"{html.escape(equation_words(name))} <span>({rules[name]})</span>")
            for name, ok in report.equations.items()
        ]
        checker_card(report, verdicts, st.html, "rule", "jobs_")


def _seal(round_: Round) -> tuple[str, str]:
    if round_.proved:
        return "✓ Proved shortest", "good"
    if round_.gap <= UNREADABLE:
        return f"◐ {lasting(round_.round_s - round_.bound_s)} above the bound", ""
    return f"◐ Within {percent(round_.gap)} of the bound", ""


def searching(rounds: Rounds, theme: Theme) -> None:
    """Say what the chosen algorithm is doing, where it has not ended: running, stopped, refused, or no place free."""
    owner, case, algorithm = run_owner(), rounds.case, rounds.algorithm
    key = case.key(algorithm)
    if owner.run(ROUND, key) is not None:
        run_panel(ROUND, "Searching", partial(_live, rounds, theme))
        return
    if owner.run(BOUND, key) is not None:
        run_panel(BOUND, "Round found; computing its lower bound")
        return
    refused = owner.refusals(ROUND).get(key)
    if refused is not None:
        if rounds.known:
            st.warning(
                f"{ALGORITHMS[algorithm].title}: {as_label(refused)}. The page shows hill climbing."
            )
    elif rounds.chosen is not None and rounds.chosen.stopped_by in ("cancelled", "time_limit"):
        cancelled = rounds.chosen.stopped_by == "cancelled"
        who = "you" if cancelled else f"the time limit of {time_limit_s():.0f} s"
        line = f"Stopped by {who}; this is the best round found until then."
        button("Search again", "jobs_again", "replay", search_again, case, algorithm, beside=line)
    elif rounds.chosen is not None and bound_stopped(key):
        button(
            "Compute the bound",
            "jobs_bound",
            "replay",
            search_bound,
            key,
            rounds.chosen,
            beside="Computing a tighter bound was stopped; the bound shown came with the round.",
        )
    elif rounds.chosen is None:
        run_note(ROUND)
        button("Try again", "jobs_run", "play_arrow", search_round, case, algorithm)
    elif rounds.certified is None:
        run_note(BOUND)


def _live(rounds: Rounds, theme: Theme, run: FunctionRun[Round, RoundTracePoint]) -> None:
    """Draw the best round against the bound so far."""
    view = rounds.by_iteration()
    points, spent_s = per_iteration(run.steps, view.each), run.elapsed_s
    if len(points) < 2 or spent_s <= WORTH_A_CHART_S:
        return
    levels = [
        (name, round_.round_s, dash)
        for name, round_, dash in (
            ("all at once", view.together, "dash"),
            ("hill climbing", view.paper, "dot"),
        )
        if round_ is not None
    ]
    best_s = min((point.round_s for point in points if point.round_s is not None), default=0.0)
    chart(
        climb([*points, replace(points[-1], elapsed_s=spent_s)], levels, theme, by_step=False),
        "jobs_live",
        f"Search as it runs: best {lasting(best_s)}, bound {lasting(max(p.bound_s for p in points))}.",
    )


def rates(rounds: Rounds) -> Content:
    """Return every job with its group and its iterations per hour, before and after; ``rounds``: as wholes."""
    best, jobs, view = rounds.best, rounds.best.jobs.jobs, rounds.by_iteration()
    after, alone, shared = 3600 * iterations_per_s(best), view.alone_s, shared_s(view.best)
    columns: dict[str, Any] = {
        "job": [job.id for job in jobs],
        "collective": [COLLECTIVES[job.collective].lower() for job in jobs],
        "pod group": [job.pod_group for job in jobs],
        "units": [job.units for job in jobs],
        "train (s)": [job.train_s for job in jobs],
        "volume (Gbit)": [job.volume_gbit for job in jobs],
        "group": [group_name(k) for k in best.group],
        "alone (s)": alone,
        "shared (s)": shared,
        "longer by (%)": 100 * np.divide(shared, alone, out=np.ones_like(shared), where=alone > 0)
        - 100,
        "iterations/h": after,
    }
    for words, round_ in (("hill climbing", rounds.paper), ("all at once", rounds.together)):
        if round_ is not None:
            columns[words] = 3600 * iterations_per_s(round_)
    if rounds.together is not None:
        before = columns["all at once"]
        gain = np.divide(after, before, out=np.ones_like(after), where=before > 0) - 1
        columns["change"] = [f"{100 * g:+.3g} %" for g in gain]
    return columns
