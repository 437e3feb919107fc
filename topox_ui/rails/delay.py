"""The Rails page's delay study: overhead against the delay, technologies, the authors' measurements, the slowest switch."""

from collections.abc import Iterable
from contextlib import suppress

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.figures.rails.delay import MIN_MS, Curve, overhead_curves, switch_word
from topox_core.rails.delay import Question, slowest_switch
from topox_core.rails.measured import SWEEPS
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.text.numbers import capitalised, delay_label, percent, plural, time
from topox_ui.rails.state import AUTHORS_PRESET, CONTROLS, RailsState
from topox_ui.rails.subject import (
    CURVE_AT_ONCE,
    RUN_AT_ONCE,
    Listed,
    Simulated,
    Subject,
    answered,
    known,
    measured_list,
    nodes_of,
    simulate,
)
from topox_ui.shell.charts import Content, chart, chart_title, quiet, title_row, write_html
from topox_ui.state.widgets import tick

# Those that no eye can tell apart are one row of the table, at the slowest of them.
FAST = tuple(one for one in TECHNOLOGIES if one.reconfiguration_ms < MIN_MS)
GROUPS = (FAST, *((one,) for one in TECHNOLOGIES if one not in FAST))
CURVE_MS = (0.0, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 200.0, 500.0, 1000.0, 3000.0)
EVERY_MS = {*CURVE_MS, *(group[-1].reconfiguration_ms for group in GROUPS)}
MOST = 10.0  # as a share: beyond, the table says no more than that
Curves = dict[str, Curve]
BESIDE = (
    "<style>.beside { font-size: .82rem; border-collapse: collapse; width: 100%; } .beside td, .beside th { text-align: "
    "right; padding: .2rem 0 .2rem .5rem; border: 0; font-weight: 400; } .beside td:first-child, .beside th:first-child "
    "{ text-align: left; padding-left: 0; } .ours td:nth-child(2), .beside .here td { font-weight: 650; } "
    ".beside th { opacity: .75; }</style>"
)


def delay_chart(subject: Subject, theme: Theme) -> None:
    """Draw the study, or what is there of it, with the button that completes it."""
    [layer] = title_row(
        (2.2, 1),
        "Overhead of a slower switch",
        "what waiting for the switch adds to the iteration"
        + (
            "; thick lines: simulated, as in the headline; thin: measured on the authors' machine"
            if authors_job(subject)
            else ""
        ),
    )
    if authors_job(subject):
        tick(
            RailsState,
            "authors",
            label="Authors' measurements",
            at=layer,
            help="Llama 3 8B on 16 GPUs of Perlmutter, delays emulated; against their run without a controller.",
        )
    questions = _questions(subject)
    if not answered(questions):
        going = simulate(
            questions,
            "Simulating the delays",
            f"Simulate {plural(sum(known(one) is None for one in questions), 'delay')}",
            "rails_curve",
            lambda _run: _drawn(subject, theme, live=True),
            # A preset takes seconds; what a reader makes of it may take long.
            begins=subject.training in PRESETS.values(),
            icon="show_chart",
            primary=True,
            help="Runs beside this page, in a process of its own; every delay simulates the iteration twice.",
        )
        if going:
            return
    _drawn(subject, theme)


def authors_job(subject: Subject) -> bool:
    """Return whether the authors' sweeps are of the same job."""
    if isinstance(subject, Listed):
        return subject.content == measured_list()
    return subject.training == PRESETS[AUTHORS_PRESET]


def _delays_ms() -> list[float]:
    """Return the delays of the study, that of the switch among them."""
    return sorted({*EVERY_MS, RailsState.now().switch_ms})


def _questions(subject: Subject) -> list[Question]:
    """Return what a study asks; a list of windows answers at once."""
    if isinstance(subject, Listed):
        return []
    return [subject.at(delay + RailsState.now().link_up_ms) for delay in _delays_ms()]


def curves_of(subject: Subject) -> Curves:
    """Return the curves as far as they are known; the delay is the switch's, the link start-up comes on top."""
    link, base = RailsState.now().link_up_ms, subject.base_ms
    at = {
        delay: both for delay in _delays_ms() if (both := subject.both_ms(delay + link)) is not None
    }
    return {
        control: Curve(control, base, tuple(at), tuple(both[k] for both in at.values()))
        for k, control in enumerate(("on_demand", "provisioned"))
    }


def measured_curves() -> list[Curve]:
    """Return the authors' sweeps on 16 GPUs, against their own run without a controller."""
    return [
        Curve(
            "provisioned" if one.provisioned else "on_demand",
            1000 * one.baseline_s,
            tuple(d for d, _ in one.rows),
            tuple(1000 * s for _, s in one.rows),
            "measured",
        )
        for one in SWEEPS
        if one.gpus == 16
    ]


def delay_figure(curves: Iterable[Curve], now: RailsState, theme: Theme) -> go.Figure:
    """Return curves over the delay, with that of the switch and the limit as they are chosen."""
    return overhead_curves(
        [one for one in curves if one.delay_ms],
        now.switch_ms,
        now.limit / 100,
        {one.name: one.reconfiguration_ms for one in TECHNOLOGIES},
        theme,
    )


def _drawn(subject: Subject, theme: Theme, live: bool = False) -> None:
    now, curves = RailsState.now(), curves_of(subject)
    shown = [*curves.values(), *(measured_curves() if now.authors and authors_job(subject) else ())]
    if not live:
        quiet(_findings(subject))
    points = "; ".join(
        f"{time(d)}: {percent(o)}"
        for d, o in zip(curves["provisioned"].delay_ms, curves["provisioned"].overhead, strict=True)
    )
    chart(
        delay_figure(shown, now, theme),
        "delay_live" if live else "delay",
        f"Overhead against the reconfiguration delay, provisioned: {points}.",
        None if live else lambda: _table(curves),
        "Every delay",
    )


def switch_table(subject: Subject) -> None:
    """Draw which switches can serve the job: the delay of each, and what it adds to the iteration."""
    now, curves = RailsState.now(), curves_of(subject)
    at = {
        control: dict(zip(one.delay_ms, one.overhead, strict=True))
        for control, one in curves.items()
    }
    rows = {
        group[-1].reconfiguration_ms: (
            capitalised(", ".join(switch_word(one.name) for one in group)),
            f"{_delay_words(group[-1].reconfiguration_ms)}{' or less' if len(group) > 1 else ''}",
        )
        for group in GROUPS
    }
    rows.setdefault(now.switch_ms, ("Your delay", _delay_words(now.switch_ms)))
    cells, most = [], f"> {percent(MOST)}"
    for delay, (name, words) in sorted(rows.items()):
        adds = [at[control].get(delay) for control in both_controls(now)]
        serves = adds[0] is not None and adds[0] <= now.limit / 100
        sign = (
            ""
            if adds[0] is None
            else f'<b class="{"good" if serves else "bad"}">{"✓" if serves else "✗"}</b> '
        )
        told = "".join(
            f"<td>{'–' if one is None else over(one) if one < MOST else most}</td>" for one in adds
        )
        here = ' class="here"' if delay == now.switch_ms else ""
        cells.append(f"<tr{here}><td>{sign}{name}</td><td>{words}</td>{told}</tr>")
    heads = "".join(f"<th>{CONTROLS[control]}</th>" for control in both_controls(now))
    chart_title(
        "Which switch serves this job?",
        f"slower than with a switch that takes no time; ✓: by at most {now.limit:g} %, {CONTROLS[now.control]}",
    )
    write_html(
        BESIDE
        + f'<table class="beside"><tr><th>switch</th><th>delay</th>{heads}</tr>{"".join(cells)}</table>'
    )


def _delay_words(delay_ms: float) -> str:
    return delay_label(delay_ms) if delay_ms < 1000 else time(delay_ms)


def both_controls(now: RailsState) -> tuple[str, str]:
    """Return the control that was chosen, and the other one."""
    return now.control, "on_demand" if now.control == "provisioned" else "provisioned"


def over(share: float) -> str:
    """Return how much longer an iteration is, in per cent."""
    return percent(share) if share >= 5e-5 else "0\u00a0%" if share < 5e-7 else "<\u00a00.01\u00a0%"


def _table(curves: Curves) -> Content:
    one, two = curves["on_demand"], curves["provisioned"]
    return {
        "delay (ms)": one.delay_ms,
        "on demand (ms)": one.iteration_ms,
        "provisioned (ms)": two.iteration_ms,
        "on demand, more (%)": [100 * v for v in one.overhead],
        "provisioned, more (%)": [100 * v for v in two.overhead],
    }


def slowest_words(subject: Subject, control: str) -> str:
    """Return the slowest switch that keeps the limit under a control, in HTML; the link start-up is taken off.

    ``any``, ``none``, or its delay; empty while the curve of a large job is not simulated. A job is asked
    itself, for between two points a curve may jump; of the largest they are joined by straight lines.
    """
    limit, link = RailsState.now().limit, RailsState.now().link_up_ms
    if isinstance(subject, Simulated):
        with suppress(InputError):  # what cannot be simulated is said where its curve would be
            answered(_questions(subject))
        nodes, curve = nodes_of(subject.job), curves_of(subject)[control]
        if nodes > CURVE_AT_ONCE and not {*curve.delay_ms} >= EVERY_MS:
            return ""
        if nodes > RUN_AT_ONCE:
            return _crossing(curve, limit, "<b>{}</b>")
    of = (subject, subject.pattern.lane) if isinstance(subject, Listed) else subject.at(0.0).key
    slowest_ms = _searched(
        str(hash((control, limit, link, of))), subject, limit, control == "provisioned", link
    )
    if slowest_ms is None:
        return "any"
    return "none" if slowest_ms < 0 else f"<b>{time(slowest_ms)}</b>"


def _findings(subject: Subject) -> str:
    """Return where the authors' curves of the same job cross the limit: earlier than the simulated ones on demand."""
    now = RailsState.now()
    if not (now.authors and authors_job(subject)):
        return ""
    if isinstance(subject, Listed):
        return "The measured curves are of another run of this model, whose iteration lasts 10.2&nbsp;s."
    found = (
        f"{curve.control.replace('_', ' ')}: {_crossing(curve, now.limit)}"
        for curve in measured_curves()
    )
    return f"Slowest switch within the limit as the authors measured it on their machine: {'; '.join(found)}."


def _crossing(curve: Curve, limit: float, shown: str = "{}") -> str:
    """Return where a curve, its points joined by straight lines, first exceeds a limit in per cent; ``none`` from the start."""
    over, delays = np.array(curve.overhead), np.array(curve.delay_ms)
    above = np.flatnonzero(over > limit / 100)
    if not len(above):
        return f"at least {shown.format(time(float(delays[-1])))}"
    k = int(above[0])
    if k == 0:
        return "none"
    ends = slice(k - 1, k + 1)
    return f"about {shown.format(time(float(np.interp(limit / 100, over[ends], delays[ends]))))}"


@st.cache_resource(max_entries=128, show_spinner=False)
def _searched(
    key: str,  # noqa: ARG001
    _subject: Subject,
    limit: float,
    provisioned: bool,
    link_up_ms: float,
) -> float | None:
    """Return the slowest switch, None if any will do; below 0 where none does."""
    with suppress(InputError):
        return slowest_switch(_subject.source, limit, provisioned, link_up_ms)
    return -1.0
