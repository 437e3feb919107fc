"""Who can never be slower than whom, on one clock and as the delay shrinks, every time with a schedule that the checker accepts."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from benchmarks.side_by_side.instances import instances
from tests.conftest import long_after, suite_instance
from tests.past import load_past
from tests.real_inputs import REAL_INPUTS
from tests.topox_core.fabrics.asked import LIST, request
from tests.topox_core.small_graphs import (
    cluster,
    compute,
    graph,
    random_graph,
    sample_with,
    transfer,
)
from topox_core.api import load_cluster, load_graph
from topox_core.check.checker import check
from topox_core.fabrics.comparison.compare import compare, run_with_best_lowering
from topox_core.fabrics.fluid.ideal import priority_tables, ran_by_rank, run_ideal
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.passed_plans import PassedPlan, PlanChoice
from topox_core.fabrics.planning.scheduled import Controllers
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import FabricRequest, JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import COMPUTE, bytes_per_ms, latency_ms, work_bytes
from topox_core.runs.run import never
from topox_core.schedule.planning.planner import prepare
from topox_core.schedule.planning.replay import replay
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import SAMPLES, load_sample

FREELY = Settings.of(engine="list", free=FREE)
DELAYS_MS = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)
NINE_MS = (0.0, 0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
SLACK = 1 + 1e-9
# The quick run takes the first few of each list. Every fifth of the 12 delays and ways of a graph:
# graphs of one size meet all of them, each graph two or three.
ON_SAMPLES = [
    *(("race", 10.0, "half"), ("patience", 0.001, "full"), ("fsdp", 1.0, "half")),
    *list(product(SAMPLES, DELAYS_MS, ("full", "half")))[::5],
]
SUITE = instances(REAL_INPUTS.parent / "bench" / "instances")
MANAGEABLE = [one.name for one in SUITE if one.size != "large"]
ON_INSTANCES = [
    *(("small-dlrm-half-n8l4", 10.0, "half"), ("small-random-half-150", 0.01, "half")),
    *(("small-dlrm-n8l3", 10.0, "full"), ("small-1f1b-p4d2m6", 0.1, "full")),
    *list(product(MANAGEABLE, DELAYS_MS, ("full", "half")))[::5],
]


def assert_invariants(task_graph: TaskGraph, of: Cluster, settings: Settings = LIST) -> None:
    """``ideal <= planned <= provisioned <= reactive``, ``planned <= every circuit fabric``, bound <= all, all checked."""
    options = FabricOptions(reevaluate_ms=5.0, layout_steps=40)  # a fat-tree of equal ports
    runs = compare(task_graph, of, settings, FABRICS, options)
    time = {name: run.iteration_ms for name, run in runs.items()}
    assert set(time) == set(FABRICS)
    if runs["reactive"].mean_ms is None:  # one iteration on demand, not several that take turns
        assert time["provisioned"] <= time["reactive"] * SLACK
    assert time["in_collective"] <= time["provisioned"] * SLACK
    for controller in ("provisioned", "phased", "in_collective"):
        assert time["scheduled"] <= time[controller] * SLACK, controller
    assert time["static_graph"] <= time["static"] * SLACK
    # Where the switches have places for as many circuits as the layout has (eq. 7 counts none on a
    # patch panel).
    for name in ("static", "static_graph"):
        if runs[name].execution.layout.circuits.sum() <= of.switches * of.ports_per_switch:
            assert time["scheduled"] <= time[name] * SLACK
    for name, run in runs.items():
        assert time["ideal"] <= time[name] * SLACK, name
        assert run.bound_ms <= run.iteration_ms * SLACK, name
    result = runs["scheduled"].result
    for one in (result, result.alternative):
        if one is not None:
            report = check(task_graph, of, to_record(one))
            assert report.ok, report.lines()
            assert (
                one.bound_ms <= min(one.makespan_ms, *(of.bound_ms for of in one.classes)) * SLACK
            )


@pytest.mark.parametrize(("name", "delay_ms", "duplex"), long_after(3, dict.fromkeys(ON_SAMPLES)))
def test_the_invariants_hold_on_the_samples(name: str, delay_ms: float, duplex: str) -> None:
    assert_invariants(*sample_with(name, reconfiguration_ms=delay_ms, duplex=duplex))


@pytest.mark.parametrize(("name", "delay_ms", "duplex"), long_after(4, dict.fromkeys(ON_INSTANCES)))
def test_the_invariants_hold_on_instances_of_the_suite(
    name: str, delay_ms: float, duplex: str
) -> None:
    task_graph, of = suite_instance(name)
    changed = load_cluster(of).changed(reconfiguration_ms=delay_ms, duplex=duplex)
    assert_invariants(load_graph(task_graph), changed)


def random_case(seed: int, kind: int) -> tuple[TaskGraph, Cluster]:
    """Return a random graph on one of 96 kinds of cluster: delays, ports, switches, room, both duplexes."""
    ports, switches = ((1, 1), (2, 1), (2, 2), (4, 2))[kind // 12 % 4]
    return random_graph(seed, tasks=30), cluster(
        4,
        ports_per_server=ports,
        switches=switches,
        ports_per_switch=(8, 2)[kind // 48 % 2],
        duplex=("full", "half")[kind // 6 % 2],
        reconfiguration_ms=DELAYS_MS[kind % 6],
    )


@pytest.mark.parametrize("seed", long_after(7, dict.fromkeys([*range(0, 300, 43), *range(96)])))
def test_the_invariants_hold_on_random_graphs(seed: int) -> None:
    assert_invariants(*random_case(seed, seed))


@pytest.mark.parametrize("seed", long_after(2, dict.fromkeys([36, 47, *range(0, 300, 7)])))
def test_the_invariants_hold_where_every_fabric_chooses(seed: int) -> None:
    assert_invariants(*random_case(seed, seed), FREELY)


@pytest.mark.parametrize(
    ("name", "delay_ms", "duplex"),
    long_after(
        4,
        dict.fromkeys(
            [
                *(("race", 0.01, "half"), ("race", 1.0, "full"), ("patience", 1.0, "half")),
                *product(("patience", "race", "moe"), (0.0, 0.01, 1.0), ("full", "half")),
            ]
        ),
    ),
)
def test_no_task_starts_later_than_in_the_slotted_plan(
    name: str, delay_ms: float, duplex: str
) -> None:
    task_graph, of = sample_with(name, reconfiguration_ms=delay_ms, duplex=duplex)
    prepared = prepare(task_graph, of, replace(LIST, clock="slots"))
    controllers = Controllers(FabricRequest(prepared.graph, of, LIST))
    tick_ms = prepared.reduction.problem.tick_ms
    for plan in [*prepared.planner.every_plan(), *controllers(prepared)]:
        carried_out = replay(prepared, plan, of)
        assert (carried_out.start_ms <= plan.start * tick_ms * SLACK + 1e-9).all(), plan.source


def ends_by_priority(order: FabricRequest) -> list[float]:
    """When each task ends if at every moment the transfers that come first in the graph take what both their ports have left."""
    lowered, of = order.graph, order.cluster
    size = work_bytes(lowered, of)
    length = np.where(
        lowered.kind == COMPUTE, lowered.duration_ms, latency_ms(lowered, of)
    ).tolist()
    left, device = size.tolist(), lowered.devices()[0].tolist()
    source, destination = lowered.source.tolist(), lowered.destination.tolist()
    succ_ptr, succ_idx = lowered.successors
    port = of.ports_per_server * bytes_per_ms(of.port_gbps)
    waits, now = np.diff(lowered.pred_ptr).tolist(), 0.0
    sending, queue, busy, until, end = set(), set(), set(), {}, {}

    def ready(j: int) -> None:
        if left[j] > 0:
            sending.add(j)
        elif length[j] > 0 and device[j] >= 0:
            queue.add(j)
        else:
            last(j)

    def last(j: int) -> None:
        until[j] = now + length[j]
        if length[j] <= 0:
            ended(j)

    def ended(j: int) -> None:
        end[j] = until.pop(j)
        busy.discard(device[j])
        for s in succ_idx[succ_ptr[j] : succ_ptr[j + 1]].tolist():
            waits[s] -= 1
            if waits[s] == 0:
                ready(s)

    for j in [j for j, count in enumerate(waits) if count == 0]:
        ready(j)
    while len(end) < len(waits):
        for j in sorted(queue):
            if device[j] not in busy:
                queue.remove(j)
                busy.add(device[j])
                last(j)
        free, rates = [port] * (2 * of.servers), {}
        for j in sorted(sending):
            a, b = source[j], of.servers + destination[j]
            rates[j] = rate = min(free[a], free[b])
            free[a], free[b] = free[a] - rate, free[b] - rate
        moving = {j: rate for j, rate in rates.items() if rate > 1e-9 * port}
        later = min([*until.values(), *(now + left[j] / rate for j, rate in moving.items())])
        for j, rate in moving.items():
            left[j] -= rate * (later - now)
        now = later
        for j in [j for j in moving if left[j] <= 1e-9 * size[j]]:
            sending.remove(j)
            last(j)
        for j in [j for j, time in until.items() if time <= now * SLACK]:
            ended(j)
    return [end[j] for j in range(len(waits))]


@pytest.mark.parametrize("name", ["patience", "race"])
def test_transfers_by_priority_end_when_a_reference_says_that_keeps_to_the_ports(name: str) -> None:
    order = request(*load_sample(name))
    first_come = np.arange(len(order.graph), dtype=np.int32)
    _, end = ran_by_rank(priority_tables(order), order.graph, first_come)
    assert end.tolist() == pytest.approx(ends_by_priority(order), rel=1e-9)


def test_a_critical_transfer_goes_first_on_the_ideal_switch() -> None:
    """Sample patience by hand: in 12 ms, its bound, where fair shares take 13 and circuits 14."""
    run = run_ideal(request(*load_sample("patience")), never)
    assert (run.iteration_ms, run.bound_ms) == pytest.approx((12, 12))


@pytest.mark.parametrize("delay_ms", [0.0, 1.0, 20.0])
def test_the_ideal_switch_looks_at_many_orders_and_so_does_not_move_with_the_delay(
    delay_ms: float,
) -> None:
    """Server 0 sends 3.7 and, after 1 ms of computing, 2.2 ms, which 1 ms more follows elsewhere: 5.9 ms by its port.

    The most urgent first sends the 3.7 first (3.2 follow the other): 6.9 ms. Fair shares end the 2.2 at
    5.4: 6.4 ms. The 2.2 as soon as it is ready, the rest of the 3.7 around it: 5.9 ms.
    """
    job = graph(
        *(compute("f", 0, 1.0), transfer("a", 0, 1, 2.2, "f"), transfer("b", 2, 1, 1.0, "a")),
        transfer("long", 0, 2, 3.7),
    )
    ideal = compare(job, cluster(3, reconfiguration_ms=delay_ms), LIST)["ideal"]
    assert (ideal.iteration_ms, ideal.bound_ms) == pytest.approx((5.9, 5.9))
    assert "in the best of many orders" in ideal.message


# -- as the delay shrinks --------------------------------------------------------------------------


def assert_monotone(
    task_graph: TaskGraph, clusters: Sequence[Cluster], settings: Settings, passes: bool = False
) -> None:
    """From the hardest cluster on, each plan kept for easier ones, no time grows, and the checker accepts each."""
    plans: list[PassedPlan] = []
    before: list[tuple[Cluster, float]] = []
    better = 0
    for of in clusters:
        job = JobRequest(task_graph, of, settings)
        alone = run_with_best_lowering("scheduled", job).result
        passed = PlanChoice(job, alone).among(plans)
        for harder, harder_ms in before:
            if is_easier(of, harder):
                assert passed.makespan_ms <= harder_ms * SLACK, (of, harder)
        before.append((of, passed.makespan_ms))
        classes_ms = (one.bound_ms for one in passed.classes)
        assert passed.bound_ms <= min(passed.makespan_ms, *classes_ms) * SLACK
        if passed is not alone:
            better += 1
            assert passed.makespan_ms < alone.makespan_ms
            assert check(task_graph, of, to_record(passed)).lines() == ()
        if (plan := PassedPlan.of(passed)) is not None:
            plans.append(plan)
    assert better or not passes


def is_easier(of: Cluster, than: Cluster) -> bool:
    return (
        of.reconfiguration_ms <= than.reconfiguration_ms
        and of.port_gbps >= than.port_gbps
        and of.ports_per_server >= than.ports_per_server
    )


def from_hard_to_easy(
    of: Cluster,
    delays_ms: Sequence[float] = DELAYS_MS,
    speeds: Sequence[float] = (1.0,),
    ports: Sequence[int] = (1,),
) -> list[Cluster]:
    """Return a cluster at every delay, at some multiples of its speed and of its switches (one port more on each)."""
    return [
        of.changed(
            reconfiguration_ms=delay_ms,
            port_gbps=of.port_gbps * speed,
            ports_per_server=of.ports_per_server * more,
            switches=of.switches * more,
        )
        for delay_ms in reversed(delays_ms)
        for speed in speeds
        for more in ports
    ]


@pytest.mark.parametrize(
    ("name", "free"),
    long_after(
        2,
        [
            ("race", ()),
            ("patience", ()),
            *((one, FREE) for one in ("race", "moe", "fsdp", "dlrm-16")),
        ],
    ),
)
def test_the_planned_time_never_grows_as_the_delay_shrinks(name: str, free: Any) -> None:
    task_graph, of = load_past(name)
    assert_monotone(task_graph, from_hard_to_easy(of), replace(LIST, free=free))


@pytest.mark.parametrize("name", long_after(1, ["race", "fsdp", "moe"]))
def test_nor_does_it_grow_with_speed_or_ports(name: str) -> None:
    task_graph, of = load_past(name)
    clusters = from_hard_to_easy(of, NINE_MS, (0.5, 1.0, 2.0), (1, 2))
    assert_monotone(task_graph, clusters, replace(LIST, free=FREE, switching="planned"))


@pytest.mark.parametrize("seed", long_after(1, range(0, 60, 5)))
def test_nor_on_random_graphs(seed: int) -> None:
    task_graph, of = random_case(seed, seed)
    clusters = from_hard_to_easy(of, NINE_MS, (0.5, 1.0, 2.0), (1, 2))
    assert_monotone(task_graph, clusters, replace(LIST, switching="planned"))


def on_any_delay(seed: int) -> tuple[TaskGraph, Cluster]:
    """Return a random graph on one of 16 kinds of cluster."""
    return random_case(seed, 12 * (seed % 8) + 6 * (seed // 8 % 2))


@pytest.mark.parametrize(
    ("clock", "seed"),
    long_after(
        4,
        [
            *(("continuous", 18), ("continuous", 61), ("continuous", 62), ("slots", 37)),
            *(("continuous", 26), ("continuous", 47), ("continuous", 60)),
            ("slots", 57),
        ],
    ),
)
def test_plans_are_passed_on_where_planning_alone_is_not_monotone(clock: str, seed: int) -> None:
    task_graph, of = on_any_delay(seed)
    settings = replace(LIST, clock=clock)
    assert_monotone(task_graph, from_hard_to_easy(of), settings, passes=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(48))
def test_the_planned_time_never_grows_on_many_random_graphs(seed: int) -> None:
    task_graph, of = on_any_delay(seed)
    assert_monotone(task_graph, from_hard_to_easy(of), LIST)


def test_a_plan_comes_back_with_its_own_lowering_and_for_a_longer_delay_only_if_it_is_shorter() -> (
    None
):
    """Planned on two rings for 1 ms, it is carried out on two rings where one was chosen for 0 ms."""
    task_graph, of = load_past("fsdp")
    two = replace(LIST, lowering=Lowering(rings=2))
    slow = JobRequest(task_graph, of.changed(reconfiguration_ms=1.0), two)
    plan = PassedPlan.of(run_with_best_lowering("scheduled", slow).result)
    quick = JobRequest(task_graph, of, replace(LIST, switching="planned"))
    alone = run_with_best_lowering("scheduled", quick).result
    passed = PlanChoice(quick, alone).among([plan])
    assert passed.makespan_ms < alone.makespan_ms
    assert passed.execution.graph.lowering.rings == 2
    assert check(task_graph, of, to_record(passed)).ok
    slower = replace(quick, cluster=of.changed(reconfiguration_ms=2.0))
    planned = run_with_best_lowering("scheduled", slower).result
    later = PlanChoice(slower, planned).among([plan])
    assert later.makespan_ms < planned.makespan_ms
    assert check(task_graph, slower.cluster, to_record(later)).ok
    assert PlanChoice(slower, later).among([plan]) is later


def test_plans_that_come_one_by_one_are_chosen_from_as_all_at_once_and_each_is_carried_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plans for 20, 1 and 5 ms, of which that for 1 ms is shorter at 2 ms than what is planned there."""
    task_graph, of = on_any_delay(4)

    def at(delay_ms: float) -> JobRequest:
        return JobRequest(task_graph, of.changed(reconfiguration_ms=delay_ms), LIST)

    found = [run_with_best_lowering("scheduled", at(ms)).result for ms in (20.0, 1.0, 5.0, 2.0)]
    quick, alone, plans = at(2.0), found[-1], [PassedPlan.of(one) for one in found[:-1]]
    whole, carried, carry = PlanChoice(quick, alone).among(plans), [], PassedPlan.on

    def on(plan: PassedPlan, job: JobRequest) -> tuple[FabricRequest, Any]:
        carried.append(plan)
        return carry(plan, job)

    monkeypatch.setattr(PassedPlan, "on", on)
    choice = PlanChoice(quick, alone)
    first, *later = [choice.among(plans[:known]) for known in (1, 2, 3, 3)]
    assert {one.makespan_ms for one in later} == {whole.makespan_ms}
    assert whole.makespan_ms < first.makespan_ms == alone.makespan_ms
    assert [id(plan) for plan in carried] == [id(plan) for plan in plans]
    assert check(task_graph, quick.cluster, to_record(later[-1])).ok
    assert [one.source.family for one in later[-1].trace].count("passed") == 1
