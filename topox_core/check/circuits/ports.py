"""Constraints of real ports, which the printed model leaves out: one circuit a transfer, bookings, dark time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from topox_core.check.intervals import Bool, Int
from topox_core.check.plan import CheckedPlan
from topox_core.check.report import ConstraintReport, ms


def continuity(plan: CheckedPlan) -> ConstraintReport:
    """Physical: a transfer stays on its circuit, so exactly one record carries it from its start to its end."""
    given, slack = plan.schedule, plan.tolerance_ms
    needs = plan.is_transfer & (plan.end_ms > plan.start_ms + slack)
    finding = ConstraintReport("continuity", "physical", int(needs.sum()))
    known = plan.circuit_node >= 0
    records = np.bincount(plan.circuit_node[known], minlength=len(plan.ids))
    first, last = np.full(len(plan.ids), np.nan), np.full(len(plan.ids), np.nan)
    first[plan.circuit_node[known]] = given.circuit_start_ms[known]
    last[plan.circuit_node[known]] = given.circuit_end_ms[known]
    off = (np.abs(first - plan.start_ms) > slack) | (np.abs(last - plan.end_ms) > slack)

    def describe(i: int) -> tuple[str, str]:
        if records[i] != 1:
            return (
                f"transfer {plan.ids[i]}",
                f"is carried by {records[i]} circuits, must stay on one",
            )
        return f"transfer {plan.ids[i]}", (
            f"runs from {ms(plan.start_ms[i])} to {ms(plan.end_ms[i])}, but its circuit carries "
            f"from {ms(first[i])} to {ms(last[i])}"
        )

    finding.each(np.flatnonzero(needs & ((records != 1) | off)), describe)
    return finding


@dataclass(frozen=True)
class BookedPorts:
    """Circuits that last, with a port number at each end: of the result, or ours where it gives none."""

    row: Int
    source_port: Int
    destination_port: Int

    @staticmethod
    def of(plan: CheckedPlan, k: int) -> BookedPorts | None:
        """Return the circuits with the ports that the result gives.

        None where it must give some and does not.
        """
        given = plan.schedule
        row = np.flatnonzero(given.circuit_end_ms > given.setup_ms + plan.tolerance_ms)
        source, destination = given.source_port[row], given.destination_port[row]
        if k > 1 and len(row) and min(source.min(), destination.min()) < 0:
            return None
        return BookedPorts(row, np.maximum(source, 0), np.maximum(destination, 0))

    def bookings(self, plan: CheckedPlan, k: int) -> tuple[Int, Int]:
        """Return a number for the port (full duplex: for its out or its in side) that each end of each circuit holds.

        First all sources, then all destinations; the second array is the circuit, a position in
        ``row``.
        """
        given = plan.schedule
        source, destination, switch = (
            column[self.row] for column in (given.source, given.destination, given.switch)
        )
        wide = int(given.switch.max(initial=0)) + 1
        span = max(
            k, *(int(port.max(initial=0)) + 1 for port in (self.source_port, self.destination_port))
        )
        out = (source * wide + switch) * span + self.source_port
        into = (destination * wide + switch) * span + self.destination_port
        if plan.cluster.duplex == "full":
            out, into = 2 * out, 2 * into + 1
        n = np.arange(len(self.row))
        return np.concatenate([out, into]), np.concatenate([n, n])


def port_bookings(plan: CheckedPlan, k: int, booked: BookedPorts) -> ConstraintReport:
    """Physical: a port holds one circuit at a time, from its set-up to its end, and is one of those that are there."""
    given = plan.schedule
    finding = ConstraintReport("port bookings", "physical", 2 * len(booked.row))
    absent = (booked.source_port >= k) | (booked.destination_port >= k)
    finding.each(
        np.flatnonzero(absent),
        lambda i: (
            _circuit(plan, booked.row[i]),
            f"uses port {max(booked.source_port[i], booked.destination_port[i])}, "
            f"but a server has {k} on a switch, numbered from 0",
        ),
    )
    _, circuit, before, around = _in_turn(plan, k, booked)
    setup, end = given.setup_ms[booked.row], given.circuit_end_ms[booked.row]
    # Who is first follows the last of the iteration before.
    left = end[before] - np.where(around, plan.period_ms, 0.0)
    clash = np.flatnonzero((before >= 0) & (setup[circuit] < left - plan.tolerance_ms))
    finding.each(
        clash,
        lambda j: (
            _circuit(plan, booked.row[circuit[j]]),
            f"takes a port at {ms(setup[circuit[j]])} that {_circuit(plan, booked.row[before[j]])} "
            + ("of the iteration before " if around[j] else "")
            + f"holds until {ms(left[j])}",
        ),
    )
    return finding


def reconfiguration(plan: CheckedPlan, k: int, booked: BookedPorts | None) -> ConstraintReport:
    """Physical: ports are dark for the delay before a circuit, unless each repeats the very circuit it had last.

    The first circuit of a port stands before the iteration begins, so that it changes nothing; where
    the iteration repeats, its last circuit stands then, and is set up beforehand as well.
    """
    given, delay, slack = plan.schedule, plan.cluster.reconfiguration_ms, plan.tolerance_ms
    finding = ConstraintReport("reconfiguration", "physical", len(given.switch))
    earliest = -delay if plan.rules.repeats else 0.0
    wrong = (given.setup_ms < earliest - slack) | (given.setup_ms > given.circuit_start_ms + slack)
    finding.each(
        np.flatnonzero(wrong),
        lambda i: (
            _circuit(plan, i),
            f"is set up at {ms(given.setup_ms[i])}, which is before the iteration or after "
            f"{ms(given.circuit_start_ms[i])}, when it carries",
        ),
    )
    if delay <= slack:
        return finding
    if booked is None:
        _first_fit(plan, k, finding)
        return finding
    dark = (given.circuit_start_ms - given.setup_ms)[booked.row]
    short = np.flatnonzero((dark < delay - slack) & ~_kept(plan, k, booked))
    finding.each(
        short,
        lambda i: (
            _circuit(plan, booked.row[i]),
            f"carries {ms(dark[i])} after its set-up; ports that change take {ms(delay)}",
        ),
    )
    return finding


def per_slot_delay(plan: CheckedPlan) -> ConstraintReport:
    """Physical: circuits drawn slot by slot have no state, so that a delay above 0 cannot be honoured."""
    finding = ConstraintReport("reconfiguration", "physical", 1)
    if plan.cluster.reconfiguration_ms > 0:
        finding.add(
            "cluster",
            f"has a reconfiguration delay of {ms(plan.cluster.reconfiguration_ms)}, which circuits drawn slot "
            "by slot cannot honour",
        )
    return finding


def _in_turn(plan: CheckedPlan, k: int, booked: BookedPorts) -> tuple[Int, Int, Int, Bool]:
    """Return the bookings port by port in the order of time: port, circuit, the port's circuit before, whether around the clock.

    A port's first has none before (-1), or its last where the iteration repeats.
    """
    port, circuit = booked.bookings(plan, k)
    given = plan.schedule
    row = booked.row[circuit]
    order = np.lexsort((given.circuit_end_ms[row], given.setup_ms[row], port))
    port, circuit = port[order], circuit[order]
    before = np.full(len(port), -1)
    if len(port):
        before[1:] = np.where(port[1:] == port[:-1], circuit[:-1], -1)
    around = (before < 0) & plan.rules.repeats
    if around.any():
        last = np.append(np.flatnonzero(around)[1:], len(port)) - 1
        before[around] = circuit[last]
    return port, circuit, before, around


def _kept(plan: CheckedPlan, k: int, booked: BookedPorts) -> Bool:
    """Return which circuits change neither of their ports: each has no circuit before, or this very one."""
    given = plan.schedule
    columns = (
        given.switch[booked.row],
        given.source[booked.row],
        given.destination[booked.row],
        booked.source_port,
        booked.destination_port,
    )
    _, same = np.unique(columns, axis=1, return_inverse=True)
    same = same.reshape(-1)
    _, circuit, before, _ = _in_turn(plan, k, booked)
    kept = np.ones(len(booked.row), np.bool_)
    kept[circuit[(before >= 0) & (same[circuit] != same[before])]] = False
    return kept


_Port = tuple[float, tuple[int, int, int, int] | None]


def _first_fit(plan: CheckedPlan, k: int, finding: ConstraintReport) -> None:
    """Find ports for circuits whose result names none, in the order of set-up.

    A set of ports found is a proof; where the iteration repeats, of two in a row.

    Each side is a list of k ports, each with the time it is free from and its last circuit, ports
    included.
    """
    given, slack, delay = plan.schedule, plan.tolerance_ms, plan.cluster.reconfiguration_ms
    way = ("port", "port") if plan.cluster.duplex == "half" else ("out", "in")
    sides: dict[tuple[int, int, str], list[_Port]] = {}
    in_turn = np.lexsort((given.circuit_start_ms, given.setup_ms)).tolist()
    turns = 2 if plan.rules.repeats else 1
    for turn, i in product(range(turns), in_turn):
        switch, a, b = int(given.switch[i]), int(given.source[i]), int(given.destination[i])
        setup, start, end = (
            float(column[i]) + turn * plan.period_ms
            for column in (given.setup_ms, given.circuit_start_ms, given.circuit_end_ms)
        )
        if end <= setup + slack:
            continue
        out = sides.setdefault((a, switch, way[0]), [(-math.inf, None)] * k)
        into = sides.setdefault((b, switch, way[1]), [(-math.inf, None)] * k)
        free = [
            (p, q)
            for p in range(k)
            if out[p][0] <= setup + slack
            for q in range(k)
            if into[q][0] <= setup + slack
        ]
        # Best a pair of ports that has this very circuit, then fresh ones; else those that have
        # waited longest.
        kept = [(p, q) for p, q in free if out[p][1] == into[q][1] == (a, p, b, q)]
        kept = kept or [(p, q) for p, q in free if out[p][1] is None and into[q][1] is None]
        if not kept and start - setup >= delay - slack:
            kept = sorted(free, key=lambda pair: out[pair[0]][0] + into[pair[1]][0])
        if not kept:
            finding.add(
                _circuit(plan, i),
                f"has no port free from {ms(setup)} that keeps its circuit or has the {ms(delay)} "
                "that a change takes (the result names no ports; they were tried in turn)",
            )
            continue
        p, q = kept[0]
        out[p] = into[q] = end, (a, p, b, q)


def _circuit(plan: CheckedPlan, i: int | np.integer[np.typing.NBitBase]) -> str:
    given = plan.schedule
    pair = f"{given.source[i]} -> {given.destination[i]}"
    return f"circuit number {i} ({pair} on switch {given.switch[i]}, of {given.circuit_task[i]})"
