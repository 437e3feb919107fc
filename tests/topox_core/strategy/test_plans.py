"""Parallel plans of transformers: memory on hand cases, time in closed form, ranking, files, task graphs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.facts import facts
from topox_core.strategy.plan_graph import plan_graph
from topox_core.strategy.plan_memory import (
    layer_activation_bytes,
    memory,
    stage_memory,
    stage_parameters,
)
from topox_core.strategy.plan_search import best_plans, plans, timed
from topox_core.strategy.plan_time import plan_time
from topox_core.strategy.plans import GpuCluster, ParallelPlan
from topox_core.strategy.strategy_file import dump_plan, dump_strategy, load_plan, load_strategy
from topox_core.strategy.transformers import SHAPES, Shape
from topox_core.workloads.arithmetic import Transformer

LLAMA = SHAPES["llama3-8b"]
MIXTRAL = SHAPES["mixtral-8x7b"]
# Four layers, h = 64, GELU of 4h, as many heads of keys as of queries.
SMALL = Shape("small", "small", "", Transformer(4, 64, 100, 256, 2, 64), 4, 4, 32, 8)
ONE = ParallelPlan(1, 1, 1, 1, 1, 8, 1)


# Memory.


def test_a_layer_with_a_gelu_block_keeps_32_bytes_a_token_and_hidden_element() -> None:
    assert layer_activation_bytes(SMALL, ONE) == 32 * 32 * 64
    assert (
        layer_activation_bytes(SMALL, replace(ONE, tensor=2, microbatch_size=3))
        == 32 * 32 * 64 * 3 / 2
    )
    assert layer_activation_bytes(SMALL, replace(ONE, context=4)) == 32 * 32 * 64 / 4


def test_memory_of_a_small_model_on_one_gpu_by_hand() -> None:
    layer = 4 * 64 * 64 + 2 * 64 * 256 + 2 * 64
    count = 4 * layer + 2 * 100 * 64 + 64
    found = memory(SMALL, ONE)
    assert found.parameters == count
    assert (found.weights_bytes, found.gradients_bytes, found.optimizer_bytes) == (
        2 * count,
        4 * count,
        12 * count,
    )
    assert found.activations_bytes == 4 * 32 * 32 * 64 + 6 * 32 * 100
    assert found.total_bytes == 18 * count + found.activations_bytes


def test_recomputing_keeps_layer_inputs_and_one_layer_at_work() -> None:
    found = memory(SMALL, replace(ONE, recompute=True))
    assert found.activations_bytes == 4 * 2 * 32 * 64 + 32 * 32 * 64 + 6 * 32 * 100


def test_the_first_stage_of_1f1b_keeps_as_many_microbatches_as_there_are_stages() -> None:
    plan = replace(ONE, pipeline=4)
    each = layer_activation_bytes(SMALL, plan)
    kept = [stage_memory(SMALL, plan, stage).activations_bytes for stage in range(4)]
    assert kept == [4 * each, 3 * each, 2 * each, each + 6 * 32 * 100]
    assert stage_memory(SMALL, replace(plan, microbatches=2), 0).activations_bytes == 2 * each


def test_replicas_share_the_optimizer_s_state() -> None:
    alone, shared = memory(SMALL, ONE), memory(SMALL, replace(ONE, data=4, context=2))
    assert shared.optimizer_bytes == alone.optimizer_bytes / 8
    assert shared.weights_bytes == alone.weights_bytes


def test_llama_3_8b_on_eight_gpus_holds_an_eighth_of_its_state_each() -> None:
    found = memory(LLAMA, ParallelPlan(8, 1, 1, 1, 1, 8, 1))
    assert (
        found.weights_bytes + found.gradients_bytes + found.optimizer_bytes
        == 18 * 8_030_261_248 / 8
    )


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize(
    "plan", [ONE, ParallelPlan(4, 3, 2, 2, 2, 4, 1), ParallelPlan(8, 5, 8, 1, 8, 4, 1)]
)
def test_the_stages_together_hold_every_parameter_once(shape: Shape, plan: ParallelPlan) -> None:
    total = 0.0
    for stage in range(plan.pipeline):
        shared, experts = stage_parameters(shape, plan, stage)
        total += plan.tensor * (shared + plan.expert * experts)
    assert total == pytest.approx(shape.parameters, rel=1e-12)


def test_splitting_more_never_needs_more_memory() -> None:
    for field in ("tensor", "context", "data"):
        sizes = [memory(LLAMA, replace(ONE, **{field: k})).total_bytes for k in (1, 2, 4, 8)]
        assert all(a > b for a, b in pairwise(sizes))
    experts = [memory(MIXTRAL, replace(ONE, data=8, expert=k)).weights_bytes for k in (1, 2, 4, 8)]
    assert all(a > b for a, b in pairwise(experts))


# Time.


def test_one_gpu_computes_three_forward_passes_and_nothing_else() -> None:
    cluster = GpuCluster(1, 1)
    found = plan_time(LLAMA, ONE, cluster)
    forward = LLAMA.base.stage_forward_flop(0, 1, 8192, 8192)
    assert found.compute_ms == pytest.approx(8 * 3 * forward / (989e9 * 0.55))
    assert found.total_ms == pytest.approx(found.compute_ms + found.update_ms)
    assert found.utilisation == pytest.approx(0.55 * found.compute_ms / found.total_ms)


def test_a_pipeline_wastes_stages_minus_one_slots_of_microbatches() -> None:
    plan = ParallelPlan(8, 4, 1, 1, 1, 16, 1)
    found = plan_time(LLAMA, plan, GpuCluster(4))
    slots = found.compute_ms + found.tensor_ms + found.sends_ms
    assert found.bubble_ms == pytest.approx(3 / 16 * slots)


def test_tensor_parallel_moves_four_all_reduces_a_layer() -> None:
    plan = ParallelPlan(8, 1, 1, 1, 1, 1, 1)
    once_ms = 2 * 7 / 8 * 2 * 8192 * 4096 / 450e6
    assert plan_time(LLAMA, plan, GpuCluster(1)).tensor_ms == pytest.approx(32 * 4 * once_ms)
    assert plan_time(
        LLAMA, replace(plan, recompute=True), GpuCluster(1)
    ).tensor_ms == pytest.approx(32 * 6 * once_ms)


def test_experts_move_every_copy_of_a_token_four_times() -> None:
    plan = ParallelPlan(1, 1, 8, 1, 8, 1, 1)
    once_ms = 2 * 2 * 8192 * 4096 * 7 / 8 / 450e6
    assert plan_time(MIXTRAL, plan, GpuCluster(1)).expert_ms == pytest.approx(32 * 4 * once_ms)
    assert plan_time(LLAMA, replace(plan, expert=1), GpuCluster(1)).expert_ms == 0


def test_groups_within_a_server_use_its_own_links() -> None:
    cluster = GpuCluster(2)
    assert cluster.bytes_per_ms(8) == 450e6
    assert cluster.bytes_per_ms(16) == 400 * 1e6 / 8


def test_a_faster_network_is_never_slower() -> None:
    for plan in (ParallelPlan(8, 2, 2, 2, 1, 4, 1), ParallelPlan(4, 1, 8, 2, 1, 4, 1)):
        times = [
            plan_time(LLAMA, plan, GpuCluster(8, network_gbps=speed)).total_ms
            for speed in (50, 100, 400, 800)
        ]
        assert times == sorted(times, reverse=True)


# Ranking.


def test_plans_use_all_gpus_and_the_whole_batch() -> None:
    cluster = GpuCluster(4)
    found = list(plans(MIXTRAL, cluster, 64))
    assert len(set(found)) == len(found) > 100
    assert {plan.gpus for plan in found} == {32}
    assert {plan.batch for plan in found} == {64}
    assert {plan.expert for plan in found} == {1, 2, 4, 8}
    for field in ("tensor", "pipeline", "data", "context", "microbatch_size", "recompute"):
        assert len({getattr(plan, field) for plan in found}) > 1


def test_ranked_plans_fit_and_come_fastest_first() -> None:
    cluster = GpuCluster(4)
    found = best_plans(LLAMA, cluster, 64)
    times = [one.time.total_ms for one in found.ranked]
    assert times == sorted(times)
    assert all(one.memory.total_bytes <= 80e9 for one in found.ranked)
    assert found.too_large > 0
    assert found.considered == len(found.ranked) + found.too_large
    assert found.best == timed(LLAMA, found.best.plan, cluster)
    assert found.best.time.total_ms == min(
        plan_time(LLAMA, plan, cluster).total_ms
        for plan in plans(LLAMA, cluster, 64)
        if memory(LLAMA, plan).total_bytes <= 80e9
    )


def test_less_memory_leaves_fewer_plans_and_none_gets_faster() -> None:
    found = [best_plans(LLAMA, GpuCluster(4, memory_gb=size), 64) for size in (80.0, 40.0, 20.0)]
    assert len(found[0].ranked) > len(found[1].ranked) > len(found[2].ranked) > 0
    assert found[0].best.time.total_ms <= found[1].best.time.total_ms <= found[2].best.time.total_ms


def test_if_none_fits_the_line_names_the_memory() -> None:
    with pytest.raises(
        InputError,
        match=r"405b, field memory_gb: none of \d+ plans fits: the smallest needs .* has 80 GB",
    ):
        best_plans(SHAPES["llama3-405b"], GpuCluster(4))


def test_llama_3_405b_fits_where_it_was_trained() -> None:
    assert best_plans(SHAPES["llama3-405b"], GpuCluster(512)).best.time.utilisation > 0.3


def test_an_enumeration_can_be_stopped() -> None:
    found = best_plans(LLAMA, GpuCluster(16), stop=lambda: True)
    assert (found.ranked, found.considered, found.complete) == ((), 0, False)


@pytest.mark.parametrize(
    ("cluster", "field"),
    [
        ({"servers": 0}, "servers"),
        ({"servers": 1, "memory_gb": -1.0}, "memory_gb"),
        ({"servers": 1, "efficiency": 1.5}, "efficiency"),
        ({"servers": 1, "network_gbps": float("nan")}, "network_gbps"),
    ],
)
def test_a_cluster_of_nothing_is_named(cluster: dict, field: str) -> None:
    with pytest.raises(InputError, match=f"field {field}: must be"):
        GpuCluster(**cluster)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (
            ParallelPlan(2, 1, 1, 1, 1, 8, 1),
            "tensor x pipeline x data x context is 2 and there are 32 GPUs",
        ),
        (
            ParallelPlan(16, 2, 1, 1, 1, 8, 1),
            "field tensor: must divide the number of heads of keys, 8 (got 16)",
        ),
        (
            ParallelPlan(8, 0, 4, 1, 1, 8, 1),
            "field pipeline: must be a whole number of at least 1 (got 0)",
        ),
        (
            ParallelPlan(1, 1, 32, 1, 3, 8, 1),
            "field expert: must divide the number of experts, 1 (got 3)",
        ),
        (ParallelPlan(1, 1, 32, 1, 1, 8, 4), "field memory_gb: stage 0 needs"),
    ],
)
def test_a_plan_that_does_not_suit_is_named(plan: ParallelPlan, words: str) -> None:
    with pytest.raises(InputError) as caught:
        timed(LLAMA, plan, GpuCluster(4))
    assert words in str(caught.value)


def test_a_batch_that_no_replicas_divide_is_named() -> None:
    with pytest.raises(InputError, match="field batch"):
        best_plans(LLAMA, GpuCluster(1), 0)


# Files.


def test_a_plan_survives_its_file_and_is_told_from_a_strategy() -> None:
    plan = ParallelPlan(4, 2, 2, 2, 1, 8, 2, True)
    data = dump_plan("llama3-8b", 4, plan)
    assert load_plan(data, "p.strategy.json") == ("llama3-8b", 4, plan)
    with pytest.raises(InputError, match="field operators: is missing"):
        load_strategy(data, "p.strategy.json")
    from topox_core.strategy.strategy import Placement, Strategy

    with pytest.raises(InputError, match="field plan: is missing"):
        load_plan(dump_strategy(Strategy("m", 1, (Placement("a", 1),))), "s.strategy.json")


def test_an_unknown_key_of_a_plan_is_named() -> None:
    data = dump_plan("llama3-8b", 4, ONE).replace(b'"tensor"', b'"tensors"')
    with pytest.raises(InputError, match=r"p\.json, plan, field tensors: unknown key"):
        load_plan(data, "p.json")


# Task graphs.


def cluster_of(servers: int) -> Cluster:
    return Cluster(
        servers=servers,
        ports_per_server=8,
        switches=8,
        ports_per_switch=servers,
        port_gbps=3200.0,
        devices_per_server=8,
    )


def test_a_pipeline_s_task_graph_takes_the_analytic_time_without_its_sends() -> None:
    plan = ParallelPlan(8, 4, 1, 1, 1, 8, 1)
    found = facts(plan_graph(LLAMA, plan, GpuCluster(4)), cluster_of(4))
    time = plan_time(LLAMA, plan, GpuCluster(4))
    # The closed form takes the last stage, with the output layer, as the pace of all.
    assert 0.85 * time.total_ms < found.critical_path_ms <= time.total_ms
    assert found.tasks_by_kind == {"forward": 32, "backward": 32, "update": 4, "communication": 48}
    assert found.bytes_by_parallelism == {"pp": 48 * 2 * 8192 * 4096}


def test_data_parallel_reduces_every_gradient_in_fp32_over_all_servers() -> None:
    tasks = plan_graph(LLAMA, ParallelPlan(8, 1, 4, 1, 1, 2, 1), GpuCluster(4)).tasks
    (only,) = [task for task in tasks if task.kind == "all_reduce"]
    assert only.members == (0, 1, 2, 3)
    assert only.size_bytes == 4 * LLAMA.parameters


def test_what_stays_in_a_server_needs_no_network() -> None:
    tasks = plan_graph(LLAMA, ParallelPlan(2, 1, 2, 2, 1, 2, 1), GpuCluster(1)).tasks
    assert {task.kind for task in tasks} == {"forward", "backward", "update"}
    assert {task.device for task in tasks} == {0, 1, 2, 3}


def test_context_parallel_gathers_keys_and_values_and_experts_exchange_tokens() -> None:
    gathers = [
        t
        for t in plan_graph(LLAMA, ParallelPlan(8, 1, 1, 2, 1, 3, 1), GpuCluster(2)).tasks
        if t.kind == "all_gather"
    ]
    assert Counter(t.size_bytes for t in gathers) == {
        32 * 2 * 2 * 8192 * 1024.0: 3,
        32 * 2 * 2 * 2 * 8192 * 1024.0: 3,
    }
    swaps = [
        t
        for t in plan_graph(MIXTRAL, ParallelPlan(8, 1, 4, 1, 4, 3, 1), GpuCluster(4)).tasks
        if t.kind == "all_to_all"
    ]
    assert Counter(t.size_bytes for t in swaps) == {32 * 2 * 2 * 2 * 8192 * 4096.0: 6}
    assert {t.members for t in swaps} == {(0, 1, 2, 3)}


def test_an_expert_s_gradients_are_reduced_over_its_copies_only() -> None:
    tasks = plan_graph(MIXTRAL, ParallelPlan(8, 1, 4, 1, 2, 2, 1), GpuCluster(4)).tasks
    found = {t.id: (t.members, t.size_bytes) for t in tasks if t.kind == "all_reduce"}
    experts = 4 * 32 * 8 * MIXTRAL.expert_parameters / 2
    assert found["sum.experts.s0.0"] == ((0, 2), experts)
    assert found["sum.experts.s0.1"] == ((1, 3), experts)
    assert found["sum.s0"] == (
        (0, 1, 2, 3),
        4 * (MIXTRAL.parameters - 32 * 8 * MIXTRAL.expert_parameters),
    )


@pytest.mark.long
def test_a_task_graph_beyond_the_limit_is_refused() -> None:
    with pytest.raises(InputError, match="would have more than 200,000 tasks"):
        plan_graph(LLAMA, ParallelPlan(1, 1, 512, 1, 1, 300, 1), GpuCluster(64))
