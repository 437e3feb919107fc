"""The verdict on a job as pages show it: worked out beside the page, once for all sessions."""

from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.fabrics.comparison.words import NO_PLAN
from topox_core.fabrics.crossover.verdict import (
    NO_DEARER,
    RIVALS,
    Effort,
    Verdict,
    priced,
    verdict,
    with_plans,
)
from topox_core.fabrics.run import JobRequest
from topox_core.runs.cells import futures_run
from topox_core.runs.cores import NICENESS
from topox_core.runs.executor import LocalExecutor
from topox_core.text.numbers import at_delay, capitalised, percent, plural, time
from topox_ui.answers.solving import (
    known_plans,
    plans_of,
    plans_shown,
    result_shown,
    why_lost,
)
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.results import Shared, shared
from topox_ui.shell.charts import button, emphasised, escape, html_table, quiet, write_html
from topox_ui.shell.panel import begun_beside, run_note, watched
from topox_ui.shell.preparing import prepared
from topox_ui.state.prices import catalogue

# Nobody asks for a first verdict, so it takes no place from a proof. Of more tasks it waits for a button.
AUTOMATIC, MAX_TASKS = True, 20_000
VERDICT = RunKind("verdict", most_kept=24, most_slots=0)
# What a search may take, in words: 32 s on 1,066 tasks (benchmarks/verdicts.py).
SEARCH_WORDS = "a minute or so"
FAIR = (
    "On a fat-tree transfers that meet on a link share it fairly; a plan sends first what others wait for, and can be faster. "
    "A full fat-tree whose hosts send in such an order carries all that circuits do, at the same times."
)
# No plan on circuits is shorter than its own order on a network that has a circuit for every pair.
FULL_IN_ORDER = (
    "A full fat-tree whose hosts send in an order",
    "≤ any plan",
    "never",
    "any delay",
    "proved",
)
COLUMNS = ("Network", "iteration", "pays at least up to", "cannot pay from", "how sure")


@st.cache_resource(show_spinner=False, on_release=lambda one: one.kill())
def _worker() -> LocalExecutor:
    """Return the one process for verdicts of all sessions: a longer search holds nobody else up, and a slider begins no two."""
    return LocalExecutor(1, niceness=NICENESS)


def verdict_line(job: JobRequest, planned_ms: float | None = None) -> None:
    """Write the verdict on a job, or that it is on its way; nothing where circuits pay no delay by the rules chosen.

    ``planned_ms``: what the page says of planned circuits, if it is not the result that all pages show.
    """
    if job.settings.circuits == "per-slot":
        return
    known = known_verdict(job)
    if known is None:
        _coming(job)
        return
    write_html(
        f'<div class="verdict"><p>{emphasised(known.lead)}</p>{_rivals(known, job, planned_ms)}</div>'
    )
    with st.expander("What the verdict rests on", key="verdict_details", type="compact"):
        _details(job, known)


def _rivals(known: Verdict, job: JobRequest, planned_ms: float | None) -> str:
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
    if planned_ms is None and (mine := result_shown(job)) is not None:
        planned_ms = mine.makespan_ms
    rows = [("This job on planned circuits", time(planned_ms), "", "", "")] if planned_ms else []
    rows += [*rivals, *([FULL_IN_ORDER] if known.brackets[-1].name == "fat_tree_full" else [])]
    return html_table(COLUMNS[:last], [row[:last] for row in rows], row_heads=True)


def known_verdict(job: JobRequest) -> Verdict | None:
    """Return the verdict of the most effort that some session had worked out, with the plans that pages found since.

    None where circuits pay no delay by the rules chosen.
    """
    if job.settings.circuits == "per-slot":
        return None
    kept: Shared[Verdict] = shared("verdict")
    for key in (_key(job, "search"), _key(job, "list")):
        if (found := kept.known(key)) is not None:
            if not (job.settings.share_circuits or job.settings.any_port):
                found = with_plans(found, job.by_rules, plans_of(job))
                kept.keep(key, found)
            return found
    return None


def does_it_pay(job: JobRequest) -> str:
    """Return whether switching pays at a job's own delay, against the faster rival that costs no more; empty until it is known."""
    known, mine = known_verdict(job), result_shown(job)
    rivals = [one for one in known.brackets if one.name in NO_DEARER] if known else []
    if known is None or mine is None or not mine.makespan_ms or not rivals:
        return ""
    rival = min(rivals, key=lambda one: one.iteration_ms)
    delay_ms, mine_ms = job.cluster.reconfiguration_ms, mine.makespan_ms
    where = at_delay(delay_ms)
    fixed = mine.switching == "fixed"
    beaten = [one for one in rivals if not fixed and mine_ms * (1 + EQUAL) < one.iteration_ms]
    if rival in beaten:
        return (
            f"{where} switching pays for <b>your job</b>: an iteration takes <b>{time(mine_ms)}</b> on planned circuits, "
            f"<b>{time(rival.iteration_ms)}</b> on {RIVALS[rival.name]}."
        )
    name = "fixed" if fixed and mine_ms <= rival.iteration_ms else rival.name
    takes = f"<b>{time(min(mine_ms, rival.iteration_ms))}</b> on {RIVALS[name]}"
    if beaten:
        (one,) = beaten
        return (
            f"{where} switching pays for <b>your job</b> against {RIVALS[one.name]}, <b>{time(mine_ms)}</b> instead of "
            f"<b>{time(one.iteration_ms)}</b>, but not against {RIVALS[name]}: <b>{time(rival.iteration_ms)}</b>."
        )
    bound = mine.excludes_change(rival.iteration_ms / (1 + EQUAL))
    if bound or known.excludes(delay_ms, rival.iteration_ms):
        return (
            f"{where} switching gains <b>your job</b> nothing (proved): an iteration takes {takes}."
        )
    from_ms = rival.cannot_pay_from_ms
    sure = (
        f"a gain is ruled out only from {time(from_ms)} on"
        if from_ms
        else "a longer look may find one"
    )
    return f"{where} {NO_PLAN} for <b>your job</b> ({sure}): an iteration takes {takes}."


def priced_verdict(job: JobRequest) -> Verdict | None:
    """Return the verdict that is known with the prices of a port at the job's own delay; None where circuits pay no delay.

    The prices are for the plan that pages show, whatever other plans some session found.
    """
    known = known_verdict(job)
    if known is None:
        return None
    shown_ms = max((float(one.end_ms.max(initial=0)) for one in plans_shown(job)), default=None)
    return priced(known, job.by_rules, catalogue(), shown_ms)


def _key(job: JobRequest, effort: Effort) -> str:
    """Digest of all that a verdict depends on: the delay of the cluster is not among it."""
    now = job.at_delay(0.0).cluster.digest
    how = job.settings
    choices = (how.lowering, how.free, how.exclusive_devices, how.iteration)
    return f"{job.task_graph.digest}|{now}|{job.names!r}|{choices}|{catalogue().digest}|{effort}"


def _coming(job: JobRequest) -> None:
    """Have the verdict worked out, and the page drawn again when it is there; of a large graph at a click."""
    key, large = _key(job, "list"), len(job.task_graph.tasks) > MAX_TASKS
    if not prepared():
        quiet(
            "This page computes up to which delay changing circuits pays once the fast kernels are compiled."
        )
        return
    if (AUTOMATIC and not large) or run_owner().run(VERDICT, key) is not None:
        start = partial(_start, job, "list")
        if begun_beside(VERDICT, key, start, lambda: known_verdict(job) is not None):
            quiet("Computing up to which delay changing circuits pays …")
            return
    run_note(VERDICT)
    button("Does changing circuits pay?", "ask_verdict", "gavel", _start, job, "list")
    if large:
        quiet(f"{plural(len(job.task_graph.tasks), 'task')}: takes {SEARCH_WORDS}.")


def _start(job: JobRequest, effort: Effort) -> None:
    key, settings = _key(job, effort), replace(job.by_rules.settings, threads=1)
    future = _worker().submit(verdict, job.task_graph, job.cluster, settings, effort, catalogue())
    run_owner().start(
        VERDICT, key, lambda _slots: futures_run({key: future}, partial(_keep, job)), why_lost
    )


def _keep(job: JobRequest, key: str, found: Verdict) -> None:
    """Keep a verdict, and its plans among those that every page has."""
    for plan in found.plans:
        known_plans().add(job.key_of_plans, plan)
    shared("verdict").keep(key, found)


def _details(job: JobRequest, known: Verdict) -> None:
    """Say what the columns mean, who laid circuits and who cannot run, and offer a longer search."""
    quiet(
        f"Pays at least up to: the longest delay at which a plan was found that beats the rival by more than {percent(EQUAL)}. "
        "Such a plan gives each transfer a circuit of its own and forwards nothing; fabrics that change circuits and forward too "
        "(re-evaluated, regional) stand on Compare and are not covered. "
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
            job,
            "search",
            help=f"Plans at more delays and tightens the bound: takes {SEARCH_WORDS}.",
        )
