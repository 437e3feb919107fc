"""Phases and windows by the paper's definition: of executions made by hand, of any fabric, and of rail iterations."""

from __future__ import annotations

import numpy as np
import pytest

from topox_core.errors import InputError
from topox_core.fabrics.circuits import run_provisioned
from topox_core.fabrics.ideal import run_ideal
from topox_core.fabrics.run import FabricOptions, FabricRequest
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import TRANSFER
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.rails.window_lengths import by_class, cdf, share_above
from topox_core.rails.windows import (
    strip,
    strip_of_execution,
    windows_of_execution,
)
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample


def talk(name: str, source: int, destination: int, parallelism: str, *after: str) -> Task:
    return Task(
        name,
        "communication",
        after,
        source=source,
        destination=destination,
        size_bytes=1e6,
        parallelism=parallelism,
    )


def executed(
    tasks: list[Task], times: dict[str, tuple[float, float]], switch: dict[str, int] | None = None
) -> Execution:
    graph = lower(validated("by hand", tasks, "by hand"), Settings().lowering)
    start = np.array([times[task_id][0] if task_id in times else 0.0 for task_id in graph.ids])
    end = np.array([times[task_id][1] if task_id in times else 0.0 for task_id in graph.ids])
    cluster = Cluster(
        servers=3, ports_per_server=2, switches=2, ports_per_switch=3, port_gbps=100.0
    )
    circuits = Circuits.none()
    if switch:
        nodes = np.array([graph.ids.index(name) for name in switch], np.int32)
        zero = np.zeros(len(nodes), np.int32)
        circuits = Circuits(
            np.array(list(switch.values()), np.int32),
            graph.source[nodes],
            graph.destination[nodes],
            zero,
            zero,
            start[nodes],
            start[nodes],
            end[nodes],
            nodes,
            zero.astype(np.bool_),
        )
    return Execution(graph, cluster, start, end, circuits)


def test_a_window_runs_from_the_last_end_to_the_first_start_of_another_parallelism() -> None:
    tasks = [
        talk("a", 0, 1, "pp"),
        talk("b", 1, 0, "pp"),
        talk("c", 0, 1, "dp"),
        talk("d", 0, 1, "dp"),
        talk("e", 1, 0, "pp"),
    ]
    execution = executed(
        tasks, {"a": (0, 4), "b": (1, 3), "c": (9, 12), "d": (10, 15), "e": (14, 20)}
    )
    windows = [one for one in windows_of_execution(execution) if one.rank == 0]
    # pp (a, b) ends at 4, dp (c, d) starts at 9; e starts before d has ended: an overlap.
    assert [(one.before, one.after, one.begin_ms, one.length_ms) for one in windows] == [
        ("pp", "dp", 4, 5),
        ("dp", "pp", 15, -1),
    ]
    assert [one.size_bytes for one in windows] == [2e6, 1e6]


def test_rails_have_windows_of_their_own() -> None:
    tasks = [talk("a", 0, 1, "pp"), talk("b", 0, 1, "dp"), talk("c", 0, 1, "dp")]
    execution = executed(tasks, {"a": (0, 4), "b": (6, 8), "c": (7, 9)}, {"a": 1, "b": 1, "c": 0})
    assert [(one.rank, one.rail, one.length_ms) for one in windows_of_execution(execution)] == [
        (0, 1, 2),
        (1, 1, 2),
    ]


def test_a_collective_starts_when_its_last_member_joins() -> None:
    tasks = [
        talk("a", 0, 1, "pp"),
        Task("g", "all_gather", ("a",), members=(0, 1, 2), size_bytes=3e6, parallelism="fsdp"),
    ]
    graph = lower(validated("by hand", tasks, "by hand"), Settings().lowering)
    transfers = [i for i in range(len(graph)) if graph.kind[i] == TRANSFER and graph.ids[i] != "a"]
    times = {"a": (0.0, 4.0)} | {graph.ids[i]: (5.0 + 2 * graph.source[i], 20.0) for i in transfers}
    first = {
        rank: min(
            5.0 + 2 * graph.source[i]
            for i in transfers
            if rank in (graph.source[i], graph.destination[i])
        )
        for rank in range(3)
    }
    windows = windows_of_execution(executed(tasks, times))
    assert {one.rank for one in windows} == {0, 1}
    assert {one.length_ms for one in windows} == {max(first.values()) - 4.0}


@pytest.mark.parametrize("run", [run_ideal, run_provisioned])
def test_windows_of_a_fabric_tile_the_strip(run: object) -> None:
    graph, cluster = load_sample("fsdp")
    execution = run(
        FabricRequest(lower(graph, Settings().lowering), cluster, Settings(), FabricOptions()),  # type: ignore[operator]
        lambda: False,
    ).execution
    stretches, windows = strip_of_execution(execution), windows_of_execution(execution)
    lanes = {(one.rank, one.rail) for one in stretches}
    assert len(windows) == len(stretches) - len(lanes)
    assert all(one.before != one.after for one in windows)
    for lane in lanes:
        own = [one for one in stretches if (one.rank, one.rail) == lane]
        idle = sum(one.length_ms for one in windows if (one.rank, one.rail) == lane)
        carrying = sum(one.end_ms - one.begin_ms for one in own)
        assert own[0].begin_ms + carrying + idle == pytest.approx(own[-1].end_ms)


def test_the_papers_preset_shows_figure_3a_and_the_classes_of_figure_4b() -> None:
    iteration = build(PRESETS["llama3-8b-perlmutter"])
    run = simulate(iteration, Rail(optical=False, nic_gbps=200.0))
    pattern = {
        rank: [
            one.parallelism
            for one in strip(iteration, run.start_ms, run.end_ms)
            if one.rank == rank
        ]
        for rank in range(4)
    }
    assert pattern[0] == pattern[1] == ["fsdp", "pp", "fsdp", "pp", "fsdp", "pp", "fsdp", "dp"]
    assert pattern[2] == pattern[3] == ["pp", "fsdp", "pp", "fsdp", "pp", "dp"]
    names = [one.name for one in by_class(run.windows)]
    assert names[0] == "dp all-reduce, below 1 MiB"
    assert "pp send, 64 MiB" in names
    assert "fsdp reduce-scatter, 3,829 MiB" in names
    assert sum(one.count for one in by_class(run.windows)) == len(run.windows)


def test_the_curve_rises_to_one() -> None:
    lengths, shares = cdf([3.0, 1.0, 2.0, 1.0])
    assert lengths.tolist() == [1.0, 1.0, 2.0, 3.0]
    assert shares.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert share_above([3.0, 1.0, 2.0, 1.0], 1.0) == 0.5


def test_an_execution_without_transfers_is_refused() -> None:
    execution = executed([Task("f", "forward", server=0, device=0, duration_ms=1.0)], {"f": (0, 1)})
    with pytest.raises(InputError, match="has no transfer"):
        windows_of_execution(execution)
