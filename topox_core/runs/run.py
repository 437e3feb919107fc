"""The one contract of everything that takes long, how it is asked to stop, and a run made from one function in a thread."""

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

Stop = Callable[[], bool]


def never() -> bool:
    """Stop criterion that never stops."""
    return False


@dataclass(frozen=True)
class AfterSeconds:
    """Stop once ``seconds`` have passed on ``clock`` since ``began``."""

    seconds: float
    began: float = field(default_factory=time.monotonic)
    clock: Callable[[], float] = time.monotonic

    def __call__(self) -> bool:
        """Return whether the time is up."""
        return self.clock() - self.began >= self.seconds


def any_of(*stops: Stop) -> Stop:
    """Return the criterion that is met as soon as one of several is."""
    return lambda: any(stop() for stop in stops)


@dataclass
class Throttled:
    """Another criterion, evaluated at most every ``interval_s`` seconds because it is slow."""

    stop: Stop
    interval_s: float = 0.1
    stopped: bool = False
    next_s: float = 0.0

    def __call__(self) -> bool:
        """Return the criterion's latest answer."""
        now = time.monotonic()
        if not self.stopped and now >= self.next_s:
            self.stopped, self.next_s = self.stop(), now + self.interval_s
        return self.stopped


POLL_S = 0.05
CLOSE_S = 1.0

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)
StepT = TypeVar("StepT")


@dataclass(frozen=True)
class RunProgress:
    """How far a run has come.

    Attributes
    ----------
    elapsed_s
        Seconds since the start; stands still once the run has ended.
    share
        Part that is done, 0 to 1; None if that is not known.
    done, total
        Finished pieces and all pieces, where the work comes in pieces.
    unit
        What the pieces are, in the plural.
    words
        What the run is doing now; empty if there is nothing to add.
    left_s
        Estimated seconds to the end; None if there is no estimate.
    """

    elapsed_s: float = 0.0
    share: float | None = None
    done: int | None = None
    total: int | None = None
    unit: str = ""
    words: str = ""
    left_s: float | None = None


class Run(Protocol[ResultT_co]):
    """Work in the background. No method waits, except :meth:`close` for at most a second or so.

    A run starts when it is constructed. Whoever holds it calls :meth:`poll` until it no longer
    runs, takes :meth:`result`, and then calls :meth:`close`.
    """

    @property
    def running(self) -> bool:
        """Whether the run goes on."""
        ...

    @property
    def progress(self) -> RunProgress:
        """How far the run has come."""
        ...

    def poll(self) -> object:
        """Take in what has happened since the last poll, and start what comes next."""
        ...

    def cancel(self) -> None:
        """Ask the run to stop. Whatever is complete is kept."""
        ...

    def close(self) -> None:
        """End the run at once and free its threads and processes; may be called twice."""
        ...

    def result(self) -> ResultT_co | None:
        """Return the result as it stands, or None while there is none.

        Raises
        ------
        Exception
            What ended the run, if it failed: :class:`~topox_core.errors.InputError` for bad input.
        """
        ...


class FunctionRun(Generic[ResultT, StepT]):
    """A run of one function in a thread.

    Parameters
    ----------
    function
        ``function(stop, on_step) -> result``. It asks ``stop()`` often, returns the best it has
        once that is true, and passes its steps to ``on_step``.
    measure
        ``measure(steps, elapsed_s) -> RunProgress``; without it only the time is known.
    name
        Of the thread.
    """

    def __init__(
        self,
        function: Callable[[Stop, Callable[[StepT], None]], ResultT],
        measure: Callable[[tuple[StepT, ...], float], RunProgress] | None = None,
        name: str = "run",
    ) -> None:
        self._function, self._measure = function, measure
        self._stopped = threading.Event()
        self._steps: list[StepT] = []
        self._result: ResultT | None = None
        self._failure: Exception | None = None
        self._began, self._ended_s = time.monotonic(), 0.0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the function has not returned."""
        return self._thread.is_alive()

    @property
    def steps(self) -> tuple[StepT, ...]:
        """What the function passed to ``on_step`` so far."""
        return tuple(self._steps)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start; stands still once the run has ended."""
        return self._ended_s or time.monotonic() - self._began

    @property
    def progress(self) -> RunProgress:
        """How far the run has come."""
        if self._measure is None:
            return RunProgress(self.elapsed_s)
        return self._measure(self.steps, self.elapsed_s)

    def poll(self) -> None:
        """Do nothing: the thread takes itself forward."""

    def cancel(self) -> None:
        """Ask the function to stop; what it then returns is the result."""
        self._stopped.set()

    def close(self) -> None:
        """Ask the function to stop and wait a second for its end."""
        self._stopped.set()
        self._thread.join(CLOSE_S)

    def result(self) -> ResultT | None:
        """Return what the function returned, or None while it runs; raise what it raised."""
        if self._failure is not None:
            raise self._failure
        return self._result

    def _work(self) -> None:
        try:
            self._result = self._function(self._stopped.is_set, self._steps.append)
        except Exception as error:
            self._failure = error
        finally:
            self._ended_s = time.monotonic() - self._began


def finish(run: Run[ResultT], stop: Stop = never) -> ResultT | None:
    """Wait for the end of a run, close it and return its result; ``stop`` cancels it."""
    try:
        while run.running:
            run.poll()
            if stop():
                run.cancel()
            time.sleep(POLL_S)
        run.poll()
        return run.result()
    finally:
        run.close()


@dataclass(frozen=True)
class Turn:
    """One of them, and what it does in words."""

    words: str
    run: Run[Any]


class RunsInTurn(Generic[ResultT]):
    """Runs one after another; a :class:`~topox_core.runs.run.Run`.

    Parameters
    ----------
    turns
        Yields them, each running, and is sent the result of each; closed where the run ends early.
    read
        ``read(turn, complete) -> result``: what there is, given the turn that is under way (None: none
        is) and whether all of them have ended.
    unit
        What the pieces of their progress are; empty: as each says.
    total
        How many pieces there are in all, where that is known beforehand.
    """

    def __init__(
        self,
        turns: Generator[Turn, Any, None],
        read: Callable[[Turn | None, bool], ResultT],
        unit: str = "",
        total: int | None = None,
    ) -> None:
        self._turns, self._read, self._unit, self._total = turns, read, unit, total
        self._lock = threading.RLock()  # one thread takes it forward, another draws what is there
        self._turn: Turn | None = None
        self._done = 0  # pieces of the runs that have ended
        self._cancelled = self._closed = False
        self._began, self._ended_s = time.monotonic(), 0.0
        self._next(None)

    @property
    def running(self) -> bool:
        """Whether something is still to come."""
        return self._turn is not None and not self._closed

    @property
    def progress(self) -> RunProgress:
        """How far this one is, or all where it is known how many pieces there are."""
        elapsed_s = self._ended_s or time.monotonic() - self._began
        turn, total = self._turn, self._total
        if turn is None:
            done = self._done if total is None else total
            return RunProgress(elapsed_s, 1.0, done, done, self._unit)
        now = turn.run.progress
        now = replace(now, elapsed_s=elapsed_s, words=turn.words, unit=self._unit or now.unit)
        if total is None:
            return now
        done = self._done + (now.done or 0)
        return replace(now, share=done / max(1, total), done=done, total=total)

    def poll(self) -> None:
        """Begin the next run once one has ended."""
        with self._lock:
            if self._turn is None or self._closed:
                return
            self._turn.run.poll()
            if not self._turn.run.running:
                self._next(self._turn)

    def cancel(self) -> None:
        """Stop; what is there is kept."""
        with self._lock:
            self._cancelled = True
            if self._turn is not None:
                self._turn.run.cancel()
            self.close()

    def close(self) -> None:
        """End the run at once."""
        with self._lock:
            self._closed = True
            self._ended_s = self._ended_s or time.monotonic() - self._began
            if self._turn is not None:
                self._turn.run.close()
            self._turns.close()

    def result(self) -> ResultT:
        """Return what there is."""
        with self._lock:
            return self._read(self._turn, self._turn is None and not self._cancelled)

    def _next(self, ended: Turn | None) -> None:
        """Take the result of the run that has ended, and begin the next one that does not end at once."""
        while True:
            try:
                if ended is None:
                    self._turn = next(self._turns)
                else:
                    self._done += ended.run.progress.done or 0
                    result = ended.run.result()
                    ended.run.close()
                    self._turn = self._turns.send(result)
            except StopIteration:
                self._turn = None
                self._ended_s = self._ended_s or time.monotonic() - self._began
                return
            if self._turn.run.running:
                return
            ended = self._turn
