"""The model as printed (TOPO-X, section III, eqs 2-10), row by row, for small instances and for reading beside it.

One function per equation, named after it. What is ours, not the paper's:

* time counts in ticks; a transfer's slot t' begins at tick t' * (ticks per slot), which is the tau of eq. (4);
* eq. (6) is written once per pair and summed over its transfers unless ``Network.shares`` says as printed;
* eq. (8) splits into out and in for full duplex; the right-hand side of eqs (9) and (10) is ``ports_on_switch``;
* compute tasks that hold a device alone get x[j, t] (eqs 3 and 4, on ticks) and rows a device and tick, because
  eqs (3)-(10) contain no devices.
"""

from dataclasses import replace

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
from topox_core.schedule.engines.highs import ModelReading, branch_and_bound
from topox_core.schedule.problem import Int, Problem
from topox_core.schedule.source import ENGINES

SOURCE = ENGINES["printed"]
BOUND_BY = "branch and bound (HiGHS, printed model)"
MAX_COLUMNS = 200_000
MAX_NONZEROS = 4_000_000


class PrintedModel:
    """Columns x[j, t'], s[j], s[j_v] and a[r, x, y, t'] of one problem, and its equations.

    Parameters
    ----------
    horizon
        Makespan of a known schedule in ticks; m is the number of slots that it spans.
    """

    def __init__(self, problem: Problem, horizon: int, bound: int) -> None:
        self.problem, self.network = problem, problem.switch_network
        self.horizon, self.bound = horizon, bound
        self.tau = problem.ticks_per_slot
        self.m = max(1, -(-horizon // self.tau))
        self.transfers = [int(j) for j in np.flatnonzero(self.network.source >= 0)]
        self.on_device = [
            int(j) for j in np.flatnonzero((problem.device >= 0) & (problem.duration > 0))
        ]
        self.slots = [int(p) // self.tau for p in problem.duration]
        self.pair_of = {
            j: (int(self.network.source[j]), int(self.network.destination[j]))
            for j in self.transfers
        }
        # a[r, x, y, t'] only for pairs with traffic: the others would stay 0.
        self.pairs = sorted({self.pair_of[j] for j in self.transfers if self.slots[j] > 0})
        servers = sorted({server for pair in self.pairs for server in pair})
        # (pairs into, pairs out of) every server that has traffic.
        self.traffic = [
            (
                [pair for pair in self.pairs if pair[1] == y],
                [pair for pair in self.pairs if pair[0] == y],
            )
            for y in servers
        ]
        self.position = {pair: i for i, pair in enumerate(self.pairs)}
        # How many starts x[j, .] has, and the ticks from one to the next.
        self.starts = dict.fromkeys(self.transfers, (self.m, self.tau))
        self.starts |= dict.fromkeys(self.on_device, (horizon, 1))
        self.first_x: dict[int, int] = {}
        at = 0
        for j, (length, _) in self.starts.items():
            self.first_x[j] = at
            at += length
        self.first_s = at
        self.first_a = at + problem.n + 1
        self.columns = self.first_a + len(self.pairs) * self.network.switches * self.m

    def x(self, j: int, t: int) -> int:
        """Column of x[j, t]: task j starts in slot t (a transfer) or at tick t (compute on a device)."""
        return self.first_x[j] + t

    def s(self, j: int) -> int:
        """Column of s[j]: start of task j in ticks; ``s(n)`` is the virtual task's, the makespan."""
        return self.first_s + j

    def a(self, r: int, pair: tuple[int, int], t: int) -> int:
        """Column of a[r, x, y, t]: circuits of the pair (x, y) on switch r in slot t."""
        return self.first_a + (self.position[pair] * self.network.switches + r) * self.m + t

    def nonzeros(self) -> int:
        """Matrix entries, counted without building (an upper estimate)."""
        p, net = self.problem, self.network
        circuits = self.columns - self.first_a
        eq6 = sum(self.m * self.slots[j] for j in self.transfers) + self.m * net.switches * (
            len(self.transfers) if net.shares else len(self.pairs)
        )
        devices = sum(self.horizon * int(p.duration[j]) for j in self.on_device)
        return 2 * self.first_s + 2 * (len(p.pred_idx) + p.n) + eq6 + 5 * circuits + devices

    def refuse_if_too_large(self) -> None:
        """Raise an :class:`InputError` that names the size if the model should not be built."""
        for count, limit, what in (
            (self.columns, MAX_COLUMNS, "columns"),
            (self.nonzeros(), MAX_NONZEROS, "matrix entries"),
        ):
            if count > limit:
                raise InputError(
                    f"the printed model would have {count:,} {what} (limit {limit:,}): use highs or list",
                    file="settings",
                    field="engine",
                )

    def build(self) -> mip.Mip:
        """Return the model: eq. (2) as the objective, eqs (3)-(10) and the device rows as constraints."""
        rows = mip.MipBuilder()
        for equation in (eq3, eq4, eq5, eq6, eq7, eq8, eq9, eq10, devices):
            equation(self, rows)
        lower = np.zeros(self.columns)
        upper = np.ones(self.columns)
        integer = np.ones(self.columns, np.bool_)
        starts = slice(self.first_s, self.first_a)
        upper[starts], integer[starts] = self.horizon, False
        lower[self.s(self.problem.n)] = self.bound
        upper[self.first_a :] = self.network.ports_on_switch
        return replace(rows.built(), cost=eq2(self), lower=lower, upper=upper, integer=integer)

    def start(self, values: NDArray[np.float64]) -> Int:
        """Return the start ticks that a solution says; tasks without x start at the last end before them."""
        p = self.problem
        start = np.zeros(p.n, np.int64)
        for j in p.order.tolist():
            if j in self.starts:
                length, unit = self.starts[j]
                start[j] = int(values[self.x(j, 0) : self.x(j, 0) + length].argmax()) * unit
            else:
                before = p.pred_idx[p.pred_ptr[j] : p.pred_ptr[j + 1]]
                start[j] = int((start[before] + p.duration[before]).max(initial=0))
        return start

    def known(self, start: Int) -> tuple[mip.Index, mip.Float]:
        """Return x and s of a schedule; HiGHS finds its circuits."""
        values = np.zeros(self.first_a)
        for j, (_, unit) in self.starts.items():
            values[self.x(j, int(start[j]) // unit)] = 1
        values[self.first_s : self.first_a] = np.append(start, self.horizon)
        return np.arange(self.first_a, dtype=np.int32), values


# -- the equations ---------------------------------------------------------------------------------------


def eq2(model: PrintedModel) -> NDArray[np.float64]:
    """Objective (2): min s[j_v]."""
    cost = np.zeros(model.columns)
    cost[model.s(model.problem.n)] = 1.0
    return cost


def eq3(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (3): sum over t' of x[j, t'] = 1, every transfer starts once (and every task on a device: ours)."""
    for j, (length, _) in model.starts.items():
        rows.row({model.x(j, t): 1 for t in range(length)}, 1, 1)


def eq4(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (4): sum over t' of tau * t' * x[j, t'] = s[j] (the printed t is a slip for t')."""
    for j, (length, unit) in model.starts.items():
        times = {model.x(j, t): unit * t for t in range(1, length)}
        rows.row(times | {model.s(j): -1}, 0, 0)


def eq5(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (5): s[i] + p[i] <= s[k] for every dependency; the virtual task depends on all."""
    p = model.problem
    for k in range(p.n):
        for i in p.pred_idx[p.pred_ptr[k] : p.pred_ptr[k + 1]].tolist():
            rows.row({model.s(k): 1, model.s(i): -1}, float(p.duration[i]))
        rows.row({model.s(p.n): 1, model.s(k): -1}, float(p.duration[k]))


def eq6(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (6): sum over r of a[r, x, y, t'] >= sum of x[j, t], t in max(t' - ceil(p/tau) + 1, 0) .. t'.

    As printed a row per transfer, so that two of one pair may share a circuit; else a row per pair,
    summed.
    """
    together: list[list[int]]
    if model.network.shares:
        together = [[j] for j in model.transfers if model.slots[j] > 0]
    else:
        together = [
            [j for j in model.transfers if model.pair_of[j] == pair and model.slots[j] > 0]
            for pair in model.pairs
        ]
    for group in together:
        pair = model.pair_of[group[0]]
        for t1 in range(model.m):
            circuits = {model.a(r, pair, t1): 1 for r in range(model.network.switches)}
            active = {
                model.x(j, t): -1
                for j in group
                for t in range(max(t1 - model.slots[j] + 1, 0), t1 + 1)
            }
            rows.row(circuits | active, 0)


def eq7(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (7): sum over x, y of a[r, x, y, t'] <= d_OCS, for every slot and switch."""
    for t in range(model.m):
        for r in range(model.network.switches):
            circuits = {model.a(r, pair, t): 1 for pair in model.pairs}
            rows.row(circuits, upper=model.network.circuits_per_switch)


def eq8(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (8): sum over r, x of a[r, x, y, t'] + a[r, y, x, t'] <= d_S; full duplex bounds each sum apart (ours)."""
    switches, most = range(model.network.switches), model.network.ports_per_server
    for t in range(model.m):
        for into, out in model.traffic:
            arriving = {model.a(r, pair, t): 1 for r in switches for pair in into}
            leaving = {model.a(r, pair, t): 1 for r in switches for pair in out}
            if model.network.half_duplex:
                rows.row(arriving | leaving, upper=most)
            else:
                rows.row(arriving, upper=most)
                rows.row(leaving, upper=most)


def eq9(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (9): sum over x of a[r, x, y, t'] <= 1 (ports_on_switch): one circuit into a server on a switch."""
    for t in range(model.m):
        for r in range(model.network.switches):
            for into, _ in model.traffic:
                arriving = {model.a(r, pair, t): 1 for pair in into}
                rows.row(arriving, upper=model.network.ports_on_switch)


def eq10(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Eq. (10): sum over y of a[r, x, y, t'] <= 1 (ports_on_switch): one circuit out of a server on a switch."""
    for t in range(model.m):
        for r in range(model.network.switches):
            for _, out in model.traffic:
                leaving = {model.a(r, pair, t): 1 for pair in out}
                rows.row(leaving, upper=model.network.ports_on_switch)


def devices(model: PrintedModel, rows: mip.MipBuilder) -> None:
    """Ours, no equation of the paper: at every tick at most one task runs on a device."""
    tasks_on: dict[int, list[int]] = {}
    for j in model.on_device:
        tasks_on.setdefault(int(model.problem.device[j]), []).append(j)
    for tasks in tasks_on.values():
        for tick in range(model.horizon if len(tasks) > 1 else 0):
            running = {
                model.x(j, t): 1
                for j in tasks
                for t in range(max(tick - int(model.problem.duration[j]) + 1, 0), tick + 1)
            }
            rows.row(running, upper=1)


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
    del news  # the printed model has no use for it
    known = initially_known(problem, limits, on_progress)
    model = PrintedModel(problem, known.makespan, known.bound)
    model.refuse_if_too_large()
    if not known.close_enough and not stop():
        branch_and_bound(
            known,
            model.build(),
            model.known(known.solution.start),
            ModelReading(model.start, 1, SOURCE, BOUND_BY),
            limits.time_limit_s,
            stop,
            never,
        )
    return known.answer(stop)
