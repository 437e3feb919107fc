"""A study keeps every point the moment it is done, and computes only what is missing."""

from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import finish
from topox_core.studies.study import Study, study_of
from topox_core.studies.study_run import PointRow, StudyResult, StudyRun, known_rows, plan_of

RACE: dict[str, Any] = {
    "name": "Race",
    "subject": {"kind": "sample", "name": "race"},
    "axes": [
        {"key": "cluster.reconfiguration_ms", "log": {"from": 0.01, "to": 100, "points": 6}},
        {"key": "fabric", "values": ["static", "provisioned", "scheduled"]},
    ],
}


def race(**changes: Any) -> Study:
    return study_of({**RACE, **changes}, "race.study.json")


def outcomes(result: StudyResult) -> list[Any]:
    return [(row.point, row.measures, row.status, row.message) for row in result.rows]


# Points are computed in this process where no test is about others: starting them takes longer.
HERE = ThreadPoolExecutor(1)


def run(
    study: Study, library: RunLibrary | None = None, workers: Executor | int = HERE
) -> StudyResult:
    return finish(StudyRun(plan_of(study, library), library, workers))


@pytest.mark.long
def test_what_is_kept_is_not_computed_again_and_a_wider_study_only_computes_what_it_adds(
    tmp_path: Path,
) -> None:
    library = RunLibrary.open(tmp_path / "runs.sqlite")
    assert finish(StudyRun(plan_of(race(), library), library, HERE, listed=False)) is not None
    assert (library.count(), library.studies()) == (18, [])
    again = StudyRun(plan_of(race(), library), library, HERE)
    assert (again.running, again.progress.done) == (False, 18)
    assert outcomes(again.result()) == outcomes(run(race(), workers=2))
    again.close()
    (kept,) = library.studies()
    assert (kept.state, kept.points, kept.kept) == ("complete", 18, 18)
    wider = race(axes=[RACE["axes"][0], {"key": "fabric", "values": ["reactive", "scheduled"]}])
    assert len(known_rows(plan_of(wider, library), library)) == 6
    run(wider, library)
    assert library.count() == 24
    assert sorted(one.kept for one in library.studies()) == [12, 18]


def test_the_time_left_is_that_of_the_points_that_are_missing() -> None:
    plan = plan_of(race())
    assert plan.seconds({}, 2) is None
    known = {plan.key_of(0): PointRow(0, (), measures={}, status="simulated", wall_s=2.0)}
    assert plan.seconds(known, 2) == 2.0 * 17 / 2
    late = run(race(budget={"seconds": 1e-3}))
    assert late.lost and not late.complete
