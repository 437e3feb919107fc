"""Commands that give the core's numbers: collective, demand, failures, strategy, tdm, bytes of a rail, study and study buy."""

import csv
import hashlib
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
from topox_core import __version__
from topox_core.cli.circuits.compare import failure_of
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import compare, default_options
from topox_core.fabrics.comparison.failures import FixedCircuits, after_failure
from topox_core.fabrics.run import JobRequest
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.library.run_library import RunLibrary
from topox_core.rails.advice import byte_classes
from topox_core.rails.presets import PRESETS
from topox_core.runs.run import finish
from topox_core.schedule.settings import Settings
from topox_core.studies.buying.offers import OFFERS, load_offers, offer_of
from topox_core.studies.buying.question import Assumptions, Question
from topox_core.studies.buying.run import buying_run
from topox_core.studies.buying.words import as_record
from topox_core.studies.ready import READY
from topox_core.studies.study import load_study
from topox_core.studies.subject import Subject, resolve
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs_file import load_jobs
from topox_core.topology.failures import Failure
from topox_core.workloads.samples import load_sample

RACE = f"failures {SAMPLE_FOLDER}/race.taskgraph.json {SAMPLE_FOLDER}/race.cluster.json"


def test_what_each_port_sends_in_a_collective_is_written(topox: Any, answered: Any) -> None:
    asked = "collective --delay-ms 2 --size-bytes 1e8"  # 8 ms on a port of 100 Gbit/s
    printed = answered(asked, "--output sent.csv --time-limit 0")
    assert printed["together_ms"] == pytest.approx(15)
    assert 12 <= printed["split_ms"] <= 14
    rows = csv.DictReader(Path("sent.csv").read_text().splitlines())
    ends = [float(row["end_ms"]) for row in rows if row["way"] == "split"]
    assert max(ends) == pytest.approx(printed["split_ms"])


def test_a_demand_matrix_is_planned_checked_and_set_beside_its_bound(
    answered: Any, folder: Path
) -> None:
    (folder / "d.csv").write_text("0,6,2,1\n3,0,5,0\n1,2,0,4\n5,0,1,0\n")
    printed = answered("demand d.csv --switches 2 --delay-ms 2 --output plan.json")
    assert (printed["checked"], printed["makespan_ms"], printed["bound_ms"]) == (True, 8, 7.5)
    assert json.loads((folder / "plan.json").read_text())["switches"] == printed["switches"]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("fibre:0-3", Failure.fibre(0, 3)),
        ("port:2-1", Failure.of_port(2, 1)),
        ("switch:1", Failure.of_switch(1)),
        ("server:4-9", Failure.of_server(4, 9)),
    ],
)
def test_every_kind_of_failure_is_read_and_nothing_else(text: str, failure: Failure) -> None:
    assert failure_of(text) == failure
    for wrong in (f"{text}-2", text.replace(":", ""), "cable:1", "port:a-b", "server:-1-2"):
        with pytest.raises(InputError, match="--fail: must be fibre:A-B"):
            failure_of(wrong)


def test_a_failure_costs_on_the_command_line_what_it_costs_in_the_core(
    topox: Any, answered: Any
) -> None:
    found = answered(RACE, "--fail server:1-2 --at-percent 30")["server:1-2"]
    graph, cluster = load_sample("race")
    settings, options = Settings.of(engine="list"), default_options(cluster)
    runs = compare(graph, cluster, settings, ("static", "scheduled"), options)
    job = JobRequest(graph, cluster, settings, options, runs)
    expected = after_failure(job, FixedCircuits.of(job), Failure.of_server(1, 2), 0.3)
    assert [one["after_ms"] for one in found] == [one.after_ms for one in expected]
    status, out, _ = topox(RACE, "--fail switch:0")
    assert status == 1 and "no switch would be left" in out


def test_bytes_of_a_rail_are_the_classes_of_the_formula(answered: Any) -> None:
    stages = answered("rails bytes llama3-8b-perlmutter")["stages"]
    for stage, classes in stages.items():
        expected = byte_classes(PRESETS["llama3-8b-perlmutter"], int(stage))
        assert [one["counted_bytes"] for one in classes] == [one.counted_bytes for one in expected]


def test_a_search_counts_every_strategy_that_it_tried_also_those_after_the_proposals(
    answered: Any,
) -> None:
    found = answered("strategy candle-16 --proposals 100")
    last = found["trace"][-1]["proposal"]
    assert found["proposals"] == 100 < last <= found["tried"]


def test_compare_says_the_same_as_strategy_of_the_files_it_writes(answered: Any) -> None:
    files = "best.taskgraph.json", "best.cluster.json"
    record = answered(
        "strategy dlrm-16 --servers 2 --ports-per-server 1 --port-gbps 1 --proposals 1",
        "--reconfiguration-ms 0.01 --fabric scheduled --beside static",
        f"--output best.strategy.json --graph {files[0]} --cluster {files[1]}",
    )
    assert record["iteration_ms"] < record["start_ms"]
    compared = answered("compare", *files, "--fabrics static,scheduled")["fabrics"]
    assert compared["scheduled"]["iteration_ms"] == record["iteration_ms"]
    best = next(row["fabrics"] for row in record["table"] if "scheduled" in row["found_for"])
    assert all(best[name]["iteration_ms"] == compared[name]["iteration_ms"] for name in best)
    written = json.loads(Path("best.strategy.json").read_text())["operators"]
    keys = ("operator", "partitions", "start")
    assert written == [{key: one[key] for key in keys} for one in record["operators"]]


# tdm and tdm-jobs

OVERLAP = f"tdm {SAMPLE_FOLDER / 'overlap.jobs.json'}"
FOUR_PODS = f"tdm {SAMPLE_FOLDER / 'four-pods.jobs.json'}"


def test_two_jobs_that_take_turns_need_40_s_in_place_of_60(answered: Any, folder: Path) -> None:
    record = answered(OVERLAP, "--reconfiguration-ms 0 --output overlap.round.json")
    assert (record["round_s"], record["non_tdm_s"]) == (pytest.approx(40.0), pytest.approx(60.0))
    assert record["reduction"] == pytest.approx(1 / 3)
    assert record["checked"] and record["violations"] == []
    assert record["cycles"][0]["stages"][-1]["end_s"] == record["round_s"]
    written = json.loads((folder / "overlap.round.json").read_text())
    assert (written["format"], written["round_s"]) == ("topox-round", record["round_s"])


def test_a_round_in_which_all_train_twice_says_what_an_iteration_takes(topox: Any) -> None:
    assert "iteration  20 s: a round has 2 of each job" in topox(OVERLAP)[1]
    assert "iteration" not in topox(FOUR_PODS)[1], "there a parameter server's job trains once"


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
    del again["manifest"], whole["manifest"]  # of other words
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
    del printed["manifest"]
    assert printed == json.loads(json.dumps(as_record(answer)))
    rows = csv.DictReader((folder / "a.csv").read_text().splitlines())
    assert [row["network"] for row in rows] == [row["network"] for row in printed["networks"]]
    study = load_study((folder / "a.study.json").read_bytes(), "a.study.json")
    assert len(study.points) == 3 + 3 * len(offers)
    assert load_offers((folder / "a.offers.json").read_bytes(), "a.offers.json") == offers
    # Every point is kept, and asked again nothing is computed.
    runs = RunLibrary.open(folder / "runs.sqlite").count
    before = runs()
    again = answered(asked)
    del again["manifest"]
    assert again == printed and runs() == before >= len(study.points)


def test_a_cluster_goes_to_infragraph_and_back_through_files(topox, folder: Path) -> None:
    status, out, _ = topox("cluster", "c.json", "--output", "c.yaml", "--json")
    assert status == 0 and json.loads(out)["cluster"]["ports_per_switch"] == 2
    status, out, _ = topox("cluster", "c.yaml", "--output", "d.json")
    assert status == 0 and "Port speed             100   Gbit/s" in out
    assert topox("schedule", "g.json", "c.yaml")[0] == 0
    for one, other in (("c.json", "d.json"), ("c.json", "c.yaml")):
        told = [json.loads(topox("cluster", file, "--json")[1]) for file in (one, other)]
        assert told[0]["cluster"] == told[1]["cluster"] and told[1]["notes"] == []
    status, _, error = topox("cluster", "c.yaml", "--output", "c.yaml")
    assert status == 2 and "would be overwritten" in error


def test_accuracy_says_kind_by_kind_how_far_off_and_what_is_not_modelled(topox) -> None:
    status, out, _ = topox("accuracy")
    assert status == 0 and "not modelled, packets:" in out
    assert any(
        line.split()[0] == "megatron" and "4.97%" in line for line in out.splitlines() if line
    )
    record = json.loads(topox("accuracy", "recordings", "--json")[1])
    assert record["comparisons"] == 252 and record["rows"] == []
    status, _, error = topox("accuracy", "megatrn")
    assert status == 2 and "megatron" in error


def test_a_study_that_fails_an_assertion_ends_with_3_and_a_line_for_each_point(
    topox, folder: Path
) -> None:
    record = {
        "format": "topox-study",
        "version": 1,
        "subject": {"kind": "files", "graph": "g.json", "cluster": "c.json"},
        "axes": [{"key": "cluster.port_gbps", "values": [100, 400]}],
        # 3 + 4 + 6 = 13 ms at 100 Gbit/s, 3 + 1 + 6 at 400.
        "assert": ["iteration_ms <= 12"],
    }
    (folder / "s.study.json").write_text(json.dumps(record))
    status, out, error = topox("study", "run", "s.study.json", "--workers", "1", "--json")
    line = "point 0: assert iteration_ms <= 12 failed: 13"
    assert status == 3 and line in error and json.loads(out)["failed_assertions"] == [line]
    assert topox("study", "show", "s.study.json")[0] == 3
    (folder / "s.study.json").write_text(json.dumps(record | {"assert": ["iteration_ms <= 13"]}))
    assert topox("study", "show", "s.study.json")[0] == 0


def test_every_json_answer_says_what_made_it_of_what_and_how_sure_it_is(
    topox, folder: Path
) -> None:
    asked = ("schedule", "g.json", "c.json", "--engine", "list", "--seed", "3")
    record = json.loads(topox(*asked, "--output", "r.json", "--json")[1])
    made = record["manifest"]
    assert made["program"].startswith(f"topox-workbench {__version__}+")
    digest = hashlib.sha256((folder / "g.json").read_bytes()).hexdigest()
    assert made["inputs"]["g.json"] == digest and set(made["inputs"]) == {"g.json", "c.json"}
    assert made["seed"] == 3 and made["effort"] == "first" and made["command"] == "schedule"
    assert made["validity"]["checked"] and "any schedule" in made["validity"]["bound_for"]
    (folder / "f.html").write_text("an older figure")
    again = json.loads(topox(*asked, "--output", "r.json", "--figure", "f.html", "--json")[1])
    written = json.loads((folder / "r.json").read_text())
    for one in (again, written):
        assert one["manifest"]["inputs"] == made["inputs"]
        assert one["manifest"]["validity"] == made["validity"]
    assert "checked" not in written
    (folder / "m.csv").write_text("0,2\n1,0\n")
    planned = json.loads(topox("demand", "m.csv", "--json")[1])
    assert planned["manifest"]["validity"]["bound_for"] == planned["bound_for"]
    assert "task graph" not in planned["bound_for"]
    assert topox("check", "g.json", "c.json", "r.json")[0] == 0
    shown = json.loads(topox("iteration", "show", "llama3-8b", "--json")[1])["manifest"]
    assert shown["figures"]["h100.tflops"] == "published" and shown["command"] == "iteration show"
    priced = json.loads(topox("rails", "cost", "--gpus", "64", "--json")[1])["manifest"]
    assert set(priced["figures"].values()) == {"published", "vendor list", "assumed"}


RECORDED = [str(SAMPLE_FOLDER / f"recorded-run_rank{rank}.json.gz") for rank in range(4)]


@pytest.mark.parametrize(
    ("words", "inputs", "validity"),
    [
        ("schedule g.json c.json --engine list --output r.json", ["g.json", "c.json"], True),
        (f"{OVERLAP} --output r.json", [OVERLAP.partition(" ")[2]], True),
        ("demand m.csv --output r.json", ["m.csv"], True),
        ("lab key six-tasks --course c --students s.csv --output r.json", ["s.csv"], False),
        (f"trace import {' '.join(RECORDED)} --output g2.json --report r.json", RECORDED, False),
    ],
)
def test_every_written_result_says_what_made_it_of_what(
    topox, folder: Path, words: str, inputs: list[str], validity: bool
) -> None:
    (folder / "m.csv").write_text("0,2\n1,0\n")
    (folder / "s.csv").write_text("student\nada\n")
    (folder / "r.json").write_text("an older result")
    printed = json.loads(topox(words, "--json")[1])["manifest"]
    made = json.loads((folder / "r.json").read_text())["manifest"]
    files = {one: hashlib.sha256(Path(one).read_bytes()).hexdigest() for one in inputs}
    assert made["inputs"] == files and made == printed
    assert made["validity"].get("checked", False) == validity


def test_a_folder_is_an_input_whose_digest_is_of_all_its_files(topox, folder: Path) -> None:
    (folder / "class").mkdir()

    def of_folder(name: str) -> str:
        (folder / "class" / name).write_text("{}")
        return json.loads(topox("lab board class --lab six-tasks --json")[1])["manifest"]["inputs"][
            "class"
        ]

    one, two = of_folder("a.entry.json"), of_folder("b.entry.json")
    assert one != two == of_folder("b.entry.json")


def test_a_job_file_is_scheduled_on_the_cluster_it_suggests_and_held_to_what_it_asserts(
    topox, folder: Path
) -> None:
    topox("iteration", "show", "llama3-8b", "--output", "l.job.json")
    record = json.loads((folder / "l.job.json").read_text())
    asked = ("schedule", "l.job.json", "--engine", "list", "--json")
    whole = json.loads(topox(*asked)[1])
    for rows, status in ((["gap <= 0.5"], 0), (["iteration_ms <= 1", "pays_up_to_ms >= 1"], 3)):
        (folder / "l.job.json").write_text(json.dumps(record | {"assert": rows}))
        got, out, error = topox(*asked)
        assert got == status and json.loads(out)["makespan_ms"] == whole["makespan_ms"]
    assert "assert iteration_ms <= 1 failed: " in error
    assert "assert pays_up_to_ms >= 1: not judged here" in error
    (folder / "l.job.json").write_text(json.dumps(record | {"assert": ["iteration <= 1"]}))
    status, _, error = topox(*asked)
    assert (
        status == 2 and "field assert[0]: unknown measure (did you mean 'iteration_ms'?)" in error
    )
    status, _, error = topox("schedule", "g.json")
    assert status == 2 and "CLUSTER: must be given" in error
