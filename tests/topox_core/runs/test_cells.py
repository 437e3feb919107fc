"""Cells in batches: nothing lost, nothing twice but what a dead worker held, the same bits however they are computed."""

import concurrent.futures
import os
import pickle
import random
import signal
import threading
import time
from functools import partial

import pytest

from tests.conftest import long_after
from tests.patience import PATIENCE_S, wait_until
from tests.topox_core.runs.cells_to_run import (
    Deadly,
    Unpacked,
    begun,
    cannot_come_back,
    fails_in_its_own_way,
    noted,
    number,
    scaled,
    times_begun,
)
from tests.topox_core.runs.test_run import alive
from topox_core.errors import InputError
from topox_core.runs.cells import MAX_CELLS, WINDOW, CellsRun
from topox_core.runs.executor import AnswerLost, LocalExecutor, NotSent, Shared, answer_cells
from topox_core.runs.run import finish


def run_of(folder, cells, known=None, executor=2, **more):
    return CellsRun(cells, str, partial(noted, str(folder)), known, executor, **more)


class InThisProcess(concurrent.futures.Executor):
    """Answers each call at once, two at a time by its own account."""

    workers = 2

    def __init__(self):
        self.sizes, self.open, self.most_open = [], 0, 0

    def submit(self, fn, /, *args, **kwargs):
        self.sizes.append(len(next(one for one in args if isinstance(one, tuple))))
        future = concurrent.futures.Future()
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        threading.Timer(0.0, self.answer, (future, partial(fn, *args, **kwargs))).start()
        return future

    def answer(self, future, call):
        if future.set_running_or_notify_cancel():
            self.open -= 1
            future.set_result(call())


# -- workers that end ------------------------------------------------------------------------------


@pytest.mark.parametrize("signal_number", long_after(1, [signal.SIGKILL, signal.SIGSEGV]))
def test_of_a_killed_worker_exactly_what_it_held_is_computed_again(tmp_path, signal_number):
    cells = list(range(100))
    run = run_of(tmp_path, cells)
    wait_until(lambda: run.progress.done >= 20)
    _, victim = begun(tmp_path)[-1]
    os.kill(victim, signal_number)
    result = finish(run)
    assert (result.results, result.lost) == ({cell: number(cell) for cell in cells}, ())
    times, first = times_begun(tmp_path), dict(reversed(begun(tmp_path)))
    twice = [first[cell] for cell in cells if times[cell] > 1]
    assert set(twice) <= {victim} and len(twice) <= MAX_CELLS and max(times.values()) <= 2


def test_a_cell_that_ends_its_worker_fails_alone(tmp_path):
    cells = [*range(40), 1000, *range(40, 60), 2000, *range(60, 70)]
    result = finish(run_of(tmp_path, cells))
    assert set(result.failures) == {1000, 2000}
    assert str(result.failures[1000]) == "the worker process ended twice at this point (signal 9)"
    assert isinstance(result.failures[2000], InputError)
    assert list(result.results) == [cell for cell in cells if cell < 1000]
    assert (times_begun(tmp_path)[1000], times_begun(tmp_path)[2000]) == (2, 1)
    assert any("signal 9" in line and "1 of 72 calls are missing" in line for line in result.lost)


def test_workers_that_end_as_soon_as_they_start_end_the_run():
    result = finish(CellsRun(range(100), str, scaled, None, 1, shared=Shared.of(Deadly())))
    assert result.stopped == "worker processes end as soon as they start"
    assert (result.lost[0], result.results) == (result.stopped, {})


def test_a_worker_that_ends_without_work_is_replaced():
    with LocalExecutor(1) as executor:
        worker = executor.submit(os.getpid).result(PATIENCE_S)
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not alive(worker))
        time.sleep(0.3)  # until its executor has heard of it
        assert executor.submit(os.getpid).result(PATIENCE_S) != worker


# -- the same table however it is computed -----------------------------------------------------------


def test_processes_and_threads_give_equal_results_in_the_order_of_the_cells(workers):
    cells = random.Random(3).sample(range(10_000), 400)
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        for executor in (1, workers, threads):
            table = finish(CellsRun(cells, str, number, None, executor)).results
            assert list(table.items()) == [(cell, number(cell)) for cell in cells]
        assert threads.submit(abs, -3).result() == 3  # whoever gives threads keeps them


def test_a_run_cancelled_at_any_moment_and_gone_on_with_gives_the_same_table(tmp_path):
    cells, known, moments, cancelled = list(range(100)), {}, random.Random(5), 0
    while len(known) < len(cells):
        run, enough = run_of(tmp_path, cells, known), len(known) + moments.randrange(1, 60)
        wait_until(lambda run=run, enough=enough: len(known) >= enough or not run.running)
        run.cancel()
        cancelled += run.result().cancelled
        assert not run.running
    assert known == {str(cell): number(cell) for cell in cells}
    assert cancelled >= 2
    again = run_of(tmp_path, cells, known)
    assert finish(again).results == {cell: number(cell) for cell in cells}
    # Only what was under way at a cancel was begun more than once.
    under_way = (cancelled + 1) * WINDOW * 2 * MAX_CELLS
    assert sum(times_begun(tmp_path).values()) <= len(cells) + under_way


# -- results as they come --------------------------------------------------------------------------


def test_results_are_handed_on_once_each_and_not_kept(workers):
    came, threads = [], set()

    def take(batch):
        threads.add(threading.current_thread())
        came.extend(batch)

    result = finish(CellsRun(range(500), str, number, None, workers, take))
    assert sorted(came) == [(cell, number(cell)) for cell in range(500)]
    assert len(threads - {threading.main_thread()}) == len(threads) == 1
    assert (result.results, result.total, result.lost) == ({}, 500, ())


def test_what_the_keeper_of_results_raises_ends_the_run(workers):
    def full(_batch):
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        finish(CellsRun(range(500), str, number, None, workers, full))


def test_results_and_errors_that_cannot_come_back_fail_alone_and_in_words(workers):
    result = finish(CellsRun(range(60), str, cannot_come_back, None, workers))
    assert set(result.failures) == {7} and "pickle" in str(result.failures[7]).lower()
    assert result.results == {cell: number(cell) for cell in range(60) if cell != 7}
    own = finish(CellsRun(range(3), str, fails_in_its_own_way, None, workers)).failures
    assert [str(own[cell]) for cell in range(3)] == [f"TwoWords: cell {cell}" for cell in range(3)]


# -- what is sent ----------------------------------------------------------------------------------


def test_never_more_is_under_way_than_the_window_and_batches_grow_with_quick_cells():
    executor = InThisProcess()
    result = finish(CellsRun(range(5_000), str, number, None, executor))
    assert len(result.results) == 5_000
    assert executor.most_open <= WINDOW * executor.workers
    assert (executor.sizes[0], max(executor.sizes)) == (1, MAX_CELLS)
    assert executor.sizes[-1] == 1  # the last ones are shared out
    # A worker gives back what it had no time for.
    assert len(answer_cells(time.sleep, None, (0.02, 0.0, 0.0), 0.01)) == 1


def test_a_worker_is_sent_the_shared_part_once_and_again_when_it_has_forgotten_it(tmp_path):
    once = Shared.of(Unpacked(str(tmp_path)))
    with LocalExecutor(1) as executor:
        result = finish(CellsRun(range(200), str, scaled, None, executor, shared=once))
        assert result.results == {cell: 2.0 * number(cell) for cell in range(200)}
        assert len((tmp_path / "unpacked").read_text().split()) == 1
        shared = [Shared.of(float(k)) for k in range(4)]
        for one in (*shared, shared[0]):
            (answer,) = executor.submit(answer_cells, scaled, one, (5,), 1.0).result(PATIENCE_S)
            assert answer.result == pickle.loads(one.content) * number(5)
        with pytest.raises(NotSent):
            executor.submit(Shared("never sent", None).value).result(PATIENCE_S)


class Completed:
    """Another thread fills a cached property of this while it is pickled for the first time."""

    tries = 0

    def __reduce__(self):
        self.tries += 1
        if self.tries == 1:
            raise RuntimeError("dictionary changed size during iteration")
        return float, (3.0,)


def test_what_another_thread_completes_while_it_is_sent_is_sent_again():
    with LocalExecutor(1) as executor:
        assert executor.submit(abs, Completed()).result(PATIENCE_S) == 3.0
    assert Shared.of(Completed()).value() == 3.0


# -- ends ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_when_the_time_is_up_no_cell_is_begun_and_what_is_there_is_kept(tmp_path):
    result = finish(run_of(tmp_path, [1, 2, 3000, *range(3, 3000)], seconds=2.0))
    assert (result.stopped, result.cancelled) == ("the time of 2 s is up", False)
    assert result.results[1] == number(1)
    assert len(result.results) < result.total - 1


class Wrong(InThisProcess):
    def answer(self, future, call):
        future.set_exception(InputError("runs numba 0.1", file="worker tcp://a:1"))


def test_an_executor_that_is_shut_down_or_wrong_ends_the_run_in_one_line():
    closed = LocalExecutor(1)
    closed.kill()
    results = [finish(CellsRun(range(9), str, number, None, one)) for one in (closed, Wrong())]
    assert [(result.stopped, result.failures) for result in results] == [
        ("these worker processes were shut down", {}),
        ("worker tcp://a:1: runs numba 0.1", {}),
    ]


class Unsteady(InThisProcess):
    """Loses the second call and is away for a while."""

    away = ""

    def answer(self, future, call):
        if len(self.sizes) == 2:
            self.away = "the scheduler is away"
            future.set_exception(AnswerLost())
            self.open -= 1
        else:
            super().answer(future, call)


def test_while_an_executor_is_away_the_run_waits_and_loses_nothing():
    executor = Unsteady()
    run = CellsRun(range(300), str, number, None, executor)
    words = wait_until(lambda: run.progress.words)
    assert words.startswith("the scheduler is away; ") and words.endswith(" of 300 are kept")
    assert run.progress.left_s is None and run.running
    executor.away = ""
    assert finish(run).results == {cell: number(cell) for cell in range(300)}
