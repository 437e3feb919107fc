"""Children that load before they are asked: one an engine, taken by the next solve, replaced where one died."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.topox_core.schedule.problem_builder import Fabric, random_problem
from topox_core.schedule.engines.engine import Limits
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.engines.waiting_workers import (
    end_all,
    expect_request,
    wait_until_loaded,
    worker_of,
)

PROBLEM = random_problem(104, Fabric(servers=3, half_duplex=True), tasks=9, density=0.12)


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    end_all()
    yield
    end_all()


def optimum(process: SolverProcess) -> int | None:
    with process:
        wait_until(lambda: not process.running)
        assert process.answer is not None
        assert process.answer.stopped_by == "proof"
        return process.answer.makespan(PROBLEM)


@pytest.mark.parametrize("engine", ["cpsat", "highs"])
def test_a_child_that_has_loaded_takes_the_next_request(engine):
    expect_request([engine])
    expect_request([engine])  # one is enough
    wait_until_loaded([engine], PATIENCE_S)
    waiting = worker_of(engine)
    assert waiting.args[-1] == engine
    assert worker_of(engine).args[-1] != engine  # nobody waited any more
    waiting.kill()


@pytest.mark.long
def test_its_answer_is_that_of_a_child_that_loads_when_it_is_asked():
    late = optimum(SolverProcess("cpsat", PROBLEM, Limits(time_limit_s=60)))
    expect_request(["cpsat"])
    early = SolverProcess("cpsat", PROBLEM, Limits(time_limit_s=60))
    assert optimum(early) == late


def test_a_child_that_died_while_it_waited_is_replaced():
    expect_request(["cpsat"])
    dead = worker_of("cpsat")
    dead.kill()
    dead.wait()
    expect_request(["cpsat"])
    waiting = worker_of("cpsat")
    assert waiting.pid != dead.pid
    assert waiting.poll() is None
    waiting.kill()


def test_nobody_waits_for_rules_or_the_printed_model():
    expect_request(["list", "printed", "auto"])
    for engine in ("list", "printed", "auto"):
        child = worker_of(engine)
        assert child.args[-1] != engine
        child.kill()


def test_those_that_nobody_asked_are_ended():
    expect_request(["cpsat", "highs"])
    children = {name: worker_of(name) for name in ("cpsat", "highs")}
    expect_request(["cpsat"])
    end_all()
    taken_apart = worker_of("cpsat")
    assert taken_apart.args[-1] != "cpsat"
    for child in (*children.values(), taken_apart):
        child.kill()
