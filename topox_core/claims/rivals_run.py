"""All six studies one after the other in the background, on the engine of every study."""

from __future__ import annotations

import concurrent.futures
import gzip
import json
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from pathlib import Path

from topox_core.claims.cells import JOBS, study_of_job
from topox_core.library.run_library import RunLibrary
from topox_core.runs.identity import code_version
from topox_core.runs.in_turn import RunsInTurn
from topox_core.studies.point_rows import PointRow, chains, with_harder_plans
from topox_core.studies.study import Study
from topox_core.studies.study_run import (
    Step,
    StudyPlan,
    StudyResult,
    known_rows,
    plan_of,
    steps_run,
)

Results = Mapping[str, StudyResult]
POINTS = Path(__file__).parent / "shipped_points.json.gz"


def rivals_run(
    library: RunLibrary | None = None,
    executor: concurrent.futures.Executor | int | None = None,
    jobs: Sequence[str] = tuple(JOBS),
) -> RunsInTurn[Results]:
    """Start the studies of some of :data:`~topox_core.claims.cells.JOBS`; their tables come by job.

    What the library has of this version is not computed again; the other arguments are those of
    :class:`~topox_core.studies.study_run.StudyRun`.
    """
    plans = {job: plan_of(study_of_job(job)) for job in jobs}
    known = {job: _known(plan, library) for job, plan in plans.items()}

    def steps() -> Generator[Step, StudyResult, None]:
        for job, plan in plans.items():
            yield Step(JOBS[job], plan)

    def read(there: Mapping[str, StudyResult]) -> Results:
        return {job: there.get(JOBS[job], known[job]) for job in plans}

    total = sum(len(plan.keys) for job, plan in plans.items() if not known[job].complete)
    return steps_run(steps(), lambda there: read(there.results), library, executor, total=total)


def _known(plan: StudyPlan, library: RunLibrary | None) -> StudyResult:
    return StudyResult(plan.study, plan.rows(known_rows(plan, library)))


@cache
def shipped_results() -> Results:
    """Return the tables that come with the release, by job; ``tools/make_answers.py`` writes their points."""
    points = json.loads(gzip.decompress(POINTS.read_bytes()))
    return {job: _shipped(study_of_job(job), points[job]) for job in JOBS}


def _shipped(
    study: Study, points: Sequence[tuple[str, str, dict[str, float | None]]]
) -> StudyResult:
    rows = [
        PointRow(number, point, None, measures, status, message, code_version())
        for number, (point, (status, message, measures)) in enumerate(
            zip(study.points, points, strict=True)
        )
    ]
    return StudyResult(study, with_harder_plans(rows, chains(study)))


def known_results(library: RunLibrary | None) -> Results:
    """Return the tables with what a library has of this version, by job; nothing is computed."""
    return {job: _known(plan_of(study_of_job(job)), library) for job in JOBS}
