"""What if something breaks: one element taken out, fixed circuits repaired, the plan made again on what is left.

Static circuits are run as the comparison runs them, with the lowering that they chose. Of circuits
that switch, a cut fibre takes one out-port of one server, a failed port takes both ways of it: what
its circuits carried goes over the ports that are left. A switch takes its ports from every server.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from topox_core.errors import InputError, refuse_if
from topox_core.fabrics.comparison.compare import run_one, run_with_best_lowering
from topox_core.fabrics.fluid.links import static_layout
from topox_core.fabrics.registry import FABRICS, SPOKEN
from topox_core.fabrics.run import FabricRequest, FabricRun, JobRequest
from topox_core.model.execution import Execution, Layout
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import TransferGraph
from topox_core.schedule.planning.rebooking import LostPort, rebooked
from topox_core.text.numbers import time
from topox_core.topology.failures import Failure, at_its_port, fail_layout, repair
from topox_core.topology.replanning import fail_cluster, remaining_graph
from topox_core.topology.ring_circuits import LayoutResult, on_rings
from topox_core.topology.routing import wiring_of
from topox_core.topology.traffic import demand_of

# How long an iteration takes on the way that was taken, and what was done, in sentences.
Way = tuple[float, tuple[str, ...]]
FORWARDED, REPAIRED = (f"{FABRICS['static']}, {way}" for way in ("forwarded", "repaired"))
THIS_ITERATION, NEXT_ONES = (
    f"{FABRICS['scheduled']}, {of}" for of in ("this iteration", "the next ones")
)


@dataclass(frozen=True)
class FailureOutcome:
    """One way to go on after a failure: its label, its fabric, both times, and what was done; or why it cannot go on."""

    label: str
    fabric: str
    before_ms: float
    after_ms: float | None
    done: tuple[str, ...]


@dataclass(frozen=True)
class FixedCircuits:
    """The static fabric of a job as the comparison runs it: its layout step by step, and the lowering it chose."""

    job: JobRequest
    run: FabricRun
    lowering: Lowering
    result: LayoutResult

    @staticmethod
    def of(job: JobRequest) -> FixedCircuits:
        """Lay the circuits of a job out; the run is ``job.runs``'s, if there is one.

        Raises
        ------
        InputError
            If the circuits are not TopologyFinder's, whose rings a repair needs.
        """
        refuse_if(
            (
                job.options.layout_by != "topoopt",
                f"must be topoopt where something fails (got {job.options.layout_by})",
            ),
            file="settings",
            field="layout_by",
        )
        run = job.runs.get("static") or run_with_best_lowering("static", job)
        lowering = job.settings.lowering if run.chosen is None else run.chosen.lowering
        request = job.lowered(lowering)
        result, _ = static_layout(
            request.graph, job.cluster, job.options.topology_variant, job.settings.seed
        )
        return FixedCircuits(job, run, lowering, result)

    @property
    def links(self) -> list[tuple[int, int]]:
        """The pairs of servers that a circuit joins."""
        source, destination, _ = self.result.layout.links
        return list(zip(source.tolist(), destination.tolist(), strict=True))

    @property
    def _each(self) -> int:
        return max(1, self.job.cluster.ports_per_server // self.job.cluster.switches)

    def forwarded(self, failure: Failure) -> Way:
        """Return the iteration without the failed element, its traffic forwarded by other servers.

        Raises
        ------
        InputError
            If two talking servers are cut off from one another.
        """
        layout = fail_layout(self.result.layout, failure, self.result.wiring, self._each)
        run = self._run(self.job.lowered(self.lowering).graph, self.result, layout)
        return run.iteration_ms, ("Other servers forward the traffic of the lost circuits.",)

    def _run(self, graph: TransferGraph, result: LayoutResult, layout: Layout) -> FabricRun:
        """Run a lowered graph on circuits, its collectives on the rings of ``result``."""
        settings = replace(self.job.settings, lowering=self.lowering)
        on = graph if graph.lowering.strides else on_rings(graph, result)
        options = replace(self.job.options, layout=layout)
        return run_one("static", FabricRequest(on, self.job.cluster, settings, options))

    def repaired(self, failure: Failure) -> Way:
        """Return the iteration on the repaired circuits.

        Raises
        ------
        InputError
            As :meth:`forwarded`, or if a failed server has no substitute.
        """
        tasks, servers = self.job.task_graph, self.job.cluster.servers
        if failure.kind == "server":
            tasks = remaining_graph(tasks, self.run.execution, 0.0, failure)
        graph = lower(tasks, self.lowering)
        mended = repair(self.result, failure, demand_of(graph, servers), self._each)
        return self._run(graph, mended.result, mended.result.layout).iteration_ms, mended.done


def after_failure(
    job: JobRequest, fixed: FixedCircuits, failure: Failure, at_share: float
) -> tuple[FailureOutcome, ...]:
    """Return how the static and the scheduled fabric of a comparison go on after a failure.

    Parameters
    ----------
    job
        Its ``runs`` are those of the comparison; a fabric that is not among them is left out.
    at_share
        When the element fails, as a share of the scheduled iteration.
    """
    ways: dict[tuple[str, str], Callable[[], Way]] = {}
    if "static" in job.runs:
        if failure.kind != "server":
            ways[FORWARDED, "static"] = partial(fixed.forwarded, failure)
        ways[REPAIRED, "static"] = partial(fixed.repaired, failure)
    if "scheduled" in job.runs:
        located = at_its_port(failure, fixed.result.wiring)
        at_ms = at_share * job.runs["scheduled"].iteration_ms
        again = partial(planned_again, job, fixed, located)
        ways[THIS_ITERATION, "scheduled"] = partial(again, at_ms)
        ways[NEXT_ONES, "scheduled"] = partial(again, 0.0)
    outcomes: list[FailureOutcome] = []
    for (label, fabric), way in ways.items():
        try:
            after_ms, done = way()
        except InputError as error:
            after_ms, done = None, (str(error),)
        if label == NEXT_ONES and (after_ms or 0.0) > (outcomes[-1].after_ms or inf):
            done = (*done, f"Longer than this iteration, which was whole until {time(at_ms)}.")
        before_ms = job.runs[fabric].iteration_ms
        if label == REPAIRED and (after_ms or inf) < before_ms:
            done = (
                *done,
                "Shorter than before: TopologyFinder goes by bytes, not by time, and its new circuits suit this job better.",
            )
        outcomes.append(FailureOutcome(label, fabric, before_ms, after_ms, done))
    if "scheduled" in job.runs:
        *others, this, later = outcomes
        anew_ms = at_ms + job.cluster.reconfiguration_ms + (later.after_ms or inf)
        if anew_ms < (this.after_ms or inf):
            done = (f"begun again at {time(at_ms)}, on the circuits of the next iterations.",)
            outcomes = [*others, replace(this, after_ms=anew_ms, done=done), later]
    return tuple(outcomes)


def planned_again(job: JobRequest, fixed: FixedCircuits, failure: Failure, at_ms: float) -> Way:
    """Return when the scheduled iteration ends if the rest is planned anew at ``at_ms``, and on what it then runs.

    Raises
    ------
    InputError
        If nothing can go on, or nothing is left to run.
    """
    execution = job.runs["scheduled"].execution
    # What is left of an iteration is done once; afterwards every one repeats.
    settings = replace(job.settings, iteration="first") if at_ms else job.settings
    rest = JobRequest(
        remaining_graph(job.task_graph, execution, at_ms, failure), job.cluster, settings
    )
    left, on = job.cluster, "all ports are left"
    if failure.kind == "switch":
        left = fail_cluster(job.cluster, failure)
        on = (
            f"{left.switches} of {job.cluster.switches} switches and {left.ports_per_server} of "
            f"{job.cluster.ports_per_server} ports are left, at every server alike"
        )
    if failure.kind in ("server", "switch"):
        rest_ms = run_with_best_lowering("scheduled", replace(rest, cluster=left)).iteration_ms
    else:
        rest_ms, on = _without_a_port(job, rest, fixed, failure, at_ms)
    when = f"planned again at {time(at_ms)}" if at_ms else "planned for what is left"
    return at_ms + rest_ms, (f"{when}; {on}.",)


def _without_a_port(
    job: JobRequest, rest: JobRequest, fixed: FixedCircuits, failure: Failure, at_ms: float
) -> tuple[float, str]:
    """Return how long the rest takes on the ports that are left, or on circuits that stay, and on which of them."""
    fixed_ms, on = inf, ""
    if not at_ms and job.settings.switching in ("auto", "fixed") and not job.settings.on_slots:
        with suppress(InputError):  # two servers that talk are cut off from one another
            fixed_ms, _ = fixed.repaired(failure)
            on = f"the circuits stay fixed: {SPOKEN['static']}, repaired"
    own_ms = _on_own_circuits(job, rest, failure)
    if own_ms < fixed_ms:
        fixed_ms = own_ms
        on = "its fixed circuits stay, servers forward what the lost one carried"
    if job.settings.switching != "fixed":
        planned = None if at_ms else job.runs["scheduled"].switching
        plan = on_ports_left(rest, lost_ports(job, failure), planned)
        if plan.makespan_ms <= fixed_ms:
            return plan.makespan_ms, f"{_lost_words(failure)} is not used, all others are"
    elif fixed_ms == inf:
        raise failure.error("fixed circuits are repaired after the iteration")
    return fixed_ms, on


def _on_own_circuits(job: JobRequest, rest: JobRequest, failure: Failure) -> float:
    """Return how long the rest takes on the fixed circuits of the plan without the one at the lost port; inf if it has none."""
    run, each = job.runs["scheduled"], max(1, job.cluster.ports_per_server // job.cluster.switches)
    layout = run.execution.layout
    if layout is None:
        return inf
    with suppress(InputError):  # as there
        left = fail_layout(layout, failure, wiring_of(layout), each)
        options = replace(job.options, layout=left)
        graph = lower(rest.task_graph, run.execution.graph.lowering)
        request = FabricRequest(graph, job.cluster, rest.settings, options)
        return run_one("static", request).iteration_ms
    return inf


def _lost_words(failure: Failure) -> str:
    server = failure.source if failure.kind == "fibre" else failure.server
    port = "out-port" if failure.kind == "fibre" else "port"
    return f"{port} {failure.port} of server {server}"


def lost_ports(job: JobRequest, failure: Failure) -> frozenset[LostPort]:
    """Return the ends of circuits that a fibre or a port takes away."""
    each = max(1, job.cluster.ports_per_server // job.cluster.switches)
    if failure.kind == "port" and not 0 <= failure.port < job.cluster.ports_per_server:
        raise failure.error(
            f"there is no such port (0 to {job.cluster.ports_per_server - 1})", "port"
        )
    sides = failure.sides(job.cluster.servers, job.cluster.ports_per_server, each)
    return frozenset(
        LostPort("out" if way == "out" else "in", server, *divmod(plane, each))
        for way, server, plane in sides
    )


def on_ports_left(
    job: JobRequest, lost: frozenset[LostPort], planned: Execution | None = None
) -> Execution:
    """Return a schedule that switches and uses none of the lost ports.

    The better of the plan and of the provisioned iteration on all ports, their transfers booked
    anew.

    Parameters
    ----------
    planned
        The plan on all ports, where it is known.

    Raises
    ------
    InputError
        If two servers that talk have no switch in common any more.
    """
    settings = job.settings.by_rules
    if not settings.on_slots:
        settings = replace(settings, switching="planned")
    whole = replace(job, settings=settings, runs={})
    schedules = [planned or run_with_best_lowering("scheduled", whole).execution]
    if not settings.on_slots:
        schedules.append(run_with_best_lowering("provisioned", whole).execution)
    left = [rebooked(one, lost, settings) for one in schedules]
    return min(left, key=lambda one: one.makespan_ms)
