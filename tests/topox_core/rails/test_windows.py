"""Phases and windows by the paper's definition, of executions made by hand and of rail iterations; how many there are."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import TRANSFER
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS, changed
from topox_core.rails.window_lengths import by_class
from topox_core.rails.windows import strip, windows_by_stage, windows_of_execution
from topox_core.schedule.settings import Settings


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


def executed(tasks: list[Task], times: dict[str, tuple[float, float]]) -> Execution:
    """An execution of three servers whose tasks ran at these times; what is not named took none."""
    graph = lower(validated("by hand", tasks, "by hand"), Settings().lowering)
    start, end = np.array([times.get(task_id, (0.0, 0.0)) for task_id in graph.ids]).T
    cluster = Cluster(
        servers=3, ports_per_server=2, switches=2, ports_per_switch=3, port_gbps=100.0
    )
    return Execution(graph, cluster, start, end, Circuits.none())


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


def test_a_collective_starts_when_its_last_member_joins() -> None:
    tasks = [
        talk("a", 0, 1, "pp"),
        Task("g", "all_gather", ("a",), members=(0, 1, 2), size_bytes=3e6, parallelism="fsdp"),
    ]
    graph = lower(validated("by hand", tasks, "by hand"), Settings().lowering)
    transfers = [i for i in range(len(graph)) if graph.kind[i] == TRANSFER and graph.ids[i] != "a"]
    times = {"a": (0.0, 4.0)} | {graph.ids[i]: (5.0 + 2 * graph.source[i], 20.0) for i in transfers}
    first = [
        min(
            times[graph.ids[i]][0]
            for i in transfers
            if r in (graph.source[i], graph.destination[i])
        )
        for r in range(3)
    ]
    windows = windows_of_execution(executed(tasks, times))
    assert {one.rank for one in windows} == {0, 1}
    assert {one.length_ms for one in windows} == {max(first) - 4.0}


def test_the_papers_preset_shows_figure_3a_and_the_classes_of_figure_4b() -> None:
    iteration = build(PRESETS["llama3-8b-perlmutter"])
    run = simulate(iteration, Rail(optical=False, nic_gbps=200.0))
    rows = list(strip(iteration, run.start_ms, run.end_ms))
    pattern = [[one.parallelism for one in rows if one.rank == rank] for rank in range(4)]
    assert pattern[:2] == [["fsdp", "pp", "fsdp", "pp", "fsdp", "pp", "fsdp", "dp"]] * 2
    assert pattern[2:] == [["pp", "fsdp", "pp", "fsdp", "pp", "dp"]] * 2
    counts = {one.name: one.count for one in by_class(run.windows)}
    assert next(iter(counts)) == "dp all-reduce, below 1 MiB"
    assert {"pp send, 64 MiB", "fsdp reduce-scatter, 3,829 MiB"} <= counts.keys()
    assert sum(counts.values()) == len(run.windows)


# -- how many windows an iteration has -------------------------------------------------------------------


@given(st.integers(2, 9), st.integers(1, 24))
def test_enumeration_agrees_with_the_closed_forms(stages: int, microbatches: int) -> None:
    first = 2 * microbatches + 2 * min(stages, microbatches) - 1
    inside = [4 * microbatches + 1] * (stages - 2)
    assert windows_by_stage(stages, microbatches, "1f1b") == [first, *inside, 2 * microbatches + 1]
    edge = 4 * microbatches - 1
    assert windows_by_stage(stages, microbatches, "afab") == [edge, *inside, edge]


@given(st.integers(1, 12), st.sampled_from(["1f1b", "afab"]))
def test_without_a_pipeline_only_the_optimizer_interrupts(microbatches: int, schedule: str) -> None:
    assert windows_by_stage(1, microbatches, schedule) == [1]


@given(st.integers(2, 6), st.integers(1, 4), st.integers(2, 4))
def test_interleaved_stages_in_the_middle_have_a_window_around_every_pass(
    stages: int, rounds: int, chunks: int
) -> None:
    microbatches = stages * rounds
    counts = windows_by_stage(stages, microbatches, "interleaved", chunks)
    passes = 2 * microbatches * chunks
    # Every pass gathers between two transfers, which merge with those of the next pass.
    assert counts[1:-1] == [2 * passes + 1] * (stages - 2)
    # Edges begin and end where the model does: passes without a transfer on one side merge nothing,
    # or merge whole passes.
    assert all(count <= 2 * passes - 1 for count in (counts[0], counts[-1]))


@pytest.mark.parametrize("schedule", ["1f1b", "afab"])
def test_a_simulated_iteration_shows_as_many_windows_on_every_rank(schedule: str) -> None:
    preset = changed(
        PRESETS["llama3-8b-perlmutter"],
        {
            "pipeline": 4,
            "data": 2,
            "gpus": 32,
            "microbatches": 6,
            "schedule": schedule,
            "iteration_ms": None,
        },
    )
    iteration = build(preset, by_layer=False)
    run = simulate(iteration, Rail(optical=False, nic_gbps=preset.machine.nic_gbps))
    expected = windows_by_stage(4, 6, schedule)
    shown = np.bincount([window.rank for window in run.windows], minlength=iteration.ranks)
    assert shown.tolist() == [expected[stage] for stage in iteration.stage]
