"""What Fixed circuits lays: its choices, the circuits that TopologyFinder finds for them, the hops on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from topox_core.model.lowering import lower
from topox_core.topology.finder import Demand, LayoutResult, demand_of, find_layout
from topox_core.topology.ring_circuits import Frame, bandwidth_tax, frames, link_loads
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import Pair, all_reduce_demand
from topox_ui.answers.case import Case
from topox_ui.answers.state import VARIANTS, ContestState
from topox_ui.runs.shared import once
from topox_ui.state.widgets import pick, sidebar_part, slide
from topox_ui.topology.state import TopologyState

DEGREES = (1, 2, 3, 4, 6, 8)
LAID_BY = {"topoopt": "TopoOpt", "matrix": "bytes", "graph": "graph"}
TRAFFIC = {"graph": "this job", "ring": "all-reduce"}


@dataclass(frozen=True)
class LaidTopology:
    """What TopologyFinder found for a demand, and its pictures.

    Attributes
    ----------
    tax
        Hops that a byte travels.
    busiest, busiest_link
        Bytes of the busiest link over the average link's, 0 where nothing is sent; which link that is.
    """

    demand: Demand
    result: LayoutResult
    pictures: tuple[Frame, ...]
    tax: float
    busiest: float
    busiest_link: Pair | None
    key: str


def degree_of(case: Case) -> int:
    """Return the chosen degree; the cluster's ports a server if none was chosen."""
    chosen = TopologyState.now().degree
    return case.cluster.ports_per_server if chosen is None else chosen


def degree_slider(case: Case) -> None:
    """Draw the choice of the degree."""
    slide(
        "Degree",
        TopologyState,
        "degree",
        DEGREES,
        value=degree_of(case),
        help="Circuits out of and into each server. The other pages use the cluster's ports per server, "
        f"{case.cluster.ports_per_server}.",
    )


def controls(case: Case) -> None:
    """Draw the sidebar's choices."""
    with sidebar_part("What if"):
        degree_slider(case)
        pick(
            "Circuits laid by",
            TopologyState,
            "layout_by",
            LAID_BY,
            help="TopologyFinder; the bytes between servers alone; or a search that simulates the iteration "
            "of the loaded task graph (after DELTA, built from its abstract).",
        )
        pick(
            "Algorithm",
            ContestState,
            "variant",
            VARIANTS,
            help="TopoOpt (NSDI 2023) as printed in the paper, or as in the code published with it.",
        )
        pick(
            "Traffic",
            TopologyState,
            "traffic",
            TRAFFIC,
            help="Of the loaded task graph, or of one all-reduce over all servers: the textbook case.",
        )


def lay(case: Case) -> LaidTopology:
    """Find the circuits; raises InputError where there are none."""
    degree, variant = degree_of(case), ContestState.now().variant
    traffic = TopologyState.now().traffic
    drawn = f"{case.settings.lowering}|{case.settings.seed}|{case.cluster.servers}"
    key = f"{case.graph.digest}|{drawn}|{degree}|{variant}|{traffic}"
    return _laid(key, case, degree, variant, traffic)


@st.cache_resource(max_entries=24, show_spinner="Laying circuits")
def _laid(key: str, _case: Case, degree: int, variant: str, traffic: str) -> LaidTopology:
    servers = _case.cluster.servers
    demand = (
        all_reduce_demand(servers)
        if traffic == "ring"
        else demand_of(lower(_case.graph, _case.settings.lowering), servers)
    )
    result = find_layout(demand, degree, variant, seed=_case.settings.seed)
    loads = link_loads(result, demand)
    carried = np.array(list(loads.values()))
    busiest = float(carried.max() / carried.mean()) if carried.any() else 0.0
    link = max(loads, key=lambda pair: loads[pair]) if busiest else None
    tax = bandwidth_tax(result, demand)
    return LaidTopology(demand, result, frames(result), tax, busiest, link, key)


def hops_of_step(laid: LaidTopology, at: int) -> Any:
    """Return the hops between all servers on the circuits that lie after a step."""
    circuits = laid.pictures[at].circuits(laid.result.layout.servers)
    return once("hops", f"{laid.key}|{at}", lambda: RoutedNetwork(circuits).hop_matrix())
