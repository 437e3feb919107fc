"""Files of a demand matrix: numbers in rows, read within limits, and the plan written as a table or as JSON."""

import json
from typing import Any

import numpy as np

from topox_core.demand.assignment import DemandPlan
from topox_core.demand.planning import MAX_MS
from topox_core.errors import InputError, shown
from topox_core.io.limits import DEMAND
from topox_core.io.ranges import number_in
from topox_core.io.tables import read_rows, table_bytes
from topox_core.model.transfer_graph import FloatArray
from topox_core.schedule.bounds.unrounded import Bound

COLUMNS = ("switch", "configuration", "setup_ms", "start_ms", "end_ms", "input", "output")
FORMAT = "topox-demand-plan"


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
    if len(rows) != len(rows[0]):
        raise InputError(
            f"must be a square matrix (got {len(rows)} rows of {len(rows[0])})", file=file
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


def plan_file(plan: DemandPlan, bound: Bound, name: str) -> bytes:
    """Return a plan as the file of this name has it: a table for ``.csv``, else JSON; ``.gz`` is left to the writer."""
    if name.removesuffix(".gz").endswith(".csv"):
        return plan_table(plan)
    return (json.dumps(plan_record(plan, bound), allow_nan=False) + "\n").encode()


def plan_table(plan: DemandPlan) -> bytes:
    """Return a plan as CSV, a row a circuit of a configuration; everything is counted from 1."""
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
