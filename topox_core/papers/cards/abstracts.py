"""Papers of which only the abstract is public: DELTA, Spectra, SWOT and MixNet, each beside what is built here without them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from topox_core.demand.planning import lower_bound, plan_demand
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.fabrics.comparison.compare import run_one, run_with_best_lowering
from topox_core.fabrics.comparison.gated_iterations import (
    FAT_TREE,
    OVERSUBSCRIBED,
    REGIONAL,
    GatedNetwork,
    gated_networks,
)
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest, FabricRun, JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import FloatArray
from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.papers.topoopt_jobs import PLANNER
from topox_core.runs.run import never
from topox_core.schedule.settings import Settings as PlannerSettings
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


def saved_by_graph(
    name: str, over: str, ports: int, steps: int
) -> tuple[dict[str, float], float, float]:
    """Return what circuits from the task graph save against others on one of :data:`JOBS`, and an iteration on each in ms.

    Shares by series: of what an iteration takes longer than its computing alone (``time``), of the
    circuits (``ports``), and of what it takes longer than on an ideal switch (``gap``); what there is
    none of saves nothing.
    """
    graph, cluster = generate(name) if name == PIPELINE else load_sample(name)
    cluster = cluster.changed(ports_per_server=ports, switches=ports)
    order = FabricRequest(lower(graph, PLANNER.lowering), cluster, PLANNER)
    fixed, other = (
        run_one("static", replace(order, options=FabricOptions(layout_by=by)))
        for by in ("topoopt", "matrix" if over == "bytes" else "topoopt")
    )
    searched = FabricOptions(layout_steps=steps)
    own = run_one("static_graph", replace(order, runs={"static": fixed}, options=searched))
    runs = {"static": other, "static_graph": own}
    beside = JobRequest(graph, cluster, PLANNER, runs=runs)
    ideal_ms = run_with_best_lowering("ideal", beside).iteration_ms
    endless = FabricOptions(equivalent_gbps=ENDLESS_GBPS)
    computing_ms = run_one("fat_tree", replace(order, options=endless)).iteration_ms
    shares = {
        "time": _share(own.iteration_ms - computing_ms, other.iteration_ms - computing_ms),
        "ports": _share(_circuits(own), _circuits(other)),
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


def delta_circuits(run: CardRun) -> Rows:
    """DELTA's fixed circuits from the task graph, beside ours: communication time, circuits and gap against circuits by bytes."""
    over, ports, steps = (run.settings[key] for key in ("over", "ports", "steps"))
    for name, words in JOBS.items():
        shares, graph_ms, other_ms = saved_by_graph(name, str(over), int(ports), int(steps))
        data = {"task_graph_ms": graph_ms, "other_ms": other_ms}
        for series in run.card.series:
            yield run.row(series, words, 100 * shares[series], data=data)


def moe(rng: np.random.Generator) -> FloatArray:
    """Return an experts' exchange on 32 ports: all senders share the popularity of the experts (Dirichlet, all ones), with noise."""
    demand = rng.dirichlet(np.ones(32)) * rng.uniform(0.9, 1.1, (32, 32))
    return np.asarray(demand / max(demand.sum(axis=0).max(), demand.sum(axis=1).max()))


def moe_each(rng: np.random.Generator) -> FloatArray:
    """Return such an exchange with shares of its own for each receiver."""
    return np.asarray(rng.dirichlet(np.ones(32), 32).T)


def gpt(rng: np.random.Generator) -> FloatArray:
    """Return a band of three diagonals on 32 ports: neighbours in a pipeline and in rings of two strides."""
    ports, demand = 32, np.zeros((32, 32))
    for stride, share in ((1, 0.5), (4, 0.3), (8, 0.2)):
        at = np.arange(ports)
        demand[at, (at + stride) % ports] = share * rng.uniform(0.9, 1.1, ports)
    return demand


def flows(rng: np.random.Generator) -> FloatArray:
    """Return four large and twelve small flows from and to each of 100 ports, 70 and 30 % of the bytes, with noise."""
    ports, demand = 100, np.zeros((100, 100))
    for count, share in ((4, 0.7), (12, 0.3)):
        for _ in range(count):
            sizes = share / count * rng.uniform(0.9, 1.1, ports)
            demand[np.arange(ports), rng.permutation(ports)] += sizes
    return demand


KINDS: dict[str, Callable[[np.random.Generator], FloatArray]] = {
    "moe": moe,
    "each": moe_each,
    "gpt": gpt,
    "flows": flows,
}


# Of a kind of matrix: its words, and the ratio that the abstract prints for such traffic.
RATIOS = {
    "gpt": ("language model (band of diagonals), 32 ports", 1.4),
    "moe": ("mixture of experts, 32 ports", 1.9),
    "flows": ("benchmark (4 large, 12 small flows), 100 ports", 2.4),
}


def spectra_ratios(run: CardRun) -> Rows:
    """Spectra's ratios over a baseline, beside ours over two baselines of our own: both sides of theirs are open."""
    switches, delay_ms = int(run.settings["switches"]), float(run.settings["delay_ms"])
    for kind, (words, theirs) in RATIOS.items():
        demand = KINDS[kind](np.random.default_rng(int(run.settings["seed"])))
        ours, *others = (
            plan_demand(demand, switches, delay_ms, method=method, use_lp=False).makespan_ms
            for method in ("best", "peeled", "shared")
        )
        yield run.row("bound", words, ours / lower_bound(demand, switches, delay_ms).ms)
        for series, other in zip(("peeled", "shared"), others, strict=True):
            yield run.row(series, words, other / ours, printed=theirs)


MEMBERS, GBPS = 8, 100.0
MEGABYTES = (1.0, 10.0, 100.0, 1000.0)
COLLECTIVES = ("all_to_all", "all_reduce")


def saved_inside(kind: str, megabytes: float, ports: int, delay_ms: float) -> float:
    """Return by which share switching inside a collective shortens it against fixed circuits."""
    task = Task(
        "c", kind, dependencies=(), members=tuple(range(MEMBERS)), size_bytes=1e6 * megabytes
    )
    cluster = Cluster(MEMBERS, ports, 1, MEMBERS * ports, GBPS).changed(reconfiguration_ms=delay_ms)
    settings = PlannerSettings.of(engine="list", free=("rings", "algorithm"))
    request = JobRequest(TaskGraph("one collective", (task,)), cluster, settings)
    fixed = run_one("static", request.lowered(settings.lowering)).iteration_ms
    return 1 - run_with_best_lowering("in_collective", request).iteration_ms / fixed


def swot_inside(run: CardRun) -> Rows:
    """SWOT's reduction against static circuits, beside ours: one collective with circuits that change inside it."""
    ports, delay_ms = int(run.settings["ports"]), float(run.settings["delay_ms"])
    shares = []
    for kind in COLLECTIVES:
        for megabytes in MEGABYTES:
            shares.append(100 * saved_inside(kind, megabytes, ports, delay_ms))
            yield run.row(kind, f"{megabytes:g} MB", shares[-1])
    yield run.row("most", "up to", max(shares))


JOB, PORTS, ITERATIONS = "moe", 8, 5
# By port speed in Gbit/s: the range that the abstract prints.
PER_DOLLAR = {100.0: (1.2, 1.5), 400.0: (1.9, 2.3)}
SKEWS = {0.0: "even experts", 1.0: "skew 1", 2.0: "skew 2"}


def gated(settings: Settings, port_gbps: float, skew: float) -> dict[str, GatedNetwork]:
    """Return what each network makes of a mixture of experts whose gating is drawn anew for every iteration."""
    graph, cluster = load_sample(JOB)
    cluster = cluster.changed(
        ports_per_server=PORTS,
        switches=PORTS,
        port_gbps=port_gbps,
        reconfiguration_ms=float(settings["delay_ms"]),
    )
    options = FabricOptions(
        regional_packet_ports=int(settings["packet_ports"]),
        regional_circuits=str(settings["when"]),
        gating="walk",
        gating_skew=skew,
        gating_iterations=ITERATIONS,
    )
    planner = replace(PLANNER, seed=int(settings["seed"]))
    order = FabricRequest(lower(graph, planner.lowering), cluster, planner, options)
    names = (FAT_TREE, OVERSUBSCRIBED, REGIONAL)
    return gated_networks(order, PRICE_SETS[SET_BY_SPEED], names, never)


def mixnet_dollars(run: CardRun) -> Rows:
    """MixNet's work per dollar, beside ours: regional circuits for experts against fat-trees, with gating that changes."""
    for port_gbps, (low, high) in PER_DOLLAR.items():
        speed = f"{port_gbps:g} Gbit/s"
        for skew, words in SKEWS.items():
            runs = gated(run.settings, port_gbps, skew)
            own, item = runs[REGIONAL], f"{speed}, {words}"
            for rival in (FAT_TREE, OVERSUBSCRIBED):
                ratio = own.work_a_dollar_over(runs[rival])
                data = {"regional_ms": own.mean_ms, "rival_ms": runs[rival].mean_ms}
                yield run.row(rival, item, ratio, data=data, low=low, high=high, speed=speed)
            yield run.row("time", item, own.mean_ms / runs[FAT_TREE].mean_ms)
        for part, usd in (("packet", own.packet_usd), ("optical", own.optical_usd)):
            yield run.row("cost", f"{speed}, {part} part", usd / 1000)
