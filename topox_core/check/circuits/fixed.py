"""Constraints on circuits that never change: that they stand, what they carry, and the bytes that arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from topox_core.check.circuits.network import (
    HeldCircuits,
    in_one_peer,
    out_one_peer,
    server_ports,
    switch_capacity,
)
from topox_core.check.circuits.ports import BookedPorts, port_bookings
from topox_core.check.intervals import Bool, Float, Int
from topox_core.check.plan import CheckedPlan
from topox_core.check.report import ConstraintReport, ms
from topox_core.check.rows import PathsOfTransfers, Rates

# Rates and bytes are sums and quotients of floats.
SHARE = 1e-6


def fixed_circuits(plan: CheckedPlan, paths: PathsOfTransfers) -> list[ConstraintReport]:
    """Return the findings on circuits that stay: their ports, what crosses them, and what arrives."""
    links = _Links.of(plan)
    k = plan.rules.ports_on_switch(plan.cluster)
    # On a half-duplex cluster eq. 8 is read as a fluid, as the static fabric does: what enters and
    # leaves a server together is a matter of the speed below, not of whole ports.
    each_way = replace(plan, cluster=plan.cluster.changed(duplex="full"))
    held = HeldCircuits.of(each_way)
    findings = [
        _standing(plan),
        switch_capacity(each_way, held),
        server_ports(each_way, held),
        in_one_peer(each_way, held, k),
        out_one_peer(each_way, held, k),
    ]
    booked = BookedPorts.of(each_way, k)
    if booked is not None:
        findings.append(port_bookings(each_way, k, booked))
    return [*findings, _bytes(plan, paths, links), _speed(plan, paths, links)]


def _standing(plan: CheckedPlan) -> ConstraintReport:
    """Physical: every circuit is there from the beginning to the end, so that none changes."""
    given, slack = plan.schedule, plan.tolerance_ms
    finding = ConstraintReport("fixed circuits stand", "physical", len(given.switch))
    absent = np.maximum(given.source, given.destination) >= plan.cluster.servers
    begins = np.maximum(np.abs(given.setup_ms), np.abs(given.circuit_start_ms)) <= slack
    stands = begins & (np.abs(given.circuit_end_ms - given.makespan_ms) <= 2 * slack)

    def describe(i: int) -> tuple[str, str]:
        item = f"circuit number {i} ({given.source[i]} -> {given.destination[i]})"
        if absent[i]:
            return item, f"joins a server that is not there ({plan.cluster.servers} servers)"
        return item, (
            f"stands from {ms(given.setup_ms[i])} to {ms(given.circuit_end_ms[i])}, not for the whole "
            f"iteration of {ms(given.makespan_ms)}"
        )

    finding.each(np.flatnonzero(absent | ~stands), describe)
    return finding


@dataclass(frozen=True)
class _Links:
    """Circuits of one source and one destination, counted; in the order of ``code``."""

    code: Int
    circuits: Float
    wide: int

    @staticmethod
    def of(plan: CheckedPlan) -> _Links:
        given = plan.schedule
        wide = 1 + max(
            int(column.max(initial=0))
            for column in (given.source, given.destination, plan.source, plan.destination)
        )
        code, counts = np.unique(given.source * wide + given.destination, return_counts=True)
        return _Links(code.astype(np.int64), counts.astype(np.float64), wide)

    def number(self, source: Int, destination: Int) -> Int:
        """Return the link between two servers, -1 where there is none."""
        if not len(self.code):
            return np.full(len(source), -1)
        known = (source < self.wide) & (destination < self.wide)
        code = np.where(known, source * self.wide + destination, -1)
        place = np.minimum(np.searchsorted(self.code, code), len(self.code) - 1)
        return np.where(self.code[place] == code, place, -1)

    def ends(self, link: Int) -> tuple[Int, Int]:
        """Return source and destination of links."""
        return self.code[link] // self.wide, self.code[link] % self.wide

    def name(self, link: int) -> str:
        """Return a link in words."""
        return f"circuits {self.code[link] // self.wide} -> {self.code[link] % self.wide}"


def _bytes(plan: CheckedPlan, paths: PathsOfTransfers, links: _Links) -> ConstraintReport:
    """Eqs 5 and 6 with sharing: the paths of a transfer carry exactly its bytes, between its start and its end.

    What a path carries is on all its hops at the same time, so that no byte is forwarded before it
    arrived.
    """
    node = np.array([plan.node_of.get(name, -1) for name in paths.transfer], np.int64)
    needs = np.flatnonzero(plan.is_transfer & (plan.length_ms > 0))
    finding = ConstraintReport("bytes of every transfer", "6", len(needs))
    item = [f"transfer {name}" for name in paths.transfer]
    carries = (node >= 0) & plan.is_transfer[node] if len(plan.ids) else node > 0
    finding.each(np.flatnonzero(~carries), lambda i: (item[i], "has paths, but is no transfer"))
    has = np.zeros(len(plan.ids), np.bool_)
    has[node[paths.owner]] = True
    finding.each(
        needs[~has[needs]],
        lambda j: (
            f"transfer {plan.ids[j]}",
            f"has no path {plan.source[j]} -> {plan.destination[j]}",
        ),
    )
    of_path = node[paths.owner]
    right = (plan.source[of_path] == paths.source) & (
        plan.destination[of_path] == paths.destination
    )
    missing = links.number(paths.hop_source, paths.hop_destination) < 0
    right &= np.bincount(paths.hop_path[missing], minlength=len(of_path)) == 0
    finding.each(
        np.flatnonzero(carries[paths.owner] & ~right),
        lambda p: (
            item[paths.owner[p]],
            f"takes a path that does not lead over circuits from server {plan.source[of_path[p]]} "
            f"to {plan.destination[of_path[p]]}",
        ),
    )
    if carries.all():
        _arrived(plan, paths, finding, node)
    _totals(plan, paths, finding)
    return finding


def _arrived(
    plan: CheckedPlan, paths: PathsOfTransfers, finding: ConstraintReport, node: Int
) -> None:
    """Check the bytes on each path, and that the last arrives when the transfer ends, no sooner than it starts."""
    item = [f"transfer {name}" for name in paths.transfer]
    rates, speed, slack = paths.rates, plan.cluster.port_gbps * 1e6 / 8, plan.tolerance_ms
    latency_ms, size = _sent(plan)
    moved = _sum(
        rates.owner, rates.gbps * 1e6 / 8 * (rates.end_ms - rates.begin_ms), len(paths.owner)
    )
    of_path = node[paths.owner]
    wanted = size[of_path] * paths.share
    wrong = ~(np.abs(moved - wanted) <= SHARE * size[of_path] + slack * speed)
    finding.each(
        np.flatnonzero(wrong),
        lambda p: (
            item[paths.owner[p]],
            f"moves {moved[p]:.9g} bytes on a path that takes {wanted[p]:.9g} of its {size[of_path[p]]:.9g}",
        ),
    )
    shares = _sum(paths.owner, paths.share, len(node))
    finding.each(
        np.flatnonzero(~(np.abs(shares - 1) <= SHARE)),
        lambda i: (item[i], f"has paths whose shares add up to {shares[i]:.9g}, not to 1"),
    )
    first, last = np.full(len(node), np.inf), np.full(len(node), -np.inf)
    np.minimum.at(first, paths.owner[rates.owner], rates.begin_ms)
    np.maximum.at(last, paths.owner[rates.owner], rates.end_ms)
    through = plan.end_ms[node] - latency_ms[node]
    late = SHARE * (through - plan.start_ms[node]) + slack
    finding.each(
        np.flatnonzero(~(first >= plan.start_ms[node] - slack)),
        lambda i: (
            item[i],
            f"moves bytes at {ms(first[i])}, before it starts at {ms(plan.start_ms[node[i]])}",
        ),
    )
    finding.each(
        np.flatnonzero(~(np.abs(last - through) <= late)),
        lambda i: (
            item[i],
            f"ends at {ms(plan.end_ms[node[i]])}, but its bytes are through at {ms(last[i] + latency_ms[node[i]])}",
        ),
    )


def _totals(plan: CheckedPlan, paths: PathsOfTransfers, finding: ConstraintReport) -> None:
    """Check that a transfer's rates are the sum of those on its paths, and that none runs backwards."""
    item = [f"transfer {name}" for name in paths.transfer]
    for rates, whose in (
        (paths.rates, paths.owner[paths.rates.owner]),
        (paths.totals, paths.totals.owner),
    ):
        wrong = (rates.end_ms < rates.begin_ms) | (rates.gbps < 0)
        finding.each(
            np.unique(whose[wrong]), lambda i: (item[i], "has a rate or a time below zero")
        )
    on_paths, totals = paths.rates, paths.totals
    load = _added(
        Rates(
            np.concatenate([paths.owner[on_paths.owner], totals.owner]),
            np.concatenate([on_paths.begin_ms, totals.begin_ms]),
            np.concatenate([on_paths.end_ms, totals.end_ms]),
            np.concatenate([on_paths.gbps, -totals.gbps]),
        )
    )
    most = SHARE * max(plan.cluster.port_gbps, float(totals.gbps.max(initial=0.0)))
    finding.each(
        np.unique(load.owner[_lasts(plan, load) & (np.abs(load.gbps) > most)]),
        lambda i: (item[i], "has rates that are not the sum of those on its paths"),
    )


def _speed(plan: CheckedPlan, paths: PathsOfTransfers, links: _Links) -> ConstraintReport:
    """Eqs 6 and 8 with sharing: at any time a link carries at most its circuits, a half-duplex server all its ports."""
    gbps = plan.cluster.port_gbps
    finding = ConstraintReport("speed of fixed circuits", "6", len(paths.hop_path))
    row, rates = _on_equal_paths(plan, paths)
    hops = np.searchsorted(paths.hop_path, np.arange(len(paths.owner) + 1))
    counts = np.diff(hops)[row]
    each = np.repeat(np.arange(len(row)), counts)
    hop = hops[row[each]] + np.arange(len(each)) - np.repeat(np.cumsum(counts) - counts, counts)
    link = links.number(paths.hop_source[hop], paths.hop_destination[hop])
    there = link >= 0
    link, each = link[there], each[there]
    times = Rates(link, rates.begin_ms[each], rates.end_ms[each], rates.gbps[each])
    if plan.cluster.duplex == "full":
        _over(plan, finding, times, links.circuits * gbps, links.name)
        return finding
    # A circuit each way is one port at both ends, used one way at a time.
    source, destination = links.ends(np.arange(len(links.code)))
    back = links.number(destination, source)
    other = np.where(back >= 0, back, np.arange(len(back)))
    both = np.minimum(other, np.arange(len(other)))
    most = np.maximum(links.circuits, np.where(back >= 0, links.circuits[other], 0.0)) * gbps
    _over(plan, finding, replace(times, owner=both[link]), most, links.name)
    ends = np.concatenate([source[link], destination[link]])
    twice = Rates(
        ends, *(np.tile(column, 2) for column in (times.begin_ms, times.end_ms, times.gbps))
    )
    total = np.full(max(links.wide, plan.cluster.servers), plan.cluster.ports_per_server * gbps)
    _over(plan, finding, twice, total, lambda s: f"server {s}")
    return finding


def _on_equal_paths(plan: CheckedPlan, paths: PathsOfTransfers) -> tuple[Int, Rates]:
    """Return what crosses the same servers together: a path that stands for each row, and the sum of the rates."""
    first: dict[tuple[int, ...], int] = {}
    hops = np.searchsorted(paths.hop_path, np.arange(len(paths.owner) + 1)).tolist()
    ends, begin = paths.hop_destination.tolist(), paths.source.tolist()
    same = np.array(
        [
            first.setdefault((begin[p], *ends[hops[p] : hops[p + 1]]), p)
            for p in range(len(paths.owner))
        ],
        np.int64,
    )
    load = _added(replace(paths.rates, owner=same[paths.rates.owner]))
    kept = (load.gbps > 0) & _lasts(plan, load)
    row = load.owner[kept]
    return row, Rates(row, load.begin_ms[kept], load.end_ms[kept], load.gbps[kept])


def _lasts(plan: CheckedPlan, rates: Rates) -> Bool:
    """Return which rows last longer than the tolerance."""
    return rates.end_ms - rates.begin_ms > plan.tolerance_ms


def _added(rates: Rates) -> Rates:
    """Return what is under way of each owner, from each event to the next."""
    owner = np.concatenate([rates.owner, rates.owner])
    when = np.concatenate([rates.begin_ms, rates.end_ms])
    order = np.lexsort((when, owner))
    owner, when = owner[order], when[order]
    # Every owner's steps sum to nothing, but for the last digits: sums begin anew with each owner.
    sums = np.cumsum(np.concatenate([rates.gbps, -rates.gbps])[order])
    begins: Bool = np.ones(len(owner), np.bool_)
    begins[1:] = owner[1:] != owner[:-1]
    before = np.where(begins, np.concatenate([[0.0], sums[:-1]]), 0.0)
    sums = sums - np.repeat(before[begins], np.diff(np.append(np.flatnonzero(begins), len(owner))))
    until = np.append(when[1:], 0.0)
    until[np.append(begins[1:], True)] = -np.inf
    return Rates(owner, when, until, sums)


def _over(
    plan: CheckedPlan,
    finding: ConstraintReport,
    rates: Rates,
    capacity: Float,
    name: Callable[[int], str],
) -> None:
    """Report every group whose rates add up to more than its capacity for longer than the tolerance."""
    load = _added(rates)
    most = float(rates.gbps.max(initial=0.0))
    above = load.gbps > capacity[load.owner] * (1 + SHARE) + SHARE * most
    over = np.flatnonzero(_lasts(plan, load) & above)
    finding.each(
        over[np.unique(load.owner[over], return_index=True)[1]],
        lambda i: (
            name(int(load.owner[i])),
            f"carries {load.gbps[i]:.6g} Gbit/s at {ms(load.begin_ms[i])}; it has {capacity[load.owner[i]]:.6g}",
        ),
    )


def _sent(plan: CheckedPlan) -> tuple[Float, Float]:
    """Return the latency and the bytes of each node; a given duration counts as what a port moves in it."""
    speed = plan.cluster.port_gbps * 1e6 / 8
    tasks = plan.graph.tasks
    given = np.array(
        [t.duration_ms is not None for t in tasks] + [False] * len(plan.schedule.transfer)
    )
    latency_ms = np.where(given, 0.0, plan.cluster.latency_us / 1000)
    return latency_ms, (plan.length_ms - latency_ms) * speed


def _sum(group: Int, value: Float, groups: int) -> Float:
    return np.bincount(group, value, groups).astype(np.float64)
