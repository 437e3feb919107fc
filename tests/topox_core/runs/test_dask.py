"""A real scheduler with two worker processes: the same bits as here, and nothing lost whoever is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dask_machines import NEEDED, Machines, free_port, machines_in
from tests.patience import PATIENCE_S, wait_until
from tests.topox_core.runs.cells_to_run import begun, noted, number, scaled, times_begun
from topox_core import __version__
from topox_core.errors import InputError
from topox_core.runs.batch import Shared
from topox_core.runs.cells import CellsRun
from topox_core.runs.choose import SCHEDULER_VARIABLE, executor_for
from topox_core.runs.dask_executor import LONG_TASK_S, SCATTERED_BYTES, TASK_S, DaskExecutor
from topox_core.runs.executor import LocalExecutor
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
def test_two_dask_workers_give_the_bits_of_this_machine(machines: Machines) -> None:
    machines.scheduler()
    machines.worker()
    machines.worker()
    executor = machines.executor()
    shared = Shared.of((2.0 / 3.0, b"bulky" * SCATTERED_BYTES))
    try:
        there = finish(CellsRun(range(300), str, first_scaled, None, executor, shared=shared))
        small = finish(CellsRun(range(300), str, scaled, None, executor, shared=Shared.of(0.1)))
        assert (executor.task_s, executor.workers, executor.away) == (TASK_S, 2, "")
    finally:
        executor.kill()
    here = finish(CellsRun(range(300), str, first_scaled, None, 1, shared=shared))
    assert there.results == here.results
    assert list(there.results) == list(range(300))
    assert small.results == {cell: 0.1 * number(cell) for cell in range(300)}
    assert there.lost == small.lost == ()
    with pytest.raises(RuntimeError, match="was closed"):
        executor.submit(abs, -1)


def first_scaled(value: tuple[float, bytes], cell: int) -> float:
    return scaled(value[0], cell)


def test_tasks_are_longer_where_one_scheduler_has_many_workers() -> None:
    executor = DaskExecutor.__new__(DaskExecutor)
    executor.workers = 100
    assert executor.task_s == TASK_S
    executor.workers = 101
    assert executor.task_s == LONG_TASK_S


@pytest.mark.long
def test_cancel_is_answered_at_once_and_workers_are_free_again(machines: Machines) -> None:
    machines.scheduler()
    machines.worker()
    executor = machines.executor(1)
    run = run_of(machines.folder, range(1000), executor)
    wait_until(lambda: run.progress.done > 5)
    run.cancel()
    assert not run.running
    kept = run.result()
    assert kept.cancelled and 5 < len(kept.results) < 1000
    again = finish(run_of(machines.folder, range(20), executor))
    assert again.results == expected(range(20))
    executor.kill()


# -- who is killed ---------------------------------------------------------------------------------


@pytest.mark.long
def test_of_a_killed_worker_only_what_it_held_is_computed_again(machines: Machines) -> None:
    machines.scheduler()
    machines.worker()
    machines.worker()
    executor = machines.executor()
    run = run_of(machines.folder, range(300), executor)
    wait_until(lambda: run.progress.done >= 60)
    victim = begun(machines.folder)[-1][1]
    os.kill(victim, signal.SIGKILL)
    result = finish(run)
    executor.kill()
    assert (result.results, result.lost) == (expected(range(300)), ())
    twice = {cell for cell, times in times_begun(machines.folder).items() if times > 1}
    first = dict(reversed(begun(machines.folder)))
    assert {first[cell] for cell in twice} <= {victim}
    assert len(twice) <= 64


@pytest.mark.long
def test_a_run_waits_for_workers_when_all_are_gone(machines: Machines) -> None:
    machines.scheduler()
    worker = machines.worker()
    executor = machines.executor(1)
    run = run_of(machines.folder, range(200), executor)
    wait_until(lambda: run.progress.done >= 20)
    os.killpg(worker.pid, signal.SIGKILL)
    wait_until(lambda: run.progress.words.startswith("the scheduler has no workers; "))
    machines.worker()
    assert finish(run).results == expected(range(200))
    executor.kill()


@pytest.mark.long
def test_a_cell_that_ends_its_workers_fails_alone(machines: Machines) -> None:
    machines.scheduler()
    machines.worker()
    machines.worker()
    executor = machines.executor()
    cells = [*range(40), 1000, *range(40, 80), 2000]
    result = finish(run_of(machines.folder, cells, executor))
    executor.kill()
    assert set(result.failures) == {1000, 2000}
    assert "at this point" in str(result.failures[1000])
    assert result.results == expected(range(80))


@pytest.mark.long
def test_a_scheduler_that_is_killed_and_comes_back_costs_nothing_that_was_kept(
    machines: Machines,
) -> None:
    first = machines.scheduler()
    workers = [machines.worker(), machines.worker()]
    executor = machines.executor()
    shared = Shared.of((1.0, b"bulky" * SCATTERED_BYTES))
    came: list[tuple[int, float]] = []
    run = CellsRun(
        range(300),
        str,
        partial(noted_shared, str(machines.folder)),
        None,
        executor,
        came.extend,
        shared,
    )
    wait_until(lambda: len(came) >= 60)
    os.killpg(first.pid, signal.SIGKILL)
    wait_until(lambda: run.progress.words)
    kept = {cell for cell, _ in came}
    assert run.progress.words == f"the scheduler is away; {len(came)} of 300 are kept"
    for worker in workers:  # they end by themselves: nobody is there to send them work
        worker.wait(PATIENCE_S)
    machines.scheduler()
    machines.worker()
    machines.worker()
    result = finish(run)
    executor.kill()
    assert dict(came) == expected(range(300))
    assert len(came) == 300
    assert result.lost == ()
    assert {times_begun(machines.folder)[cell] for cell in kept} == {1}


def noted_shared(folder: str, _value: object, cell: int) -> float:
    return noted(folder, cell)


# -- what is refused before anything is sent -------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://host", "scheduler: address must look like tcp://host:8786 (got 'http://host')"),
        ("host:8786", "scheduler: address must look like tcp://host:8786 (got 'host:8786')"),
        ("tcp://host:99999", "must look like"),
    ],
)
def test_what_is_no_address_is_said_in_one_line(address: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        executor_for(address)
    assert words in str(error.value)


@pytest.mark.long
def test_a_scheduler_nobody_reaches_is_said_in_one_line() -> None:
    pytest.importorskip("distributed", reason=NEEDED)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(InputError, match=rf"^scheduler {address}: cannot be reached \(3 s\)$"):
        DaskExecutor(address)


def test_a_machine_without_dask_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topox_core.runs.dask_executor.find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r"^dask is not installed: pip install \.\[dask\]$"):
        executor_for("tcp://127.0.0.1:8786")


def test_who_computes_is_said_or_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCHEDULER_VARIABLE, "nowhere")
    with pytest.raises(InputError, match="must look like"):
        executor_for()
    with pytest.raises(InputError, match="one or the other"):
        executor_for("tcp://host:8786", 2)
    for here in (executor_for(""), executor_for(workers=3)):
        assert isinstance(here, LocalExecutor)
        here.kill()
    assert here.workers == 3
    monkeypatch.delenv(SCHEDULER_VARIABLE)
    assert isinstance(executor_for(), LocalExecutor)


def other_code(folder: Path) -> Path:
    """A copy of the package with one line more."""
    import shutil

    copied = folder / "other"
    skipped = shutil.ignore_patterns("__pycache__", "sample_data")
    shutil.copytree(ROOT / "topox_core", copied / "topox_core", ignore=skipped)
    with (copied / "topox_core" / "errors.py").open("a") as file:
        file.write("\n# one line more\n")
    return copied


@pytest.mark.long
def test_workers_that_run_other_code_or_none_are_refused(machines: Machines) -> None:
    machines.scheduler()
    with pytest.raises(InputError, match=rf"^scheduler {machines.address}: has no workers$"):
        DaskExecutor(machines.address)
    empty = machines.folder / "empty"
    empty.mkdir()
    without = machines.worker(empty)
    assert "has no topox_core" in wait_until(lambda: refused_worker(machines))
    os.killpg(without.pid, signal.SIGKILL)
    wait_until(lambda: "has no workers" in refused(machines))
    machines.worker(other_code(machines.folder))
    assert f": runs topox {__version__}+" in wait_until(lambda: refused_worker(machines))


def refused(machines: Machines) -> str:
    try:
        DaskExecutor(machines.address).kill()
    except InputError as error:
        return str(error)
    return ""


def refused_worker(machines: Machines) -> str:
    """Why a worker is refused; empty while there is none."""
    said = refused(machines)
    return "" if "has no workers" in said else said


@pytest.mark.long
def test_a_worker_of_other_code_that_joins_later_ends_the_run_in_one_line(
    machines: Machines,
) -> None:
    machines.scheduler()
    machines.worker()
    executor = machines.executor(1)
    run = run_of(machines.folder, range(100_000), executor)
    wait_until(lambda: run.progress.done > 5)
    copied = other_code(machines.folder)
    (copied / "tests").symlink_to(ROOT / "tests")
    machines.worker(copied)
    result = finish(run)
    executor.kill()
    assert result.stopped.startswith("worker tcp://127.0.0.1:")
    assert ": runs topox " in result.stopped
    assert result.results == expected(result.results)
