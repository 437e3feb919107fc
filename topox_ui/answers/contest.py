"""The contest that the Compare page chooses, its maps and runs, each kept by its setting; and the verdict, worked out beside pages."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from topox_core.economics.clusters import same_cost_nic_gbps, same_cost_ratio, same_cost_words
from topox_core.errors import InputError
from topox_core.fabrics.compare import EQUAL, check_delay, compare
from topox_core.fabrics.comparison_words import FULL, YARDSTICK, why_not
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.passed_plans import PassedPlan
from topox_core.fabrics.registry import ENTRIES, FABRICS, SPOKEN
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.fabrics.scheduled import better_run
from topox_core.fabrics.sweep import ColumnResult, Point, Sweep, swept_options, usual_axes
from topox_core.fabrics.verdict import (
    RIVALS,
    Effort,
    Verdict,
    priced,
    verdict,
    with_plans as verdict_with_plans,
)
from topox_core.model.cluster import Cluster
from topox_core.runs.cells import CellsResult, futures_run
from topox_core.runs.cores import NICENESS
from topox_core.runs.executor import LocalExecutor
from topox_core.runs.run import Stop
from topox_core.text.numbers import capitalised, percent, plural, time
from topox_ui.answers.solving import (
    Case,
    joined,
    known,
    known_plans,
    listing,
    plans_of,
    plans_shown,
    result_shown,
    with_plans,
)
from topox_ui.runs.owner import Kept, RunKind, run_owner, session_over
from topox_ui.runs.panel import run_note, watched
from topox_ui.runs.results import Shared, shared
from topox_ui.shell.charts import button, emphasised, escape, html_table, quiet, write_html
from topox_ui.shell.preparing import prepared
from topox_ui.state.choices import ContestState
from topox_ui.state.prices import catalogue


@dataclass(frozen=True)
class Contest:
    """Which fabrics compete, with their options, their names in words and those within a sentence."""

    fabrics: tuple[str, ...]
    options: FabricOptions
    labels: Mapping[str, str]
    spoken: Mapping[str, str]


def contest_of(case: Case) -> Contest:
    """Return the contest that the Compare page chooses on a case's cluster."""
    cluster, now = case.cluster, ContestState.now()
    options = FabricOptions(topology_variant=now.variant)
    words, spoken = "Fat-tree, same cost", "a fat-tree of the same cost"
    if now.fat_tree == "cost":
        nic_gbps = same_cost_nic_gbps(cluster, catalogue(), now.cost_ratio)
        options = replace(options, equivalent_gbps=nic_gbps)
    else:
        rack = now.servers_per_rack or max(1, cluster.servers // 4)
        options = replace(
            options,
            oversubscription=now.oversubscription,
            servers_per_rack=min(rack, cluster.servers),
        )
        words = f"Fat-tree, {options.oversubscription:g}:1"
        spoken = f"a fat-tree oversubscribed {options.oversubscription:g}:1"
    fabrics = tuple(name for name in FABRICS if name in now.fabrics)
    return Contest(fabrics, options, {**FABRICS, "fat_tree": words}, {**SPOKEN, "fat_tree": spoken})


def priced_ratio(cluster: Cluster) -> float:
    """Return the ratio of a fat-tree of the same cost, by the prices that hold."""
    return same_cost_ratio(cluster, catalogue())


def priced_words(cluster: Cluster) -> str:
    """Say what the circuits' money buys, by the prices that hold."""
    return same_cost_words(cluster, catalogue())


MAX_CALLS = 500  # kept for all sessions: some seven maps, each call with a schedule


@st.cache_resource(show_spinner=False)
def map_calls() -> Kept[Point | ColumnResult]:
    """Return what has been computed for maps, for all sessions: the same input has the same map."""
    return Kept(MAX_CALLS)


def sweep_of(case: Case, contest: Contest, by: Literal["port_gbps", "degree"]) -> Sweep:
    """Return the map of a case: its own speed or degree says where it is cut; its delay does not matter.

    Raises
    ------
    InputError
        If a degree does not go with the cluster's switches.
    """
    fabrics = tuple(name for name in contest.fabrics if name not in (YARDSTICK, FULL))
    options = swept_options(contest.options, case.cluster)
    return Sweep(
        case.graph,
        case.cluster,
        listing(case.settings),
        usual_axes(case.cluster, by),
        fabrics,
        options,
    )


def map_plans(case: Case, contest: Contest) -> tuple[PassedPlan, ...]:
    """Return the plans that maps have for a case at any delay."""
    if case.settings.circuits == "per-slot" or not set(contest.fabrics) - {YARDSTICK, FULL}:
        return ()
    try:
        sweep = sweep_of(case, contest, "port_gbps")
    except InputError:
        return ()
    if case.cluster.port_gbps not in sweep.axes.values:
        return ()
    return sweep.column(case.cluster.port_gbps, map_calls()).plans


Runs = dict[str, FabricRun]
WORTH_A_WORD = 1_500  # tasks; fewer run before a spinner could be read


def run_all(case: Case, contest: Contest) -> tuple[Runs, tuple[str, ...]]:
    """Run what has not been run for this very setting; return the runs, and a line for each reason why others cannot.

    Raises
    ------
    InputError
        If the delay is absurd, or no fabric can run.
    """
    check_delay(case.cluster)
    runs: Runs = {}
    refused: dict[str, InputError] = {}
    large = len(case.graph.tasks) >= WORTH_A_WORD
    # The ideal switch comes last: what the others do is among its candidates.
    order = sorted(contest.fabrics, key=lambda name: name == "ideal")
    for k, name in enumerate(order, start=1):
        words = f"{contest.labels[name]}, {k} of {len(contest.fabrics)}: {plural(len(case.graph.tasks), 'task')}"
        try:
            with st.spinner(words) if large else nullcontext():
                run = _run(
                    _key(case, name, contest.options, runs),
                    case,
                    name,
                    contest.options,
                    runs,
                    session_over(),
                )
        except InputError as error:
            refused[name] = error
            if len(refused) == len(contest.fabrics):
                raise
            continue
        runs[name] = _best_plan(case, contest, run) if name == "scheduled" else run
    ordered = {name: runs[name] for name in contest.fabrics if name in runs}
    return ordered, why_not(refused, contest.labels)


@st.fragment(run_every=1.0)
def redraw_when_shorter(case: Case, planned: FabricRun) -> None:
    """Draw a page again once a plan is known that is shorter than the one in view."""
    if (
        planned.result
        and (with_plans(case, planned.result).makespan_ms or 0.0) < planned.iteration_ms
    ):
        st.rerun()


def _key(case: Case, name: str, options: FabricOptions, runs: Runs) -> str:
    # No page gives a layout.
    own = [getattr(options, one) for one in ENTRIES[name].options if one != "layout"]
    # A plan that is better by now may be better than the ideal switch was; a plan may keep circuits
    # that were searched.
    known = [
        run.iteration_ms
        for one, run in runs.items()
        if name == "ideal" or (name == "scheduled" and one == "static_graph")
    ]
    return f"{case.key}|{case.settings.seed}|{name}|{own}|{known}"


@st.cache_resource(max_entries=256, show_spinner=False)
def _run(
    key: str,  # noqa: ARG001
    _case: Case,
    name: str,
    _options: FabricOptions,
    _known: Runs,
    _over: Stop,
) -> FabricRun:
    settings = listing(_case.settings)
    runs = compare(_case.graph, _case.cluster, settings, (name,), _options, _over, known=_known)
    if _over():  # nobody is there to see it, and what was cut short is not for others
        raise StopException
    return runs[name]


def _best_plan(case: Case, contest: Contest, run: FabricRun) -> FabricRun:
    """Return the run of the best plan that is known, from the map and other pages too, who hear of it."""
    for plan in map_plans(case, contest):
        known_plans().add(case.job_key, plan)
    mine, proved = run.result, known(case)
    if mine is None or mine.makespan_ms is None:
        return run
    best = with_plans(case, mine if proved is None else joined(mine, proved))
    return run if best is mine else better_run(run, best)


# Nobody asks for a first verdict, so it takes no place from a proof. Of more tasks it waits for a button.
AUTOMATIC, MAX_TASKS = True, 20_000
POLL_S = 0.5
VERDICT = RunKind("verdict", most_kept=24, most_slots=0)
# What a search may take, in words: 32 s on 1,066 tasks (benchmarks/verdicts.py).
SEARCH_WORDS = "a minute or so"
FAIR = (
    "On a fat-tree transfers that meet on a link share it fairly; a plan sends first what others wait for, and can be faster. "
    "A full fat-tree whose hosts send in such an order carries all that circuits do, at the same times."
)
# No plan on circuits is shorter than its own order on a network that has a circuit for every pair.
IN_ORDER = (
    "A full fat-tree whose hosts send in an order",
    "at most as long",
    "never",
    "any delay",
    "proved",
)
COLUMNS = ("Network", "iteration", "pays at least up to", "cannot pay from", "how sure")


@st.cache_resource(show_spinner=False, on_release=lambda one: one.kill())
def _workers() -> LocalExecutor:
    return LocalExecutor(1, niceness=NICENESS)


def verdict_line(case: Case) -> None:
    """Write the verdict on a job, or that it is on its way; nothing where circuits pay no delay by the rules chosen."""
    if case.settings.circuits == "per-slot":
        return
    known = known_verdict(case)
    if known is None:
        _coming(case)
        return
    write_html(f'<div class="verdict"><p>{emphasised(known.lead)}</p>{_rivals(known, case)}</div>')
    with st.expander("What the verdict rests on", key="verdict_details", type="compact"):
        _details(case, known)


def _rivals(known: Verdict, case: Case) -> str:
    """Return a table in HTML: the job as pages show it, then what each rival takes, where switching pays against it, how sure that is.

    The last column is left out where it says the same of every rival.
    """
    rivals = [
        (capitalised(RIVALS[one.name]), time(one.iteration_ms), *one.words)
        for one in known.brackets
    ]
    if not rivals:
        return ""
    last = None if {row[-1] for row in rivals} != {"unknown in between"} else -1
    mine = result_shown(case)
    rows = (
        [("This job on planned circuits", time(mine.makespan_ms or 0.0), "", "", "")]
        if mine
        else []
    )
    rows += [*rivals, *([IN_ORDER] if known.brackets[-1].name == "fat_tree_full" else [])]
    return html_table(COLUMNS[:last], [row[:last] for row in rows], row_heads=True)


def known_verdict(case: Case) -> Verdict | None:
    """Return the verdict of the most effort that some session had worked out, with the plans that pages found since."""
    kept: Shared[Verdict] = shared("verdict")
    for key in (_verdict_key(case, "search"), _verdict_key(case, "list")):
        if (found := kept.known(key)) is not None:
            if not (case.settings.share_circuits or case.settings.any_port):
                job = JobRequest(case.graph, case.cluster, case.settings)
                found = verdict_with_plans(found, job, plans_of(case))
                kept.keep(key, found)
            return found
    return None


def priced_verdict(case: Case) -> Verdict | None:
    """Return the verdict that is known with the prices of a port at the case's own delay; None where circuits pay no delay.

    The prices are for the plan that pages show, whatever other plans some session found.
    """
    known = None if case.settings.circuits == "per-slot" else known_verdict(case)
    if known is None:
        return None
    job = JobRequest(case.graph, case.cluster, case.settings)
    shown_ms = max((float(one.end_ms.max(initial=0)) for one in plans_shown(case)), default=None)
    return priced(known, job, catalogue(), shown_ms)


def _verdict_key(case: Case, effort: Effort) -> str:
    """Digest of all that a verdict depends on: the delay of the cluster is not among it."""
    now = case.at_delay(0.0).cluster.digest
    how = case.settings
    choices = (how.lowering, how.free, how.exclusive_devices, how.iteration)
    return f"{case.graph.digest}|{now}|{case.names!r}|{choices}|{catalogue().digest}|{effort}"


@st.fragment(run_every=POLL_S)
def _coming(case: Case) -> None:
    """Have the verdict worked out, and the page drawn again when it is there."""
    owner, key = run_owner(), _verdict_key(case, "list")
    if owner.ended(VERDICT) or known_verdict(case) is not None:
        st.rerun()
    if owner.run(VERDICT, key) is None:
        if not prepared():
            quiet(
                "This page computes up to which delay changing circuits pays once the fast kernels are compiled."
            )
            return
        run_note(VERDICT)
        large = len(case.graph.tasks) > MAX_TASKS
        if large or not AUTOMATIC or owner.note(VERDICT):
            button("Does changing circuits pay?", "ask_verdict", "gavel", _start, case, "list")
            if large:
                quiet(f"{plural(len(case.graph.tasks), 'task')}: takes {SEARCH_WORDS}.")
            return
        _start(case, "list")
    quiet("Computing up to which delay changing circuits pays …")


def _start(case: Case, effort: Effort) -> None:
    key, settings = _verdict_key(case, effort), replace(listing(case.settings), threads=1)
    future = _workers().submit(verdict, case.graph, case.cluster, settings, effort, catalogue())
    run_owner().start(
        VERDICT, key, lambda _slots: futures_run({key: future}, partial(_keep, case)), _lost
    )


def _keep(case: Case, key: str, found: Verdict) -> None:
    """Keep a verdict, and its plans among those that every page has."""
    for plan in found.plans:
        known_plans().add(case.job_key, plan)
    shared("verdict").keep(key, found)


def _lost(result: CellsResult[str, Verdict]) -> str:
    """Return why a verdict could not be worked out, in words; empty where it was."""
    return ". ".join([*map(str, result.failures.values()), *result.lost][:1])


def _details(case: Case, known: Verdict) -> None:
    """Say what the columns mean, who laid circuits and who cannot run, and offer a longer search."""
    quiet(
        f"Pays at least up to: the longest delay at which a plan was found that beats the rival by more than {percent(EQUAL)}. "
        "Cannot pay from: a lower bound excludes every such plan (proved). Unknown: no such plan was found, and none is excluded."
    )
    quiet(FAIR)
    for one in known.brackets:
        if one.laid_by:
            quiet(f"{capitalised(RIVALS[one.name])}: laid by {one.laid_by}.")
    for name, why in known.refused.items():
        quiet(f"{capitalised(RIVALS[name])} cannot run: {escape(why)}")
    if known.effort == "list":
        if watched(VERDICT, "Looking for a narrower answer"):
            return
        button(
            "Look for a narrower answer",
            "search_verdict",
            "search",
            _start,
            case,
            "search",
            help=f"Plans at more delays and tightens the bound: takes {SEARCH_WORDS}.",
        )
