"""The command ``trace``: what it prints, what it writes, how it ends."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.topox_core.traces.made import JOBS, Style, recordings
from topox_core.cli.main import main
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import check_fits, load_graph


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("run")
    for name, data in recordings(JOBS["experts"](layers=2), 100.0, Style()).items():
        (into / f"{name}.gz").write_bytes(gzip.compress(data, 1))
    (into / "notes.txt").write_text("not a trace")
    return into


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    record = json.loads(capsys.readouterr().out)
    assert isinstance(record, dict)
    return record


def test_inspect_says_what_a_folder_holds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "inspect", str(folder)]) == 0
    printed = capsys.readouterr()
    assert "rank" in printed.out and "expert_parallel" in printed.out
    assert "run_rank3.json.gz" in printed.err
    assert main(["trace", "inspect", str(folder), "--json"]) == 0
    record = told(capsys)
    assert [one["step"] for one in record["steps"]] == [5, 6, 7]
    assert len(record["files"]) == 4 and record["world"] == 4


def test_import_writes_a_graph_a_cluster_and_a_report_that_fit(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, cluster, report = (
        tmp_path / name for name in ("x.taskgraph.json", "x.cluster.json", "x.report.json")
    )
    command = ["trace", "import", str(folder), "--output", str(graph), "--json"]
    assert main([*command, "--cluster", str(cluster), "--report", str(report)]) == 0
    record = told(capsys)
    written = json.loads(report.read_text())
    assert record == written | {"output": str(graph)}
    loaded = load_graph(graph.read_bytes(), graph.name)
    fits = load_cluster(cluster.read_bytes(), cluster.name)
    check_fits(loaded, fits)
    assert loaded.digest == written["digest"] and loaded.name == "x"
    assert fits.servers == 4 and fits.ports_per_server * fits.port_gbps == 400.0
    assert main(["compare", str(graph), str(cluster), "--fabrics", "ideal", "--json"]) == 0
    run = told(capsys)["fabrics"]["ideal"]
    assert run["iteration_ms"] == pytest.approx(written["replay_ms"]["400_gbps"], rel=1e-6)


def test_mistakes_end_with_2_and_refusals_with_1(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "import", str(folder)]) == 2
    assert "--output" in capsys.readouterr().err
    assert main(["trace", "inspect", str(tmp_path / "absent.json")]) == 2
    assert "cannot be read: no such file" in capsys.readouterr().err
    assert main(["trace", "inspect", str(tmp_path)]) == 2
    assert "holds no .json" in capsys.readouterr().err
    out = str(tmp_path / "y.taskgraph.json")
    assert main(["trace", "import", str(folder), "--output", out, "--max-tasks", "10"]) == 1
    assert "give --ranks or --max-tasks" in capsys.readouterr().err
    assert main(["trace", "import", str(folder), "--output", out, "--nic-gbps", "-1"]) == 2
    assert "command line, field --nic-gbps: must be above 0" in capsys.readouterr().err
    assert main(["trace", "import", str(folder), "--output", out, "--step", "x"]) == 2
    assert not Path(out).exists()


def test_ranks_can_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "inspect", str(folder), "--ranks", "0,2-3", "--json"]) == 0
    record = told(capsys)
    assert [one["rank"] for one in record["files"]] == [0, 2, 3]
    assert any("rank 1 of 4 is absent" in line for line in record["warnings"])
