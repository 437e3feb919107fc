"""What a script can count on: one JSON object, one clear line for a mistake, and an exit status that tells which."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import long_after
from topox_core.cli.main import main, parser
from topox_core.cli.options import settings
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import Lowering
from topox_core.schedule.settings import ENGINES, FREE, Settings
from topox_core.workloads.catalogue import WORKLOADS

ROOT = Path(__file__).resolve().parents[3]
# 50 MB over 100 Gbit/s last 4 ms: 3 + 4 + 6 = 13 ms, and nothing can be shorter than this chain.
GRAPH: dict[str, Any] = {
    "format": "topox-taskgraph",
    "version": 1,
    "name": "chain",
    "tasks": [
        {"id": "f0", "kind": "forward", "server": 0, "duration_ms": 3.0, "dependencies": []},
        {
            "id": "act",
            "kind": "communication",
            "source": 0,
            "destination": 1,
            "size_bytes": 50_000_000,
            "dependencies": ["f0"],
        },
        {"id": "b1", "kind": "backward", "server": 1, "duration_ms": 6.0, "dependencies": ["act"]},
    ],
}
CLUSTER: dict[str, Any] = {
    "format": "topox-cluster",
    "version": 1,
    "servers": 2,
    "ports_per_server": 1,
    "switches": 1,
    "ports_per_switch": 2,
    "port_gbps": 100.0,
}
# Four jobs of one resource with two units: 2 and 3 (two units each) cannot overlap, so 3 + 4 = 7
# periods.
PSPLIB = """jobs (incl. supersource/sink ):  4
RESOURCES
  - renewable                 :  1   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           4
   3        1          1           4
   4        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1
------------------------------------------------------------------------
  1      1     0       0
  2      1     3       2
  3      1     4       2
  4      1     0       0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1
   {units}
************************************************************************
"""

Run = tuple[int, str, str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "g.json").write_text(json.dumps(GRAPH))
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "p.sm").write_text(PSPLIB.format(units=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> Run:
        status = main(list(arguments))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def in_a_process(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "topox_core", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


# schedule


def test_schedule_prints_one_object_without_the_long_lists(run: Any) -> None:
    status, out, _ = run("schedule", "g.json", "c.json", "--json")
    record = json.loads(out)
    assert status == 0
    assert out.count("\n") == 1
    assert (record["status"], record["makespan_ms"], record["bound_ms"], record["gap"]) == (
        "optimal",
        13.0,
        13.0,
        0.0,
    )
    assert record["checked"] is True
    assert record["bound_by"]
    assert not {"tasks", "transfers", "circuits"} & set(record)


def test_progress_goes_to_standard_error(run: Any) -> None:
    _, out, err = run("schedule", "g.json", "c.json", "--json")
    assert "makespan 13 ms" in err
    assert len(out.splitlines()) == 1


def test_the_table_is_for_people(run: Any) -> None:
    status, out, _ = run("schedule", "g.json", "c.json")
    assert status == 0
    assert "13 ms" in out
    assert "optimal" in out
    assert "every constraint holds" in out
    assert len(out.splitlines()) <= 10


def test_the_output_has_everything_and_passes_the_checker(run: Any, folder: Path) -> None:
    status, out, _ = run("schedule", "g.json", "c.json", "--json", "--output", "r.schedule.json")
    record = json.loads((folder / "r.schedule.json").read_text())
    assert status == 0
    assert "tasks" not in json.loads(out)
    assert {task["id"]: task["start_ms"] for task in record["tasks"]} == {
        "f0": 0.0,
        "act": 3.0,
        "b1": 7.0,
    }
    assert [(one["source"], one["destination"], one["task"]) for one in record["circuits"]] == [
        (0, 1, "act")
    ]
    status, out, _ = run("check", "g.json", "c.json", "r.schedule.json", "--json")
    verdict = json.loads(out)
    assert status == 0
    assert verdict["ok"] is True
    assert verdict["violated"] == 0
    assert {"5", "7", "9", "10"} <= {one["equation"] for one in verdict["constraints"]}


def test_a_gzipped_output_can_be_checked_as_it_is(run: Any, folder: Path) -> None:
    assert run("schedule", "g.json", "c.json", "--output", "r.schedule.json.gz")[0] == 0
    assert (
        json.loads(gzip.decompress((folder / "r.schedule.json.gz").read_bytes()))["makespan_ms"]
        == 13.0
    )
    assert run("check", "g.json", "c.json", "r.schedule.json.gz")[0] == 0


def test_a_cluster_key_on_the_command_line_wins_and_is_kept_in_the_result(
    run: Any, folder: Path
) -> None:
    # Half the speed, twice the time: 3 + 8 + 6.
    _, out, _ = run(
        "schedule", "g.json", "c.json", "--json", "--port-gbps", "50", "--output", "r.json"
    )
    assert json.loads(out)["makespan_ms"] == 17.0
    assert json.loads((folder / "r.json").read_text())["settings"]["cluster"] == {"port_gbps": 50.0}
    status, _, err = run("check", "g.json", "c.json", "r.json")
    assert status == 0
    assert "made with port_gbps 50.0, in place of the cluster file's 100.0" in err
    assert run("check", "g.json", "c.json", "r.json", "--port-gbps", "25")[0] == 1


def test_a_result_is_checked_against_the_cluster_file_at_hand(run: Any, folder: Path) -> None:
    run("schedule", "g.json", "c.json", "--output", "r.json")
    (folder / "slow.json").write_text(json.dumps({**CLUSTER, "port_gbps": 50.0}))
    status, out, _ = run("check", "g.json", "slow.json", "r.json", "--json")
    assert status == 1
    assert "p_j" in {one["equation"] for one in json.loads(out)["constraints"] if not one["ok"]}


def test_every_engine_finds_the_optimum_of_the_chain(run: Any) -> None:
    for engine in ENGINES:
        status, out, _ = run(
            "schedule", "g.json", "c.json", "--json", "--engine", engine, "--model", "paper"
        )
        assert (engine, status, json.loads(out)["makespan_ms"]) == (engine, 0, 13.0)


def test_every_option_reaches_the_settings() -> None:
    options = parser().parse_args(
        [
            "schedule",
            "g",
            "c",
            "--model",
            "paper",
            "--engine",
            "highs",
            "--circuits",
            "per-slot",
            "--share-circuits",
            "no",
            "--exclusive-devices",
            "yes",
            "--any-port",
            "no",
            "--tick-ms",
            "0.5",
            "--rings",
            "2",
            "--strides",
            "1,3",
            "--all-reduce-on-network",
            "no",
            "--steps",
            "stepwise",
            "--broadcast",
            "tree",
            "--time-limit",
            "7",
            "--gap",
            "0.02",
            "--seed",
            "5",
            "--threads",
            "2",
        ]
    )
    assert settings(options) == Settings(
        model="paper",
        circuits="per-slot",
        share_circuits=False,
        exclusive_devices=True,
        any_port=False,
        tick=0.5,
        lowering=Lowering(
            rings=2, strides=(1, 3), all_reduce_on_network=False, steps="stepwise", broadcast="tree"
        ),
        engine="highs",
        time_limit_s=7.0,
        gap=0.02,
        seed=5,
        threads=2,
    )


def test_options_not_given_leave_the_model_s_own_choices_and_lowering_free() -> None:
    for model, free in (("physical", FREE), ("paper", ())):
        options = parser().parse_args(["schedule", "g", "c", "--model", model])
        assert settings(options) == Settings.of(model, free=free)


@pytest.mark.parametrize(
    ("given", "free", "lowering"),
    [
        ("--rings 2", ("algorithm",), Lowering(rings=2)),
        ("--rings auto --strides 1,3", ("rings", "algorithm"), Lowering(strides=(1, 3))),
        ("--strides 1,3", ("algorithm",), Lowering(strides=(1, 3))),
        ("--algorithm default", ("rings",), Lowering()),
        (
            "--algorithm all_reduce=two_level(4),broadcast=tree",
            ("rings", "algorithm"),
            Lowering(algorithm={"all_reduce": "two_level(4)", "broadcast": "tree"}),
        ),
        (
            "--algorithm all_reduce=tree,default",
            ("rings",),
            Lowering(algorithm={"all_reduce": "tree"}),
        ),
        (
            "--broadcast tree",
            ("rings", "algorithm"),
            Lowering(broadcast="tree", algorithm={"broadcast": "default"}),
        ),
        ("--model paper --rings auto", ("rings",), Lowering()),
    ],
)
def test_what_an_option_names_is_fixed_and_the_rest_is_free(
    given: str, free: tuple[str, ...], lowering: Lowering
) -> None:
    read = settings(parser().parse_args(["schedule", "g", "c", *given.split()]))
    assert (read.free, read.lowering) == (free, lowering)


@pytest.mark.parametrize("word", ["tree", "all_reduce=", "auto,default", "=ring"])
def test_a_word_that_names_no_algorithm_is_refused(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["schedule", "g", "c", "--algorithm", word])
    assert "must be auto, default, or KIND=NAME" in capsys.readouterr().err


def test_every_cluster_key_has_an_option() -> None:
    keys = [field.name for field in fields(Cluster) if field.name not in ("name", "duplex")]
    for key in keys:
        options = parser().parse_args(["schedule", "g", "c", f"--{key.replace('_', '-')}", "7"])
        assert vars(options)[f"cluster_{key}"] == 7
    assert (
        parser().parse_args(["check", "g", "c", "s", "--duplex", "half"]).cluster_duplex == "half"
    )


def test_help_names_every_engine_and_loads_nothing_heavy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["schedule", "--help"]) == 0
    assert "|".join(ENGINES) in capsys.readouterr().out
    program = "import sys; from topox_core.cli.main import parser; parser().format_help(); print('numpy' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "False"


@pytest.mark.parametrize(
    ("asked", "whole_group"),
    long_after(1, [(signal.SIGTERM, True), (signal.SIGINT, False), (signal.SIGTERM, False)]),
)
@pytest.mark.long
def test_a_stop_keeps_the_best_schedule_so_far(
    run: Any, folder: Path, asked: signal.Signals, whole_group: bool
) -> None:
    slow = ("--set", "nic_gbps=100", "--set", "skew=0.5")
    assert run("workload", "moe", *slow, "--output", "moe.json")[0] == 0
    process = in_a_process(
        "schedule",
        "moe.json",
        "moe.cluster.json",
        "--json",
        "--engine",
        "highs",
        "--time-limit",
        "600",
        "--output",
        "r.json",
        cwd=folder,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "makespan" in line:
            if whole_group:  # as a batch system does: to the engine's process as well
                os.killpg(process.pid, asked)
            else:
                process.send_signal(asked)
            break
    out, err = process.communicate(timeout=300)
    record = json.loads(out)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "failed" not in err
    assert record["stopped_by"] == "cancelled"
    assert record["makespan_ms"] >= record["bound_ms"] > 0
    assert record["checked"] is True
    assert json.loads((folder / "r.json").read_text())["makespan_ms"] == record["makespan_ms"]


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    process = in_a_process("workload", "--list", "--json", cwd=folder)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


# check


@pytest.mark.parametrize(
    ("broken", "equation"), [({"b1": 6.0}, "5"), ({"act": 2.0}, "5"), ({"act": 3.5}, "4")]
)
def test_check_names_the_violated_equation(
    run: Any, folder: Path, broken: dict[str, float], equation: str
) -> None:
    run("schedule", "g.json", "c.json", "--clock", "slots", "--output", "r.json")
    record = json.loads((folder / "r.json").read_text())
    for task in record["tasks"]:
        shift = broken.get(task["id"], task["start_ms"]) - task["start_ms"]
        task["start_ms"] += shift
        task["end_ms"] += shift
    (folder / "r.json").write_text(json.dumps(record))
    status, out, _ = run("check", "g.json", "c.json", "r.json", "--json")
    verdict = json.loads(out)
    assert status == 1
    assert verdict["ok"] is False
    assert equation in {one["equation"] for one in verdict["constraints"] if not one["ok"]}
    status, out, _ = run("check", "g.json", "c.json", "r.json")
    assert status == 1
    assert f"eq. {equation}" in out
    assert "NOT VALID" in out


# workload


@pytest.mark.parametrize("name", ["dlrm.taskgraph.json", "dlrm.csv", "dlrm.taskgraph.json.gz"])
def test_workload_writes_a_graph_and_the_cluster_beside_it(
    run: Any, folder: Path, name: str
) -> None:
    status, out, _ = run("workload", "dlrm", "--output", name, "--json")
    record = json.loads(out)
    assert status == 0
    graph = load_graph((folder / name).read_bytes(), name)
    cluster = load_cluster((folder / "dlrm.cluster.json").read_bytes(), "dlrm.cluster.json")
    assert record["output"] == name
    assert record["cluster"] == "dlrm.cluster.json"
    assert record["tasks"] == len(graph.tasks) == sum(record["kinds"].values())
    assert record["digest"] == graph.digest
    assert graph.servers <= cluster.servers


def test_workload_sets_parameters(run: Any, folder: Path) -> None:
    assert run("workload", "dlrm", "--set", "port_gbps=25", "--output", "a.json")[0] == 0
    assert load_cluster((folder / "a.cluster.json").read_bytes(), "").port_gbps == 25.0


def test_workload_lists_what_there_is(run: Any) -> None:
    status, out, _ = run("workload", "--list", "--json")
    assert status == 0
    assert [one["name"] for one in json.loads(out)["workloads"]] == list(WORKLOADS)
    status, out, _ = run("workload", "dlrm", "--list")
    assert status == 0
    assert all(parameter.key in out for parameter in WORKLOADS["dlrm"].parameters)


# rcpsp


@pytest.mark.parametrize("engine", ["auto", "highs", "cpsat"])
def test_rcpsp_proves_a_small_optimum(run: Any, engine: str) -> None:
    status, out, _ = run("rcpsp", "p.sm", "--engine", engine, "--json")
    record = json.loads(out)
    assert status == 0
    assert (record["makespan"], record["bound"], record["status"]) == (7, 7, "optimal")


def test_rcpsp_says_no_where_a_job_needs_more_than_there_is(run: Any, folder: Path) -> None:
    (folder / "p.sm").write_text(PSPLIB.format(units=1))
    status, out, _ = run("rcpsp", "p.sm", "--json")
    record = json.loads(out)
    assert (status, record["status"], record["makespan"]) == (1, "infeasible", None)


@pytest.mark.parametrize(
    ("name", "optimum"), long_after(2, [("j301_1", 43), ("j302_1", 38), ("j305_1", 53)])
)
def test_rcpsp_proves_published_optima(
    run: Any, real_inputs: Path, name: str, optimum: int
) -> None:
    status, out, _ = run("rcpsp", str(next((real_inputs / "psplib").rglob(f"{name}.sm"))), "--json")
    record = json.loads(out)
    assert status == 0
    assert (record["makespan"], record["status"]) == (optimum, "optimal")


# mistakes

BAD: list[tuple[list[str], list[str]]] = [
    ([], ["COMMAND"]),
    (["sched", "g.json", "c.json"], ["sched"]),
    (["schedule", "g.json"], ["CLUSTER"]),
    (["schedule", "none.json", "c.json"], ["none.json", "no such file"]),
    (["schedule", "g.json", "none.json"], ["none.json", "no such file"]),
    (["schedule", ".", "c.json"], [".: ", "directory"]),
    (
        ["schedule", "g.json", "c.json", "--engine", "cplex"],
        ["engine", "auto, list, highs, cpsat, printed", "cplex"],
    ),
    (["schedule", "g.json", "c.json", "--model", "real"], ["--model", "physical", "real"]),
    (
        ["schedule", "g.json", "c.json", "--port-gbps", "fast"],
        ["--port-gbps", "must be a number", "fast"],
    ),
    (
        ["schedule", "g.json", "c.json", "--port-gbps", "nan"],
        ["command line", "port_gbps", "finite"],
    ),
    (
        ["schedule", "g.json", "c.json", "--port-gbps", "-1"],
        ["command line", "port_gbps", "greater than 0"],
    ),
    (["schedule", "g.json", "c.json", "--servers", "1.5"], ["--servers", "whole number"]),
    (["schedule", "g.json", "c.json", "--servers", "1"], ["g.json", "task act", "server 1"]),
    (["schedule", "g.json", "c.json", "--duplex", "both"], ["duplex", "'full' or 'half'"]),
    (
        ["schedule", "g.json", "c.json", "--tick-ms", "soon"],
        ["--tick-ms", "auto, slot or a length in ms"],
    ),
    (["schedule", "g.json", "c.json", "--tick-ms", "-1"], ["tick", "greater than 0"]),
    (["schedule", "g.json", "c.json", "--rings", "0"], ["--rings", "at least 1"]),
    (["schedule", "g.json", "c.json", "--strides", "1,1"], ["--strides", "different"]),
    (
        ["schedule", "g.json", "c.json", "--all-reduce-on-network", "maybe"],
        ["--all-reduce-on-network", "yes or no"],
    ),
    (["schedule", "g.json", "c.json", "--time-limit", "-3"], ["time_limit_s", "from 0 to"]),
    (
        ["schedule", "g.json", "c.json", "--circuits", "per-slot", "--reconfiguration-ms", "2"],
        ["reconfiguration_ms"],
    ),
    (
        ["schedule", "g.json", "c.json", "--output", "nowhere/r.json"],
        ["nowhere/r.json", "no folder nowhere"],
    ),
    (["schedule", "g.json", "c.json", "--output", "."], [".: ", "folder"]),
    (["schedule", "g.json", "c.json", "--output", "g.json"], ["g.json", "overwritten"]),
    (["schedule", "g.json", "c.json", "--colour", "red"], ["--colour"]),
    (["schedule", "c.json", "c.json"], ["c.json", "field format", "topox-taskgraph"]),
    (["schedule", "cycle.json", "c.json"], ["cycle.json", "a", "b"]),
    (
        ["schedule", "negative.json", "c.json"],
        ["negative.json", "task f0", "field duration_ms", "-1"],
    ),
    (["schedule", "latin.json", "c.json"], ["latin.json", "UTF-8"]),
    (["schedule", "deep.json", "c.json"], ["deep.json", "nested too deeply"]),
    (["schedule", "empty.json", "c.json"], ["empty.json", "is empty"]),
    (["check", "g.json", "c.json", "g.json"], ["g.json", "field format", "topox-schedule"]),
    (["check", "g.json", "c.json", "none.json"], ["none.json", "no such file"]),
    (["workload", "--output", "w.json"], ["NAME"]),
    (["workload", "dlrm"], ["--output"]),
    (["workload", "skynet", "--output", "w.json"], ["skynet", "dlrm"]),
    (["workload", "dlrm", "--set", "tables", "--output", "w.json"], ["--set", "KEY=VALUE"]),
    (["workload", "dlrm", "--set", "wheels=4", "--output", "w.json"], ["dlrm", "wheels"]),
    (
        ["workload", "dlrm", "--set", "configuration=9", "--output", "w.json"],
        ["dlrm", "configuration", "9"],
    ),
    (["workload", "dlrm", "--output", "w.xls"], ["w.xls", ".json or .csv"]),
    (["workload", "dlrm", "--output", "nowhere/w.json"], ["nowhere/w.json", "no folder"]),
    (["rcpsp", "none.sm"], ["none.sm", "no such file"]),
    (["rcpsp", "g.json"], ["g.json"]),
    (["rcpsp", "p.sm", "--engine", "printed"], ["--engine", "printed"]),
]


@pytest.fixture
def bad_files(folder: Path) -> None:
    first, *others = GRAPH["tasks"]
    knot = [
        {**first, "id": "a", "dependencies": ["b"]},
        {**first, "id": "b", "dependencies": ["a"]},
    ]
    (folder / "cycle.json").write_text(json.dumps({**GRAPH, "tasks": knot}))
    (folder / "negative.json").write_text(
        json.dumps({**GRAPH, "tasks": [{**first, "duration_ms": -1}, *others]})
    )
    (folder / "latin.json").write_bytes('{"name": "Zürich"}'.encode("latin-1"))
    (folder / "deep.json").write_text("[" * 10_000 + "]" * 10_000)
    (folder / "empty.json").write_text("")


@pytest.mark.usefixtures("bad_files")
@pytest.mark.parametrize(
    ("arguments", "told"), BAD, ids=[" ".join(arguments) or "nothing" for arguments, _ in BAD]
)
def test_a_mistake_gets_one_clear_line(run: Any, arguments: list[str], told: list[str]) -> None:
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("topox: error: ")
    assert err.count("\n") == 1
    assert [word for word in told if word.lower() not in err.lower()] == []


def test_an_output_is_refused_before_the_solve(run: Any, folder: Path) -> None:
    _, _, err = run("schedule", "g.json", "c.json", "--output", "nowhere/r.json")
    assert "makespan" not in err
    assert not (folder / "nowhere").exists()


def test_a_full_disk_loses_no_result(
    run: Any,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(Path, "cwd", lambda: elsewhere)
    (folder / "r.json").write_text("old")
    status, out, err = run("schedule", "g.json", "c.json", "--json", "--output", "r.json")
    assert status == 2
    assert json.loads(out)["makespan_ms"] == 13.0
    told = "topox: error: r.json: cannot be written: no space left on device; the result is in "
    assert err.splitlines()[-1].startswith(told)
    (kept,) = elsewhere.iterdir()
    assert err.splitlines()[-1].endswith(str(kept))
    assert json.loads(kept.read_text())["makespan_ms"] == 13.0
    assert (folder / "r.json").read_text() == "old"


def test_a_file_that_is_replaced_is_named(run: Any, folder: Path) -> None:
    arguments = ("schedule", "g.json", "c.json", "--output", "r.json")
    assert "replaced" not in run(*arguments)[2]
    status, _, err = run(*arguments)
    assert status == 0
    assert err.splitlines()[-1] == "replaced r.json"


def test_a_name_that_no_folder_takes_is_told_in_one_line(run: Any) -> None:
    for name in ("x" * 300, "x\0y"):
        status, out, err = run("schedule", "g.json", "c.json", "--output", name)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "cannot be written" in err
    assert run("schedule", "g.json", "c.json", "--output", "y" * 255)[0] == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("to", "told"),
    long_after(
        1,
        [
            (">/dev/full", "standard output: cannot be written: no space left on device"),
            (">&-", "standard output: is closed"),
        ],
    ),
)
@pytest.mark.long
def test_standard_output_that_takes_nothing_is_no_answer_no(
    folder: Path, to: str, told: str
) -> None:
    command = f"{sys.executable} -m topox_core schedule g.json c.json --output r.json {to}"
    ended = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == f"topox: error: {told}"
    assert "Traceback" not in ended.stderr
    assert json.loads((folder / "r.json").read_text())["makespan_ms"] == 13.0


def test_an_output_behind_a_link_is_written_there(run: Any, folder: Path) -> None:
    (folder / "real.json").write_text("old")
    (folder / "link.json").symlink_to("real.json")
    assert run("schedule", "g.json", "c.json", "--output", "link.json")[0] == 0
    assert (folder / "link.json").is_symlink()
    assert json.loads((folder / "real.json").read_text())["makespan_ms"] == 13.0
    assert not list(folder.glob(".*.part"))


def test_a_failed_command_leaves_no_file_behind(run: Any, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    assert run("workload", "dlrm", "--set", "configuration=9", "--output", "w.json")[0] == 2
    assert run("schedule", "c.json", "c.json", "--output", "r.json")[0] == 2
    assert sorted(path.name for path in folder.iterdir()) == before
