"""Cost: what photonic rails and their rivals cost and burn, part by part, and what the difference depends on."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_ui.cost.controls import controls, price_controls
from topox_ui.cost.curves import for_a_dollar, materials, size_and_year
from topox_ui.cost.headline import (
    cost_headline,
    costs_now,
    hangs_on,
    main_figures,
    notes,
    warnings,
)
from topox_ui.cost.parts import parts_table
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import size_switch
from topox_ui.state.loading import Loaded


def draw(theme: Theme) -> None:
    """Draw the view Network."""
    controls()
    size_switch()
    with show_input_errors():
        question, priced, findings = costs_now()

    cost_headline(question, priced, findings)
    main_figures(question, priced, findings, theme)
    left, right = st.columns([1.22, 1], gap="medium")
    with left:
        hangs_on(question, theme)
        notes(findings)
    with right:
        parts_table()
        warnings(findings)
    size_and_year(question, priced, theme)
    materials(priced)


def draw_per_iteration(theme: Theme, opened: Loaded) -> None:
    """Draw the view Per iteration."""
    price_controls()
    size_switch()
    for_a_dollar(opened, theme)
