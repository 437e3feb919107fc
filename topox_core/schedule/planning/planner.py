"""Plans: start times with their circuits, made by rules or from an engine's start times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import TransferGraph
from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.ancestor_bounds import (
    ancestor_bound,
    ancestor_heads_and_tails,
    near_of,
)
from topox_core.schedule.bounds.best_bound import Bound, best_bound
from topox_core.schedule.bounds.windows import clocks
from topox_core.schedule.circuits.held_ports import (
    Solution,
    booking_of,
    per_slot,
    to_circuits,
)
from topox_core.schedule.planning.fold import FOLD_ABOVE, Folding, fold
from topox_core.schedule.planning.list_scheduler import (
    RULES,
    Generator,
    PortGenerator,
    SchedulePlan,
    candidates,
    ranked,
)
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.rcpsp.reduction import Reduction, reduce
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import TraceSource

__all__ = [
    "Planner",
    "Prepared",
    "SchedulePlan",
    "prepare",
    "prepare_problem",
]

# Above this many tasks the rules stop at the first schedule that meets the bound; below, the rest
# are tried as well, since one of them may change fewer circuits.
KEEP_LOOKING = 5_000
# Beside a folded plan, so many tasks are scheduled by rules on the whole (all rules up to 25,000
# tasks, one from 150,000 on), and none where port rows x slots, eight bytes each, would be more.
WHOLE_TASKS = 300_000
WHOLE_CELLS = 40_000_000
# Ancestors that count for heads and tails that steer a search: at most a second for 17,000 tasks.
STEERING_NEAR = 50


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
        generator = Generator.of(problem, bound)
        ports = (
            PortGenerator.of(generator, dark_slots)
            if continuous and problem.network is not None
            else None
        )
        return Planner(problem, bound, generator, ports)

    def with_ancestor_tails(self) -> tuple[Planner, Bound | None]:
        """Return the planner with heads and tails that count what ancestors need, and their bound if it is better.

        They steer rules and search towards the resources that will be short. Set-ups count where
        ports know of them.
        """
        problem, dark = self.problem, 0 if self.ports is None else self.ports.ports.dark
        head, tail = ancestor_heads_and_tails(
            problem,
            clocks(problem),
            near_of(problem, STEERING_NEAR) if dark else STEERING_NEAR,
            dark * problem.ticks_per_slot,
        )
        better = ancestor_bound(problem, head, tail, self.bound, dark)
        generator = self.generator.with_heads_and_tails(head, tail)
        ports = None if self.ports is None else replace(self.ports, generator=generator)
        return Planner(
            problem, self.bound if better is None else better.ticks, generator, ports
        ), better

    def with_circuits(self, start: Int, source: TraceSource, improve: bool = True) -> SchedulePlan:
        """Return the plan that carries out start times of the reduced problem.

        Per slot it keeps them exactly; continuous circuits take them as an order, since a transfer
        must find one switch free for as long as it lasts.
        """
        if self.ports is not None:
            booked = self.ports.serially(ranked(start), source)
            return self.ports.improved(booked, self.bound) if improve else booked
        if self.problem.network is None:
            makespan = int((start + self.problem.duration).max(initial=0))
            return SchedulePlan.without_circuits(start, makespan, source)
        return SchedulePlan.on_circuits(self.problem, start, per_slot(self.problem, start), source)

    def of_solution(self, solution: Solution, source: TraceSource) -> SchedulePlan:
        """Return the plan of an engine's solution: as it is if it has ports, else as an order."""
        if solution.ports is None:
            return self.with_circuits(solution.start, source)
        booking, repeats = booking_of(self.problem, solution), self.problem.switch_network.repeats
        plan = SchedulePlan.on_circuits(self.problem, solution.start, booking, source)
        return self.ports.held_back(plan) if self.ports is not None and repeats else plan

    def reduced(self, plan: SchedulePlan) -> tuple[Int, int]:
        """Return start and makespan of the reduced problem's schedule in the order of a plan, which is no longer."""
        if self.ports is None:
            return plan.start, plan.makespan
        return self.generator.serially(ranked(plan.start))

    @cached_property
    def folded(self) -> tuple[Folding, Planner] | None:
        """The folding of the problem's equal replicas, and its planner; None for one that is small or has few."""
        if self.problem.n <= FOLD_ABOVE:
            return None
        dark = None if self.ports is None else self.ports.ports.dark
        folding = fold(self.problem, dark_slots=dark)
        if folding is None:
            return None
        on_ports = folding.problem.network is not None
        return folding, Planner.of(folding.problem, self.bound, on_ports, dark or 0)

    def plans(self, stop: Stop = never) -> Iterator[SchedulePlan]:
        """Yield plans by every rule until ``stop``, those of the folded problem first, each better than those before."""
        best: SchedulePlan | None = None
        for plan in self.every_plan(stop):
            if best is None or plan.cost < best.cost:
                best = plan
                yield plan

    def every_plan(self, stop: Stop = never) -> Iterator[SchedulePlan]:
        """Yield plans by every rule until ``stop`` or until one is as good as the bound, better or not than those before."""
        best: SchedulePlan | None = None
        for plan in self.folded_plans(stop):
            if best is None or plan.cost < best.cost:
                best = plan
            yield plan
        for listed in self._listed(best):
            if best is not None and stop():
                return
            if self.ports is None and best is not None and listed.makespan > best.makespan:
                continue
            plan = self.with_circuits(listed.start, listed.source)
            if best is None or plan.cost < best.cost:
                best = plan
            yield plan
            if self._good_enough(best):
                return

    def best_plan(self, stop: Stop = never) -> SchedulePlan:
        """Return the best plan over all rules."""
        *_, best = self.plans(stop)
        return best

    def unfolded(self, plan: SchedulePlan) -> SchedulePlan:
        """Return the plan of this problem that a plan of the folded one stands for."""
        assert self.folded is not None
        folding, _ = self.folded
        start = folding.unfolded(plan.start)
        source = plan.source.within(f"folded: {folding.words}")
        if plan.booking is None or self.problem.network is None:
            return self.with_circuits(start, source)
        booking = folding.unfolded_booking(plan.booking)
        return SchedulePlan.on_circuits(self.problem, start, booking, source)

    def _good_enough(self, plan: SchedulePlan) -> bool:
        return plan.makespan <= self.bound and (self.problem.n > KEEP_LOOKING or plan.changes == 0)

    def sketches(self, folded: SchedulePlan | None, direct: bool) -> Iterator[SchedulePlan]:
        """Yield plans with circuits that stay, by the rules, which forward-backward passes have not improved.

        Parameters
        ----------
        folded
            The best plan of the folded problem, beside which fewer rules are tried on a large whole.
        direct
            Whether transfers take ports in the order of the rule itself (serial scheme only), rather
            than in the order of a schedule of the reduced problem.
        """
        if not direct:
            for listed in self._listed(folded):
                yield self.with_circuits(listed.start, listed.source, False)
            return
        assert self.ports is not None
        for name in islice(RULES, self._rules_beside(folded)):
            source = TraceSource("rules", f"serial {name}")
            yield self.ports.serially(self.generator.rule(name), source)

    def improved(self, plan: SchedulePlan) -> SchedulePlan:
        """Return a plan with circuits that stay after forward-backward improvement; never longer."""
        assert self.ports is not None
        return self.ports.improved(plan, self.bound)

    def folded_plans(self, stop: Stop) -> Iterator[SchedulePlan]:
        """Yield what the plans of the folded problem unfold to, each better than those before."""
        if self.folded is not None:
            for plan in self.folded[1].plans(stop):
                yield self.unfolded(plan)

    def _listed(self, folded: SchedulePlan | None) -> Iterator[SchedulePlan]:
        """Yield schedules by rules; beside a folded plan, of a large problem as many as a moment allows."""
        yield from islice(candidates(self.generator, self.bound), self._rules_beside(folded))

    def _rules_beside(self, folded: SchedulePlan | None) -> int | None:
        """Return how many schedules by rules are made of the whole beside a folded plan; None for all."""
        if folded is None:
            return None
        # A whole whose profile of ports by slots would fill the memory is better left to its folding.
        cells = len(self.problem.capacity) * self.generator.horizon_slots
        if self._good_enough(folded) or (self.ports is None and cells > WHOLE_CELLS):
            return 0
        return max(1, WHOLE_TASKS // self.problem.n)


@dataclass(frozen=True)
class Prepared:
    """What a solve needs: the reduced problem, its bound and its planner.

    ``graph`` and ``cluster`` are None for a bare problem (PSPLIB).
    """

    graph: TransferGraph | None
    cluster: Cluster | None
    settings: Settings
    reduction: Reduction
    planner: Planner

    @property
    def graph_and_cluster(self) -> tuple[TransferGraph, Cluster]:
        """The lowered graph and the cluster that it runs on; a bare problem has none."""
        assert self.graph is not None
        assert self.cluster is not None
        return self.graph, self.cluster

    def execution(self, plan: SchedulePlan) -> Execution | None:
        """Return the execution that a plan describes, in ms; None for a bare problem."""
        if self.graph is None or self.cluster is None:
            return None
        problem = self.reduction.problem
        circuits = Circuits.none()
        if plan.booking is not None:
            circuits = to_circuits(problem, plan.booking, self.cluster.reconfiguration_ms)
        return Execution(
            graph=self.graph,
            cluster=self.cluster,
            start_ms=np.round(plan.start * problem.tick_ms, 9),
            end_ms=np.round((plan.start + problem.duration) * problem.tick_ms, 9),
            circuits=circuits,
        )


def prepare(graph: TaskGraph | TransferGraph, cluster: Cluster, settings: Settings) -> Prepared:
    """Lower a task graph, unless it is lowered already, and reduce it.

    Raises
    ------
    InputError
        If a task names a server or device that the cluster lacks, or the reduction refuses.
    """
    if isinstance(graph, TaskGraph):
        check_fits(graph, cluster)
        graph = lower(graph, settings.lowering)
    reduction = reduce(graph, cluster, settings)
    planner = Planner.of(
        reduction.problem,
        reduction.bound.ticks,
        settings.circuits == "continuous",
        reduction.dark_slots,
    )
    return Prepared(graph, cluster, settings, reduction, planner)


def prepare_problem(problem: Problem, settings: Settings) -> Prepared:
    """Bound a bare problem; raises InputError if no schedule exists."""
    bound = best_bound(problem, 0)
    planner = Planner.of(problem, bound.ticks, continuous=False, dark_slots=0)
    reduction = Reduction(problem, bound, 0, problem, problem)
    return Prepared(None, None, settings, reduction, planner)
