"""The exact optimum: groups, rings and links decided together by HiGHS, from the best round of the other methods."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.runs.stopping import Stop
from topox_core.schedule.engines import mip
from topox_core.tdm.algorithms.combination import Combination
from topox_core.tdm.algorithms.decomposition import combined
from topox_core.tdm.algorithms.extended import Search, shortest
from topox_core.tdm.algorithms.splits import all_subsets_of
from topox_core.tdm.exact.exact_model import ExactModel, Traffic, columns_of
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.link_rules import LinkRule, link_rules
from topox_core.tdm.model.round import Cycle, OnMoment, Round, TdmSettings
from topox_core.tdm.model.rounds import circuits_change, computing_s, phases_of

MAX_JOBS = 500
MAX_COLUMNS = 20_000
SOURCE = "HiGHS"
BOUND_BY = "branch and bound (HiGHS)"
BOUND_FOR = "two groups, any rings"
BOUND_FOR_ALL_TRAIN = "two groups and all-train phases, any rings"
# What HiGHS's tolerances leave open, relative to the round.
TOLERANCE = 1e-6


def exact(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnMoment) -> Round:
    """Return the shortest round of all groupings, rings and links, proved if there is time enough.

    Raises
    ------
    InputError
        If the model would be too large (the size is named), or no links suffice.
    """
    refuse_if_too_large(jobs, settings)
    search = Search("milp", jobs, settings, stop, on_moment)
    start = search.start()
    subsets = all_subsets_of(search.table, search.stop)
    if subsets is not None:
        try:
            start = shortest(start, combined(search, Combination(search, subsets), start, False))
        except InputError:
            start = None  # no rings of Algorithm 3 fit, others may
    found, bound_s = prove(search, start, False)
    proved = bound_s >= found.round_s * (1 - TOLERANCE)
    message = "" if proved else "Stopped before the proof: the optimum is between bound and round."
    return search.answer(
        found,
        bound_s=bound_s,
        bound_by=BOUND_BY,
        bound_for=BOUND_FOR,
        stopped_by="time_limit",
        message=message,
    )


def refuse_if_too_large(jobs: Jobs, settings: TdmSettings, most: int = MAX_COLUMNS) -> None:
    """Raise an :class:`InputError` that names the size if the model should not be built."""
    if len(jobs) > MAX_JOBS:
        raise InputError(
            f"the exact model takes at most {MAX_JOBS:,} jobs (got {len(jobs):,}): use best-grouping",
            file="settings",
            field="algorithm",
        )
    columns = columns_of(jobs, Traffic.of(jobs, settings.reading))
    if columns > most:
        raise InputError(
            f"the exact model would have {columns:,} columns (limit {most:,}): use best-grouping",
            file="settings",
            field="algorithm",
        )


def prove(search: Search, start: Round | None, all_train: bool) -> tuple[Round, float]:
    """Return the shortest round found from ``start``, and what no round of this kind is below.

    Raises
    ------
    InputError
        If no links suffice, whatever the grouping and the rings.
    """
    proof = _Proof(search, Traffic.of(search.jobs, search.settings.reading), start, all_train)
    rules = link_rules(search.dark_s)
    for number, rule in enumerate(rules):
        proof.run(rule, rules[number + 1 :])
        if search.stop() and proof.bounds[-1] < proof.shortest_s * (1 - TOLERANCE):
            break
    if proof.best is None:
        search.too_few_ports()
        raise RuntimeError("HiGHS finds no round although the ports suffice for one group")
    return proof.best, proof.bound_s(rules[len(proof.bounds) :])


@dataclass
class _Proof:
    """What is known while the models of all link rules are solved one after the other."""

    search: Search
    traffic: Traffic
    best: Round | None
    all_train: bool

    def __post_init__(self) -> None:
        self.bounds: list[float] = []
        self._told = 0.0

    @property
    def shortest_s(self) -> float:
        """Length of the best round."""
        return math.inf if self.best is None else self.best.round_s

    def bound_s(self, left: tuple[LinkRule, ...], running: float | None = None) -> float:
        """Return what no round is below: of the rules not run yet, what the first one says without its switching."""
        bounds = [*self.bounds, *([] if running is None else [running])]
        if left and bounds:
            bounds.append(bounds[0] - 4 * self.search.dark_s)
        return max(0.0, min([*bounds, self.shortest_s])) if bounds else 0.0

    def run(self, rule: LinkRule, left: tuple[LinkRule, ...]) -> None:
        """Solve the model of one rule for rounds shorter than the best."""
        search = self.search
        unit_s = min(self.traffic.longest_stage_s(search.jobs), self.shortest_s / 2)
        if unit_s <= 0:  # nobody communicates
            unit_s = 1.0
        free = rule.tie == "free"
        cutoff_s = self.shortest_s if free else self.shortest_s * (1 - TOLERANCE / 10)
        model = ExactModel(
            search.jobs,
            search.settings.reading,
            self.traffic,
            rule,
            unit_s,
            cutoff_s,
            self.all_train,
        )

        def on_values(values: mip.Float) -> None:
            self._take(model, values)

        def on_dual(dual: float) -> bool:
            if math.isfinite(dual):
                self._tell(self.bound_s(left, dual * unit_s))
            return search.stop()

        start = self._start(model) if free and self.best is not None else None
        outcome = mip.solve(
            model.mip,
            mip.Run(search.left_s, 0.0, 1e-8, seed=search.settings.seed),
            start,
            search.stop,
            on_values,
            on_dual,
        )
        if outcome.values is not None:
            on_values(outcome.values)
        bound = outcome.dual * unit_s if math.isfinite(outcome.dual) else 0.0
        if outcome.ended == "infeasible" or (
            outcome.ended == "optimal" and bound > self.shortest_s * (1 - TOLERANCE)
        ):
            bound = self.shortest_s
        self.bounds.append(min(bound, self.shortest_s))
        self._tell(self.bound_s(left))

    def _tell(self, bound_s: float) -> None:
        if bound_s > self._told * (1 + 1e-4):
            self._told = bound_s
            self.search.note(
                self.shortest_s, BOUND_BY, max(bound_s, self.search.floor.seconds), always=True
            )

    def _start(self, model: ExactModel) -> tuple[NDArray[np.int32], mip.Float]:
        """Return the best round as the model's columns; the first job's group is the model's group 0."""
        assert self.best is not None
        group, links, swapped = (
            self.best.group,
            self.best.links,
            self.best.group[0] if self.best.group else 0,
        )
        return model.start(
            [k ^ swapped for k in group],
            self.best.rings,
            lambda g, k, pair: int(links[g, k ^ swapped][pair]),
        )

    def _take(self, model: ExactModel, values: mip.Float) -> None:
        """Measure a solution with the links of Algorithm 2, which are optimal, and with its own where they are tied."""
        search, group = self.search, model.groups(values)
        rings = {n: ring for n, ring in enumerate(model.rings(values)) if ring}
        found = search.round(group, all_train=self.all_train, rings=rings, source=SOURCE)
        if model.rule.tie != "free":
            tied = with_links(search, found, model.chosen_links(values), self.all_train)
            search.note(tied.round_s, SOURCE)
            found = shortest(found, tied) or found
        self.best = shortest(self.best, found)


def with_links(search: Search, found: Round, links: NDArray[np.int32], all_train: bool) -> Round:
    """Return a two-group round over other links that serve its demand."""
    table, network = search.table, search.jobs.network
    rings = {n: ring for n, ring in enumerate(found.rings) if ring}
    seconds = np.zeros((network.pod_groups, 2))
    for g, members in enumerate(table.members):
        for k in range(2):
            stage = table.stage(g, [n for n in members if found.group[n] == k], rings)
            needed = stage.demand_gbit > 0
            if (links[g, k][needed] == 0).any():
                return found
            longest = float(
                (stage.demand_gbit[needed] / (links[g, k][needed] * network.port_gbps)).max(
                    initial=0.0
                )
            )
            seconds[g, k] = max(
                longest, float(stage.local_gbit.max(initial=0.0)) / network.tor_gbps
            )
    change = np.array([circuits_change(of_pod_group) for of_pod_group in links]).any(0)
    dark_s = np.where(change, search.dark_s, 0.0)
    phases = phases_of(
        seconds.max(0),
        computing_s(search.jobs, found.group, 2, table.reading),
        dark_s,
        all_train=all_train,
        delay_inside=table.reading.delay_inside,
    )
    return replace(
        found,
        links=links,
        communication_s=seconds,
        cycles=(Cycle(tuple(range(network.pod_groups)), phases),),
    )
