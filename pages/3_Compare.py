"""Compare: the same task graph under every fabric, who wins, and where the answer turns."""

import streamlit as st

from topox_ui.compare.contest import cannot_run, compare_headline, contest_of, main_figures, run_all
from topox_ui.compare.controls import controls
from topox_ui.compare.failures import failures
from topox_ui.compare.lanes import lanes
from topox_ui.compare.map import crossover, turn
from topox_ui.schedule.solving import case_of
from topox_ui.shell.charts import told
from topox_ui.shell.downloads import link
from topox_ui.shell.page import frame, nothing_loaded, size_switch
from topox_ui.state.loading import loaded
from topox_ui.state.prices import choices, read_link
from topox_ui.state.session import scenario

look = frame("Compare")
read_link()
found = loaded()
if found is None:
    size_switch()
    nothing_loaded()
controls(found)
size_switch()
with told(f"Compare · {found.title}"):
    case = case_of(found, scenario())
    contest = contest_of(case, scenario())
    runs, failed = run_all(case, contest)

compare_headline(found, case, contest, runs, turn(case, contest))
cannot_run(failed)
main_figures(contest, runs, look)
crossover(case, contest, look)
lanes(contest, runs, look)
failures(case, contest, runs, look)
with st.popover("Link", icon=":material/link:"):
    link(choices().as_query("prices", "parts"))
