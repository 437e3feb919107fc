"""A study on a Dask scheduler's workers: the bits of this machine, and nothing lost when one is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dask_machines import Machines, machines_in
from tests.patience import wait_until
from tests.topox_core.studies.test_study_run import RACE, outcomes, race, run
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import finish
from topox_core.studies.study_run import StudyRun, plan_of


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with machines_in(tmp_path) as these:
        yield these


@pytest.mark.long
def test_the_same_bits_and_nothing_lost_when_a_worker_is_killed(
    machines: Machines, tmp_path: Path
) -> None:
    machines.scheduler()
    first = machines.worker()
    machines.worker()
    library = RunLibrary.open(tmp_path / "runs.sqlite")
    executor = machines.executor()
    delays = {"key": "cluster.reconfiguration_ms", "log": {"from": 0.01, "to": 100, "points": 60}}
    study = race(axes=[delays, RACE["axes"][1]])
    try:
        there = StudyRun(plan_of(study, library), library, executor)
        wait_until(lambda: library.count() >= 1)
        os.killpg(first.pid, signal.SIGKILL)
        result = finish(there)
    finally:
        executor.kill()
    assert result is not None and result.complete and not result.failed
    assert library.count() == len(result.rows)
    assert outcomes(result) == outcomes(run(study, workers=2))
