"""The command ``demand``: a matrix in, a checked plan beside its bound and two baselines out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from topox_core.cli.main import main

MATRIX = "0,6,2,1\n3,0,5,0\n1,2,0,4\n5,0,1,0\n"


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    path = tmp_path / "demand.csv"
    path.write_text(MATRIX)
    return str(path)


@pytest.mark.long
def test_a_matrix_is_planned_checked_and_set_beside_its_bound(
    matrix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demand", matrix, "--switches", "2", "--delay-ms", "2"]) == 0
    told = capsys.readouterr().out
    assert "8 ms" in told
    assert "7.5 ms" in told
    assert "every rule holds" in told


@pytest.mark.long
def test_the_plan_is_printed_and_written(
    matrix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "plan.json"
    asked = ["demand", matrix, "--delay-ms", "0.5", "--first-free", "--json", "--output", str(out)]
    assert main(asked) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["checked"]
    assert printed["bound_ms"] <= printed["makespan_ms"] <= min(printed["baselines_ms"].values())
    assert json.loads(out.read_text())["switches"] == printed["switches"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--delay-ms", "-1"], "field --delay-ms: must be a number of at least 0"),
        (["--switches", "5000"], "field --switches: must be a whole number from 1 to 1,000"),
        (["--output", "plan.txt"], "--output: must end in .json or .csv"),
        (["--switches", "0"], "--switches"),
    ],
)
def test_mistakes_are_one_line(
    matrix: str, more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demand", matrix, *more]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.strip().splitlines()) == 1
