"""``study`` and ``study buy`` as a script calls them: computed, stopped and gone on with, shown; the numbers of the page."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.real_inputs import ROOT
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import finish
from topox_core.studies.buying import Assumptions, Question
from topox_core.studies.buying_run import buying_run
from topox_core.studies.buying_words import as_record
from topox_core.studies.offers import OFFERS, load_offers, offer_of
from topox_core.studies.ready import READY
from topox_core.studies.study import load_study
from topox_core.studies.subject import Subject, resolve

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


@pytest.mark.long
def test_a_study_is_computed_kept_shown_and_written_for_other_programs(
    answered: Any, folder: Path
) -> None:
    (folder / "s.json").write_text(json.dumps(SMALL))
    ran = answered("study run s.json --workers 1 --csv out.csv")
    assert ran["complete"] and len(ran["points"]) == 6
    assert answered("study show s.json")["points"] == ran["points"]
    by_point = {(row["cluster.reconfiguration_ms"], row["fabric"]): row for row in ran["points"]}
    assert by_point[0.0, "scheduled"]["iteration_ms"] == 10.0  # the sample's proved optimum
    status = answered("study status s.json")
    assert (status["points"], status["kept"], status["missing"]) == (6, 6, 0)
    (listed,) = answered("study status")["studies"]
    assert (listed["name"], listed["kept"], listed["state"]) == ("Small", 6, "complete")
    assert len((folder / "out.csv").read_text().splitlines()) == 1 + 6
    axes = [SMALL["axes"][0], {"key": "fabric", "values": ["static", "reactive"]}]
    (folder / "s.json").write_text(json.dumps({**SMALL, "axes": axes}))
    shown = answered("study show s.json", status=1)
    states = {row["fabric"]: row["status"] for row in shown["points"]}
    assert states == {"static": "simulated", "reactive": "missing"}


def test_ready_studies_are_files_to_change(topox: Any, answered: Any, folder: Path) -> None:
    assert set(answered("study ready")["ready"]) == set(READY)
    assert topox("study ready crossover-map --sample moe --output m.json")[0] == 0
    assert load_study((folder / "m.json").read_bytes(), "m.json").subject.values["name"] == "moe"


@pytest.mark.long
def test_interrupted_and_started_again_it_ends_as_if_nothing_had_been(
    topox: Any, answered: Any, folder: Path
) -> None:
    path, library = folder / "race.study.json", folder / "runs.sqlite"
    assert topox("study ready crossover-map --output race.study.json")[0] == 0
    command = [sys.executable, "-m", "topox_core", "study", "run", str(path), "--workers", "1"]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    wait_until(lambda: library.exists() and RunLibrary.open(library).count() >= 3)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE_S) == 1
    assert RunLibrary.open(library).count() < 312
    again = answered("study run race.study.json --workers 2")
    whole = answered("study run race.study.json --workers 1 --no-library")
    for one in (*again["points"], *whole["points"]):
        del one["run"]
    assert again == whole


@pytest.mark.long
def test_buying_gives_what_the_core_gives_whoever_asks(answered: Any, folder: Path) -> None:
    asked = "study buy --sample blackboard --only rotornet,piezo --workers 1 --usd-per-gpu-hour 8"
    files = "--csv a.csv --save-study a.study.json --save-offers a.offers.json"
    printed = answered(asked, files)
    offers = tuple(offer_of(OFFERS, key) for key in ("rotornet", "piezo"))
    assumed = Assumptions(Assumptions().usd_per_gpu_hour.moved(8.0))
    job = resolve(Subject("sample", {"name": "blackboard"}))
    answer = finish(buying_run(Question(job, offers, assumed=assumed), executor=1))
    assert printed == json.loads(json.dumps(as_record(answer)))
    rows = csv.DictReader((folder / "a.csv").read_text().splitlines())
    assert [row["network"] for row in rows] == [row["network"] for row in printed["networks"]]
    study = load_study((folder / "a.study.json").read_bytes(), "a.study.json")
    assert len(study.points) == 3 + 3 * len(offers)
    assert load_offers((folder / "a.offers.json").read_bytes(), "a.offers.json") == offers
    # Every point is kept, and asked again nothing is computed.
    runs = RunLibrary.open(folder / "runs.sqlite").count
    before = runs()
    assert answered(asked) == printed and runs() == before >= len(study.points)
