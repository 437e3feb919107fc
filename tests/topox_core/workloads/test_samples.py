"""The samples are what their index says, are made by our own generators, and their optima hold."""

import gzip
import json
from itertools import permutations
from pathlib import Path

import pytest

from tests.conftest import long_after, some
from tests.topox_core.small_graphs import list_schedule
from tools import make_samples
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.model.cluster import Cluster
from topox_core.model.facts import facts
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import transfer_ms
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.workloads.samples import SAMPLES, load_sample

PROVED = [name for name, sample in SAMPLES.items() if sample.optimum_ms is not None]


def whole_ms(task: Task, cluster: Cluster) -> int:
    """Running time; the hand-made samples use whole slots of 1 ms only."""
    moved_ms = transfer_ms(task.size_bytes or 0, cluster.port_gbps, cluster.latency_us)
    ms = moved_ms if task.duration_ms is None else task.duration_ms
    assert ms == int(ms) and cluster.slot_ms == 1
    return int(ms)


def places(task: Task) -> list[tuple[str, int | None]]:
    """What a task holds alone: its device, or one out-port and one in-port (one port a server)."""
    if task.server is not None:
        return [("device", task.server)]
    return [("out", task.source), ("in", task.destination)]


def placed(order: tuple[Task, ...], cluster: Cluster) -> int | None:
    """Place tasks one by one at their earliest; None if the order puts a task before one it waits for."""
    end: dict[str, int] = {}
    held: dict[tuple[str, int | None], set[int]] = {}
    for task in order:
        if any(d not in end for d in task.dependencies):
            return None
        start, length = max((end[d] for d in task.dependencies), default=0), whole_ms(task, cluster)
        taken = set().union(*(held.setdefault(p, set()) for p in places(task)))
        while taken & set(range(start, start + length)):
            start += 1
        for p in places(task):
            held[p] |= set(range(start, start + length))
        end[task.id] = start + length
    return max(end.values())


def all_orders(graph: TaskGraph, cluster: Cluster) -> list[int]:
    """Makespans of all orders of placing: one of them is optimal (every active schedule comes from one)."""
    return [ms for order in permutations(graph.tasks) if (ms := placed(order, cluster)) is not None]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_as_large_as_its_index_says(name: str) -> None:
    graph, cluster = load_sample(name)
    sample, found = SAMPLES[name], facts(graph, cluster)
    assert (found.tasks, found.transfers) == (sample.tasks, sample.transfers)
    assert found.servers <= cluster.servers == sample.servers


@pytest.mark.parametrize("name", PROVED)
def test_no_order_of_a_hand_made_sample_beats_its_optimum(name: str) -> None:
    graph, cluster = load_sample(name)
    assert cluster.ports_per_server == cluster.switches == 1
    found = all_orders(graph, cluster)
    assert min(found) == SAMPLES[name].optimum_ms
    assert max(found) > min(found)


@pytest.mark.parametrize("name", long_after(1, PROVED[::-1]))
def test_the_solver_proves_the_optimum_of_a_hand_made_sample(name: str) -> None:
    sample = SAMPLES[name]
    settings = Settings.of(**sample.optimum_settings, clock="slots", engine="highs")
    result = solve(*load_sample(name), settings)
    assert result.status == "optimal"
    assert result.makespan_ms == result.bound_ms == sample.optimum_ms


def test_sending_at_once_costs_three_milliseconds_in_patience() -> None:
    graph, cluster = load_sample("patience")
    at = {t.id: t for t in graph.tasks}
    order = ("weights", "f0", "act0", "f1", "act1", "f2", "u2")
    assert placed(tuple(at[i] for i in order), cluster) == SAMPLES["patience"].first_come_ms == 17
    assert facts(graph, cluster).critical_path_ms == 12 < SAMPLES["patience"].optimum_ms == 14


def test_the_dlrm_sample_is_bound_by_its_all_reduce() -> None:
    graph, cluster = load_sample("dlrm-16")
    off = Settings(clock="slots", lowering=Lowering(all_reduce_on_network=False))
    assert list_schedule(graph, cluster, Settings()).unrounded_bound_ms > 2 * 14.543
    assert list_schedule(graph, cluster, off).makespan_ms == pytest.approx(21.2, abs=3.5)


def test_every_file_comes_out_of_the_generator_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_samples, "GENERATED", some(make_samples.GENERATED, quick=3))
    make_samples.main(tmp_path)
    # Another zlib may pack differently: what is inside must be the same.
    made, kept = (
        {
            f.name: gzip.decompress(f.read_bytes()) if f.suffix == ".gz" else f.read_bytes()
            for f in of
            if f.is_file()
        }
        for of in (sorted(tmp_path.iterdir()), sorted(SAMPLE_FOLDER.iterdir()))
    )
    index, known = (json.loads(files.pop("index.json")) for files in (made, kept))
    assert made.items() <= kept.items()
    assert all(entry in known["samples"] for entry in index["samples"])
    assert index["job_mixes"] == known["job_mixes"]
