"""A demand matrix planned over parallel switches, by our method and by two baselines.

After Spectra (arXiv 2603.07373), of which the abstract is public: few weighted matchings, given to
switches by their load and evened out by splitting. The formulas, and both baselines, are ours.
"""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from topox_core.demand.decomposition import (
    Configuration,
    DemandPlan,
    SwitchTimes,
    assigned,
    begun_by_peeling,
    equalised,
    peeled,
    peels,
    shortest_few,
)
from topox_core.errors import InputError, refuse_if, shown
from topox_core.io.limits import DEMAND, check_number, check_one_of, check_whole, number_in
from topox_core.io.tables import read_rows, table_bytes
from topox_core.model.quantities import MAX_MS
from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.unrounded import Bound


def lower_bound(
    demand_ms: FloatArray, switches: int, delay_ms: float, first_free: bool = False
) -> Bound:
    """Return the largest bound over all lines (rows and columns) of the matrix.

    A line has the sum R, v entries and the largest entry m; there are s switches and a delay of
    delta. No plan is shorter than any of

    * (R + delta v) / s. A configuration serves at most one entry of a line, so v of them at least
      serve it; with their set-ups they hold the s switches for R + delta v together, and one switch
      for at least the mean.
    * delta ceil(v / s). One switch has at least ceil(v / s) of these configurations, each after its
      set-up.
    * m / s + delta. At most s switches serve the largest entry; one of them does for at least m / s,
      after its set-up.

    If the first configuration of a switch is free, the set-ups number v - s together (not below 0)
    and ceil(v / s) - 1 on one switch, and the last bound is m / s.
    """
    best = Bound(0.0, "nothing to send")
    s = switches
    for side, matrix in (("row", demand_ms), ("column", demand_ms.T)):
        for k, line in enumerate(np.asarray(matrix)):
            entries = int((line > 0).sum())
            if not entries:
                continue
            total, largest = float(line.sum()), float(line.max())
            free = first_free
            paid = max(0, entries - s) if free else entries
            most = math.ceil(entries / s) - (1 if free else 0)
            name = f"{side} {k + 1}"
            for ms, by in (
                ((total + delay_ms * paid) / s, f"all of {name} on {s} switches"),
                (delay_ms * most, f"the set-ups for the {entries} entries of {name}"),
                (
                    largest / s + (0.0 if free else delay_ms),
                    f"the largest entry of {name} on {s} switches",
                ),
            ):
                if ms > best.ms * (1 + 1e-12):
                    best = Bound(ms, by)
    return best


METHODS: Mapping[str, str] = MappingProxyType(
    {
        "best": "the shortest of three decompositions, balanced over switches",
        "few": "few matchings, balanced over switches",
        "even": "the matrix with equal row and column sums, decomposed and balanced over switches",
        "mixed": "part of the matrix with equal row and column sums, few matchings for the rest, balanced over switches",
        "peeled": "baseline A: the matrix with equal row and column sums, decomposed, each matching on one switch",
        "shared": "baseline B: an equal share of the matrix for each switch, decomposed there",
    }
)
# Of the entries of the fullest line: so many peels before the rest goes into few matchings.
PEELED = (0.25, 0.5, 1.0, 2.0)
MAX_LINES, MAX_SWITCHES = 256, 1_000


def plan_demand(
    demand_ms: FloatArray,
    switches: int,
    delay_ms: float,
    *,
    first_free: bool = False,
    method: str = "best",
    use_lp: bool = True,
    stop: Stop = never,
) -> DemandPlan:
    """Return configurations of parallel switches that serve a matrix, each one port of every input and output.

    Parameters
    ----------
    demand_ms
        Square matrix: time on one port from an input to an output. Entries may be split over
        configurations and switches.
    switches, delay_ms
        How many switches; what the set-up of a configuration takes.
    first_free
        Whether the first configuration of each switch stands before the beginning.
    method
        One of :data:`METHODS`.
    use_lp
        Whether HiGHS finds the times of few matchings; a process that it must stay out of does
        without, and its plans are a little longer.

    Raises
    ------
    InputError
        If the matrix is not square, too large, or has an entry that is no time; or a setting is
        out of range.
    """
    check_one_of(method, METHODS, file="settings", field="method")
    check_whole(switches, 1, MAX_SWITCHES, file="settings", field="switches")
    check_number(delay_ms, file="settings", field="delay_ms")
    demand = checked_matrix(demand_ms)
    times = SwitchTimes(delay_ms, first_free)

    def plan(name: str, carried: list[list[Configuration]]) -> DemandPlan:
        rows = tuple(map(tuple, carried))
        return DemandPlan(delay_ms, first_free, rows, METHODS[name])

    if method == "shared":
        mine = peeled(demand / switches, stop)
        return plan(method, [list(mine) for _ in range(switches)])
    if method == "peeled":
        return plan(method, assigned(peeled(demand, stop), switches, times))
    plans = [
        plan(name, equalised(assigned(configurations, switches, times), times))
        for name, configurations in _decompositions(demand, method, stop, use_lp)
    ]
    return min(plans, key=lambda one: one.makespan_ms)


def _decompositions(
    demand: FloatArray, method: str, stop: Stop, use_lp: bool
) -> Iterator[tuple[str, list[Configuration]]]:
    """Yield the decompositions of one method or of all, each with its name."""
    if method in ("few", "best"):
        yield "few", shortest_few(demand, stop, use_lp)
    if method in ("even", "best"):
        yield "even", peeled(demand, stop)
    if method in ("mixed", "best"):
        first = peels(demand, stop)
        entries = demand > 0
        degree = int(max(entries.sum(axis=0).max(), entries.sum(axis=1).max()))
        for count in sorted({math.ceil(degree * share) for share in PEELED}):
            yield "mixed", begun_by_peeling(demand, first[:count], stop, use_lp)


def checked_matrix(demand_ms: FloatArray) -> FloatArray:
    """Return a matrix of demands that can be planned.

    Raises
    ------
    InputError
        As :func:`plan_demand`.
    """
    demand = np.asarray(demand_ms, np.float64)
    shape = " x ".join(map(str, demand.shape))
    refuse_if(
        (
            demand.ndim != 2 or demand.shape[0] != demand.shape[1],
            f"must be a square matrix (got {shape})",
        ),
        file="demand",
    )
    refuse_if(
        (
            not 1 <= len(demand) <= MAX_LINES,
            f"must have 1 to {MAX_LINES} rows and columns (got {len(demand):,})",
        ),
        file="demand",
    )
    wrong = np.argwhere(~((demand >= 0) & (demand <= MAX_MS)))
    if len(wrong):
        i, j = wrong[0].tolist()
        raise InputError(
            f"must be a time from 0 to {MAX_MS:g} ms (got {demand[i, j]:g})",
            file="demand",
            item=f"row {i + 1}, column {j + 1}",
        )
    return demand


COLUMNS = ("switch", "configuration", "setup_ms", "start_ms", "end_ms", "input", "output")
FORMAT = "topox-demand-plan"
BOUND_FOR = "any plan that serves this matrix on so many switches with this delay, whatever its configurations"


def read_demand(data: bytes, file: str) -> FloatArray:
    """Return the matrix of a file: a row an input, a column an output, times in ms on one port.

    Numbers are separated by comma, semicolon or tab; an empty cell is 0. Blank rows are left out.

    Raises
    ------
    InputError
        If the file is too large or empty, not square, or a cell is no time; row and column are
        named.
    """
    rows: list[list[float]] = []
    for number, cells in read_rows(data, file, DEMAND):
        if len(rows) == DEMAND.entries:
            raise InputError(f"has more than {DEMAND.entries} rows", file=file)
        rows.append([_time(cell, file, number, k) for k, cell in enumerate(cells, 1)])
        if len(cells) != len(rows[0]):
            raise InputError(
                f"has {len(cells)} cells where the first row has {len(rows[0])}",
                file=file,
                item=f"row {number}",
            )
    refuse_if(
        (
            len(rows) != len(rows[0]),
            f"must be a square matrix (got {len(rows)} rows of {len(rows[0])})",
        ),
        file=file,
    )
    return np.array(rows)


def _time(cell: str, file: str, row: int, column: int) -> float:
    value = number_in(cell or "0")
    if not 0 <= value <= MAX_MS:
        raise InputError(
            f"must be a time from 0 to {MAX_MS:g} ms (got {shown(cell)})",
            file=file,
            item=f"row {row}, column {column}",
        )
    return value


def plan_record(plan: DemandPlan, bound: Bound) -> dict[str, Any]:
    """Return a plan as its JSON file has it; inputs and outputs are counted from 1."""
    return {
        "format": FORMAT,
        "method": plan.method,
        "delay_ms": plan.delay_ms,
        "first_free": plan.first_free,
        "makespan_ms": plan.makespan_ms,
        "bound_ms": bound.ms,
        "bound_by": bound.text,
        "bound_for": BOUND_FOR,
        "switches": [
            [
                {
                    "start_ms": start_ms,
                    "duration_ms": one.weight_ms,
                    "circuits": [[i + 1, j + 1] for i, j in one.circuits],
                }
                for start_ms, one in zip(starts, configurations, strict=True)
            ]
            for starts, configurations in zip(plan.starts_ms, plan.switches, strict=True)
        ],
    }


def plan_table(plan: DemandPlan) -> bytes:
    """Return a plan as CSV, a row per circuit of a configuration; everything is counted from 1."""
    rows = [
        {
            "switch": r,
            "configuration": k,
            "setup_ms": start_ms if plan.first_free and k == 1 else start_ms - plan.delay_ms,
            "start_ms": start_ms,
            "end_ms": start_ms + one.weight_ms,
            "input": i + 1,
            "output": j + 1,
        }
        for r, (starts, mine) in enumerate(zip(plan.starts_ms, plan.switches, strict=True), 1)
        for k, (start_ms, one) in enumerate(zip(starts, mine, strict=True), 1)
        for i, j in one.circuits
    ]
    return table_bytes(COLUMNS, rows)
