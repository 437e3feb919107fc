"""The sidebar's what-ifs: every choice that changes the schedule, valid ones only, shared by Schedule and Circuits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import short
from topox_ui.state.loading import Loaded
from topox_ui.state.session import chosen, reset, scenario, widget

DELAYS_MS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0)
SPEEDS_GBPS = (10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0, 800.0)
SLOTS_MS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SWITCHES = (1, 2, 3, 4, 6, 8)
RINGS = (1, 2, 3, 4, 6, 8)
CIRCUIT_WORDS = {"continuous": "stay", "per-slot": "may move"}
MODEL_WORDS = {"physical": "physical", "paper": "as printed"}
DUPLEX_WORDS = {"full": "full", "half": "half"}


def what_ifs(loaded: Loaded) -> None:
    """Draw the what-ifs in the sidebar."""
    now = scenario()
    cluster, settings = shown_values(loaded)
    with st.sidebar:
        st.divider()
        st.html('<p class="side">What if</p>')
        per_slot = settings.circuits == "per-slot"
        _slide(
            "Reconfiguration delay",
            "reconfiguration_ms",
            DELAYS_MS,
            cluster,
            lambda v: f"{v:g} ms",
            disabled=per_slot,
            help="Dark time of a port that changes its circuit, in whole slots."
            if not per_slot
            else "Circuits that are drawn afresh each slot pay no delay: let circuits stay to charge one.",
        )
        _slide(
            "Port speed",
            "port_gbps",
            SPEEDS_GBPS,
            cluster,
            lambda v: f"{v:g}G",
            help="Gbit/s of one port, each way.",
        )
        _slide(
            "Circuit switches",
            "switches",
            SWITCHES,
            cluster,
            str,
            help="Optical switches; ports follow, so that every server has equally many on each.",
        )
        _slide(
            "Ports per server",
            "ports_per_server",
            _port_choices(cluster, settings),
            cluster,
            str,
            help="Optical ports of one server, spread evenly over the switches.",
        )
        pick(
            "Circuits",
            "circuits",
            CIRCUIT_WORDS,
            settings.circuits,
            "stay: a transfer keeps its circuit while it lasts. may move: circuits are drawn afresh each slot, as printed.",
        )
        more = st.expander("More what-ifs", key="more_what_ifs", type="compact")
        with more:
            _more(cluster, settings)
        if now.cluster or now.settings:
            st.button(
                "Reset what-ifs",
                on_click=reset,
                width="stretch",
                help="Back to the values of the files.",
            )


def _more(cluster: Cluster, settings: Settings) -> None:
    pick(
        "Model",
        "model",
        MODEL_WORDS,
        settings.model,
        "physical: what hardware can do. as printed: eqs 2-10 of the TOPO-X paper, to the letter.",
    )
    _slide(
        "Slot",
        "slot_ms",
        SLOTS_MS,
        cluster,
        lambda v: f"{v:g} ms",
        help="Circuits change on slot boundaries.",
    )
    pick(
        "Duplex",
        "duplex",
        DUPLEX_WORDS,
        cluster.duplex,
        "full: a port sends and receives at once. half: in + out together fit the ports (eq. 8 as printed).",
    )
    _slide(
        "Circuits per switch",
        "ports_per_switch",
        _doubling(cluster.servers),
        cluster,
        str,
        help="Circuits that one switch carries at once (eq. 7).",
    )
    key = widget("rings", settings.lowering.rings)
    st.select_slider(
        "Rings of a collective",
        _with(RINGS, settings.lowering.rings),
        key=key,
        on_change=chosen,
        args=("rings", key),
        help="A ring all-reduce is split over this many rings; fewer where the group has fewer distinct ones.",
    )
    _flip(
        "All-reduce on the network",
        "all_reduce_on_network",
        settings.lowering.all_reduce_on_network,
        "Off: all-reduces take no time on the network, as in most rows of TOPO-X Table III.",
    )
    _flip(
        "Devices do one task at a time",
        "exclusive_devices",
        settings.exclusive_devices,
        "Off as printed: compute tasks then overlap freely on a device.",
    )
    stay = settings.circuits == "continuous"
    _flip(
        "A pair's transfers share a circuit",
        "share_circuits",
        settings.share_circuits,
        "Eq. 6 as printed: each at full rate. Only with circuits that may move.",
        disabled=stay,
    )
    _flip(
        "A server may use any switch",
        "any_port",
        settings.any_port,
        "Eqs 9 and 10 as printed: at most one port on each switch. Only with circuits that may move.",
        disabled=stay,
    )


def _slide(
    label: str,
    key: str,
    choices: Iterable[Any],
    cluster: Cluster,
    words: Callable[[Any], str],
    *,
    help: str,
    disabled: bool = False,
) -> None:
    value = getattr(cluster, key)
    name = widget(key, value)
    st.select_slider(
        label,
        _with(choices, value),
        format_func=words,
        key=name,
        on_change=chosen,
        args=(key, name),
        help=help,
        disabled=disabled,
    )


def shown_values(loaded: Loaded) -> tuple[Cluster, Settings]:
    """Return what the controls show: the cluster and the settings as chosen, or the file's where choices contradict."""
    try:
        return scenario().changed(loaded.cluster), scenario().made()
    except InputError:
        # Such choices come in a link: the page says so.
        return loaded.cluster, Settings.of()


def pick(label: str, key: str, words: Mapping[str, str], value: str, help: str) -> None:
    """Draw a choice of one among a few, kept in the scenario under ``key``."""
    name = widget(key, value)
    st.segmented_control(
        label,
        list(words),
        format_func=words.__getitem__,
        key=name,
        on_change=chosen,
        args=(key, name),
        help=help,
        required=True,
    )


def _flip(label: str, key: str, value: bool, help: str, disabled: bool = False) -> None:
    name = widget(key, value)
    st.toggle(label, key=name, on_change=chosen, args=(key, name), help=help, disabled=disabled)


def _with(choices: Iterable[Any], value: Any) -> list[Any]:
    """Return the choices in order, the value of the file or link among them."""
    return sorted({*choices, value})


def _port_choices(cluster: Cluster, settings: Settings) -> list[int]:
    """Return how many ports a server may have: multiples of the switches, or any number where any switch may be used."""
    if settings.any_port:
        return list(range(1, max(8, cluster.switches) + 1))
    return [cluster.switches * k for k in range(1, max(4, 8 // cluster.switches) + 1)]


def _doubling(servers: int) -> list[int]:
    """Return circuits a switch may carry: halves and doubles around one a server."""
    return sorted({max(1, servers // 4), max(1, servers // 2), servers, servers * 2, servers * 4})


def engine_choice() -> None:
    """Offer which exact engine proves, for how long and on how many cores."""
    settings = scenario().made()
    words = {
        "auto": "auto (CP-SAT and search)",
        "cpsat": "CP-SAT, constraints",
        "highs": "HiGHS, step model",
        "printed": "the printed MIP",
    }
    key = widget("engine", settings.engine if settings.engine in words else "auto")
    st.selectbox(
        "Exact engine",
        list(words),
        format_func=words.__getitem__,
        key=key,
        on_change=chosen,
        args=("engine", key),
        help="The list scheduler answers every slider; this engine proves. auto: CP-SAT and the local search side by "
        "side, HiGHS with them from the third core on. The printed MIP is for small graphs.",
    )
    key = widget("time_limit_s", settings.time_limit_s)
    st.select_slider(
        "Time limit",
        _with((5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0), settings.time_limit_s),
        key=key,
        format_func=lambda v: f"{short(v)} s" if v < 120 else f"{short(v / 60)} min",
        on_change=chosen,
        args=("time_limit_s", key),
    )
    key = widget("threads", settings.threads)
    cores = os.cpu_count() or 1
    st.select_slider(
        "Cores",
        _with((n for n in (1, 2, 3, 4, 6, 8, 12, 16) if n <= max(2, cores)), settings.threads),
        key=key,
        on_change=chosen,
        args=("threads", key),
        help=f"How many cores a solve may use; this machine has {cores}.",
    )
