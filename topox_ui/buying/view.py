"""Which switch: which optical switch is worth buying for a job, and when it would no longer be."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.studies.buying_run import Answer
from topox_ui.buying.controls import controls
from topox_ui.buying.first_screen import buying_headline, hangs_on, networks, notes, questions
from topox_ui.buying.offers_table import offers_table
from topox_ui.buying.printing import files_menu, print_style, tables_for_print
from topox_ui.buying.question import question_now
from topox_ui.buying.running import answered
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import size_switch
from topox_ui.state.loading import Loaded, scenario


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Which switch."""
    print_style(theme)
    with show_input_errors(
        f"Which switch · {opened.title}", "For this setting <b>nothing can be compared</b>."
    ):
        controls(scenario().cluster(opened.cluster))
        size_switch()
        question = question_now(opened)

    def show(answer: Answer) -> None:
        """Draw what is there of the answer."""
        buying_headline(answer)
        networks(answer, theme)
        questions(answer)
        hangs_on(answer, theme)

    answer = answered(question, show)
    if answer is not None:
        show(answer)
        notes(answer)
        tables_for_print(answer)
        files_menu(answer)
    with st.container(key="buying_switches"):
        offers_table()
