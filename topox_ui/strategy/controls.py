"""The Strategy page's sidebar, and the strategy file a reader brings."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.strategy.models import MODELS, Model
from topox_core.strategy.moves import SearchSettings
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Strategy
from topox_core.strategy.strategy_file import load_strategy
from topox_ui.shell.page import escape
from topox_ui.strategy.search_run import Request

SERVERS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
BUDGETS = (0, 100, 300, 1_000, 3_000, 10_000, 30_000)
PORTS = (1, 2, 4, 6, 8)
SPEEDS = (10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0, 800.0)
NETWORKS = {"switch": "one switch", "circuits": "circuits"}
KEPT = "w_strategy_"
WAYS = {"search": "operators", "plans": "plans"}


def recall() -> None:
    """Give widgets the values they had when this page was left: Streamlit forgets those of pages that are not drawn."""
    for key, value in st.session_state.get("strategy_kept", {}).items():
        if key not in st.session_state:
            st.session_state[key] = value


def remember() -> None:
    """Keep the values of this page's widgets for when the reader comes back."""
    values = {
        str(key): st.session_state[key] for key in st.session_state if str(key).startswith(KEPT)
    }
    st.session_state["strategy_kept"] = {**st.session_state.get("strategy_kept", {}), **values}


def pick_model() -> tuple[Model, str, int]:
    """Draw the first choices in the sidebar; return model, way and servers."""
    recall()
    with st.sidebar:
        st.divider()
        st.html('<p class="side">Model</p>')
        name = st.selectbox(
            "Model", list(MODELS), key="w_strategy_model", label_visibility="collapsed"
        )
        model = MODELS[str(name)]
        st.html(f'<p class="quiet">{escape(model.meaning)}</p>')
        way = "search"
        if model.shape is not None:
            way = str(
                st.segmented_control(
                    "Split",
                    list(WAYS),
                    default="plans",
                    key=f"w_strategy_way_{model.name}",
                    required=True,
                    format_func=WAYS.__getitem__,
                    help="plans: all of TP x PP x DP x CP x EP and microbatches that fit the memory, ranked. "
                    "operators: a search over every operator's own split.",
                )
            )
        choices = sorted({*SERVERS, model.servers})
        servers = st.select_slider(
            "Servers", choices, value=model.servers, key=f"w_strategy_servers_of_{model.name}"
        )
    return model, way, int(servers)


def pick_request(graph: OperatorGraph, servers: int) -> Request:
    """Draw the search's choices in the sidebar; raises InputError where an imported strategy does not suit the model."""
    with st.sidebar:
        ports = int(
            st.select_slider("Ports per server", PORTS, value=4, key="w_strategy_search_ports")
        )
        speed = float(
            st.select_slider(
                "Port speed",
                SPEEDS,
                value=100.0,
                key="w_strategy_search_speed",
                format_func=lambda v: f"{v:g}G",
            )
        )
        network = str(
            st.segmented_control(
                "Network",
                list(NETWORKS),
                default="switch",
                key="w_strategy_network",
                required=True,
                format_func=NETWORKS.__getitem__,
                help="one switch: nothing but a server's own ports is scarce. circuits: fixed before the "
                "job, found anew as the strategy changes (TopoOpt's two searches in turn).",
            )
        )
        budget = int(
            st.select_slider(
                "Proposals",
                BUDGETS,
                value=1_000,
                key="w_strategy_budget",
                format_func=lambda v: f"{v:,}",
            )
        )
        with st.expander("More choices", key="more_search", type="compact"):
            memory = float(
                st.number_input(
                    "Memory of a GPU, GB",
                    value=float(graph.memory_gb),
                    min_value=0.0,
                    max_value=10_000.0,
                    step=8.0,
                    key=f"w_strategy_memory_{graph.name}",
                )
            )
            alpha = float(
                st.number_input(
                    "alpha",
                    value=1.0,
                    min_value=0.0,
                    max_value=1e6,
                    key="w_strategy_alpha",
                    help="A strategy dT ms slower is taken with probability exp(-alpha dT).",
                )
            )
            seed = int(
                st.number_input(
                    "Seed", value=0, min_value=0, max_value=1_000_000, step=1, key="w_strategy_seed"
                )
            )
    remember()
    settings = SearchSettings(budget, alpha, seed, memory)
    fixed, start = _imported(graph, servers)
    if start is not None and network != "switch":
        raise InputError("can only stay fixed in a search on circuits", file="imported strategy")
    return Request(graph, servers, ports, speed, network, settings, fixed, start)


def _imported(graph: OperatorGraph, servers: int) -> tuple[tuple[Any, ...], Strategy | None]:
    """Return what the imported file fixes, or where it starts."""
    known = st.session_state.get("strategy_file")
    if known is None:
        return (), None
    data, name = known
    strategy = load_strategy(data, name, graph)
    if strategy.servers != servers:
        raise InputError(
            f"must be {servers}, the servers chosen here (got {strategy.servers})",
            file=name,
            field="servers",
        )
    if st.session_state.get("w_strategy_import_as", "fixed") == "fixed":
        return strategy.placements, None
    return (), strategy


def import_box() -> None:
    """Offer to bring a strategy file."""
    with st.popover("Import", icon=":material/upload:"):
        file = st.file_uploader(
            "Strategy (.strategy.json)", type=["json"], key="w_strategy_file", max_upload_size=5
        )
        now = st.session_state.get("strategy_file")
        chosen = (file.getvalue(), file.name) if file is not None else None
        if chosen != now:
            st.session_state["strategy_file"] = chosen
            st.rerun()
        st.segmented_control(
            "Its operators",
            ["fixed", "start"],
            default="fixed",
            key="w_strategy_import_as",
            required=True,
            format_func={"fixed": "stay fixed", "start": "are the start"}.__getitem__,
            help="A file may name some operators only: fixed, the search leaves those as they are.",
        )
