"""Prove it: an exact engine beside the page, watched, stopped, how its answer came about; and the race of all engines."""

import threading
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from topox_core.fabrics.fluid.simulator import Stopped
from topox_core.fabrics.planning.scheduled import prove, schedule
from topox_core.figures.iteration.search import GLYPHS, families_of, race, search
from topox_core.figures.palette import Theme
from topox_core.runs.run import FunctionRun, RunProgress, Stop, finish
from topox_core.schedule.engines.waiting_workers import (
    expect_request,
    wait_until_loaded,
)
from topox_core.schedule.planning.list_scheduler import RULES
from topox_core.schedule.planning.proof import LOADING_S, Proof
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
from topox_ui.answers.solving import PROOF, Case, case_of, keep, start_proof
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.panel import BEFORE, run_note, run_panel
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
from topox_ui.state.choices import RaceState
from topox_ui.state.loading import loaded, scenario
from topox_ui.state.session import notify_errors
from topox_ui.state.what_ifs import engine_choice
from topox_ui.state.widgets import slide

RACE = RunKind(
    "race",
    most_kept=24 * len(ENGINES),
    cancel_help="Stops at once; the engines that have ended are kept.",
    cancelled="Stopped. The engines that had ended are kept; the others can be run from here.",
)
Outcomes = MutableMapping[tuple[str, str], Contestant]


@dataclass(frozen=True)
class Race:
    """A case, and the time limit that every engine has for itself."""

    case: Case
    limit_s: float

    @property
    def key(self) -> str:
        """Everything that the outcome depends on."""
        settings = self.case.settings
        return f"{self.case.key}|{self.limit_s}|{settings.threads}|{settings.gap}|{settings.seed}"

    def contestants(self, outcomes: Outcomes) -> list[Contestant]:
        """Return the engines that have ended their solve, in the order in which they run."""
        return [outcomes[self.key, name] for name in ENGINES if (self.key, name) in outcomes]


@dataclass(frozen=True)
class EngineStart:
    """A step of a race: an engine began, with its solve where it has one that can be watched."""

    race: Race
    engine: str
    proof: Proof | None = None

    @property
    def contestant(self) -> Contestant | None:
        """Where the engine stands now."""
        proof = self.proof
        if proof is None:
            return None
        return Contestant(self.engine, events_of(proof.story), proof.elapsed_s)


def start(race: Race) -> None:
    """Start the engines that have not run yet, once what must be compiled is."""
    owner = run_owner()
    keep_result = partial(keep, owner.results(PROOF), race.case.key)
    function = partial(run_race, race, owner.results(RACE), keep_result, warmed())
    owner.start(
        RACE,
        race.key,
        lambda _slots: FunctionRun(function, measure, "race"),
        lambda _outcome: None,  # outcomes are kept engine by engine
        at_most_s=race.limit_s * len(ENGINES),
    )


def run_race(
    race: Race,
    outcomes: Outcomes,
    keep_result: Callable[[Result], None],
    warming: threading.Thread | None,
    stop: Stop,
    on_step: Callable[[EngineStart], None],
) -> int:
    """Run one engine after another; return how many have an outcome."""
    if warming is not None:
        warming.join()  # no engine shares the cores with a compiler
    for engine in ENGINES:
        if (race.key, engine) in outcomes:
            continue
        settings = replace(race.case.settings, engine=engine, time_limit_s=race.limit_s)
        result = _solved(race, replace(race.case, settings=settings), stop, on_step)
        if result is None:
            break
        outcomes[race.key, engine] = Contestant.of(engine, result)
        if engine != "list":  # the page has the list schedule already
            keep_result(result)
    return len(race.contestants(outcomes))


def _solved(
    race: Race, case: Case, stop: Stop, on_step: Callable[[EngineStart], None]
) -> Result | None:
    """Return what one engine makes of a case, or None if the race was stopped before its end."""
    engine, arguments = case.settings.engine, (case.graph, case.cluster, case.settings)
    if stop():
        return None
    try:
        if engine == "list":
            on_step(EngineStart(race, engine))
            result: Result | None = schedule(*arguments, stop)
        else:
            wait_until_loaded(engine, LOADING_S)
            proof = prove(*arguments)
            on_step(EngineStart(race, engine, proof))
            result = finish(proof, stop)
    except Stopped:
        return None
    return None if stop() else result


def measure(steps: tuple[EngineStart, ...], elapsed_s: float) -> RunProgress:
    """Return how far a race is: engines by their place, the one that runs by its time limit."""
    if not steps:
        return RunProgress(elapsed_s, 0.0, words="making ready")
    step = steps[-1]
    limit_s, place = step.race.limit_s, ENGINES.index(step.engine)
    spent_s = step.proof.elapsed_s if step.proof is not None else 0.0
    return RunProgress(
        elapsed_s,
        min(1.0, (place + min(1.0, spent_s / limit_s)) / len(ENGINES)),
        words=f"{ENGINE_WORDS[step.engine]}, {place + 1} of {len(ENGINES)}: "
        f"{seconds(round(spent_s, 1))} of {seconds(limit_s)}",
        left_s=max(0.0, limit_s * (len(ENGINES) - place) - spent_s),
    )


LIMITS_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
WHAT = (
    "Who finds the shortest schedule of this graph, and who can prove it? Four ways run one after another, each alone, on the "
    "same cores and with the same time: <b>list</b> scheduling by rules; <b>HiGHS</b>, a mixed-integer solver; <b>CP-SAT</b>, a "
    "constraint solver; and <b>auto</b>, exact engines and local search together. All but list start from the list schedule; "
    "with a second core, local search runs beside them. This page then shows the best schedule found."
)

MARKS = "Solid: the best schedule so far. Dotted: the bound. The mark is where an engine ended, filled if by a proof."


def race_section(case: Case, theme: Theme) -> None:
    """Draw the race of this setting: what it is or who won, the way to start it, its way so far, or its outcome."""
    owner = run_owner()
    current = Race(case, RaceState.now().race_s)
    ended, running = current.contestants(owner.results(RACE)), owner.run(RACE) is not None
    chart_title("Race of the engines")
    st.html(
        f'<p class="card">{escape(race_finding(ended))}</p>'
        if len(ended) > 1
        else f'<p class="quiet">{WHAT}</p>'
    )
    run_note(RACE)
    _offer_race(current, {one.engine for one in ended}, running)
    if running:
        run_panel(RACE, "Race", partial(_race_live, current.key, theme))
    elif ended:
        quiet(f"{MARKS}")
        chart(
            race(ended, current.limit_s, theme),
            "race_chart",
            f"Schedules and bounds of {', '.join(r.name for r in ended)} over elapsed time. {race_finding(ended)}",
            lambda: race_table(ended),
            "Every engine",
        )


def _offer_race(current: Race, ran: set[str], running: bool) -> None:
    """Offer to run what has not run: the time limit, the button, and how long it will take."""
    left = [engine for engine in ENGINES if engine not in ran]
    proving = run_owner().run(PROOF) is not None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        slide(
            "Time limit of each engine",
            RaceState,
            "race_s",
            [one for one in LIMITS_S if one <= server_limits().longest_s],
            words=lambda v: f"{short(v)} s",
            width=230,
            help="Each engine may run this long; a proof ends its run sooner. Outcomes are kept for each limit.",
        )
        if running or not left:
            return
        words = (
            "Start the race"
            if not ran
            else f"Run the other {len(left)}"
            if len(left) > 1
            else "Run the last one"
        )
        button(
            words,
            "race",
            "flag",
            start,
            current,
            disabled=proving,
            help="A proof is running and uses all cores: wait until it ends, or cancel it."
            if proving
            else None,
        )
        names = capitalised(enumeration([ENGINE_WORDS[engine] for engine in left]))
        quiet(
            f"{names}, each for at most {seconds(current.limit_s)} on "
            f"{plural(current.case.settings.threads, 'core')}"
        )


def _race_live(key: str, theme: Theme, run: FunctionRun[int, EngineStart]) -> None:
    """Draw the engines that have ended and the one that runs."""
    if not run.steps:
        return
    step = run.steps[-1]
    if step.race.key != key:
        quiet(f"{BEFORE}")
    contestants = step.race.contestants(run_owner().results(RACE))
    if step.contestant is not None and step.engine not in {one.engine for one in contestants}:
        contestants.append(step.contestant)
    if contestants:
        quiet(f"{MARKS}")
        chart(
            race(contestants, step.race.limit_s, theme),
            "race_live",
            "Schedules and bounds of the engines so far.",
        )


WORTH_A_CHART_S = 0.5
LETTERS = 24  # of who found a step, in a table as narrow as the window
LIVE_HEIGHT = 108  # px: with progress and Cancel it stays beside headline and key figures


def proof_panel(case: Case, result: Result, theme: Theme) -> None:
    """Draw the button, or the solve that runs with its Cancel; the engine and its time limit behind a small menu."""
    with st.container(border=True, key="proof"):
        if run_owner().run(PROOF) is not None:
            run_panel(PROOF, "Proving", partial(_live, case.key, theme))
            return
        _offer(case, result)
        with st.expander("Exact engine", key="engine_menu", type="compact"):
            engine_choice()


def _offer(case: Case, result: Result) -> None:
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
        expect_request(case.settings.engine)
        before = "The last search ended without a proof. " if result.engine != "list" else ""
        quiet(
            f"{before}Looks for a shorter schedule, or for a proof that there is none, for at most "
            f"{seconds(case.settings.time_limit_s)}."
        )
    run_note(PROOF)


@notify_errors()
def _start() -> None:
    source = loaded()
    if source is not None:
        start_proof(case_of(source, scenario()))


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
        quiet(f"{BEFORE}")
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
