"""Circuits switched while the job runs: on demand (reactive) or beforehand (provisioned).

After Opus (arXiv 2507.08119, section on the control plane): a controller that serves requests first
come, first served, never tears down a circuit in use and pays the delay each time a port changes;
and one that has profiled an iteration and requests the next circuit as soon as the ports fall idle.
Continuous time, no slots. docs/fabrics.md says what is decided how, and why provisioned is never
later.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.circuit_requests import MAX_ITERATIONS, Profile
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.run import Breakdown, FabricRequest, FabricRun, Traffic
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import Execution
from topox_core.model.measures import in_port, out_port
from topox_core.model.transfer_graph import FloatArray, IntArray
from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.circuit_bound import circuit_bound
from topox_core.text.numbers import short


def circuit_traffic(execution: Execution) -> Traffic:
    """Return the traffic of direct circuits: bandwidth tax 1, and how busy each port is.

    One row an out-port (its destination -1, the switch) and one an in-port (its source -1). Dark
    time and idle circuits are not use.
    """
    circuits, cluster = execution.circuits, execution.cluster
    time = execution.makespan_ms or 1.0
    out_server, sent = _carrying(execution, out_port(circuits), circuits.source)
    in_server, received = _carrying(execution, in_port(circuits), circuits.destination)
    core = -np.ones(len(out_server) + len(in_server), np.int32)
    source, destination = core.copy(), core.copy()
    source[: len(out_server)] = out_server
    destination[len(out_server) :] = in_server
    busy = np.bincount(out_server, sent, cluster.servers) / (cluster.ports_per_server * time)
    return Traffic(
        bandwidth_tax=1.0,
        mean_hops=1.0,
        longest_hops=1 if len(circuits) else 0,
        link_source=source,
        link_destination=destination,
        link_gbps=np.full(len(core), cluster.port_gbps),
        link_busy=np.concatenate([sent, received]) / time,
        port_busy=busy,
    )


def _carrying(
    execution: Execution, port: NDArray[np.int64], server: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return server and carrying time of each port in use; a shared circuit counts once."""
    circuits = execution.circuits
    if not len(circuits):
        return np.zeros(0, np.int32), np.zeros(0)
    order = np.lexsort((circuits.start_ms, port))
    used, first, number = np.unique(port[order], return_index=True, return_inverse=True)
    begin, end = circuits.start_ms[order], circuits.end_ms[order]
    # Each port's clock is shifted beyond the last one's, so that one running maximum serves all.
    shift = (float(end.max()) + 1.0) * number
    reach = np.maximum.accumulate(end + shift)
    before = np.concatenate(([-np.inf], reach[:-1])) - shift
    time = np.clip(end - np.maximum(begin, before), 0.0, None)
    carrying: FloatArray = np.bincount(number, time, len(used)).astype(np.float64)
    return server[order][first], carrying


def run_reactive(request: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration whose circuits are requested on demand, first come first served.

    Raises
    ------
    InputError
        If the graph names a server that the cluster lacks, or ports cannot be cabled evenly.
    Stopped
        If ``stop()`` is true.
    """
    _go_on(stop)
    profile = Profile.of(request)
    turns_ms = profile.turns_ms
    execution = execution_of(profile, profile.known.start, on_demand=True)
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
    _go_on(stop)
    profile = Profile.of(request)
    execution = execution_of(profile, profile.provisioned_start_ms())
    return circuit_run("provisioned", request, execution, profile.provisioned_ms(first=True))


def _in_turn(profile: Profile) -> str:
    """Say that iterations on demand differ for good; empty where each is as the one before."""
    turns = len(profile.turns_ms)
    low, high = (short(one(profile.turns_ms)) for one in (min, max))
    if turns == 1 or low == high:
        return ""
    if not profile.came_back:
        return (
            f"After {MAX_ITERATIONS} iterations circuits have not come back; the mean of the last "
            f"{turns}, {low} to {high} ms, counts."
        )
    return f"{turns} iterations of {low} to {high} ms take turns; their mean counts."


def _go_on(stop: Stop) -> None:
    # One sweep in compiled code takes milliseconds, so it is not interrupted.
    if stop():
        raise Stopped


def execution_of(profile: Profile, start_ms: FloatArray, on_demand: bool = False) -> Execution:
    """Return the execution for given starts on a profile's ports, requested on demand or beforehand."""
    return Execution(
        profile.graph,
        profile.cluster,
        start_ms,
        start_ms + profile.length_ms,
        profile.circuits(start_ms, on_demand),
    )


def circuit_run(
    fabric: str,
    request: FabricRequest,
    execution: Execution,
    first_ms: float,
    message: str = "",
) -> FabricRun:
    """Return a run with the bound and the measures of circuits, and what its first iteration took."""
    exclusive = request.settings.exclusive_devices
    bound = circuit_bound(request.graph, request.cluster, request.settings)
    makespan = execution.makespan_ms
    # The two add the same numbers up in another order; a last bit must not put the bound above the
    # time.
    bound_ms = makespan if makespan < bound.ms <= makespan * (1 + 1e-9) else bound.ms
    circuits, path = execution.circuits, critical_path(execution, exclusive)
    return FabricRun(
        fabric=fabric,
        execution=execution,
        bound_ms=bound_ms,
        bound_by=bound.text,
        traffic=circuit_traffic(execution),
        path=path,
        breakdown=Breakdown.of(execution.graph, path),
        circuits_changed=int(circuits.changed.sum()),
        dark_ms=float((circuits.start_ms - circuits.setup_ms).sum()),
        message=message,
        first_ms=first_ms if abs(first_ms - makespan) > 1e-9 * makespan else None,
    )
