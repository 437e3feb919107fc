"""Schedule: one iteration on optical circuits, with its bound, its check and its Gantt chart; how it was found and proved."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import same_time
from topox_core.fabrics.run import JobRequest
from topox_core.figures.iteration.gantt import gantt
from topox_core.figures.iteration.lanes import overview, port_use
from topox_core.figures.palette import Theme
from topox_core.model.execution import Measures
from topox_core.schedule.results.result import MET, Result
from topox_core.schedule.results.story import finding, limits
from topox_core.schedule.results.what_limits import what_limits
from topox_core.text.numbers import apart, count, percent, plural, short, time
from topox_ui.answers.clicks import delays_here, speed_clicks
from topox_ui.answers.keeping import keep_every, keep_solve_button, link_with_result, take_linked
from topox_ui.answers.solving import (
    CHOICES,
    WORTH_A_WORD,
    begin_list_schedule,
    best,
    drawn,
    job_of,
    scheduled_beside,
    settled,
    shorter_than_first,
    token,
)
from topox_ui.answers.verdicts import VERDICT, verdict_line
from topox_ui.runs.owner import run_owner
from topox_ui.schedule.certificate import certificate
from topox_ui.schedule.proving import proof_panel, race_section, search_panel
from topox_ui.schedule.timeline import delay_panel, delays_to_come, timeline
from topox_ui.shell.charts import (
    beside,
    button,
    emphasised,
    escape,
    headline,
    kpis,
    quiet,
    show_input_errors,
)
from topox_ui.shell.downloads import result_files, stem
from topox_ui.shell.panel import run_note
from topox_ui.state.loading import (
    Loaded,
    choose_what_if,
    cluster_words,
    loaded_job,
    scenario,
)
from topox_ui.state.session import Passing
from topox_ui.state.what_ifs import what_ifs


def schedule_headline(loaded: Loaded, job: JobRequest, result: Result, now: Measures) -> None:
    """Write the finding: the time, how sure it is, what circuits cost."""
    kicker = f"Schedule · {escape(loaded.title)} · {cluster_words(job.cluster)}"
    first = emphasised(finding(result))
    changes = now.circuits_changed
    often = f"<b>{count(changes)}</b> times" if changes > 1 else "<b>once</b>"
    other = result.other_class
    if result.switching == "fixed" and other is not None and other.best_ms is not None:
        tie, found = same_time(other.best_ms, result.makespan_ms or 0.0), time(other.best_ms)
        if tie:
            second = f"Changing circuits saves no time: fixed circuits take <b>{found}</b>."
        elif other.bound_ms >= (result.makespan_ms or 0.0) * (1 - MET):
            second = f"Changing circuits cannot be faster (proved): the best plan that changes them takes <b>{found}</b>."
        else:
            second = f"Fixed circuits are the best found: the best plan that changes them takes <b>{found}</b>."
    elif result.switching == "fixed":
        second = "The circuits are fixed."
    elif not now.circuits_used:
        second = "No data crosses the network."
    elif not changes:
        second = "No circuit changes."
    elif now.dark_ms > 0:
        second = (
            f"Circuits change {often}; ports are dark <b>{percent(now.port_dark)}</b> of the time."
        )
    else:
        second = f"Circuits change {often}, for free at this setting."
    headline(kicker, f"{first} {second}")


def proof_headline(loaded: Loaded, job: JobRequest, result: Result) -> None:
    """Write how sure the time is, and what a gap means in time."""
    kicker = f"Proof · {escape(loaded.title)} · {cluster_words(job.cluster)}"
    words, open_ms = finding(result), (result.makespan_ms or 0.0) - result.bound_ms
    if result.status != "optimal" and open_ms > 0:
        words += f" At most {time(open_ms)} can be saved."
    headline(kicker, emphasised(words))


# Of which setting the files' own values were shown, so that they are known.
_OWN_SHOWN = Passing[str]("own_shown")
# Who the values without what-ifs belong to.
OWN = {"sample": "the sample", "workload": "the generated job", "upload": "your files"}


def schedule_kpis(loaded: Loaded, job: JobRequest, result: Result, now: Measures) -> None:
    """Draw the KPIs, each with its change against the values of the files."""
    before = _of_files(loaded, job)
    whose = OWN.get(scenario().source, "the files")
    makespan = result.makespan_ms or 0.0
    gap = result.gap or 0.0
    shown, bound = apart((makespan, result.bound_ms))
    devices, ports = (
        job.cluster.servers * each
        for each in (job.cluster.devices_per_server, job.cluster.ports_per_server)
    )
    # A tensor-parallel group computes as one device.
    training = loaded_job()
    each = f", {training.plan.tensor} GPUs each" if training and training.plan.tensor > 1 else ""
    line, *change = _change(
        makespan,
        before.makespan_ms if before else None,
        "ms",
        "proved" if result.status == "optimal" else "best plan known",
        worse_up=True,
    )
    kpis(
        ("Iteration time", shown, f"{_so_far(job, result)}{line}", *change),
        (
            "Gap to bound",
            percent(gap),
            "proved" if result.status == "optimal" else f"bound {bound}",
        ),
        (
            "Devices computing",
            percent(now.device_busy),
            *_change(
                100 * now.device_busy,
                100 * before.device_busy if before else None,
                "points",
                f"of {plural(devices, 'device')}{each}",
            ),
        ),
        (
            "Ports carrying",
            percent(now.port_carrying),
            *_change(
                100 * now.port_carrying,
                100 * before.port_carrying if before else None,
                "points",
                f"of {plural(ports, 'out-port')}",
                neutral=True,
            ),
        ),
        (
            "Circuit changes",
            count(now.circuits_changed),
            f"{percent(now.port_dark)} of port time dark" if now.dark_ms else _uses(result, now),
        ),
    )
    if before is not None:
        quiet(f"Changes are against the values of {whose}: {time(before.makespan_ms)}.")


def still_searching(job: JobRequest, result: Result) -> bool:
    """Whether something beside the page may still find a shorter plan than the one that is shown."""
    if result.status == "optimal":
        return False
    searching = not settled(job) or run_owner().run(VERDICT) is not None
    return searching or bool(delays_to_come(job, result))


def more_choices(job: JobRequest, result: Result) -> None:
    """Say whether this is a first plan, and what searching made shorter; have all choices of collectives tried."""
    told = shorter_than_first(job, result.makespan_ms or 0.0)
    if settled(job):
        if still_searching(job, result):
            told = f"{told or 'A first plan.'} Plans for other delays are being made, and one may be shorter here …"
        quiet(told)
    elif scheduled_beside(job):
        quiet("A first plan. Other rings and algorithms of collectives are being tried …")
    else:
        run_note(CHOICES)
        button("Try other rings and algorithms", "try_choices", "refresh", begin_list_schedule, job)


def _so_far(job: JobRequest, result: Result) -> str:
    """Return the mark of a time that may still fall."""
    if not still_searching(job, result):
        return ""
    return "so far, " if shorter_than_first(job, result.makespan_ms or 0.0) else "first plan, "


def _uses(result: Result, now: Measures) -> str:
    """Return how many circuits stay, else how many uses there are: of some the circuit is the port's first one, or was there."""
    layout = None if result.execution is None else result.execution.layout
    if layout is None:
        return f"of {count(now.circuits_used)} circuit uses"
    return f"{plural(int(layout.circuits.sum()), 'circuit')} used"


def _of_files(loaded: Loaded, job: JobRequest) -> Measures | None:
    """Return the measures of the files' own values; None where these are shown, have no schedule or would take long."""
    own = job_of(loaded, scenario().without_what_ifs())
    if own.key == job.key:
        _OWN_SHOWN.set(own.key)
        return None
    if len(own.task_graph.tasks) >= WORTH_A_WORD and _OWN_SHOWN.get() != own.key:
        return None
    with suppress(InputError):
        result = best(own, at_once=True)
        if result.execution is not None:
            return drawn(token(own, result), result).measures
    return None


def _change(
    value: float,
    before: float | None,
    unit: str,
    first: str,
    *,
    worse_up: bool = False,
    neutral: bool = False,
) -> tuple[str, str, str]:
    """Return the line under a KPI, its arrow and its colour: colours tell better from worse, arrows the direction."""
    if before is None:
        return first, "off", "off"
    if abs(value - before) < 1e-6 * max(abs(value), abs(before), 1e-9):
        return "unchanged", "off", "off"
    up, difference = value > before, abs(value - before)
    words = (
        f"{time(difference)} {'longer' if up else 'shorter'}"
        if unit == "ms"
        else f"{short(difference)} {unit} {'more' if up else 'less'}"
    )
    # The text carries no sign, so "normal" is drawn as better and "inverse" as worse.
    colour = "off" if neutral else "inverse" if up == worse_up else "normal"
    return words, "up" if up else "down", colour


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Timeline."""
    _draw_answer(opened, partial(_timeline, theme, opened))


def draw_proof(theme: Theme, opened: Loaded) -> None:
    """Draw the view Proof."""
    _draw_answer(opened, partial(_proof, theme, opened))


def _draw_answer(opened: Loaded, part: Callable[[JobRequest, Result, str], None]) -> None:
    """Draw the what-ifs, and a part of the page for the job and its best result; or say that there is none."""
    what_ifs(opened)
    with st.container(), show_input_errors(f"Schedule · {opened.title}"):
        job = job_of(opened, scenario())
        take_linked(job)
        result = best(job, at_once=True)
    key = token(job, result)
    if result.execution is None:
        headline(
            f"Schedule · {cluster_words(job.cluster)}",
            "There is <b>no schedule</b> for this setting.",
        )
        certificate(job, result, key)
        return
    part(job, result, key)
    if settled(job):
        keep_every(opened, job, result)


def _timeline(theme: Theme, opened: Loaded, job: JobRequest, result: Result, key: str) -> None:
    parts = drawn(key, result)
    main, rail = st.columns([2.55, 1], gap="medium")
    with main:
        schedule_headline(opened, job, result, parts.measures)
        verdict_line(job)
        schedule_kpis(opened, job, result, parts.measures)
        spent = parts.path.shares(result.execution.graph.kind)
        verdict = what_limits(parts.execution, result.settings.exclusive_devices)
        quiet(
            f"<b>{verdict.replace(': ', ':</b> ', 1)} Along the critical path of this plan: {limits(spent)}."
        )
        delays_here(job)
        speed_clicks(
            "schedule",
            "The same job, with ports",
            opened.cluster.port_gbps,
            job.cluster.port_gbps,
            lambda gbps: choose_what_if(port_gbps=gbps),
        )
        more_choices(job, result)
    # The reader's next two questions stand beside the headline, before the timeline in the order of the keyboard and on a phone.
    with rail:
        proof_panel(job, result, theme)
        delay_panel(job, result, theme)
    beside([2.55, 1], partial(timeline, key, parts, theme), partial(certificate, job, result, key))
    execution, whole = parts.execution, (0.0, result.execution.makespan_ms)
    result_files(
        opened,
        result,
        {
            "Gantt chart": lambda look: gantt(
                execution, parts.bars, parts.lanes, whole, parts.path, look
            ),
            "Overview": lambda look: overview(
                parts.image, parts.image_rows, parts.lanes, whole[1], whole, look
            ),
            "Port use": lambda look: port_use(execution, whole, look),
        },
        partial(link_with_result, stem(opened.title), job, result),
        partial(keep_solve_button, opened, job, result),
    )


def _proof(theme: Theme, opened: Loaded, job: JobRequest, result: Result, key: str) -> None:
    main, rail = st.columns([2.55, 1], gap="medium")
    with main:
        proof_headline(opened, job, result)
        search_panel(result, theme)
        race_section(job, theme)
    with rail:
        proof_panel(job, result, theme)
        certificate(job, result, key, drawn(key, result).path)
