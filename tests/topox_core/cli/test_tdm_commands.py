"""``tdm`` and ``tdm-jobs`` as a script calls them: the round, the reason for none, the file of a set-up."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from topox_core.cli.main import main
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs_file import load_jobs

OVERLAP, FOUR_PODS = (
    str(SAMPLE_FOLDER / "overlap.jobs.json"),
    str(SAMPLE_FOLDER / "four-pods.jobs.json"),
)


def answered(capsys: pytest.CaptureFixture[str], *arguments: str, exit_code: int = 0) -> dict:
    assert main(["tdm", *arguments, "--json"]) == exit_code
    return json.loads(capsys.readouterr().out)


def test_two_jobs_that_take_turns_need_40_s_in_place_of_60(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = answered(capsys, OVERLAP, "--reconfiguration-ms", "0")
    assert (record["round_s"], record["non_tdm_s"]) == (pytest.approx(40.0), pytest.approx(60.0))
    assert record["algorithm"] == "hill-climbing"
    assert record["checked"] and record["violations"] == []
    assert sorted(len(group) for group in record["groups"]) == [1, 1]
    stages = record["cycles"][0]["stages"]
    assert [stage["what"] for stage in stages] == [
        "group 0 pushes",
        "group 1 pushes",
        "group 0 pulls",
        "group 1 pulls",
    ]
    assert stages[-1]["end_s"] == record["round_s"]
    assert record["reduction"] == pytest.approx(1 / 3)


def test_links_keep_to_the_ports_in_every_pod_group(capsys: pytest.CaptureFixture[str]) -> None:
    record = answered(capsys, FOUR_PODS)
    used: Counter[tuple[int, int, int]] = Counter()
    for link in record["links"]:
        used[link["pod_group"], link["group"], link["from"]] += link["links"]
        used[link["pod_group"], link["group"], link["to"]] += link["links"]
    assert record["links"] and max(used.values()) <= 8


def test_the_draft_s_hill_climbing_on_the_golden_instance(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert answered(capsys, FOUR_PODS, "--reconfiguration-ms", "0")["round_s"] == pytest.approx(
        118.7998, abs=1e-3
    )


def test_the_exact_model_proves_the_golden_optimum(capsys: pytest.CaptureFixture[str]) -> None:
    record = answered(capsys, FOUR_PODS, "--algorithm", "milp", "--reconfiguration-ms", "0")
    assert record["round_s"] == pytest.approx(107.7832, abs=1e-3)
    assert record["status"] == "optimal" and record["gap"] < 1e-6


def test_a_reading_is_kept_with_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    record = answered(capsys, FOUR_PODS, "--eq3-literal", "--physical-ring", "--delay-inside")
    assert record["settings"]["reading"] == {
        "eq3_literal": True,
        "physical_ring": True,
        "delay_inside": True,
    }


def test_iterations_a_second_count_a_parameter_server_once_a_round(
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = answered(capsys, FOUR_PODS)
    jobs = {job.id: job for job in load_jobs(Path(FOUR_PODS).read_bytes(), FOUR_PODS).jobs}
    assert {one["id"] for one in record["jobs"]} == set(jobs)
    for one in record["jobs"]:
        each = 1 if jobs[one["id"]].collective == "parameter_server" else 2
        assert one["iterations_per_s"] == pytest.approx(each / record["round_s"])


def test_the_table_says_round_bound_and_what_everybody_waits_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["tdm", OVERLAP]) == 0
    said = capsys.readouterr().out
    assert (
        "non-TDM" in said
        and "saved: 33.3 %" in said
        and "every rule holds" in said
        and "stage 1" in said.lower()
    )


def test_the_whole_round_goes_into_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "overlap.round.json"
    assert main(["tdm", OVERLAP, "--output", str(out)]) == 0
    capsys.readouterr()
    record = json.loads(out.read_text())
    assert record["format"] == "topox-round" and record["non_tdm_s"] > record["round_s"]


def test_ports_too_few_is_an_answer_that_names_the_pod(capsys: pytest.CaptureFixture[str]) -> None:
    record = answered(capsys, FOUR_PODS, "--ports-per-pod", "2", exit_code=1)
    assert record["status"] == "infeasible" and record["round_s"] is None
    assert "pod" in record["message"] and "has 2" in record["message"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.jobs.json"], "nowhere.jobs.json"),
        ([], "JOBS"),
        ([OVERLAP, "--algorithm", "guess"], "--algorithm"),
        ([OVERLAP, "--time-limit", "0"], "--time-limit"),
        ([OVERLAP, "--port-gbps", "-1"], "port_gbps"),
        ([OVERLAP, "--output", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tdm", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert says in error and "\n" not in error


def test_every_algorithm_is_listed_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    listed = answered(capsys, "--list")["algorithms"]
    assert {"hill-climbing", "non-tdm", "milp", "best"} <= {one["name"] for one in listed}
    assert all(one["meaning"] for one in listed)


def test_a_set_up_is_written_as_the_generator_deploys_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "drawn.jobs.json"
    assert (
        main(
            [
                "tdm-jobs",
                "--jobs",
                "12",
                "--pod-groups",
                "2",
                "--seed",
                "3",
                "--output",
                str(out),
                "--json",
            ]
        )
        == 0
    )
    record = json.loads(capsys.readouterr().out)
    jobs = load_jobs(out.read_bytes(), out.name)
    assert jobs.digest == deploy(SetUp(jobs=12, pod_groups=2, seed=3)).digest == record["digest"]
    assert sum(record["collectives"].values()) == record["jobs"] == 12


def test_a_mix_of_one_collective_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rings.jobs.json"
    assert main(["tdm-jobs", "--jobs", "5", "--mix", "0,1,0", "--output", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collectives"]["ring_all_reduce"] == 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--jobs", "3"], "--output"),
        (["--jobs", "0", "--output", "x.jobs.json"], "jobs"),
        (["--jobs", "100000", "--output", "x.jobs.json"], "20,000"),
        (["--mix", "1,2", "--output", "x.jobs.json"], "--mix"),
        (["--degree-min", "9", "--degree-max", "2", "--output", "x.jobs.json"], "degree_min"),
    ],
)
def test_a_set_up_that_cannot_be_is_one_line(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tdm-jobs", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert says in error and "\n" not in error
    assert not (tmp_path / "x.jobs.json").exists()
