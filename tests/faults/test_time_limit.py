"""A time limit is for the work, all of it, whatever the machine does meanwhile."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import pytest

from topox_core import warm_up
from topox_core.cli.shared.printing import ended
from topox_core.fabrics.planning import scheduled
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

SLOW_S = 0.3


def slow_before_the_engines(monkeypatch: pytest.MonkeyPatch, engines: str) -> list[float]:
    """Let what precedes the engines take long, and them nothing; return the list of limits that they get."""
    fixed, run, given = scheduled.fixed_beside, getattr(scheduled, engines), []

    def slow(*arguments: Any) -> Any:
        time.sleep(SLOW_S)
        return fixed(*arguments)

    def recorded(graph: Any, cluster: Any, settings: Settings, *rest: Any) -> Any:
        given.append(settings.time_limit_s)
        return run(graph, cluster, replace(settings, time_limit_s=0.0), *rest)

    monkeypatch.setattr(scheduled, "fixed_beside", slow)
    monkeypatch.setattr(scheduled, engines, recorded)
    return given


def test_what_is_done_before_the_engines_begin_counts_towards_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = slow_before_the_engines(monkeypatch, "solve")
    result = scheduled.schedule(*load_sample("blackboard"), Settings.of(time_limit_s=5.0))
    assert given[0] <= 5.0 - SLOW_S and result.settings.time_limit_s == 5.0
    assert SLOW_S <= result.working_s <= result.wall_s


def test_a_proof_beside_the_page_counts_its_limit_as_the_command_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = slow_before_the_engines(monkeypatch, "prove_with")
    case = load_sample("blackboard")
    for clock in ("continuous", "slots"):
        result = scheduled.prove(*case, Settings.of(time_limit_s=5.0, clock=clock)).finish()
        assert given.pop() <= 5.0 - SLOW_S and result.settings.time_limit_s == 5.0
        assert SLOW_S <= result.working_s <= result.wall_s


def test_a_result_tells_both_times() -> None:
    result = scheduled.schedule(*load_sample("blackboard"), Settings.of(engine="list"))
    slow = replace(result, wall_s=16.0, working_s=5.0)
    assert (to_record(slow)["wall_s"], to_record(slow)["working_s"]) == (16.0, 5.0)
    assert ended("time_limit", 16.0, 5.0).endswith("16 s, of which 11 s to make the kernels ready")
    assert "kernels" not in ended("time_limit", 5.3, 5.0)


def test_kernels_are_made_ready_once_for_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(warm_up, "warm_up", lambda: calls.append("compiled"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    warm_up.get_ready()
    warm_up.get_ready()
    assert calls == ["compiled"]


@pytest.mark.parametrize("jump_s", [86_400.0, -86_400.0])
def test_a_clock_that_jumps_changes_neither_the_answer_nor_how_long_it_took(
    jump_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, settings = load_sample("blackboard"), Settings.of(engine="list")
    before = scheduled.schedule(*case, settings)
    steps = iter(range(10**9))
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + jump_s * next(steps))
    after = scheduled.schedule(*case, settings)
    assert after.makespan_ms == before.makespan_ms
    assert 0 <= after.wall_s < 3600
