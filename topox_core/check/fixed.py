"""Constraints on circuits that never change: their number, what they carry, and the bytes that arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.check.plan import CheckedPlan
from topox_core.check.report import ConstraintFinding, ms
from topox_core.check.schedule_file import FixedCircuits

# Rates and bytes are sums and quotients of floats.
SHARE = 1e-6


def fixed_ports(plan: CheckedPlan, fixed: FixedCircuits) -> ConstraintFinding:
    """Eqs 7 and 8 for circuits that stay: a server has ports for its circuits, the switches for all of them.

    On a half-duplex cluster eq. 8 is read as a fluid, as the static fabric does: what enters and
    leaves a server together is a matter of :func:`fixed_capacity`.
    """
    cluster = plan.cluster
    finding = ConstraintFinding("ports of fixed circuits", "8", 2 * len(fixed.link_source))
    outside = np.maximum(fixed.link_source, fixed.link_destination) >= cluster.servers
    finding.each(
        np.flatnonzero(outside),
        lambda i: (
            _link(fixed, i),
            f"joins a server that is not there ({cluster.servers} servers)",
        ),
    )
    if outside.any():
        return finding
    counts = fixed.link_circuits.astype(np.float64)
    ways = [
        ("sends on", _per_server(fixed.link_source, counts, cluster.servers)),
        ("receives on", _per_server(fixed.link_destination, counts, cluster.servers)),
    ]
    for words, used in ways:
        for server in np.flatnonzero(used > cluster.ports_per_server).tolist():
            finding.add(
                f"server {server}",
                f"{words} {used[server]:g} ports; it has {cluster.ports_per_server}",
            )
    room = cluster.switches * cluster.ports_per_switch
    if counts.sum() > room:
        finding.add("switches", f"carry {counts.sum():g} circuits; they have room for {room}")
    return finding


def fixed_circuits_for_every_transfer(plan: CheckedPlan, fixed: FixedCircuits) -> ConstraintFinding:
    """Eq. 6 with sharing: while a transfer runs, the paths of its pair carry exactly its bytes, then the latency passes."""
    needs = np.flatnonzero(plan.is_transfer & (plan.length_ms > 0))
    finding = ConstraintFinding("bytes of every transfer", "6", len(needs))
    broken = _broken_paths(fixed)
    for p in np.flatnonzero(broken).tolist():
        finding.add(
            f"path {p}",
            f"does not lead from server {fixed.path_source[p]} to {fixed.path_destination[p]}",
        )
    parts = _Parts.of(plan, fixed)
    without = needs[~np.isin(needs, parts.node)]
    finding.each(
        without,
        lambda j: (
            f"transfer {plan.ids[j]}",
            f"has no path {plan.source[j]} -> {plan.destination[j]}",
        ),
    )
    latency_ms, _ = _sent(plan)
    through = np.full(len(plan.ids), -np.inf)
    np.maximum.at(through, parts.node, parts.end_ms)
    last = plan.end_ms - latency_ms
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(through - last) <= plan.tolerance_ms + SHARE * (last - plan.start_ms))
    finding.each(
        np.intersect1d(needs[wrong[needs]], parts.node),
        lambda j: (
            f"transfer {plan.ids[j]}",
            f"ends at {ms(plan.end_ms[j])}, but its bytes are through at {ms(through[j] + latency_ms[j])}",
        ),
    )
    return finding


def fixed_capacity(plan: CheckedPlan, fixed: FixedCircuits) -> ConstraintFinding:
    """Eqs 6 and 8 with sharing: at any time a link carries at most its circuits, a half-duplex server all its ports."""
    speed = plan.cluster.port_gbps * 1e6 / 8
    half = plan.cluster.duplex == "half"
    path, begin, end, rate = _loads(plan, fixed)
    # Every hop of every path, with the load of the path.
    order = np.argsort(fixed.hop_path, kind="stable")
    hop_path, hop_link = fixed.hop_path[order], fixed.hop_link[order]
    edges = np.searchsorted(hop_path, np.arange(len(fixed.path_source) + 1))
    counts = np.diff(edges)[path]
    row = np.repeat(np.arange(len(path)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    link = hop_link[edges[path[row]] + within]
    finding = ConstraintFinding("speed of fixed circuits", "6", len(row))
    capacity: Float = fixed.link_circuits.astype(np.float64) * speed
    group = link
    if half:
        first, back = _both_ways(fixed)
        capacity = np.maximum(fixed.link_circuits, back) * speed
        group = first[link]
    _over(
        plan, finding, group, (begin[row], end[row], rate[row]), capacity, lambda g: _link(fixed, g)
    )
    if half:
        ends = np.concatenate([fixed.link_source[link], fixed.link_destination[link]])
        both = np.concatenate([row, row])
        total = np.full(plan.cluster.servers, plan.cluster.ports_per_server * speed)
        times = (begin[both], end[both], rate[both])
        _over(plan, finding, ends, times, total, lambda s: f"server {s}")
    return finding


@dataclass(frozen=True)
class _Parts:
    """Transfers cut into equal parts, one a path of their pair: node, path, and when the part is under way.

    A part is through when the rates of its path have added up to its bytes; never is infinity.
    """

    node: Int
    path: Int
    begin_ms: Float
    end_ms: Float

    @staticmethod
    def of(plan: CheckedPlan, fixed: FixedCircuits) -> _Parts:
        order = np.lexsort((fixed.rate_start_ms, fixed.rate_path))
        edges = np.searchsorted(fixed.rate_path[order], np.arange(len(fixed.path_source) + 1))
        start, end, rate = fixed.rate_start_ms[order], fixed.rate_end_ms[order], fixed.rate[order]
        moved = np.concatenate([[0.0], np.cumsum(rate * (end - start))])
        wide = 1 + max(
            int(column.max(initial=0))
            for column in (fixed.path_source, fixed.path_destination, plan.source, plan.destination)
        )
        paths: dict[int, list[int]] = {}
        for p, pair in enumerate((fixed.path_source * wide + fixed.path_destination).tolist()):
            paths.setdefault(pair, []).append(p)
        rows: list[tuple[int, int, float, float]] = []
        _, size = _sent(plan)
        for j in np.flatnonzero(plan.is_transfer & (plan.length_ms > 0)).tolist():
            own = paths.get(int(plan.source[j] * wide + plan.destination[j]), [])
            begin = float(plan.start_ms[j])
            for p in own:
                lo, hi = int(edges[p]), int(edges[p + 1])
                at = lo + max(0, int(np.searchsorted(start[lo:hi], begin, side="right")) - 1)
                before = moved[at] + (
                    rate[at] * min(max(0.0, begin - start[at]), end[at] - start[at])
                    if at < hi
                    else 0.0
                )
                target = before + size[j] / len(own) * (1 - SHARE / 1000)
                row = lo + int(np.searchsorted(moved[lo + 1 : hi + 1], target))
                until = np.inf
                if row < hi:
                    until = float(start[row] + (target - moved[row]) / rate[row])
                rows.append((j, p, begin, until))
        table = np.array(rows, np.float64).reshape(-1, 4)
        whole = table[:, :2].astype(np.int64)
        return _Parts(whole[:, 0], whole[:, 1], table[:, 2], table[:, 3])


def _sent(plan: CheckedPlan) -> tuple[Float, Float]:
    """Return the latency and the bytes of each node; a given duration counts as what a port moves in it."""
    speed = plan.cluster.port_gbps * 1e6 / 8
    tasks = plan.graph.tasks
    given = np.array(
        [t.duration_ms is not None for t in tasks] + [False] * len(plan.schedule.transfer)
    )
    latency_ms = np.where(given, 0.0, plan.cluster.latency_us / 1000)
    return latency_ms, (plan.length_ms - latency_ms) * speed


def _loads(plan: CheckedPlan, fixed: FixedCircuits) -> tuple[Int, Float, Float, Float]:
    """Return what each path carries in rows: path, from when, until when, bytes per ms of all that are under way."""
    parts = _Parts.of(plan, fixed)
    begins: dict[int, Float] = {}
    ends: dict[int, Float] = {}
    for number in np.unique(parts.path).tolist():
        mine = parts.path == number
        begins[number] = np.sort(parts.begin_ms[mine])
        ends[number] = np.sort(parts.end_ms[mine])
    nothing = np.zeros(0)
    rows: list[tuple[int, float, float, float]] = []
    slack = plan.tolerance_ms
    for p, s, e, rate in zip(
        fixed.rate_path.tolist(),
        fixed.rate_start_ms.tolist(),
        fixed.rate_end_ms.tolist(),
        fixed.rate.tolist(),
        strict=True,
    ):
        begin, end = begins.get(p, nothing), ends.get(p, nothing)
        # Who comes or goes inside a row with one rate changes how many there are.
        cuts = np.concatenate([begin, end])
        inside = np.unique(cuts[(cuts > s + slack) & (cuts < e - slack)])
        edges = [s, *inside.tolist(), e]
        for a, b in pairwise(edges):
            middle = (a + b) / 2
            active = int(np.searchsorted(begin, middle)) - int(np.searchsorted(end, middle))
            if active > 0 and b > a + slack:
                rows.append((p, a, b, rate * active))
    table = np.array(rows, np.float64).reshape(-1, 4)
    return table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3]


def _over(
    plan: CheckedPlan,
    finding: ConstraintFinding,
    group: Int,
    times: tuple[Float, Float, Float],
    capacity: Float,
    name: Callable[[int], str],
) -> None:
    """Report every group whose rates add up to more than its capacity at some time."""
    begin, end, rate = times
    groups = np.concatenate([group, group])
    when = np.concatenate([begin, end - plan.tolerance_ms])
    step = np.concatenate([rate, -rate])
    order = np.lexsort((step, when, groups))
    g, load = groups[order], np.cumsum(step[order])
    over = np.flatnonzero(load > capacity[g] * (1 + SHARE) + SHARE * float(rate.max(initial=0.0)))
    shown = over[np.unique(g[over], return_index=True)[1]] if len(over) else over
    finding.each(
        shown,
        lambda i: (
            name(int(g[i])),
            f"carries {load[i]:.6g} bytes per ms at {ms(float(when[order[i]]))}; it has {capacity[g[i]]:.6g}",
        ),
    )


def _both_ways(fixed: FixedCircuits) -> tuple[Int, Float]:
    """Return of each link the first link of its pair of servers, either way round, and the circuits back."""
    wide = int(max(fixed.link_source.max(initial=0), fixed.link_destination.max(initial=0))) + 1
    code = fixed.link_source * wide + fixed.link_destination
    number = {c: i for i, c in enumerate(code.tolist())}
    back = [number.get(c, -1) for c in (fixed.link_destination * wide + fixed.link_source).tolist()]
    index = np.array(back, np.int64)
    first = np.where(index >= 0, np.minimum(index, np.arange(len(index))), np.arange(len(index)))
    circuits = np.where(index >= 0, fixed.link_circuits[index], 0).astype(np.float64)
    return first, circuits


def _broken_paths(fixed: FixedCircuits) -> np.ndarray:
    """Return which paths do not lead hop by hop from their source to their destination."""
    at = fixed.path_source.copy()
    broken = np.zeros(len(at), np.bool_)
    for p, link in zip(fixed.hop_path.tolist(), fixed.hop_link.tolist(), strict=True):
        broken[p] |= bool(fixed.link_source[link] != at[p]) or fixed.link_circuits[link] < 1
        at[p] = fixed.link_destination[link]
    return np.asarray(broken | (at != fixed.path_destination))


def _per_server(server: Int, counts: Float, servers: int) -> Float:
    return np.bincount(server, counts, servers).astype(np.float64)


def _link(fixed: FixedCircuits, i: int) -> str:
    return f"circuits {fixed.link_source[i]} -> {fixed.link_destination[i]}"
