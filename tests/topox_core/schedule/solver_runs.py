"""A solve in a child process, waited for."""

from __future__ import annotations

from topox_core.runs.stopping import Stop, never
from topox_core.schedule.engines.engine import Answer, Limits, OnProgress, silent
from topox_core.schedule.engines.solver_process import SolverProcess
from topox_core.schedule.problem import Problem


def solve_in_process(
    engine: str,
    problem: Problem,
    limits: Limits,
    stop: Stop = never,
    on_progress: OnProgress = silent,
) -> Answer:
    """Solve in a child process and wait for the answer, passing progress on; ``stop`` cancels.

    Raises
    ------
    InputError
        If the engine refuses the problem (too large for it).
    """
    with SolverProcess(engine, problem, limits) as process:
        while True:
            running = process.running
            for progress in process.wait_for_news(0.05):
                on_progress(progress)
            if not running:
                break
            if stop():
                process.cancel()
        answer = process.answer
    assert answer is not None
    return answer
