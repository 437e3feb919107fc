"""``study`` as a script calls it: computed, stopped and gone on with, shown, and every mistake in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.patience import PATIENCE_S, wait_until
from topox_core.cli.main import main
from topox_core.library.run_library import RunLibrary
from topox_core.studies.ready import READY

SMALL: dict[str, Any] = {
    "format": "topox-study",
    "version": 1,
    "name": "Small",
    "subject": {"kind": "sample", "name": "blackboard"},
    "axes": [
        {"key": "cluster.reconfiguration_ms", "values": [0, 1, 2]},
        {"key": "fabric", "values": ["static", "scheduled"]},
    ],
    "measures": ["iteration_ms"],
}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "small.study.json"
    path.write_text(json.dumps(SMALL))
    return path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


def answered(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> Any:
    assert main(["study", *map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


@pytest.mark.long
def test_a_study_is_computed_kept_and_shown(
    capsys: pytest.CaptureFixture[str], study: Path, library: Path
) -> None:
    ran = answered(capsys, "run", study, "--workers", 1, "--library", library)
    assert ran["complete"] and len(ran["points"]) == 6
    shown = answered(capsys, "show", study, "--library", library)
    assert shown["points"] == ran["points"]
    by_point = {(row["cluster.reconfiguration_ms"], row["fabric"]): row for row in shown["points"]}
    assert by_point[0.0, "scheduled"]["iteration_ms"] == 10.0  # the sample's proved optimum
    status = answered(capsys, "status", study, "--library", library)
    assert (status["points"], status["kept"], status["missing"]) == (6, 6, 0)
    (listed,) = answered(capsys, "status", "--library", library)["studies"]
    assert (listed["name"], listed["kept"], listed["state"]) == ("Small", 6, "complete")


@pytest.mark.long
def test_a_point_that_is_still_to_come_is_called_missing(
    capsys: pytest.CaptureFixture[str], study: Path, library: Path
) -> None:
    answered(capsys, "run", study, "--workers", 1, "--library", library)
    axes = [SMALL["axes"][0], {"key": "fabric", "values": ["static", "reactive"]}]
    study.write_text(json.dumps({**SMALL, "axes": axes}))
    shown = answered(capsys, "show", study, "--library", library, status=1)
    states = {row["fabric"]: row["status"] for row in shown["points"]}
    assert states == {"static": "simulated", "reactive": "missing"}


@pytest.mark.long
def test_the_table_is_written_for_other_programs(
    capsys: pytest.CaptureFixture[str], study: Path, tmp_path: Path
) -> None:
    table = tmp_path / "out.csv"
    assert main(["study", "run", str(study), "--no-library", "--csv", str(table)]) == 0
    lines = table.read_text().splitlines()
    assert lines[0].startswith("point,cluster.reconfiguration_ms,fabric,iteration_ms")
    assert len(lines) == 7


def test_ready_studies_are_files_to_change(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert set(answered(capsys, "ready")["ready"]) == set(READY)
    path = tmp_path / "map.study.json"
    assert main(["study", "ready", "crossover-map", "--sample", "moe", "--output", str(path)]) == 0
    assert json.loads(path.read_text())["subject"] == {"kind": "sample", "name": "moe"}
    assert main(["study", "ready", "rails-delay", "--sample", "moe"]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "away.study.json"], "away.study.json: "),
        (["run", "STUDY", "--scheduler", "http://host"], "address must look like tcp://host:8786"),
        (
            ["run", "STUDY", "--scheduler", "tcp://127.0.0.1:9", "--workers", "2"],
            "one or the other",
        ),
        (["ready", "crosover-map"], "did you mean 'crossover-map'?"),
        (["run", "STUDY", "--no-library", "--library", "x"], "cannot go with --no-library"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_started(
    capsys: pytest.CaptureFixture[str], study: Path, arguments: list[str], words: str
) -> None:
    given = [str(study) if one == "STUDY" else one for one in arguments]
    assert main(["study", *given]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.long
def test_interrupted_and_started_again_it_ends_as_if_nothing_had_been(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, library: Path
) -> None:
    path = tmp_path / "race.study.json"
    assert main(["study", "ready", "crossover-map", "--output", str(path)]) == 0
    command = [sys.executable, "-m", "topox_core", "study", "run", str(path), "--workers", "1"]
    command += ["--library", str(library)]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    wait_until(lambda: library.exists() and RunLibrary.open(library).count() >= 3)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE_S) == 1
    kept = RunLibrary.open(library).count()
    assert kept < 312
    again = answered(capsys, "run", path, "--workers", 2, "--library", library)
    whole = answered(capsys, "run", path, "--workers", 1, "--no-library")
    for one in (*again["points"], *whole["points"]):
        del one["run"]
    assert again == whole
