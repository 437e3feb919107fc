"""The sidebar's what-ifs: every choice that changes the schedule, valid ones only, shared by Schedule and Circuits."""

import os
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.algorithm_choice import DEFAULT, RING_KINDS, algorithms_that_fit
from topox_core.model.quantities import SMALL_COUNTS
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import short
from topox_ui.runs.limits import server_limits
from topox_ui.state.loading import Loaded, has_what_ifs, reset_what_ifs, scenario
from topox_ui.state.scenario import AUTO, RINGS_AUTO, Scenario
from topox_ui.state.widgets import menu, pick, sidebar_part, slide, switch

CIRCUIT_WORDS = {"continuous": "kept", "per-slot": "may change"}
MODEL_WORDS = {"physical": "physical", "paper": "as printed"}
CLOCK_WORDS = {"continuous": "continuous", "slots": "whole slots"}
ITERATION_WORDS = {"repeated": "one of many", "first": "the first"}
SWITCHING_WORDS = {
    "auto": "fastest",
    "planned": "planned",
    "provisioned": "provisioned",
    "fixed": "never",
}
ON_CLOCK = {
    True: "Each change costs this time, rounded up to whole slots.",
    False: "Each change costs exactly this time.",
}
ENGINE_WORDS = {
    "auto": "auto (CP-SAT and search)",
    "cpsat": "CP-SAT, constraints",
    "highs": "HiGHS, step model",
    "printed": "the printed MIP",
}
DEFAULT_WORDS = {
    **dict.fromkeys(RING_KINDS, "rings, fluid"),
    "broadcast": "chain, fluid",
    "all_to_all": "direct, fluid",
}
ALGORITHM_HELP = (
    "Which server sends what, and when. auto: the fastest on each fabric, tried alone and then in the whole graph. "
    "The others run step by step; each message has its latency and its circuit."
)


def what_ifs(loaded: Loaded) -> None:
    """Draw the what-ifs in the sidebar."""
    cluster, settings = shown_values(loaded)
    with sidebar_part("What if"):
        delay_and_speed(cluster, settings, ON_CLOCK[settings.on_slots])
        _slide(
            cluster,
            "switches",
            label="Circuit switches",
            help="Ports per server follow, so that each server has the same number on every switch.",
        )
        ports_slider(cluster, settings)
        pick(
            Scenario,
            "circuits",
            CIRCUIT_WORDS,
            label="Circuit of a transfer",
            value=settings.circuits,
            help="kept: a transfer keeps its circuit until it ends. may change: circuits are chosen "
            "again for each slot, as in the paper's equations, and changes cost no delay.",
        )
        delay_ms = scenario().delay_not_charged(loaded.cluster)
        if delay_ms:
            st.caption(
                f"Changes between slots cost no delay. The delay of {short(delay_ms)} ms counts again where a transfer "
                "keeps one circuit."
            )
        with st.expander("More what-ifs", key="more_what_ifs", type="compact"):
            _more(loaded, cluster, settings)
        reset_button()


def delay_and_speed(cluster: Cluster, settings: Settings, charged: str) -> None:
    """Draw the reconfiguration delay, which changes between slots do not cost, and the port speed."""
    per_slot = settings.circuits == "per-slot"
    _slide(
        cluster,
        "reconfiguration_ms",
        disabled=per_slot,
        help="Changes between slots cost no delay. Let a transfer keep one circuit to charge it."
        if per_slot
        else charged,
    )
    _slide(cluster, "port_gbps")


def ports_slider(cluster: Cluster, settings: Settings) -> None:
    """Draw the ports of a server: multiples of the switches, or any number where any switch may be used."""
    switches = cluster.switches
    any_number = range(1, max(8, switches) + 1)
    multiples = [switches * k for k in range(1, max(4, 8 // switches) + 1)]
    _slide(
        cluster,
        "ports_per_server",
        any_number if settings.any_port else multiples,
        help="Optical ports of one server, spread evenly over the switches.",
    )


def collectives(loaded: Loaded, settings: Settings, rings_help: str) -> None:
    """Draw how collectives are lowered to transfers: rings, and an algorithm for each kind that the graph has."""
    lowering, free = settings.lowering, settings.free
    printed = settings.model == "paper"
    slide(
        Scenario,
        "rings",
        SMALL_COUNTS if printed else (RINGS_AUTO, *SMALL_COUNTS),
        label="Rings of a collective",
        value=RINGS_AUTO if "rings" in free else lowering.rings,
        words=lambda k: str(k or AUTO),
        help=f"{rings_help} auto: 1, 2, 4 or one per port, whichever is fastest.",
    )
    fixed = dict(lowering.algorithm)
    there = loaded.graph.group_sizes
    for kind in (one for one in there if one in DEFAULT_WORDS):
        names = (DEFAULT, *algorithms_that_fit(kind, there[kind]))
        words = {name: name.replace("_", " ") for name in names} | {DEFAULT: DEFAULT_WORDS[kind]}
        menu(
            Scenario,
            kind,
            words if printed else {AUTO: AUTO, **words},
            label=f"{kind.replace('_', '-').capitalize()} by",
            value=fixed.get(kind, AUTO if "algorithm" in free else DEFAULT),
            help=ALGORITHM_HELP,
        )
    switch(
        Scenario,
        "all_reduce_on_network",
        label="All-reduce on the network",
        value=lowering.all_reduce_on_network,
        help="Off: all-reduces take no time on the network, as in most rows of TOPO-X Table III.",
    )


def reset_button() -> None:
    """Offer to go back to the values of the files, where something differs from them."""
    if has_what_ifs():
        st.button(
            "Reset what-ifs",
            on_click=reset_what_ifs,
            width="stretch",
            help="Back to the values of the files.",
        )


def _slide(cluster: Cluster, field: str, steps: Any = (), **more: Any) -> None:
    slide(Scenario, field, steps, value=getattr(cluster, field), **more)


def _more(loaded: Loaded, cluster: Cluster, settings: Settings) -> None:
    pick(
        Scenario,
        "model",
        MODEL_WORDS,
        value=settings.model,
        help="physical: what hardware can do. as printed: eqs 2-10 of the TOPO-X paper, to the letter.",
    )
    if settings.circuits == "continuous":
        pick(
            Scenario,
            "clock",
            CLOCK_WORDS,
            label="Time",
            value="slots" if settings.on_slots else "continuous",
            help="continuous: nothing is rounded; plans alone use slots. whole slots: every transfer "
            "starts and ends on a slot, as in the paper.",
        )
        pick(
            Scenario,
            "iteration",
            ITERATION_WORDS,
            value=settings.iteration,
            help="one of many: it begins with the circuits that the iteration before left. the first: its first circuits "
            "are set up before it begins and cost nothing.",
        )
    if not settings.on_slots:
        pick(
            Scenario,
            "switching",
            SWITCHING_WORDS,
            label="Switching",
            value=settings.switching,
            help="planned: circuits change by a plan. provisioned: in the order of a profiled iteration. never: they stay fixed.",
        )
    _slide(cluster, "slot_ms")
    pick(
        Scenario,
        "duplex",
        value=cluster.duplex,
        help="full: a port sends and receives at once. half: in + out together fit the ports (eq. 8 as printed).",
    )
    servers = cluster.servers
    _slide(
        cluster,
        "ports_per_switch",
        {max(1, servers // 4), max(1, servers // 2), servers, servers * 2, servers * 4},
        label="Circuits per switch",
        help="Equation 7 of the model.",
    )
    collectives(
        loaded,
        settings,
        "A ring all-reduce is split over this many rings; fewer where the group has fewer distinct ones.",
    )

    switch(
        Scenario,
        "exclusive_devices",
        label="Devices do one task at a time",
        value=settings.exclusive_devices,
        help="Off as printed: compute tasks then overlap freely on a device.",
    )
    stay = settings.circuits == "continuous"
    switch(
        Scenario,
        "share_circuits",
        label="A pair's transfers share a circuit",
        value=settings.share_circuits,
        help="Eq. 6 as printed: each at full rate. Only with circuits that may change between slots.",
        disabled=stay,
    )
    switch(
        Scenario,
        "any_port",
        label="A server may use any switch",
        value=settings.any_port,
        help="Eqs 9 and 10 as printed: at most one port on each switch. Only with circuits that may change between slots.",
        disabled=stay,
    )


def shown_values(loaded: Loaded) -> tuple[Cluster, Settings]:
    """Return what the controls show: the cluster and the settings as chosen, or the file's where choices contradict."""
    try:
        return scenario().cluster(loaded.cluster), scenario().settings()
    except InputError:
        return loaded.cluster, Settings.of()


def engine_choice() -> None:
    """Offer which exact engine proves, for how long and on how many cores."""
    settings = scenario().settings()
    menu(
        Scenario,
        "engine",
        ENGINE_WORDS,
        label="Exact engine",
        value=settings.engine,
        help="The list scheduler answers every slider; this engine proves. auto: CP-SAT and the local search side by "
        "side, HiGHS with them from the third core on. HiGHS alone proves on slots only. The printed MIP is for small graphs.",
    )
    slide(
        Scenario,
        "time_limit_s",
        at_most=server_limits().longest_s,
        value=settings.time_limit_s,
        help=None,
        words=lambda v: f"{short(v)} s" if v < 120 else f"{short(v / 60)} min",
    )
    cores = os.cpu_count() or 1
    slide(
        Scenario,
        "threads",
        at_most=max(2, cores),
        value=settings.threads,
        help=f"How many cores a solve may use; this machine has {cores}.",
    )
