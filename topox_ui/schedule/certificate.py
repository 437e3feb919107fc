"""The certificate: status in words, bound and what binds, who stopped it, the checker equation by equation."""

import streamlit as st

from topox_core.check.report import CheckReport
from topox_core.fabrics.run import JobRequest
from topox_core.model.critical_path import CriticalPath
from topox_core.schedule.planning.replay import first_ms
from topox_core.schedule.results.result import MET, Result
from topox_core.schedule.results.story import class_words, found_by, limits, lowered_words
from topox_core.text.choices import chosen_words
from topox_core.text.numbers import STOPPED_BY, about_seconds, percent, plural, short, time
from topox_ui.answers.solving import verdict
from topox_ui.shell.charts import checker_card, escape, facts, show_input_errors, write_html


def certificate(
    job: JobRequest, result: Result, key: str, path: CriticalPath | None = None
) -> None:
    """Draw the card of a result; its seal stands beside the headline where there is a schedule."""
    with st.container(border=True, key="certificate"):
        if result.execution is None:
            write_html(seal_line(result))
        write_html(_card(result, path))
        with st.expander("Clock and other bounds", key="other_bounds", type="compact"):
            write_html(
                facts(_on_slots(result) if result.slotted_ms is None else _continuous(result))
            )
        if result.message:
            st.html(f'<p class="note">{escape(result.message)}</p>')
        if result.execution is None:
            return
        with show_input_errors():
            report = verdict(key, job, result)
        checker_card(report, _verdicts(report), write_html, "constraint")


def seal(result: Result) -> tuple[str, str]:
    """Return the status in words, and the class of its colour."""
    if result.status == "optimal":
        return "✓ Proved optimal", "good"
    if result.status == "feasible":
        lowered = "Proved for this lowering" if result.stopped_by == "lowering" else "Feasible"
        kind = "Proved of its kind" if result.own_class.proved else lowered
        only = f", only by {' or '.join(ways)}" if (ways := ways_left(result)) else ""
        return f"◐ {kind}: at most {percent(result.gap or 0.0)} can be saved{only}", ""
    return (
        ("✗ No schedule exists", "bad")
        if result.status == "infeasible"
        else ("◌ Nothing found yet", "")
    )


OTHER_LOWERING = "other rings and algorithms"


def ways_left(result: Result) -> list[str]:
    """Return what alone may still be shorter once no engine has anything left to find; nothing before."""
    ways = {True: OTHER_LOWERING, False: "other fixed circuits"}
    least_ms = (result.makespan_ms or 0.0) * (1 - MET)
    may = [ways[one.changes_circuits] for one in result.classes if one.bound_ms < least_ms]
    return may if result.settled else []


def seal_line(result: Result) -> str:
    """Return the status as a line of HTML."""
    words, colour = seal(result)
    return f'<p class="seal {colour}">{words}</p>'


def _card(result: Result, path: CriticalPath | None) -> str:
    makespan = time(result.makespan_ms) if result.makespan_ms is not None else "–"
    rows = [
        ("Iteration time", f"<b>{makespan}</b>"),
        *_first(result),
        ("Lower bound", f"<b>{time(result.bound_ms)}</b>"),
        ("Found by", escape(found_by(result))),
        ("Ended by", f"{STOPPED_BY[result.stopped_by]}, {about_seconds(result.wall_s)}"),
    ]
    binds = escape(result.bound_by)
    chosen = escape(chosen_words(result.settings.lowering, result.settings.free))
    if chosen:
        binds += f'</dd> <dt class="wide">Chosen for this plan:</dt> <dd class="wide">{chosen}'
    spent = ""
    if path is not None and result.execution is not None:
        spent = limits(path.shares(result.execution.graph.kind))
    return facts(
        rows, [("Along the critical path of this plan", spent), ("What sets the bound", binds)]
    )


def _first(result: Result) -> list[tuple[str, str]]:
    """Return the first iteration, where those after it take longer."""
    ms = None if result.execution is None else first_ms(result.execution, result.settings)
    return [] if ms is None else [("First iteration", time(ms))]


def _on_slots(result: Result) -> list[tuple[str, str]]:
    """Return what the clock of slots did."""
    rows = [
        ("Before rounding", time(result.unrounded_bound_ms)),
        ("Clock", f"{short(result.tick_ms)}&nbsp;ms tick, {short(result.slot_ms)}&nbsp;ms slot"),
    ]
    if result.rounding >= 0.0005:
        rows.append(("Rounding adds", percent(result.rounding)))
    return rows


def _continuous(result: Result) -> list[tuple[str, str]]:
    """Return what stands beside a time that is not rounded: the best on slots, and with and without switching."""
    rows = [
        ("Clock", "continuous time, nothing is rounded"),
        (f"On {short(result.slot_ms)}&nbsp;ms slots", time(result.slotted_ms)),
        ("Switching", SWITCHING[result.switching]),
    ]
    rows += map(class_words, result.classes)
    if len(result.classes) > 1:
        rows.append(("Lower bound, the lower of both", time(result.bound_ms)))
    return [*rows, *lowered_words(result)]


SWITCHING = {
    "planned": "planned",
    "provisioned": "in the order of a measured iteration",
    "fixed": "never",
}
BEYOND = {"p_j": "durations", "physical": "physical limits", "lowering": "collectives"}


def _verdicts(report: CheckReport) -> list[tuple[bool, str]]:
    """Return the verdicts: the paper's constraints one by one, what goes beyond them by group."""
    printed = sorted(
        (c for c in report.constraints if c.equation.isdigit()), key=lambda c: int(c.equation)
    )
    rows = [(c.ok, c.name, f"eq. {c.equation}") for c in printed]
    for group in dict.fromkeys(c.equation for c in report.constraints if not c.equation.isdigit()):
        members = [c for c in report.constraints if c.equation == group]
        words = plural(len(members), "rule") if len(members) > 1 else members[0].label
        rows.append((all(c.ok for c in members), BEYOND.get(group, group), words))
    return [(ok, f"{escape(name)} <span>({escape(note)})</span>") for ok, name, note in rows]
