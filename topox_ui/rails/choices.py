"""What the reader chose on the Rails page: kept while other pages are open, written into the address, read from a link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from topox_core.fabrics.run import FABRICS
from topox_ui.state.link_words import ignored_line, number, one_of, told, understood, whole, yes
from topox_ui.state.session import say

PREFIX = "rails."
SCENARIO, MEASURED, UPLOAD = "scenario", "measured", "upload"
DEGREES = (
    "gpus",
    "tensor",
    "pipeline",
    "data",
    "context",
    "expert",
    "microbatches",
    "virtual_stages",
)
SCHEDULES = {"1f1b": "1F1B", "afab": "all forward", "interleaved": "interleaved"}
CONTROLS = {"on_demand": "on demand", "provisioned": "provisioned"}
RAILS = {"switched": "any ring", "static": "ports dealt out", "rings": "one ring"}
SECTIONS = {
    "windows": "Windows",
    "control": "Control plane",
    "rivals": "Other ways to wire",
    "experts": "Expert parallelism",
    "bytes": "Bytes",
    "advice": "Which parallelism",
}


def _word(text: str) -> str:
    if not text or len(text) > 80 or not text.isprintable():
        raise ValueError(text)
    return text


_number, _whole = number(0, 1e9), whole(0, 10_000_000)
READERS: dict[str, Callable[[str], Any]] = {
    "source": _word,
    **dict.fromkeys(DEGREES, _whole),
    "schedule": one_of(SCHEDULES),
    "delay_ms": _number,
    "link_up_ms": _number,
    "control": one_of(CONTROLS),
    "switch": _word,
    "split": yes,
    "limit": _number,
    "nic_gbps": _number,
    "lane": _whole,
    "latency_us": _number,
    "fabric": one_of(FABRICS),
    "iteration_ms": _number,
    "see": one_of(SECTIONS),
    "from_ms": _number,
    "to_ms": _number,
    "authors": yes,
    "billions": _number,
    "advice_gpus": _whole,
}
# What the page begins with; a choice without an entry begins as the preset or the file has it.
DEFAULTS: dict[str, Any] = {
    "source": "llama3-8b-perlmutter",
    "delay_ms": 25.0,
    "link_up_ms": 0.0,
    "control": "provisioned",
    "switch": "any",
    "split": False,
    "limit": 5.0,
    "lane": 0,
    "see": "windows",
    "authors": True,
    "latency_us": 0.0,
    "fabric": "scheduled",
}
# A choice that only makes sense beside another one goes when that one changes.
FORGETS = {
    "source": (*DEGREES, "schedule", "lane", "from_ms", "to_ms", "nic_gbps", "iteration_ms"),
    **dict.fromkeys(DEGREES, ("lane", "from_ms", "to_ms")),
    "schedule": ("from_ms", "to_ms"),
}


@dataclass(frozen=True)
class Choices:
    """Everything that was changed, by its name."""

    made: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, key: str) -> Any:
        return dict(self.made).get(key, DEFAULTS.get(key))

    def with_choice(self, key: str, value: Any) -> Choices:
        """Return the choices with one made anew; None and the default take it away, and with it what hung on the old one."""
        gone = (key, *FORGETS.get(key, ())) if value != self[key] else (key,)
        kept = tuple((k, v) for k, v in self.made if k not in gone)
        if value is None or value == DEFAULTS.get(key):
            return replace(self, made=kept)
        return replace(self, made=(*kept, (key, value)))

    @property
    def degrees(self) -> dict[str, Any]:
        """The changed degrees and schedule of a preset."""
        return {key: value for key, value in self.made if key in (*DEGREES, "schedule")}

    def as_query(self) -> dict[str, str]:
        """Return the choices as query parameters; an upload and what belongs to it stay on the machine it was made on."""
        mine = ("source", *FORGETS["source"]) if self["source"] == UPLOAD else ()
        return {PREFIX + key: told(value) for key, value in self.made if key not in mine}


def of_query(query: Mapping[str, str]) -> tuple[Choices, list[str]]:
    """Return the choices of a link, and what in it could not be understood, as ``key=value``."""
    made, ignored = understood(READERS, PREFIX, query)
    return Choices(
        tuple((key, value) for key, value in made.items() if value != DEFAULTS.get(key))
    ), ignored


def choices() -> Choices:
    """Return this session's choices."""
    made: Choices = st.session_state.get("rails", Choices())
    return made


def choose(key: str, value: Any) -> None:
    """Take one choice of the reader (from a widget's callback)."""
    st.session_state["rails"] = choices().with_choice(key, value)


def chosen(key: str, widget: str) -> None:
    """Take the choice that a widget made; an emptied widget takes it away."""
    choose(key, st.session_state.get(widget))


def reset() -> None:
    """Forget every choice but the source."""
    st.session_state["rails"] = Choices().with_choice("source", choices()["source"])


def restore() -> None:
    """Bring choices and address in step: a link that is new wins over what was there, a choice over both."""
    state = st.session_state
    query = st.query_params.to_dict()
    linked = {key: value for key, value in query.items() if key.startswith(PREFIX)}
    if linked and linked != state.get("rails_written"):
        state["rails"], ignored = of_query(linked)
        if ignored:
            say("warning", ignored_line(ignored))
    keep_address()


def keep_address() -> None:
    """Write the choices into the address, beside the scenario's."""
    state = st.session_state
    query = st.query_params.to_dict()
    wanted = choices().as_query()
    whole = {key: value for key, value in query.items() if not key.startswith(PREFIX)} | wanted
    state["rails_written"] = wanted
    if whole != query:
        st.query_params.from_dict(whole)
    state["written"] = whole


def widget(key: str, value: Any) -> str:
    """Set a widget to what the choices say, before it is drawn; return its key."""
    name = f"w_rails_{key}"
    if name not in st.session_state or st.session_state[name] != value:
        st.session_state[name] = value
    return name
