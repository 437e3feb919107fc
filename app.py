"""Home: pick a sample, bring files or generate a workload; see what it is."""

import streamlit as st

from topox_core.text.numbers import plural, time
from topox_ui.home.sections import (
    cards,
    fact_charts,
    facts_of,
    summary,
    take_away,
    uploads,
    welcome,
    workloads,
)
from topox_ui.shell.page import escape, frame, headline, page_link, size_switch
from topox_ui.state.loading import cluster_words, loaded

theme = frame("Home")
size_switch()
opened = loaded()
if opened is None:
    headline(
        "TOPO-X Workbench · one training iteration on optical circuit switches",
        "What would <b>optical circuit switches</b> do for your training job? "
        "Pick a sample, and see one iteration scheduled, bounded and checked.",
    )
else:
    known = facts_of(opened)
    headline(
        f"Loaded · {escape(opened.graph.name or opened.title)} · {cluster_words(opened.cluster)}",
        f"<b>{plural(known.tasks, 'task')}</b> on <b>{plural(opened.cluster.servers, 'server')}</b>: their dependencies alone "
        f"take <b>{time(known.critical_path_ms)}</b>. How close does a schedule on optical circuits come?",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(key="see", width="content"):
            page_link("Schedule", "**See the schedule**")
        take_away(opened)
    summary(opened)

samples, files, generate = st.tabs(["Samples", "Your own files", "Generate a workload"])
with samples:
    cards(theme)
with files:
    uploads()
with generate:
    workloads()

st.space("small")
if opened is not None:
    fact_charts(opened, theme)
else:
    welcome()
