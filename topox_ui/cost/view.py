"""Cost: what photonic rails and their rivals cost and burn, part by part, and what the difference depends on."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.answers.case import case_of
from topox_ui.answers.verdicts import verdict_line
from topox_ui.cost.controls import controls
from topox_ui.cost.curves import for_a_dollar, materials, size_and_year
from topox_ui.cost.headline import (
    cost_headline,
    costs_now,
    hangs_on,
    main_figures,
    notes,
    warnings,
    worth_of_a_port,
)
from topox_ui.cost.parts import parts_table
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import size_switch
from topox_ui.state.loading import loaded, scenario


def draw(theme: Theme) -> None:
    """Draw the view Network."""
    controls()
    size_switch()
    with show_input_errors():
        question, priced, findings = costs_now()

    cost_headline(question, priced, findings)
    if (opened := loaded()) is not None:
        with show_input_errors():
            case = case_of(opened, scenario())
            verdict_line(case)
            worth_of_a_port(case)
    main_figures(question, priced, findings, theme)
    bought = st.container()
    left, right = st.columns([1.22, 1], gap="medium")
    with left:
        hangs_on(question, theme)
        notes(findings)
    with right:
        parts_table()
        warnings(findings)
    size_and_year(question, priced, theme)
    materials(priced)
    with bought:  # last, because it runs every fabric
        for_a_dollar(theme)
