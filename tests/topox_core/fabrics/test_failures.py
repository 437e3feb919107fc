"""After a failure: static circuits as the comparison runs them, plans on the ports that are left."""

import math
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest

from tests.conftest import long_after
from tests.refusal import refusal
from tests.topox_core.small_graphs import cluster, random_graph, sample_with
from topox_core.check.checker import check
from topox_core.fabrics.comparison.compare import compare, run_with_best_lowering
from topox_core.fabrics.comparison.failures import (
    FixedCircuits,
    after_failure,
    lost_ports,
    on_ports_left,
    planned_again,
)
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.model.execution import Execution
from topox_core.schedule.planning.rebooking import LostPort, rebooked
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.topology.failures import Failure, at_its_port
from topox_core.workloads.samples import load_sample

LIST = Settings.of(engine="list")
PLANNED = Settings.of(engine="list", switching="planned")
SMALL = random_graph(5, tasks=30), cluster(4, ports_per_server=2, switches=2)


def compared(sample: str | None, settings: Settings = LIST, **changes: Any) -> JobRequest:
    """Return a sample, or a small random job, with its runs on static and scheduled circuits."""
    task_graph, of = load_sample(sample) if sample else SMALL
    of = of.changed(**changes)
    runs = compare(task_graph, of, settings, ("static", "scheduled"))
    return JobRequest(task_graph, of, settings, runs=runs)


def assert_planned_without(
    lost: LostPort, left: Execution, job: JobRequest, like: FabricRun
) -> None:
    """No circuit uses the port, and the checker accepts the execution in the place of a run's."""
    circuits = left.circuits
    server, port = {
        "out": (circuits.source, circuits.source_port),
        "in": (circuits.destination, circuits.destination_port),
    }[lost.way]
    used = (circuits.switch == lost.switch) & (server == lost.server) & (port == lost.port)
    assert not used.any()
    result = replace(
        like.result,
        execution=left,
        makespan_ms=left.makespan_ms,
        slotted_ms=like.result.slotted_ms and 2 * left.makespan_ms,
        bound_ms=0.0,
        classes=(),
        status="feasible",
        alternative=None,
        switching="planned",
        settings=replace(like.result.settings, lowering=left.graph.lowering),
    )
    assert check(job.task_graph, job.cluster, to_record(result)).lines() == ()


@pytest.mark.parametrize(
    ("clock", "seed"),
    long_after(6, [(("continuous", "slots")[k % 2], 5 * k % 12) for k in range(24)]),
)
def test_a_schedule_is_booked_anew_without_the_lost_ports(clock: str, seed: int) -> None:
    ports, switches = ((2, 1), (2, 2), (4, 2))[seed % 3]
    of = cluster(
        4,
        ports_per_server=ports,
        switches=switches,
        ports_per_switch=(8, 2)[seed % 2],  # 2: eq. 7 binds
        duplex=("full", "half")[seed // 6],
        reconfiguration_ms=(0.0, 0.7, 2.0)[seed % 3],
    )
    switching = {"continuous": "planned", "slots": "auto"}[clock]
    settings = Settings.of(engine="list", clock=clock, switching=switching)
    job = JobRequest(random_graph(seed, tasks=30), of, settings)
    run = run_with_best_lowering("scheduled", job)
    for way in ("out", "in"):
        lost = LostPort(way, seed % 4, 0, 0)  # type: ignore[arg-type]
        left = rebooked(run.execution, frozenset({lost}), settings)
        assert_planned_without(lost, left, job, run)
        assert left.makespan_ms >= run.bound_ms * (1 - 1e-9)


def test_nothing_lost_is_no_worse_and_a_server_without_a_port_is_named() -> None:
    whole = compared("race", PLANNED).runs["scheduled"].execution
    assert rebooked(whole, frozenset(), PLANNED).makespan_ms <= whole.makespan_ms * (1 + 1e-9)
    server = int(whole.circuits.source[0])
    assert f"server {server} can no longer reach server" in refusal(
        rebooked, whole, frozenset({LostPort("out", server, 0, 0)}), PLANNED
    )


@pytest.mark.parametrize("duplex", long_after(1, ["half", "full"]))
def test_a_fibre_costs_one_port_of_one_server_and_not_a_switch(duplex: str) -> None:
    """On moe, two switches: without one of them an iteration takes longer than without one port of one server."""
    job = compared("moe", PLANNED, reconfiguration_ms=0.1, duplex=duplex)
    fixed = FixedCircuits.of(job)
    fibre = at_its_port(Failure.fibre(*fixed.links[0]), fixed.result.wiring)
    (lost,) = lost_ports(job, fibre)
    assert lost == LostPort("out", fibre.source, fibre.port, 0)
    left = on_ports_left(job, {lost})
    assert_planned_without(lost, left, job, job.runs["scheduled"])
    others = left.circuits.source != fibre.source
    assert fibre.port in left.circuits.switch[others]  # of that switch the others have ports
    without_port, without_switch = (
        planned_again(job, fixed, failure, 0.0)[0]
        for failure in (fibre, Failure.of_switch(fibre.port))
    )
    assert without_port < without_switch
    both = {LostPort("out", 3, 1, 0), LostPort("in", 3, 1, 0)}
    assert lost_ports(job, Failure.of_port(3, 1)) == both
    assert "there is no such port" in refusal(lost_ports, job, Failure.of_port(3, 2))


@pytest.mark.parametrize("sample", long_after(1, ["fsdp", "moe"]))
def test_static_circuits_are_those_of_the_comparison(sample: str) -> None:
    """Their lowering is the one that the static fabric chose, and before the failure they run as fast."""
    job = compared(sample, Settings.of(engine="list", free=FREE))
    static, fixed = job.runs["static"], FixedCircuits.of(job)
    assert np.array_equal(fixed.result.layout.circuits, static.execution.layout.circuits)
    assert fixed.lowering == static.chosen.lowering
    graph = job.lowered(fixed.lowering).graph
    unharmed = fixed._run(graph, fixed.result, fixed.result.layout)
    assert unharmed.iteration_ms == pytest.approx(static.iteration_ms, rel=1e-12)


def test_every_way_to_go_on_is_told_with_its_time_or_its_reason() -> None:
    job = compared(None, reconfiguration_ms=1.0)
    fixed = FixedCircuits.of(job)
    failures = Failure.fibre(*fixed.links[0]), Failure.of_switch(1), Failure.of_server(2, 3)
    outcomes = [after_failure(job, fixed, failure, 0.5) for failure in failures]
    assert list(map(len, outcomes)) == [4, 4, 3]
    for one in chain.from_iterable(outcomes):
        assert one.before_ms == job.runs[one.fabric].iteration_ms
        assert one.done and (one.after_ms is None or one.after_ms > 0)
        assert one.label.startswith(f"{FABRICS[one.fabric]}, ")
    for *_, this, following in outcomes:
        said = "Longer than this iteration" in following.done[-1]
        assert said == ((following.after_ms or 0) > (this.after_ms or math.inf))


def test_a_plan_that_keeps_circuits_fixed_goes_on_from_any_moment() -> None:
    job = compared(None, reconfiguration_ms=100.0)
    scheduled, fixed = job.runs["scheduled"], FixedCircuits.of(job)
    assert scheduled.result.switching == "fixed"
    this, following = after_failure(job, fixed, Failure.of_port(3, 1), 0.4)[-2:]
    assert this.after_ms > scheduled.iteration_ms
    mended, _ = fixed.repaired(Failure.of_port(3, 1))
    assert following.after_ms <= mended * (1 + 1e-9)


@pytest.mark.parametrize("at_share", [0.0, 0.5])
def test_a_failed_iteration_is_no_longer_than_one_begun_anew(at_share: float) -> None:
    job = compared(None, reconfiguration_ms=100.0)
    fixed, failure = FixedCircuits.of(job), Failure.of_port(3, 1)
    this, following = after_failure(job, fixed, failure, at_share)[-2:]
    assert following.after_ms is not None and this.after_ms is not None
    begun_ms = at_share * job.runs["scheduled"].iteration_ms
    assert this.after_ms <= begun_ms + 100.0 + following.after_ms


def test_fixed_circuits_of_a_plan_carry_on_over_what_is_left_of_them() -> None:
    """Those that were searched for the task graph, without one of them, beat TopologyFinder's, repaired."""
    task_graph, of = sample_with("moe", reconfiguration_ms=100.0)
    runs = compare(task_graph, of, LIST, ("static", "static_graph", "scheduled"))
    job = JobRequest(task_graph, of, LIST, runs=runs)
    fixed = FixedCircuits.of(job)
    failure = at_its_port(Failure.fibre(*fixed.links[0]), fixed.result.wiring)
    after_ms, (done,) = planned_again(job, fixed, failure, 0.0)
    assert runs["scheduled"].result.switching == "fixed" and "its fixed circuits stay" in done
    assert runs["scheduled"].iteration_ms < after_ms < fixed.repaired(failure)[0]
