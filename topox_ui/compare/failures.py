"""What if something breaks: one element taken out, the static circuits repaired, the schedule planned again."""

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.failures import FailureOutcome, FixedCircuits, after_failure
from topox_core.fabrics.run import JobRequest
from topox_core.figures.fabrics import before_after
from topox_core.figures.palette import Theme
from topox_core.text.numbers import percent, short
from topox_core.topology.failures import Failure
from topox_ui.answers.case import Case, listing
from topox_ui.answers.contest import Contest, Runs
from topox_ui.compare.state import CompareState
from topox_ui.runs.shared import once
from topox_ui.shell.charts import chart, chart_title, escape, quiet, show_error, when_opened
from topox_ui.state.widgets import control, menu, pick

KINDS = ("fibre", "port", "switch", "server")


def failures(case: Case, contest: Contest, runs: Runs, theme: Theme) -> None:
    """Offer an expander in which one element is taken out of the static and the scheduled fabric."""
    when_opened(
        "What if something breaks",
        "failures",
        lambda: _without_one(case, contest, runs, theme),
        icon="link_off",
    )


def _without_one(case: Case, contest: Contest, runs: Runs, theme: Theme) -> None:
    if not {"static", "scheduled"} & set(runs):
        quiet("Choose fixed or planned circuits on the left: a failure is repaired there.")
        return
    job = JobRequest(case.graph, case.cluster, listing(case.settings), contest.options, runs)
    try:
        fixed = once(
            "laid circuits",
            f"{case.key}|{job.settings.seed}|{job.options.topology_variant}",
            lambda: FixedCircuits.of(job),
        )
        failure, at_share = _element(case, fixed)
    except InputError as error:
        show_error(error)
        return
    with st.spinner("Repairing and running again"):
        outcomes = _outcomes(case, job, fixed, failure, at_share)
    _drawn(failure, outcomes, theme)


def _element(case: Case, fixed: FixedCircuits) -> tuple[Failure, float]:
    """Draw the controls and return what fails, and when, as a share of the scheduled iteration."""
    cluster = case.cluster
    columns = st.columns([1.5, 1, 1, 1.6], vertical_alignment="bottom")
    kind = pick("What fails", CompareState, "fails", KINDS, at=columns[0])
    servers = {s: f"S{s}" for s in range(cluster.servers)}
    failure = Failure.of_switch(0)
    if kind == "fibre":
        links = {f"{a}-{b}": (a, b) for a, b in fixed.links}
        chosen = menu(
            "Circuit",
            CompareState,
            "failed_circuit",
            {name: f"S{a} → S{b}" for name, (a, b) in links.items()},
            at=columns[1],
            help="One of the fixed circuits. Circuits that change lose the out-port at its source.",
        )
        failure = Failure.fibre(*links.get(chosen, (-1, -1)))
    elif kind == "port":
        server = menu("Server", CompareState, "failed_server", servers, at=columns[1])
        ports = range(cluster.ports_per_server)
        port = menu("Port", CompareState, "failed_port", ports, at=columns[2])
        failure = Failure.of_port(server, port)
    elif kind == "switch":
        switches = range(cluster.switches)
        failure = Failure.of_switch(
            menu("Switch", CompareState, "failed_switch", switches, at=columns[1])
        )
    else:
        server = menu("Server", CompareState, "failed_server", servers, at=columns[1])
        others = {s: word for s, word in servers.items() if s != server}
        if not others:
            raise InputError(
                "no other server could take the tasks over", file="failure", field="substitute"
            )
        other = menu("Its tasks go to", CompareState, "substitute", others, at=columns[2])
        failure = Failure.of_server(server, other)
    at = control(
        "slider",
        "Moment, for the schedule",
        CompareState,
        "failed_at",
        at=columns[3],
        min_value=0,
        max_value=90,
        step=5,
        format="%d %%",
        help="When it fails, as a share of the planned iteration. The rest is planned again from there.",
    )
    return failure, at / 100


def _outcomes(
    case: Case, job: JobRequest, fixed: FixedCircuits, failure: Failure, at_share: float
) -> tuple[FailureOutcome, ...]:
    """Return how the fabrics go on, by the times before: a plan may have got better meanwhile."""
    before = {name: run.iteration_ms for name, run in job.runs.items()}
    key = f"{case.key}|{job.settings.seed}|{job.options}|{before}|{failure!r}|{at_share:.9g}"
    return once("failure", key, lambda: after_failure(job, fixed, failure, at_share))


def _drawn(failure: Failure, outcomes: tuple[FailureOutcome, ...], theme: Theme) -> None:
    known = [one for one in outcomes if one.after_ms is not None]
    chart_title(
        f"Without {failure}", "iteration before and after; filled: undisturbed, hatched: degraded"
    )
    if known:
        rows = [(one.label, one.fabric, one.before_ms, float(one.after_ms or 0.0)) for one in known]
        chart(
            before_after(rows, theme),
            "failure",
            "Iteration before and after the failure: "
            + "; ".join(
                f"{label} {short(before)} ms to {short(after)} ms"
                for label, _, before, after in rows
            ),
            lambda: {
                "way": [one.label for one in outcomes],
                "undisturbed (ms)": [one.before_ms for one in outcomes],
                "degraded (ms)": [one.after_ms for one in outcomes],
                "longer": [
                    percent(one.after_ms / one.before_ms - 1)
                    if one.after_ms is not None
                    else "cannot go on"
                    for one in outcomes
                ],
                "what was done": [" ".join(one.done) for one in outcomes],
            },
            "Before and after",
        )
    items = "".join(
        f"<li>{'' if one.after_ms is not None else '<b class=bad>✗</b> '}<b>{escape(one.label)}</b>: "
        f"{escape(_first(one.done))}</li>"
        for one in outcomes
    )
    st.html(f'<ul class="quiet" style="padding-left:1.1rem">{items}</ul>')


def _first(done: tuple[str, ...], most: int = 3) -> str:
    more = f" And {len(done) - most} more, in the table." if len(done) > most else ""
    return " ".join(done[:most]) + more
