"""Fixed circuits where the bytes or the task graph lay the circuits: what an iteration takes, and every circuit."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import streamlit as st

from topox_core.fabrics.compare import same_time
from topox_core.fabrics.layout_search import LayoutAnswer, layout_by_matrix
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.static import graph_layout
from topox_core.figures.palette import Theme
from topox_core.figures.topology import hops
from topox_core.model.execution import Layout
from topox_core.model.lowering import lower
from topox_core.text.numbers import count, percent, plural, time
from topox_core.topology.routing import RoutedNetwork
from topox_ui.answers.case import Case, listing
from topox_ui.answers.contest import contest_of
from topox_ui.answers.running import run_all
from topox_ui.runs.owner import session_over
from topox_ui.shell.charts import chart, frame, kpis
from topox_ui.shell.page import chart_title, escape, headline, quiet, when_opened
from topox_ui.state.loading import Loaded, cluster_words
from topox_ui.topology.laying import degree_of
from topox_ui.topology.state import TopologyState

MAX_ROWS = 5_000


def searched(case: Case) -> tuple[LayoutAnswer, float | None]:
    """Lay the circuits as the page says; return them, and the time of TopologyFinder's (None where those cannot run).

    Raises
    ------
    InputError
        If there are none.
    """
    by = TopologyState.now().layout_by
    at_degree = replace(case, cluster=case.cluster.changed(ports_per_server=degree_of(case)))
    contest = contest_of(at_degree)
    fabrics = ("static", "static_graph") if by == "graph" else ("static",)
    runs, _ = run_all(at_degree, replace(contest, fabrics=fabrics))
    fixed = {name: run for name, run in runs.items() if name == "static"}
    settings = listing(case.settings)
    order = FabricRequest(
        lower(case.graph, settings.lowering), at_degree.cluster, settings, contest.options, fixed
    )
    answer = layout_by_matrix(order) if by == "matrix" else graph_layout(order, session_over())
    return answer, fixed["static"].iteration_ms if fixed else None


def searched_topology(
    loaded: Loaded, case: Case, answer: LayoutAnswer, topoopt_ms: float | None, theme: Theme
) -> None:
    """Write what these circuits make of the job, and draw and list them."""
    by, best = TopologyState.now().layout_by, answer.best
    words = "the task graph" if by == "graph" else "the bytes between servers"
    headline(
        f"Fixed circuits · {escape(loaded.title)} · {cluster_words(case.cluster)}, circuits by {words}",
        f"Fixed circuits laid by {words} take <b>{time(best.time_ms)}</b>{_against(best.time_ms, topoopt_ms)}.",
    )
    ports = best.layout.servers * degree_of(case)
    tried = "every possible layout" if answer.every else "starting from the best known"
    kpis(
        ("Iteration time", time(best.time_ms), "links shared fairly"),
        (
            "TopoOpt",
            "–" if topoopt_ms is None else time(topoopt_ms),
            "the same job on its circuits",
        ),
        ("Circuits", count(answer.circuits), f"of {count(ports)} that the ports allow"),
        ("Given back", count(answer.given_back), "without losing time"),
        ("Layouts tried", count(answer.evaluations), tried),
    )
    left, right = st.columns([1.1, 1], gap="medium")
    with left:
        _hops(best.layout, theme)
    with right:
        chart_title("Layouts at the start of the search", "iteration time of each")
        frame(
            {
                "Iteration time": [
                    time(value) if value < math.inf else "not connected"
                    for _, value in answer.starts
                ],
                "Layout": [name for name, _ in answer.starts],
            }
        )
        if by == "graph":
            quiet("Built from the abstract of DELTA, whose formulas we could not read.")
    when_opened("Every circuit", "searched_circuits", lambda: _circuits(best.layout), compact=True)


def _against(time_ms: float, topoopt_ms: float | None) -> str:
    """Return how these circuits compare with TopologyFinder's."""
    if topoopt_ms is None:
        return ""
    share = 1 - time_ms / topoopt_ms
    if same_time(time_ms, topoopt_ms):
        return ", as long as TopologyFinder's"
    less = "less" if share > 0 else "more"
    return f", <b>{percent(abs(share))}</b> {less} than TopologyFinder's ({time(topoopt_ms)})"


def _hops(layout: Layout, theme: Theme) -> None:
    matrix = RoutedNetwork(layout.circuits).hop_matrix()
    reach = matrix[matrix > 0]
    most = int(reach.max()) if len(reach) else 0
    note = f"{plural(most, 'hop')} at most; × no path"
    chart_title("Hops from server (down) to server (across)", note)
    n = layout.servers
    chart(
        hops(matrix, most, theme),
        "searched_hops",
        f"Hop counts between {n} servers: {note}.",
        lambda: pd.DataFrame(matrix, columns=[f"S{s}" for s in range(n)]).assign(
            source=[f"S{s}" for s in range(n)]
        ),
        "Hops as a table",
    )


def _circuits(layout: Layout) -> None:
    source, destination, parallel = (ends.tolist()[:MAX_ROWS] for ends in layout.links)
    frame(
        {
            "from": [f"S{a}" for a in source],
            "to": [f"S{b}" for b in destination],
            "circuits": parallel,
        }
    )
