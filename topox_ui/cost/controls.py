"""The Cost page's sidebar: how large, how counted, at whose prices, against what, and what a year is reckoned with."""

from __future__ import annotations

import streamlit as st

from topox_core.economics.comparison import sizes_up_to
from topox_core.economics.price_sets import PRICE_SETS
from topox_ui.cost.state import RIVALS, TECHNOLOGIES, CostState
from topox_ui.state.prices import FILE, OWN_PRICES, Prices
from topox_ui.state.store import put
from topox_ui.state.widgets import menu, number, pick, sidebar_part, slide, switch

LARGEST = 32_768
PER_SERVER = (1, 2, 4, 8, 16, 32, 64, 72)
# Price sets as the menu calls them: a sidebar has room for about twenty letters; the whole name
# stands above the finding.
LETTERS = 20
SHORT_SETS = {
    "opus-v1": "FS list, 2025",
    "mixnet": "MixNet Table 4",
    "opus-v3-h200": "FS list, v3 (H200)",
    "opus-v3-gb200": "FS list, v3 (GB200)",
}
COUNTING_WORDS = {"paper": "published", "whole-switches": "whole"}


def controls() -> None:
    """Draw the sidebar."""
    now = CostState.now()
    with sidebar_part("Build"):
        each, gpus = now.gpus_per_server, now.built_gpus
        slide(
            "GPUs",
            CostState,
            "gpus",
            sizes_up_to(max(LARGEST, 512 * each), each, (gpus,)),
            value=gpus,
            words=lambda v: f"{v:,}",
            help="Each has one network interface; GPUs of the same number in all servers share a rail.",
        )
        slide(
            "GPUs per server",
            CostState,
            "gpus_per_server",
            PER_SERVER,
            help="One scale-up domain: 8 for DGX H200, 32 in the authors' GB200 count, 72 for a GB200 NVL72 rack.",
        )
        pick(
            "Switches counted",
            CostState,
            "counting",
            COUNTING_WORDS,
            help="published: parts of switches, as in the Opus paper. whole: whole switches, no more tiers than "
            "needed.",
        )
        _prices()
        menu("Compared with", CostState, "against", RIVALS)
        with st.expander("What is counted", key="cost_counted", type="compact"):
            _counted(now)
        with st.expander("Cost per year", key="cost_year", type="compact"):
            _year()
        if now.choices() or Prices.now().choices():
            st.button(
                "Reset",
                key="cost_reset",
                on_click=put,
                args=(CostState(), Prices()),
                width="stretch",
                help="Back to the values that the page starts with.",
            )


def price_controls() -> None:
    """Draw the sidebar of Per iteration: at whose prices, and what a year is reckoned with."""
    with sidebar_part("Prices"):
        _prices()
        with st.expander("Cost per year", key="cost_year", type="compact"):
            _year()


def _prices() -> None:
    sets = {name: SHORT_SETS.get(name, one.name) for name, one in PRICE_SETS.items()}
    own = OWN_PRICES.get()
    if own is not None:
        whole = len(own.name) <= LETTERS
        sets[FILE] = own.name if whole else f"{own.name[: LETTERS - 1].rstrip()}…"
    menu("Prices", Prices, "prices", sets)


def _counted(now: CostState) -> None:
    menu(
        "Optical switch (ports)",
        CostState,
        "switch",
        {key: f"{one.name} ({one.radix:,})" for key, one in TECHNOLOGIES.items()},
        help="Its ports limit how many servers a rail can join. Its price is in the parts table.",
    )
    slide(
        "Optical ports per GPU",
        CostState,
        "ocs_ports",
        (1, 2, 4, 8),
        help="For photonic rails. The paper counts two: a ring has two neighbours. TopoOpt counts one per interface.",
    )
    slide(
        "Transceivers per GPU",
        CostState,
        "optics",
        (1, 2, 4),
        help="For the optical networks. The paper counts one.",
    )
    switch(
        "NICs",
        CostState,
        "nics",
        help="The paper leaves them out: they are the same on every network.",
    )
    switch("Fibre", CostState, "fibre", help="The paper leaves it out.")
    if now.fibre:
        number("Metres per link", CostState, "fibre_m", 0.0, 100_000.0, step=5.0)
    optics = now.switch_optics
    switch(
        "Transceivers at packet switches",
        CostState,
        "switch_optics",
        value=Prices.now().base().switch_transceivers if optics is None else optics,
        help="The authors count them for H200 and leave them out for GB200.",
    )
    if now.counting == "whole-switches":
        switch(
            "Spine over the rails",
            CostState,
            "joined",
            help="The published count joins the rails by a spine.",
        )
    switch(
        "Look-ahead",
        CostState,
        "look_ahead",
        help="TopoOpt's patch panel: twice the ports and a 1 x 2 switch, so that the next job is wired while this one "
        "runs.",
    )


def _year() -> None:
    number(
        "Electricity, $ per kWh", CostState, "usd_per_kwh", 0.0, 100.0, step=0.01, help="Assumed."
    )
    number(
        "PUE",
        CostState,
        "pue",
        1.0,
        10.0,
        step=0.05,
        help="Watts that the building draws per watt of the network; assumed.",
    )
    number(
        "Written off over, years",
        CostState,
        "years",
        0.1,
        100.0,
        step=0.5,
        help="In equal parts; assumed.",
    )
