"""The model as printed (TOPO-X, section III, eqs 2-10), row by row, for small instances and for reading beside it.

One function per equation, named after it. What is ours, not the paper's:

* time counts in ticks; a transfer's slot t' begins at tick t' * (ticks per slot), which is the tau of eq. (4);
* eq. (6) is written once per pair and summed over its transfers unless ``Network.shares`` says as printed;
* eq. (8) splits into out and in for full duplex; the right-hand side of eqs (9) and (10) is ``ports_on_switch``;
* compute tasks that hold a device alone get x[j, t] (eqs 3 and 4, on ticks) and rows per device and tick, because
  eqs (3)-(10) contain no devices.
"""

from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.runs.run import Stop, never
from topox_core.schedule.engines import mip
from topox_core.schedule.engines.best_known import initially_known
from topox_core.schedule.engines.engine import (
    Answer,
    Limits,
    News,
    OnProgress,
)
from topox_core.schedule.engines.highs import MipOfStarts
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.source import ENGINES

SOURCE = ENGINES["printed"]
BOUND_BY = "branch and bound (HiGHS, printed model)"
MAX_COLUMNS = 200_000
MAX_NONZEROS = 4_000_000
Pair = tuple[int, int]


class PrintedModel:
    """Columns x[j, t'], s[j], s[j_v] and a[r, x, y, t'] of one problem, and its equations.

    Parameters
    ----------
    horizon
        Makespan of a known schedule in ticks; m is the number of slots that it spans.
    bound
        What no makespan is below, in ticks.

    Attributes
    ----------
    x
        Columns of each transfer, by slot, and of each compute task on a device, by tick, in which it starts.
    s
        Columns of the starts in ticks; the last one is the virtual task's, the makespan.
    a
        Columns of the circuits of a pair on a switch in a slot, by (switch, pair, slot).
    """

    def __init__(self, problem: Problem, horizon: int, bound: int) -> None:
        self.problem, self.network = problem, problem.switch_network
        self.horizon, self.bound, self.tau = horizon, bound, problem.ticks_per_slot
        self.m = max(1, -(-horizon // self.tau))
        self.switches = range(self.network.switches)
        self.slots = (problem.duration // self.tau).tolist()
        transfers = np.flatnonzero(self.network.source >= 0)
        self.on_device = np.flatnonzero((problem.device >= 0) & (problem.duration > 0)).tolist()
        ends = self.network.source[transfers].tolist(), self.network.destination[transfers].tolist()
        self.pair_of = dict(zip(transfers.tolist(), zip(*ends, strict=True), strict=True))
        # a[r, x, y, t'] only for pairs with traffic: the others would stay 0.
        self.pairs = sorted({pair for j, pair in self.pair_of.items() if self.slots[j] > 0})
        # How many starts x[j, .] has, and the ticks from one to the next.
        self.starts = dict.fromkeys(self.pair_of, (self.m, self.tau))
        self.starts |= dict.fromkeys(self.on_device, (horizon, 1))
        self.rows = mip.MipBuilder()

    def refuse_if_too_large(self) -> None:
        """Raise an :class:`InputError` that names the size, counted without building, if the model should not be built."""
        p, net = self.problem, self.network
        starts = sum(length for length, _ in self.starts.values())
        circuits = len(self.pairs) * net.switches * self.m
        eq6 = sum(self.m * self.slots[j] for j in self.pair_of)
        eq6 += self.m * net.switches * len(self.pair_of if net.shares else self.pairs)
        devices = sum(self.horizon * int(p.duration[j]) for j in self.on_device)
        entries = 2 * starts + 2 * (len(p.pred_idx) + p.n) + eq6 + 5 * circuits + devices
        for count, limit, what in (
            (starts + p.n + 1 + circuits, MAX_COLUMNS, "columns"),
            (entries, MAX_NONZEROS, "matrix entries"),
        ):
            if count > limit:
                raise InputError(
                    f"the printed model would have {count:,} {what} (limit {limit:,}): use highs or list",
                    file="settings",
                    field="engine",
                )

    def build(self) -> mip.Mip:
        """Return the model: eq. (2) as the objective, eqs (3)-(10) and the device rows as constraints."""
        new, n = self.rows.new, self.problem.n
        self.x = {
            j: [new(1, integer=True) for _ in range(length)]
            for j, (length, _) in self.starts.items()
        }
        self.s = [new(self.horizon) for _ in range(n)]
        self.s.append(new(self.horizon, cost=1.0, lower=self.bound))  # (2): min s[j_v]
        self.a = {
            (r, pair, t): new(self.network.ports_on_switch, integer=True)
            for pair in self.pairs
            for r in self.switches
            for t in range(self.m)
        }
        for equation in (eq3, eq4, eq5, eq6, eq7, eq8, eq9, eq10, devices):
            equation(self)
        return self.rows.built()

    def circuits_at_most(
        self, most: int, pairs: Iterable[Pair], switches: Iterable[int] | None = None
    ) -> None:
        """Bound the circuits that pairs have together, on all switches or on some, slot by slot."""
        places = list(product(self.switches if switches is None else switches, pairs))
        for t in range(self.m):
            self.rows.row({self.a[r, pair, t]: 1 for r, pair in places}, upper=most)

    def by_server(self, end: int) -> list[list[Pair]]:
        """Return the pairs that begin (0) or end (1) at each server that has any."""
        found: dict[int, list[Pair]] = {}
        for pair in self.pairs:
            found.setdefault(pair[end], []).append(pair)
        return list(found.values())

    def start(self, values: NDArray[np.float64]) -> Int:
        """Return the start ticks that a solution says; tasks without x start at the last end before them."""
        p = self.problem
        start = np.zeros(p.n, np.int64)
        for j in p.order.tolist():
            if j in self.starts:
                start[j] = int(values[self.x[j]].argmax()) * self.starts[j][1]
            else:
                before = p.pred_idx[p.pred_ptr[j] : p.pred_ptr[j + 1]]
                start[j] = int((start[before] + p.duration[before]).max(initial=0))
        return start

    def known(self, start: Int) -> tuple[mip.Index, mip.Float]:
        """Return x and s of a schedule; HiGHS finds its circuits."""
        values = np.zeros(self.s[-1] + 1)
        for j, (_, unit) in self.starts.items():
            values[self.x[j][int(start[j]) // unit]] = 1
        values[self.s] = np.append(start, self.horizon)
        return np.arange(len(values), dtype=np.int32), values


# -- the equations ---------------------------------------------------------------------------------------


def eq3(model: PrintedModel) -> None:
    """Eq. (3): sum over t' of x[j, t'] = 1, every transfer starts once (and every task on a device: ours)."""
    for columns in model.x.values():
        model.rows.row(dict.fromkeys(columns, 1), 1, 1)


def eq4(model: PrintedModel) -> None:
    """Eq. (4): sum over t' of tau * t' * x[j, t'] = s[j] (the printed t is a slip for t')."""
    for j, (length, unit) in model.starts.items():
        times = {model.x[j][t]: unit * t for t in range(1, length)}
        model.rows.row(times | {model.s[j]: -1}, 0, 0)


def eq5(model: PrintedModel) -> None:
    """Eq. (5): s[i] + p[i] <= s[k] for every dependency; the virtual task depends on all."""
    p, s = model.problem, model.s
    for k in range(p.n):
        for i in p.pred_idx[p.pred_ptr[k] : p.pred_ptr[k + 1]].tolist():
            model.rows.row({s[k]: 1, s[i]: -1}, float(p.duration[i]))
        model.rows.row({s[p.n]: 1, s[k]: -1}, float(p.duration[k]))


def eq6(model: PrintedModel) -> None:
    """Eq. (6): sum over r of a[r, x, y, t'] >= sum of x[j, t], t in max(t' - ceil(p/tau) + 1, 0) .. t'.

    As printed a row per transfer, so that two of one pair may share a circuit; else a row per pair,
    summed.
    """
    together: dict[object, list[int]] = {}
    for j, pair in model.pair_of.items():
        if model.slots[j] > 0:
            together.setdefault(j if model.network.shares else pair, []).append(j)
    for group in together.values():
        pair = model.pair_of[group[0]]
        for t1 in range(model.m):
            circuits = {model.a[r, pair, t1]: 1 for r in model.switches}
            active = {
                model.x[j][t]: -1
                for j in group
                for t in range(max(t1 - model.slots[j] + 1, 0), t1 + 1)
            }
            model.rows.row(circuits | active, 0)


def eq7(model: PrintedModel) -> None:
    """Eq. (7): sum over x, y of a[r, x, y, t'] <= d_OCS, for every slot and switch."""
    for r in model.switches:
        model.circuits_at_most(model.network.circuits_per_switch, model.pairs, [r])


def eq8(model: PrintedModel) -> None:
    """Eq. (8): sum over r, x of a[r, x, y, t'] + a[r, y, x, t'] <= d_S; full duplex bounds each sum apart (ours)."""
    sides = [*model.by_server(0), *model.by_server(1)]
    if model.network.half_duplex:
        servers = {server for pair in model.pairs for server in pair}
        sides = [[pair for pair in model.pairs if server in pair] for server in servers]
    for pairs in sides:
        model.circuits_at_most(model.network.ports_per_server, pairs)


def eq9(model: PrintedModel) -> None:
    """Eq. (9): sum over x of a[r, x, y, t'] <= 1 (ports_on_switch): one circuit into a server on a switch."""
    for r, into in product(model.switches, model.by_server(1)):
        model.circuits_at_most(model.network.ports_on_switch, into, [r])


def eq10(model: PrintedModel) -> None:
    """Eq. (10): sum over y of a[r, x, y, t'] <= 1 (ports_on_switch): one circuit out of a server on a switch."""
    for r, out in product(model.switches, model.by_server(0)):
        model.circuits_at_most(model.network.ports_on_switch, out, [r])


def devices(model: PrintedModel) -> None:
    """Ours, no equation of the paper: at every tick at most one task runs on a device."""
    p = model.problem
    tasks_on: dict[int, list[int]] = {}
    for j in model.on_device:
        tasks_on.setdefault(int(p.device[j]), []).append(j)
    for tasks in tasks_on.values():
        for tick in range(model.horizon if len(tasks) > 1 else 0):
            running = {
                model.x[j][t]: 1
                for j in tasks
                for t in range(max(tick - int(p.duration[j]) + 1, 0), tick + 1)
            }
            model.rows.row(running, upper=1)


# -- the engine ------------------------------------------------------------------------------------------


def solve_printed(
    problem: Problem,
    limits: Limits,
    stop: Stop = never,
    on_progress: OnProgress | None = None,
    news: News | None = None,
) -> Answer:
    """Solve the printed model with HiGHS; its optimum equals the reduced problem's.

    Raises
    ------
    InputError
        If the model would be too large (the size is named).
    """
    known = initially_known(problem, limits, on_progress, stop, news)
    horizon = known.makespan
    printed = PrintedModel(problem, horizon, known.bound)
    printed.refuse_if_too_large()
    if not known.over():
        built, hint = printed.build(), printed.known(known.solution.start)
        model = MipOfStarts(built, printed.start, known=hint)
        known.search(model.solve, horizon, limits.time_limit_s, never, SOURCE, BOUND_BY)
    return known.answer()
