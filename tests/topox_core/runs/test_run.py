"""The contract of runs: what is complete is kept, a stop arrives, a dead worker costs its cell, no process stays."""

import concurrent.futures
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import topox_core
from tests.patience import PATIENCE_S, counted, wait_until
from tests.real_inputs import ROOT
from topox_core.errors import InputError
from topox_core.runs.cells import CellsRun
from topox_core.runs.cores import NICENESS
from topox_core.runs.executor import Answer, LocalExecutor, WorkerDied, call_in_worker
from topox_core.runs.identity import code_version, identity
from topox_core.runs.run import AfterSeconds, FunctionRun, finish, never


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


# Cells; workers import them from this module.


def squared(folder: str, cell: int) -> int:
    """Square a cell, leaving this process's number; 13 ends its process, 17 is bad input, 99 takes long."""
    (Path(folder) / f"{cell}.{os.getpid()}").touch()
    if cell == 13:
        os._exit(7)
    if cell == 17:
        raise InputError("is unlucky", field="cell")
    if cell == 99:
        time.sleep(600)
    return cell * cell


def squares(folder, cells, known=None, executor=None, workers=1):
    return CellsRun(cells, str, partial(squared, str(folder)), known, executor or workers)


def processes(folder) -> set[int]:
    return {int(path.suffix[1:]) for path in folder.iterdir()}


# -- from a function -------------------------------------------------------------------------------


def test_steps_arrive_and_cancel_stops_a_function_and_keeps_the_best_it_has():
    run = FunctionRun(partial(counted, 10**9), lambda steps, s: len(steps))
    wait_until(lambda: run.progress)
    assert run.running and run.result() is None
    run.cancel()
    wait_until(lambda: not run.running)
    assert run.steps == tuple(range(run.result()))


@pytest.mark.parametrize("error", [InputError("is wrong"), ValueError("a defect")])
def test_what_a_function_raises_is_raised_where_its_result_is_asked_for(error):
    def failing(stop, on_step):
        raise error

    with pytest.raises(type(error), match=str(error)):
        finish(FunctionRun(failing))


def test_time_limits_end_a_run_on_the_clock_that_they_are_given():
    assert finish(FunctionRun(partial(counted, 10**9)), AfterSeconds(0.2)) > 0
    up = AfterSeconds(2.0, began=0.0, clock=iter((1.9, 2.0)).__next__)
    assert (up(), up()) == (False, True)


# -- from cells ------------------------------------------------------------------------------------


def test_cancel_keeps_complete_cells_and_leaves_no_process(tmp_path):
    known = {}
    run = squares(tmp_path, [1, 2, 99, 3], known)
    wait_until(lambda: len(known) == 2 and len(list(tmp_path.iterdir())) == 3)
    run.cancel()
    assert not run.running
    result = run.result()
    assert (result.results, result.cancelled, result.lost) == ({1: 1, 2: 4}, True, ())
    wait_until(lambda: not any(map(alive, processes(tmp_path))))


def test_the_time_left_is_estimated_from_the_cells_that_were_computed(tmp_path):
    class Held(concurrent.futures.Executor):
        def submit(self, fn, /, *args, **kwargs):
            future = concurrent.futures.Future()
            if {(1,), (2,)} & {arg for arg in args if isinstance(arg, tuple)}:
                future.set_result([Answer(0, None, 1.0)])
            return future

    run = squares(tmp_path, [1, 2, 3, 4, 5, 6], known={"5": 25, "6": 36}, executor=Held())
    wait_until(lambda: run.progress.done == 4)
    progress = run.progress
    assert progress.left_s == pytest.approx(progress.elapsed_s)  # two of the four that are done
    run.close()
    assert not run.running


# -- worker processes ------------------------------------------------------------------------------


def test_a_call_that_fails_raises_its_own_error_and_the_worker_goes_on(tmp_path):
    with LocalExecutor(1) as executor:
        unlucky, fine = (executor.submit(squared, str(tmp_path), cell) for cell in (17, 3))
        assert fine.result(PATIENCE_S) == 9
        with pytest.raises(InputError, match="field cell: is unlucky"):
            unlucky.result(PATIENCE_S)
        here = executor.submit(niceness).result(PATIENCE_S)
    assert len(processes(tmp_path)) == 1 and here == max(NICENESS, niceness())
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(abs, -1)


def test_workers_find_the_package_print_nothing_and_end_with_their_parent(tmp_path):
    program = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.topox_core.runs.test_run import squared\n"
        "from topox_core.runs.executor import LocalExecutor\n"
        "executor = LocalExecutor(1)\n"
        "executor.submit(print, 'noise').result()\n"
        f"executor.submit(squared, {str(tmp_path)!r}, 99)\n"
        "print('answer', flush=True)\n"
        "time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path.parent, stdout=subprocess.PIPE
    )
    try:
        wait_until(lambda: list(tmp_path.iterdir()))
    finally:
        parent.kill()
        printed, _ = parent.communicate()
    assert printed == b"answer\n"
    wait_until(lambda: not any(map(alive, processes(tmp_path))))


# -- one call in a worker of its own ---------------------------------------------------------------


def test_a_process_that_ends_while_calls_wait_for_its_workers_says_nothing():
    program = """
        import time
        from topox_core.runs.executor import LocalExecutor
        if __name__ == "__main__":
            executor = LocalExecutor(2)
            first, *_ = [executor.submit(time.sleep, 0.2) for _ in range(20)]
            first.result()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=PATIENCE_S, check=True)
    assert ended.stderr == b""


def test_steps_come_from_a_worker_and_the_stop_reaches_it():
    steps = []
    asked = {"stop": lambda: len(steps) >= 10, "on_step": steps.append, "grace_s": PATIENCE_S}
    reached = call_in_worker(counted, 10**9, **asked)
    assert steps == list(range(reached)) and reached >= 10


def test_a_call_in_a_worker_raises_what_the_function_does_and_is_ended_where_it_does_not_stop(
    tmp_path,
):
    with pytest.raises(InputError, match="is unlucky"):
        call_in_worker(squared, str(tmp_path), 17, stop=never)
    with pytest.raises(WorkerDied, match=r"exit code 7"):
        call_in_worker(squared, str(tmp_path), 13, stop=never)
    with pytest.raises(WorkerDied):
        call_in_worker(squared, str(tmp_path), 99, stop=lambda: any(tmp_path.glob("99.*")))
    wait_until(lambda: not any(map(alive, processes(tmp_path))))


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def copied_package(folder: Path) -> Path:
    """Copy the code of this package into a folder."""
    skipped = shutil.ignore_patterns("__pycache__", "sample_data")
    return shutil.copytree(ROOT / "topox_core", folder / "topox_core", ignore=skipped)


def test_the_version_follows_every_line_of_the_package_and_nothing_else(tmp_path, monkeypatch):
    package, here, version_there = (
        copied_package(tmp_path),
        code_version(),
        code_version.__wrapped__,
    )
    monkeypatch.setattr(topox_core, "__file__", str(package / "__init__.py"))
    (package / "notes.txt").write_text("no code")
    assert version_there() == here
    changed = package / "runs" / "cores.py"
    changed.write_text(changed.read_text() + "\n# one line more\n")
    second = version_there()
    changed.rename(changed.with_name("other_cores.py"))
    assert len({here, second, version_there()}) == 3


def test_two_identities_say_in_what_they_differ():
    mine = identity()
    assert mine.difference(pickle.loads(pickle.dumps(mine))) == ""
    said = f"runs numba 0.1, this machine {mine.numba}"
    assert mine.difference(replace(mine, numba="0.1")) == said
