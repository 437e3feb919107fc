"""What each row of TOPO-X Table III is computed from; called in child processes.

Its TopoOpt column is of static circuits as FlexNet's simulator runs them: links are booked first come,
first served. That simulator, which came with TopoOpt, does not share a link. A transfer that becomes
ready books every link of its route at once, each for its bytes at full speed from when the link is
free; the next hop may begin a latency after this one. A booking is never moved, so the time that a link
waits for the hop before it is lost. That is why its iterations are longer than max-min fair sharing
makes them on the same circuits. Written from a description of the simulator's rules, not from its code.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from topox_core.errors import InputError, refuse_if
from topox_core.fabrics.comparison.compare import run_one
from topox_core.fabrics.fluid.links import ideal_bound, static_layout
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.model.arrays.waiting_order import last_end
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.execution import Layout
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, TransferGraph, bytes_per_ms
from topox_core.papers.card import Settings as Switches
from topox_core.papers.topoopt_jobs import fabric_ms
from topox_core.schedule.planning.replay import released_unrounded
from topox_core.schedule.settings import Settings
from topox_core.workloads.catalogue import generate

# An all-reduce first adds up within the server: 2 S / (4 GPUs x 200 Gbit/s), as TopoOpt's scripts
# set it.
INTRA_SERVER_BYTES_PER_MS = 5e7
LATENCY_MS = 0.001


@dataclass(frozen=True)
class Printed:
    """One row of Table III as printed; ``configuration`` is the row of Table II."""

    number: int
    servers: int
    degree: int
    port_gbps: float
    topoopt_ms: float
    topox_ms: float

    @property
    def configuration(self) -> int:
        """Row of Table II: 1 runs on 128 servers, 2 on 16."""
        return 1 if self.servers == 128 else 2

    @property
    def speed_up(self) -> float:
        """What changing circuits gains by the printed times."""
        return self.topoopt_ms / self.topox_ms

    @property
    def about(self) -> str:
        """The network in words."""
        return f"{self.servers} servers, {self.degree} × {self.port_gbps:g} Gbit/s"

    @property
    def cluster(self) -> Cluster:
        """The cluster: one port of every server on each switch, slots of 1 ms (section V), full duplex."""
        return one_port_a_switch(self.servers, self.degree, self.port_gbps)


TABLE = tuple(
    Printed(*row)
    for row in (
        (1, 128, 4, 40.0, 303.020, 150.864),
        (2, 128, 6, 40.0, 177.487, 108.617),
        (3, 128, 4, 100.0, 126.908, 66.093),
        (4, 128, 6, 100.0, 75.131, 52.533),
        (5, 16, 4, 10.0, 195.958, 32.226),
        (6, 16, 4, 25.0, 89.299, 23.278),
        (7, 16, 4, 40.0, 61.517, 21.236),
        (8, 16, 4, 100.0, 27.974, 20.227),
        (9, 16, 4, 200.0, 16.623, 16.623),
        (10, 16, 8, 10.0, 83.417, 23.226),
        (11, 16, 8, 25.0, 37.610, 18.796),
        (12, 16, 8, 40.0, 24.504, 18.364),
        (13, 16, 8, 100.0, 15.832, 15.832),
        (14, 16, 8, 200.0, 14.667, 14.667),
    )
)


@dataclass(frozen=True)
class Ours:
    """Our fabrics on one row, all on the same graph.

    Attributes
    ----------
    static_ms, scheduled_ms
        Circuits fixed by TopologyFinder and shared max-min fairly; circuits planned with the
        transfers.
    bound_ms, bound_by
        What nothing on these ports can beat: d_S * B out of and into every server, devices one task
        at a time.
    plan_bound_ms
        What no plan on these slots can beat, on continuous time no plan that switches.
    on_slots
        Whether the plan's transfers take whole slots.
    """

    static_ms: float
    scheduled_ms: float
    bound_ms: float
    bound_by: str
    plan_bound_ms: float
    on_slots: bool = True


# Times that differ by less than this share are called the same; speed-ups of so little are none.
SAME = 1e-6
# The static side of a comparison, by whether TOPO-X's network carries the all-reduce.
STATIC_SIDE = {"off": "TopoOpt's column", "on": "our static fabric"}


@dataclass(frozen=True)
class Known:
    """All that was computed for one row of the table."""

    printed: Printed
    topoopt_ms: float
    off: Ours
    on: Ours

    def reported_ms(self, mode: str) -> float:
        """Return what the paper would report: the plan, or the static fabric where that is faster.

        With the all-reduce off the network the static side is the TopoOpt column, which carries it:
        so the paper compares. With it on, the static side is our own, on the same graph and clock.
        """
        return min(
            self.static_ms(mode), self.off.scheduled_ms if mode == "off" else self.on.scheduled_ms
        )

    def static_ms(self, mode: str) -> float:
        """Return the static side of the comparison in a mode."""
        return self.topoopt_ms if mode == "off" else self.on.static_ms

    def falls_back(self, mode: str) -> bool:
        """Whether the static fabric is reported because the plan is not faster."""
        return self.reported_ms(mode) >= self.static_ms(mode) * (1 - SAME)

    def out_of_reach(self, mode: str) -> bool:
        """Whether no schedule could have taken as short as is printed."""
        side = self.off if mode == "off" else self.on
        return self.printed.topox_ms < side.bound_ms * (1 - SAME)

    def counts_with(self, mode: str) -> str:
        """Return the column that is reported in place of the plan; empty where the print is out of reach of both."""
        fixed = self.falls_back(mode) and not self.out_of_reach(mode)
        return STATIC_SIDE[mode] if fixed else ""

    def speed_up(self, mode: str) -> float:
        """Return static over reported, 1 where it falls back."""
        return self.static_ms(mode) / self.reported_ms(mode)

    @property
    def most(self) -> float:
        """The most that any schedule could gain over our own static result with the all-reduce on the network."""
        return self.on.static_ms / self.on.bound_ms


@lru_cache(maxsize=2)
def _graph(configuration: int, element_bytes: int) -> TaskGraph:
    return generate("dlrm", {"configuration": configuration, "mp_element_bytes": element_bytes})[0]


@lru_cache(maxsize=4)
def lowered(
    configuration: int, element_bytes: int, on_network: bool, rings: int = 1
) -> TransferGraph:
    """Return a row of Table II as transfers."""
    return lower(
        _graph(configuration, element_bytes),
        Lowering(rings=rings, all_reduce_on_network=on_network),
    )


def topoopt_ms(row: Printed, switches: Switches) -> float:
    """Return TopoOpt's iteration as rebuilt: TopologyFinder's circuits, links booked or shared.

    All-reduce on the network.
    """
    graph, cluster = lowered(row.configuration, int(switches["topoopt_bytes"]), True), row.cluster
    variant = str(switches["topoopt_variant"])
    if switches["links"] == "shared":
        options = FabricOptions(topology_variant=variant)
        return fabric_ms("static", graph, cluster, options, _settings(switches, Lowering()))
    result, graph = static_layout(graph, cluster, variant, int(switches["seed"]))
    return booked_iteration_ms(graph, cluster, result.layout)


def ours(row: Printed, on_network: bool, switches: Switches) -> Ours:
    """Return our static and scheduled fabrics on a row, and the bounds."""
    bytes_, rings = (
        int(switches["bytes"]),
        row.degree if switches["rings"] == "degree" else int(switches["rings"]),
    )
    graph = lowered(row.configuration, bytes_, on_network)
    settings = _settings(switches, graph.lowering)
    cluster = row.cluster
    options = FabricOptions(topology_variant=str(switches["variant"]))
    request = FabricRequest(graph, cluster, settings, options)
    static, floor = run_one("static", request), ideal_bound(request)
    planned = lowered(row.configuration, bytes_, on_network, rings) if on_network else graph
    slotted = cluster.changed(
        slot_ms=float(switches["slot_ms"]),
        duplex="half" if switches["duplex"] == "half" else "full",
        ports_per_switch=row.servers // (2 if switches["circuits"] == "half" else 1),
    )
    settings = _settings(switches, planned.lowering)
    plan = run_one("scheduled", FabricRequest(planned, slotted, settings))
    scheduled_ms, bound_ms = plan.iteration_ms, plan.bound_ms
    if switches["release"] == "unrounded" and settings.on_slots:
        refuse_if(
            (
                settings.circuits == "per-slot",
                "needs circuits that stay on real ports: set model to continuous",
            ),
            file="card topox-table3",
            field="release",
        )
        early = released_unrounded(plan.execution, settings.exclusive_devices)
        # The bound of whole slots does not hold for what is released earlier.
        scheduled_ms, bound_ms = early.makespan_ms, min(plan.bound_ms, floor.ms)
    return Ours(
        static.iteration_ms, scheduled_ms, floor.ms, floor.text, bound_ms, settings.on_slots
    )


def _settings(switches: Switches, lowering: Lowering) -> Settings:
    seed, model = int(switches["seed"]), switches["model"]
    if model == "printed":
        return Settings.of("paper", engine="list", lowering=lowering, seed=seed)
    per_slot = model == "per-slot"
    return Settings.of(
        circuits="per-slot" if per_slot else "continuous",
        clock="slots" if per_slot or switches["clock"] == "slots" else "continuous",
        iteration="first",
        switching="planned",  # the static side of the comparison is a column of its own
        engine="list",
        lowering=lowering,
        seed=seed,
    )


def booked_iteration_ms(graph: TransferGraph, cluster: Cluster, layout: Layout) -> float:
    """Return the iteration time when links are booked in the order in which transfers become ready.

    Devices run one task at a time in the same order; ties go by the order of the graph. Where a
    pair has several routes each carries an equal share. Latency is 1 us a hop.

    Raises
    ------
    InputError
        If two talking servers have no route; they are named.
    """
    succ_ptr, succ_idx = (array.tolist() for array in graph.successors)
    following = [succ_idx[first:until] for first, until in pairwise(succ_ptr)]
    kind, duration, size = (
        array.tolist() for array in (graph.kind, graph.duration_ms, graph.size_bytes)
    )
    device = list(zip(graph.server.tolist(), graph.device.tolist(), strict=True))
    ends = list(zip(graph.source.tolist(), graph.destination.tolist(), strict=True))
    joins = intra_server_ms(graph)
    link_bytes_per_ms = layout.circuits * bytes_per_ms(cluster.port_gbps)
    # When every device and link is free.
    idle: dict[tuple[int, int], float] = {}
    free: dict[tuple[int, int], float] = {}

    def end(i: int, ready: float) -> float:
        """Return the end of a task that is ready now, booking what it uses."""
        if kind[i] == COMPUTE:
            idle[device[i]] = max(ready, idle.get(device[i], 0.0)) + duration[i]
            return idle[device[i]]
        return moved(i, ready + joins[i]) if kind[i] == TRANSFER else ready

    def moved(i: int, ready: float) -> float:
        if not np.isnan(duration[i]):
            return ready + float(duration[i])
        routes = layout.routes.get(ends[i], ())
        if not routes:
            source, destination = ends[i]
            raise InputError(
                f"server {source} sends to server {destination}, but no route leads there",
                file="layout",
            )
        ended = ready
        for route in routes:
            at = ready
            for link in pairwise(route):
                start = max(at, free.get(link, 0.0))
                free[link] = start + size[i] / len(routes) / float(link_bytes_per_ms[link])
                at = start + LATENCY_MS
                ended = max(ended, free[link] + LATENCY_MS)
        return ended

    return last_end(following, end)


def intra_server_ms(graph: TransferGraph) -> list[float]:
    """Return for each node how long an all-reduce first runs within the servers.

    0 for all other nodes.
    """
    of_all_reduce = np.array([kind == "all_reduce" for kind in graph.task_kind], np.bool_)
    nodes = np.flatnonzero(of_all_reduce & (graph.kind == TRANSFER))
    origin, source = graph.origin[nodes].astype(np.int64), graph.source[nodes]
    servers = int(source.max(initial=0)) + 1
    total = np.bincount(origin, graph.size_bytes[nodes])
    members = np.bincount(np.unique(origin * servers + source) // servers)
    lasting_ms = np.zeros(len(graph))
    lasting_ms[nodes] = (total / (2 * (members - 1)) / INTRA_SERVER_BYTES_PER_MS)[origin]
    return lasting_ms.tolist()
