"""The command ``trace``: what it prints, what it writes, how it ends; the windows of a recorded run."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.topox_core.traces.made import JOBS, Call, Kernel, Op, Style, Wait, recordings
from tests.topox_core.traces.reading_back import sources
from topox_core.cli.main import main
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.traces.recorded_run import read_run, step_of
from topox_core.traces.source import ImportSettings
from topox_core.traces.windows import windows_of_step


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("run")
    for name, data in recordings(JOBS["experts"](layers=1), 100.0, Style()).items():
        (into / f"{name}.gz").write_bytes(gzip.compress(data, 1))
    (into / "notes.txt").write_text("not a trace")
    return into


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_inspect_takes_the_ranks_that_are_chosen(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "inspect", str(folder), "--ranks", "0,2-3", "--json"]) == 0
    record = told(capsys)
    assert [one["step"] for one in record["steps"]] == [5, 6, 7]
    assert [one["rank"] for one in record["files"]] == [0, 2, 3]
    assert any("rank 1 of 4 is absent" in line for line in record["warnings"])


def test_import_writes_a_graph_a_cluster_and_a_report_that_fit(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, cluster, report = (
        tmp_path / name for name in ("x.taskgraph.json", "x.cluster.json", "x.report.json")
    )
    command = ["trace", "import", str(folder), "--output", str(graph), "--json"]
    assert main([*command, "--cluster", str(cluster), "--report", str(report)]) == 0
    written = json.loads(report.read_text())
    assert told(capsys) == written | {"output": str(graph)}
    loaded = load_graph(graph.read_bytes(), graph.name)
    fits = load_cluster(cluster.read_bytes(), cluster.name)
    check_fits(loaded, fits)
    assert loaded.digest == written["digest"] and loaded.name == "x"
    assert fits.servers == 4 and fits.ports_per_server * fits.port_gbps == 400.0
    assert main(["compare", str(graph), str(cluster), "--fabrics", "ideal", "--json"]) == 0
    run = told(capsys)["fabrics"]["ideal"]
    assert run["iteration_ms"] == pytest.approx(written["replay_ms"]["400_gbps"], rel=1e-6)


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        (["import", "FOLDER"], 2, "--output"),
        (["inspect", "EMPTY/absent.json"], 2, "cannot be read: no such file"),
        (["inspect", "EMPTY"], 2, "holds no .json"),
        (
            ["import", "FOLDER", "--output", "EMPTY/y.taskgraph.json", "--max-tasks", "10"],
            1,
            "give --ranks or --max-tasks",
        ),
        (
            ["import", "FOLDER", "--output", "EMPTY/y.taskgraph.json", "--nic-gbps", "-1"],
            2,
            "command line, field --nic-gbps: must be greater than 0 (got -1)",
        ),
        (["import", "FOLDER", "--output", "EMPTY/y.taskgraph.json", "--step", "x"], 2, "step"),
    ],
)
def test_mistakes_end_with_2_and_refusals_with_1(
    command: list[str],
    code: int,
    line: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [w.replace("FOLDER", str(folder)).replace("EMPTY", str(tmp_path)) for w in command]
    assert main(["trace", *words]) == code
    assert line in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_window_ends_when_the_last_rank_is_there() -> None:
    """Two kinds of traffic in turn; rank 1 computes longer, so that rank 0 waits in its kernels."""
    exchange = Call("a", "all_to_all", (0, 1), 10_000_000, 20, "e", "expert")
    gradients = Call("b", "all_reduce", (0, 1), 10_000_000, 20, "d", "ddp")
    program: dict[int, list[Op]] = {
        rank: [
            *(Kernel(100.0 + 400.0 * rank), exchange, Wait("a")),
            *(Kernel(1_100.0 + 400.0 * rank), gradients, Wait("b"), Kernel(50.0)),
        ]
        for rank in (0, 1)
    }
    files = recordings(program, 100.0, Style(steps=2, offsets_us=(0.0, 3e5)))
    settings = ImportSettings()
    found = windows_of_step(step_of(read_run(sources(files), settings), settings), {})
    (one,) = found.windows
    assert (one.before, one.after, one.operation, one.rank) == ("ep", "dp", "all_reduce", 0)
    # From the exchange to when rank 1 is there, though rank 0's own kernel begins earlier.
    assert one.length_ms == pytest.approx(1.5, abs=1e-6)
    assert sorted(w.length_ms for w in found.naive) == pytest.approx([1.1, 1.5], abs=1e-6)
