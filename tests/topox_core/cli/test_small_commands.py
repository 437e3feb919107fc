"""``collective``, ``demand``, ``failures``, ``strategy`` and the bytes of a rail: the numbers of the core."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from topox_core.cli.failures import failure_of
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare, default_options
from topox_core.fabrics.failures import FixedCircuits, after_failure
from topox_core.fabrics.run import JobRequest
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.rails.byte_classes import byte_classes
from topox_core.rails.presets import PRESETS
from topox_core.schedule.settings import Settings
from topox_core.topology.failures import Failure
from topox_core.workloads.samples import load_sample

RACE = f"failures {SAMPLE_FOLDER}/race.taskgraph.json {SAMPLE_FOLDER}/race.cluster.json"


def test_what_each_port_sends_in_a_collective_is_written(topox: Any, answered: Any) -> None:
    asked = "collective --delay-ms 2 --size-bytes 1e8"  # 8 ms on a port of 100 Gbit/s
    printed = answered(asked, "--output sent.csv --time-limit 0")
    assert printed["together_ms"] == pytest.approx(15)
    assert 12 <= printed["split_ms"] <= 14
    lines = Path("sent.csv").read_text().splitlines()
    rows = [row for row in csv.DictReader(lines) if row["way"] == "split"]
    assert max(float(row["end_ms"]) for row in rows) == pytest.approx(printed["split_ms"])
    assert all(sum(share) == pytest.approx(1) for share in printed["shares"])


def test_a_demand_matrix_is_planned_checked_and_set_beside_its_bound(
    answered: Any, folder: Path
) -> None:
    (folder / "d.csv").write_text("0,6,2,1\n3,0,5,0\n1,2,0,4\n5,0,1,0\n")
    printed = answered("demand d.csv --switches 2 --delay-ms 2 --output plan.json")
    assert printed["checked"]
    assert (printed["makespan_ms"], printed["bound_ms"]) == (8, 7.5)
    assert printed["makespan_ms"] <= min(printed["baselines_ms"].values())
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
    assert [(one["label"], one["after_ms"]) for one in found] == [
        (one.label, one.after_ms) for one in expected
    ]
    status, out, _ = topox(RACE, "--fail switch:0")
    assert status == 1 and "no switch would be left" in out


def test_bytes_of_a_rail_are_the_classes_of_the_formula(answered: Any) -> None:
    stages = answered("rails bytes llama3-8b-perlmutter")["stages"]
    preset = PRESETS["llama3-8b-perlmutter"]
    for stage in range(preset.pipeline):
        expected = [one.counted_bytes for one in byte_classes(preset, stage)]
        assert [one["counted_bytes"] for one in stages[str(stage)]] == expected


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
    best = next(row for row in record["table"] if "scheduled" in row["found_for"])
    for name, one in best["fabrics"].items():
        assert one["iteration_ms"] == compared[name]["iteration_ms"]
    written = json.loads(Path("best.strategy.json").read_text())["operators"]
    keys = ("operator", "partitions", "start")
    assert written == [{key: one[key] for key in keys} for one in record["operators"]]
