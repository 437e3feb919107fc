"""Generators agree with published graphs and counts and are repeatable; samples come out of them, and their optima hold."""

import gzip
import json
from collections import Counter
from itertools import accumulate, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import long_after, some
from tests.real_inputs import ROOT
from tests.refusal import refusal
from tests.topox_core.small_graphs import list_schedule
from tests.topox_core.training.reference_jobs import JOBS as REFERENCE_JOBS
from tools import make_samples
from topox_core.io.limits import MAX_GENERATED_TASKS
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.io.task_graph_file import check_fits, dump_graph_json, load_graph
from topox_core.model.cluster import Cluster
from topox_core.model.facts import facts
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import COMPUTE_KINDS, Task, TaskGraph
from topox_core.model.transfer_graph import transfer_ms
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.training.costs.collectives import stage_update_ms
from topox_core.training.iteration import iteration
from topox_core.training.job import JOBS
from topox_core.training.plan import pass_order
from topox_core.workloads.catalogue import WORKLOADS, generate
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_core.workloads.workload import as_workload, job_of

SMALL: dict[str, dict[str, object]] = {
    "llama3-70b": {"data": 1, "microbatches": 16},
    "fsdp": {"layers": 3},
    "gpt3-175b": {"data": 1, "microbatches": 16},
    "llama3.1-405b-8192": {"data": 1, "microbatches": 16},
    "llama3.1-405b-16384": {"data": 1},
}


def busy_ms(graph: TaskGraph) -> list[float]:
    computed = [task for task in graph.tasks if task.kind in COMPUTE_KINDS]
    return np.bincount([t.server for t in computed], [t.duration_ms for t in computed]).tolist()


def network_all_reduces(graph: TaskGraph) -> list[float]:
    return sorted(
        t.size_bytes or 0.0
        for t in graph.tasks
        if t.kind == "all_reduce" and len(t.members or ()) > 1
    )


def transfers(graph: TaskGraph) -> Counter[tuple[int | None, int | None, float | None]]:
    return Counter(
        (t.source, t.destination, t.size_bytes) for t in graph.tasks if "communication" in t.kind
    )


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_fits_its_cluster_and_the_same_choices_give_the_same_bytes(
    name: str,
) -> None:
    graph, cluster = generate(name, SMALL.get(name, {}))
    check_fits(graph, cluster)
    again, _ = generate(name, {k: str(v) for k, v in SMALL.get(name, {}).items()})
    assert dump_graph_json(graph) == dump_graph_json(again)
    assert load_graph(dump_graph_json(graph), "again.taskgraph.json").digest == graph.digest


def test_dlrm_no_2_moves_and_computes_what_the_table_says() -> None:
    graph, cluster = generate("dlrm")
    assert cluster.servers == 16
    sizes = Counter(t.size_bytes for t in graph.tasks if t.kind == "communication")
    assert sizes == {2_097_152: 2 * 240}
    sums = network_all_reduces(graph)
    assert (len(sums), sum(sums)) == (46, pytest.approx(306.34e6, rel=1e-4))
    assert busy_ms(graph) == pytest.approx([14.543] * 16, abs=5e-4)


def test_dlrm_no_2_is_the_graph_that_topoopt_published(real_inputs: Path) -> None:
    ours, cluster = generate("dlrm", {"port_gbps": 10})
    file = real_inputs / "flexnet" / "10dlrm_16.fbuf"
    theirs = load_graph(file.read_bytes(), file.name)
    assert transfers(ours) == transfers(theirs)
    assert network_all_reduces(ours) == network_all_reduces(theirs)
    assert sorted(busy_ms(ours)) == pytest.approx(sorted(busy_ms(theirs)), rel=1e-6)
    path, published = (facts(one, cluster).critical_path_ms for one in (ours, theirs))
    assert path == pytest.approx(published, rel=1e-6)


@pytest.mark.long
def test_dlrm_no_1_has_the_tables_and_pairs_of_the_published_graph(real_inputs: Path) -> None:
    ours, cluster = generate("dlrm", {"configuration": "1"})
    assert cluster.servers == 128
    file = real_inputs / "flexnet" / "100dlrm_128.fbuf"
    theirs = load_graph(file.read_bytes(), file.name)
    # The published graph comes from a search: tables on other servers, two layers on fewer. Sizes
    # and counts are the same.
    pieces = [
        sum(n for pair, n in transfers(g).items() if pair[2] == 524_288) for g in (ours, theirs)
    ]
    assert pieces == [64 * 127 * 2] * 2
    assert network_all_reduces(ours) == network_all_reduces(theirs)


def test_dlrm_elements_of_four_bytes_halve_what_the_tables_send() -> None:
    eight, four = (
        facts(*generate("dlrm", {"mp_element_bytes": b})).bytes_by_parallelism for b in (8, 4)
    )
    assert eight == four | {"mp": 2 * four["mp"]}


@pytest.mark.parametrize(("stages", "microbatches"), [(1, 3), (4, 8), (4, 2), (6, 6)])
def test_1f1b_keeps_no_more_microbatches_in_flight_than_stages_follow(
    stages: int, microbatches: int
) -> None:
    for stage in range(stages):
        work = [(way, m) for way, m, _ in pass_order(stage, stages, microbatches, "1f1b")]
        for way in "fb":
            assert [m for one, m in work if one == way] == list(range(microbatches))
        in_flight = accumulate(1 if way == "f" else -1 for way, _ in work)
        assert max(in_flight) == min(stages - stage, microbatches)


@pytest.mark.parametrize("order", ["1f1b", "afab"])
def test_a_pipeline_on_a_free_network_takes_microbatches_plus_stages_minus_one(order: str) -> None:
    stages, microbatches = 4, 6
    # Without a vocabulary and latencies all stages are equal but for a part in ten thousand.
    choices = {"pipeline": stages, "data": 1, "microbatches": microbatches, "vocabulary": 1}
    free = {"nic_gbps": 1e9, "network_call_us": 0, "network_step_us": 0, "split_sends": "no"}
    graph, cluster = generate("llama3-8b", {**choices, **free, "order": order})
    middle = {t.kind: t.duration_ms or 0.0 for t in graph.tasks if t.stage == 1}
    expected = (microbatches + stages - 1) * (middle["forward"] + middle["backward"])
    path = facts(graph, cluster).critical_path_ms - middle["update"]
    # The first stage sums once more forward, the last once more backward.
    assert expected < path < 1.05 * expected


def test_a_workload_takes_the_times_of_its_job() -> None:
    """The same forward, backward and update as the closed form, and an iteration of the same length but for the ports."""
    for name in ("llama3-8b", "gpt-small"):
        job = JOBS[name].changed(schedule__split_sends=False)
        one, (graph, _) = iteration(job), generate(name, {"split_sends": "no"})
        for stage, passes in enumerate(one.passes):
            found = {t.kind: t.duration_ms for t in graph.tasks if t.stage == stage}
            times = passes.forward.total_ms, passes.backward.total_ms, stage_update_ms(job, stage)
            assert [found[k] for k in ("forward", "backward", "update")] == pytest.approx(times)


def test_any_job_is_a_workload_with_some_parameters_changed() -> None:
    for job in (*REFERENCE_JOBS.values(), *JOBS.values()):
        name, parameters = as_workload(job)
        again = job_of(name, dict(parameters))
        assert again is not None
        assert (again.plan, again.schedule) == (job.plan, job.schedule)
        assert iteration(again).total_ms == pytest.approx(iteration(job).total_ms, rel=1e-12)
    assert as_workload(JOBS["moe"]) == ("moe", ())
    assert job_of("dlrm", {}) is None


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("dlmr", {}, "workload, field name: must be one of dlrm, "),
        ("dlrm", {"gpus": 3}, "workload dlrm, field gpus: unknown parameter"),
        ("dlrm", {"configuration": "3"}, "field configuration: must be one of 1, 2 (got 3)"),
        (
            "dlrm",
            {"port_gbps": "fast"},
            "field port_gbps: must be a number (got 'fast')",
        ),
        ("dlrm", {"port_gbps": "nan"}, "(got nan)"),
        (
            "moe",
            {"layers": "2.5"},
            "field layers: must be a whole number (got '2.5')",
        ),
        ("moe", {"layers": True}, "field layers: must be a whole number (got True)"),
        ("moe", {"layers": 0}, "field layers: must be from 1 to 1,000,000 (got 0)"),
        ("moe", {"tied": "maybe"}, "field tied: must be true or false (got 'maybe')"),
        (
            "llama3-8b",
            {"order": "gpipe"},
            "field order: must be one of 1f1b, afab, interleaved (got 'gpipe')",
        ),
        (
            "gpt-small",
            {"pipeline": 13},
            "workload gpt-small, plan, field pipeline: must leave every stage a layer: "
            "the number of stages may be 12 at most (got 13; 12 would do)",
        ),
    ],
)
def test_a_bad_choice_gets_one_line_that_names_it(
    name: str, values: dict[str, object], words: str
) -> None:
    assert words in refusal(generate, name, values)


def test_the_page_on_workloads_names_every_workload_and_parameter() -> None:
    page = (ROOT / "docs" / "workloads.md").read_text("utf-8")
    words = set(WORKLOADS) | {p.name for w in WORKLOADS.values() for p in w.parameters}
    assert [word for word in sorted(words) if f"`{word}`" not in page] == []


UNEVEN = {"skew": 1.0, "expert": 8, "experts": 8, "data": 8, "exchanges": "layer"}
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    UNEVEN,
    {"data": 1, "pipeline": 1, "expert": 1},
    {"configuration": 1},
)
# One of each construction, for the quick run.
LIGHT = ["gpt-small", "moe", "dlrm", "random-layered", "serving-bursts"]


@pytest.mark.parametrize(
    "name", long_after(len(LIGHT), [*LIGHT, *(name for name in WORKLOADS if name not in LIGHT)])
)
def test_a_workload_knows_its_size_before_it_is_made(name: str) -> None:
    workload = WORKLOADS[name]
    values = {p.name: p.default for p in workload.parameters} | SMALL.get(name, {})
    for changes in CHANGES:
        if changes.keys() <= values.keys():
            generator = workload.made(**(values | changes))
            made, expected = sum(1 for _ in generator.tasks()), generator.count()
            assert made == expected or (name == "random-layered" and made > expected)


@pytest.mark.parametrize(
    ("name", "changes"),
    long_after(
        4,
        [
            ("moe", {"data": 512, "expert": 512, "experts": 512, "layers": 20, "skew": 1.0}),
            ("llama3-8b", {"pipeline": 250, "data": 500, "microbatches": 2000, "layers": 1000}),
            ("llama3-8b", {"tensor": 1, "pipeline": 32, "data": 16_384, "microbatches": 30_000}),
            ("random-layered", {"layers": 100_000, "width": 10_000}),
            ("moe", {"data": 512, "expert": 512, "experts": 512, "layers": 200, "microbatches": 8}),
            ("fsdp", {"data": 4096, "layers": 1000}),
        ],
    ),
)
def test_what_is_too_large_is_refused_before_any_work(
    name: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(_generator: Any) -> Any:
        pytest.fail("tasks were made")

    generator = WORKLOADS[name].made(**WORKLOADS[name].chosen({}))
    monkeypatch.setattr(type(generator), "tasks", work)
    words = f"would have more than {MAX_GENERATED_TASKS:,} tasks"
    assert words in refusal(generate, name, changes)


def test_prompts_of_bursts_are_as_long_on_average_as_was_asked_for() -> None:
    """Two thousand prompts of a wide spread: 2,000 tokens each, give or take a fifteenth."""
    choices = {"tokens": 2000, "spread": 0.6, "chunks": 1, "bursts": 40, "requests": 50}
    graph, _ = generate("serving-bursts", {**choices, "token_bytes": 1})
    sent = [t.size_bytes or 0.0 for t in graph.tasks if t.kind == "communication"]
    assert sum(sent) / len(sent) == pytest.approx(2000, rel=0.067)


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
