"""Circuits that are re-evaluated at intervals from what is not sent yet (TopoOpt, Figure 17).

The job begins on the circuits that TopologyFinder fixed. At every interval the unsent bytes of the
transfers under way are dealt circuits greedily; what changes is dark for the reconfiguration delay.
Circuits and the clock of the intervals go on from iteration to iteration.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from topox_core.errors import refuse_if
from topox_core.fabrics.fixed.static import laid_by
from topox_core.fabrics.fluid.links import LinkRoutes, ideal_bound, traffic_over, wired
from topox_core.fabrics.fluid.simulator import BATCHES_BETWEEN_STOPS, Pairs, Simulation, go_on
from topox_core.fabrics.run import FabricRequest, FabricRun, Traffic
from topox_core.model.execution import Circuits, Execution, Layout
from topox_core.model.transfer_graph import FloatArray, IntArray, TransferGraph
from topox_core.runs.run import Stop
from topox_core.topology.greedy import Circuits as Matrix, greedy_circuits, repaired, with_kept
from topox_core.topology.routing import RoutedNetwork

# Iterations are repeated until so many intervals are covered.
INTERVALS = 3
MAX_EVALUATIONS = 5_000


@dataclass(frozen=True)
class Iteration:
    """One iteration among several: its execution, what was changed in it, and how far its bytes went.

    ``times`` iterations in a row are alike, because no interval ended in them.
    """

    execution: Execution
    traffic: Traffic
    changed: int
    dark_ms: float
    times: int = 1


def run_reevaluated(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run iterations until three intervals are covered; return the one nearest to their mean.

    Raises
    ------
    InputError
        If an option is out of range, or as :func:`~topox_core.fabrics.fixed.static.run_static`.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    options = request.options
    how = "servers forward" if options.forwarding else "nothing is forwarded"
    message = f"re-evaluated every {options.reevaluate_ms:g} ms, {how}"
    return typical_run("reevaluated", request, reevaluated(request, stop), message)


def typical_run(
    fabric: str, request: FabricRequest, iterations: Sequence[Iteration], message: str
) -> FabricRun:
    """Return the iteration nearest to the mean as the run of a fabric whose iterations differ; the message says the mean."""
    count, mean = sum(one.times for one in iterations), mean_ms(iterations)
    typical = min(iterations, key=lambda one: abs(one.execution.makespan_ms - mean))
    bound = ideal_bound(replace(request, graph=typical.execution.graph))
    return FabricRun.of(
        fabric,
        typical.execution,
        bound,
        request.settings,
        traffic=typical.traffic,
        circuits_changed=typical.changed,
        dark_ms=typical.dark_ms,
        message=message + (f"; mean of {count} iterations {mean:.6g} ms" if count > 1 else ""),
    )


def mean_ms(iterations: Sequence[Iteration]) -> float:
    """Return the mean length of an iteration."""
    whole = sum(one.execution.makespan_ms * one.times for one in iterations)
    return whole / sum(one.times for one in iterations)


def reevaluated(request: FabricRequest, stop: Stop) -> list[Iteration]:
    """Return the iterations that cover three intervals, in their order; raises as :func:`run_reevaluated`."""
    layout, graph = laid_by(request, stop)
    controller = _Controller(replace(request, graph=graph), layout)
    covered = INTERVALS * request.options.reevaluate_ms
    found: list[Iteration] = []
    while not found or controller.since_ms < covered:
        found.append(controller.iteration(stop))
    return found


def reevaluated_in_turn(
    request: FabricRequest, layout: Layout, graphs: Iterable[TransferGraph], stop: Stop
) -> list[Iteration]:
    """Return one iteration of each graph, circuits and intervals going on from one to the next.

    Parameters
    ----------
    request
        Its graph has the same transfers as all ``graphs``, which differ in bytes alone.
    layout
        The circuits at the start.

    Raises
    ------
    InputError, Stopped
        As :func:`run_reevaluated`.
    """
    controller = _Controller(request, layout)
    return [controller.iteration(stop, graph) for graph in graphs]


class _Controller:
    """Circuits that are up, those that come, and the clock over all iterations; the first are those of a layout."""

    def __init__(self, request: FabricRequest, first: Layout) -> None:
        self.options, self.cluster, self.graph = request.options, request.cluster, request.graph
        self.exclusive, self.first = request.settings.exclusive_devices, first
        self.up = first.circuits[: self.cluster.servers, : self.cluster.servers].copy()
        self.coming: Matrix | None = None
        self.since_ms = self.up_ms = 0.0
        self.next_ms, self.evaluations = self.options.reevaluate_ms, 0
        self.pairs = Pairs.of(self.graph, self.cluster)
        self.wirings: dict[bytes, LinkRoutes] = {}
        # A layout that cannot carry the job is refused as on fixed circuits.
        self.one_shot = wired(self.first, self.pairs, self.cluster)

    def iteration(self, stop: Stop, graph: TransferGraph | None = None) -> Iteration:
        """Run one iteration from where the last one left the circuits; ``graph`` if its bytes are of its own."""
        alone, sent = graph is not None, list[tuple[IntArray, FloatArray]]()
        graph = self.graph if graph is None else graph
        self.changed, self.dark_ms = 0, 0.0
        wiring, evaluations = self._wiring(), self.evaluations
        run = Simulation(graph, self.cluster, self.pairs, wiring.network, self.exclusive)
        left = run.plan.part_bytes
        moved = self.coming is not None
        while True:
            boundary = self.up_ms if self.coming is not None else self.next_ms
            latest = max(boundary - self.since_ms, run.now_ms)
            while run.advance(BATCHES_BETWEEN_STOPS, latest):
                go_on(stop)
            now_left = run.unsent(run.now_ms if run.over else latest)
            paths = len(wiring.path_hops)
            sent_bytes = np.bincount(run.plan.part_class, left - now_left, paths)
            sent.append((wiring.path_hops, np.asarray(sent_bytes, np.float64)))
            left = now_left
            if run.over:
                break
            if self.coming is not None:
                self.up, self.coming = self.coming, None
                interval = self.options.reevaluate_ms
                self.next_ms = interval * (math.floor(boundary / interval * (1 + 1e-12)) + 1)
            elif not self._evaluate(run, latest):
                continue
            moved = True
            wiring = self._wiring()
            run = run.moved_to(wiring.network, latest)
            left = run.plan.part_bytes
        execution = Execution(graph, self.cluster, run.state.start, run.state.end, Circuits.none())
        length = execution.makespan_ms
        times = 1
        if not (alone or moved) and evaluations == self.evaluations and length > 0:
            # Nothing happens until the next interval ends, so all iterations until then are alike.
            times = max(1, math.floor((self.next_ms - self.since_ms) / length))
        self.since_ms += times * length if length > 0 else math.inf
        hops, path_bytes = zip(*sent, strict=True)
        traffic = traffic_over(np.concatenate(hops), np.concatenate(path_bytes))
        return Iteration(execution, traffic, self.changed, self.dark_ms, times)

    def _evaluate(self, run: Simulation, now_ms: float) -> bool:
        """Choose circuits for what is not sent; return whether any change."""
        self.evaluations += 1
        refuse_if(
            (
                self.evaluations > MAX_EVALUATIONS,
                f"is so short that circuits would be re-evaluated more than {MAX_EVALUATIONS:,} times",
            ),
            file="settings",
            field="reevaluate_ms",
        )
        boundary, delay_ms = self.next_ms, self.cluster.reconfiguration_ms
        self.next_ms += self.options.reevaluate_ms
        # What is not sent of transfers under way, by pair.
        left = run.unsent_of_tasks(now_ms)
        open_ends = np.isnan(run.state.end) | np.isinf(run.state.end)
        under_way = (run.state.waiting == 0) & open_ends & (self.pairs.of_node >= 0) & (left > 0)
        wanted = self.graph.matrix(left, np.flatnonzero(under_way), self.cluster.servers)
        if not wanted.any():
            return False
        ports = self.cluster.ports_per_server
        chosen = with_kept(greedy_circuits(wanted, ports), self.up, ports)
        if self.options.forwarding:
            chosen = repaired(chosen, self.pairs.ends, wanted, ports)
        if np.array_equal(chosen, self.up):
            return False
        new = int(np.maximum(chosen - self.up, 0).sum())
        self.changed += new
        if delay_ms <= 0:
            self.up = chosen
            return True
        pause_all = self.options.pause == "all"
        self.dark_ms += delay_ms * (int(chosen.sum()) if pause_all else new)
        self.up = np.zeros_like(chosen) if pause_all else np.minimum(self.up, chosen)
        self.coming, self.up_ms = chosen, boundary + delay_ms
        return True

    def _wiring(self) -> LinkRoutes:
        """Return the links that are up, with one shortest path per pair, or direct circuits alone."""
        if self.options.forwarding and np.array_equal(self.up, self.first.circuits):
            return self.one_shot
        key = self.up.tobytes()
        if key not in self.wirings:
            network = RoutedNetwork(self.up)
            most = len(self.up) if self.options.forwarding else 1
            routes = {
                (a, b): network.shortest_paths(a, b)
                for a, b in self.pairs.ends
                if 0 < network.hops_to(b)[a] <= most
            }
            self.wirings[key] = wired(Layout(self.up, routes), self.pairs, self.cluster, True)
        return self.wirings[key]
