"""The task graph of a job: as long as the closed form where nothing overlaps, and the same folded and unfolded."""

from collections import Counter
from graphlib import TopologicalSorter

import numpy as np
import pytest
from hypothesis import given

from tests.conftest import examples
from tests.refusal import refusal
from tests.topox_core.training.random_jobs import jobs
from tests.topox_core.training.reference_jobs import JOBS, R1, R2, R4, R5, R6
from tests.topox_core.training.reference_walk import copies, length_ms, own_ms
from topox_core.fabrics.fluid.links import non_blocking, shared_fairly
from topox_core.fabrics.run import FabricRequest
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import never
from topox_core.schedule.settings import Settings
from topox_core.training.costs.collectives import Groups, stage_weights
from topox_core.training.iteration import iteration
from topox_core.training.job import Job
from topox_core.training.pipeline.graph import Unfolding, suggested_cluster, task_graph
from topox_core.training.pipeline.program import Program
from topox_core.training.pipeline.steps import program

# What a graph cannot hold: latencies on the network, and splitting messages that are not split anyway.
PLAIN = {"machine__network_call_us": 0.0, "machine__network_step_us": 0.0}
WHOLE = {"schedule__split_sends": False}
SHORT_R4 = R4.changed(plan__microbatches=4)


def unfolded_ms(built: Program) -> float:
    """How long all replicas take together, each communication as long as the closed form says."""
    own = [own_ms(step, built.job) for step in built.steps]
    waits = {task.id: task.dependencies for task in Unfolding(built).tasks()}
    lasts = dict(zip(waits, np.repeat(own, copies(built)), strict=True))
    end: dict[str, float] = {}
    for name in TopologicalSorter(waits).static_order():
        end[name] = max((end[one] for one in waits[name]), default=0.0) + lasts[name]
    return max(end.values())


def fair_ms(task_graph: TaskGraph, job: Job) -> float:
    """How long it takes on a non-blocking switch that transfers share fairly."""
    request = FabricRequest(lower(task_graph), suggested_cluster(job), Settings.of(engine="list"))
    return shared_fairly(request, non_blocking(request), never).makespan_ms


@pytest.mark.parametrize(
    ("job", "longer"),
    [
        (R1.changed(**WHOLE), 1e-6),
        (R2, 1e-6),
        (SHORT_R4.changed(**WHOLE), 1e-6),
        # Exchanges of experts, and messages that share a link, take a little longer.
        (R5, 2e-3),
    ],
    ids=str,
)
def test_a_program_and_a_graph_on_a_shared_network_take_as_long_as_the_closed_form(
    job: Job, longer: float
) -> None:
    expected = pytest.approx(iteration(job).total_ms, rel=1e-12)
    assert length_ms(program(job)) == expected == unfolded_ms(program(job))
    plain = job.changed(**PLAIN)
    stretched = fair_ms(task_graph(plain), plain) / iteration(plain).total_ms
    assert 1 - 1e-6 < stretched < 1 + longer


def test_the_first_job_has_236_tasks_whose_bytes_are_those_of_whole_servers() -> None:
    graph, cluster = task_graph(R1), suggested_cluster(R1)
    counted = Counter((task.kind, task.size_bytes) for task in graph.tasks)
    assert counted == {
        ("forward", None): 64,
        ("backward", None): 64,
        ("communication", 64 * 2**20): 96,
        **Counter(("all_reduce", 4 * 8 * stage_weights(R1, stage).held) for stage in range(4)),
        ("update", None): 8,
    }
    assert (cluster.servers, cluster.devices_per_server) == (8, 1)


@examples(50)
@given(jobs())
def test_folded_and_unfolded_run_equally_long(job: Job) -> None:
    built = program(job)
    assert unfolded_ms(built) == pytest.approx(length_ms(built), rel=1e-12)
    graph = task_graph(job)  # every name is known, nothing waits in a circle
    assert len(graph.tasks) == sum(copies(built))
    assert all(
        task.server is None or task.server < suggested_cluster(job).servers for task in graph.tasks
    )


@examples(50)
@given(jobs())
def test_without_overlap_a_program_is_no_longer_than_the_closed_form(job: Job) -> None:
    """It is shorter only at the end, where stages need not wait for the longest update of another."""
    # A message inside a server that nobody waits for lengthens the pass that receives it.
    sends = job.schedule.overlap_sends and Groups.of(job).neighbours.crosses
    plan = {"plan__zero": 0, "schedule__overlap_gradients": False, "schedule__overlap_sends": sends}
    plan |= WHOLE | {"schedule__overlap_exchanges": False}
    apart = job.changed(**plan, shape__tied=False)
    assert length_ms(program(apart)) == pytest.approx(iteration(apart).total_ms, rel=1e-9)
    ending = iteration(apart.changed(plan__zero=1))
    shared_out = length_ms(program(apart.changed(plan__zero=1)))
    assert (
        ending.total_ms - ending.update_ms - ending.gather_ms
        <= shared_out
        <= ending.total_ms * (1 + 1e-9)
    )


def test_gradients_that_leave_layer_by_layer_are_hidden_as_the_closed_form_says() -> None:
    job = R1.changed(schedule__overlap_gradients=True, **PLAIN, **WHOLE)
    built = program(job)
    assert sum(step.kind == "all_reduce" for step in built.steps) == job.shape.layers
    assert length_ms(built) == pytest.approx(iteration(job).total_ms, rel=1e-9)


def test_weights_that_are_split_are_gathered_layer_by_layer() -> None:
    """Sixteen layers a stage and the head, two microbatches, forward and, unless kept, backward."""
    job = JOBS["R3"]
    for changed, gathers, scatters in (
        (job, 2 * 2 * 33, 2 * 33),
        (job.changed(schedule__regather=False, schedule__reduce="last"), 2 * 33, 33),
    ):
        steps = program(changed).steps
        kinds = Counter(step.kind for step in steps)
        assert (kinds["all_gather"], kinds["reduce_scatter"]) == (gathers, scatters)
        moved = sum(step.size_bytes for step in steps if step.kind == "all_gather")
        assert moved * 33 == 2 * gathers * sum(stage_weights(job, stage).held for stage in (0, 1))
    assert length_ms(program(job)) == pytest.approx(iteration(job).total_ms, rel=0.03)


def test_a_job_of_16384_gpus_is_built_folded() -> None:
    job = R6.changed(plan__data=64, plan__microbatches=16)
    built = program(job)
    assert (job.plan.gpus, max(copies(built))) == (16_384, 128)
    assert len(built.steps) < 3_000
    assert "tasks, more than 200,000" in refusal(task_graph, job.changed(plan__microbatches=64))


def test_groups_inside_a_server_are_no_tasks() -> None:
    job = R1.changed(
        plan__tensor=2, plan__context=2, plan__pipeline=2
    )  # four GPUs a stage and replica
    assert not Groups.of(job).context.crosses
    kinds = {task.kind for task in task_graph(job).tasks}
    assert kinds == {"forward", "backward", "update", "communication"}


BY_LAYER = {"schedule__exchanges": "layer"}


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_exchanges_layer_by_layer_take_as_long_as_once_a_pass(recompute: str) -> None:
    job = R5.changed(schedule__recompute=recompute, **BY_LAYER)
    built, expected = program(job), iteration(job).total_ms
    assert length_ms(built) == pytest.approx(expected, rel=1e-12)
    calls = 6 if recompute == "full" else 4
    exchanges = [step for step in built.steps if step.kind == "all_to_all"]
    assert len(exchanges) == job.shape.layers * job.plan.microbatches * calls
    assert {step.homeward for step in exchanges} == {True, False}


def uneven(**changes: object) -> Job:
    small = {"plan__microbatches": 2, "plan__skew": 0.7, "shape__layers": 4}
    return R5.changed(**small | BY_LAYER | changes)


def test_uneven_routing_moves_the_same_bytes_and_work_to_other_places() -> None:
    skewed = uneven()
    even, graph = (task_graph(job) for job in (skewed.changed(plan__skew=0.0), skewed))
    tokens, exchanges = ([t for t in one.tasks if t.parallelism == "ep"] for one in (graph, even))
    n = skewed.plan.expert
    assert len(tokens) == len(exchanges) * n * (n - 1)
    # What each server sends in an exchange and what comes home in the next are the same bytes.
    sizes = {t.id: t.size_bytes for t in tokens}
    for name in (one for one in sizes if ".out" in one):
        stem, _, pair = name.replace(".out", ".home").rpartition(".")
        assert sizes[f"{stem}.{'-'.join(reversed(pair.split('-')))}"] == sizes[name]
    busy, same = (
        sum(t.duration_ms or 0.0 for t in one.tasks if t.kind == "forward") for one in (even, graph)
    )
    assert busy == pytest.approx(same, rel=1e-9)
    assert len({t.duration_ms for t in graph.tasks if t.id.startswith("f.experts.")}) > n
    assert graph == task_graph(skewed) != task_graph(uneven(plan__seed=1))


@pytest.mark.parametrize(("tensor", "recompute"), [(8, "none"), (4, "full"), (2, "none")])
def test_the_tasks_of_uneven_routing_are_counted_before_they_are_made(
    tensor: int, recompute: str
) -> None:
    job = uneven(plan__tensor=tensor, schedule__recompute=recompute)
    graph = task_graph(job)  # every name is known, nothing waits in a circle
    assert len(graph.tasks) == Unfolding(program(job)).count()


def test_passes_whose_exchanges_overlap_wait_for_their_own_data_alone() -> None:
    job = uneven(plan__pipeline=1, plan__skew=0.0, schedule__overlap_exchanges=True)
    graph, apart = (
        task_graph(job.changed(schedule__overlap_exchanges=one)) for one in (True, False)
    )
    waits = {t.id: t.dependencies for t in graph.tasks}
    assert waits["f.r0.s0.m1.l0"] == ()
    for task in graph.tasks:
        if task.parallelism == "dp":
            assert all(any(f".m{m}." in name for name in task.dependencies) for m in range(2))
    assert fair_ms(graph, job) < fair_ms(apart, job)
