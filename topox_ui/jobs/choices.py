"""What the reader of the Jobs page has chosen, as one frozen value, and its words in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import streamlit as st

from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.samples import JOB_SAMPLES
from topox_core.tdm.model.jobs import Reading
from topox_ui.state.link_words import ignored_line, number, one_of, told, understood, whole, yes
from topox_ui.state.session import say

PREFIX = "jobs."
SOURCES = {
    "sample": "a sample",
    "generator": "the draft’s set-up",
    "graphs": "task graphs",
    "upload": "your own file",
}
# Without time division is what all others stand beside.
OFFERED = tuple(name for name in ALGORITHMS if name != "non-tdm")
READINGS = ("eq3_literal", "physical_ring", "delay_inside")
MOST_JOBS, MOST_COPIES = 4_096, 64


@dataclass(frozen=True)
class Choices:
    """Where the jobs come from, what is changed about the network, who shares the fabric, and what is in view.

    ``ports``, ``port_gbps`` and ``reconfiguration_ms`` are None where the file's value holds;
    ``graphs`` is names of samples separated by commas; ``pod_group`` is -1 for the one that lasts
    longest; ``ring`` is the job whose ring is drawn, all if empty.
    """

    source: str = "sample"
    sample: str = "mix-32-pods"
    jobs: int = 256
    context: int = 8192
    seed: int = 0
    graphs: str = "llama3-8b,moe,fsdp"
    copies: int = 2
    ports: int | None = None
    port_gbps: float | None = None
    reconfiguration_ms: float | None = None
    algorithm: str = "best"
    eq3_literal: bool = False
    physical_ring: bool = False
    delay_inside: bool = False
    pod_group: int = -1
    stage: str = ""
    ring: str = ""

    @property
    def reading(self) -> Reading:
        """How the drafts are read."""
        return Reading(self.eq3_literal, self.physical_ring, self.delay_inside)

    def as_query(self) -> dict[str, str]:
        """Return what differs from the page's beginning as query parameters; none for an upload, which stays here."""
        if self.source == "upload":
            return {}
        start = Choices()
        return {
            PREFIX + field.name: told(value)
            for field in fields(self)
            if (value := getattr(self, field.name)) != getattr(start, field.name)
            and value is not None
        }


def _text(text: str) -> str:
    return text[:400]


READERS: dict[str, Callable[[str], Any]] = {
    "source": one_of(name for name in SOURCES if name != "upload"),
    "sample": one_of(JOB_SAMPLES),
    "jobs": whole(1, MOST_JOBS),
    "context": whole(1, 1 << 24),
    "seed": whole(0, 1_000_000),
    "graphs": _text,
    "copies": whole(1, MOST_COPIES),
    "ports": whole(1, 4_096),
    "port_gbps": number(0, 1e6),
    "reconfiguration_ms": number(0, 1e6),
    "algorithm": one_of(OFFERED),
    **dict.fromkeys(READINGS, yes),
    "pod_group": whole(-1, 1_000_000),
    "stage": _text,
    "ring": _text,
}


def of_query(query: Mapping[str, str]) -> tuple[Choices, list[str]]:
    """Return the choices that a link names, and what of it cannot be used."""
    chosen, ignored = understood(READERS, PREFIX, query)
    return Choices(**chosen), ignored


def choices() -> Choices:
    """Return the choices of this session."""
    now: Choices = st.session_state.get("jobs_choices", Choices())
    return now


def restore() -> Choices:
    """Bring choices and address in step: a cold link or the browser's Back wins over what was there, a choice over both."""
    state = st.session_state
    query = {
        key: value for key, value in st.query_params.to_dict().items() if key.startswith(PREFIX)
    }
    if query and not state.pop("jobs_touched", False) and query != state.get("jobs_written"):
        new, ignored = of_query(query)
        if ignored:
            say("warning", ignored_line(ignored))
        state["jobs_choices"], state["jobs_written"] = new, query
    keep_address()
    return choices()


def keep_address() -> None:
    """Write the choices into the address; keys of the scenario stay."""
    written = choices().as_query()
    now = st.query_params.to_dict()
    others = {key: value for key, value in now.items() if not key.startswith(PREFIX)}
    st.session_state["jobs_written"] = written
    if now != {**others, **written}:
        st.query_params.from_dict({**others, **written})


def choose(**changes: Any) -> None:
    """Take choices of the user (from a widget's callback); another source of jobs begins with its own network and view."""
    if {"source", "sample"} & set(changes):
        changes = {
            "ports": None,
            "port_gbps": None,
            "reconfiguration_ms": None,
            "pod_group": -1,
            "stage": "",
            "ring": "",
            **changes,
        }
    new = replace(choices(), **changes)
    if new != choices():
        st.session_state["jobs_choices"] = new
        st.session_state["jobs_touched"] = True


def chosen(field: str, widget: str) -> None:
    """Take the choice that a widget made; one that was emptied changes nothing."""
    value = st.session_state.get(widget)
    if value is not None:
        choose(**{field: value})


def widget(field: str, value: Any) -> str:
    """Set a widget to what is chosen, before it is drawn; return its key.

    Also where it has that value already: the browser may have missed the last drawing, when a
    search ended at once.
    """
    key = f"w_jobs_{field}"
    st.session_state[key] = value
    return key
