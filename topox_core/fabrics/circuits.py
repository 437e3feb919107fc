"""Circuits switched while the job runs: on demand (reactive) or beforehand (provisioned).

After Opus (arXiv 2507.08119, section on the control plane): a controller that serves requests first
come, first served, never tears down a circuit in use and pays the delay each time a port changes;
and one that has profiled an iteration and requests the next circuit as soon as the ports fall idle.
Continuous time, no slots. docs/fabrics.md says what is decided how, and why provisioned is never
later.
"""

from __future__ import annotations

from topox_core.fabrics.circuit_requests import Profile
from topox_core.fabrics.circuit_traffic import circuit_traffic
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.run import Breakdown, FabricRequest, FabricRun
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.circuit_bound import circuit_bound


def run_reactive(order: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration whose circuits are requested on demand, first come first served.

    Raises
    ------
    InputError
        If the graph names a server that the cluster lacks, or ports cannot be cabled evenly.
    Stopped
        If ``stop()`` is true.
    """
    _go_on(stop)
    profile = Profile.of(order)
    return circuit_run("reactive", order, execution_of(profile, profile.known.start))


def run_provisioned(order: FabricRequest, stop: Stop) -> FabricRun:
    """Run the reactive iteration's orders, each circuit requested as soon as its ports are idle.

    The starts satisfy start >= max(ready, end of the previous use of both ports + delay) (Opus,
    speculative provisioning). No task starts later than under :func:`run_reactive`.

    Raises
    ------
    InputError
        As :func:`run_reactive`.
    Stopped
        If ``stop()`` is true.
    """
    _go_on(stop)
    profile = Profile.of(order)
    return circuit_run("provisioned", order, execution_of(profile, profile.provisioned_start_ms()))


def _go_on(stop: Stop) -> None:
    # One sweep in compiled code takes milliseconds, so it is not interrupted.
    if stop():
        raise Stopped


def execution_of(profile: Profile, start_ms: FloatArray) -> Execution:
    """Return the execution for given starts on a profile's ports."""
    return Execution(
        profile.graph,
        profile.cluster,
        start_ms,
        start_ms + profile.length_ms,
        profile.circuits(start_ms),
    )


def circuit_run(
    fabric: str, order: FabricRequest, execution: Execution, message: str = ""
) -> FabricRun:
    """Return a run with the bound and the measures of circuits."""
    exclusive = order.settings.exclusive_devices
    bound = circuit_bound(order.graph, order.cluster, exclusive)
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
    )
