"""Circuits switched while the job runs: on demand (reactive) or beforehand (provisioned).

After Opus (arXiv 2507.08119, section on the control plane): a controller that serves requests first
come, first served, never tears down a circuit in use and pays the delay each time a port changes;
and one that has profiled an iteration and requests the next circuit as soon as the ports fall idle.
Continuous time, no slots. docs/fabrics.md says what is decided how, and why provisioned is never
later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import refuse_if
from topox_core.fabrics.fluid.simulator import check_servers, go_on
from topox_core.fabrics.kernels.circuit_requests import (
    Requests,
    RequestTables,
    RequestTasks,
    first_come_first_served,
    passed_on,
    unused,
)
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.cluster import Cluster
from topox_core.model.execution import BookedPorts, Circuits, Execution
from topox_core.model.transfer_graph import (
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    durations_ms,
)
from topox_core.runs.run import Stop
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.kernels.known_order import Holders, Orders, around
from topox_core.schedule.planning.replay import starts_in_order
from topox_core.text.numbers import short

# Iterations on demand in a row until they come back to one that was there: 2,000 random graphs took
# turns of at most 30, dlrm-16 at 0.1 ms has not come back. Of so many turns the best order for circuits
# requested beforehand is looked for: 818 ms on moe at 10 ms, where the last turn's takes 868.
MAX_ITERATIONS, MAX_PROFILES = 40, 8
TIME_ALIKE = 1e-9  # relative, and of a millisecond
MAX_PORTS = 50_000_000  # ports of all talking servers, about 30 bytes each


@dataclass(frozen=True)
class Profile:
    """An iteration, first come first served: orders and ports that later ones repeat.

    Where iterations repeat, each begins with the circuits that the one before has left, until one is
    as another was.

    Attributes
    ----------
    tasks, wiring
        What is served, and the ports of the talking servers as numbers.
    known, first
        Order, ports and who came before whom: in the iteration that takes least once circuits are
        requested beforehand, of those that take turns, and in the first, which finds every port
        unused.
    repeats
        Whether the circuits at the end are those of the next beginning.
    turns_ms
        How long the iterations take that follow one another in turn: one where circuits come back
        after each.
    came_back
        Whether they do; if not, the turns are the later half of all.
    """

    graph: TransferGraph
    cluster: Cluster
    tasks: RequestTasks
    wiring: RequestTables
    known: Requests
    first: Requests
    repeats: bool
    turns_ms: tuple[float, ...]
    came_back: bool

    @staticmethod
    def of(request: FabricRequest) -> Profile:
        """Serve the graph's requests first come first served.

        Raises
        ------
        InputError
            If the graph names a server that the cluster lacks, or its ports cannot be cabled
            evenly.
        """
        graph, cluster = request.graph, request.cluster
        length = durations_ms(graph, cluster)
        carried = (graph.kind == TRANSFER) & (length > 0)
        device, places = graph.devices(request.settings.exclusive_devices)
        server, wiring = _wiring(request, carried)
        chosen = np.full(len(graph), -1, np.int32)
        tasks = RequestTasks(
            np.diff(graph.pred_ptr),
            *graph.successors,
            np.zeros(len(graph.pred_idx)),
            length,
            carried,
            device,
            len(places),
            np.searchsorted(server, graph.source).astype(np.int32),
            np.searchsorted(server, graph.destination).astype(np.int32),
            *(chosen, chosen, chosen),
        )
        repeats = request.settings.repeats
        rows, begins = _iterations(tasks, wiring, cluster.reconfiguration_ms, repeats)
        turns_ms = tuple(float((row.start + length).max(initial=0.0)) for row in rows[begins:])
        came_back = len(rows) < MAX_ITERATIONS
        profiles = [
            Profile(graph, cluster, tasks, wiring, row, rows[0], repeats, turns_ms, came_back)
            for row in rows[begins:][-MAX_PROFILES:]
        ]
        return min(profiles, key=Profile.provisioned_ms) if len(profiles) > 1 else profiles[0]

    @property
    def length_ms(self) -> FloatArray:
        """How long every node takes."""
        return self.tasks.length

    @property
    def first_ms(self) -> float:
        """How long the first iteration takes on demand."""
        return float((self.first.start + self.length_ms).max(initial=0.0))

    @cached_property
    def orders(self) -> Orders:
        """Who comes before whom, around the clock where the iteration repeats."""
        known = self.known
        ports = np.stack([known.out_port, known.in_port])
        held = Holders(known.switch, ports, known.switch)
        return around(known.orders, held) if self.repeats else known.orders

    def provisioned_start_ms(self, first: bool = False) -> FloatArray:
        """Return the starts when every circuit is requested as soon as its ports fall idle; of the first iteration, if asked."""
        return starts_in_order(
            self.graph.pred_ptr,
            self.graph.pred_idx,
            self.length_ms,
            self.first.orders if first else self.orders,
            self.cluster.reconfiguration_ms,
            0.0,
            np.zeros(len(self.graph), np.bool_),
        )

    def provisioned_ms(self, first: bool = False) -> float:
        """Return when the last task ends then."""
        return float((self.provisioned_start_ms(first) + self.length_ms).max(initial=0.0))

    @property
    def booked_ports(self) -> BookedPorts:
        """Switch and ports of every transfer, and whether a port changed its circuit for it."""
        known, k = self.known, self.wiring.k
        node = np.flatnonzero(known.switch >= 0).astype(np.int32)
        return BookedPorts(
            node,
            known.switch[node],
            (known.out_port[node] % k).astype(np.int32),
            (known.in_port[node] % k).astype(np.int32),
            self.orders.changed[node],
        )

    def execution(self, start_ms: FloatArray, on_demand: bool = False) -> Execution:
        """Return the execution for given starts; a port that changes is dark up to the start.

        On demand it changes where it did in the iteration before, provisioned where it always does.
        """
        booked, delay_ms = self.booked_ports, self.cluster.reconfiguration_ms
        if on_demand:
            booked = replace(booked, changed=self.known.orders.changed[booked.node])
        end_ms = start_ms + self.length_ms
        circuits = Circuits.at(self.graph, booked, start_ms, end_ms, delay_ms)
        return Execution(self.graph, self.cluster, start_ms, end_ms, circuits)


def _iterations(
    tasks: RequestTasks, wiring: RequestTables, dark: float, repeats: bool
) -> tuple[list[Requests], int]:
    """Return iterations in a row up to the first that is as one before, and where those begin that take turns.

    Only the first where iterations do not repeat, or there is nothing to pay for.
    """
    ports = unused(wiring)
    rows = [first_come_first_served(tasks, wiring, dark, ports)]
    while repeats and dark > 0 and len(rows) < MAX_ITERATIONS:
        period = float((rows[-1].start + tasks.length).max(initial=0.0))
        ports = passed_on(ports, period)
        rows.append(first_come_first_served(tasks, wiring, dark, ports))
        for k in range(len(rows) - 2, -1, -1):
            if _alike(rows[k], rows[-1]):
                return rows, k + 1
    return rows, len(rows) // 2


def _alike(one: Requests, other: Requests) -> bool:
    """Return whether two iterations use the same ports at the same times."""
    same = [np.array_equal(getattr(one, at), getattr(other, at)) for at in ("out_port", "in_port")]
    return all(same) and bool(np.allclose(one.start, other.start, TIME_ALIKE, TIME_ALIKE))


def _wiring(request: FabricRequest, carried: NDArray[np.bool_]) -> tuple[IntArray, RequestTables]:
    """Return the talking servers and their ports, no more on a switch than they have transfers."""
    graph, cluster = request.graph, request.cluster
    highest = check_servers(graph, cluster)
    refuse_if(
        (
            cluster.ports_per_server % cluster.switches,
            f"must be a multiple of switches ({cluster.switches}): circuits that are switched hold real ports, "
            f"spread evenly (got {cluster.ports_per_server})",
        ),
        file="cluster",
        field="ports_per_server",
    )
    k = cluster.ports_per_server // cluster.switches
    half = cluster.duplex == "half"
    source, destination = graph.source[carried], graph.destination[carried]
    server = np.unique(np.concatenate([source, destination])).astype(np.int32)
    outs = np.bincount(source, minlength=highest + 1)
    ins = np.bincount(destination, minlength=highest + 1)
    busiest = (
        int((outs + ins).max(initial=1))
        if half
        else int(max(outs.max(initial=1), ins.max(initial=1)))
    )
    k = min(k, max(1, busiest))
    ports = (1 if half else 2) * len(server) * cluster.switches * k
    refuse_if(
        (
            ports > MAX_PORTS,
            f"{len(server):,} talking servers have {ports:,} ports (limit {MAX_PORTS:,})",
        ),
        file="cluster",
        field="ports_per_server",
    )
    most = len(server) * k // 2 if half else min(int((outs > 0).sum()), int((ins > 0).sum())) * k
    limit = cluster.ports_per_switch if cluster.ports_per_switch < most else 0
    return server, RequestTables(len(server), cluster.switches, k, half, limit)


def run_reactive(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration whose circuits are requested on demand, first come first served.

    Raises
    ------
    InputError
        If the graph names a server that the cluster lacks, or ports cannot be cabled evenly.
    Stopped
        If ``stop()`` is true.
    """
    go_on(stop)  # one sweep in compiled code takes milliseconds: it is not interrupted
    profile = Profile.of(request)
    turns_ms = profile.turns_ms
    execution = profile.execution(profile.known.start, on_demand=True)
    run = circuit_run("reactive", request, execution, profile.first_ms, _in_turn(profile))
    return run if len(turns_ms) < 2 else replace(run, mean_ms=sum(turns_ms) / len(turns_ms))


def run_provisioned(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run the reactive iteration's orders, each circuit requested as soon as its ports are idle.

    The starts satisfy start >= max(ready, end of the previous use of both ports + delay) (Opus,
    speculative provisioning). No task starts later than under :func:`run_reactive`, as long as each
    iteration on demand is like the last.

    Raises
    ------
    InputError
        As :func:`run_reactive`.
    Stopped
        If ``stop()`` is true.
    """
    go_on(stop)
    profile = Profile.of(request)
    execution = profile.execution(profile.provisioned_start_ms())
    return circuit_run("provisioned", request, execution, profile.provisioned_ms(first=True))


def _in_turn(profile: Profile) -> str:
    """Say that iterations on demand differ for good; empty where each is as the one before."""
    turns = len(profile.turns_ms)
    low, high = (short(one(profile.turns_ms)) for one in (min, max))
    if turns == 1 or low == high:
        return ""
    if not profile.came_back:
        return (
            f"After {MAX_ITERATIONS} iterations the circuits do not repeat; the time is the mean of the last "
            f"{turns}, {low} to {high} ms."
        )
    return f"{turns} iterations of {low} to {high} ms repeat; the time is their mean."


def circuit_run(
    fabric: str,
    request: FabricRequest,
    execution: Execution,
    first_ms: float,
    message: str = "",
) -> FabricRun:
    """Return a run with the bound and the measures of circuits, and what its first iteration took."""
    bound = circuit_bound(request.graph, request.cluster, request.settings)
    differs = abs(first_ms - execution.makespan_ms) > 1e-9 * execution.makespan_ms
    return FabricRun.of(
        fabric,
        execution,
        bound,
        request.settings,
        message=message,
        first_ms=first_ms if differs else None,
    )
