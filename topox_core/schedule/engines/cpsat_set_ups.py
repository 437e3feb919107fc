"""The CP-SAT model of transfers on real ports, which take time to set up.

Set-up times (0 for the same circuit, one delay otherwise) keep the triangle inequality: where all
pairs of transfers on a port keep their distance, neighbours do, and the first circuit of a port
stands already. So a literal a pair that shares a port says who comes first.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from ortools.sat.python import cp_model

from topox_core.runs.run import Stop
from topox_core.schedule.bounds.windows import Windows
from topox_core.schedule.circuits.disjunctions import Pair, Side, pairs_within, sides_of
from topox_core.schedule.circuits.held_ports import (
    NOT_CARRIED,
    Solution,
    carried_tasks,
    held_back,
    solution_violation,
)
from topox_core.schedule.engines.cpsat_model import Choice, Model, Value
from topox_core.schedule.engines.engine import Ended, Limits
from topox_core.schedule.problem import Int32, Problem

End = tuple[int, bool]  # a transfer, and whether at its source


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
        self._known, self._places = known.start, self._places_by_first_use(known.ports)
        self.hint(known.start)
        # The choice of a switch, and by task and whether at its source that among all ports of a server.
        self._switch: dict[int, list[Choice]] = {}
        self._on: dict[End, list[Choice]] = {}
        self._agreed: dict[tuple[End, End], Choice] = {}
        sides = sides_of(problem, np.arange(problem.n))
        self._add_choices(sides)
        for side in sides:
            self._add_capacity(side)
            if self._net.ports_each_way > 1:
                self._add_ports(side)
        for pair in pairs_within(problem, given):
            condition = self._sharing(pair) if self._net.ports_each_way > 1 else []
            self._keep_apart(pair, self._known, condition)
            if pair.around and (pair.may_follow or pair.may_lead):
                self._keep_apart_around(pair, condition)
        if self._net.switches_may_fill:
            self._add_switch_limit(strict)

    # -- choices -------------------------------------------------------------------------------------

    def _add_choices(self, sides: list[Side]) -> None:
        """Give every transfer a port at both ends, on one switch; equal switches and ports are used in order."""
        net, model, k = self._net, self._model, self._net.ports_on_switch
        for place, j in enumerate(self._carried):
            self._switch[j] = switch = self._one_of(net.switches, self._places[j, True] // k)
            self._on[j, True] = self._on[j, False] = switch
            for literal in switch[place + 1 :]:
                model.add(literal == 0)
            for leaves in (True, False) if k > 1 else ():
                on = self._one_of(net.ports_each_way, self._places[j, leaves])
                self._on[j, leaves] = on
                for r, literal in enumerate(switch):
                    model.add(sum(on[r * k : (r + 1) * k]) == literal)
        for side in sides:
            for place, end in enumerate(zip(side.tasks, side.leaves, strict=True)):
                for port, literal in enumerate(self._on[end]):
                    if port % k > place:
                        model.add(literal == 0)

    def _same_port(self, one: End, other: End) -> Choice:
        """Return the literal that says whether two ends hold one port of their server, hinted as in the known schedule."""
        model, key = self._model, (one, other)
        if key not in self._agreed:
            self._agreed[key] = same = model.new_bool_var("")
            for a, b in zip(self._on[one], self._on[other], strict=True):
                model.add_bool_or([a.negated(), b.negated(), same])
                model.add_bool_or([same.negated(), a.negated(), b])
            model.add_hint(same, self._places[one] == self._places[other])
        return self._agreed[key]

    def _sharing(self, pair: Pair) -> list[Choice]:
        """Return the literals that all hold where a pair shares a port at a side, and is not on one circuit."""
        i, j, (a, b) = pair.first, pair.second, pair.leaves
        if self._net.ports_on_switch == 1:  # then they share a switch, whatever the side
            return [self._same_port((i, True), (j, True))]
        here = self._same_port((i, a), (j, b))
        if not pair.alike:
            return [here]
        # One circuit if they share the ports at both ends, two if at one only; the other end's side
        # holds the case that they share the port there.
        return [here, self._same_port((i, not a), (j, not b)).negated()]

    # -- sides ---------------------------------------------------------------------------------------

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
        held = defaultdict(list)
        for end in zip(side.tasks, side.leaves, strict=True):
            for port, literal in enumerate(self._on[end]):
                held[port].append(self._held(end[0], literal))
        for intervals in held.values():
            if len(intervals) > 1:
                self._model.add_no_overlap(intervals)

    def _held(self, j: int, literal: Choice, ahead: int = 0) -> cp_model.IntervalVar:
        """Return the time that a transfer takes where a literal holds, from so many ticks before its start."""
        lasts = int(self._problem.duration[j]) + ahead
        return self._model.new_optional_fixed_size_interval_var(
            self._at[j] - ahead, lasts, literal, ""
        )

    def _add_switch_limit(self, strict: bool) -> None:
        """Eq. 7: a switch carries at most d_OCS circuits at once."""
        ahead = self._dark if strict else 0
        for r in range(self._net.switches):
            intervals = [self._held(j, self._switch[j][r], ahead) for j in self._carried]
            each = [1] * len(intervals)
            self._model.add_cumulative(intervals, each, self._net.circuits_per_switch)

    # -- values --------------------------------------------------------------------------------------

    def solve(
        self,
        limits: Limits,
        stop: Stop,
        on_solution: Callable[[Solution], None],
        on_bound: Callable[[int], None],
    ) -> Ended:
        """Solve; of a relaxed model tell no schedule that sets up circuits for which a full switch has no room."""

        def offer(solution: Solution) -> None:
            on_ports = held_back(self._problem, solution)
            relaxed = self._net.switches_may_fill
            if not relaxed or solution_violation(self._problem, on_ports) is None:
                on_solution(solution)

        return super().solve(limits, stop, offer, on_bound)

    def _places_by_first_use(self, ports: Int32) -> dict[End, int]:
        """Return the port of each end among all of its server, switches and the ports of a server on each numbered by first use."""
        net, places = self._net, dict[End, int]()
        switches: dict[int, int] = {}
        used: defaultdict[tuple[int, int, bool], dict[int, int]] = defaultdict(dict)
        for j in self._carried:
            switch = switches.setdefault(int(ports[0, j]), len(switches))
            for row, server in ((1, net.source[j]), (2, net.destination[j])):
                seen = used[int(server), switch, row == 1 or net.half_duplex]
                port = seen.setdefault(int(ports[row, j]), len(seen))
                places[j, row == 1] = switch * net.ports_on_switch + port
        return places

    def ports(self, value: Value) -> Int32:
        """Return the ports that a solution says."""
        ports = np.full((3, self._problem.n), NOT_CARRIED, np.int32)
        for (j, leaves), literals in self._on.items():
            place = next(at for at, literal in enumerate(literals) if value(literal))
            ports[0, j], ports[1 if leaves else 2, j] = divmod(place, self._net.ports_on_switch)
        return ports
