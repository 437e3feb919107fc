"""All six studies one after the other in the background, on the engine of every study."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Sequence
from dataclasses import replace

from topox_core.claims.cells import JOBS, study_of_job
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import RunProgress
from topox_core.studies.study_run import StudyPlan, StudyResult, StudyRun, known_rows, plan_of


class RivalsRun:
    """A run of the studies; its contract is that of :class:`~topox_core.runs.run.Run`.

    Parameters
    ----------
    library
        Where every point is kept; what it has of this version is not computed again.
    executor
        As of :class:`~topox_core.studies.study_run.StudyRun`.
    jobs
        Which of :data:`~topox_core.claims.cells.JOBS`.
    """

    def __init__(
        self,
        library: RunLibrary | None = None,
        executor: concurrent.futures.Executor | int | None = None,
        jobs: Sequence[str] = tuple(JOBS),
    ) -> None:
        self._library, self._executor = library, executor
        self._plans = {job: plan_of(study_of_job(job)) for job in jobs}
        self._results = {job: _known(plan, library) for job, plan in self._plans.items()}
        self._total = sum(len(plan.keys) for plan in self._plans.values())
        self._done = 0  # of the studies that have ended
        self._left = list(jobs)
        self._cancelled = self._closed = False
        self._began, self._ended_s = time.monotonic(), 0.0
        self._run: StudyRun | None = None
        self._next()

    @property
    def running(self) -> bool:
        """Whether points are still to come."""
        return self._run is not None and not self._closed

    @property
    def progress(self) -> RunProgress:
        """How many different points are done, and which job is under way."""
        elapsed_s = self._ended_s or time.monotonic() - self._began
        if self._run is None or not self._left:
            return RunProgress(elapsed_s, 1.0, self._done, self._total, "points")
        now = self._run.progress
        done = self._done + (now.done or 0)
        share, words = done / max(1, self._total), JOBS[self._left[0]]
        return replace(
            now, elapsed_s=elapsed_s, share=share, done=done, total=self._total, words=words
        )

    def poll(self) -> None:
        """Begin the next study once one has ended."""
        if self._run is None or self._closed:
            return
        self._run.poll()
        if not self._run.running:
            self._take()
            self._next()

    def cancel(self) -> None:
        """Stop; what is there is kept."""
        self._cancelled = True
        if self._run is not None:
            self._run.cancel()
            self._results[self._left[0]] = self._run.result()
        self.close()

    def close(self) -> None:
        """End the run at once."""
        self._closed = True
        self._ended_s = self._ended_s or time.monotonic() - self._began
        if self._run is not None:
            self._run.close()

    def result(self) -> dict[str, StudyResult]:
        """Return the tables as they stand, by job."""
        if self._run is not None and self._left:
            return {**self._results, self._left[0]: self._run.result()}
        return dict(self._results)

    def _next(self) -> None:
        while self._left:
            self._run = StudyRun(self._plans[self._left[0]], self._library, self._executor)
            if self._run.running:
                return
            self._take()
        self._run = None
        self._ended_s = self._ended_s or time.monotonic() - self._began

    def _take(self) -> None:
        assert self._run is not None
        job = self._left.pop(0)
        self._results[job] = self._run.result()
        self._done += len(self._plans[job].keys)
        self._run.close()


def _known(plan: StudyPlan, library: RunLibrary | None) -> StudyResult:
    return StudyResult(plan.study, plan.rows(known_rows(plan, library)))


def known_results(library: RunLibrary | None) -> dict[str, StudyResult]:
    """Return the tables with what a library has of this version, by job; nothing is computed."""
    plans = {job: plan_of(study_of_job(job)) for job in JOBS}
    return {job: _known(plan, library) for job, plan in plans.items()}
