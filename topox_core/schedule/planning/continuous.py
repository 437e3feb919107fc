"""Scheduling on continuous time: plans on several slot lengths, each replayed; the shortest replay is the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.runs.run import Stop
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.planning.fine_clock import continuous_bound
from topox_core.schedule.planning.planner import Prepared, SchedulePlan, prepare
from topox_core.schedule.planning.replay import Replay, replay

# Parts of the cluster's slot that are planned on besides the slot itself, up to so many tasks.
FINER_PARTS = ((4, 5_000), (16, 2_500))
# Up to so many tasks the plan of every rule is improved. Of larger graphs the plans by rules are
# replayed as they are, and the best few are improved: on the cluster's slots, and on others.
EVERY_PLAN_IMPROVED = 600
IMPROVED_PLANS, IMPROVED_ON_OTHER_SLOTS = 3, 2
# A first bound counts so many ancestors of each task, up to so many tasks: some ten milliseconds.
FIRST_NEAR, FIRST_TASKS = 50, 600


class Candidates(Protocol):
    """Plans that compete with those of the priority rules, under the settings of the problem that is given."""

    def __call__(self, prepared: Prepared) -> Iterable[SchedulePlan]:
        """Yield plans on the slots of a prepared problem, the provisioned iteration first."""
        ...

    def replays(self, prepared: Prepared) -> Iterable[Replay]:
        """Yield iterations that keep to no slots, on the cluster's own durations and delay."""
        ...


@dataclass
class ContinuousPlans:
    """The best iteration on continuous time so far, and the best plan on the cluster's own slots beside it.

    ``plan_to_improve``, on the slots of ``planned_on``, is the plan with the best replay: a search
    goes on from there.
    """

    prepared: Prepared
    bound: Bound
    best: Replay | None = None
    planned_on: Prepared | None = None
    plan_to_improve: SchedulePlan | None = None
    slotted: SchedulePlan | None = None
    on_better: Callable[[Replay], None] | None = field(default=None, repr=False)

    @staticmethod
    def of(prepared: Prepared) -> ContinuousPlans:
        """Begin with no plan; the bound belongs to continuous time."""
        graph, cluster = prepared.graph_and_cluster
        near = FIRST_NEAR if len(graph) <= FIRST_TASKS else 0
        bound = continuous_bound(graph, cluster, prepared.settings, near)
        return ContinuousPlans(prepared, bound)

    @property
    def solved(self) -> bool:
        """Whether the best iteration is as short as the bound and changes no circuit."""
        best = self.best
        return (
            best is not None and best.makespan_ms <= self.bound.ms * (1 + 1e-9) and not best.changes
        )

    def take(self, prepared: Prepared, plan: SchedulePlan) -> float:
        """Replay a plan on the slots of ``prepared``, keep it if it is better, and return its makespan in ms."""
        _, cluster = self.prepared.graph_and_cluster
        if prepared is self.prepared and (self.slotted is None or plan.cost < self.slotted.cost):
            self.slotted = plan
        candidate = replay(prepared, plan, cluster)
        if self.best is None or candidate.cost < self.best.cost:
            self.planned_on, self.plan_to_improve = prepared, plan
        self.take_replay(candidate)
        return candidate.makespan_ms

    def raise_bound(self, bound: Bound) -> None:
        """Keep a bound that is better."""
        if bound.ms > self.bound.ms * (1 + 1e-12):
            self.bound = bound

    def take_replay(self, candidate: Replay) -> None:
        """Keep an iteration if it is shorter, or as short with fewer changes."""
        if self.best is not None and candidate.cost >= self.best.cost:
            return
        self.best = candidate
        if self.on_better is not None:
            self.on_better(candidate)


def plan_on_continuous_time(
    plans: ContinuousPlans, candidates: Candidates | None, stop: Stop
) -> None:
    """Replay what rules and candidates plan on the cluster's slots, then on other slots, until ``stop``.

    The list of candidates is fixed by the number of tasks, never by seconds, so that one input has
    one answer on every machine. Where only the provisioned order is allowed, there is one.
    """
    if plans.prepared.settings.switching == "provisioned" and candidates is not None:
        plans.planned_on = plans.prepared  # the provisioned iteration on slots stands beside it
        plans.slotted = plans.plan_to_improve = next(iter(candidates(plans.prepared)))
        for known in candidates.replays(plans.prepared):
            plans.take_replay(known)
        return
    for prepared in _planning_problems(plans.prepared):
        _plan_by_rules(plans, prepared, stop)
        if stop():
            return
        if candidates is not None:
            for plan in candidates(prepared):
                plans.take(prepared, plan)
            if prepared is plans.prepared:
                for known in candidates.replays(prepared):
                    plans.take_replay(known)
        if stop() or plans.solved:
            return


def _plan_by_rules(plans: ContinuousPlans, prepared: Prepared, stop: Stop) -> None:
    """Replay the plans of the priority rules on the slots of ``prepared``, the best ones improved."""
    planner, tasks = prepared.planner, prepared.reduction.problem.n
    if tasks <= EVERY_PLAN_IMPROVED:
        for plan in planner.every_plan(stop):
            plans.take(prepared, plan)
        return
    own = prepared is plans.prepared
    folded: SchedulePlan | None = None
    for folded in planner.folded_plans(stop):
        plans.take(prepared, folded)
    sketches: dict[float, SchedulePlan] = {}  # by makespan: of equal ones the first
    for plan in planner.sketches(folded, direct=not own):
        if stop() and plans.best is not None:
            return
        sketches.setdefault(plans.take(prepared, plan), plan)
    most = IMPROVED_PLANS if own else IMPROVED_ON_OTHER_SLOTS
    for makespan_ms in sorted(sketches)[:most]:
        if stop():
            return
        plans.take(prepared, planner.improved(sketches[makespan_ms]))


def _planning_problems(prepared: Prepared) -> Iterator[Prepared]:
    """Yield the problem on the cluster's slots, then on finer ones.

    A delay that is short against these is rounded down: the plan then pays no slot for a change, and the
    replay charges what a change takes.
    """
    yield prepared
    graph, cluster = prepared.graph_and_cluster
    for parts, most in FINER_PARTS:
        if len(graph) > most:
            return
        finer = cluster.changed(slot_ms=cluster.slot_ms / parts)
        if 0 < finer.reconfiguration_ms < finer.slot_ms / 2:
            finer = finer.changed(reconfiguration_ms=0.0)
        try:
            problem = _prepared_on(prepared, finer)
        except InputError:  # more slots than there may be: the cluster's own have been planned on
            return
        yield problem


def _prepared_on(prepared: Prepared, cluster: Cluster) -> Prepared:
    """Return the problem on another cluster's slots, its tick about as long as it was."""
    graph, _ = prepared.graph_and_cluster
    ticks = math.ceil(cluster.slot_ms / prepared.reduction.problem.tick_ms * (1 - 1e-9))
    settings = replace(prepared.settings, clock="slots", tick=cluster.slot_ms / max(1, ticks))
    return prepare(graph, cluster, settings)
