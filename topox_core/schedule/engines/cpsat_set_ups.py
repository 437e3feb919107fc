"""The CP-SAT model of transfers on real ports, which take time to set up.

Set-up times (0 for the same circuit, one delay otherwise) keep the triangle inequality: where all
pairs of transfers on a port keep their distance, neighbours do, and the first circuit of a port
stands already. So a literal a pair that shares a port says who comes first.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from ortools.sat.python import cp_model

from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.held_ports import NOT_CARRIED, Solution, carried_tasks
from topox_core.schedule.engines.cpsat_model import Choice, Model
from topox_core.schedule.engines.disjunctions import Disjunctions, Pair, Side
from topox_core.schedule.problem import Int32, Problem


class SetUpModel(Model):
    """A model of all schedules on ports within windows; makespans from ``bound`` to ``horizon`` ticks.

    Parameters
    ----------
    problem
        Counts set-ups.
    known
        A schedule to start from, ports and orders included.
    strict
        Where eq. 7 can bind: every transfer takes its place on the switch a set-up before its
        start, as if its circuit changed (then every solution is one); False: from its start (then
        every bound is one).
    """

    def __init__(
        self,
        problem: Problem,
        given: Windows,
        bound: int,
        horizon: int,
        known: Solution,
        strict: bool,
    ) -> None:
        super().__init__(problem, given, bound, horizon)
        assert known.ports is not None
        self._net, self._dark = problem.switch_network, problem.dark_ticks or 0
        self._carried = carried_tasks(problem).tolist()
        self._known, self._known_ports = known.start, self._numbered_by_first_use(known.ports)
        self.hint(known.start)
        self._switch: dict[int, list[Choice]] = {}
        self._port: dict[tuple[int, bool], list[Choice]] = {}
        self._agreed: dict[tuple[object, ...], Choice] = {}
        sides = Disjunctions(problem, given).sides
        if self._net.ports_each_way > 1:
            self._add_choices(sides)
        for side in sides:
            self._add_side(side)
        if self._net.switches_may_fill:
            self._add_switch_limit(strict)

    # -- choices -------------------------------------------------------------------------------------

    def _add_choices(self, sides: tuple[Side, ...]) -> None:
        """Give every transfer a switch, and a port at both ends; equal switches and ports are used in order."""
        net, model, ports = self._net, self._model, self._known_ports
        for place, j in enumerate(self._carried):
            self._switch[j] = self._one_of(net.switches, int(ports[0, j]))
            for literal in self._switch[j][place + 1 :]:
                model.add(literal == 0)
        if net.ports_on_switch == 1:
            return
        for side in sides:
            for place, (j, leaves) in enumerate(zip(side.tasks, side.leaves, strict=True)):
                known = int(ports[1 if leaves else 2, j])
                self._port[j, leaves] = self._one_of(net.ports_on_switch, known)
                for literal in self._port[j, leaves][place + 1 :]:
                    model.add(literal == 0)

    def _same(
        self, key: tuple[object, ...], one: list[Choice], other: list[Choice], agree: bool
    ) -> Choice:
        """Return the literal of a key, which says whether two choices agree; they do in the known schedule if ``agree``."""
        model = self._model
        if key not in self._agreed:
            self._agreed[key] = same = model.new_bool_var("")
            for a, b in zip(one, other, strict=True):
                model.add_bool_or([a.negated(), b.negated(), same])
                model.add_bool_or([same.negated(), a.negated(), b])
            model.add_hint(same, agree)
        return self._agreed[key]

    # -- sides ---------------------------------------------------------------------------------------

    def _add_side(self, side: Side) -> None:
        net, model = self._net, self._model
        self._add_capacity(side)
        if net.ports_each_way > 1:
            self._add_ports(side)
        leaves = dict(zip(side.tasks, side.leaves, strict=True))
        for pair in side.pairs:
            together: list[list[Choice]] = [[]]
            if net.ports_each_way > 1:
                together = self._together(pair, leaves)
            for condition in together:
                if not pair.may_follow and not pair.may_lead:
                    model.add_bool_or([literal.negated() for literal in condition])
                    continue
                may = (pair.may_follow, pair.may_lead)
                both = (pair.first, pair.second)
                self._keep_apart(both, self._dark, may, self._known, condition)
                if pair.around:
                    self._keep_apart_around(pair, condition)

    def _together(self, pair: Pair, leaves: dict[int, bool]) -> list[list[Choice]]:
        """Return when a pair must keep a set-up apart: each list of literals is one case."""
        net, i, j, ports = self._net, pair.first, pair.second, self._known_ports
        cases: list[Choice] = []
        if net.switches > 1:
            agree = bool(ports[0, i] == ports[0, j])
            cases.append(self._same(("switch", i, j), self._switch[i], self._switch[j], agree))
        if net.ports_on_switch == 1:
            return [cases]

        def same_port(a: bool, b: bool) -> Choice:
            agree = bool(ports[1 if a else 2, i] == ports[1 if b else 2, j])
            return self._same(("port", i, j, a, b), self._port[i, a], self._port[j, b], agree)

        here = same_port(leaves[i], leaves[j])
        if not pair.alike:
            return [[*cases, here]]
        # One circuit if they share the ports at both ends, two if at one only; the other end's side
        # holds the case that they share the port there.
        there = same_port(not leaves[i], not leaves[j])
        return [[*cases, here, there.negated()]]

    def _keep_apart_around(self, pair: Pair, condition: list[Choice]) -> None:
        """Where the condition holds, either of the next iteration starts a set-up after the other one ends.

        Of two circuits of one port, which comes first and which last does not matter: in between it
        changes at least once.
        """
        for i, j in ((pair.first, pair.second), (pair.second, pair.first)):
            ends = self._at[j] + int(self._problem.duration[j])
            back = self._model.add(self._at[i] + self._makespan >= ends + self._dark)
            back.only_enforce_if(*condition)

    def _add_capacity(self, side: Side) -> None:
        """State what follows for all ports of a side together: it prunes more than the pairs do.

        The longest transfers of different peers have different circuits, so each holds its port a
        set-up longer, and the last one's set-up passes no makespan.
        """
        net, lasts = self._net, self._problem.duration
        capacity = net.ports_each_way
        longest: dict[int, int] = {}
        for j, peer in zip(side.tasks, side.peers, strict=True):
            if peer not in longest or lasts[j] > lasts[longest[peer]]:
                longest[peer] = j
        if self._dark and len(longest) > capacity:
            held = [
                self._model.new_fixed_size_interval_var(self._at[j], int(lasts[j]) + self._dark, "")
                for j in longest.values()
            ]
            if capacity == 1:
                self._model.add_no_overlap(held)
            else:
                self._model.add_cumulative(held, [1] * len(held), capacity)

    def _add_ports(self, side: Side) -> None:
        """No port carries two transfers at once."""
        net, model, lasts = self._net, self._model, self._problem.duration
        held = defaultdict(list)
        for j, leaves in zip(side.tasks, side.leaves, strict=True):
            for r in range(net.switches):
                for a in range(net.ports_on_switch):
                    on_it = self._on_port(j, leaves, r, a)
                    held[r, a].append(
                        model.new_optional_fixed_size_interval_var(
                            self._at[j], int(lasts[j]), on_it, ""
                        )
                    )
        for intervals in held.values():
            if len(intervals) > 1:
                model.add_no_overlap(intervals)

    def _on_port(self, j: int, leaves: bool, r: int, a: int) -> Choice:
        """Return a literal that says that a transfer's end is on port ``a`` of switch ``r``."""
        net = self._net
        if net.ports_on_switch == 1:
            return self._switch[j][r]
        if net.switches == 1:
            return self._port[j, leaves][a]
        literal, row = self._model.new_bool_var(""), 1 if leaves else 2
        choices = (self._switch[j][r], self._port[j, leaves][a])
        self._model.add_bool_or([*(c.negated() for c in choices), literal])
        for choice in choices:
            self._model.add_implication(literal, choice)
        ports = self._known_ports
        self._model.add_hint(literal, bool(ports[0, j] == r and ports[row, j] == a))
        return literal

    def _add_switch_limit(self, strict: bool) -> None:
        """Eq. 7: a switch carries at most d_OCS circuits at once."""
        net, model, lasts = self._net, self._model, self._problem.duration
        ahead = self._dark if strict else 0
        for r in range(net.switches):
            intervals = [
                model.new_optional_fixed_size_interval_var(
                    self._at[j] - ahead, int(lasts[j]) + ahead, self._switch[j][r], ""
                )
                if net.switches > 1
                else model.new_fixed_size_interval_var(
                    self._at[j] - ahead, int(lasts[j]) + ahead, ""
                )
                for j in self._carried
            ]
            model.add_cumulative(intervals, [1] * len(intervals), net.circuits_per_switch)

    # -- values --------------------------------------------------------------------------------------

    def _numbered_by_first_use(self, ports: Int32) -> Int32:
        """Return the ports with switches, and the ports of a server on each, numbered by first use."""
        net, numbered = self._net, ports.copy()
        switches: dict[int, int] = {}
        for j in self._carried:
            numbered[0, j] = switches.setdefault(int(ports[0, j]), len(switches))
        used: defaultdict[tuple[int, int, bool], dict[int, int]] = defaultdict(dict)
        for j in self._carried:
            for row, server in ((1, net.source[j]), (2, net.destination[j])):
                key = int(server), int(ports[0, j]), row == 1 or net.half_duplex
                seen = used[key]
                numbered[row, j] = seen.setdefault(int(ports[row, j]), len(seen))
        return numbered

    def ports(self, value: Callable[[cp_model.IntVar], int]) -> Int32:
        """Return the ports that a solution says."""
        ports = np.full((3, self._problem.n), NOT_CARRIED, np.int32)
        for j in self._carried:
            chosen = [
                self._switch.get(j, []),
                self._port.get((j, True), []),
                self._port.get((j, False), []),
            ]
            ports[:, j] = [
                next((a for a, literal in enumerate(literals) if value(literal)), 0)
                for literals in chosen
            ]
        return ports
