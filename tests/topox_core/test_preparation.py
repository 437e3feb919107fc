"""Kernels on their way: how far the compiler is, who does not wait, and the cache of machine code."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from tests.conftest import long_after
from tests.patience import wait_until
from tests.topox_core.small_graphs import cluster, random_graph
from topox_core import compiled, warm_up
from topox_core.compiled import COMPILED, PACKAGE, compiled_in_place
from topox_core.fabrics.planning.schedule_workers import ScheduleWorkers
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.schedule.kernels.colouring import colour_slots
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import FREE, Settings
from topox_core.warm_up import KERNELS, Preparation
from topox_core.workloads.samples import SAMPLES, load_sample

LISTED = Settings.of(engine="list", free=FREE)


def compiling(script: str) -> Preparation:
    return Preparation((sys.executable, "-c", script))


def test_nothing_is_compiled_where_everything_is_or_cannot_be_kept(monkeypatch):
    assert compiling("raise SystemExit").ready, "the tests begin with all kernels compiled"
    monkeypatch.setattr(warm_up, "is_ready", lambda: False)
    monkeypatch.setattr(warm_up.os, "access", lambda *_: False)
    assert compiling("raise SystemExit").ready


@pytest.mark.parametrize("end", ["", "raise SystemExit(1)"])
def test_each_line_is_a_kernel_and_who_waits_goes_on_however_the_compiler_ends(monkeypatch, end):
    monkeypatch.setattr(warm_up, "is_ready", lambda: False)
    one = compiling(f"print('push\\npop', flush=True); input(); {end}")
    # Its standard input is empty, so that it ends with the third statement at the latest.
    wait_until(lambda: one.words.startswith(f"2 of {KERNELS}, about "))
    one.wait()
    assert one.ready


@pytest.mark.parametrize("seed", range(5))
def test_a_kernel_that_is_not_compiled_yet_gives_the_same_at_once(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    ends = np.stack([rng.permutation(6), rng.permutation(6)]).repeat(2, axis=1).astype(np.int32)
    first = rng.integers(0, 4, 12)
    given = (ends, first, first + rng.integers(1, 5, 12), 6, 4, 2, 12)
    plain = compiled._plain(colour_slots)
    assert compiled.at_once(colour_slots) is colour_slots, "the tests begin with it compiled"
    assert plain is not colour_slots
    assert np.array_equal(plain(*given), colour_slots(*given))


@pytest.fixture(scope="module")
def plainly():
    workers = ScheduleWorkers(1, plainly=True)
    yield workers
    workers.close()


SMALL = [name for name in SAMPLES if SAMPLES[name].tasks <= 300]


@pytest.mark.parametrize("case", long_after(2, [*SMALL, *range(8)]))
def test_without_the_compiler_a_schedule_is_the_same_bit_for_bit(plainly, case):
    if isinstance(case, str):
        job = load_sample(case)
    else:
        job = random_graph(case, tasks=25), cluster(4, ports_per_server=2, switches=2)
    records = []
    for result in (schedule(*job, LISTED), plainly.schedule(*job, LISTED).result()):
        record = to_record(result)
        records.append({key: one for key, one in record.items() if not key.endswith("wall_s")})
        del records[-1]["working_s"]
    assert records[0] == records[1]


def test_every_file_with_compiled_functions_counts_in_the_name_of_the_cache() -> None:
    counted = {path for pattern in COMPILED for path in PACKAGE.glob(pattern)}
    with_kernels = {
        path for path in PACKAGE.rglob("*.py") if "\n@compiled" in path.read_text("utf-8")
    }
    assert with_kernels <= counted


def test_a_kernel_that_counts_no_references_may_make_no_array() -> None:
    def first_of_a_new_array(numbers: np.ndarray) -> float:
        return (numbers + 1.0)[0]

    with pytest.raises(numba.core.errors.NumbaError, match="NRT required but not enabled"):
        compiled_in_place(first_of_a_new_array)(np.zeros(2))


def test_two_processes_never_give_a_function_one_number() -> None:
    """Numba tells functions of one name and type apart by a number alone, and keeps their code for all processes."""
    number = "from topox_core import compiled; print(next(compiled.bytecode.FunctionIdentity._unique_ids))"
    first, second = (
        int(subprocess.run([sys.executable, "-c", number], capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    # A process compiles some thousand functions.
    assert abs(first - second) > 1_000_000
