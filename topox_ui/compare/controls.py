"""The Compare page's sidebar: what changes most between fabrics, and which fabrics compete."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.fabrics.registry import FABRICS
from topox_core.model.cluster import Cluster
from topox_core.text.foreign import escape_untrusted
from topox_core.text.numbers import short
from topox_ui.answers.contest import priced_ratio, priced_words
from topox_ui.answers.state import VARIANTS, ContestState
from topox_ui.state.loading import Loaded
from topox_ui.state.what_ifs import (
    collectives,
    delay_and_speed,
    ports_slider,
    reset_button,
    shown_values,
)
from topox_ui.state.widgets import control, pick, sidebar_part, slide

FAT_TREES = {"cost": "same cost", "racks": "racks"}
RATIOS = (1.5, 2.0, 2.5, 3.2, 4.0, 5.0)
OVERSUBSCRIPTIONS = (1.0, 2.0, 3.0, 4.0, 8.0)


def controls(loaded: Loaded) -> None:
    """Draw the sidebar's what-ifs."""
    cluster, settings = shown_values(loaded)
    with sidebar_part("What if"):
        delay_and_speed(
            cluster,
            settings,
            "Each change costs this time, rounded up where plans use whole slots.",
        )
        control(
            "pills",
            "Fabrics",
            ContestState,
            "fabrics",
            options=FABRICS,
            selection_mode="multi",
            # None at all stands for all of them.
            take=lambda fabrics: ContestState.choose(fabrics=fabrics or None),
        )
        with st.expander("Fat-tree", key="fat_tree_menu", type="compact"):
            _fat_tree(cluster)
        with st.expander("More what-ifs", key="more_compare", type="compact"):
            ports_slider(cluster, settings)
            collectives(
                loaded,
                settings,
                "For circuits that change; fixed circuits run all-reduces on the rings they were laid for.",
            )
            pick(
                "TopologyFinder",
                ContestState,
                "variant",
                VARIANTS,
                help="How fixed circuits are laid out.",
            )
            st.caption("Slots, switches and the rest are on Schedule, and hold here too.")
        reset_button()


def _fat_tree(cluster: Cluster) -> None:
    kind = pick(
        "Its bandwidth",
        ContestState,
        "fat_tree",
        FAT_TREES,
        help="same cost: one slower NIC per server. racks: oversubscribed above the racks. A full fat-tree is shown beside it.",
    )
    if kind == "cost":
        _same_money(cluster, cluster.ports_per_server * cluster.port_gbps)
    else:
        slide(
            "Oversubscription",
            ContestState,
            "oversubscription",
            OVERSUBSCRIPTIONS,
            words=lambda v: f"{v:g}:1",
            help="The links above a rack carry the bandwidth of its servers divided by this.",
        )
        slide(
            "Servers per rack",
            ContestState,
            "servers_per_rack",
            [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cluster.servers],
            value=ContestState.now().servers_per_rack or max(1, cluster.servers // 4),
            help="Below the oversubscribed links.",
        )


def _same_money(cluster: Cluster, full: float) -> None:
    """Draw what NIC the circuits' money buys: the price catalogue's figure, or another one to try."""
    priced = float(f"{priced_ratio(cluster):.6g}")

    def take(ratio: Any) -> None:
        # The priced one is no choice: it follows the cluster and the catalogue.
        ContestState.choose(cost_ratio=None if ratio == priced else ratio)

    slide(
        "Same money buys",
        ContestState,
        "cost_ratio",
        (*RATIOS, priced),
        value=ContestState.now().cost_ratio or priced,
        words=lambda v: f"{short(full / v)}G{' (priced)' if v == priced else ''}",
        take=take,
        help=f"Of the {full:g} Gbit/s that a server's circuits have. {escape_untrusted(priced_words(cluster), 'markdown')} "
        "TopoOpt (NSDI 2023) found a full-bandwidth packet network 3.2 times as expensive as circuits on average.",
    )
