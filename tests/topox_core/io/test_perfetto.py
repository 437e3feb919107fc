"""The trace for ui.perfetto.dev: slices nest, arrows lie in them and never lead back, counters stay sound; windows come back."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import some
from tests.topox_core.conftest import build
from topox_core.cli.main import main
from topox_core.fabrics.comparison.compare import compare
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.foreign.perfetto import perfetto_trace
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.rails.windows import windows_of_execution
from topox_core.schedule.settings import Settings
from topox_core.traces.recorded.windows import windows_of_trace
from topox_core.traces.source import Source
from topox_core.workloads.samples import load_sample

ONE_SERVER = Cluster(servers=1, ports_per_server=1, switches=1, ports_per_switch=1, port_gbps=1)


def with_transfers_of_no_bytes() -> tuple[TaskGraph, Cluster]:
    three = {"members": (0, 1, 2)}
    tasks = [
        Task("a", "forward", server=0, duration_ms=1.0),
        Task("x", "all_reduce", dependencies=("a",), **three, size_bytes=3e6, parallelism="dp"),
        Task("z", "all_to_all", dependencies=("x",), **three, size_bytes=0.0, parallelism="ep"),
        Task("b", "forward", dependencies=("z",), server=1, duration_ms=1.0),
        Task("y", "all_reduce", dependencies=("b",), **three, size_bytes=3e6, parallelism="dp"),
        Task("t", "communication", dependencies=("y",), source=0, destination=2, size_bytes=0.0),
    ]
    cluster = Cluster(
        servers=3, ports_per_server=2, switches=2, ports_per_switch=3, port_gbps=100.0
    )
    return validated("no bytes", tasks), cluster


@pytest.fixture(scope="module")
def cases() -> list[tuple[str, TaskGraph, Execution]]:
    found = []
    samples = [load_sample(name) for name in some(("moe", "dlrm-16", "llama3-8b"), quick=1)]
    for graph, cluster in [with_transfers_of_no_bytes(), *samples]:
        runs = compare(graph, cluster, Settings.of(engine="list"), ("scheduled", "ideal"))
        found += [(f"{graph.name} {name}", graph, run.execution) for name, run in runs.items()]
    return found


def events_of(data: bytes) -> dict[str, list[dict[str, Any]]]:
    by_phase: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in json.loads(data)["traceEvents"]:
        by_phase[event["ph"]].append(event)
    return by_phase


def check_structure(data: bytes) -> None:
    events = events_of(data)
    lanes = defaultdict(list)
    for one in events["X"]:
        lanes[one["pid"], one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for rows in lanes.values():
        ordered = [time for row in sorted(rows) for time in row]
        assert all(later >= earlier - 1e-6 for earlier, later in pairwise(ordered))
    assert lanes.keys() <= {(one["pid"], one["tid"]) for one in events["M"] if "tid" in one}
    begins, ends = ({e["id"]: e for e in events[phase]} for phase in "sf")
    assert begins.keys() == ends.keys() and len(begins) == len(events["s"]) == len(events["f"])
    assert all(one["ts"] <= ends[number]["ts"] for number, one in begins.items())
    for end in (*begins.values(), *ends.values()):
        slices = lanes[end["pid"], end["tid"]]
        assert any(low - 1e-6 <= end["ts"] <= high + 1e-6 for low, high in slices)
    counted: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for one in events["C"]:
        counted[one["pid"]].append((one["ts"], one["args"]["ports"]))
    for rows in counted.values():
        assert all(a[0] < b[0] and a[1] != b[1] for a, b in pairwise(rows))
        assert min(count for _, count in rows) == 0 == rows[-1][1]


def test_a_trace_is_sound_and_windows_come_back_from_it(
    cases: list[tuple[str, TaskGraph, Execution]],
) -> None:
    for name, graph, execution in cases:
        data = perfetto_trace(execution, name, graph=graph)
        check_structure(data)
        events = events_of(data)
        assert events["s"], name
        assert "no bytes" not in name or "t" in {one["name"] for one in events["X"]}
        busiest = max((e["args"]["ports"] for e in events["C"]), default=0)
        assert busiest <= execution.cluster.ports_per_server
        windows, makespan_ms = windows_of_trace(Source.of_bytes("x.trace.json", data))
        assert makespan_ms == execution.makespan_ms
        assert windows == windows_of_execution(execution), name


def test_every_task_and_dark_time_is_a_slice_and_tasks_that_share_a_device_lie_side_by_side(
    pipeline: Execution,
) -> None:
    data = perfetto_trace(pipeline, "an iteration")
    check_structure(data)
    slices = events_of(data)["X"]
    assert {"f0s0", "B2", "g1"} <= {one["name"] for one in slices}
    assert {one["dur"] for one in slices if one["cat"] == "reconfiguring"} == {2000.0}  # 2 ms
    times = {"a": (0, 6), "b": (3, 10), "c": (6, 9)}
    tasks = [(name, "forward", "", 0, *time, []) for name, time in times.items()]
    shared = perfetto_trace(build(tasks, [], ONE_SERVER), "shared")
    check_structure(shared)
    assert len({one["tid"] for one in events_of(shared)["X"]}) == 2


def test_the_command_writes_a_checked_schedule_and_reads_its_windows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ask: Any
) -> None:
    graph, cluster, schedule, trace = (
        str(tmp_path / f"m.{kind}.json") for kind in ("taskgraph", "cluster", "schedule", "trace")
    )
    task_graph, on = with_transfers_of_no_bytes()
    Path(graph).write_bytes(dump_graph_json(task_graph))
    Path(cluster).write_bytes(dump_cluster(on))
    ask("schedule", graph, cluster, "--engine", "list", "--output", schedule)
    record = ask("trace", "perfetto", graph, cluster, schedule, "--output", trace)
    assert record["slices"] >= 20 and record["arrows"] > 5
    windows = ask("rails", "windows", graph, cluster)["list"]
    assert windows and ask("trace", "windows", trace)["list"] == windows
    broken = json.loads(Path(schedule).read_text())
    broken["circuits"] = broken["circuits"][1:]
    Path(schedule).write_text(json.dumps(broken))
    assert main(["trace", "perfetto", graph, cluster, schedule, "--output", trace]) == 2
    assert "breaks the model" in capsys.readouterr().err
