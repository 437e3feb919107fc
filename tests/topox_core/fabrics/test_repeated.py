"""The repeated iteration: by hand, as many in a row, and never shorter than the first."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from tests.conftest import examples
from tests.topox_core.fabrics.asked import run
from tests.topox_core.small_graphs import (
    cluster,
    compute,
    graph,
    random_graph,
    sample_with,
    transfer,
)
from topox_core.check.checker import check
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import SAMPLES

REPEATED = Settings.of(engine="list", switching="planned")
FIRST = replace(REPEATED, iteration="first")
CONTROLLERS = ("reactive", "provisioned", "phased")
CLOSE = 1e-6


# One port each, a change of 2 ms: the first iteration and each of many.
BY_HAND = {
    "the last circuit comes back to the first at the beginning of the next iteration": (
        (transfer("a", 0, 1, 1), transfer("b", 0, 2, 1, "a")),
        (4, 6, 6),
    ),
    "the change back hides behind compute where it is requested beforehand": (
        (compute("f", 0, 3), transfer("a", 0, 1, 1, "f"), transfer("b", 0, 2, 1, "a")),
        (7, 9, 7),
    ),
    "an iteration that ends with the circuit that it began with changes nothing": (
        (transfer("a", 0, 1, 1), transfer("b", 0, 2, 1, "a"), transfer("c", 0, 1, 1, "b")),
        (7, 7, 7),
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_iterations_of_one_port_each_by_hand(name: str) -> None:
    tasks, (first_ms, on_demand_ms, beforehand_ms) = BY_HAND[name]
    job, of = graph(*tasks), cluster(3, reconfiguration_ms=2)
    for fabric in (*CONTROLLERS, "scheduled"):
        assert run(fabric, job, of, FIRST).iteration_ms == pytest.approx(first_ms)
        mine = run(fabric, job, of, REPEATED)
        expected = on_demand_ms if fabric == "reactive" else beforehand_ms
        assert mine.iteration_ms == pytest.approx(expected), fabric
        assert mine.first_ms == (None if first_ms == expected else pytest.approx(first_ms))
    for clock in ("continuous", "slots"):
        result = schedule(job, of, replace(REPEATED, clock=clock))
        assert result.makespan_ms == pytest.approx(beforehand_ms)
        assert check(job, of, to_record(result)).lines() == ()


def in_a_row(job: TaskGraph, times: int) -> TaskGraph:
    """Return a job so often, a barrier between: the next begins when the last task has ended."""
    tasks: list[Task] = []
    for k in range(times):
        since = (f"end{k - 1}",) if k else ()
        tasks += [
            structs.replace(
                one,
                id=f"{one.id}#{k}",
                dependencies=tuple(f"{name}#{k}" for name in one.dependencies) or since,
            )
            for one in job.tasks
        ]
        tasks.append(
            Task(f"end{k}", "barrier", dependencies=tuple(f"{one.id}#{k}" for one in job.tasks))
        )
    return replace(job, tasks=tuple(tasks))


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "llama3-70b"])
@pytest.mark.parametrize("delay_ms", [0.1, 1.0, 10.0])
def test_three_iterations_in_a_row_take_three_times_the_repeated_one(
    name: str, delay_ms: float
) -> None:
    job, of = sample_with(name, reconfiguration_ms=delay_ms)
    # On demand also where several take turns. Beforehand as on demand where each is like the last;
    # phase by phase three iterations have three times the phases, which planes share differently.
    once, three = (run("reactive", one, of, REPEATED) for one in (job, in_a_row(job, 3)))
    if "do not repeat" not in once.message:
        assert three.iteration_ms == pytest.approx(3 * once.iteration_ms, rel=CLOSE)
    if once.mean_ms is None:
        once, three = (run("provisioned", one, of, REPEATED) for one in (job, in_a_row(job, 3)))
        assert three.iteration_ms == pytest.approx(3 * once.iteration_ms, rel=CLOSE)


ONE_TIME = ("slot_ms", "tick_ms")  # of a result's times those that are no iteration's


def thrice(record: dict[str, Any]) -> dict[str, Any]:
    """Return the result of three iterations in a row, each as long as the one of a result and like it."""
    period_ms = record["makespan_ms"]
    made = {
        key: 3 * value if key.endswith("_ms") and key not in ONE_TIME and value else value
        for key, value in record.items()
    }
    names = ("id", "task", "collective")
    for part in ("tasks", "transfers", "circuits"):
        made[part] = [
            row
            | {key: f"{row[key]}#{k}" for key in names if key in row}
            | {key: value + k * period_ms for key, value in row.items() if key.endswith("_ms")}
            | (
                {"dependencies": [f"{name}#{k}" for name in row["dependencies"]]}
                if "dependencies" in row
                else {}
            )
            for k in range(3)
            for row in record[part]
        ]
    ends = [
        {"id": f"end{k}", "start_ms": at, "end_ms": at}
        for k in range(3)
        for at in [(k + 1) * period_ms]
    ]
    made["tasks"] += ends
    return made


@pytest.mark.parametrize("name", ["blackboard", "patience", "race", "moe", "dlrm-16"])
@pytest.mark.parametrize("delay_ms", [0.1, 1.0, 10.0])
def test_three_iterations_of_a_plan_in_a_row_keep_every_rule(name: str, delay_ms: float) -> None:
    job, of = sample_with(name, reconfiguration_ms=delay_ms)
    record = to_record(schedule(job, of, REPEATED))
    assert check(in_a_row(job, 3), of, thrice(record)).lines() == ()


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    ports=st.sampled_from([1, 2, 3]),
    delay_ms=st.sampled_from([0.0, 0.3, 2.0, 9.0]),
    duplex=st.sampled_from(["full", "half"]),
    room=st.sampled_from([2, 16]),
)
def test_repeated_iterations_pass_the_checker_and_repeat(
    seed: int, ports: int, delay_ms: float, duplex: str, room: int
) -> None:
    job = random_graph(seed)
    of = cluster(
        4,
        ports_per_server=ports,
        ports_per_switch=room,
        reconfiguration_ms=delay_ms,
        duplex=duplex,
    )
    for clock in ("continuous", "slots"):
        for switching in ("planned", "provisioned"):
            if (clock, switching) == ("slots", "provisioned"):
                continue
            how = replace(REPEATED, clock=clock, switching=switching)
            result = schedule(job, of, how)
            assert check(job, of, to_record(result)).lines() == ()
    for fabric in ("provisioned", "phased"):
        once = run(fabric, job, of, REPEATED)
        assert once.iteration_ms >= once.bound_ms * (1 - CLOSE)
    once = run("reactive", job, of, REPEATED)
    if "do not repeat" not in once.message:
        three = run("reactive", in_a_row(job, 3), of, REPEATED)
        assert three.iteration_ms == pytest.approx(3 * once.iteration_ms, rel=CLOSE)
