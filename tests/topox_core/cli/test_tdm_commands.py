"""``tdm`` and ``tdm-jobs`` as a script calls them: the round, the reason for none, the file of a set-up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs_file import load_jobs

OVERLAP = f"tdm {SAMPLE_FOLDER / 'overlap.jobs.json'}"
FOUR_PODS = f"tdm {SAMPLE_FOLDER / 'four-pods.jobs.json'}"


def test_two_jobs_that_take_turns_need_40_s_in_place_of_60(answered: Any, folder: Path) -> None:
    record = answered(OVERLAP, "--reconfiguration-ms 0 --output overlap.round.json")
    assert (record["round_s"], record["non_tdm_s"]) == (pytest.approx(40.0), pytest.approx(60.0))
    assert record["reduction"] == pytest.approx(1 / 3)
    assert record["checked"] and record["violations"] == []
    stages = record["cycles"][0]["stages"]
    ways = [f"group {group} {way}" for way in ("pushes", "pulls") for group in (0, 1)]
    assert [stage["what"] for stage in stages] == ways
    assert stages[-1]["end_s"] == record["round_s"]
    written = json.loads((folder / "overlap.round.json").read_text())
    assert (written["format"], written["round_s"]) == ("topox-round", record["round_s"])


@pytest.mark.parametrize(
    ("algorithm", "round_s"), [("hill-climbing", 118.7998), ("milp", 107.7832)]
)
def test_the_golden_instance_takes_as_long_as_published(
    answered: Any, algorithm: str, round_s: float
) -> None:
    record = answered(FOUR_PODS, "--reconfiguration-ms 0 --algorithm", algorithm)
    assert record["round_s"] == pytest.approx(round_s, abs=1e-3)
    assert record["status"] == "optimal" or algorithm != "milp"


def test_iterations_a_second_count_a_parameter_server_once_a_round(answered: Any) -> None:
    record = answered(FOUR_PODS, "--eq3-literal --physical-ring --delay-inside")
    assert set(record["settings"]["reading"].values()) == {True}
    jobs = load_jobs((SAMPLE_FOLDER / "four-pods.jobs.json").read_bytes(), "j").jobs
    each = {job.id: 1 if job.collective == "parameter_server" else 2 for job in jobs}
    assert {one["id"]: one["iterations_per_s"] for one in record["jobs"]} == {
        name: pytest.approx(count / record["round_s"]) for name, count in each.items()
    }


def test_ports_too_few_is_an_answer_that_names_the_pod(answered: Any) -> None:
    record = answered(FOUR_PODS, "--ports-per-pod 2", status=1)
    assert (record["status"], record["round_s"]) == ("infeasible", None)
    assert "pod" in record["message"] and "has 2" in record["message"]


def test_a_set_up_is_written_as_the_generator_deploys_it(answered: Any, folder: Path) -> None:
    record = answered("tdm-jobs --jobs 12 --pod-groups 2 --seed 3 --output drawn.jobs.json")
    jobs = load_jobs((folder / "drawn.jobs.json").read_bytes(), "drawn.jobs.json")
    assert jobs.digest == deploy(SetUp(jobs=12, pod_groups=2, seed=3)).digest == record["digest"]
    assert sum(record["collectives"].values()) == record["jobs"] == 12
    rings = answered("tdm-jobs --jobs 5 --mix 0,1,0 --output rings.jobs.json")
    assert rings["collectives"]["ring_all_reduce"] == 5
