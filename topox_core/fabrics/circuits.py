"""Circuits switched while the job runs: on demand (reactive) or beforehand (provisioned).

After Opus (arXiv 2507.08119, section on the control plane): a controller that serves requests first
come, first served, never tears down a circuit in use and pays the delay each time a port changes;
and one that has profiled an iteration and requests the next circuit as soon as the ports fall idle.
Continuous time, no slots. docs/fabrics.md says what is decided how, and why provisioned is never
later.
"""

from __future__ import annotations

from dataclasses import replace

from topox_core.fabrics.circuit_requests import MAX_ITERATIONS, Profile
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.stopping import Stop
from topox_core.schedule.bounds.circuit_bound import circuit_bound
from topox_core.text.numbers import short


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
