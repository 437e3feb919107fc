"""Schedule: one iteration on optical circuits, with its bound, its check and its Gantt chart; how it was found and proved."""

from functools import partial

import streamlit as st

from topox_core.figures.gantt import gantt
from topox_core.figures.lanes import overview, port_use
from topox_core.figures.palette import Theme
from topox_core.schedule.result import Result
from topox_ui.answers.case import Case, case_of
from topox_ui.answers.keeping import keep_every, keep_solve_button
from topox_ui.answers.linked import link_with_result, take_linked
from topox_ui.answers.solving import best, drawn, settled, token
from topox_ui.answers.verdicts import verdict_line
from topox_ui.schedule.certificate import certificate
from topox_ui.schedule.delays import delay_panel
from topox_ui.schedule.headline import (
    more_choices,
    proof_headline,
    schedule_headline,
    schedule_kpis,
)
from topox_ui.schedule.proving import proof_panel, search_panel
from topox_ui.schedule.race import race_section
from topox_ui.schedule.timeline import timeline
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.downloads import result_files, stem
from topox_ui.shell.page import headline, size_switch
from topox_ui.state.loading import Loaded, cluster_words, scenario
from topox_ui.state.what_ifs import what_ifs


def _answer(opened: Loaded) -> tuple[Case, Result] | None:
    """Draw the what-ifs; return the case and its best result, or say that there is none."""
    what_ifs(opened)
    with st.container(), show_input_errors(f"Schedule · {opened.title}"):
        case = case_of(opened, scenario())
        take_linked(case)
        result = best(case, at_once=True)
    if result.execution is not None:
        return case, result
    headline(
        f"Schedule · {cluster_words(case.cluster)}", "There is <b>no schedule</b> for this setting."
    )
    certificate(case, result, token(case, result))
    return None


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Timeline."""
    answer = _answer(opened)
    if answer is None:
        return
    case, result = answer

    key = token(case, result)
    parts = drawn(key, result)
    head, side = st.columns([2.55, 1], gap="medium")
    with head:
        schedule_headline(opened, case, result, parts.measures)
        verdict_line(case)
        schedule_kpis(opened, case, result, parts.measures)
        more_choices(case, result)
    with side:
        proof_panel(case, result, theme)
    size_switch()

    main, rail = st.columns([2.55, 1], gap="medium")
    with main:
        timeline(key, parts, theme)
    with rail:
        certificate(case, result, key, parts.path)
        delay_panel(case, result, theme)
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
            partial(link_with_result, stem(opened.title), case, result),
            partial(keep_solve_button, opened, case, result),
        )
    if settled(case):
        keep_every(opened, case, result)


def draw_proof(theme: Theme, opened: Loaded) -> None:
    """Draw the view Proof."""
    answer = _answer(opened)
    if answer is None:
        return
    case, result = answer
    key = token(case, result)
    head, side = st.columns([2.55, 1], gap="medium")
    with head:
        proof_headline(opened, case, result)
        search_panel(result, theme)
    with side:
        proof_panel(case, result, theme)
    size_switch()
    main, rail = st.columns([2.55, 1], gap="medium")
    with main:
        race_section(case, theme)
    with rail:
        certificate(case, result, key, drawn(key, result).path)
    if settled(case):
        keep_every(opened, case, result)
