"""Prove it: an exact engine beside the page, watched, stopped, how its answer came about; and the race of all engines."""

import threading
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from topox_core.fabrics.fluid.simulator import Stopped
from topox_core.fabrics.planning.scheduled import prove, schedule
from topox_core.fabrics.run import JobRequest
from topox_core.figures.iteration.search import GLYPHS, families_of, race, search
from topox_core.figures.palette import Theme
from topox_core.runs.run import FunctionRun, RunProgress, Stop, finish
from topox_core.schedule.engines.waiting_workers import (
    expect_request,
    wait_until_loaded,
)
from topox_core.schedule.planning.list_scheduler import RULES
from topox_core.schedule.race.proof import LOADING_S, Proof
from topox_core.schedule.results.result import MET, Result, gap
from topox_core.schedule.results.story import (
    CLASS_WORDS,
    ENGINE_WORDS,
    ENGINES,
    FAMILY_WORDS,
    Contestant,
    Event,
    event_table,
    events_of,
    proof_of,
    race_finding,
    race_table,
    summary_sentence,
)
from topox_core.text.numbers import capitalised, enumeration, percent, plural, seconds, short, time
from topox_ui.answers.solving import PROOF, keep
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.schedule.certificate import OTHER_LOWERING, seal_line, ways_left
from topox_ui.shell.charts import (
    as_label,
    button,
    chart,
    chart_title,
    escape,
    frame,
    quiet,
    table_under,
    write_html,
)
from topox_ui.shell.page import warmed
from topox_ui.shell.panel import BEFORE, watched
from topox_ui.state.choices import RaceState
from topox_ui.state.what_ifs import engine_choice
from topox_ui.state.widgets import slide

RACE = RunKind(
    "race",
    cancel_help="Stops at once; the engines that have ended are kept.",
    cancelled="Stopped. The engines that had ended are kept; the others can be run from here.",
)
# The engines of a race that have ended their solve, in the order in which they run.
Ended = tuple[Contestant, ...]


def race_key(job: JobRequest) -> str:
    """Return all that the outcome of a race depends on: the time limit of a job is what every engine has for itself."""
    how = job.settings
    return f"{job.key}|{how.time_limit_s}|{how.threads}|{how.gap}|{how.seed}"


@dataclass(frozen=True)
class EngineStart:
    """A step of the race of a job: an engine began its solve."""

    job: JobRequest
    engine: str
    run: FunctionRun[Result, object] | Proof


def start(job: JobRequest) -> None:
    """Start the engines that have not run yet, once what must be compiled is."""
    owner = run_owner()
    keep_result = partial(keep, owner.results(PROOF), job.key)
    function = partial(run_race, job, owner.results(RACE), keep_result, warmed())
    owner.start(
        RACE,
        race_key(job),
        lambda _slots: FunctionRun(function, measure, "race"),
        at_most_s=job.settings.time_limit_s * len(ENGINES),
    )


def run_race(
    job: JobRequest,
    outcomes: MutableMapping[str, Ended],
    keep_result: Callable[[Result], None],
    warming: threading.Thread | None,
    stop: Stop,
    on_step: Callable[[EngineStart], None],
) -> None:
    """Run one engine after another; the outcome of each that has ended is kept."""
    key = race_key(job)
    if warming is not None:
        warming.join()  # no engine shares the cores with a compiler
    for engine in ENGINES[len(outcomes.get(key, ())) :]:
        run = _begun(job, engine)
        on_step(EngineStart(job, engine, run))
        result = None
        with suppress(Stopped):
            result = finish(run, stop)
        if stop() or result is None:
            return
        outcomes[key] = (*outcomes.get(key, ()), Contestant.of(engine, result))
        if engine != "list":  # the page has the list schedule already
            keep_result(result)


def _begun(job: JobRequest, engine: str) -> FunctionRun[Result, object] | Proof:
    """Begin the solve of one engine, alone."""
    settings = replace(job.settings, engine=engine)
    if engine == "list":
        return FunctionRun(lambda stop, _: schedule(job.task_graph, job.cluster, settings, stop))
    wait_until_loaded(engine, LOADING_S)
    return prove(job.task_graph, job.cluster, settings)


def measure(steps: tuple[EngineStart, ...], elapsed_s: float) -> RunProgress:
    """Return how far a race is: engines by their place, the one that runs by its time limit."""
    if not steps:
        return RunProgress(elapsed_s, 0.0, words="making ready")
    step = steps[-1]
    limit_s, place = step.job.settings.time_limit_s, ENGINES.index(step.engine)
    spent_s = step.run.elapsed_s
    return RunProgress(
        elapsed_s,
        min(1.0, (place + min(1.0, spent_s / limit_s)) / len(ENGINES)),
        words=f"{ENGINE_WORDS[step.engine]}, {place + 1} of {len(ENGINES)}: "
        f"{seconds(round(spent_s, 1))} of {seconds(limit_s)}",
        left_s=max(0.0, limit_s * (len(ENGINES) - place) - spent_s),
    )


WHAT = (
    "Who finds the shortest schedule of this graph, and who can prove it? Four ways run one after another, each alone, on the "
    "same cores and with the same time: <b>list</b> scheduling by rules; <b>HiGHS</b>, a mixed-integer solver; <b>CP-SAT</b>, a "
    "constraint solver; and <b>auto</b>, exact engines and local search together. All but list start from the list schedule; "
    "with a second core, local search runs beside them. This page then shows the best schedule found."
)

MARKS = "Solid: the best schedule so far. Dotted: the bound. The mark is where an engine ended, filled if by a proof."


def race_section(job: JobRequest, theme: Theme) -> None:
    """Draw the race of this setting: what it is or who won, the way to start it, its way so far, or its outcome."""
    job = replace(job, settings=replace(job.settings, time_limit_s=RaceState.now().race_s))
    key = race_key(job)
    ended: Ended = run_owner().results(RACE).get(key, ())
    chart_title("Race of the engines")
    st.html(
        f'<p class="card">{escape(race_finding(ended))}</p>'
        if len(ended) > 1
        else f'<p class="quiet">{WHAT}</p>'
    )
    _offer_race(job, ENGINES[len(ended) :])
    if not watched(RACE, "Race", partial(_race_live, key, theme)) and ended:
        quiet(MARKS)
        chart(
            race(ended, job.settings.time_limit_s, theme),
            "race_chart",
            f"Schedules and bounds of {', '.join(r.name for r in ended)} over elapsed time. {race_finding(ended)}",
            lambda: race_table(ended),
            "Every engine",
        )


def _offer_race(job: JobRequest, left: Sequence[str]) -> None:
    """Offer to run what has not run: the time limit, the button, and how long it will take."""
    owner = run_owner()
    proving = owner.run(PROOF) is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        slide(
            RaceState,
            "race_s",
            at_most=server_limits().longest_s,
            words=lambda v: f"{short(v)} s",
            width=230,
            help="Each engine may run this long; a proof ends its run sooner. Outcomes are kept for each limit.",
        )
        if owner.run(RACE) is not None or not left:
            return
        words = (
            "Start the race"
            if len(left) == len(ENGINES)
            else f"Run the other {len(left)}"
            if len(left) > 1
            else "Run the last one"
        )
        button(
            words,
            "race",
            "flag",
            start,
            job,
            disabled=proving,
            help="A proof is running and uses all cores: wait until it ends, or cancel it."
            if proving
            else None,
        )
        names = capitalised(enumeration([ENGINE_WORDS[engine] for engine in left]))
        quiet(
            f"{names}, each for at most {seconds(job.settings.time_limit_s)} on "
            f"{plural(job.settings.threads, 'core')}"
        )


def _race_live(key: str, theme: Theme, run: FunctionRun[None, EngineStart]) -> None:
    """Draw the engines that have ended and the one that runs."""
    if not run.steps:
        return
    step = run.steps[-1]
    running = race_key(step.job)
    if running != key:
        quiet(BEFORE)
    contestants = list(run_owner().results(RACE).get(running, ()))
    if isinstance(step.run, Proof) and step.engine not in {one.engine for one in contestants}:
        events = events_of(step.run.story)
        contestants.append(Contestant(step.engine, events, step.run.elapsed_s))
    if contestants:
        quiet(MARKS)
        chart(
            race(contestants, step.job.settings.time_limit_s, theme),
            "race_live",
            "Schedules and bounds of the engines so far.",
        )


WORTH_A_CHART_S = 0.5
LETTERS = 24  # of who found a step, in a table as narrow as the window
LIVE_HEIGHT = 108  # px: with progress and Cancel it stays beside headline and key figures


def proof_panel(job: JobRequest, result: Result, theme: Theme) -> None:
    """Draw the button, or the solve that runs with its Cancel; the engine and its time limit behind a small menu."""
    with st.container(border=True, key="proof"):
        if watched(PROOF, "Proving", partial(_live, job.key, theme)):
            return
        _offer(job, result)
        with st.expander("Exact engine", key="engine_menu", type="compact"):
            engine_choice()


def _offer(job: JobRequest, result: Result) -> None:
    """Draw the button with what it does, and what the last solve left to be said."""
    write_html(seal_line(result))
    proved, racing = result.settled, run_owner().run(RACE) is not None
    optimal = result.status == "optimal"
    st.button(
        "Prove it"
        if not proved
        else "Nothing left to prove"
        if optimal
        else "No engine can prove more",
        type="secondary" if proved else "primary",
        icon=":material/verified:",
        disabled=proved or racing,
        width="stretch",
        key="prove",
        on_click=_start,
        args=(job,),
        help="The race uses all cores: wait until it ends, or cancel it."
        if racing
        else "Start the exact engine in a process of its own; sliders stay live.",
    )
    if proved and not optimal:
        plans = "No plan that changes circuits"
        if OTHER_LOWERING in ways_left(result):
            plans += " and has these rings and algorithms"
        quiet(
            f"{plans} can be shorter (proved). Other fixed circuits might, since transfers share them "
            "and servers forward; no engine here looks for those."
        )
    own, other = result.own_class, result.other_class
    if other is not None and result.makespan_ms and other.bound_ms < own.bound_ms * (1 - MET):
        # The bound is that of the other class, which may be far from what it can reach.
        now = f", now at {time(other.best_ms)}," if other.best_ms else ""
        mine, theirs = (CLASS_WORDS[one.changes_circuits][0] for one in (own, other))
        quiet(
            f"At most {percent(gap(result.makespan_ms, own.bound_ms))} can be saved by {mine} (bound {time(own.bound_ms)}); "
            f"{percent(result.gap or 0.0)} only if {theirs}{now} came down to {time(other.bound_ms)}. "
            "Each kind has a bound of its own: transfers share circuits that stay, and servers forward over them."
        )
    if not proved:
        expect_request(job.settings.engine)
        before = "The last search ended without a proof. " if result.engine != "list" else ""
        quiet(
            f"{before}Looks for a shorter schedule, or for a proof that there is none, for at most "
            f"{seconds(job.settings.time_limit_s)}."
        )


def _start(job: JobRequest) -> None:
    """Start an exact solve of a job beside the page; one that runs for another job is ended first."""
    owner = run_owner()
    owner.start(
        PROOF,
        job.key,
        lambda _slots: prove(job.task_graph, job.cluster, job.settings),
        partial(keep, owner.results(PROOF), job.key),
        at_most_s=job.settings.time_limit_s,
    )


def search_panel(result: Result, theme: Theme) -> None:
    """Draw how the schedule that is shown was found."""
    events = events_of(result.trace)
    if not events:
        return
    chart_title("How this schedule was found", escape(summary_sentence(events)))
    if _worth_a_chart(events, result):
        # What lines and marks mean, in a line that wraps in the narrow column.
        marks = [
            f"{GLYPHS[family]}&nbsp;{FAMILY_WORDS[family].replace(' ', '&nbsp;')}"
            for family in families_of(events)
        ]
        quiet("&ensp; ".join((*_lines(theme), *marks)))
        chart(
            search(result.trace, result.wall_s, theme),
            "search",
            f"Best schedule and bound over {seconds(result.wall_s)}. {summary_sentence(events)}",
            lambda: event_table(events),
            "Every step",
        )
    else:
        # What fits a narrow window; the fold has the bounds, and what kind of finder each is.
        found = event_table([one for one in events if one.moved != "bound"])
        names = zip(map(str, found["by"]), map(str, found["kind"]), strict=True)
        found["by"] = [by if len(by) <= LETTERS else kind for by, kind in names]
        frame({name: found[name] for name in ("after (s)", "schedule (ms)", "by")})
        table_under("steps", lambda: event_table(events), "Every step, with bounds")
    quiet(_rules(events))


def _rules(events: Sequence[Event]) -> str:
    """Return what the rules of list scheduling are that found something; empty where none did."""
    words = {word for one in events for word in one.source.split()}
    names = "; ".join(f"{name}: {RULES[name]}" for name in RULES if name in words)
    return names and (
        f"{names}. A serial rule places one task after another, a parallel one goes forward in time and starts "
        "what can start."
    )


def _worth_a_chart(events: tuple[Event, ...], result: Result) -> bool:
    """Whether a solve took long enough for its steps to be worth a picture."""
    proof = proof_of(events)
    return (
        result.engine != "list"
        and len(events) > 2
        and (proof.elapsed_s if proof else result.wall_s) >= WORTH_A_CHART_S
    )


def _lines(theme: Theme) -> tuple[str, str]:
    return (
        f'<b style="color:{theme.primary}">━</b>&nbsp;best&nbsp;schedule',
        "┅&nbsp;lower&nbsp;bound",
    )


def _live(key: str, theme: Theme, proof: Proof) -> None:
    """Draw the schedules and bounds of the solve so far."""
    if run_owner().key(PROOF) != key:
        quiet(BEFORE)
    quiet("&ensp; ".join(_lines(theme)))
    story = proof.story
    now = story[-1]
    chart(
        search(story, proof.elapsed_s, theme, LIVE_HEIGHT),
        "search_live",
        f"Best schedule {time(now.incumbent_ms or 0.0)}, bound {time(now.bound_ms)}, so far.",
    )
    if proof.trouble:
        st.warning(as_label(proof.trouble))
