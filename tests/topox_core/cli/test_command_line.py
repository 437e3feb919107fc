"""What a script can count on: one JSON object, one line for a mistake, an exit status; and the dashboard's port."""

import errno
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.conftest import long_after
from tests.patience import PATIENCE_S, wait_until
from tests.real_inputs import ROOT
from tests.refusal import refusal
from tests.topox_core.cli.conftest import parser
from topox_core.cli import dashboard
from topox_core.cli.circuits import compare
from topox_core.cli.shared.command import ctrl_c_stops
from topox_core.cli.shared.settings import settings
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import load_graph
from topox_core.model.lowering_choices import Lowering
from topox_core.schedule.settings import FREE, Settings

SOLVE = "schedule g.json c.json"


def in_a_process(command: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "topox_core", *command.split()],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


# schedule


def test_a_schedule_is_one_object_and_its_file_has_everything_and_passes_the_checker(
    answered: Any, topox: Any, folder: Path
) -> None:
    printed = answered(f"{SOLVE} --output r.json.gz")
    found = [printed[key] for key in ("status", "makespan_ms", "bound_ms", "gap", "checked")]
    assert found == ["optimal", 13.0, 13.0, 0.0, True]
    record = json.loads(gzip.decompress((folder / "r.json.gz").read_bytes()))
    starts = {task["id"]: task["start_ms"] for task in record["tasks"]}
    assert starts == {"f0": 0.0, "act": 3.0, "b1": 7.0}
    verdict = answered("check g.json c.json r.json.gz")
    assert (verdict["ok"], verdict["violated"]) == (True, 0)
    assert {"5", "7", "9", "10"} <= {one["equation"] for one in verdict["constraints"]}
    status, out, err = topox(f"{SOLVE} --output r.json.gz")
    assert status == 0 and "13 ms" in out and err.splitlines()[-1] == "replaced r.json.gz"


def test_a_cluster_key_on_the_command_line_wins_and_is_kept_in_the_result(
    answered: Any, topox: Any, folder: Path
) -> None:
    # Half the speed, twice the time: 3 + 8 + 6.
    assert answered(f"{SOLVE} --port-gbps 50 --output r.json")["makespan_ms"] == 17.0
    assert json.loads((folder / "r.json").read_text())["settings"]["cluster"] == {"port_gbps": 50.0}
    err = topox("check g.json c.json r.json")[2]
    assert "made with port_gbps 50.0, in place of the cluster file's 100.0" in err


def test_every_option_reaches_the_settings() -> None:
    words = (
        f"{SOLVE} --model paper --engine highs --circuits per-slot --share-circuits no "
        "--exclusive-devices yes --any-port no --tick-ms 0.5 --rings 2 --strides 1,3 "
        "--all-reduce-on-network no --steps stepwise --broadcast tree --time-limit 7 --gap 0.02 "
        "--seed 5 --threads 2"
    )
    assert settings(parser("schedule").parse_args(words.split())) == Settings(
        model="paper",
        circuits="per-slot",
        iteration="first",
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


@pytest.mark.parametrize(
    ("given", "free", "lowering"),
    [
        ("", FREE, Lowering()),
        ("--model paper", (), Lowering()),
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
    read = settings(parser("schedule").parse_args([*SOLVE.split(), *given.split()]))
    assert (read.free, read.lowering) == (free, lowering)


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from topox_core.cli.main import parser; parser().format_help(); "
        "sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("asked", "whole_group"),
    [(signal.SIGTERM, True), (signal.SIGINT, False), (signal.SIGTERM, False)],
)
@pytest.mark.long
def test_a_stop_keeps_the_best_schedule_so_far(
    topox: Any, folder: Path, asked: signal.Signals, whole_group: bool
) -> None:
    assert topox("workload moe --set nic_gbps=100 --set skew=0.5 --output moe.json")[0] == 0
    process = in_a_process(
        "schedule moe.json moe.cluster.json --json --engine highs --time-limit 600 --output r.json",
        folder,
    )
    next(line for line in process.stderr if "makespan" in line)
    # A batch system sends it to the engine's process as well.
    (os.killpg if whole_group else os.kill)(process.pid, asked)
    out, err = process.communicate(timeout=300)
    record = json.loads(out)
    assert process.returncode == 0 and "Traceback" not in err and "failed" not in err, err
    assert (record["stopped_by"], record["checked"]) == ("cancelled", True)
    assert record["makespan_ms"] >= record["bound_ms"] > 0
    assert json.loads((folder / "r.json").read_text())["makespan_ms"] == record["makespan_ms"]


@pytest.fixture
def unharmed() -> Iterator[Callable[..., None]]:
    """A handler of signals that does nothing."""
    ignored = Mock()
    before = {one: signal.signal(one, ignored) for one in (signal.SIGINT, signal.SIGTERM)}
    yield ignored
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_asks_to_stop_and_a_second_ends_the_command(
    unharmed: Callable[..., None], asked: signal.Signals
) -> None:
    with ctrl_c_stops() as stopped:
        assert not stopped()
        signal.raise_signal(asked)
        assert stopped()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(asked)
    assert signal.getsignal(asked) is unharmed


def test_a_comparison_that_is_stopped_prints_what_is_there_and_ends_with_1(
    answered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "note", lambda _: signal.raise_signal(signal.SIGINT))
    record = answered("compare g.json c.json --fabrics ideal,static,reactive", status=1)
    assert len(record["fabrics"]) == 1


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    with in_a_process("workload --list --json", folder) as process:
        process.stdout.close()
        assert process.wait(timeout=300) == 0
        assert process.stderr.read() == ""


# check


@pytest.mark.parametrize(
    ("task", "start_ms", "equation"), [("b1", 6.0, "5"), ("act", 2.0, "5"), ("act", 3.5, "4")]
)
def test_check_names_the_violated_equation(
    topox: Any, answered: Any, folder: Path, task: str, start_ms: float, equation: str
) -> None:
    topox(f"{SOLVE} --clock slots --output r.json")
    record = json.loads((folder / "r.json").read_text())
    (moved,) = (one for one in record["tasks"] if one["id"] == task)
    moved |= {"start_ms": start_ms, "end_ms": moved["end_ms"] + start_ms - moved["start_ms"]}
    (folder / "r.json").write_text(json.dumps(record))
    verdict = answered("check g.json c.json r.json", status=1)
    assert equation in {one["equation"] for one in verdict["constraints"] if not one["ok"]}


# workload


@pytest.mark.parametrize("name", ["dlrm.taskgraph.json", "dlrm.csv", "dlrm.taskgraph.json.gz"])
def test_workload_writes_a_graph_and_the_cluster_beside_it(
    answered: Any, folder: Path, name: str
) -> None:
    record = answered(f"workload dlrm --set port_gbps=25 --output {name}")
    graph = load_graph((folder / name).read_bytes(), name)
    cluster = load_cluster((folder / record["cluster"]).read_bytes(), "dlrm.cluster.json")
    assert record["tasks"] == sum(record["kinds"].values())
    assert record["digest"] == graph.digest
    assert graph.servers <= cluster.servers and cluster.port_gbps == 25.0


# rcpsp


@pytest.mark.parametrize(
    ("name", "optimum"), long_after(1, [("j301_1", 43), ("j302_1", 38), ("j305_1", 53)])
)
def test_rcpsp_proves_published_optima(
    answered: Any, real_inputs: Path, folder: Path, name: str, optimum: int
) -> None:
    file = next((real_inputs / "psplib").rglob(f"{name}.sm"))
    record = answered(f"rcpsp {file}")
    assert (record["makespan"], record["bound"], record["status"]) == (optimum, optimum, "optimal")


@pytest.mark.parametrize("beside", [True, False])
def test_a_full_disk_loses_no_result_and_leaves_the_working_folder_alone(
    topox: Any,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    beside: bool,
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (wanted := folder / "results").mkdir()
    data = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    monkeypatch.setattr(Path, "write_bytes", full)
    made = tempfile.mkstemp

    def never_there(suffix: str, prefix: str, where: Path) -> tuple[int, str]:
        return full() if where == wanted and not beside else made(suffix, prefix, where)

    monkeypatch.setattr(tempfile, "mkstemp", never_there)
    (wanted / "r.json").write_text("old")
    before = sorted(folder.iterdir())
    status, out, err = topox(f"{SOLVE} --json --output results/r.json")
    assert status == 2 and sorted(folder.iterdir()) == before
    kept = next((wanted if beside else data / "topox-workbench").glob("topox-*r.json"))
    told = "results/r.json: cannot be written: no space left on device; the result is in "
    assert err.splitlines()[-1] == f"topox: error: {told}{kept}"
    assert all(json.loads(text)["makespan_ms"] == 13.0 for text in (out, kept.read_text()))
    assert (wanted / "r.json").read_text() == "old"


def test_an_output_behind_a_link_or_of_a_long_name_is_written_there(
    topox: Any, folder: Path
) -> None:
    (folder / "real.json").write_text("old")
    (folder / "link.json").symlink_to("real.json")
    for name in ("link.json", "y" * 255):
        assert topox(f"{SOLVE} --output {name}")[0] == 0
    assert (folder / "link.json").is_symlink()
    assert json.loads((folder / "real.json").read_text())["makespan_ms"] == 13.0
    assert not list(folder.glob(".*.part"))


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    ("to", "told"),
    [
        (">/dev/full", "standard output: cannot be written: no space left on device"),
        (">&-", "standard output: is closed"),
    ],
)
def test_standard_output_that_takes_nothing_is_no_answer_no(
    folder: Path, to: str, told: str
) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m topox_core {SOLVE} --output r.json {to}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    last = ended.stderr.splitlines()[-1]
    assert (ended.returncode, last) == (2, f"topox: error: {told}"), ended.stderr
    assert json.loads((folder / "r.json").read_text())["makespan_ms"] == 13.0


def test_it_answers_from_any_folder_until_it_is_interrupted(tmp_path):
    with closing(socket.socket()) as free:
        free.bind((dashboard.HERE, 0))
        port = free.getsockname()[1]
    log = tmp_path / "said"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "topox_core"),
                "dashboard",
                "--no-browser",
                "--port",
                str(port),
            ],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "TOPOX_RUN_LIBRARY": "no"},
            stdout=said,
            stderr=subprocess.STDOUT,
            # Tests that run in the background are deaf to an interrupt, and so would this be.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
    address = f"http://{dashboard.HERE}:{port}"
    wait_until(lambda: f"The workbench is on {address}" in log.read_text())
    assert urllib.request.urlopen(address, timeout=10).status == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    assert "Traceback" not in log.read_text() and dashboard._free(port)


def test_a_port_that_is_taken_is_passed_over_or_refused_where_it_was_named(monkeypatch):
    with closing(socket.socket()) as taken:
        taken.bind((dashboard.HERE, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(dashboard, "USUAL_PORT", port)
        assert dashboard._port(None) > port
        assert f"--port: {port} is taken" in refusal(dashboard._port, port)
        monkeypatch.setattr(dashboard, "PORTS_TRIED", 1)
        assert "are all taken" in refusal(dashboard._port, None)


def test_without_pages_and_without_a_browser_one_line_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert "pip install topox-workbench" in refusal(dashboard.run.run, None)
    monkeypatch.setattr("webbrowser.open", lambda _address: False)
    assert not dashboard._opened("http://127.0.0.1:1")
