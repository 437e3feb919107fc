"""From a lab's screens to the other pages: its instance as the job that is loaded, or the page that counts as it does."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.economics.parts_file import edits_between
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS
from topox_core.labs.answers import Answers
from topox_core.labs.generators.four_jobs import FourJobs
from topox_core.labs.generators.price import GPUS_PER_SERVER, OTHER, Price
from topox_core.labs.generators.windows import DELAY_MS, Windows
from topox_core.labs.keys import instance_of
from topox_core.labs.lab import Lab
from topox_core.labs.student import still_asked
from topox_ui.classroom.access import shows
from topox_ui.labs.words import say, title_of
from topox_ui.shell.links import go_to
from topox_ui.shell.pages import page_of
from topox_ui.state.loading import Loaded, adopt
from topox_ui.state.notices import notify
from topox_ui.state.store import link_query

# The list that was measured on a cluster, and the sample of forty jobs.
MEASURED, FORTY_JOBS = "measured", "mix-32-pods"


def see_instance(lab: Lab, instance: Any, seed: int) -> None:
    """Offer to load an instance that is a task graph, and to see its schedule."""
    if not (hasattr(instance, "graph") and hasattr(instance, "cluster") and shows("Schedule")):
        return
    if st.button(
        say("see_schedule"), key="lab_see", icon=":material/open_in_new:", type="tertiary"
    ):
        adopt(Loaded(instance.graph(), instance.cluster(), f"{lab.id}-{seed}"))
        notify("info", say("loaded_instance", lab=title_of(lab)))
        go_to("Schedule")


def look_on(lab: Lab, answers: Answers, at: int) -> None:
    """Link to the page that goes on from a lab's instance, once no question asks for any of its values."""
    screen = next((one for one in lab.screens[at::-1] if one.instance), None)
    if screen is None or still_asked(lab, answers, screen.instance):
        return
    found = _page_of(instance_of(lab, screen, answers.seed))
    if found is not None and shows(found[0]):
        title, query = found
        page = page_of(title)
        # What was chosen on that page before would make it another question.
        carried = link_query(page.carried).items()
        others = {k: text for k, text in carried if not k.startswith(page.prefix)}
        st.page_link(
            page.path,
            label=say(f"look_on.{title}"),
            icon=":material/open_in_new:",
            query_params=others | {page.prefix + name: text for name, text in query.items()},
        )


def _page_of(instance: Any) -> tuple[str, dict[str, str]] | None:
    """Return a page with its choices: those of the instance, as far as the page has them."""
    if isinstance(instance, Windows):
        limit = str(instance.limit_percent)
        return "Rails", {"source": MEASURED, "delay_ms": f"{DELAY_MS:g}", "limit": limit}
    if isinstance(instance, FourJobs):
        return "Sharing", {"source": "sample", "sample": FORTY_JOBS, "algorithm": "hill-climbing"}
    if isinstance(instance, Price):
        asked = instance.question()
        return "Cost", {
            "gpus": str(instance.gpus),
            "gpus_per_server": str(GPUS_PER_SERVER),
            "counting": asked.counting.method,
            "against": OTHER,
            "years": str(instance.years),
            "prices": DEFAULT_SET,
            "parts": edits_between(PRICE_SETS[DEFAULT_SET], asked.catalogue),
        }
    return None
