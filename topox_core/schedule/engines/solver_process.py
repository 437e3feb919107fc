"""An exact solve in a child process, so that a page or a command never freezes and a dead solver loses nothing."""

import pickle
import queue
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from topox_core.schedule.circuits.held_ports import Solution, solution_violation
from topox_core.schedule.engines.engine import LOADED, READY, Answer, Failed, Limits, Progress
from topox_core.schedule.engines.waiting_workers import close_pipe, start_worker, worker_of
from topox_core.schedule.problem import Problem
from topox_core.schedule.source import ENGINES, StoppedBy

# Asked to stop, or past its time limit, a solver gets this long to end by itself; HiGHS often does
# not listen for seconds, and killing it loses nothing, because all it found has been told.
GRACE_S = 0.8
# Starting Python and importing an engine takes 0.2 s, on a busy machine longer.
START_S = 30.0

Told = TypeVar("Told", bound=Progress)


class SolverProcess:
    """One solve in a child process; nothing here blocks but :meth:`close`, and that briefly.

    The best schedule so far, checked against the problem before it is believed, survives the
    child's death.

    Parameters
    ----------
    engine
        ``highs``, ``cpsat`` or ``printed``.
    command
        What to run instead of the worker (tests).
    """

    def __init__(
        self,
        engine: str,
        problem: Problem,
        limits: Limits,
        command: Sequence[str] | None = None,
    ) -> None:
        self._problem = problem
        self._events: queue.SimpleQueue[Progress] = queue.SimpleQueue()
        self._best: Solution | None = None
        self._makespan: int | None = None
        self._bound, self._engine = limits.bound, engine
        if limits.solution is not None:
            self._believe(limits.solution)
        self._answer: Answer | None = None
        self._ended_by: StoppedBy | None = None
        self._limits = limits
        self._writing = threading.Lock()
        self._process = worker_of(engine) if command is None else start_worker(command)
        self._killers = [self._kill_after(START_S + limits.time_limit_s + GRACE_S, "time_limit")]
        self._reader = threading.Thread(
            target=self._serve,
            args=((engine, problem, limits),),
            daemon=True,
        )
        self._reader.start()

    # -- for the caller --------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the solve goes on."""
        return self._answer is None

    @property
    def answer(self) -> Answer | None:
        """The answer once the solve has ended, else None; that of an engine that refuses the problem says so."""
        return self._answer

    def poll(self) -> list[Progress]:
        """Return what happened since the last poll; never waits."""
        news: list[Progress] = []
        while not self._events.empty():
            news.append(self._events.get())
        return news

    def offer(self, solution: Solution) -> None:
        """Tell the child a better schedule; what it has no time to hear it does not need."""
        if self.running and self._ended_by is None:
            threading.Thread(target=self._send, args=(solution,), daemon=True).start()

    def cancel(self) -> None:
        """Ask the child to stop, and kill it if it has not within a second."""
        if not self.running or self._ended_by is not None:
            return
        self._ended_by = "cancelled"
        if not self._send(None, wait=False):  # it hangs over its request, or is gone
            self._process.kill()
        self._killers.append(self._kill_after(GRACE_S, "cancelled"))

    def close(self) -> None:
        """End the child at once and free its pipes; the answer is what was known."""
        if self._ended_by is None and self.running:
            self._ended_by = "cancelled"
        self._process.kill()
        self._reader.join(timeout=GRACE_S)

    # -- in the background -----------------------------------------------------------------------------

    def _send(self, message: object, wait: bool = True) -> bool:
        """Send something to the child; return whether it went: not to one that is gone, nor, unless ``wait``, behind another."""
        if not self._writing.acquire(blocking=wait):
            return False
        try:
            assert self._process.stdin is not None
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()
        except (OSError, ValueError):
            return False
        finally:
            self._writing.release()
        return True

    def _kill_after(self, seconds: float, why: StoppedBy) -> threading.Timer:
        def kill() -> None:
            if self.running:
                self._ended_by = self._ended_by or why
                self._process.kill()

        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), kill)
        timer.daemon = True
        timer.start()
        return timer

    def _serve(self, request: object) -> None:
        """Send the request, then take in events until the child ends; runs in a thread."""
        assert self._process.stdout is not None
        self._send(request)  # of a child that is gone already its silence below says so
        wrong = ""
        try:
            while True:
                self._take(pickle.load(self._process.stdout))
        except EOFError:
            pass
        except Exception as error:  # whatever reading nonsense raises
            wrong = str(error) or type(error).__name__
        self._finish(wrong)

    def _take(self, event: object) -> None:
        """Take in what the child said; nonsense and a schedule that breaks a rule are ValueErrors."""
        if event == READY:
            self._killers[0].cancel()
            self._killers.append(
                self._kill_after(self._limits.time_limit_s + GRACE_S, "time_limit")
            )
        elif isinstance(event, Answer):
            self._answer = replace(self._heard(event), solution=self._best)
        elif isinstance(event, Progress):
            self._events.put(self._heard(event))
        elif isinstance(event, Failed) and event.refused:
            words = f"No exact solve: {event.message}."
            self._answer = replace(self._kept("heuristic", words), solution=None)
        elif isinstance(event, Failed):
            self._answer = self._kept("failed", f"the solver failed ({event.message})")
        elif event != LOADED:
            raise ValueError(f"it said {str(event)[:100]!r}")

    def _believe(self, solution: Solution) -> None:
        wrong = solution_violation(self._problem, solution)
        if wrong is not None:
            raise ValueError(f"it gave a schedule that is none: {wrong}")
        makespan = int((solution.start + self._problem.duration).max(initial=0))
        if self._makespan is None or makespan < self._makespan:
            self._best, self._makespan = solution, makespan

    def _heard(self, told: Told) -> Told:
        """Return what the child told, once it is believed, with the best bound so far."""
        if told.solution is not None:
            self._believe(told.solution)
        if self._makespan is not None and told.bound > self._makespan:
            raise ValueError(
                f"it gave a bound of {told.bound} ticks above a schedule of {self._makespan}"
            )
        self._bound = max(self._bound, told.bound)
        return replace(told, bound=self._bound)

    def _kept(self, stopped_by: StoppedBy, message: str) -> Answer:
        """Return what is known, however the child ended; a closed gap is a proof all the same."""
        if self._makespan is not None and self._bound >= self._makespan:
            stopped_by = "proof"
        if stopped_by == "failed" and self._best is not None:
            message += "; the last schedule is kept"
        source = ENGINES[self._engine]
        return Answer(self._bound, source, self._best, "", stopped_by, message)

    def _finish(self, wrong: str) -> None:
        """Say how it ended, once the child's output has."""
        if wrong:
            self._process.kill()
        code = self._process.wait()
        for timer in self._killers:
            timer.cancel()
        for pipe in (self._process.stdin, self._process.stdout):
            close_pipe(pipe)
        if not self.running:
            return
        if wrong:
            self._answer = self._kept("failed", f"the solver process was stopped: {wrong}")
        elif self._ended_by is not None:
            self._answer = self._kept(self._ended_by, "")
        else:
            how = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"
            self._answer = self._kept(
                "failed", f"the solver process ended ({how}) before it was done"
            )
