"""Runs side by side and in tables: every difference is shown, and nothing else is."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from tests.topox_core.library.records import key, record
from topox_core.errors import InputError
from topox_core.library.comparison import compare_runs
from topox_core.library.exports import run_table, runs_csv, runs_parquet
from topox_core.library.record import RunRecord
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import RunLibrary


def stored(*records: RunRecord) -> list[StoredRun]:
    return [StoredRun(number, one, False) for number, one in enumerate(records, 1)]


def test_what_differs_is_told_from_what_is_equal() -> None:
    one = record("a", measures={"iteration_ms": 200.0, "gap": None, "windows": 3})
    other = replace(
        one,
        cluster=key("faster"),
        settings={**one.settings, "cluster.port_gbps": 400.0, "subject": {"name": "race"}},
        measures={"iteration_ms": 50.0, "gap": None, "windows": 3, "dollars": 7.0},
        status="optimal",
    )
    compared = compare_runs(stored(one, other))
    assert {row.name: row.values for row in compared.different_settings} == {
        "cluster.port_gbps": (100.0, 400.0),
        "subject.name": (None, "race"),
    }
    assert compared.equal_settings["fabric"] == "scheduled"
    assert {row.name: row.values for row in compared.different_outcome} == {
        "status": ("feasible", "optimal"),
        "iteration_ms": (200.0, 50.0),
        "dollars": (None, 7.0),
    }
    assert compared.equal_outcome == {"stopped_by": "heuristic", "gap": None, "windows": 3}
    ratios = {row.name: row.ratios for row in compared.outcome}
    assert (ratios["iteration_ms"], ratios["status"]) == ((1.0, 0.25), (None, None))


def test_clusters_that_differ_in_no_key_that_was_kept_differ_by_digest() -> None:
    one = record("a")
    compared = compare_runs(stored(one, replace(one, cluster=key("other"), version="2")))
    assert [row.name for row in compared.different_settings] == ["cluster", "version"]


@pytest.mark.parametrize("count", [0, 1, 21])
def test_as_many_runs_are_compared_as_a_table_can_show(count: int) -> None:
    with pytest.raises(InputError, match=f"runs to compare: must be 2 to 20 .got {count}."):
        compare_runs(stored(*(record(number) for number in range(count))))


RUNS = [
    record(
        "a",
        name="=1+1",
        started=0.5,
        settings={"cluster.port_gbps": 100.0, "seed": 0, "strides": [1, 3], "status": "asked"},
        measures={"iteration_ms": 1.5, "gap": -0.25, "windows": 3},
    ),
    record(
        "b", settings={"subject": {"kind": "sample"}, "on": True}, measures={"iteration_ms": None}
    ),
]


def test_every_run_is_a_row_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    with RunLibrary.open(tmp_path / "runs.sqlite") as library:
        library.add(RUNS)
        rows = list(csv.DictReader(io.StringIO(runs_csv(library).decode())))
    first, second = rows
    assert first["name"] == "'=1+1"
    assert (first["run"], first["started"]) == ("1", "1970-01-01T00:00:00.500+00:00")
    assert (first["cluster.port_gbps"], first["gap"], first["windows"]) == ("100.0", "-0.25", "3")
    assert (first["strides"], first["settings.status"]) == ("[1, 3]", "asked")
    assert (second["subject"], second["subject.kind"], second["on"]) == ("race", "sample", "True")
    assert (second["iteration_ms"], second["seed"]) == ("", "0")
    assert "settings.seed" not in first


def test_parquet_holds_the_same_table_with_numbers_as_numbers(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with RunLibrary.open(tmp_path / "runs.sqlite") as library:
        library.add(RUNS)
        expected = run_table(library)
        rows = list(expected.rows)
        read = parquet.read_table(io.BytesIO(runs_parquet(library)))
    assert tuple(read.column_names) == expected.columns
    assert [tuple(row.values()) for row in read.to_pylist()] == rows
    kinds = {
        name: str(kind) for name, kind in zip(read.column_names, read.schema.types, strict=True)
    }
    assert (kinds["iteration_ms"], kinds["windows"], kinds["on"], kinds["name"]) == (
        *("double", "int64", "bool", "string"),
    )
