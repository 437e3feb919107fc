"""Regional circuits for experts (after MixNet): a packet switch with some ports, optical switches of regions with the others.

After MixNet (arXiv 2501.03905), built from its abstract and a conference summary. Transfers between
experts of one region take their circuit while it is up, everything else shares the packet switch;
circuits follow the bytes of the exchange at hand.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.fabrics.controllers.gating import Gating
from topox_core.fabrics.controllers.reevaluated import Iteration, typical_run
from topox_core.fabrics.fluid.simulator import FluidNetwork, Pairs, Simulation, check_servers, go_on
from topox_core.fabrics.options import GIVEN, FabricOptions
from topox_core.fabrics.run import FabricRequest, FabricRun, Traffic
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.transfer_graph import (
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    bytes_per_ms,
    work_bytes,
)
from topox_core.runs.run import Stop
from topox_core.topology.greedy import Circuits as Matrix, greedy_circuits

BATCHES_BETWEEN_STOPS = 2_000
MIN_GAIN = 1e-12  # as a share of the longest time
TOUCHED = 6  # times that one circuit more changes
MAX_ITERATIONS = 16  # of one graph, until circuits come back


def run_regional(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run iterations on a packet switch and regional circuits; return the one nearest to their mean.

    Of a server's ports e are on a packet switch that blocks nobody (e * B out and in), the others on
    the optical switch of its region. A circuit goes both ways (half duplex: one at a time) and takes
    a port at either end. Rates are max-min fair; a transfer between experts of a region moves to its
    circuit as soon as it is up and back to the packet switch when it goes.

    Raises
    ------
    InputError
        If an option is out of range, or a transfer has no way to its destination.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    iterations = regional_iterations(request, stop)
    # The bound lets every port send and receive at once, as those on the packet switch do.
    duplex = replace(request, cluster=request.cluster.changed(duplex="full"))
    return typical_run("regional", duplex, iterations, _words(request.options, request.cluster))


def _words(options: FabricOptions, cluster: Cluster) -> str:
    packet = options.packet_ports_of(cluster)
    size = min(options.region_servers or cluster.servers, cluster.servers)
    when = {
        "gate": "asked for when the gate is known",
        "foreseen": "asked for ahead of each exchange",
        "fixed": "the same for all exchanges",
    }[options.regional_circuits]
    return (
        f"{packet} packet and {cluster.ports_per_server - packet} optical ports per server, "
        f"regions of {size}, circuits {when}"
    )


def regional_iterations(request: FabricRequest, stop: Stop) -> list[Iteration]:
    """Return all iterations in their order; raises as :func:`run_regional`."""
    options = request.options
    options.check_regions(request.cluster)
    check_servers(request.graph, request.cluster)
    gating = Gating(request.graph, request.cluster, options, request.settings.seed)
    controller = _Controller(request, gating)
    if request.settings.repeats and options.gating_iterations == 1:
        return controller.repeated(stop)
    return [controller.iteration(number, stop) for number in range(options.gating_iterations)]


def dealt_circuits(wanted: FloatArray, ports: int, packet_ports: int, deal: str) -> Matrix:
    """Return symmetric circuits for a matrix of bytes: to the bottleneck, or to most bytes per circuit.

    Ports are those of every server on the optical switch; a circuit takes one at either end.
    """
    if ports == 0 or not wanted.any():
        return np.zeros(wanted.shape, np.int32)
    if deal == "bottleneck":
        return bottleneck_circuits(wanted, ports, packet_ports)
    return greedy_circuits(wanted + wanted.T, ports)  # symmetric, for its ties are


def bottleneck_circuits(wanted: FloatArray, ports: int, packet_ports: int) -> Matrix:
    """Return symmetric circuits dealt greedily, each to where the largest time, then the sum of squares, falls most.

    The time of a pair with circuits is its bytes over them; of a server's packet port, out and in
    apart, the bytes of its pairs without circuits over ``packet_ports``. Without packet ports a pair
    that has no circuit counts as if it had a millionth of one.
    """
    n, share = len(wanted), float(packet_ports) if packet_ports > 0 else 1e-6
    circuits, left = np.zeros((n, n), np.int32), np.full(n, ports)
    # Pairs one way, then the packet ports of each server out and in.
    times = np.concatenate(
        [np.zeros(n * n), wanted.sum(axis=1) / share, wanted.sum(axis=0) / share]
    )
    a, b = np.nonzero(np.triu(wanted + wanted.T, 1))
    there, back = wanted[a, b], wanted[b, a]
    # What a circuit touches: its pair both ways, and the first of a pair both servers' packet ports.
    ports_touched = (n * n + one for one in (a, b, n + a, n + b))
    touched = np.stack([a * n + b, b * n + a, *ports_touched], axis=1)
    moved = np.stack([there, back, back, there], axis=1) / share
    while True:
        now, count = times[touched], circuits[a, b]
        becomes = now.copy()
        becomes[:, 0], becomes[:, 1] = there / (count + 1), back / (count + 1)
        becomes[:, 2:] -= np.where(count[:, None] == 0, moved, 0.0)
        largest = np.argpartition(-times, TOUCHED)[: TOUCHED + 1]
        largest = largest[np.argsort(-times[largest])]
        other = np.argmin((largest[None, :, None] == touched[:, None, :]).any(axis=2), axis=1)
        longest = np.maximum(becomes.max(axis=1), times[largest[other]])
        gain = (now**2 - becomes**2).sum(axis=1)
        most = float(times.max())
        longest[(left[a] == 0) | (left[b] == 0)] = np.inf
        near = longest <= min(most, longest.min(initial=np.inf)) + MIN_GAIN * most
        if not near.any():
            return circuits
        best = int(np.argmax(np.where(near, gain, -np.inf)))
        if longest[best] >= most * (1 - MIN_GAIN) and gain[best] <= MIN_GAIN * most**2:
            return circuits
        times[touched[best]] = np.maximum(becomes[best], 0.0)
        ends = [a[best], b[best]]
        circuits[ends, ends[::-1]] += 1
        left[ends] -= 1


@dataclass(frozen=True)
class _Block:
    """The part of an exchange inside one region."""

    exchange: int
    region: int
    nodes: IntArray


class _Controller:
    """The controllers of all regions: circuits that are up, those that come, and the clock over all iterations.

    ``pairs`` number transfers between experts of one region, who may use circuits, apart from all others.

    Raises
    ------
    InputError
        If a transfer has no way.
    """

    def __init__(self, request: FabricRequest, gating: Gating) -> None:
        graph, self.options, self.cluster = request.graph, request.options, request.cluster
        self.exclusive, self.gating, n = (
            request.settings.exclusive_devices,
            gating,
            self.cluster.servers,
        )
        self.packet_ports = self.options.packet_ports_of(self.cluster)
        self.region = place = (np.arange(n) // (self.options.region_servers or n)).astype(np.int32)
        self.blocks: list[_Block] = []
        self.group = np.full(len(graph), -1, np.int32)  # the block of each node
        for number, one in enumerate(gating.exchanges):
            at = place[graph.source[one.nodes]]
            within = at == place[graph.destination[one.nodes]]
            for region in np.unique(at[within]).tolist():
                nodes = one.nodes[within & (at == region)]
                self.group[nodes] = len(self.blocks)
                self.blocks.append(_Block(number, region, nodes))
        outside = (graph.kind == TRANSFER) & (self.group < 0)
        if self.packet_ports == 0 and outside.any():
            node = int(np.argmax(outside))
            raise InputError(
                "must be at least 1, because not all transfers are between experts of one region "
                f"(server {graph.source[node]} sends to server {graph.destination[node]})",
                file="settings",
                field="regional_packet_ports",
            )
        self.pairs = Pairs.of(graph, self.cluster, apart=self.group >= 0)
        self.since_ms = 0.0
        self.coming: dict[int, tuple[Matrix, float]] = {}
        self.dealt: dict[tuple[int, int], Matrix] = {}
        self.of_region: dict[int, list[int]] = {}
        for k, block in enumerate(self.blocks):
            self.of_region.setdefault(block.region, []).append(k)
        self.up = np.zeros((n, n), np.int32)
        for region, numbers in self.of_region.items():
            inside = self._inside(region)
            if self.options.regional_circuits == "fixed":
                wanted = np.sum([self._bytes(k, -1) for k in numbers], axis=0)
                self.up[inside] = self._deal(wanted)
            else:
                self.up[inside] = self._target(numbers[0], 0)

    def _network(self) -> FluidNetwork:
        """Return the links of the packet switch, then a link for each pair of servers that circuits join."""
        n, pairs, up = self.cluster.servers, self.pairs, self.up
        half = self.cluster.duplex == "half"
        source, destination = np.nonzero(np.triu(up) if half else up)
        number = np.full((n, n), -1, np.int64)
        number[source, destination] = 2 * n + np.arange(len(source))
        if half:
            number = np.maximum(number, number.T)
        speed = bytes_per_ms(self.cluster.port_gbps)
        # A link of no capacity is on no path.
        packet = np.full(2 * n, max(self.packet_ports, 1) * speed)
        capacity = np.concatenate([packet, up[source, destination] * speed])
        joined = pairs.apart & (up[pairs.source, pairs.destination] > 0)
        over_packets = self.packet_ports > 0
        paths = [
            [[int(number[a, b])]] if circuit else ([[a, n + b]] if over_packets else [])
            for (a, b), circuit in zip(pairs.ends, joined.tolist(), strict=True)
        ]
        return FluidNetwork.of(capacity, paths)

    def _inside(self, region: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the index of the circuits of a region."""
        servers = np.flatnonzero(self.region == region)
        return servers[:, None], servers[None, :]

    def _bytes(self, block: int, iteration: int) -> FloatArray:
        """Return the bytes of a block in an iteration (-1: as the graph has them), between the servers of its region."""
        one = self.blocks[block]
        return self.gating.bytes_of(one.exchange, iteration)[self._inside(one.region)]

    def _deal(self, wanted: FloatArray) -> Matrix:
        optical = self.cluster.ports_per_server - self.packet_ports
        return dealt_circuits(wanted, optical, self.packet_ports, self.options.regional_dealt)

    def _target(self, block: int, iteration: int) -> Matrix:
        """Return the circuits asked for; ahead of a layer's gate they are dealt to the iteration before."""
        ahead = self.options.regional_circuits == "foreseen" and self.options.gating_iterations > 1
        if ahead and self.gating.is_first(self.blocks[block].exchange):
            iteration -= 1
        if self.options.gating == GIVEN:
            iteration = -1
        if (block, iteration) not in self.dealt:
            self.dealt[block, iteration] = self._deal(self._bytes(block, iteration))
        return self.dealt[block, iteration]

    def _ask(self, block: int, iteration: int, now_ms: float) -> bool:
        """Ask for the circuits of a block; return whether any go down or come up at once."""
        region = self.blocks[block].region
        inside, target = self._inside(region), self._target(block, iteration)
        up = self.up[inside]
        before = self.coming.pop(region, None)
        if before is not None and np.array_equal(before[0], target):
            self.coming[region] = before
            return False
        delay_ms = self.cluster.reconfiguration_ms
        new = int(np.maximum(target - up, 0).sum())
        self.changed += new
        self.dark_ms += delay_ms * new
        stays = target if delay_ms <= 0 else np.minimum(target, up)
        if not np.array_equal(stays, target):
            self.coming[region] = (target, self.since_ms + now_ms + delay_ms)
        self.up[inside] = stays
        return not np.array_equal(stays, up)

    def repeated(self, stop: Stop) -> list[Iteration]:
        """Run the same iteration again and again; return those that take turns once circuits come back (at most a few)."""
        states, rows = [self._state()], list[Iteration]()
        while len(rows) < MAX_ITERATIONS:
            rows.append(self.iteration(0, stop))
            if (state := self._state()) in states:
                return rows[states.index(state) :]
            states.append(state)
        return rows[-1:]

    def _state(self) -> Hashable:
        """Return the circuits that are up and those that come, and when, on the clock of the next iteration."""
        coming = (
            (region, target.tobytes(), round(due_ms - self.since_ms, 9))
            for region, (target, due_ms) in sorted(self.coming.items())
        )
        return self.up.tobytes(), tuple(coming)

    def iteration(self, number: int, stop: Stop) -> Iteration:
        """Run one iteration from where the last one left the circuits."""
        graph, cluster = self.gating.graph_of(number), self.cluster
        self.changed, self.dark_ms = 0, 0.0
        network = self._network()
        run = Simulation(graph, cluster, self.pairs, network, self.exclusive, self.group)
        known = np.full(len(self.blocks), -1, np.int32)
        while True:
            go_on(stop)
            at_ms = run.now_ms
            changes = self._listen(number, known, run.state.open, at_ms)
            known = run.state.open.copy()
            if not changes:
                latest_ms = min((due for _, due in self.coming.values()), default=math.inf)
                latest_ms -= self.since_ms
                more = run.advance(BATCHES_BETWEEN_STOPS, latest_ms)
                if more or not np.array_equal(run.state.open, known):
                    continue
                if run.over:
                    break
                if latest_ms == math.inf:
                    raise _stuck(graph, run)
                at_ms = max(latest_ms, at_ms)
                self._bring_up()
            run = run.moved_to(self._network(), at_ms)
        execution = Execution(graph, cluster, run.state.start, run.state.end, Circuits.none())
        self.since_ms += execution.makespan_ms
        traffic = Traffic(longest_hops=int(work_bytes(graph, cluster).any()))
        return Iteration(execution, traffic, self.changed, self.dark_ms)

    def _listen(self, number: int, known: IntArray, now_open: IntArray, now_ms: float) -> bool:
        """Ask for what the news call for; return whether any circuits change at once."""
        changes = False
        if self.options.regional_circuits == "gate":
            for k in np.flatnonzero((known < 0) & (now_open > 0)).tolist():
                changes |= self._ask(k, number, now_ms)
        elif self.options.regional_circuits == "foreseen":
            ended = np.flatnonzero((known != 0) & (now_open == 0)).tolist()
            for region in dict.fromkeys(self.blocks[k].region for k in ended):
                following = [(k, number) for k in self.of_region[region] if now_open[k] != 0]
                if number + 1 < self.options.gating_iterations:
                    following.append((self.of_region[region][0], number + 1))
                if following:
                    changes |= self._ask(*following[0], now_ms)
        return changes

    def _bring_up(self) -> None:
        """Let the circuits that come next carry."""
        due_ms = min(due for _, due in self.coming.values())
        for region in [r for r, (_, due) in self.coming.items() if due <= due_ms]:
            self.up[self._inside(region)] = self.coming.pop(region)[0]


def _stuck(graph: TransferGraph, run: Simulation) -> InputError:
    """Return the error for a transfer that waits for a circuit that nobody will ask for."""
    waiting = (run.state.waiting == 0) & ~(run.state.end <= run.now_ms) & (graph.kind == TRANSFER)
    node = int(np.argmax(waiting))
    return InputError(
        "must be at least 1 here: without packet ports server "
        f"{graph.source[node]} never gets a circuit to server {graph.destination[node]}",
        file="settings",
        field="regional_packet_ports",
    )
