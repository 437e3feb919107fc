"""What the page Plans says of a strategy however it was found: its operators, their costs, its files."""

from collections import Counter
from functools import partial
from typing import Any

import streamlit as st

from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Placement, Strategy, dump_strategy, task_graph
from topox_core.text.numbers import plural
from topox_ui.shell.charts import Content, escape, frame, quiet
from topox_ui.shell.downloads import download_menu, link_menu, offer_task_graph
from topox_ui.state.loading import loaded, own_job
from topox_ui.strategy.controls import Search
from topox_ui.strategy.state import OWN_STRATEGY

ALL_FROM = {
    "measured": "all measured",
    "roofline": "all a roofline",
    "closed form": "all from one training iteration in closed form",
}
KEPT_HERE = "A link can carry the model with every choice. Your own strategy file stays on this machine: send the file."


def strategy_link() -> None:
    """Offer the link that restores every choice of the page, or say why there is none."""
    link_menu(KEPT_HERE if OWN_STRATEGY.there else "")


def loaded_job_note() -> None:
    """Say whose model this is, and what a split has to do with optical switches."""
    job = loaded()
    why = (
        "choose it under Model"
        if own_job() is not None
        else "it is a task graph, which does not say how its model could be split"
    )
    quiet(
        (
            "This is a sample model"
            if job is None
            else f"The loaded job, <b>{escape(job.title)}</b>, is not used here: {why}"
        )
        + ". A split decides which servers exchange data, and so which circuits are needed. To judge it on circuits or on "
        "another fabric, choose <b>a fabric</b> under Network."
    )


def operator_costs(graph: OperatorGraph, servers: int) -> None:
    """Draw what each operator costs, and where that is from."""
    counts = Counter(cost.source for one in graph.operators for cost in one.costs.values())
    every = plural(counts.total(), "cost")
    source_words = f"{counts['measured']} of {every} measured, the rest a roofline"
    if len(counts) == 1:
        source_words = ALL_FROM[next(iter(counts))]
    frame(
        _costs(graph, servers),
        column_config={"parameters": st.column_config.NumberColumn(format="localized")},
        title=(
            "Time of each operator",
            f"ms on one server, forward + backward, by how many servers its batch is split over; {source_words}",
        ),
    )
    quiet(f"{escape(graph.source)}")


def placed(one: Placement) -> str:
    """Return over how many servers an operator is split and which is the first, in words."""
    if one.partitions == 1:
        return f"on server {one.start} alone"
    return f"over {one.partitions} servers from {one.start}"


# The columns that fit beside a figure, whose table has all.
IN_VIEW = ("operator", "split over (servers)", "data parallelism", "memory (GB)")


def operators_table(
    graph: OperatorGraph, strategy: Strategy, start: Strategy
) -> list[dict[str, Any]]:
    """Return the operators of a strategy beside those of data parallel; what differs comes first."""
    rows = []
    for new, old in zip(strategy.placements, start.placements, strict=True):
        operator = graph.operator(new.operator)
        cost = operator.costs[new.partitions]
        rows.append(
            {
                "operator": new.operator,
                "split over (servers)": new.partitions,
                "first server": new.start,
                "data parallelism": placed(old),
                "differs": new != old,
                "forward (ms)": cost.forward_ms,
                "backward (ms)": cost.backward_ms,
                "memory (GB)": cost.memory_bytes / 1e9,
                "cost from": cost.source,
            }
        )
    return sorted(rows, key=lambda row: not row["differs"])


def _costs(graph: OperatorGraph, servers: int) -> Content:
    """Return a row an operator, a column a number of partitions that suits the servers; a star marks measured times."""
    partitions = sorted(
        {p for operator in graph.operators for p in graph.choices(operator, servers)}
    )
    rows = []
    for operator in graph.operators:
        allowed = graph.choices(operator, servers)
        source = {operator.costs[p].source for p in allowed}
        rows.append(
            {
                "operator": operator.name,
                "kind": operator.kind,
                "cost from": " and ".join(sorted(source)) or "none",
                "parameters": operator.parameters,
                **{
                    f"on {p}": operator.costs[p].forward_ms + operator.costs[p].backward_ms
                    if p in allowed
                    else None
                    for p in partitions
                },
            }
        )
    return rows


def take_strategy_away(search: Search, strategy: Strategy, start: Strategy) -> None:
    """Offer the strategy, its task graph and the cluster as files, and the graph to the other pages."""
    graph, cluster = search.graph, search.cluster
    tasks = partial(task_graph, graph, strategy, search.settings.memory_gb)
    download_menu(
        f"{graph.name}-{strategy.servers}",
        [
            ("Strategy (JSON)", ".strategy.json", lambda: dump_strategy(strategy)),
            ("Data parallel (JSON)", "-data-parallel.strategy.json", lambda: dump_strategy(start)),
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(tasks())),
            ("Cluster (JSON)", ".cluster.json", lambda: dump_cluster(cluster)),
        ],
    )
    offer_task_graph(
        "use_graph",
        lambda: (tasks(), cluster),
        "Load it: Schedule and Compare then show this iteration.",
    )
