"""The exact optimum: groups, rings and links decided together by HiGHS, from the best round of the other methods."""

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from topox_core.schedule.engines import mip
from topox_core.tdm.exact.exact_model import ExactModel, LinkRule, Traffic, link_rules
from topox_core.tdm.model.jobs import DRAFT, Jobs, Reading, Round, RoundBound, RoundForm
from topox_core.tdm.model.rounds import cycles_of
from topox_core.tdm.search import Search, shortest

MAX_JOBS = 500
MAX_COLUMNS = 20_000
# Times further apart than this are lost in the solver's tolerances, or refused by it as coefficients.
MAX_RATIO = 1e9
SOURCE = "HiGHS"
BOUND_BY = "branch and bound (HiGHS)"
UNPROVED = "Stopped before the proof: the optimum is between bound and round."
# What HiGHS's tolerances leave open, relative to the round.
TOLERANCE = 1e-6


def too_large(jobs: Jobs, reading: Reading, most: int = MAX_COLUMNS) -> str:
    """Return why the exact model should not be built, with its size or its times; empty if it may be."""
    if len(jobs) > MAX_JOBS:
        return f"the exact model takes at most {MAX_JOBS:,} jobs (got {len(jobs):,})"
    traffic = Traffic.of(jobs, reading)
    columns = traffic.columns(jobs)
    if columns > most:
        return f"the exact model would have {columns:,} columns (limit {most:,})"
    stage_s = traffic.longest_stage_s
    computing_s = max((job.train_s + job.aggregate_s for job in jobs.jobs), default=0.0)
    if 0 < stage_s * MAX_RATIO < computing_s:
        return (
            f"computing takes {computing_s / stage_s:.0e} times as long as the longest stage, "
            f"more than the {MAX_RATIO:.0e} the exact model tells apart"
        )
    return ""


def prove(
    search: Search, start: Round | None, form: RoundForm = DRAFT
) -> tuple[Round, RoundBound, bool]:
    """Return the shortest round found from ``start``, the bound of its form, and whether they meet.

    Raises
    ------
    TooFewPortsError
        If no links suffice, whatever the grouping and the rings.
    """
    proof = _Proof(search, Traffic.of(search.jobs, search.settings.reading), start, form)
    rules = link_rules(search.dark_s)
    for number, rule in enumerate(rules):
        proof.run(rule, rules[number + 1 :])
        if search.stop() and proof.bounds[-1] < proof.shortest_s * (1 - TOLERANCE):
            break
    if proof.best is None:
        search.all_at_once()
        raise RuntimeError("HiGHS finds no round although the ports suffice for one group")
    bound_s = proof.bound_s(rules[len(proof.bounds) :])
    bound = RoundBound(bound_s, BOUND_BY, f"{form.words}, any rings", any_rings=True)
    return proof.best, bound, bound_s >= proof.shortest_s * (1 - TOLERANCE)


@dataclass
class _Proof:
    """What is known while the models of all link rules are solved one after the other."""

    search: Search
    traffic: Traffic
    best: Round | None
    form: RoundForm
    bounds: list[float] = field(default_factory=list)
    noted_s: float = 0.0

    @property
    def shortest_s(self) -> float:
        """Length of the best round."""
        return math.inf if self.best is None else self.best.round_s

    def bound_s(self, left: tuple[LinkRule, ...], running: float | None = None) -> float:
        """Return what no round is below: for rules not run yet, the first one's bound without its switching."""
        bounds = [*self.bounds, *([] if running is None else [running])]
        if left and bounds:
            bounds.append(bounds[0] - 4 * self.search.dark_s)
        return max(0.0, min([*bounds, self.shortest_s])) if bounds else 0.0

    def run(self, rule: LinkRule, left: tuple[LinkRule, ...]) -> None:
        """Solve the model of one rule for rounds shorter than the best."""
        search = self.search
        unit_s = min(self.traffic.longest_stage_s, self.shortest_s / 2)
        if unit_s <= 0:  # nobody communicates
            unit_s = 1.0
        free = rule.tie == "free"
        cutoff_s = self.shortest_s if free else self.shortest_s * (1 - TOLERANCE / 10)
        model = ExactModel(
            search.jobs,
            search.settings.reading,
            rule,
            unit_s=unit_s,
            cutoff_s=cutoff_s,
            all_train=self.form.all_train,
        )

        def on_dual(dual: float) -> bool:
            if math.isfinite(dual):
                self._note_bound(self.bound_s(left, dual * unit_s))
            return search.stop()

        start = self._start(model) if free and self.best is not None else None
        outcome = mip.solve(
            model.mip,
            mip.Run(search.left_s, 0.0, 1e-8, seed=search.settings.seed),
            start,
            search.stop,
            partial(self._take, model),
            on_dual,
        )
        if outcome.values is not None:
            self._take(model, outcome.values)
        bound = outcome.dual * unit_s if math.isfinite(outcome.dual) else 0.0
        if outcome.ended == "infeasible" or (
            outcome.ended == "optimal" and bound > self.shortest_s * (1 - TOLERANCE)
        ):
            bound = self.shortest_s
        self.bounds.append(min(bound, self.shortest_s))
        self._note_bound(self.bound_s(left))

    def _note_bound(self, bound_s: float) -> None:
        if bound_s > self.noted_s * (1 + 1e-4):
            self.noted_s = bound_s
            bound_s = max(bound_s, self.search.floor.round_s)
            self.search.note(self.shortest_s, BOUND_BY, bound_s, always=True)

    def _start(self, model: ExactModel) -> tuple[NDArray[np.int32], mip.Float]:
        """Return the best round as the model's columns.

        The first job's group is the model's group 0.
        """
        assert self.best is not None
        group, links = self.best.group, self.best.links
        swapped = group[0] if group else 0
        return model.start(
            [k ^ swapped for k in group],
            self.best.rings,
            lambda g, k, pair: int(links[g, k ^ swapped][pair]),
        )

    def _take(self, model: ExactModel, values: mip.Float) -> None:
        """Measure a solution with the links of Algorithm 2, which are optimal, and with its own where they are tied."""
        search, group = self.search, model.groups(values)
        rings = {n: ring for n, ring in enumerate(model.rings(values)) if ring}
        result = search.round(group, self.form, rings=rings, source=SOURCE)
        if model.rule.tie != "free":
            tied = with_links(search, result, model.chosen_links(values))
            search.note(tied.round_s, SOURCE)
            result = shortest(result, tied) or result
        self.best = shortest(self.best, result)


def with_links(search: Search, served: Round, links: NDArray[np.int32]) -> Round:
    """Return a two-group round over other links, if they serve its demand.

    Else the round as it is.
    """
    table, network = search.table, search.jobs.network
    rings = {n: ring for n, ring in enumerate(served.rings) if ring}
    seconds = np.zeros((network.pod_groups, 2))
    for g, members in enumerate(table.members):
        for k in range(2):
            stage = table.stage(g, [n for n in members if served.group[n] == k], rings)
            needed = stage.demand_gbit > 0
            if (links[g, k][needed] == 0).any():
                return served
            pair_s = stage.demand_gbit[needed] / (links[g, k][needed] * network.port_gbps)
            tor_s = stage.local_gbit.max(initial=0.0) / network.tor_gbps
            seconds[g, k] = pair_s.max(initial=tor_s)
    cycles = cycles_of(table, served.group, served.form, seconds, links)
    return replace(served, links=links, communication_s=seconds, cycles=cycles)
