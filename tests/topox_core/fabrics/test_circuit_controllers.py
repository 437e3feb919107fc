"""Circuits switched on demand, provisioned, and planned: hand calculations, the rules of circuits, and who is never later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.past import load_past
from tests.topox_core.schedule.circuit_rules import broken_rules
from tests.topox_core.small_graphs import cluster, compute, graph, random_graph, transfer
from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.fabrics.circuits import run_provisioned, run_reactive
from topox_core.fabrics.fluid import Stopped
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.fabrics.scheduled import run_scheduled, schedule
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.runs.stopping import never
from topox_core.schedule.bounds.circuit_bound import circuit_bound
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import SAMPLES, load_sample

FINE = Settings.of(engine="list", tick="slot")
ON_SLOTS = Settings.of(engine="list", tick="slot", clock="slots")
SWITCHING = Settings.of(engine="list", switching="planned")


def order(task_graph: TaskGraph, of: Cluster, how: Settings = FINE) -> FabricRequest:
    return FabricRequest(lower(task_graph, how.lowering), of, how)


def reactive(task_graph: TaskGraph, of: Cluster) -> FabricRun:
    return run_reactive(order(task_graph, of), never)


def provisioned(task_graph: TaskGraph, of: Cluster) -> FabricRun:
    return run_provisioned(order(task_graph, of), never)


def start(run: FabricRun, task: str) -> float:
    return float(run.execution.start_ms[run.execution.graph.ids.index(task)])


def dark(run: FabricRun, task: str) -> float:
    circuits = run.execution.circuits
    row = circuits.node.tolist().index(run.execution.graph.ids.index(task))
    return float(circuits.start_ms[row] - circuits.setup_ms[row])


# -- by hand ---------------------------------------------------------------------------------------


def test_every_change_of_a_port_costs_the_delay_when_circuits_are_asked_for_late() -> None:
    chain = graph(transfer("a", 0, 1, 2), transfer("b", 0, 2, 2, "a"), transfer("c", 0, 1, 2, "b"))
    run = reactive(chain, cluster(3, reconfiguration_ms=5))
    assert run.iteration_ms == pytest.approx(2 + 5 + 2 + 5 + 2)
    assert run.circuits_changed == 2
    assert run.dark_ms == pytest.approx(10)


def test_the_first_circuit_of_a_port_stands_before_the_iteration() -> None:
    assert reactive(
        graph(transfer("a", 0, 1, 2)), cluster(2, reconfiguration_ms=50)
    ).iteration_ms == pytest.approx(2)


def test_a_circuit_that_still_stands_costs_nothing() -> None:
    run = reactive(
        graph(transfer("a", 0, 1, 2), compute("f", 1, 3, "a"), transfer("b", 0, 1, 2, "f")),
        cluster(2, reconfiguration_ms=50),
    )
    assert run.iteration_ms == pytest.approx(7)
    assert run.circuits_changed == 0


@pytest.mark.parametrize(
    ("delay_ms", "stall_ms"),
    [(0.0, 0.0), (1.0, 0.0), (10.0, 8.9), (50.0, 48.9), (70.0, 68.9 + 10.0)],
)
def test_provisioning_hides_the_delay_in_the_windows(delay_ms: float, stall_ms: float) -> None:
    # Two transitions in series with windows of 1.1 and 60 ms: on demand pays twice, provisioned the
    # sum of max(0, R - window).
    chain = graph(
        transfer("a", 0, 1, 4),
        compute("short", 1, 1.1, "a"),
        transfer("b", 0, 2, 4, "short"),
        compute("long", 2, 60.0, "b"),
        transfer("c", 0, 1, 4, "long"),
    )
    of = cluster(3, reconfiguration_ms=delay_ms)
    bare = 4 + 1.1 + 4 + 60 + 4
    assert reactive(chain, of).iteration_ms == pytest.approx(bare + 2 * delay_ms)
    assert provisioned(chain, of).iteration_ms == pytest.approx(bare + stall_ms)


def test_first_come_first_served_falls_for_the_patience_sample() -> None:
    task_graph, of = load_sample("patience")
    assert reactive(task_graph, of).iteration_ms == pytest.approx(SAMPLES["patience"].first_come_ms)


def test_a_request_keeps_its_place_at_both_ports_and_blocks_nobody_else() -> None:
    run = reactive(
        graph(
            transfer("holds", 0, 1, 10),  # keeps the in-port of 1 busy until 10
            transfer("waits", 2, 1, 3),  # takes its place at the out-port of 2, too
            compute("later", 2, 1.0),
            transfer("behind", 2, 3, 3, "later"),
            transfer("elsewhere", 4, 5, 3),
        ),
        cluster(6),
    )
    assert start(run, "waits") == pytest.approx(10)
    assert start(run, "behind") == pytest.approx(13)
    assert start(run, "elsewhere") == 0


def test_of_those_ready_together_the_first_in_the_graph_goes_first() -> None:
    one = reactive(graph(transfer("x", 0, 1, 5), transfer("y", 2, 1, 1)), cluster(3))
    other = reactive(graph(transfer("y", 2, 1, 1), transfer("x", 0, 1, 5)), cluster(3))
    assert (start(one, "x"), start(one, "y")) == (0, 5)
    assert (start(other, "x"), start(other, "y")) == (1, 0)


def test_who_is_ready_earlier_goes_first_whatever_the_position() -> None:
    run = reactive(
        graph(
            compute("f", 0, 2),
            transfer("late", 0, 1, 5, "f"),
            compute("g", 2, 1),
            transfer("early", 2, 1, 4, "g"),
        ),
        cluster(3),
    )
    assert (start(run, "early"), start(run, "late")) == (1, 5)


def test_ports_never_used_come_before_ports_that_must_change() -> None:
    run = reactive(
        graph(transfer("a", 0, 1, 1), transfer("b", 0, 2, 1, "a"), transfer("c", 0, 3, 1, "b")),
        cluster(4, ports_per_server=2, reconfiguration_ms=7),
    )
    assert (dark(run, "a"), dark(run, "b"), dark(run, "c")) == (0, 0, 7)


def test_a_half_duplex_port_changes_when_it_turns_round() -> None:
    both = graph(transfer("there", 0, 1, 2), transfer("back", 1, 0, 2, "there"))
    of = cluster(2, reconfiguration_ms=3)
    assert reactive(both, of).iteration_ms == pytest.approx(4)
    assert reactive(both, replace(of, duplex="half")).iteration_ms == pytest.approx(7)


def test_a_switch_with_room_for_one_circuit_carries_one_at_a_time() -> None:
    run = reactive(
        graph(transfer("a", 0, 1, 2), transfer("b", 2, 3, 2)), cluster(4, ports_per_switch=1)
    )
    assert run.iteration_ms == pytest.approx(4)


def test_the_bound_counts_the_set_ups_of_a_busy_port() -> None:
    fan = graph(*[transfer(f"t{i}", 0, i, 1) for i in range(1, 5)])
    of = cluster(5, reconfiguration_ms=10)
    bound = circuit_bound(lower(fan), of)
    assert bound.ms == pytest.approx(4 * 1 + 3 * 10)
    assert "out-ports of server 0" in bound.text
    assert "set-ups included" in bound.text
    assert reactive(fan, of).iteration_ms == pytest.approx(bound.ms)


def test_all_that_moves_goes_direct() -> None:
    run = reactive(
        graph(transfer("a", 0, 1, 2), transfer("b", 0, 2, 3)), cluster(3, ports_per_server=2)
    )
    assert run.traffic.bandwidth_tax == 1
    assert run.traffic.longest_hops == 1
    assert run.traffic.port_busy[0] == pytest.approx((2 + 3) / (2 * 3))


# -- on random graphs and clusters -----------------------------------------------------------------

clusters = st.builds(
    lambda k, switches, room, duplex, delay: cluster(
        4,
        ports_per_server=k * switches,
        switches=switches,
        ports_per_switch=room,
        duplex=duplex,
        reconfiguration_ms=delay,
        slot_ms=0.1,
    ),
    k=st.integers(1, 2),
    switches=st.integers(1, 2),
    room=st.integers(1, 8),
    duplex=st.sampled_from(("full", "half")),
    delay=st.sampled_from((0.0, 0.1, 0.7, 3.0)),
)
seeds = st.integers(0, 10_000)


@examples(80)
@given(seed=seeds, of=clusters)
def test_the_controllers_keep_every_rule_of_circuits(seed: int, of: Cluster) -> None:
    task_graph = random_graph(seed)
    late, early = reactive(task_graph, of), provisioned(task_graph, of)
    assert broken_rules(late.execution) == []
    assert broken_rules(early.execution) == []
    assert late.bound_ms == pytest.approx(early.bound_ms, rel=1e-9)
    assert early.bound_ms <= early.iteration_ms


@examples(80)
@given(seed=seeds, of=clusters)
def test_no_task_is_later_when_its_circuit_is_provisioned(seed: int, of: Cluster) -> None:
    task_graph = random_graph(seed)
    late, early = reactive(task_graph, of), provisioned(task_graph, of)
    assert (early.execution.start_ms <= late.execution.start_ms * (1 + 1e-12)).all()
    assert early.circuits_changed == late.circuits_changed


@examples(40)
@given(seed=seeds, of=clusters)
def test_without_a_delay_asking_early_changes_nothing(seed: int, of: Cluster) -> None:
    task_graph, free = random_graph(seed), replace(of, reconfiguration_ms=0.0)
    late, early = reactive(task_graph, free), provisioned(task_graph, free)
    assert np.array_equal(late.execution.start_ms, early.execution.start_ms)
    assert np.array_equal(late.execution.circuits.switch, early.execution.circuits.switch)


@examples(40)
@given(seed=seeds, of=clusters)
def test_a_plan_on_slots_that_divide_everything_is_never_behind_the_controllers(
    seed: int, of: Cluster
) -> None:
    # All durations and the delay are multiples of the slot, so that rounding costs the plan
    # nothing.
    task_graph = random_graph(seed, collectives=False)
    planned = run_scheduled(order(task_graph, of, ON_SLOTS), never)
    assert broken_rules(planned.execution) == []
    assert planned.iteration_ms <= provisioned(task_graph, of).iteration_ms * (1 + 1e-9)
    assert planned.bound_ms <= planned.iteration_ms
    assert planned.message == ""


@examples(30)
@given(seed=seeds, of=clusters, shuffled=st.permutations(range(4)))
def test_the_names_of_servers_mean_nothing(seed: int, of: Cluster, shuffled: list[int]) -> None:
    task_graph = random_graph(seed)

    def renamed(task: Task) -> Task:
        places = {
            key: shuffled[value]
            for key in ("server", "source", "destination", "root")
            if (value := getattr(task, key)) is not None
        }
        return replace(
            task,
            **places,
            members=tuple(shuffled[m] for m in task.members) if task.members else task.members,
        )

    # Members keep their order in the ring, and so do the tasks in the graph.
    other = replace(task_graph, tasks=tuple(renamed(task) for task in task_graph.tasks))
    one, same = reactive(task_graph, of), reactive(other, of)
    alike = one.execution.graph.task_kind == same.execution.graph.task_kind
    assert alike
    assert one.iteration_ms == pytest.approx(same.iteration_ms, rel=1e-9)


def test_the_same_order_gives_the_same_run() -> None:
    task_graph, of = (
        random_graph(3, tasks=80),
        cluster(4, ports_per_server=2, reconfiguration_ms=0.5),
    )
    assert np.array_equal(
        reactive(task_graph, of).execution.start_ms, reactive(task_graph, of).execution.start_ms
    )


# -- on the samples --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SAMPLES))
def test_what_the_controllers_do_keeps_the_rules_and_adds_up(name: str) -> None:
    task_graph, of = load_sample(name)
    one = order(task_graph, of.changed(reconfiguration_ms=1.0), SWITCHING)
    runs = run_reactive(one, never), run_provisioned(one, never), run_scheduled(one, never)
    for run in runs:
        parts = run.breakdown
        assert (
            parts.compute_ms + parts.exposed_ms + parts.dark_ms + parts.waiting_ms
            == pytest.approx(run.iteration_ms)
        )
    if len(one.graph) < 3000:
        assert [broken_rules(run.execution) for run in runs] == [[], [], []]


@pytest.mark.parametrize("name", ["blackboard", "patience"])
@pytest.mark.parametrize("delay_ms", [0.0, 2.0])
def test_the_independent_checker_accepts_the_controllers(name: str, delay_ms: float) -> None:
    task_graph, of = load_sample(name)
    one = order(task_graph, of.changed(reconfiguration_ms=delay_ms), SWITCHING)
    planned = run_scheduled(one, never)
    assert planned.result is not None
    for run in (run_reactive(one, never), run_provisioned(one, never), planned):
        result = replace(
            planned.result,
            execution=run.execution,
            makespan_ms=run.iteration_ms,
            slotted_ms=None,
            status="feasible",
        )
        report = check(task_graph, one.cluster, to_record(result))
        assert report.lines() == ()


@pytest.mark.parametrize("engine", ["list", "auto"])
def test_a_schedule_may_be_kept_to_the_provisioned_order(engine: str) -> None:
    task_graph, of = load_past("moe")
    of = of.changed(reconfiguration_ms=1.0)
    settings = Settings.of(engine=engine, switching="provisioned", time_limit_s=5.0)
    result = schedule(task_graph, of, settings)
    provisioned = run_provisioned(order(task_graph, of, settings), never)
    assert result.makespan_ms == pytest.approx(provisioned.iteration_ms, rel=1e-12)
    assert result.switching == "provisioned"
    assert check(task_graph, of, to_record(result)).ok


def test_coarse_slots_can_lose_and_the_plan_says_so() -> None:
    short = graph(*[transfer(f"t{i}", 0, 1, 0.1, *([f"t{i - 1}"] if i else [])) for i in range(5)])
    planned = run_scheduled(order(short, cluster(2), ON_SLOTS), never)
    assert planned.iteration_ms == pytest.approx(5)
    assert "slots of 1 ms" in planned.message
    assert "provisioned circuits without slots take 0.5 ms" in planned.message


def test_an_exact_engine_may_plan_and_proves_the_optimum() -> None:
    task_graph, of = load_sample("patience")
    planned = run_scheduled(
        order(task_graph, of, Settings.of(engine="highs", clock="slots", time_limit_s=20.0)), never
    )
    assert planned.iteration_ms == pytest.approx(14)
    assert planned.bound_ms == pytest.approx(14)
    assert planned.result is not None
    assert planned.result.status == "optimal"


def test_the_printed_model_is_planned_as_printed() -> None:
    task_graph, of = load_sample("blackboard")
    planned = run_scheduled(order(task_graph, of, Settings.of("paper", engine="list")), never)
    assert planned.iteration_ms <= 10
    assert planned.bound_ms <= planned.iteration_ms


# -- what cannot be run ----------------------------------------------------------------------------


@pytest.mark.parametrize("run", [run_reactive, run_provisioned, run_scheduled])
def test_ports_that_cannot_be_spread_evenly_are_named(run) -> None:
    with pytest.raises(
        InputError, match=r"cluster, field ports_per_server: must be a multiple of switches \(2\)"
    ):
        run(order(graph(transfer("a", 0, 1, 1)), cluster(2, ports_per_server=3, switches=2)), never)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="names server 5"):
        reactive(graph(transfer("a", 0, 5, 1)), cluster(3))


@pytest.mark.parametrize("run", [run_reactive, run_provisioned, run_scheduled])
def test_a_run_that_is_told_to_stop_stops(run) -> None:
    with pytest.raises(Stopped):
        run(order(graph(transfer("a", 0, 1, 1)), cluster(2)), lambda: True)


@pytest.mark.parametrize("run", [run_reactive, run_provisioned, run_scheduled])
def test_a_graph_without_transfers_needs_no_circuits(run) -> None:
    found = run(order(graph(compute("f", 0, 3), compute("g", 0, 2)), cluster(2)), never)
    assert found.iteration_ms == pytest.approx(5)
    assert found.circuits_changed == 0
    assert found.traffic.bandwidth_tax == 1
