"""Models are the ones that were published: parameters, operators, measured times, memory."""

import json
import math
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path
from statistics import geometric_mean

import pytest

from tests.refusal import refusal
from topox_core.io.task_graph_file import load_graph
from topox_core.strategy.models import ALIASES, MODELS, named, vgg16_measured
from topox_core.strategy.operators import Blueprint, Cost, Work, roofline, table
from topox_core.strategy.recommenders import candle
from topox_core.training.iteration import iteration
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import SHAPES

LANGUAGE_MODELS = sorted(name for name, model in MODELS.items() if model.shape)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("vgg16", 138_357_544),
        # Four square matrices of attention and two dense ones a layer.
        ("bert-16", 6 * 6 * 768**2 + 768),
        ("bert-128", 12 * 6 * 1024**2 + 1024),
        ("resnet50", 25_557_032),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("llama3-405b", 405_853_388_800),
        ("mixtral-8x7b", 46_702_792_704),
    ],
)
def test_a_model_has_its_published_number_of_parameters(name: str, parameters: int) -> None:
    assert named(name).build(16).parameters == parameters


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@pytest.mark.parametrize("partitions", [1, 4])
def test_a_language_model_s_operators_take_what_a_plan_takes_on_a_server(
    name: str, partitions: int
) -> None:
    graph = named(name).build(4)
    costs = [one.costs[partitions] for one in graph.operators]
    plan = Plan(
        tensor=8,
        data=partitions,
        microbatch_size=graph.samples // partitions,
        sequence_parallel=True,
        zero=1,
    )
    job = Job(SHAPES[name], plan, MACHINES["h100"], Schedule(recompute="full"))
    (both,) = iteration(job).passes
    assert sum(one.forward_ms for one in costs) == pytest.approx(both.forward.total_ms, rel=1e-6)
    # Looking words up has no backward pass there, and the least that an operator takes here.
    backward_ms = both.backward.total_ms + 0.01
    assert sum(one.backward_ms for one in costs) == pytest.approx(backward_ms, rel=1e-6)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_can_be_built_for_any_servers_and_has_a_cost_for_every_split(name: str) -> None:
    for servers in (1, 6, 16):
        graph = MODELS[name].build(servers)
        divisors = tuple(p for p in range(1, servers + 1) if servers % p == 0)
        for operator in graph.operators:
            splits = (1,) if operator.kind == "embedding" else divisors
            assert graph.choices(operator, servers) == splits
            costs = operator.costs.values()
            assert all(cost.forward_ms > 0 and cost.backward_ms > 0 for cost in costs)
            assert all(
                math.isfinite(cost.memory_bytes) and cost.memory_bytes >= 0 for cost in costs
            )
            assert {cost.source for cost in costs} <= {"measured", "roofline", "closed form"}
            assert operator.name.isprintable() and " " not in operator.name
            assert all(weight.size_bytes > 0 for weight in operator.weights)
        names = {operator.name for operator in graph.operators}
        assert len(names) == len(graph.operators)
        waits: dict[str, list[str]] = {name: [] for name in names}
        for edge in graph.edges:
            waits[edge.consumer].append(edge.producer)
            assert edge.bytes_per_sample > 0
        assert all(len(set(given)) == len(given) for given in waits.values())
        assert set(TopologicalSorter(waits).static_order()) == names


def test_measured_tables_are_those_that_were_published(real_inputs: Path) -> None:
    for file in (real_inputs / "flexnet" / "measures").glob("*.json"):
        record, known = json.loads(file.read_text()), table(file.stem)
        for row in record["measurements"]:
            samples = record["batch_size"] // int(row["pc_str"].split("-")[-1])
            cost = Cost(row["fw_time"], row["bw_time"], row["mem_req"], "measured")
            assert known[row["name"]][samples] == cost
        assert sum(map(len, known.values())) == len(record["measurements"])


def test_candle_s_layers_are_those_of_the_published_task_graph(real_inputs: Path) -> None:
    file = real_inputs / "flexnet" / "100candle_16.fbuf"
    theirs = load_graph(file.read_bytes(), file.name)
    ours = [weight.size_bytes for one in candle(16).operators for weight in one.weights]
    reduced = [task.size_bytes for task in theirs.tasks if task.kind == "all_reduce"]
    assert sorted(ours) == sorted(reduced)


def test_vgg16_as_measured_computes_for_the_published_hundred_milliseconds() -> None:
    costs = [operator.costs[16] for operator in vgg16_measured(16).operators]
    spent_ms = sum(cost.forward_ms + cost.backward_ms for cost in costs)
    assert spent_ms == pytest.approx(100.6, abs=0.2)


@pytest.mark.parametrize(
    ("name", "servers", "share", "width", "keys"),
    [
        ("dlrm16", 16, 1024, 256, [(1024, 1024), (5120, 2048), (2048, 2048), (2048, 1)]),
        ("dlrm128", 128, 512, 128, [(2048, 2048), (10_240, 4096), (4096, 1)]),
    ],
)
def test_the_memory_formula_is_the_measured_one_for_dense_layers_and_lookups_to_the_byte(
    name: str, servers: int, share: int, width: int, keys: list[tuple[int, int]]
) -> None:
    plan, known = Blueprint("test", "", "", servers, share), table(name)
    for inputs, outputs in keys:
        plan.dense(f"Dense_{inputs}_{outputs}", inputs, outputs)
    plan.embedding("table", 10_000_000, width, 100, 8)
    *dense, lookup = plan.graph().operators
    assert len(dense) == len(keys)
    for one in dense:
        for partitions, cost in one.costs.items():
            assert cost.memory_bytes == known[one.name][servers * share // partitions].memory_bytes
    (measured,) = next(rows for key, rows in known.items() if key.startswith("Embed")).values()
    assert lookup.costs[1].memory_bytes == measured.memory_bytes


def test_the_roofline_lies_near_the_measured_dense_layers() -> None:
    """A roofline knows nothing of a GPU that is not full: right for large layers, too fast for small ones."""
    ratios = []
    for key, rows in chain(*(table(name).items() for name in ("dlrm16", "dlrm128", "candle16"))):
        kind, *sizes = key.split("_")
        if kind == "Dense" and min(map(int, sizes[:2])) >= 512:
            inputs, outputs = map(int, sizes[:2])
            work = Work(2.0 * inputs * outputs, 4.0 * (inputs + outputs), 4.0 * inputs * outputs)
            for samples, cost in rows.items():
                ratios.append(roofline(work, samples, 4).forward_ms / cost.forward_ms)
                assert (0.8 if cost.forward_ms > 5 else 0.25) < ratios[-1] < 1.2
    assert len(ratios) == 64
    assert geometric_mean(ratios) == pytest.approx(1.0, abs=0.15)


def test_short_names_lead_to_models_and_an_unknown_one_is_told() -> None:
    assert [named(alias).name for alias in ALIASES] == list(ALIASES.values())
    assert "'resnet5' is an unknown model (did you mean 'resnet50'" in refusal(named, "resnet5")


@pytest.mark.parametrize("servers", [0, -1, 2.0, True, 10**6])
def test_a_number_of_servers_that_is_none_is_refused(servers: object) -> None:
    assert "field servers: must be a whole number from 1 to 4,096" in refusal(
        named("dlrm").build, servers
    )
