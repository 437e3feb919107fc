"""DELTA's fixed circuits from the task graph, beside ours: communication time, circuits and gap against circuits by bytes."""

from dataclasses import replace

from topox_core.fabrics.compare import run_one
from topox_core.fabrics.layout_search import layout_by_graph, layout_by_matrix
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.lowering import lower
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.topoopt_jobs import PLANNER
from topox_core.runs.run import never
from topox_core.workloads.catalogue import generate
from topox_core.workloads.samples import load_sample

PIPELINE = "gpt-small"
JOBS = {
    "llama3-8b": "Llama 3 8B",
    PIPELINE: "deep pipeline",
    "fsdp": "sharded weights",
    "dlrm-16": "DLRM",
}
# A link so fast that nothing waits for it.
ENDLESS_GBPS = 1e9


def saved(name: str, over: str, ports: int, steps: int) -> tuple[dict[str, float], float, float]:
    """Return what circuits from the task graph save against others on one of :data:`JOBS`, and an iteration on each in ms.

    Shares by series: of what an iteration takes longer than its computing alone (``time``), of the
    circuits (``ports``), and of what it takes longer than on an ideal switch (``gap``); what there is
    none of saves nothing.
    """
    graph, cluster = generate(name) if name == PIPELINE else load_sample(name)
    cluster = cluster.changed(ports_per_server=ports, switches=ports)
    order = FabricRequest(lower(graph, PLANNER.lowering), cluster, PLANNER)
    fixed = run_one("static", order)
    if over == "bytes":
        dealt = layout_by_matrix(order).best
        options = FabricOptions(layout=dealt.layout)
        other = run_one("static", replace(order, graph=dealt.graph, options=options))
    else:
        other = fixed
    tried = replace(order, runs={"static": fixed}, options=FabricOptions(layout_steps=steps))
    found = layout_by_graph(tried, never)
    best = found.best
    own = run_one(
        "static", replace(order, graph=best.graph, options=FabricOptions(layout=best.layout))
    )
    runs = {"static": other, "static_graph": own}
    ideal_ms = run_one("ideal", replace(order, runs=runs)).iteration_ms
    endless = FabricOptions(equivalent_gbps=ENDLESS_GBPS)
    computing_ms = run_one("fat_tree", replace(order, options=endless)).iteration_ms
    shares = {
        "time": _share(own.iteration_ms - computing_ms, other.iteration_ms - computing_ms),
        "ports": _share(found.circuits, _circuits(other)),
        "gap": _share(own.iteration_ms - ideal_ms, other.iteration_ms - ideal_ms),
    }
    return shares, own.iteration_ms, other.iteration_ms


def _circuits(run: FabricRun) -> int:
    layout = run.execution.layout
    assert layout is not None  # fixed circuits have one
    return int(layout.circuits.sum())


def _share(mine: float, other: float) -> float:
    """Return how much less one is than the other."""
    return 1 - mine / other if other > 1e-9 else 0.0


def rows(run: CardRun) -> Rows:
    over, ports, steps = (run.settings[key] for key in ("over", "ports", "steps"))
    for name, words in JOBS.items():
        shares, graph_ms, other_ms = saved(name, str(over), int(ports), int(steps))
        data = {"task_graph_ms": graph_ms, "other_ms": other_ms}
        for series in run.card.series:
            yield run.row(series, words, 100 * shares[series], data=data)


def said(run: CardRun) -> dict[str, str]:
    none = [row.item for row in run.of("time") if row.ours < 0.05]
    return {"nothing": f" Nothing is gained on {' and '.join(none)}." if none else ""}
