"""The sidebar's what-ifs: every choice that changes the schedule, valid ones only, shared by Schedule and Circuits."""

import os
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.model.cluster import DELAYS_MS, SLOTS_MS, SPEEDS_GBPS, Cluster
from topox_core.model.lowering.algorithm_choice import DEFAULT, RING_KINDS, algorithms_that_fit
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import delay_label, short
from topox_ui.runs.limits import server_limits
from topox_ui.state.loading import Loaded, has_what_ifs, reset_what_ifs, scenario
from topox_ui.state.scenario import AUTO, RINGS_AUTO, Scenario
from topox_ui.state.widgets import menu, pick, sidebar_part, slide, switch

SWITCHES = (1, 2, 3, 4, 6, 8)
RINGS = (1, 2, 3, 4, 6, 8)
CIRCUIT_WORDS = {"continuous": "kept", "per-slot": "may change"}
MODEL_WORDS = {"physical": "physical", "paper": "as printed"}
DUPLEX_WORDS = {"full": "full", "half": "half"}
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
TIME_LIMITS_S = (5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


def what_ifs(loaded: Loaded) -> None:
    """Draw the what-ifs in the sidebar."""
    cluster, settings = shown_values(loaded)
    with sidebar_part("What if"):
        delay_and_speed(cluster, settings, ON_CLOCK[settings.on_slots])
        _slide(
            cluster,
            "Circuit switches",
            "switches",
            SWITCHES,
            help="Ports per server follow, so that each server has the same number on every switch.",
        )
        ports_slider(cluster, settings)
        pick(
            "Circuit of a transfer",
            Scenario,
            "circuits",
            CIRCUIT_WORDS,
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
        "Reconfiguration delay",
        "reconfiguration_ms",
        DELAYS_MS,
        words=delay_label,
        disabled=per_slot,
        help="Changes between slots cost no delay. Let a transfer keep one circuit to charge it."
        if per_slot
        else charged,
    )
    _slide(
        cluster,
        "Port speed",
        "port_gbps",
        SPEEDS_GBPS,
        words=lambda v: f"{v:g}G",
    )


def ports_slider(cluster: Cluster, settings: Settings) -> None:
    """Draw the ports of a server: multiples of the switches, or any number where any switch may be used."""
    switches = cluster.switches
    any_number = range(1, max(8, switches) + 1)
    multiples = [switches * k for k in range(1, max(4, 8 // switches) + 1)]
    _slide(
        cluster,
        "Ports per server",
        "ports_per_server",
        any_number if settings.any_port else multiples,
        help="Optical ports of one server, spread evenly over the switches.",
    )


def collectives(loaded: Loaded, settings: Settings, rings_help: str) -> None:
    """Draw how collectives are lowered to transfers: rings, and an algorithm for each kind that the graph has."""
    lowering, free = settings.lowering, settings.free
    printed = settings.model == "paper"
    slide(
        "Rings of a collective",
        Scenario,
        "rings",
        RINGS if printed else (RINGS_AUTO, *RINGS),
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
            f"{kind.replace('_', '-').capitalize()} by",
            Scenario,
            kind,
            words if printed else {AUTO: AUTO, **words},
            value=fixed.get(kind, AUTO if "algorithm" in free else DEFAULT),
            help=ALGORITHM_HELP,
        )
    switch(
        "All-reduce on the network",
        Scenario,
        "all_reduce_on_network",
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


def _slide(cluster: Cluster, label: str, field: str, steps: Any, **more: Any) -> None:
    slide(label, Scenario, field, steps, value=getattr(cluster, field), **more)


def _more(loaded: Loaded, cluster: Cluster, settings: Settings) -> None:
    pick(
        "Model",
        Scenario,
        "model",
        MODEL_WORDS,
        value=settings.model,
        help="physical: what hardware can do. as printed: eqs 2-10 of the TOPO-X paper, to the letter.",
    )
    if settings.circuits == "continuous":
        pick(
            "Time",
            Scenario,
            "clock",
            CLOCK_WORDS,
            value="slots" if settings.on_slots else "continuous",
            help="continuous: nothing is rounded; plans alone use slots. whole slots: every transfer "
            "starts and ends on a slot, as in the paper.",
        )
        pick(
            "Iteration",
            Scenario,
            "iteration",
            ITERATION_WORDS,
            value=settings.iteration,
            help="one of many: it begins with the circuits that the iteration before left. the first: its first circuits "
            "are set up before it begins and cost nothing.",
        )
    if not settings.on_slots:
        pick(
            "Switching",
            Scenario,
            "switching",
            SWITCHING_WORDS,
            value=settings.switching,
            help="planned: circuits change by a plan. provisioned: in the order of a profiled iteration. never: they stay fixed.",
        )
    _slide(
        cluster,
        "Slot",
        "slot_ms",
        SLOTS_MS,
        words=lambda v: f"{v:g} ms",
    )
    pick(
        "Duplex",
        Scenario,
        "duplex",
        DUPLEX_WORDS,
        value=cluster.duplex,
        help="full: a port sends and receives at once. half: in + out together fit the ports (eq. 8 as printed).",
    )
    servers = cluster.servers
    _slide(
        cluster,
        "Circuits per switch",
        "ports_per_switch",
        {max(1, servers // 4), max(1, servers // 2), servers, servers * 2, servers * 4},
        help="Equation 7 of the model.",
    )
    collectives(
        loaded,
        settings,
        "A ring all-reduce is split over this many rings; fewer where the group has fewer distinct ones.",
    )

    def flip(label: str, field: str, help: str, disabled: bool = False) -> None:
        switch(label, Scenario, field, value=getattr(settings, field), help=help, disabled=disabled)

    flip(
        "Devices do one task at a time",
        "exclusive_devices",
        "Off as printed: compute tasks then overlap freely on a device.",
    )
    stay = settings.circuits == "continuous"
    flip(
        "A pair's transfers share a circuit",
        "share_circuits",
        "Eq. 6 as printed: each at full rate. Only with circuits that may change between slots.",
        disabled=stay,
    )
    flip(
        "A server may use any switch",
        "any_port",
        "Eqs 9 and 10 as printed: at most one port on each switch. Only with circuits that may change between slots.",
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
    longest_s = server_limits().longest_s
    settings = scenario().settings()
    menu(
        "Exact engine",
        Scenario,
        "engine",
        ENGINE_WORDS,
        value=settings.engine,
        help="The list scheduler answers every slider; this engine proves. auto: CP-SAT and the local search side by "
        "side, HiGHS with them from the third core on. HiGHS alone proves on slots only. The printed MIP is for small graphs.",
    )
    slide(
        "Time limit",
        Scenario,
        "time_limit_s",
        [one for one in TIME_LIMITS_S if one <= longest_s] or [longest_s],
        value=settings.time_limit_s,
        words=lambda v: f"{short(v)} s" if v < 120 else f"{short(v / 60)} min",
    )
    cores = os.cpu_count() or 1
    slide(
        "Cores",
        Scenario,
        "threads",
        [n for n in (1, 2, 3, 4, 6, 8, 12, 16) if n <= max(2, cores)],
        value=settings.threads,
        help=f"How many cores a solve may use; this machine has {cores}.",
    )
