"""All proofs of these tests in one worker: starting one for each takes longer than a proof."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from loky.process_executor import ProcessPoolExecutor

from topox_core.runs.run import Stop, never
from topox_core.tdm import exact


@functools.cache
def _worker() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1)


def _with_steps(
    function: Callable[..., float], arguments: tuple[Any, ...]
) -> tuple[float, list[Any]]:
    steps: list[Any] = []
    return function(*arguments, never, steps.append), steps


def _call(
    function: Callable[..., float],
    *arguments: Any,
    stop: Stop,
    on_step: Callable[[Any], None],
    grace_s: float,
) -> float:
    del stop, grace_s
    answer, steps = _worker().submit(_with_steps, function, arguments).result()
    for step in steps:
        on_step(step)
    return answer


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "call_in_worker", _call)
