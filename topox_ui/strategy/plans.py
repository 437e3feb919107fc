"""All parallel plans of a transformer under a memory limit, ranked by their iteration time in closed form."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.figures.strategy import plan_bars, plan_word
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.strategy.models import Model
from topox_core.strategy.on_fabrics import cluster_of
from topox_core.strategy.plan_graph import plan_graph
from topox_core.strategy.plan_search import Plans, RankedPlan, best_plans
from topox_core.strategy.plans import GpuCluster
from topox_core.strategy.strategy_file import dump_plan
from topox_core.strategy.transformers import Shape
from topox_core.text.numbers import count, percent, plural, short, time
from topox_ui.shell.charts import chart, frame, kpis, show_error
from topox_ui.shell.downloads import download_menu, offer_task_graph
from topox_ui.shell.page import chart_title, escape, headline
from topox_ui.state.store import state_of
from topox_ui.state.uploads import fitting
from topox_ui.state.widgets import menu, number, slide
from topox_ui.strategy.details import loaded_job_note, other_ways, strategy_link
from topox_ui.strategy.state import StrategyState

SHOWN = 8
LISTED = 300


def pick_cluster(servers: int, shape: Shape) -> tuple[GpuCluster, int]:
    """Draw the choices in the sidebar; return the GPUs and the sequences of an iteration."""
    with st.sidebar:
        gpus = slide("GPUs per server", StrategyState, "gpus", (1, 2, 4, 8, 16))
        memory = number(
            "Memory of a GPU, GB", StrategyState, "gpu_memory_gb", 0.0, 10_000.0, step=8.0
        )
        speed = slide(
            "Network of a GPU",
            StrategyState,
            "gpu_gbps",
            (100.0, 200.0, 400.0, 800.0, 1600.0),
            words=lambda v: f"{v:g}G",
        )
        batch = number(
            "Sequences an iteration",
            StrategyState,
            "batch",
            1,
            1_000_000,
            value=state_of(StrategyState).batch or int(shape.batch),
            step=1,
        )
    return GpuCluster(servers, gpus, memory_gb=memory, network_gbps=speed), batch


@st.cache_resource(max_entries=24, show_spinner="Ranking plans")
def _ranked(key: str, _shape: Shape, _cluster: GpuCluster, batch: int) -> Plans:  # noqa: ARG001
    return best_plans(_shape, _cluster, batch)


def plans_view(model: Model, cluster: GpuCluster, batch: int, theme: Theme) -> None:
    """Draw the ranked plans; raises InputError where none fits."""
    shape = model.shape
    assert shape is not None
    kicker = (
        f"Strategy · {model.name} · {plural(cluster.gpus, 'GPU')}, {cluster.memory_gb:g} GB each"
    )
    try:
        plans = _ranked(f"{model.name}|{cluster}|{batch}", shape, cluster, batch)
    except InputError as error:
        headline(
            kicker,
            "<b>No plan</b> can run like this: give GPUs more memory, take more servers, or change the batch.",
        )
        show_error(error)
        return
    best = plans.best
    headline(
        kicker,
        f"The fastest of {plural(len(plans.ranked), 'plan')} that fit the memory takes "
        f"<b>{time(best.time.total_ms)}</b>: {escape(best.plan.words)}.",
    )
    loaded_job_note()
    kpis(
        ("Iteration", time(best.time.total_ms), "in closed form"),
        ("Of peak", percent(best.time.utilisation), f"{cluster.tflops:g} TFLOP/s a GPU"),
        (
            "Memory",
            f"{short(best.memory.total_bytes / 1e9)} GB",
            f"of {cluster.memory_gb:g}, fullest stage",
        ),
        ("Too large", count(plans.too_large), f"of {plural(plans.considered, 'plan')}"),
        (
            "Bubble",
            percent(best.time.bubble_ms / best.time.total_ms),
            "filling and draining the pipeline",
        ),
    )
    names = [plan_word(one) for one in plans.ranked[:LISTED]]
    with st.container(horizontal=True, vertical_alignment="bottom", key="plan_actions"):
        at = menu(
            "Plan",
            StrategyState,
            "plan",
            {k: f"{k + 1}. {name}" for k, name in enumerate(names)},
            width=320,
            label_visibility="collapsed",
        )
        picked = plans.ranked[at]
        _take_away(model, shape, cluster, picked)
        strategy_link()
    chart_title(
        "Where the time goes",
        f"the {min(SHOWN, len(plans.ranked))} fastest plans; R: recomputing. A plan is TP PP DP (CP EP), "
        "microbatches × sequences",
    )
    chart(
        plan_bars(plans.ranked[:SHOWN], theme),
        "plans",
        "Iteration time of the fastest plans: "
        + "; ".join(
            f"{plan_word(one)} {short(one.time.total_ms)} ms" for one in plans.ranked[:SHOWN]
        ),
    )
    chart_title(
        "The plans that fit", f"the first {count(len(names))} of {count(len(plans.ranked))}"
    )
    frame(_table(plans.ranked[:LISTED]))
    other_ways(plans=True)


def _table(ranked: tuple[RankedPlan, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "TP": one.plan.tensor,
            "PP": one.plan.pipeline,
            "DP": one.plan.data,
            "CP": one.plan.context,
            "EP": one.plan.expert,
            "microbatches": one.plan.microbatches,
            "of": one.plan.microbatch_size,
            "recompute": one.plan.recompute,
            "iteration (ms)": one.time.total_ms,
            "of peak": one.time.utilisation,
            "memory (GB)": one.memory.total_bytes / 1e9,
            "compute": one.time.compute_ms,
            "tensor": one.time.tensor_ms,
            "context": one.time.context_ms,
            "experts": one.time.expert_ms,
            "sends": one.time.sends_ms,
            "bubble": one.time.bubble_ms,
            "gradients": one.time.gradients_ms,
            "update": one.time.update_ms,
        }
        for one in ranked
    )


def _take_away(model: Model, shape: Shape, cluster: GpuCluster, one: RankedPlan) -> None:
    tasks = partial(plan_graph, shape, one.plan, cluster)
    download_menu(
        f"{model.name}-{cluster.servers}",
        [
            (
                "Plan (JSON)",
                ".strategy.json",
                lambda: dump_plan(model.name, cluster.servers, one.plan),
            ),
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(tasks())),
        ],
    )
    ports = min(8, cluster.gpus_per_server)
    offer_task_graph(
        "use_plan",
        lambda: _with_circuits(tasks(), cluster.servers, ports, cluster.network_gbps),
        "Load the iteration of this plan: Schedule, Circuits, Compare and Topology then show it.",
    )


def _with_circuits(
    tasks: TaskGraph, servers: int, ports: int, port_gbps: float
) -> tuple[TaskGraph, Cluster]:
    """Return a task graph and a cluster with all its servers and devices, joined by optical switches."""
    plain = cluster_of(servers, ports, port_gbps)
    return tasks, replace(fitting(tasks, plain), name=plain.name)
