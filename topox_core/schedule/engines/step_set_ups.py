"""The step formulation with set-ups: which circuits stand in each slot, and which are being set up.

Besides z[j, k] = "task j has started by k" (:mod:`topox_core.schedule.engines.step_model`), with
several switches v[j, r, k] = "has started by k on switch r"; u[x, y, r, t] = circuits x -> y that
stand in slot t, s[x, y, r, t] = set-ups of one that begin in it. Ports of one switch need no index:
what stands or is set up at a side are intervals, and as many ports as overlap are enough.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.schedule.circuits.held_ports import NOT_CARRIED, Solution, carried_tasks
from topox_core.schedule.engines.mip import Float, Index, Mip
from topox_core.schedule.engines.step_model import StepModel
from topox_core.schedule.problem import Int32, Problem

MOST_COLUMNS = 60_000  # of a whole model
Terms = list[tuple[int, float]]
Pair = tuple[int, int]


def columns_with_set_ups(problem: Problem, makespan: int) -> int:
    """Return about how many columns the model has, counted without building anything."""
    net, node = problem.network, carried_tasks(problem)
    assert net is not None
    pairs = len(set(zip(net.source[node].tolist(), net.destination[node].tolist(), strict=True)))
    slots = makespan // problem.ticks_per_slot
    return 2 * pairs * net.switches * slots


@dataclass
class _Rows:
    """Rows ``lower <= sum(value * column) <= upper`` being collected."""

    start: list[int] = field(default_factory=lambda: [0])
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, terms: Terms, lower: float, upper: float) -> None:
        values: defaultdict[int, float] = defaultdict(float)
        for column, value in terms:
            values[column] += value
        self.column += values.keys()
        self.value += values.values()
        self.start.append(len(self.column))
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True)
class SetUpStepModel:
    """The step model of a problem that counts set-ups, within windows; one slot is one tick of u and s."""

    steps: StepModel

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.steps.problem

    @cached_property
    def _slots(self) -> int:
        return self.steps.horizon // self.problem.ticks_per_slot

    @cached_property
    def _node(self) -> list[int]:
        return carried_tasks(self.problem).tolist()  # type: ignore[no-any-return]

    @cached_property
    def _pairs(self) -> dict[Pair, list[int]]:
        """The transfers of each (source, destination)."""
        net = self.problem.network
        assert net is not None
        pairs: defaultdict[Pair, list[int]] = defaultdict(list)
        for j in self._node:
            pairs[int(net.source[j]), int(net.destination[j])].append(j)
        return dict(pairs)

    @cached_property
    def _lasts(self) -> list[int]:
        return (self.problem.duration // self.problem.ticks_per_slot).tolist()  # type: ignore[no-any-return]

    @cached_property
    def _until(self) -> dict[Pair, int]:
        """The slot by which the last transfer of each pair has ended."""
        return {
            pair: min(self._slots, max(int(self.steps.highest[j]) + self._lasts[j] for j in tasks))
            for pair, tasks in self._pairs.items()
        }

    @cached_property
    def _places(self) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int, int], int], int]:
        """Where the columns v[j, r], u[x, y, r] and s[x, y, r] begin, and how many columns there are."""
        net = self.problem.network
        assert net is not None
        at = int(self.steps.width.sum())
        on_switch: dict[tuple[int, int], int] = {}
        stands: dict[tuple[int, int, int], int] = {}
        for j in self._node if net.switches > 1 else []:
            for r in range(net.switches):
                on_switch[j, r] = at
                at += int(self.steps.width[j]) + 1
        for (x, y), until in self._until.items():
            for r in range(net.switches):
                stands[x, y, r] = at
                at += 2 * until
        return on_switch, stands, at

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self._places[2]

    def build(self) -> Mip:
        """Return the model; its objective is the makespan in steps."""
        base, net = self.steps.build(), self.problem.network
        assert net is not None
        _, stands, columns = self._places
        added = columns - base.columns
        upper = np.ones(columns)
        integer = np.ones(columns, np.bool_)
        for (x, y, _), at in stands.items():
            until = self._until[x, y]
            upper[at : at + 2 * until] = net.ports_on_switch
            integer[at + until : at + 2 * until] = False
        rows = _Rows()
        self._add_switches(rows)
        self._add_circuits(rows)
        self._add_sides(rows)
        if net.switches_may_fill:
            self._add_switch_limit(rows)
        return replace(
            base,
            cost=np.append(base.cost, np.zeros(added)),
            lower=np.append(base.lower, np.zeros(added)),
            upper=upper,
            integer=integer,
            row_lower=np.append(base.row_lower, rows.lower),
            row_upper=np.append(base.row_upper, rows.upper),
            row_start=np.append(
                base.row_start, base.nonzeros + np.array(rows.start[1:], np.int64)
            ).astype(base.row_start.dtype),
            column=np.append(base.column, rows.column).astype(np.int32),
            value=np.append(base.value, rows.value),
        )

    # -- columns -------------------------------------------------------------------------------------

    def _started(self, j: int, r: int, k: int) -> tuple[Terms, float]:
        """Return what "task j has started by slot k on switch r" is: columns, and a constant."""
        lowest, highest = int(self.steps.lowest[j]), int(self.steps.highest[j])
        if k < lowest:
            return [], 0.0
        first = self._places[0].get((j, r))
        if first is not None:
            return [(first + min(k, highest) - lowest, 1.0)], 0.0
        if k >= highest:
            return [], 1.0
        return [(int(self.steps.first_column[j]) + k - lowest, 1.0)], 0.0

    def _active(self, j: int, r: int, t: int) -> tuple[Terms, float]:
        """Return what "transfer j is active in slot t on switch r" is."""
        begun, one = self._started(j, r, t)
        ended, other = self._started(j, r, t - self._lasts[j])
        return begun + [(column, -value) for column, value in ended], one - other

    def _stands(self, x: int, y: int, r: int, t: int) -> int | None:
        return self._places[1][x, y, r] + t if 0 <= t < self._until[x, y] else None

    def _set_up(self, x: int, y: int, r: int, t: int) -> int | None:
        until = self._until[x, y]
        return self._places[1][x, y, r] + until + t if 0 <= t < until else None

    # -- rows ----------------------------------------------------------------------------------------

    def _add_switches(self, rows: _Rows) -> None:
        """Let every transfer start on one switch; what has started on one stays started."""
        net, on_switch = self.problem.network, self._places[0]
        assert net is not None
        for j in self._node if net.switches > 1 else []:
            first, width = int(self.steps.first_column[j]), int(self.steps.width[j])
            for k in range(width + 1):
                split = [(on_switch[j, r] + k, 1.0) for r in range(net.switches)]
                if k == width:
                    rows.add(split, 1.0, 1.0)
                    continue
                rows.add([*split, (first + k, -1.0)], 0.0, 0.0)
                for r in range(net.switches):
                    column = on_switch[j, r] + k
                    rows.add([(column, 1.0), (column + 1, -1.0)], -np.inf, 0.0)

    def _add_circuits(self, rows: _Rows) -> None:
        """Give every active transfer a circuit that stands; one that stands stood before or was set up."""
        net = self.problem.network
        assert net is not None
        dark = net.dark_slots or 0
        for (x, y), tasks in self._pairs.items():
            for r in range(net.switches):
                for t in range(self._until[x, y]):
                    column = self._stands(x, y, r, t)
                    assert column is not None
                    terms, constant = _sum(self._active(j, r, t) for j in tasks)
                    if terms or constant:
                        rows.add([*terms, (column, -1.0)], -np.inf, -constant)
                    if t == 0:
                        continue
                    change = [(column, 1.0), (column - 1, -1.0)]
                    set_up = self._set_up(x, y, r, t - dark)
                    rows.add(change if set_up is None else [*change, (set_up, -1.0)], -np.inf, 0.0)

    def _busy(self, x: int, y: int, r: int, t: int) -> Terms:
        """Return the columns of what holds ports for x -> y in a slot: circuits that stand or are being set up."""
        net = self.problem.network
        assert net is not None
        dark = net.dark_slots or 0
        stands = [self._stands(x, y, r, t)]
        set_ups = [self._set_up(x, y, r, q) for q in range(t - dark + 1, t + 1)]
        return [(column, 1.0) for column in [*stands, *set_ups] if column is not None]

    def _add_sides(self, rows: _Rows) -> None:
        """Limit what each server holds on a switch to its ports, each way or both ways together (half duplex)."""
        net = self.problem.network
        assert net is not None
        sides: defaultdict[tuple[int, bool], list[Pair]] = defaultdict(list)
        for x, y in self._pairs:
            sides[x, True].append((x, y))
            sides[y, net.half_duplex].append((x, y))
        for pairs in sides.values():
            for r in range(net.switches):
                for t in range(max(self._until[pair] for pair in pairs)):
                    terms = [term for x, y in pairs for term in self._busy(x, y, r, t)]
                    rows.add(terms, -np.inf, float(net.ports_on_switch))

    def _add_switch_limit(self, rows: _Rows) -> None:
        """Eq. 7: what is active or being set up on a switch is at most d_OCS circuits."""
        net = self.problem.network
        assert net is not None
        dark = net.dark_slots or 0
        for r in range(net.switches):
            for t in range(self._slots):
                terms, constant = _sum(self._active(j, r, t) for j in self._node)
                for x, y in self._pairs:
                    for q in range(t - dark + 1, t + 1):
                        column = self._set_up(x, y, r, q)
                        if column is not None:
                            terms.append((column, 1.0))
                if terms:
                    rows.add(terms, -np.inf, net.circuits_per_switch - constant)

    # -- schedules -----------------------------------------------------------------------------------

    def known(self, solution: Solution) -> tuple[Index, Float]:
        """Return the columns and values of z and v that a schedule gives."""
        net, ports = self.problem.network, solution.ports
        assert net is not None
        assert ports is not None
        columns: list[int] = []
        values: list[float] = []
        ends = np.append(solution.start, (solution.start + self.problem.duration).max(initial=0))
        for j in range(self.problem.n + 1):
            begin = -(-int(ends[j]) // int(self.steps.clock[j]))
            low, width = int(self.steps.lowest[j]), int(self.steps.width[j])
            first = int(self.steps.first_column[j])
            columns += range(first, first + width)
            values += [float(low + k >= begin) for k in range(width)]
            for r in range(net.switches):
                at = self._places[0].get((j, r))
                if at is not None:
                    columns += range(at, at + width + 1)
                    values += [
                        float(low + k >= begin and int(ports[0, j]) == r) for k in range(width + 1)
                    ]
        return np.array(columns, np.int32), np.array(values)

    def solution(self, values: Float) -> Solution:
        """Return the schedule that a solution says; its circuits are dealt out to the ports of each side."""
        net = self.problem.network
        assert net is not None
        start = self.steps.start(values)
        ports = np.full((3, self.problem.n), NOT_CARRIED, np.int32)
        on_switch = self._places[0]
        for j in self._node:
            width = int(self.steps.width[j])
            ports[0, j] = next(
                (r for r in range(net.switches) if values[on_switch.get((j, r), 0) + width] > 0.5)
                if net.switches > 1
                else iter([0])
            )
        ports[1:, self._node] = 0
        if net.ports_on_switch > 1:
            self._deal_ports(values, start // self.problem.ticks_per_slot, ports)
        return Solution(start, ports)

    def _deal_ports(self, values: Float, slot: NDArray[np.int64], ports: Int32) -> None:
        """Give every circuit that stands for a while one port at each end, the first that is free."""
        net = self.problem.network
        assert net is not None
        circuits: list[_Circuit] = []
        for (x, y), tasks in self._pairs.items():
            for r in range(net.switches):
                at, until = self._places[1][x, y, r], self._until[x, y]
                standing = np.round(values[at : at + until]).astype(int).tolist()
                mine = sorted((j for j in tasks if ports[0, j] == r), key=lambda j: int(slot[j]))
                circuits += self._circuits_of((x, y, r), standing, mine, slot)
        free_from: defaultdict[tuple[int, int, bool], list[int]] = defaultdict(
            lambda: [0] * net.ports_on_switch
        )
        for circuit in sorted(circuits, key=lambda one: one.opened):
            x, y, r = circuit.ends
            for row, key in ((1, (x, r, True)), (2, (y, r, net.half_duplex))):
                held = free_from[key]
                port = next(
                    (p for p in range(len(held)) if held[p] <= circuit.opened), 0
                )  # a wrong one shows in the check
                held[port] = circuit.closed
                ports[row, circuit.tasks] = port

    def _circuits_of(
        self,
        ends: tuple[int, int, int],
        standing: list[int],
        tasks: list[int],
        slot: NDArray[np.int64],
    ) -> list[_Circuit]:
        """Return the circuits of a pair on a switch with the transfers they carry, from how many stand in each slot."""
        net = self.problem.network
        assert net is not None
        dark = net.dark_slots or 0
        up: list[_Circuit] = []
        past: list[_Circuit] = []
        waiting = list(tasks)
        for t, count in enumerate([*standing, 0]):
            idle = [one for one in up if one.busy_until <= t]
            while len(up) > count and idle:
                gone = idle.pop()
                up.remove(gone)
                gone.closed = t
                past.append(gone)
            while len(up) < count:
                up.append(_Circuit(ends, t - dark if t else 0, t))
            while waiting and int(slot[waiting[0]]) == t:
                j = waiting.pop(0)
                one = next((one for one in up if one.busy_until <= t), up[0] if up else None)
                if one is None:
                    break
                one.tasks.append(j)
                one.busy_until = t + self._lasts[j]
        return [one for one in past if one.tasks]


@dataclass(eq=False)
class _Circuit:
    """A circuit from its set-up to the slot it is taken down in, and the transfers it carries."""

    ends: tuple[int, int, int]
    opened: int
    busy_until: int
    closed: int = 0
    tasks: list[int] = field(default_factory=list)


def _sum(parts: object) -> tuple[Terms, float]:
    terms: Terms = []
    constant = 0.0
    for more, one in parts:  # type: ignore[attr-defined]
        terms += more
        constant += one
    return terms, constant
