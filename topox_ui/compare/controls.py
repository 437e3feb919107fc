"""The Compare page's sidebar: what changes most between fabrics, and which fabrics compete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from topox_core.fabrics.run import FABRICS
from topox_core.model.cluster import Cluster
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import delay_label, short
from topox_ui.compare.contest import priced_ratio, priced_words, viewed
from topox_ui.state.loading import Loaded
from topox_ui.state.session import choose, chosen, reset, scenario, widget
from topox_ui.state.what_ifs import pick, shown_values

# 1 microsecond to 100 ms, a decade in three steps, and none at all.
DELAYS_MS = (0.0, *(float(f"{m}e{d}") for d in range(-3, 2) for m in (1, 2, 5)), 100.0)
SPEEDS_GBPS = (10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0, 800.0)
RINGS = (1, 2, 3, 4, 6, 8)
FAT_TREES = {"cost": "same cost", "racks": "racks", "full": "full"}
RATIOS = (1.5, 2.0, 2.5, 3.2, 4.0, 5.0)
OVERSUBSCRIPTIONS = (1.0, 2.0, 3.0, 4.0, 8.0)
VARIANTS = {"published": "paper", "released": "its code"}


def controls(loaded: Loaded) -> None:
    """Draw the sidebar's what-ifs."""
    now = scenario()
    cluster, settings = shown_values(loaded)
    with st.sidebar:
        st.divider()
        st.html('<p class="side">What if</p>')
        per_slot = settings.circuits == "per-slot"
        _slide(
            "Reconfiguration delay",
            "reconfiguration_ms",
            cluster.reconfiguration_ms,
            DELAYS_MS,
            delay_label,
            disabled=per_slot,
            help="Dark time of a port that changes its circuit. Scheduled circuits change on slot boundaries, so there it is "
            "rounded up to whole slots."
            if not per_slot
            else "Circuits that are drawn afresh each slot pay no delay: let circuits stay to charge one.",
        )
        _slide(
            "Port speed",
            "port_gbps",
            cluster.port_gbps,
            SPEEDS_GBPS,
            lambda v: f"{v:g}G",
            help="Gbit/s of one port, each way.",
        )
        st.pills(
            "Fabrics",
            list(FABRICS),
            selection_mode="multi",
            format_func=FABRICS.__getitem__,
            on_change=_fabrics,
            key=widget("fabrics", viewed(now, "fabrics").split(",")),
        )
        with st.expander("Fat-tree", key="fat_tree_menu", type="compact"):
            _fat_tree(cluster)
        with st.expander("More what-ifs", key="more_compare", type="compact"):
            _more(cluster, settings)
        if now.cluster or now.settings:
            st.button(
                "Reset what-ifs",
                on_click=reset,
                width="stretch",
                help="Back to the values of the files.",
            )


def _fat_tree(cluster: Cluster) -> None:
    now = scenario()
    kind = viewed(now, "fat_tree")
    st.segmented_control(
        "Its bandwidth",
        list(FAT_TREES),
        format_func=FAT_TREES.__getitem__,
        required=True,
        on_change=chosen,
        key=widget("fat_tree", kind),
        args=("fat_tree", "w_fat_tree"),
        help="same cost: one slower NIC a server. racks: less above the racks. full: all ports everywhere.",
    )
    full = cluster.ports_per_server * cluster.port_gbps
    if kind == "cost":
        _same_money(cluster, full)
    elif kind == "racks":
        _slide(
            "Oversubscription",
            "oversubscription",
            viewed(now, "oversubscription"),
            OVERSUBSCRIPTIONS,
            lambda v: f"{v:g}:1",
            help="A rack's way up carries its servers' bandwidth divided by this.",
        )
        racks = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cluster.servers]
        rack = now.value("servers_per_rack") or max(1, cluster.servers // 4)
        _slide(
            "Servers per rack",
            "servers_per_rack",
            rack,
            racks,
            str,
            help="Below the oversubscribed links.",
        )


def _same_money(cluster: Cluster, full: float) -> None:
    """Draw what NIC the circuits' money buys: the price catalogue's figure, or another one to try."""
    priced = float(f"{priced_ratio(cluster):.6g}")
    name = widget("cost_ratio", viewed(scenario(), "cost_ratio") or priced)
    st.select_slider(
        "Same money buys",
        sorted({*RATIOS, priced, st.session_state[name]}),
        format_func=lambda v: f"{short(full / v)}G{' (priced)' if v == priced else ''}",
        key=name,
        # The priced one is no choice: it follows the cluster and the catalogue.
        on_change=lambda: choose(
            "cost_ratio", None if st.session_state[name] == priced else st.session_state[name]
        ),
        help=f"Of the {full:g} Gbit/s that a server's circuits have. TopoOpt (NSDI 2023) found a full-bandwidth packet network "
        "3.2 times as expensive as circuits on average.",
    )
    st.caption(priced_words(cluster))


def _more(cluster: Cluster, settings: Settings) -> None:
    each = [cluster.switches * k for k in range(1, max(4, 8 // cluster.switches) + 1)]
    _slide(
        "Ports per server",
        "ports_per_server",
        cluster.ports_per_server,
        each,
        str,
        help="Optical ports of one server, spread evenly over the switches.",
    )
    _slide(
        "Rings of a collective",
        "rings",
        settings.lowering.rings,
        RINGS,
        str,
        help="Of the circuits that change; static circuits run all-reduces on the rings that they were laid for.",
    )
    name = widget("all_reduce_on_network", settings.lowering.all_reduce_on_network)
    st.toggle(
        "All-reduce on the network",
        key=name,
        on_change=chosen,
        args=("all_reduce_on_network", name),
        help="Off: all-reduces take no time on the network, as in most rows of TOPO-X Table III.",
    )
    pick(
        "TopologyFinder",
        "variant",
        VARIANTS,
        viewed(scenario(), "variant"),
        "How the static circuits are laid out.",
    )
    st.caption("Slots, switches and the rest are on Schedule, and hold here too.")


def _slide(
    label: str,
    key: str,
    value: Any,
    choices: Iterable[Any],
    words: Callable[[Any], str],
    *,
    help: str,
    disabled: bool = False,
) -> None:
    name = widget(key, value)
    st.select_slider(
        label,
        sorted({*choices, value}),
        format_func=words,
        key=name,
        on_change=chosen,
        args=(key, name),
        help=help,
        disabled=disabled,
    )


def _fabrics() -> None:
    """Take the chosen fabrics; none at all stands for all of them."""
    picked = st.session_state.get("w_fabrics") or list(FABRICS)
    choose("fabrics", ",".join(name for name in FABRICS if name in picked))
