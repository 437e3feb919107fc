"""An iteration on a rail: byte classes, order, folding; its phases and windows by the paper's definition."""

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.refusal import refusal
from tests.topox_core.rails.rail_iterations import issued, waits
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.registry import FABRICS
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import Task
from topox_core.model.transfer_graph import TRANSFER, transfer_ms
from topox_core.rails.advice import byte_classes
from topox_core.rails.builder import as_task_graph, build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import (
    ALL_GATHER,
    BACKWARD,
    COMPUTE,
    FORWARD,
    KINDS,
    REDUCE_SCATTER,
    SEND,
    Rail,
    RailIteration,
)
from topox_core.rails.presets import PRESETS, changed
from topox_core.rails.timing import durations_ms
from topox_core.rails.window_lengths import MIB, by_class
from topox_core.rails.windows import strip, windows_by_stage, windows_of_execution
from topox_core.schedule.settings import Settings
from topox_core.training.costs.collectives import stage_update_ms
from topox_core.training.costs.passes import chunk_passes
from topox_core.training.job import JOBS, Job
from topox_core.training.pipeline.graph import suggested_cluster
from topox_core.training.pipeline.program import Spread, instances
from topox_core.training.plan import dealt

PAPER = PRESETS["llama3-8b-perlmutter"]
SMALL = changed(PRESETS["llama3-70b"], {"gpus": 32, "pipeline": 2, "data": 2, "microbatches": 4})


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Any small job: degrees, schedules and FSDP's choices at random."""
    model = draw(st.sampled_from(["llama3-70b", "mixtral-8x7b"]))
    pipeline, context = draw(st.sampled_from([1, 2, 3, 4])), draw(st.sampled_from([1, 2]))
    data = draw(st.sampled_from([1, 2, 4]))
    schedule = draw(st.sampled_from(["1f1b", "afab", "interleaved"][: 3 if pipeline > 1 else 2]))
    interleaved = schedule == "interleaved"
    experts = [one for one in (1, 2, 4) if data % one == 0 and (one == 1 or model[0] == "m")]
    return changed(
        PRESETS[model].changed(
            shape__tied=draw(st.booleans()), plan__capacity=draw(st.sampled_from([1.0, 1.25]))
        ),
        {
            "gpus": 8 * context * pipeline * data,
            "pipeline": pipeline,
            "context": context,
            "data": data,
            "expert": draw(st.sampled_from(experts)),
            "schedule": schedule,
            "virtual_stages": draw(st.sampled_from([2, 3])) if interleaved else 1,
            "microbatches": draw(st.integers(1, 3)) * (pipeline if interleaved else 1),
            "fsdp": draw(st.booleans()),
            "recompute": draw(st.booleans()),
            "reshard": draw(st.booleans()),
            "regather": draw(st.booleans()),
            "reduce": draw(st.sampled_from(["layer", "pass", "last"])),
            "split_sends": draw(st.booleans()),
            "host_ms": draw(st.sampled_from([0.0, 1.0])),
        },
    )


Totals = dict[tuple[str, str], tuple[int, float]]


def enumerated(iteration: RailIteration, rank: int) -> Totals:
    """A rank's (parallelism, operation) with its calls and summed tensors, as built."""
    nodes = [node for node in issued(iteration, rank) if iteration.kind[node] != COMPUTE]
    return totals(
        (
            iteration.groups[iteration.group[node]].parallelism,
            KINDS[iteration.kind[node]],
            1,
            float(iteration.size_bytes[node]),
        )
        for node in nodes
    )


def classed(job: Job, stage: int) -> Totals:
    return totals(
        (one.parallelism, one.operation, one.calls * one.times, one.size_bytes * one.times)
        for one in byte_classes(job, stage)
    )


def totals(rows: Iterable[tuple[str, str, int, float]]) -> Totals:
    calls, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for parallelism, operation, count, size in rows:
        calls[parallelism, operation] += count
        sizes[parallelism, operation] += size
    return {key: (calls[key], sizes[key]) for key in calls}


def test_the_papers_preset_has_the_papers_byte_classes() -> None:
    classes = {one.operation: one for one in byte_classes(PAPER)}
    counted = {name: one.counted_bytes / MIB for name, one in classes.items()}
    assert counted == {
        "reduce_scatter": pytest.approx(3829.25, abs=0.25),
        "all_gather": pytest.approx(957.325, abs=0.075),
        "send": 64,
        "all_reduce": pytest.approx(0.5, abs=0.5),
    }
    # 16 layers and the table, in one pass (the published traces show 17 calls).
    assert classes["all_gather"].calls == classes["reduce_scatter"].calls == 17
    # Around a ring of two: everybody sends its half.
    assert classes["reduce_scatter"].wire_bytes == classes["reduce_scatter"].size_bytes / 2


def test_a_job_on_rails_is_changed_by_its_own_names_and_by_those_of_older_files() -> None:
    for name in ("llama3-8b-perlmutter", "toy"):
        old = {"schedule": "afab", "fsdp": False, "recompute": False, "iteration_ms": "none"}
        new = {"order": "afab", "zero": 0, "recompute": "none", "iteration_ms": 0}
        assert changed(PRESETS[name], old) == changed(PRESETS[name], new)
    turns = changed(SMALL, {"schedule": "interleaved", "virtual_stages": 2, "fsdp": True})
    assert (turns.schedule.virtual, turns.plan.zero) == (2, 3)
    other = changed(SMALL, {"machine": "a100", "shape": "llama3-8b"})
    assert (other.machine.nic_gbps, other.shape.sequence) == (400, SMALL.shape.sequence)


@pytest.mark.parametrize("name", ["moe", "fsdp", "llama3-8b"])
def test_what_a_class_is_said_to_send_takes_as_long_as_what_is_simulated(name: str) -> None:
    job = JOBS[name]
    iteration, rail = build(job), Rail(nic_gbps=job.machine.network_gbps)
    # Of a message it says what is sent or received; it is sent by one of its two.
    mine = [one for one in issued(iteration, 0) if iteration.kind[one] not in (COMPUTE, SEND)]
    sent = sum(one.iteration_bytes for one in byte_classes(job) if one.operation != "send")
    simulated_ms = durations_ms(iteration, rail)[mine].sum()
    assert transfer_ms(sent, rail.nic_gbps) == pytest.approx(simulated_ms)


@pytest.mark.parametrize("name", JOBS)
def test_the_rails_of_a_server_carry_together_what_its_ports_do_on_the_other_pages(
    name: str,
) -> None:
    job = JOBS[name]
    rail, whole = as_task_graph(job)[1], suggested_cluster(job)
    gpus = job.machine.gpus_per_server
    assert gpus * rail.ports_per_server * rail.port_gbps == pytest.approx(
        whole.ports_per_server * whole.port_gbps
    )


@examples(60)
@given(jobs())
def test_the_classes_hold_all_that_a_built_iteration_moves(job: Job) -> None:
    iteration = build(job)
    for stage in range(job.plan.pipeline):
        counted, expected = enumerated(iteration, stage * job.plan.replicas), classed(job, stage)
        assert counted.keys() == expected.keys()
        for key, found in counted.items():
            assert found == pytest.approx(expected[key], rel=1e-9)


@examples(60)
@given(jobs())
def test_numbers_are_an_order_that_every_rank_and_every_wait_agrees_with(job: Job) -> None:
    iteration = build(job)
    waiting = np.repeat(np.arange(len(iteration)), np.diff(iteration.pred_ptr))
    assert (iteration.pred_idx < waiting).all()
    seen = np.zeros(len(iteration), int)
    for rank in range(iteration.ranks):
        own = np.array(issued(iteration, rank), int)
        assert (np.diff(own) > 0).all()
        np.add.at(seen, own, 1)
        for node in own[iteration.kind[own] != COMPUTE]:
            assert rank in iteration.groups[iteration.group[node]].ranks
        assert (iteration.rank[own[iteration.kind[own] == COMPUTE]] == rank).all()
    # Computing is issued by one rank, a communication by all of its group.
    sizes = np.array([len(group.ranks) for group in iteration.groups] + [1])
    assert (seen == sizes[iteration.group]).all()


@pytest.mark.parametrize("reduce", ["layer", "pass", "last"])
def test_weights_on_the_rail_are_the_model(reduce: str) -> None:
    """All stages together gather every parameter once a gathering pass, and reduce every gradient."""
    job = changed(SMALL, {"reduce": reduce, "regather": False})
    iteration = build(job, fold=True)
    share = job.shape.parameters / job.plan.tensor
    gathered = iteration.size_bytes[iteration.kind == ALL_GATHER].sum()
    reduced = iteration.size_bytes[iteration.kind == REDUCE_SCATTER].sum()
    assert gathered == pytest.approx(2 * share * job.plan.microbatches)
    assert reduced == pytest.approx(4 * share * (1 if reduce == "last" else job.plan.microbatches))


@examples(30)
@given(jobs())
def test_merging_the_layers_keeps_bytes_and_computing(job: Job) -> None:
    apart, merged = build(job, fold=True), build(job, fold=True, by_layer=False)
    assert len(merged) <= len(apart)

    for stage in range(job.plan.pipeline):
        one, other = (
            {key: size for key, (_, size) in enumerated(built, stage).items()}
            for built in (apart, merged)
        )
        assert one == pytest.approx(other)
    assert apart.duration_ms.sum() == pytest.approx(merged.duration_ms.sum())


@given(jobs())
def test_a_rail_computes_what_the_job_s_closed_form_does(job: Job) -> None:
    """Passes with the host's launch, and updates, of every stage; what crosses servers apart."""
    iteration, closed = build(job, fold=True), chunk_passes(job)
    computing = iteration.kind == COMPUTE
    for stage in range(job.plan.pipeline):
        own = computing & (iteration.rank == stage)
        for work, way in ((FORWARD, "forward"), (BACKWARD, "backward")):
            passes = [getattr(one, way) for one in closed[stage :: job.plan.pipeline]]
            expected = job.plan.microbatches * sum(
                one.compute_ms + one.tensor_ms + one.host_ms for one in passes
            )
            found = iteration.duration_ms[own & (iteration.work == work)].sum()
            assert found == pytest.approx(expected, rel=1e-9)
        updates = np.array([label == "update" for label in iteration.label])
        (found,) = iteration.duration_ms[own & updates]
        assert found == pytest.approx(stage_update_ms(job, stage), rel=1e-9)


def waited_for(iteration: RailIteration, name: str) -> set[str]:
    return {iteration.label[i] for i in waits(iteration, iteration.label.index(name))}


def test_a_gather_runs_at_most_one_layer_ahead() -> None:
    iteration = build(SMALL, fold=True)
    assert waited_for(iteration, "gather layer 5") == {"forward 0 layer 3", "gather layer 4"}
    assert waited_for(iteration, "forward 0 layer 5") == {"forward 0 layer 4", "gather layer 5"}


def test_a_transfer_waits_for_its_sender_and_for_the_receivers_pass_before() -> None:
    """Stage 1 posts its second receive when its first backward pass is over, gradients scattered."""
    found = waited_for(build(PAPER, fold=True), "send activation 1 to stage 1")
    assert found == {"forward 1 layer 15", "backward 0 layer 16", "scatter layer 16"}


def test_126_layers_over_16_stages_leave_one_out_at_both_ends() -> None:
    assert [len(layers) for layers in dealt(126, 16)] == [7, *[8] * 14, 7]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"data": 4},
            "preset llama3-8b-perlmutter, field gpus: must be tensor x context x pipeline x data = 4 x 1 x 2 x 4 = 32 "
            "(got 16)",
        ),
        (
            {"pipeline": 64, "gpus": 512},
            "field pipeline: must leave every stage a layer: the number of stages may be 32 at most (got 64; 32 would do)",
        ),
        ({"tensor": 2, "data": 4}, "field tensor: must be gpus_per_server, 4 (got 2)"),
        ({"expert": 2}, "field expert: must divide the experts of a layer, 1 (got 2; 1 would do)"),
        (
            {"context": 3, "gpus": 48},
            "field context: must divide the tokens of a sequence, 8,192 (got 3; 2 and 4 would do)",
        ),
        (
            {"schedule": "interleaved"},
            "schedule, field virtual: must be 2 or more when the order is interleaved, and 1 otherwise (got 1)",
        ),
        (
            {"schedule": "interleaved", "virtual_stages": 2, "microbatches": 3},
            "field microbatches: must be a multiple of pipeline, 2, to interleave (got 3; 2 and 4 would do)",
        ),
        (
            {"virtual_stages": 2},
            "schedule, field virtual: must be 2 or more when the order is interleaved, and 1 otherwise (got 2)",
        ),
        (
            {"schedule": "gpipe"},
            "schedule, field order: must be one of 1f1b, afab, interleaved (got 'gpipe')",
        ),
        ({"reduce": "never"}, "field reduce: must be one of layer, pass, last"),
        ({"microbatches": 0}, "field microbatches: must be from 1 to 65,536 (got 0)"),
        ({"microbatches": 2.5}, "field microbatches: must be a whole number"),
        ({"nic_gbps": -1.0}, "field nic_gbps: must be from 1e-06 to 1e+12 (got -1)"),
        ({"machine": "tpu"}, "field machine: unknown machine (expected one of a100, h100"),
        ({"host_ms": -1.0}, "field host_ms: must be at least 0 (got -1)"),
        (
            {"iteration_ms": 1e300},
            "field iteration_ms: must be at most 1e+09 (got 1e+300)",
        ),
        ({"fsdp": "yes"}, "field fsdp: must be true or false"),
        ({"fsdp": 1}, "field fsdp: must be true or false"),
        ({"skew": 1.0}, "field skew: unknown key"),
        ({"dta": 2}, "field dta: unknown key (did you mean 'data'?)"),
    ],
)
def test_a_job_that_does_not_fit_is_refused_in_one_line(
    changes: dict[str, object], line: str
) -> None:
    assert line in refusal(changed, PAPER, changes)


@pytest.mark.parametrize("reduce", ["last", "pass"])
def test_a_burst_goes_over_one_ring_after_the_other(reduce: str) -> None:
    """Weights lie on the ring of all 64 ranks, experts on rings of 8: each is set up once a burst, not once a layer."""
    job = changed(PRESETS["deepseek-16b"], {"microbatches": 1, "reduce": reduce})
    iteration = build(job, fold=True)
    run = simulate(iteration, Rail())
    layers = (iteration.kind == REDUCE_SCATTER) & (iteration.layer >= 0)
    burst = [node for node in np.argsort(run.start_ms, kind="stable") if layers[node]]
    rings = [iteration.groups[iteration.group[node]].name.split(".")[0] for node in burst]
    assert len(rings) == 2 * job.shape.layers
    assert [ring for ring, _ in groupby(rings)] == ["fsdp", "experts"]


def test_every_fabric_can_run_an_iteration() -> None:
    job = changed(
        PRESETS["mixtral-8x7b"],
        {
            "gpus": 32,
            "pipeline": 2,
            "data": 2,
            "expert": 2,
            "microbatches": 1,
            "iteration_ms": None,
        },
    )
    graph, cluster = as_task_graph(job, by_layer=False)
    assert graph.servers == cluster.servers == job.servers == 4
    runs = compare(graph, cluster, Settings.of(engine="list"), FABRICS)
    assert list(runs) == list(FABRICS)
    electrical = Rail(nic_gbps=job.machine.nic_gbps, optical=False)
    undisturbed = simulate(build(job, by_layer=False), electrical).iteration_ms
    # An ideal switch is an electrical rail: what both call the undisturbed iteration is the same.
    assert runs["ideal"].iteration_ms == pytest.approx(undisturbed, rel=0.01)


# -- folding: symmetric replicas are stored once ------------------------------------------------------


@examples(40)
@given(jobs())
def test_every_rank_does_what_its_representative_does(job: Job) -> None:
    folded, whole = build(job, fold=True), build(job)
    assert folded.ranks == job.plan.pipeline
    assert whole.ranks == job.servers == folded.stands_for.sum()
    assert (whole.stands_for == 1).all()
    for rank in range(whole.ranks):
        stage = rank // job.plan.replicas
        assert whole.stage[rank] == stage
        mine, its = issued(whole, rank), issued(folded, stage)
        assert [whole.label[node] for node in mine] == [folded.label[node] for node in its]
        for column in ("kind", "duration_ms", "size_bytes", "microbatch", "layer"):
            assert (getattr(whole, column)[mine] == getattr(folded, column)[its]).all()
        place, its_place = ({node: i for i, node in enumerate(of)} for of in (mine, its))
        for node, other in zip(mine, its, strict=True):
            if whole.kind[node] != COMPUTE:
                group, one = whole.groups[whole.group[node]], folded.groups[folded.group[other]]
                assert (group.parallelism, len(group.ranks)) == (one.parallelism, one.size)
            # What a rank's node waits for of its own is what its representative's node waits for of
            # its own.
            own = {place[one] for one in waits(whole, node) if one in place}
            assert own == {its_place[one] for one in waits(folded, other) if one in its_place}


@examples(25)
@given(jobs())
def test_a_collective_waits_for_all_of_its_ranks_and_for_nobody_else(job: Job) -> None:
    whole = build(job)
    for node in np.flatnonzero((whole.kind != COMPUTE) & (whole.kind != SEND)):
        members = set(whole.groups[whole.group[node]].ranks)
        computed = [
            int(whole.rank[one]) for one in waits(whole, int(node)) if whole.kind[one] == COMPUTE
        ]
        # Where a stage has sent after its last pass, the tied tables' sum waits for what it sent.
        tied = whole.label[node] == "reduce tied table" and set(computed) < members
        assert set(computed) in (members, set()) or tied


def test_groups_by_hand() -> None:
    """Two replicas of context, four of data, experts shared by two: ranks are numbered context first."""
    job = changed(
        PRESETS["mixtral-8x7b"], {"gpus": 64, "pipeline": 1, "data": 4, "context": 2, "expert": 2}
    )
    assert instances(job) == {
        Spread.REPLICA: [0, 1, 2, 3, 4, 5, 6, 7],
        Spread.WEIGHTS: [0] * 8,
        Spread.CONTEXT: [0, 0, 1, 1, 2, 2, 3, 3],
        Spread.EXCHANGE: [0, 1, 0, 1, 2, 3, 2, 3],
        Spread.EXPERTS: [0, 0, 1, 1, 0, 0, 1, 1],
    }
    ranks = {group.name: group.ranks for group in build(job).groups}
    assert ranks["ep.s0.3"] == (5, 7)
    assert ranks["experts.s0.1"] == (2, 3, 6, 7)


def talk(name: str, source: int, destination: int, parallelism: str, *after: str) -> Task:
    return Task(
        name,
        "communication",
        dependencies=after,
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
        Task(
            "g",
            "all_gather",
            dependencies=("a",),
            members=(0, 1, 2),
            size_bytes=3e6,
            parallelism="fsdp",
        ),
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
