"""Parallel plans of transformers: every one is a job, ranked by its iteration; what they take, need and make."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.topox_core.training.reference_jobs import R1
from topox_core.cli import strategy as strategy_command
from topox_core.cli.files import write_what_waits
from topox_core.cli.main import OneLineParser
from topox_core.errors import InputError
from topox_core.strategy.models import MODELS
from topox_core.strategy.plans import LISTED, best_plans, jobs, timed
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.strategy.strategy_file import dump_strategy, load_strategy
from topox_core.training.graph import suggested_cluster, task_graph
from topox_core.training.iteration import iteration
from topox_core.training.job import Job
from topox_core.training.job_file import dump_job
from topox_core.training.machines import MACHINES
from topox_core.training.memory import memory
from topox_core.training.pieces import parts, pieces
from topox_core.training.plan import Plan
from topox_core.training.schedule import Schedule
from topox_core.training.shape import Shape
from topox_core.training.shapes import SHAPES
from topox_core.training.weights import stage_update_ms

LLAMA = SHAPES["llama3-8b"]
MIXTRAL = SHAPES["mixtral-8x7b"]
H100 = MACHINES["h100"]


def job_of(shape: Shape = LLAMA, **plan: Any) -> Job:
    """A plan as the ranking has it."""
    split = plan.get("tensor", 1) != 1
    return Job(shape, Plan(**{"sequence_parallel": split, "zero": 1, **plan}), H100)


# Time.


def test_one_gpu_computes_and_updates_and_nothing_else() -> None:
    job = job_of(microbatches=8)
    found = timed(job.changed(machine__memory_gb=1000.0))
    spent = found.parts["compute"] + found.parts["update"]
    assert found.total_ms == pytest.approx(spent, rel=1e-12)
    assert found.parts["update"] == pytest.approx(LLAMA.parameters * 28 / (3350e6 * 0.7), rel=1e-12)
    # Products at the best share of the peak and no bytes moved would be the least.
    least_ms = job.operations / (989e9 * 0.85)
    flash_ms = 8 * 32 * (4 * 8192 * 8192 * 4096) * (3 - 0.5 * 3.5) / (989e9 * 0.85)
    assert least_ms - flash_ms < found.parts["compute"] < 1.3 * least_ms


def test_tensor_parallel_gathers_and_scatters_four_times_a_layer() -> None:
    job = job_of(tensor=8, microbatches=3)
    once_ms = (41 + 2.7 * 7) / 1e3 + 7 / 8 * 2 * 8192 * 4096 / (450e6 * 0.76)
    single_ms = 2 * once_ms  # after the lookup, and before the head's input gradient leaves
    assert parts(iteration(job))["tensor"] == pytest.approx(
        3 * (32 * 4 * 2 * once_ms + single_ms), rel=1e-12
    )
    again = job.changed(schedule__recompute="full")
    assert parts(iteration(again))["tensor"] == pytest.approx(
        3 * (32 * 6 * 2 * once_ms + single_ms), rel=1e-12
    )


def test_experts_move_every_copy_of_a_token_four_times() -> None:
    job = job_of(MIXTRAL, data=8, expert=8)
    once_ms = (41 + 2.7) / 1e3 + 7 / 8 * 2 * 2 * 8192 * 4096 / (450e6 * 0.76)
    assert parts(iteration(job))["expert"] == pytest.approx(32 * 4 * once_ms, rel=1e-12)
    assert parts(iteration(job_of(data=8)))["expert"] == 0


def test_a_pipeline_waits_less_the_more_microbatches_there_are() -> None:
    def shares(shape: Shape) -> list[float]:
        plans = (job_of(shape, tensor=8, pipeline=4, microbatches=m) for m in (4, 8, 16, 32))
        found = map(iteration, plans)
        return [parts(one)["bubble"] / one.total_ms for one in found]

    # A small head leaves all stages alike: three of 4 + 3 slots, of 32 + 3 slots.
    even, uneven = shares(replace(LLAMA, vocabulary=256)), shares(LLAMA)
    assert even[0] == pytest.approx(3 / 7, abs=0.04)
    assert even[-1] == pytest.approx(3 / 35, abs=0.04)
    for found in (even, uneven):
        assert found == sorted(found, reverse=True)


def test_a_faster_network_is_never_slower() -> None:
    for plan in (
        {"tensor": 8, "pipeline": 2, "data": 2, "context": 2, "microbatches": 4},
        {"tensor": 4, "data": 8, "context": 2, "microbatches": 4},
    ):
        times = [
            iteration(job_of(**plan).changed(machine__nic_gbps=speed)).total_ms
            for speed in (50.0, 100.0, 400.0, 800.0)
        ]
        assert times == sorted(times, reverse=True)


# Ranking.


def test_plans_use_all_gpus_and_the_whole_batch() -> None:
    found = list(jobs(MIXTRAL, H100, 4, 64))
    assert len(set(found)) == len(found) > 100
    assert {job.plan.gpus for job in found} == {32}
    assert {job.plan.batch for job in found} == {64}
    assert {job.plan.expert for job in found} == {1, 2, 4, 8}
    assert {job.schedule.recompute for job in found} == {"none", "full"}
    for field in ("tensor", "pipeline", "data", "context", "microbatch_size"):
        assert len({getattr(job.plan, field) for job in found}) > 1


def test_plans_that_no_job_can_be_are_left_out() -> None:
    many = list(jobs(LLAMA, H100, 1, 100_000))
    assert 0 < max(job.plan.microbatches for job in many) <= 65_536
    assert {job.plan.batch for job in many} == {100_000}


@pytest.mark.parametrize("machine", ["h100", "perlmutter"])
def test_ranked_plans_fit_and_come_fastest_first(machine: str) -> None:
    gpus = MACHINES[machine]
    found = best_plans(LLAMA, gpus, 4, 64)
    times = [one.total_ms for one in found.ranked]
    assert times == sorted(times)
    every = list(jobs(LLAMA, gpus, 4, 64))
    fitting = [job for job in every if memory(job).total_bytes <= gpus.memory_gb * 1e9]
    assert (found.considered, found.fitting) == (len(every), len(fitting))
    assert found.too_large > 0
    assert times == sorted(iteration(job).total_ms for job in fitting)[:LISTED]
    assert found.best == timed(found.best.job)


def test_the_parts_of_every_listed_plan_add_up() -> None:
    for one in best_plans(MIXTRAL, H100, 8, 64).ranked:
        assert sum(one.parts.values()) == pytest.approx(one.total_ms, rel=1e-12)
        named = {piece.name: piece.exposed_ms for piece in pieces(one.iteration)}
        assert one.parts["compute"] == pytest.approx(named["computing"], rel=1e-12)
        assert one.parts["bubble"] == pytest.approx(named.get("bubble", 0.0), rel=1e-12)


def test_less_memory_leaves_fewer_plans_and_none_gets_faster() -> None:
    found = [best_plans(LLAMA, replace(H100, memory_gb=size), 4, 64) for size in (80.0, 40.0, 20.0)]
    assert all(a.fitting > b.fitting > 0 for a, b in pairwise(found))
    assert all(a.best.total_ms <= b.best.total_ms for a, b in pairwise(found))


def test_if_none_fits_the_line_names_the_memory() -> None:
    with pytest.raises(
        InputError,
        match=r"405b, field memory_gb: none of \d+ plans fits: the smallest needs .* has 80 GB",
    ):
        best_plans(SHAPES["llama3-405b"], H100, 4, 2048)


def test_llama_3_405b_fits_where_it_was_trained_in_sixteen_stages() -> None:
    found = best_plans(SHAPES["llama3-405b"], H100, 512, 2048)
    assert found.best.iteration.utilisation > 0.4
    # The published run had TP 8 and PP 16 (arXiv 2407.21783, table 4); such a plan is among the best.
    near = {(one.plan.tensor, one.plan.pipeline) for one in found.ranked[:8]}
    assert (8, 16) in near


def test_an_enumeration_can_be_stopped() -> None:
    found = best_plans(LLAMA, H100, 16, 512, stop=lambda: True)
    assert (found.ranked, found.considered, found.complete) == ((), 0, False)
    asked = iter([False, False, True])
    found = best_plans(LLAMA, H100, 16, 512, stop=lambda: next(asked))
    assert found.considered == 32
    assert not found.complete


@pytest.mark.parametrize(
    ("servers", "batch", "words"),
    [
        (0, 64, "field servers: must be a whole number from 1 to 125,000 (got 0)"),
        (4, 0, "field batch: must be a whole number of at least 1 (got 0)"),
        (1_000_000, 64, "field servers: must be a whole number from 1 to 125,000"),
    ],
)
def test_numbers_that_are_none_are_named(servers: int, batch: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        best_plans(LLAMA, H100, servers, batch)
    assert words in str(caught.value)


def test_a_job_that_does_not_fit_is_told_with_stage_and_need() -> None:
    with pytest.raises(InputError) as caught:
        timed(job_of(data=32, microbatches=8, microbatch_size=4), "mine.job.json")
    assert "mine.job.json, machine, field memory_gb: the plan does not fit: stage 0 needs" in str(
        caught.value
    )


# One job, one answer.


def test_the_command_and_the_ranking_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_strategy("llama3-8b", "--servers", "4", "--machine", "h200", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    ranking = best_plans(LLAMA, MACHINES["h200"], 4, MODELS["llama3-8b"].batch)
    assert found["iteration_ms"] == ranking.best.total_ms
    assert (found["considered"], found["too_large"]) == (ranking.considered, ranking.too_large)
    for told, one in zip(found["plans"], ranking.ranked, strict=False):
        assert {key: told[key] for key in asdict(one.plan)} == asdict(one.plan)
        spent = sum(ms for key, ms in told["time"].items() if key != "utilisation")
        assert spent == pytest.approx(told["iteration_ms"], rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("llama3-70b",), "is for llama3-8b on 8 servers, not llama3-70b on 8"),
        (("llama3-8b", "--servers", "4"), "is for llama3-8b on 8 servers, not llama3-8b on 4"),
        (("llama3-8b", "--memory-gb", "10"), "the plan does not fit: stage 0 needs"),
        (("llama3-8b", "--machine", "tpu"), "field --machine: must be one of a100, h100"),
        (("llama3-8b", "--gpus-per-server", "12"), "field tensor: must divide the GPUs of a"),
    ],
)
def test_a_job_file_that_does_not_suit_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    file = tmp_path / "r1.job.json"
    file.write_bytes(dump_job(R1))
    with pytest.raises(InputError) as caught:
        run_strategy(*arguments, "--fix", str(file))
    assert words in str(caught.value)


def run_strategy(*arguments: str) -> int:
    """Run the command as a program does, errors raised."""
    top = OneLineParser(prog="topox")
    strategy_command.add(top.add_subparsers(required=True))
    options = top.parse_args(["strategy", *arguments])
    status = int(options.run(options))
    write_what_waits()
    return status


# Files.


def test_a_plan_of_an_earlier_version_is_refused_in_one_line() -> None:
    old = (
        b'{"format": "topox-strategy", "version": 1, "model": "llama3-8b", "servers": 4, "plan": {"tensor": 8, '
        b'"pipeline": 1, "data": 4, "microbatches": 8, "microbatch_size": 1}}'
    )
    with pytest.raises(
        InputError, match=r"p\.strategy\.json, field plan: is no longer read .* as a job"
    ):
        load_strategy(old, "p.strategy.json")
    with pytest.raises(InputError, match="field operators: is missing"):
        load_strategy(old.split(b', "plan"')[0] + b"}", "p.strategy.json")
    kept = Strategy("m", 1, (Placement("a", 1),))
    assert load_strategy(dump_strategy(kept), "s.strategy.json") == kept


# Task graphs.


def test_a_ranked_plan_makes_a_graph_of_all_its_servers() -> None:
    best = best_plans(LLAMA, H100, 4, 64).best
    graph, cluster = task_graph(best.job), suggested_cluster(best.job, 8)
    assert (graph.servers, cluster.servers, cluster.ports_per_server) == (4, 4, 8)
    assert graph.name.startswith("Llama 3 8B: ")
    busy = [0.0] * 4
    for task in graph.tasks:
        if task.server is not None and task.duration_ms is not None:
            busy[task.server] += task.duration_ms / cluster.devices_per_server
    assert max(busy) <= best.total_ms * (1 + 1e-9)


def test_data_parallel_sums_every_gradient_in_fp32_over_all_servers() -> None:
    job = job_of(tensor=8, data=4, microbatches=2).changed(schedule__overlap_gradients=False)
    tasks = [task for task in task_graph(job).tasks if task.members]
    assert {task.members for task in tasks} == {(0, 1, 2, 3)}
    sizes = {task.kind: task.size_bytes for task in tasks}
    assert sizes == {
        "reduce_scatter": 4 * LLAMA.parameters,
        "all_gather": 2 * LLAMA.parameters,
    }


def test_context_parallel_gathers_keys_and_values_and_experts_exchange_tokens() -> None:
    apart = {"schedule": Schedule(overlap_gradients=False)}
    keys = task_graph(job_of(tensor=8, context=2, microbatches=3).changed(**apart)).tasks
    found = [task for task in keys if task.parallelism == "cp"]
    # A gather of keys and values a layer forward, a scatter of their gradients backward; one task a pass.
    assert len(found) == 2 * 3
    assert {task.size_bytes for task in found} == {32 * 2 * 2 * 8192 * 1024.0}
    tokens = task_graph(
        job_of(MIXTRAL, tensor=8, data=4, expert=4, microbatches=3).changed(**apart)
    ).tasks
    swaps = [task for task in tokens if task.kind == "all_to_all"]
    assert {task.size_bytes for task in swaps} == {32 * 2 * 2 * 2 * 8192 * 4096.0}
    assert len(swaps) == 2 * 3
    assert {task.members for task in swaps} == {(0, 1, 2, 3)}


def test_an_expert_s_gradients_are_summed_over_its_copies_only() -> None:
    job = job_of(MIXTRAL, tensor=8, data=4, expert=2, microbatches=2, zero=0)
    tasks = task_graph(job.changed(schedule__overlap_gradients=False)).tasks
    found = [(task.members, task.size_bytes) for task in tasks if task.kind == "all_reduce"]
    experts = 4 * 32 * 8 * MIXTRAL.expert_parameters / 2
    shared = 4 * (MIXTRAL.parameters - 32 * 8 * MIXTRAL.expert_parameters)
    assert sorted(found) == [((0, 1, 2, 3), shared), ((0, 2), experts), ((1, 3), experts)]


def test_replicas_update_a_part_each() -> None:
    alone, shared = job_of(tensor=8), job_of(tensor=8, data=4)
    assert stage_update_ms(shared, 0) == pytest.approx(stage_update_ms(alone, 0) / 4, rel=1e-12)
