"""The verdict on a job: up to which delay changing circuits pays against each rival, and from which on no plan can.

Between the two lies what nobody knows: no plan was found that pays, and none is excluded. Plans are
made at a few delays and their orders carried out at every other one, so that what pays at a delay
pays at every shorter one.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from topox_core.economics.clusters import cluster_bill, same_cost_nic_gbps
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED, Catalogue
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import EQUAL, run_with_best_lowering
from topox_core.fabrics.crossover.delay_bounds import MAX_MS, MIN_MS, NEAR, DelayBounds, turn
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.fabrics.planning.scheduled import freely_scheduled, schedule
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.io.limits import check_one_of
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import Stop, never
from topox_core.schedule.planning.replay import replayed_on_circuits
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import delay_in_sentence, enumeration, time

Effort = Literal["list", "search", "prove"]
EFFORTS: tuple[Effort, ...] = ("list", "search", "prove")
# The rivals as a sentence has them, in its order.
RIVALS: Mapping[str, str] = {
    "fixed": "the best fixed circuits found",
    "fat_tree_same_cost": "a fat-tree of the same cost",
    "fat_tree_full": "a full fat-tree whose hosts share links",
}
SHARING = " whose hosts share links"  # left out where a sentence before has it
RUN_AS = {
    "static": "fixed",
    "static_graph": "fixed",
    "fat_tree": "fat_tree_same_cost",
    "fat_tree_full": "fat_tree_full",
}
LAID_BY = {"static": "TopologyFinder", "static_graph": "search over the task graph"}
BY_A_PLAN = "a plan that changes none"
NO_RIVAL = "No rival can run this job."
# Who may be chosen instead for no more money; a full fat-tree costs more.
NO_DEARER = ("fixed", "fat_tree_same_cost")
# A first answer does not look between ends that are as near as this; the others go on to NEAR.
WIDE = 1.5
# Where the first plan is made: the verdict does not depend on the delay of the cluster.
FIRST_MS = 1.0
# Delays at which a plan is made. The first answer makes few where each takes long.
PLANS: Mapping[Effort, int] = {"list": 4, "search": 24, "prove": 24}
LARGE_TASKS, LARGE_PLANS = 2_000, 2
# Delays at which exact engines plan and bound, sharing the time limit.
SOLVES = 6


@dataclass(frozen=True)
class Bracket:
    """One rival, and where changing circuits stops paying against it.

    Attributes
    ----------
    iteration_ms
        What the rival takes, whatever the delay.
    laid_by
        Who laid its circuits; empty for packets.
    pays_up_to_ms
        The longest delay at which a plan that changes circuits was found that is shorter by more
        than ``EQUAL``; None where there is none at any delay.
    cannot_pay_from_ms
        The least delay from which on the bound of such plans excludes that; None where it never
        does up to ``MAX_MS``.
    cheaper_up_to_usd
        Up to which price of an optical port an iteration at the cluster's own delay costs less than
        one of the rival, by purchase price; None where prices say nothing.
    """

    name: str
    iteration_ms: float
    laid_by: str = ""
    pays_up_to_ms: float | None = None
    cannot_pay_from_ms: float | None = None
    cheaper_up_to_usd: float | None = None

    @property
    def always(self) -> bool:
        """Whether it pays at every delay that is looked at."""
        return self.pays_up_to_ms is not None and self.pays_up_to_ms >= MAX_MS

    @property
    def words(self) -> tuple[str, str, str]:
        """Up to where it pays, from where on it cannot, and how sure that is, as the cells of a table."""
        pays, cannot = self.pays_up_to_ms, self.cannot_pay_from_ms
        if pays is None and cannot == 0:
            return "never", "any delay", "proved"
        proved = "–" if cannot is None else time(cannot)
        if pays is None:
            return "no plan found", proved, "unknown" if cannot is None else "unknown below that"
        if self.always:
            return "every delay", proved, "plan found"
        found = time(pays) if pays else "only at 0\u00a0ms"
        if cannot is None:
            return found, proved, "unknown above"
        return found, proved, "proved" if cannot <= pays * NEAR**2 else "unknown in between"

    def as_record(self, effort: Effort) -> dict[str, Any]:
        """Return the bracket as plain values."""
        return {
            "iteration_ms": self.iteration_ms,
            **({"laid_by": self.laid_by} if self.laid_by else {}),
            "pays_up_to_ms": self.pays_up_to_ms,
            **({"always": True} if self.always else {}),
            "cannot_pay_from_ms": self.cannot_pay_from_ms,
            "cheaper_up_to_usd_per_port": self.cheaper_up_to_usd,
            "effort": effort,
        }


@dataclass(frozen=True)
class Verdict:
    """What is known of a job against every rival that can run it, why others cannot, and the plans that it rests on."""

    effort: Effort
    brackets: tuple[Bracket, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    plans: tuple[PassedPlan, ...] = field(default=(), compare=False)

    @property
    def hardest(self) -> Bracket | None:
        """The rival, of those that cost no more, that it pays least against; None without any."""
        rivals = [one for one in self.brackets if one.name in NO_DEARER] or self.brackets
        return min(rivals, key=lambda one: one.pays_up_to_ms or 0.0, default=None)

    def excludes(self, delay_ms: float, than_ms: float) -> bool:
        """Return whether it is proved that at a delay no plan that changes circuits gains on this time, as on a rival's as long."""
        return any(
            one.iteration_ms * (1 + EQUAL) >= than_ms
            and one.cannot_pay_from_ms is not None
            and one.cannot_pay_from_ms <= delay_ms
            for one in self.brackets
        )

    @property
    def lead(self) -> str:
        """The end that counts, in one sentence: against the hardest rival that costs no more, and those of harder, dearer ones."""
        hardest = self.hardest
        return NO_RIVAL if hardest is None else _lead(hardest, self.brackets)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, one to four sentences."""
        return tuple(_sentences(self.brackets)) or (NO_RIVAL,)

    @property
    def sentence(self) -> str:
        """The same in one line."""
        return " ".join(self.sentences)

    def as_record(self) -> dict[str, Any]:
        """Return the verdict as plain values."""
        rivals = {one.name: one.as_record(self.effort) for one in self.brackets}
        return {"rivals": rivals, "refused": dict(self.refused), "sentence": self.sentence}


def verdict(
    graph: TaskGraph,
    cluster: Cluster,
    settings: Settings | None = None,
    effort: Effort = "list",
    catalogue: Catalogue | None = None,
    stop: Stop = never,
    on_step: Callable[[Verdict], None] | None = None,
) -> Verdict:
    """Return up to which delay changing circuits pays for a job, and from which on no plan can.

    Parameters
    ----------
    graph, cluster
        The job; of the delay of the cluster only what prices are for depends.
    settings
        How collectives are lowered and what is free; circuits are always those that change on
        continuous time.
    effort
        ``list``: a few plans by rules; ``search``: as many as the bracket needs, and ancestors counted;
        ``prove``: exact engines besides, within the time limit of the settings.
    catalogue
        Prices; the price set with a figure for every speed, if None.
    stop
        Asked now and then; what is known then is returned.
    on_step
        Told the verdict whenever it has become narrower.

    Raises
    ------
    InputError
        If the graph does not fit the cluster, or the effort is unknown.
    """
    check_one_of(effort, EFFORTS, field="effort")
    check_fits(graph, cluster)
    own = settings or Settings(free=FREE)
    job = JobRequest(graph, cluster, _changing(own))
    prices = catalogue or PRICE_SETS[SET_BY_SPEED]
    rivals, refused = _rivals(job, prices, stop)
    search = _Search(job, effort, rivals, own.time_limit_s)
    for _ in search.steps(stop):
        if on_step is not None:
            on_step(search.verdict(refused))
        if stop():
            break
    return priced(search.verdict(refused), job, prices)


def _changing(own: Settings) -> Settings:
    """Return settings whose circuits change on continuous time; what does not concern circuits stays."""
    plain = Settings.of("physical", engine="list", switching="planned", lowering=own.lowering)
    stays = ("free", "iteration", "exclusive_devices", "seed", "threads")
    return replace(plain, **{name: getattr(own, name) for name in stays})


def with_plans(found: Verdict, job: JobRequest, plans: Iterable[PassedPlan]) -> Verdict:
    """Return a verdict that knows of plans made elsewhere that contradict it: they pay where it has none that does.

    Others would lengthen what pays between the delays at which they were made, so that it would
    depend on what had been planned by chance: they are left out.

    Parameters
    ----------
    job
        The job of the verdict, with any delay.
    plans
        Plans of its graph; those of other clusters than the job's, but for the delay, are left out,
        and those that the verdict has.
    """
    changing, rivals = _changing(job.settings), {one.name: one for one in found.brackets}
    search = _Search(replace(job, settings=changing), found.effort, rivals)
    new = [
        plan
        for plan in plans
        if plan.only_delay_differs(job.cluster)
        and not any(plan.start_ms is one.start_ms for one in found.plans)
        and search.contradicted_by(plan.as_made(search.job))
    ]
    if not new:
        return found
    search.plans = [plan.as_made(search.job) for plan in found.plans]
    for plan in new:
        search.take(plan.as_made(search.job))
    # It holds against a faster rival too.
    search.cannot_ms = {one.name: one.cannot_pay_from_ms for one in found.brackets}
    return replace(search.verdict(found.refused), plans=(*found.plans, *new))


def priced(
    found: Verdict, job: JobRequest, catalogue: Catalogue, own_ms: float | None = None
) -> Verdict:
    """Return a verdict with the prices of a port at which an iteration at the job's own delay costs on both networks the same.

    ``own_ms``: what it takes with circuits that change, if not by the best plan of the verdict.
    """
    if not found.plans:
        return found
    cluster, ports = job.cluster, job.cluster.servers * job.cluster.ports_per_server
    own_ms = own_ms or min(plan.on(job)[1].makespan_ms for plan in found.plans)

    def most_usd(one: Bracket) -> float | None:
        if one.name == "fat_tree_same_cost" or own_ms <= 0:
            return None
        rival = "topoopt_patch_panel" if one.name == "fixed" else "fat_tree"
        try:
            theirs = cluster_bill(rival, cluster, catalogue).cost_usd
            ours = cluster_bill("topoopt_ocs", cluster, catalogue).cost_usd
        except InputError:
            return None
        free_usd = ours - ports * catalogue.part("ocs_port").price_usd
        return (theirs * one.iteration_ms / own_ms - free_usd) / ports

    brackets = (replace(one, cheaper_up_to_usd=most_usd(one)) for one in found.brackets)
    return replace(found, brackets=tuple(brackets))


def _rivals(
    job: JobRequest, catalogue: Catalogue, stop: Stop
) -> tuple[dict[str, Bracket], dict[str, str]]:
    """Return every rival, and why others cannot run."""
    options = FabricOptions(equivalent_gbps=same_cost_nic_gbps(job.cluster, catalogue))
    rivals: dict[str, Bracket] = {}
    refused: dict[str, str] = {}
    runs: dict[str, FabricRun] = {}
    for fabric, name in RUN_AS.items():
        try:
            run = run_with_best_lowering(fabric, replace(job, options=options, runs=runs), stop)
        except InputError as error:
            refused[name] = str(error)
            continue
        runs[fabric] = run
        if name not in rivals or run.iteration_ms < rivals[name].iteration_ms:
            rivals[name] = Bracket(name, run.iteration_ms, LAID_BY.get(fabric, ""))
    return rivals, refused


class _Search:
    """Plans and bounds so far, and the bracket of every rival that follows from them."""

    def __init__(
        self, job: JobRequest, effort: Effort, rivals: dict[str, Bracket], time_limit_s: float = 0.0
    ) -> None:
        self.job, self.effort, self.time_limit_s = job, effort, time_limit_s
        self.rivals, self.plans = rivals, list[Execution]()
        self.failed_ms: dict[str, float] = {}
        self.cannot_ms: dict[str, float | None] = {}
        self.bounds = DelayBounds(job, quickly=effort == "list")

    def target_ms(self, name: str) -> float:
        """Return what a plan must stay below to pay."""
        return self.rivals[name].iteration_ms / (1 + EQUAL)

    def steps(self, stop: Stop) -> Iterable[None]:
        """Plan and bound where the widest bracket is, step by step."""
        self._plan(FIRST_MS)
        if any(one.pays_up_to_ms is None for one in self.rivals.values()):
            self._plan(0.0)
        self._bound(stop)
        yield
        large = len(self.job.task_graph.tasks) > LARGE_TASKS and self.effort == "list"
        plans = LARGE_PLANS if large else PLANS[self.effort]
        solves = SOLVES if self.effort == "prove" else 0
        for most, exactly in ((plans, False), (solves, True)):
            for _ in range(most):
                between_ms = self._widest(again=exactly)
                if between_ms is None or stop():
                    break
                if exactly:
                    self._solve(between_ms, stop)
                else:
                    self._plan(between_ms)
                self._bound(stop)
                yield

    def _widest(self, again: bool = False) -> float | None:
        """Return a delay within the widest open bracket; None where all are near. ``again``: plans that failed do not count."""
        open_ms = {}
        for name, rival in self.rivals.items():
            pays, cannot = rival.pays_up_to_ms, self.cannot_ms.get(name)
            if pays is None or cannot == 0.0:
                continue
            high = MAX_MS if cannot is None else cannot
            if not again:
                high = min(high, self.failed_ms.get(name, high))
            low = max(pays, MIN_MS)
            if high > low * (WIDE if self.effort == "list" else NEAR):
                open_ms[high / low] = (low * high) ** 0.5
        return open_ms[max(open_ms)] if open_ms else None

    def _plan(self, delay_ms: float) -> None:
        plan = freely_scheduled(
            self.job.at_delay(delay_ms), quickly=self.effort == "list"
        ).execution
        self.bounds.use(plan.graph.lowering)
        self.take(plan)

    def _solve(self, delay_ms: float, stop: Stop) -> None:
        at = self.job.at_delay(delay_ms)
        settings = replace(at.settings, engine="auto", time_limit_s=self.time_limit_s / SOLVES)
        result = schedule(at.task_graph, at.cluster, settings, stop)
        if result.execution is not None:
            lowering = result.execution.graph.lowering
            bound_ms = result.lowered_bound_ms or result.own_class.bound_ms
            self.bounds.know(lowering, delay_ms, bound_ms)
            self.take(result.execution)
        self.cannot_ms.clear()

    def take(self, plan: Execution) -> None:
        """Keep a plan, and note how far it pays against every rival, or that it does not at its own delay.

        A plan that changes no circuit is one more iteration on fixed circuits.
        """
        self.plans.append(plan)
        if self._beats_fixed(plan):
            fixed = self.rivals.get("fixed")
            usd = None if fixed is None else fixed.cheaper_up_to_usd
            beaten = Bracket("fixed", plan.makespan_ms, BY_A_PLAN, cheaper_up_to_usd=usd)
            self.rivals["fixed"] = beaten
            self.cannot_ms.pop("fixed", None)
            for other in self.plans:
                self._judge("fixed", other, other.cluster.reconfiguration_ms)
        for name in self.rivals:
            self._judge(name, plan, plan.cluster.reconfiguration_ms)

    def contradicted_by(self, plan: Execution) -> bool:
        """Whether a plan pays at its own delay where none was found that does, or beats fixed circuits without a change."""
        delay_ms = plan.cluster.reconfiguration_ms
        return self._beats_fixed(plan) or any(
            plan.makespan_ms < self.target_ms(name)
            and (one.pays_up_to_ms is None or one.pays_up_to_ms < delay_ms)
            and (name != "fixed" or plan.circuits.changed.any())
            for name, one in self.rivals.items()
        )

    def _beats_fixed(self, plan: Execution) -> bool:
        """Whether a plan changes no circuit and is shorter than the best fixed circuits known."""
        fixed = self.rivals.get("fixed")
        return not plan.circuits.changed.any() and (
            fixed is None or plan.makespan_ms < fixed.iteration_ms * (1 - 1e-9)
        )

    def _judge(self, name: str, plan: Execution, delay_ms: float) -> None:
        """Note how far a plan pays against one rival; against fixed circuits only one that changes some can."""
        if name != "fixed" or plan.circuits.changed.any():
            target_ms, pays = self.target_ms(name), self.rivals[name].pays_up_to_ms
            ends = [pays, self._longest(plan, target_ms, pays)]
            ends += [delay_ms] if plan.makespan_ms < target_ms else []
            pays = max((one for one in ends if one is not None), default=None)
            self.rivals[name] = replace(self.rivals[name], pays_up_to_ms=pays)
            if pays is None or pays < delay_ms:
                self.failed_ms[name] = min(delay_ms, self.failed_ms.get(name, delay_ms))
            elif self.failed_ms.get(name, math.inf) <= pays:
                del self.failed_ms[name]

    def _longest(self, plan: Execution, target_ms: float, known: float | None) -> float | None:
        """Return the longest delay at which a plan's orders stay below ``target_ms``, if it beats the one known."""
        least = 0.0 if known is None else max(MIN_MS, known * NEAR)
        if self.length_ms(plan, least) >= target_ms:
            return None
        if self.length_ms(plan, MAX_MS) < target_ms:
            return MAX_MS
        low = max(least, MIN_MS)
        if self.length_ms(plan, low) >= target_ms:
            return least
        return turn(low, MAX_MS, lambda delay_ms: self.length_ms(plan, delay_ms) >= target_ms)[0]

    def length_ms(self, plan: Execution, delay_ms: float) -> float:
        """Return how long a plan's orders take at a delay."""
        cluster = self.job.cluster.changed(reconfiguration_ms=delay_ms)
        return replayed_on_circuits(plan, cluster, self.job.settings).makespan_ms

    def _bound(self, stop: Stop) -> None:
        """Find for every rival from which delay on the bound excludes that a plan pays."""
        for name in self.rivals:
            if name not in self.cannot_ms and not stop():
                low = self.rivals[name].pays_up_to_ms
                self.cannot_ms[name] = self.bounds.exceeds_from(self.target_ms(name), low)

    def verdict(self, refused: Mapping[str, str]) -> Verdict:
        """Return what is known so far."""
        brackets = tuple(
            replace(one, cannot_pay_from_ms=self.cannot_ms.get(name))
            for name, one in self.rivals.items()
        )
        left_out = {name: why for name, why in refused.items() if name not in self.rivals}
        return Verdict(self.effort, brackets, left_out, tuple(map(PassedPlan.carrying, self.plans)))


def _lead(one: Bracket, brackets: Iterable[Bracket]) -> str:
    """Say how far it pays against a rival, and less far against the others."""
    pays_ms = one.pays_up_to_ms
    if pays_ms is None:
        return f"Changing circuits does not pay against {RIVALS[one.name]}, at any delay ({_never([one])})."
    words = f"Changing circuits pays {_first_end(one)}"
    for other in brackets:
        if other.pays_up_to_ms is None:
            words += f", but not against {RIVALS[other.name]}"
        elif other.pays_up_to_ms < pays_ms:
            words += f", and {_end(other)}"
    return f"{words}."


def _never(brackets: Iterable[Bracket]) -> str:
    """Return how sure it is that it pays at no delay."""
    proved = all(one.cannot_pay_from_ms == 0 for one in brackets)
    return "proved" if proved else "no plan was found that does"


def _sentences(brackets: Sequence[Bracket]) -> Iterable[str]:
    """Yield up to which delay it pays against whom, against whom never, who is beaten anyway, and what is proved."""
    fixed_ms = min((one.iteration_ms for one in brackets if one.name == "fixed"), default=math.inf)
    beaten = [one for one in brackets if one.always and fixed_ms * (1 + EQUAL) < one.iteration_ms]
    open_to = [one for one in brackets if one not in beaten]
    pays = [one for one in open_to if one.pays_up_to_ms is not None]
    never = [one for one in open_to if one.pays_up_to_ms is None]
    if pays:
        ends = enumeration([_first_end(pays[0]), *map(_end, pays[1:])])
        yield f"Changing circuits pays for this job {ends}."
    if never:
        does_not = "It does not" if pays else "Changing circuits does not pay for this job"
        yield f"{does_not} against {_named(never, 'or')}, at any delay ({_never(never)})."
    if beaten:
        yield f"Circuits that stay fixed already beat {_named(beaten)}."
    excluded: dict[str, list[Bracket]] = {}
    for one in pays:
        if one.cannot_pay_from_ms is not None:
            excluded.setdefault(delay_in_sentence(one.cannot_pay_from_ms), []).append(one)
    if excluded:
        said = (
            f"from {start} on against {_named(them).replace(SHARING, '')}"
            for start, them in excluded.items()
        )
        yield f"No plan can pay (proved) {', '.join(said)}; at delays between, no plan that pays was found."


def _named(brackets: Iterable[Bracket], joint: str = "and") -> str:
    return enumeration([RIVALS[one.name] for one in brackets], joint)


def _first_end(one: Bracket) -> str:
    """Return up to where it pays, as the first of a sentence says it: a longer search may find more."""
    end = _end(one, "a delay of ")
    return f"at least {end}" if end.startswith("up to") else end


def _end(one: Bracket, what: str = "") -> str:
    delay_ms = one.pays_up_to_ms or 0.0
    if one.always:
        return f"at every delay up to {delay_in_sentence(MAX_MS)} against {RIVALS[one.name]}"
    if delay_ms == 0:
        return f"only without a delay against {RIVALS[one.name]}"
    return f"up to {what}{delay_in_sentence(delay_ms)} against {RIVALS[one.name]}"
