"""Plans: start times with their circuits, made by rules or from an engine's start times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from topox_core.cluster import Cluster
from topox_core.errors import InputError
from topox_core.graph.files import check_fits
from topox_core.graph.lowering import lower
from topox_core.graph.task_graph import TaskGraph
from topox_core.graph.transfer_graph import TransferGraph
from topox_core.schedule.answer import Stop, never
from topox_core.schedule.circuits import Booking, changed_rows, per_slot
from topox_core.schedule.feasibility import impossible
from topox_core.schedule.list_scheduler import Generator, candidates, ranked
from topox_core.schedule.port_scheduler import PortGenerator
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.reduction import Reduction, reduce
from topox_core.schedule.settings import Settings

# Above this many tasks the rules stop at the first schedule that meets the bound; below, the rest
# are tried as well, since one of them may change fewer circuits.
KEEP_LOOKING = 5_000


@dataclass(frozen=True)
class Plan:
    """A schedule that can be carried out: start ticks, circuits, and how many circuits change.

    ``reduced_start`` is the schedule of the reduced problem it came from (the same unless transfers
    had to move to stay on one switch), which exact engines start from.
    """

    start: Int
    makespan: int
    booking: Booking | None
    changes: int
    source: str
    reduced_start: Int
    reduced_makespan: int

    @property
    def cost(self) -> tuple[int, int]:
        """What is minimised: the makespan, then the number of circuit changes."""
        return self.makespan, self.changes


@dataclass(frozen=True)
class Planner:
    """What turns orders and start times into plans for one problem under one rule for circuits."""

    problem: Problem
    bound: int
    generator: Generator
    ports: PortGenerator | None

    @staticmethod
    def of(problem: Problem, bound: int, continuous: bool, dark_slots: int) -> Planner:
        """Prepare a problem; ``bound`` is a valid lower bound in ticks.

        Raises
        ------
        InputError
            If a task needs more of a resource than there is, so that no schedule exists.
        """
        reason = impossible(problem)
        if reason is not None:
            raise InputError(f"no schedule exists: {reason}")
        generator = Generator.of(problem, bound)
        ports = PortGenerator.of(generator, dark_slots) if continuous and problem.network is not None else None
        return Planner(problem, bound, generator, ports)

    def realised(self, start: Int, makespan: int, source: str, improve: bool = True) -> Plan:
        """Return the plan that carries out start times of the reduced problem.

        Per slot it keeps them exactly; continuous circuits take them as an order, since a transfer
        must find one switch free for as long as it lasts.
        """
        if self.ports is not None:
            booked = self.ports.serially(ranked(start), source)
            if improve:
                booked = self.ports.improved(booked, self.bound)
            return Plan(booked.start, booked.makespan, booked.booking, booked.changes, source, start, makespan)
        if self.problem.network is None:
            return Plan(start, makespan, None, 0, source, start, makespan)
        booking = per_slot(self.problem, start)
        changes = int(changed_rows(booking, self.problem.network).sum())
        return Plan(start, makespan, booking, changes, source, start, makespan)

    def plans(self) -> Iterator[Plan]:
        """Yield plans by every rule, each better than those before."""
        best: Plan | None = None
        reduced: tuple[Int, int] | None = None
        for listed in candidates(self.generator, self.bound):
            if reduced is None or listed.makespan < reduced[1]:
                reduced = listed.start, listed.makespan
            if self.ports is None and best is not None and listed.makespan > best.makespan:
                continue
            plan = self.realised(listed.start, listed.makespan, listed.source)
            if best is None or plan.cost < best.cost:
                best = plan
                yield replace(plan, reduced_start=reduced[0], reduced_makespan=reduced[1])
            if best.makespan <= self.bound and (self.problem.n > KEEP_LOOKING or best.changes == 0):
                return

    def best_plan(self, stop: Stop = never, on_plan: Callable[[Plan], None] | None = None) -> Plan:
        """Return the best plan over all rules; ``on_plan`` is told each better one."""
        best: Plan | None = None
        for plan in self.plans():
            best = plan
            if on_plan is not None:
                on_plan(plan)
            if stop():
                break
        assert best is not None
        return best


@dataclass(frozen=True)
class Prepared:
    """A graph, a cluster and settings made ready: lowered, reduced, bounded."""

    graph: TransferGraph
    cluster: Cluster
    settings: Settings
    reduction: Reduction
    planner: Planner


def prepare(graph: TaskGraph, cluster: Cluster, settings: Settings) -> Prepared:
    """Lower and reduce a task graph.

    Raises
    ------
    InputError
        If a task names a server or device that the cluster lacks, or the reduction refuses.
    """
    check_fits(graph, cluster)
    lowered = lower(graph, settings.lowering)
    reduction = reduce(lowered, cluster, settings)
    planner = Planner.of(reduction.problem, reduction.bound.ticks, settings.circuits == "continuous", reduction.dark_slots)
    return Prepared(lowered, cluster, settings, reduction, planner)
