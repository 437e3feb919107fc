"""The Jobs page below its first screen: one section at a time, so that only what is looked at is computed."""

from __future__ import annotations

from topox_core.figures.palette import Theme
from topox_ui.jobs.pods import pods
from topox_ui.jobs.solving import Rounds
from topox_ui.jobs.state import SECTIONS, JobsState
from topox_ui.jobs.study import study
from topox_ui.jobs.views import how_found, job_table, links, pod_groups
from topox_ui.state.widgets import pick


def section(rounds: Rounds, now: JobsState, theme: Theme) -> None:
    """Draw the choice of a section, and that section."""
    several = rounds.best.jobs.network.pod_groups > 1
    have = {name: words for name, words in SECTIONS.items() if several or name != "groups"}
    see = pick("Look closer", JobsState, "see", have, label_visibility="collapsed")
    if see == "groups" and several:
        pod_groups(rounds, theme)
    elif see == "search":
        how_found(rounds, theme)
    elif see == "study":
        study(now, theme)
    elif see == "jobs":
        job_table(rounds)
    else:
        links(rounds, now, theme)
        pods(rounds, theme)
