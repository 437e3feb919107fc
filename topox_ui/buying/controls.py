"""The sidebar of Which switch: what is to be least, which networks, and what is assumed."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.model.cluster import Cluster
from topox_core.studies.buying import RIVALS
from topox_ui.buying.state import BuyingState
from topox_ui.state.loading import loaded_job
from topox_ui.state.widgets import control, number, pick, sidebar_part

BY = ("dollars", "time", "price")
PORTS = (1, 2, 4, 8)


def controls(cluster: Cluster) -> None:
    """Draw what can be chosen beside the switches themselves."""
    job = loaded_job()
    own = cluster.devices_per_server if job is None else job.machine.gpus_per_server
    with sidebar_part("What counts"):
        pick(
            "Minimise",
            BuyingState,
            "by",
            BY,
            help="Dollars per iteration: cost of network and GPUs per hour, times the iteration time. Or the time alone, or the price "
            "of the network alone.",
        )
        _ports(cluster)
        control(
            "pills",
            "Compared with",
            BuyingState,
            "rivals",
            options=tuple(RIVALS),
            words=lambda key: RIVALS[key][0],
            selection_mode="multi",
            take=lambda rivals: BuyingState.choose(rivals=rivals or None),
            help="Networks without an optical switch that changes circuits during the job.",
        )
        st.html('<p class="side">Assumed</p>')
        number(
            "GPU, per hour ($)",
            BuyingState,
            "usd_per_gpu_hour",
            0.0,
            10_000.0,
            step=0.1,
            help="With its server, power and building.",
        )
        number(
            "GPUs per server",
            BuyingState,
            "gpus_per_server",
            1,
            4_096,
            value=BuyingState.now().gpus_per_server or own,
            take=lambda value: BuyingState.choose(gpus_per_server=None if value == own else value),
            help="Their cost is counted while they wait for the network. Default: the job's own number.",
        )
        with st.expander("A year of the network", key="buying_year", type="compact"):
            number("Electricity, per kWh ($)", BuyingState, "usd_per_kwh", 0.0, 100.0, step=0.01)
            number("Written off over (years)", BuyingState, "years", 0.1, 100.0, step=0.5)
        st.caption(
            "Port speed, collectives and prices of other parts: Schedule and Cost; they hold here too."
        )


def _ports(cluster: Cluster) -> None:
    own = cluster.ports_per_server
    step = 1 if own == cluster.switches else cluster.switches
    now = BuyingState.now().ports
    options = sorted({own, *now, *(step * one for one in PORTS)})

    def take(ports: Any) -> None:
        BuyingState.choose(ports=None if tuple(ports) in ((), (own,)) else tuple(ports))

    control(
        "pills",
        "Ports per server",
        BuyingState,
        "ports",
        value=now or (own,),
        options=tuple(options),
        selection_mode="multi",
        take=take,
        help="Each number is tried; every port of a server goes to another switch. Default: the cluster's number.",
    )
