"""A real scheduler with two worker processes: the same bits as here, and nothing lost whoever is killed."""

import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.dask_machines import Machines, machines_in
from tests.patience import PATIENCE_S, wait_until
from tests.real_inputs import ROOT
from tests.refusal import refusal
from tests.topox_core.runs.cells_to_run import begun, noted, number, scaled, times_begun
from tests.topox_core.runs.test_run import copied_package
from topox_core import __version__
from topox_core.runs.cells import SCHEDULER_VARIABLE, CellsRun, executor_for
from topox_core.runs.dask_executor import SCATTERED_BYTES, DaskExecutor
from topox_core.runs.executor import LocalExecutor, Shared
from topox_core.runs.run import finish


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with machines_in(tmp_path) as these:
        yield these


def run_of(folder: Path, cells, executor, **more):
    return CellsRun(list(cells), str, partial(noted, str(folder)), None, executor, **more)


def expected(cells) -> dict[int, float]:
    return {cell: number(cell) for cell in cells}


# -- what works ------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_dask_workers_give_the_bits_of_this_machine_and_are_free_after_a_cancel(
    machines: Machines,
) -> None:
    executor = machines.started()
    shared = Shared.of((2.0 / 3.0, b"bulky" * SCATTERED_BYTES))
    run = run_of(machines.folder, range(1000), executor)
    wait_until(lambda: run.progress.done > 5)
    run.cancel()
    assert not run.running and run.result().cancelled and 5 < len(run.result().results) < 1000
    there = finish(CellsRun(range(300), str, first_scaled, None, executor, shared=shared))
    small = finish(CellsRun(range(300), str, scaled, None, executor, shared=Shared.of(0.1)))
    deadly = finish(run_of(machines.folder, [*range(40), 1000, *range(40, 80), 2000], executor))
    wait_until(lambda: executor.workers == 2)  # what died with its call is started anew
    assert executor.away == ""
    executor.kill()
    here = finish(CellsRun(range(300), str, first_scaled, None, 1, shared=shared))
    assert list(there.results.items()) == list(here.results.items())
    assert small.results == {cell: 0.1 * number(cell) for cell in range(300)}
    assert there.lost == small.lost == ()
    assert set(deadly.failures) == {1000, 2000}
    assert deadly.results == expected(range(80))
    with pytest.raises(RuntimeError, match="was closed"):
        executor.submit(abs, -1)


def first_scaled(value: tuple[float, bytes], cell: int) -> float:
    return scaled(value[0], cell)


# -- who is killed ---------------------------------------------------------------------------------


@pytest.mark.long
def test_of_a_killed_worker_only_what_it_held_is_computed_again_and_a_run_waits_for_others(
    machines: Machines,
) -> None:
    executor, (_, *workers) = machines.started(), machines.processes
    run = run_of(machines.folder, range(300), executor)
    wait_until(lambda: run.progress.done >= 60)
    victim = begun(machines.folder)[-1][1]
    os.kill(victim, signal.SIGKILL)
    result = finish(run)
    assert (result.results, result.lost) == (expected(range(300)), ())
    times, first = times_begun(machines.folder), dict(reversed(begun(machines.folder)))
    twice = [cell for cell in range(300) if times[cell] > 1]
    assert {first[cell] for cell in twice} <= {victim} and len(twice) <= 64
    waiting = run_of(machines.folder, range(300, 800), executor)
    wait_until(lambda: waiting.progress.done >= 20)
    for worker in workers:
        os.killpg(worker.pid, signal.SIGKILL)
    wait_until(lambda: waiting.progress.words.startswith("the scheduler has no workers; "))
    machines.worker()
    assert finish(waiting).results == expected(range(300, 800))
    executor.kill()


@pytest.mark.long
def test_a_scheduler_that_is_killed_and_comes_back_costs_nothing_that_was_kept(
    machines: Machines,
) -> None:
    executor, (first, *workers) = machines.started(), machines.processes
    shared = Shared.of((1.0, b"bulky" * SCATTERED_BYTES))
    came: list[tuple[int, float]] = []
    cell = partial(noted_shared, str(machines.folder))
    run = CellsRun(range(300), str, cell, None, executor, came.extend, shared)
    wait_until(lambda: len(came) >= 60)
    os.killpg(first.pid, signal.SIGKILL)
    wait_until(lambda: run.progress.words)
    kept = {cell for cell, _ in came}
    assert run.progress.words == f"the scheduler is away; {len(came)} of 300 are kept"
    for worker in workers:  # they end by themselves: nobody is there to send them work
        worker.wait(PATIENCE_S)
    machines.started().kill()
    result = finish(run)
    executor.kill()
    assert (dict(came), len(came), result.lost) == (expected(range(300)), 300, ())
    assert {times_begun(machines.folder)[cell] for cell in kept} == {1}


def noted_shared(folder: str, _value: object, cell: int) -> float:
    return noted(folder, cell)


# -- what is refused before anything is sent -------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("http://host",), "scheduler: address must look like tcp://host:8786 (got 'http://host')"),
        (("host:8786",), "scheduler: address must look like tcp://host:8786 (got 'host:8786')"),
        (("tcp://host:99999",), "must look like"),
        (("tcp://host", 2), "one or the other"),
        (("tcp://127.0.0.1:8786",), "dask is not installed: pip install .[dask]"),
        ((), "(got 'nowhere')"),
    ],
)
def test_whoever_cannot_compute_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, asked: tuple, words: str
) -> None:
    monkeypatch.setenv(SCHEDULER_VARIABLE, "nowhere")
    monkeypatch.setattr("topox_core.runs.dask_executor.find_spec", lambda _name: None)
    assert words in refusal(executor_for, *asked)


def test_this_machine_computes_where_no_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCHEDULER_VARIABLE, "nowhere")
    assert executor_for(workers=3).workers == 3
    assert isinstance(executor_for(""), LocalExecutor)
    monkeypatch.delenv(SCHEDULER_VARIABLE)
    assert isinstance(executor_for(), LocalExecutor)


def other_code(folder: Path) -> Path:
    """A copy of the package with one line more."""
    with (copied_package(folder) / "errors.py").open("a") as file:
        file.write("\n# one line more\n")
    (folder / "tests").symlink_to(ROOT / "tests")
    return folder


@pytest.mark.long
def test_workers_that_run_other_code_or_none_are_refused_and_end_a_run_that_they_join(
    machines: Machines,
) -> None:
    def refused() -> str:
        return refusal(DaskExecutor, machines.address)

    assert refused() == f"scheduler {machines.address}: cannot be reached (3 s)"
    machines.scheduler()
    assert refused() == f"scheduler {machines.address}: has no workers"
    without = machines.worker(machines.folder)
    wait_until(lambda: "has no topox_core" in refused())
    os.killpg(without.pid, signal.SIGKILL)
    wait_until(lambda: "has no workers" in refused())
    machines.worker()
    executor = machines.executor(1)
    run = run_of(machines.folder, range(100_000), executor)
    wait_until(lambda: run.progress.done > 5)
    machines.worker(other_code(machines.folder))
    result = finish(run)
    executor.kill()
    assert re.match(r"worker tcp://127\.0\.0\.1:\d+: runs topox ", result.stopped)
    assert result.results == expected(result.results)
    assert f": runs topox {__version__}+" in refused()
