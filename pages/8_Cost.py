"""Cost: what photonic rails and their rivals cost and burn, part by part, and what the difference hangs on."""

import streamlit as st

from topox_ui.cost import asked, cost_headline, hangs_on, main_figures, notes, warnings
from topox_ui.cost_choices import restore
from topox_ui.cost_controls import controls
from topox_ui.cost_more import for_a_dollar, materials, size_and_year
from topox_ui.cost_parts import parts_table
from topox_ui.frame import frame, size_switch
from topox_ui.show import told

look = frame("Cost")
restore()
controls()
size_switch()
with told():
    question, priced, findings = asked()

cost_headline(question, priced, findings)
main_figures(question, priced, findings, look)
left, right = st.columns([1.22, 1], gap="medium")
with left:
    hangs_on(question, look)
    notes(findings)
with right:
    parts_table()
    warnings(findings)
size_and_year(question, priced, look)
materials(priced)
for_a_dollar(look)
