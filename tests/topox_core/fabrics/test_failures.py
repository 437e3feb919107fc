"""After a failure: static circuits as the comparison runs them, plans on the ports that are left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.topox_core.small_graphs import cluster, random_graph
from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare, run_freely
from topox_core.fabrics.failures import (
    FixedCircuits,
    after_failure,
    lost_ports,
    on_ports_left,
    planned_again,
)
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.model.execution import Execution
from topox_core.schedule.rebooking import LostPort, rebooked
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.topology.failures import Failure, at_its_port
from topox_core.workloads.samples import load_sample

LIST = Settings.of(engine="list")


def compared(sample: str, settings: Settings = LIST, **changes: float) -> JobRequest:
    """Return a sample with its runs on static and scheduled circuits."""
    task_graph, of = load_sample(sample)
    of = of.changed(**changes)
    runs = compare(task_graph, of, settings, ("static", "scheduled"))
    return JobRequest(task_graph, of, settings, runs=runs)


def small(delay_ms: float) -> JobRequest:
    """Return a small random job with its runs, on two switches."""
    of = cluster(4, ports_per_server=2, switches=2, reconfiguration_ms=delay_ms)
    task_graph = random_graph(5, tasks=30)
    runs = compare(task_graph, of, LIST, ("static", "scheduled"))
    return JobRequest(task_graph, of, LIST, runs=runs)


def uses(execution: Execution, port: LostPort) -> bool:
    circuits = execution.circuits
    server, number = (
        (circuits.source, circuits.source_port)
        if port.way == "out"
        else (circuits.destination, circuits.destination_port)
    )
    return bool(
        ((circuits.switch == port.switch) & (server == port.server) & (number == port.port)).any()
    )


def passes(execution: Execution, job: JobRequest, like: FabricRun) -> None:
    """Put an execution into the place of a run's and ask the checker."""
    assert like.result is not None
    record = to_record(
        replace(
            like.result,
            execution=execution,
            makespan_ms=execution.makespan_ms,
            slotted_ms=like.result.slotted_ms and 2 * execution.makespan_ms,
            bound_ms=0.0,
            bound_switching_ms=None,
            bound_fixed_ms=None,
            status="feasible",
            alternative=None,
            switching="planned",
            settings=replace(like.result.settings, lowering=execution.graph.lowering),
        )
    )
    report = check(job.task_graph, job.cluster, record)
    assert report.ok, report.lines()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("clock", ["continuous", "slots"])
def test_a_schedule_is_booked_anew_without_the_lost_ports(seed: int, clock: str) -> None:
    ports, switches = ((2, 1), (2, 2), (4, 2))[seed % 3]
    of = cluster(
        4,
        ports_per_server=ports,
        switches=switches,
        ports_per_switch=(8, 2)[seed % 2],  # 2: eq. 7 binds
        duplex=("full", "half")[seed // 6],
        reconfiguration_ms=(0.0, 0.7, 2.0)[seed % 3],
    )
    settings = Settings.of(
        engine="list", clock=clock, switching="planned" if clock != "slots" else "auto"
    )
    job = JobRequest(random_graph(seed, tasks=30), of, settings)
    run = run_freely("scheduled", job)
    slot_ms = of.slot_ms if clock == "slots" else 0.0
    for way in ("out", "in"):
        lost = LostPort(way, seed % 4, 0, 0)  # type: ignore[arg-type]
        left = rebooked(run.execution, frozenset({lost}), True, slot_ms)
        assert not uses(left, lost)
        passes(left, job, run)
        assert left.makespan_ms >= run.bound_ms * (1 - 1e-9)


def test_nothing_lost_books_a_schedule_no_worse_than_it_was() -> None:
    job = compared("race", Settings.of(engine="list", switching="planned"))
    whole = job.runs["scheduled"].execution
    again = rebooked(whole, frozenset())
    assert again.makespan_ms <= whole.makespan_ms * (1 + 1e-9)


def test_a_server_without_a_port_is_named() -> None:
    task_graph, of = load_sample("race")
    run = run_freely(
        "scheduled", JobRequest(task_graph, of, Settings.of(engine="list", switching="planned"))
    )
    server = int(run.execution.circuits.source[0])
    with pytest.raises(InputError, match=f"server {server} can no longer reach server"):
        rebooked(run.execution, frozenset({LostPort("out", server, 0, 0)}))


@pytest.mark.parametrize("duplex", ["full", "half"])
def test_a_fibre_costs_one_port_of_one_server_and_not_a_switch(duplex: str) -> None:
    """On moe, two switches: without one of them an iteration takes longer than without one port of one server."""
    settings = Settings.of(engine="list", switching="planned")
    job = compared("moe", settings, reconfiguration_ms=0.1, duplex=duplex)
    fixed = FixedCircuits.of(job)
    fibre = at_its_port(Failure.fibre(*fixed.links[0]), fixed.result.wiring)
    lost = lost_ports(job, fibre)
    assert lost == {LostPort("out", fibre.source, fibre.port, 0)}
    left = on_ports_left(job, lost)
    assert not uses(left, next(iter(lost)))
    passes(left, job, job.runs["scheduled"])
    others = left.circuits.source != fibre.source
    assert (
        left.circuits.switch[others] == fibre.port
    ).any()  # of that switch the others have ports
    without_port, _ = planned_again(job, fixed, fibre, 0.0)
    without_switch, _ = planned_again(job, fixed, Failure.of_switch(fibre.port), 0.0)
    assert without_port < without_switch


def test_a_port_costs_both_ways_of_it() -> None:
    job = compared("moe")
    assert lost_ports(job, Failure.of_port(3, 1)) == {
        LostPort("out", 3, 1, 0),
        LostPort("in", 3, 1, 0),
    }
    with pytest.raises(InputError, match="there is no such port"):
        lost_ports(job, Failure.of_port(3, 2))


@pytest.mark.parametrize("sample", ["moe", "fsdp"])
def test_static_circuits_are_those_of_the_comparison(sample: str) -> None:
    """Their lowering is the one that the static fabric chose, and before the failure they run as fast."""
    job = compared(sample, Settings.of(engine="list", free=FREE))
    static = job.runs["static"]
    fixed = FixedCircuits.of(job)
    assert static.execution.layout is not None
    assert np.array_equal(fixed.result.layout.circuits, static.execution.layout.circuits)
    assert static.chosen is not None
    assert fixed.lowering == static.chosen.lowering
    # A link whose loss nobody feels does not exist: the same path gives the same time without one.
    whole = fixed.unharmed()
    assert whole.iteration_ms == pytest.approx(static.iteration_ms, rel=1e-12)


def test_every_way_to_go_on_is_told_with_its_time_or_its_reason() -> None:
    job = small(1.0)
    fixed = FixedCircuits.of(job)
    for failure, ways in (
        (Failure.fibre(*fixed.links[0]), 4),
        (Failure.of_port(0, 0), 4),
        (Failure.of_switch(1), 4),
        (Failure.of_server(2, 3), 3),
    ):
        outcomes = after_failure(job, fixed, failure, 0.5)
        assert len(outcomes) == ways
        for one in outcomes:
            assert one.before_ms == job.runs[one.fabric].iteration_ms
            assert one.done
            assert one.after_ms is None or one.after_ms > 0


def test_a_plan_that_keeps_circuits_fixed_goes_on_from_any_moment() -> None:
    job = small(100.0)
    scheduled = job.runs["scheduled"]
    assert scheduled.result is not None
    assert scheduled.result.switching == "fixed"
    fixed = FixedCircuits.of(job)
    this, following = after_failure(job, fixed, Failure.of_port(3, 1), 0.4)[-2:]
    assert this.after_ms is not None
    assert this.after_ms > scheduled.iteration_ms
    assert following.after_ms is not None
    mended = fixed.repaired(Failure.of_port(3, 1))[0].iteration_ms
    assert following.after_ms <= mended * (1 + 1e-9)
