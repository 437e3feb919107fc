"""A solve that runs beside the page: an exact engine in its own process, a local search in a thread."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field, replace

from topox_core.errors import InputError
from topox_core.schedule.answer import Answer, Limits, Progress, StoppedBy
from topox_core.schedule.planner import Plan, Prepared
from topox_core.schedule.report import story_line, to_result
from topox_core.schedule.result import Result, StoryLine
from topox_core.schedule.search import local_search
from topox_core.schedule.solver_process import SolverProcess

SEARCH_ITERATIONS = 20_000
OVERTIME_S = 0.3  # what an engine may need to come to an end; then it is ended
REALISING_ITERATIONS = 300


@dataclass
class Proof:
    """One solve in the background; poll it until it no longer runs, then take the result.

    ``auto`` runs HiGHS in a child process and the local search in a thread of this one; ``highs`` and
    ``printed`` run alone. Nothing here blocks: ``poll`` takes what has come in.
    """

    prepared: Prepared
    plan: Plan
    began: float = field(default_factory=time.monotonic)
    spent_before_s: float = 0.0
    story: list[StoryLine] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings, reduction = self.prepared.settings, self.prepared.reduction
        self._bound = reduction.bound.ticks
        self._bound_by = reduction.bound.text
        self._cancelled = threading.Event()
        self._enough = threading.Event()
        self._found: queue.SimpleQueue[Plan] = queue.SimpleQueue()
        self._process: SolverProcess | None = None
        self._thread: threading.Thread | None = None
        self._answer: Answer | None = None
        self._refused = ""
        self._ended: float | None = None
        self._note(self.plan.source)
        if self._closed():
            return
        exact = "highs" if settings.engine == "auto" else settings.engine
        limits = Limits(time_limit_s=settings.time_limit_s, gap=settings.gap, seed=settings.seed, threads=settings.threads,
                        bound=self._bound, start=self.plan.reduced_start)
        self._process = SolverProcess(exact, reduction.problem, limits)
        if settings.engine == "auto":
            self._search(SEARCH_ITERATIONS)

    @property
    def running(self) -> bool:
        """Whether the solve goes on (call :meth:`poll` to take it forward)."""
        return self._ended is None and (self._process is not None or self._thread is not None)

    @property
    def process_id(self) -> int | None:
        """Process number of the exact engine's child, if there is one."""
        return None if self._process is None else self._process.pid

    @property
    def trouble(self) -> str:
        """What went wrong with the exact engine while the rest goes on; empty if nothing."""
        failed = self._answer is not None and self._answer.stopped_by == "failed"
        return self._answer.message if failed and self._answer is not None else ""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, standing still once the solve has ended."""
        return (self._ended or time.monotonic()) - self.began + self.spent_before_s

    @property
    def incumbent_ms(self) -> float:
        """Makespan of the best plan so far."""
        return self.prepared.reduction.problem.ms(self.plan.makespan)

    @property
    def bound_ms(self) -> float:
        """Best lower bound so far."""
        return self.prepared.reduction.problem.ms(self._bound)

    def poll(self) -> list[StoryLine]:
        """Take in what the engines found; return the new lines of the story."""
        before = len(self.story)
        if self._process is not None:
            for progress in self._process.poll():
                self._take(progress)
            if not self._process.running and self._answer is None and not self._refused:
                self._take_end(self._process)
        while True:
            try:
                self._offer(self._found.get_nowait())
            except queue.Empty:
                break
        if self._ended is None and self._over():
            self._enough.set()
            if self._process is not None:
                self._process.close()
            self._ended = time.monotonic()
        return self.story[before:]

    def cancel(self) -> None:
        """Ask the engines to stop; the best plan so far is kept."""
        self._cancelled.set()
        if self._process is not None:
            self._process.cancel()

    def close(self) -> None:
        """End everything at once (the tab was closed)."""
        self._cancelled.set()
        if self._process is not None:
            self._process.close()
        self._ended = self._ended or time.monotonic()

    def result(self) -> Result:
        """Return the result as it stands."""
        return to_result(self.prepared, self.plan, self._bound, self._bound_by, self._stopped_by(), tuple(self.story),
                         self.elapsed_s, self._message())

    def _closed(self) -> bool:
        gap = self.prepared.settings.gap
        return self.plan.makespan - self._bound <= gap * self.plan.makespan

    def _over(self) -> bool:
        """Nothing more can come: the gap is closed, or every engine has ended."""
        process_over = self._process is None or self._answer is not None or bool(self._refused)
        search_over = self._thread is None or not self._thread.is_alive()
        if self._cancelled.is_set():
            return process_over
        over = time.monotonic() - self.began - self.prepared.settings.time_limit_s
        return self._closed() or over >= OVERTIME_S or (process_over and (search_over or over >= 0))

    def _stopped_by(self) -> StoppedBy:
        if self.plan.makespan <= self._bound:
            return "proof"
        if self._cancelled.is_set():
            return "cancelled"
        if self._closed():
            return "gap"
        if self._refused and self.prepared.settings.engine != "auto":
            return "heuristic"
        if self._answer is not None and self._answer.stopped_by == "failed":
            return "failed"
        if self._answer is not None and self._answer.stopped_by == "proof":
            return "heuristic"  # the reduced optimum is proved, but no plan on real switches reaches it
        return "time_limit"

    def _message(self) -> str:
        said = self._answer.message if self._answer is not None else self._refused
        if self._stopped_by() == "heuristic" and self._answer is not None:
            said = (f"{said} If transfers could move between switches, {self.bound_ms:g} ms would be the optimum; no schedule "
                    "was found that keeps every transfer on its switch in that time.").strip()
        return said

    def _search(self, iterations: int) -> None:
        deadline = self.began + self.prepared.settings.time_limit_s

        def stop() -> bool:
            return self._cancelled.is_set() or self._enough.is_set() or time.monotonic() >= deadline

        self._thread = threading.Thread(
            target=local_search, daemon=True, name="local search",
            args=(self.prepared.planner, self.plan, self.prepared.settings.seed, iterations, stop, self._found.put))
        self._thread.start()

    def _take(self, progress: Progress) -> None:
        if progress.start is not None:
            makespan = int((progress.start + self.prepared.reduction.problem.duration).max(initial=0))
            self._offer(self.prepared.planner.realised(progress.start, makespan, progress.source))
        if progress.bound > self._bound:
            self._bound = progress.bound
            self._bound_by = "propagation" if progress.source == "propagation" else f"branch and bound ({progress.source})"
            self._note(progress.source)

    def _take_end(self, process: SolverProcess) -> None:
        """Take in how the exact engine ended; a refusal (the model is too large) keeps the list schedule."""
        try:
            answer = process.answer
        except InputError as refusal:
            self._refused = f"No exact solve: {refusal.problem}."
            return
        if answer is not None:
            self._answer = answer
            self._take_answer(answer)

    def _take_answer(self, answer: Answer) -> None:
        if answer.bound > self._bound:
            self._bound, self._bound_by = answer.bound, answer.bound_by or self._bound_by
            self._note("exact engine")
        makespan = answer.makespan(self.prepared.reduction.problem)
        if answer.start is not None and makespan is not None:
            self._offer(self.prepared.planner.realised(answer.start, makespan, "exact engine"))
            moved = self.prepared.planner.ports is not None and self.plan.makespan > makespan
            if moved and self._thread is None and not self._cancelled.is_set():
                self._search(REALISING_ITERATIONS)

    def _offer(self, plan: Plan) -> None:
        if plan.cost < self.plan.cost:
            better = plan.makespan < self.plan.makespan
            self.plan = replace(plan, reduced_start=self.plan.reduced_start, reduced_makespan=self.plan.reduced_makespan)
            if better:
                self._note(plan.source)

    def _note(self, source: str) -> None:
        self.story.append(story_line(self.prepared, self.elapsed_s, self.plan.makespan, self._bound, source))
