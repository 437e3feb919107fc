"""Files of a demand matrix: what is read, what is refused in one line, and the plan that is written."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from topox_core.check.demand import check_demand_plan
from topox_core.demand.bounds import lower_bound
from topox_core.demand.demand_file import plan_file, read_demand
from topox_core.demand.planning import plan_demand
from topox_core.errors import InputError


@pytest.mark.parametrize(
    "text", ["0,2.5\n1e1,0\n", "0;2.5\n10;0", "\ufeff0\t2.5\r\n\r\n10\t0\r\n", ",2.5\n10,\n"]
)
def test_numbers_in_rows_are_read(text: str) -> None:
    assert read_demand(text.encode(), "d.csv").tolist() == [[0, 2.5], [10, 0]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "d.csv: is empty"),
        (b" \n;;\n", "d.csv: is empty"),
        (b"0,1\n2,x\n", "d.csv, row 2, column 2: must be a time from 0 to 1e+12 ms (got 'x')"),
        (b"0,-1\n2,0\n", "d.csv, row 1, column 2: must be a time from 0"),
        (b"0,nan\n2,0\n", "row 1, column 2"),
        (b"0,inf\n2,0\n", "row 1, column 2"),
        (b"0,1\n2,0,3\n", "d.csv, row 2: has 3 cells where the first row has 2"),
        (b"0,1\n", "must be a square matrix (got 1 rows of 2)"),
        (b"0\n" * 300, "has more than 256 rows"),
        (b",".join([b"1"] * 300), "has 300 cells (limit 256)"),
        (b'0,"1\n2,0', "cannot be read as a table"),
        (b"\xff\xfe0\n", "UTF-16"),
        (b"0,1\n\xff,0\n", "is not UTF-8"),
    ],
)
def test_what_is_no_matrix_is_refused_in_one_line(data: bytes, words: str) -> None:
    with pytest.raises(InputError) as error:
        read_demand(data, "d.csv")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_plan_s_files_say_the_same() -> None:
    demand = np.array([[0.0, 3.0], [1.0, 0.0]])
    plan, bound = plan_demand(demand, 2, 0.5, first_free=True), lower_bound(demand, 2, 0.5, True)
    record = json.loads(plan_file(plan, bound, "plan.json"))
    assert check_demand_plan(demand, record).ok
    rows = list(csv.DictReader(io.StringIO(plan_file(plan, bound, "plan.csv.gz").decode())))
    assert max(float(row["end_ms"]) for row in rows) == record["makespan_ms"]
    assert {row["setup_ms"] for row in rows if row["configuration"] == "1"} == {"0.0"}
