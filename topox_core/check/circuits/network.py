"""Constraints on circuits, printed in the paper: eqs 6 to 10."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topox_core.check.intervals import Float, Int, Openings, covered, united
from topox_core.check.plan import CheckedPlan
from topox_core.check.report import ConstraintReport, ms


@dataclass(frozen=True)
class HeldCircuits:
    """The circuits that count against capacities: from set-up (dark) to the end; shared ones once.

    ``row`` is a row of the result's circuits that stands for each. A set-up that began in the
    iteration before counts at the end of this one, too, which repeats.
    """

    row: Int
    switch: Int
    source: Int
    destination: Int
    openings: Openings
    setup_ms: Float

    @staticmethod
    def of(plan: CheckedPlan) -> HeldCircuits:
        """Return the circuits of a result.

        Overlapping ones of one pair on one switch count once where they may be shared.
        """
        given = plan.schedule
        row = np.arange(len(given.switch))
        setup, end = given.setup_ms, given.circuit_end_ms
        if plan.rules.share_circuits:
            wide = int(max(given.source.max(initial=0), given.destination.max(initial=0))) + 1
            pair = (given.switch * wide + given.source) * wide + given.destination
            row, setup, end = united(pair, setup, end, -plan.tolerance_ms)
        if plan.rules.repeats:
            early = np.flatnonzero(setup < -plan.tolerance_ms)
            row = np.concatenate([row, early])
            setup = np.concatenate([setup, setup[early] + plan.period_ms])
            end = np.concatenate([end, np.full(len(early), plan.period_ms)])
        return HeldCircuits(
            row,
            given.switch[row],
            given.source[row],
            given.destination[row],
            Openings.of(setup, end, plan.tolerance_ms),
            setup,
        )


def circuit_for_every_transfer(plan: CheckedPlan) -> ConstraintReport:
    """Eq. 6: while a transfer runs, a circuit of its own joins its source to its destination.

    No circuit does anything else.
    """
    given, slack = plan.schedule, plan.tolerance_ms
    node = plan.circuit_node
    begin, end = given.circuit_start_ms, given.circuit_end_ms
    needs = np.flatnonzero(plan.is_transfer & (plan.end_ms > plan.start_ms + slack))
    finding = ConstraintReport("circuit for every transfer", "6", len(needs) + len(node))
    carries = (node >= 0) & plan.is_transfer[node] if len(plan.ids) else node > 0
    joins = (
        carries
        & (plan.source[node] == given.source)
        & (plan.destination[node] == given.destination)
    )
    inside = joins & (begin >= plan.start_ms[node] - slack) & (end <= plan.end_ms[node] + slack)
    # A transfer that takes no time needs no circuit, but one of no length does no harm.
    idle = (end <= begin + slack) & ~(inside & (plan.length_ms[node] == 0))
    # Where circuits are continuous their set-up belongs to the reconfiguration delay.
    bad_setup = (given.setup_ms > begin + slack) | (given.setup_ms < -slack)
    bad_setup &= not plan.rules.continuous

    def describe(i: int) -> tuple[str, str]:
        pair = f"{given.source[i]} -> {given.destination[i]}"
        item = f"circuit number {i} ({pair} on switch {given.switch[i]})"
        name, j = given.circuit_task[i], node[i]
        if not carries[i]:
            return item, f"carries {name}, which is no transfer"
        if not joins[i]:
            return item, f"carries {name}, which goes {plan.source[j]} -> {plan.destination[j]}"
        if idle[i]:
            return item, f"carries nothing: it starts at {ms(begin[i])} and ends at {ms(end[i])}"
        if not inside[i]:
            return item, (
                f"carries {name} from {ms(begin[i])} to {ms(end[i])}, but that runs "
                f"from {ms(plan.start_ms[j])} to {ms(plan.end_ms[j])}"
            )
        return item, (
            f"is set up at {ms(given.setup_ms[i])}, which is before the iteration "
            f"or after {ms(begin[i])}, when it carries"
        )

    finding.each(np.flatnonzero(~inside | idle | bad_setup), describe)
    good = np.flatnonzero(inside & ~idle)
    has = covered(plan.start_ms, plan.end_ms, node[good], begin[good], end[good], slack)
    finding.each(
        needs[~has[needs]],
        lambda i: (
            f"transfer {plan.ids[i]}",
            f"has no circuit {plan.source[i]} -> {plan.destination[i]} of its own for the whole time "
            f"from {ms(plan.start_ms[i])} to {ms(plan.end_ms[i])}",
        ),
    )
    return finding


def switch_capacity(plan: CheckedPlan, held: HeldCircuits) -> ConstraintReport:
    """Eq. 7: a switch carries at most d_OCS circuits at once, dark ones too.

    A switch that is not there carries none.
    """
    cluster = plan.cluster
    finding = ConstraintReport("switch capacity", "7", len(held.row))
    absent = held.switch >= cluster.switches
    finding.each(
        np.flatnonzero(absent),
        lambda i: (
            _circuit(plan, held, i),
            f"is on switch {held.switch[i]}, but the cluster has {cluster.switches}",
        ),
    )
    finding.above(
        held.openings,
        held.switch,
        cluster.ports_per_switch,
        lambda i, count: (
            f"switch {held.switch[i]}",
            f"carries {count} circuits at {ms(held.setup_ms[i])}, when it takes up "
            f"{_circuit(plan, held, i)}; it has room for {cluster.ports_per_switch}",
        ),
    )
    return finding


def server_ports(plan: CheckedPlan, held: HeldCircuits) -> ConstraintReport:
    """Eq. 8: a server uses at most d_S ports: each way (full duplex), or in and out together (half duplex, as printed)."""
    finding = ConstraintReport("ports", "8", 2 * len(held.row))
    if plan.cluster.duplex == "half":
        _too_many(plan, finding, held, _both_ends(held), "uses {} ports, in and out")
        return finding
    for verb, server in (("sends", held.source), ("receives", held.destination)):
        _too_many(plan, finding, held, (held.openings, server), f"{verb} on {{}} circuits")
    return finding


def in_one_peer(plan: CheckedPlan, held: HeldCircuits, k: int) -> ConstraintReport:
    """Eq. 9: into a server, at most one circuit (k with k ports there) on a switch at once."""
    finding = ConstraintReport("in, one peer", "9", len(held.row))
    return _on_switch(plan, finding, held, held.destination, k, "receives")


def out_one_peer(plan: CheckedPlan, held: HeldCircuits, k: int) -> ConstraintReport:
    """Eq. 10: out of a server, at most one circuit (k with k ports there) on a switch at once."""
    finding = ConstraintReport("out, one peer", "10", len(held.row))
    return _on_switch(plan, finding, held, held.source, k, "sends")


def one_way_a_port(held: HeldCircuits, k: int) -> ConstraintReport:
    """Physical, half duplex with real ports: a port goes one way at a time, so in and out share the k ports on a switch."""
    finding = ConstraintReport("one way a port", "physical", 2 * len(held.row))
    openings, server = _both_ends(held)
    switch = np.concatenate([held.switch, held.switch])
    finding.above(
        openings,
        server * _wide(held) + switch,
        k,
        lambda i, count: (
            f"server {server[i]}",
            f"uses {count} ports on switch {switch[i]} at {_setup_ms(held, i)}, in and out; it has {k} there",
        ),
    )
    return finding


def _both_ends(held: HeldCircuits) -> tuple[Openings, Int]:
    """Return the ends of the circuits at their servers as intervals, all sources before all destinations, and the servers."""
    n, opened = len(held.row), held.openings
    interval = np.stack([opened.interval, opened.interval + n], axis=1).reshape(-1)
    servers = np.concatenate([held.source, held.destination])
    return Openings(interval, np.repeat(opened.step, 2)), servers


def _too_many(
    plan: CheckedPlan,
    finding: ConstraintReport,
    held: HeldCircuits,
    ends: tuple[Openings, Int],
    words: str,
) -> None:
    limit, (openings, server) = plan.cluster.ports_per_server, ends
    finding.above(
        openings,
        server,
        limit,
        lambda i, count: (
            f"server {server[i]}",
            f"{words.format(count)} at {_setup_ms(held, i)}, when "
            f"{plan.schedule.circuit_task[held.row[i % len(held.row)]]} begins; it has {limit} {'port' if limit == 1 else 'ports'}",
        ),
    )


def _on_switch(
    plan: CheckedPlan,
    finding: ConstraintReport,
    held: HeldCircuits,
    server: Int,
    k: int,
    verb: str,
) -> ConstraintReport:
    finding.above(
        held.openings,
        server * _wide(held) + held.switch,
        k,
        lambda i, count: (
            f"server {server[i]}",
            f"{verb} on {count} circuits of switch {held.switch[i]} at "
            f"{_setup_ms(held, i)}, when {_circuit(plan, held, i)} begins; it may on {k}",
        ),
    )
    return finding


def _wide(held: HeldCircuits) -> int:
    return int(held.switch.max(initial=0)) + 1


def _setup_ms(held: HeldCircuits, interval: int) -> str:
    return ms(held.setup_ms[interval % len(held.row)])


def _circuit(plan: CheckedPlan, held: HeldCircuits, i: int) -> str:
    given = plan.schedule
    return f"{held.source[i]} -> {held.destination[i]} (of {given.circuit_task[held.row[i]]})"
