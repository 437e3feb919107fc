"""What the reader chose on the Cost page: kept while other pages are open, written into the address, read from a link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from topox_core.economics.comparison import Question, Running
from topox_core.economics.networks import COUNTINGS, NETWORKS, Counting
from topox_core.economics.parts import Catalogue
from topox_core.economics.parts_file import edits_between, with_edits
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS, SET_BY_SPEED
from topox_core.errors import InputError
from topox_core.figures.rails_delay import switch_word
from topox_core.rails.technologies import TECHNOLOGIES as LISTED
from topox_ui.state.link_words import ignored_line, number, one_of, told, understood, whole, yes
from topox_ui.state.session import say

TECHNOLOGIES = {one.key: one for one in LISTED}
PREFIX = "cost."
FILE = "file"
PER_SERVER = (1, 2, 4, 8, 16, 32, 64, 72)
MOST_GPUS = 1_000_000


def _edits(text: str) -> str:
    with_edits(PRICE_SETS[DEFAULT_SET], text)
    return text


READERS: dict[str, Callable[[str], Any]] = {
    "gpus": whole(1, MOST_GPUS),
    "gpus_per_server": whole(1, 4_096),
    "counting": one_of(COUNTINGS),
    "prices": one_of(PRICE_SETS),
    "parts": _edits,
    "against": one_of(n for n in NETWORKS if n != "photonic_rails"),
    "nics": yes,
    "fibre": yes,
    "fibre_m": number(0, 100_000),
    "ocs_ports": whole(1, 64),
    "optics": whole(1, 64),
    "switch_optics": yes,
    "joined": yes,
    "look_ahead": yes,
    "usd_per_kwh": number(0, 100),
    "pue": number(1, 10),
    "years": number(0.1, 100),
    "switch": one_of(TECHNOLOGIES),
    "measure": one_of(("cost", "power")),
}
DEFAULTS: dict[str, Any] = {
    "gpus": 1_024,
    "gpus_per_server": 8,
    "counting": "paper",
    "prices": DEFAULT_SET,
    "parts": "",
    "against": "rail_optimized",
    "nics": False,
    "fibre": False,
    "fibre_m": 30.0,
    "ocs_ports": 2,
    "optics": 1,
    "switch_optics": None,
    "joined": False,
    "look_ahead": True,
    "usd_per_kwh": Running.usd_per_kwh,
    "pue": Running.pue,
    "years": Running.years,
    "switch": "piezo",
    "measure": "cost",
}


@dataclass(frozen=True)
class Choices:
    """Everything that was changed, by its name."""

    made: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, key: str) -> Any:
        return dict(self.made).get(key, DEFAULTS[key])

    def with_choice(self, key: str, value: Any) -> Choices:
        """Return the choices with one made anew; None and the default take it away. Another price set drops the edits."""
        gone = {key, "parts"} if key == "prices" else {key}
        kept = tuple((k, v) for k, v in self.made if k not in gone)
        return Choices(kept if value is None or value == DEFAULTS[key] else (*kept, (key, value)))

    @property
    def gpus(self) -> int:
        """The GPUs asked for, in whole servers."""
        each = self["gpus_per_server"]
        return int(max(1, round(self["gpus"] / each)) * each)

    @property
    def counting(self) -> Counting:
        """How parts are counted."""
        return Counting(
            self["gpus_per_server"],
            self["counting"],
            self["nics"],
            self["fibre"],
            self["fibre_m"],
            self["ocs_ports"],
            self["optics"],
            self["switch_optics"],
            self["joined"],
            self["look_ahead"],
        )

    @property
    def running(self) -> Running:
        """What a year is reckoned with."""
        return Running(self["usd_per_kwh"], self["pue"], self["years"])

    def as_query(self, *keys: str) -> dict[str, str]:
        """Return the choices (or some of them) as query parameters; a file stays on the machine it was loaded on."""
        return {
            PREFIX + key: told(value)
            for key, value in self.made
            if (not keys or key in keys) and not (key == "prices" and value == FILE)
        }


def of_query(query: Mapping[str, str]) -> tuple[Choices, list[str]]:
    """Return the choices of a link, and what in it could not be understood, as ``key=value``."""
    found, ignored = understood(READERS, PREFIX, query)
    made = Choices()
    for name in sorted(
        found, key=lambda name: name != "prices"
    ):  # the set comes first: it would take the edits away
        made = made.with_choice(name, found[name])
    return made, ignored


def choices() -> Choices:
    """Return this session's choices."""
    made: Choices = st.session_state.get("cost", Choices())
    return made


def choose(key: str, value: Any) -> None:
    """Take one choice of the reader (from a widget's callback)."""
    st.session_state["cost"] = choices().with_choice(key, value)


def chosen(key: str, widget: str) -> None:
    """Take the choice that a widget made; an emptied widget takes it away."""
    choose(key, st.session_state.get(widget))


def reset() -> None:
    """Forget every choice."""
    st.session_state["cost"] = Choices()


def base_catalogue() -> Catalogue:
    """Return the price set or the file that was chosen, before any edit."""
    name = choices()["prices"]
    if name == FILE:
        found: Catalogue | None = st.session_state.get("cost_file")
        return found if found is not None else PRICE_SETS[DEFAULT_SET]
    return PRICE_SETS[name]


def catalogue() -> Catalogue:
    """Return the prices that hold: the set or the file, with the reader's edits."""
    base = base_catalogue()
    try:
        return with_edits(base, choices()["parts"])
    except InputError as error:
        say("error", str(error))
        choose("parts", None)
        return base


def cluster_catalogue() -> Catalogue:
    """Return the prices for a cluster of any port speed: the reader's, or else the set that lists every speed."""
    made = dict(choices().made)
    return catalogue() if "prices" in made or "parts" in made else PRICE_SETS[SET_BY_SPEED]


def edit(figures: Mapping[str, Mapping[str, float]]) -> None:
    """Take edits of prices and watts; one that cannot be is said in a line and not taken."""
    try:
        choose("parts", edits_between(base_catalogue(), catalogue().changed(figures)))
    except InputError as error:
        say("error", str(error))


def question() -> Question:
    """Return what the page answers."""
    return Question(choices().gpus, catalogue(), choices().counting)


def radix() -> tuple[int, str]:
    """Return the ports and the name of the optical switch that a rail is to be built of."""
    found = TECHNOLOGIES[choices()["switch"]]
    return found.radix, f"{found.vendor} ({switch_word(found.name)})"


def read_link() -> None:
    """Take the choices of a link that is new."""
    state = st.session_state
    linked = {
        key: value for key, value in st.query_params.to_dict().items() if key.startswith(PREFIX)
    }
    if linked and linked != state.get("cost_written"):
        state["cost"], ignored = of_query(linked)
        state["cost_written"] = linked
        if ignored:
            say("warning", ignored_line(ignored))


def restore() -> None:
    """Bring choices and address in step: a link that is new wins over what was there, a choice over both."""
    read_link()
    state = st.session_state
    query = st.query_params.to_dict()
    wanted = choices().as_query()
    whole = {key: value for key, value in query.items() if not key.startswith(PREFIX)} | wanted
    state["cost_written"] = wanted
    if whole != query:
        st.query_params.from_dict(whole)
    state["written"] = whole


def widget(key: str, value: Any) -> str:
    """Set a widget to what the choices say, before it is drawn; return its key."""
    name = f"w_cost_{key}"
    if name not in st.session_state or st.session_state[name] != value:
        st.session_state[name] = value
    return name
