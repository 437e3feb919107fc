"""The trace for ui.perfetto.dev: slices nest, arrows lie in them and never lead back, counters stay sound; windows come back."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from topox_core.cli.main import main
from topox_core.fabrics.compare import compare
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.perfetto import perfetto_trace
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.rails.windows import windows_of_execution
from topox_core.schedule.settings import Settings
from topox_core.traces.perfetto_in import windows_of_trace
from topox_core.traces.source import Source
from topox_core.workloads.samples import load_sample


def executions() -> list[tuple[str, TaskGraph, Execution]]:
    found = []
    for name in ("moe", "dlrm-16", "llama3-8b"):
        graph, cluster = load_sample(name)
        for fabric in ("scheduled", "ideal"):
            runs = compare(graph, cluster, Settings.of(engine="list"), (fabric,))
            found.append((f"{name} {fabric}", graph, runs[fabric].execution))
    return found


@pytest.fixture(scope="module")
def cases() -> list[tuple[str, TaskGraph, Execution]]:
    return executions()


def events_of(data: bytes) -> dict[str, list[dict[str, Any]]]:
    by_phase: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in json.loads(data)["traceEvents"]:
        by_phase[event["ph"]].append(event)
    return by_phase


def check_structure(data: bytes) -> None:
    events = events_of(data)
    lanes = defaultdict(list)
    for one in events["X"]:
        assert one["dur"] >= 0
        lanes[one["pid"], one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for rows in lanes.values():
        assert all(b[0] >= a[1] - 1e-6 for a, b in pairwise(sorted(rows)))
    names = {(e["pid"], e["tid"]) for e in events["M"] if e["name"] == "thread_name"}
    assert set(lanes) <= names
    begins, ends = ({e["id"]: e for e in events[phase]} for phase in "sf")
    assert begins.keys() == ends.keys() and len(begins) == len(events["s"]) == len(events["f"])
    for number, one in begins.items():
        other = ends[number]
        assert one["ts"] <= other["ts"] and other["bp"] == "e"
        for end in (one, other):
            assert any(
                low - 1e-6 <= end["ts"] <= high + 1e-6
                for low, high in lanes[end["pid"], end["tid"]]
            )
    counted: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for one in events["C"]:
        counted[one["pid"]].append((one["ts"], one["args"]["ports"]))
    for rows in counted.values():
        assert all(a[0] < b[0] and a[1] != b[1] for a, b in pairwise(rows))
        assert min(count for _, count in rows) == 0 == rows[-1][1]


def test_structure_of_every_trace(cases: list[tuple[str, TaskGraph, Execution]]) -> None:
    for name, graph, execution in cases:
        data = perfetto_trace(execution, name, graph=graph)
        check_structure(data)
        events = events_of(data)
        assert events["s"], name
        busiest = max((e["args"]["ports"] for e in events["C"]), default=0)
        assert busiest <= execution.cluster.ports_per_server
        assert json.loads(data)["otherData"]["format"] == "topox-trace"


def test_windows_come_back(cases: list[tuple[str, TaskGraph, Execution]]) -> None:
    for name, graph, execution in cases:
        data = perfetto_trace(execution, name, graph=graph)
        windows, makespan_ms = windows_of_trace(Source.of_bytes("x.trace.json", data))
        assert makespan_ms == execution.makespan_ms
        assert windows == windows_of_execution(execution), name


def test_transfers_of_no_bytes_are_there_and_their_windows_too() -> None:
    tasks = [
        Task("a", "forward", server=0, duration_ms=1.0),
        Task("x", "all_reduce", ("a",), members=(0, 1, 2), size_bytes=3e6, parallelism="dp"),
        Task("z", "all_to_all", ("x",), members=(0, 1, 2), size_bytes=0.0, parallelism="ep"),
        Task("b", "forward", ("z",), server=1, duration_ms=1.0),
        Task("y", "all_reduce", ("b",), members=(0, 1, 2), size_bytes=3e6, parallelism="dp"),
        Task(
            "t", "communication", ("y",), source=0, destination=2, size_bytes=0.0, parallelism="pp"
        ),
    ]
    graph = validated("zero", tasks)
    cluster = Cluster(
        servers=3, ports_per_server=2, switches=2, ports_per_switch=3, port_gbps=100.0
    )
    runs = compare(graph, cluster, Settings.of(engine="list"), ("scheduled",))
    execution = runs["scheduled"].execution
    data = perfetto_trace(execution, "zero", graph=graph)
    check_structure(data)
    drawn = {e["name"] for e in events_of(data)["X"] if "destination" in e["args"]}
    assert "t" in drawn
    windows, _ = windows_of_trace(Source.of_bytes("z.json", data))
    assert windows == windows_of_execution(execution) and windows


@pytest.mark.long
def test_arrows_and_counters_are_left_out_of_large_traces(crowd: Execution) -> None:
    assert events_of(perfetto_trace(crowd, "crowd"))["s"]
    assert not events_of(perfetto_trace(crowd, "crowd", arrows=False))["s"]
    check_structure(perfetto_trace(crowd, "crowd", arrows=True))


def test_the_command_writes_a_checked_schedule_and_reads_its_windows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, cluster = load_sample("moe")
    names = [str(tmp_path / n) for n in ("m.taskgraph.json", "m.cluster.json", "m.schedule.json")]
    Path(names[0]).write_bytes(dump_graph_json(graph))
    Path(names[1]).write_bytes(dump_cluster(cluster))
    assert main(["schedule", *names[:2], "--engine", "list", "--output", names[2]]) == 0
    trace = str(tmp_path / "m.trace.json.gz")
    capsys.readouterr()
    assert main(["trace", "perfetto", *names, "--output", trace, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["slices"] > 100 and record["arrows"] > 10
    assert main(["trace", "windows", trace, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["rails", "windows", *names[:2], "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert found["list"] == listed["list"]
    broken = json.loads(Path(names[2]).read_text())
    broken["circuits"] = broken["circuits"][1:]
    Path(names[2]).write_text(json.dumps(broken))
    assert main(["trace", "perfetto", *names, "--output", trace]) == 2
    assert "breaks the model" in capsys.readouterr().err
