"""The Cost page's sidebar: how large, how counted, at whose prices, against what, and what a year is reckoned with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st

from topox_core.economics.comparison import sizes_up_to
from topox_core.economics.networks import NETWORKS
from topox_core.economics.price_sets import PRICE_SETS
from topox_ui.state.prices import (
    FILE,
    PER_SERVER,
    TECHNOLOGIES,
    Choices,
    base_catalogue,
    choices,
    chosen,
    reset,
    widget,
)

LARGEST = 32_768
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
    now = choices()
    with st.sidebar:
        st.divider()
        st.html('<p class="side">Build</p>')
        each = now["gpus_per_server"]
        _slide(
            "GPUs",
            "gpus",
            now.gpus,
            sizes_up_to(max(LARGEST, 512 * each), each, (now.gpus,)),
            lambda v: f"{v:,}",
            "Each has one network interface; those of the same place in every server share a rail.",
        )
        _slide(
            "GPUs a server",
            "gpus_per_server",
            each,
            PER_SERVER,
            str,
            "One scale-up domain: 8 for DGX H200, 32 in the authors' GB200 count, 72 for a GB200 NVL72 rack.",
        )
        _pick(
            "Switches counted",
            "counting",
            COUNTING_WORDS,
            now["counting"],
            "published: fractional radix, as in the paper's artifact. whole: whole switches, no more tiers than needed.",
        )
        names = [*PRICE_SETS, *([FILE] if "cost_file" in st.session_state else [])]
        st.selectbox(
            "Prices",
            names,
            key=widget("prices", now["prices"]),
            on_change=chosen,
            args=("prices", "w_cost_prices"),
            format_func=lambda name: _set_words(name),
        )
        st.selectbox(
            "Compared with",
            [name for name in NETWORKS if name != "photonic_rails"],
            on_change=chosen,
            key=widget("against", now["against"]),
            args=("against", "w_cost_against"),
            format_func=NETWORKS.__getitem__,
        )
        with st.expander("What is counted", key="cost_counted", type="compact"):
            _counted(now)
        with st.expander("A year", key="cost_year", type="compact"):
            _year(now)
        if now.made:
            st.button(
                "Reset",
                key="cost_reset",
                on_click=reset,
                width="stretch",
                help="Back to what the page begins with.",
            )


def _set_words(name: str) -> str:
    if name == FILE:
        own: str = st.session_state["cost_file"].name
        return own if len(own) <= LETTERS else f"{own[: LETTERS - 1].rstrip()}…"
    return SHORT_SETS.get(name, PRICE_SETS[name].name)


def _counted(now: Choices) -> None:
    st.selectbox(
        "Optical switch (ports)",
        list(TECHNOLOGIES),
        key=widget("switch", now["switch"]),
        on_change=chosen,
        args=("switch", "w_cost_switch"),
        format_func=lambda name: f"{TECHNOLOGIES[name].name} ({TECHNOLOGIES[name].radix:,})",
        help="Its ports decide how many servers a rail can join; its price is that of the parts table.",
    )
    _slide(
        "Optical ports a GPU",
        "ocs_ports",
        now["ocs_ports"],
        (1, 2, 4, 8),
        str,
        "Of photonic rails. The paper counts two: a ring has two neighbours. TopoOpt counts one an interface.",
    )
    _slide(
        "Transceivers a GPU",
        "optics",
        now["optics"],
        (1, 2, 4),
        str,
        "Of the optical networks. The paper counts one.",
    )
    _switch(
        "NICs",
        "nics",
        now["nics"],
        "The paper leaves them out: they are the same on every network.",
    )
    _switch("Fibre", "fibre", now["fibre"], "The paper leaves it out.")
    if now["fibre"]:
        st.number_input(
            "Metres a link",
            0.0,
            100_000.0,
            key=widget("fibre_m", float(now["fibre_m"])),
            on_change=chosen,
            args=("fibre_m", "w_cost_fibre_m"),
            step=5.0,
        )
    default = base_catalogue().switch_transceivers
    told = default if now["switch_optics"] is None else now["switch_optics"]
    _switch(
        "Transceivers at packet switches",
        "switch_optics",
        told,
        "The authors count them for H200 and leave them out for GB200.",
    )
    if now["counting"] == "whole-switches":
        _switch(
            "Spine over the rails",
            "joined",
            now["joined"],
            "The published count joins the rails by a spine.",
        )
    _switch(
        "Look-ahead",
        "look_ahead",
        now["look_ahead"],
        "TopoOpt's patch panel: twice the ports and a 1 x 2 switch, so that the next job is wired while this one runs.",
    )


def _year(now: Choices) -> None:
    for label, key, least, most, step, words in (
        ("Electricity, $ a kWh", "usd_per_kwh", 0.0, 100.0, 0.01, "Assumed."),
        (
            "PUE",
            "pue",
            1.0,
            10.0,
            0.05,
            "Watts drawn by the building for each watt in it; assumed.",
        ),
        ("Written off over, years", "years", 0.1, 100.0, 0.5, "In equal parts; assumed."),
    ):
        name = widget(key, float(now[key]))
        st.number_input(
            label, least, most, key=name, on_change=chosen, args=(key, name), step=step, help=words
        )


def _slide(
    label: str, key: str, value: Any, options: Iterable[Any], words: Callable[[Any], str], help: str
) -> None:
    name = widget(key, value)
    st.select_slider(
        label,
        sorted({*options, value}),
        key=name,
        format_func=words,
        on_change=chosen,
        args=(key, name),
        help=help,
    )


def _pick(label: str, key: str, options: Mapping[str, str], value: str, help: str) -> None:
    name = widget(key, value)
    st.segmented_control(
        label,
        list(options),
        key=name,
        format_func=options.__getitem__,
        required=True,
        on_change=chosen,
        args=(key, name),
        help=help,
    )


def _switch(label: str, key: str, value: bool, help: str) -> None:
    name = widget(key, value)
    st.toggle(label, key=name, on_change=chosen, args=(key, name), help=help)
