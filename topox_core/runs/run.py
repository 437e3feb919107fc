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

    @property
    def progress(self) -> RunProgress:
        """How far the run has come."""

    def poll(self) -> object:
        """Take in what has happened since the last poll, and start what comes next."""

    def cancel(self) -> None:
        """Ask the run to stop. Whatever is complete is kept."""

    def close(self) -> None:
        """End the run at once and free its threads and processes; may be called twice."""

    def result(self) -> ResultT_co | None:
        """Return the result as it stands, or None while there is none.

        Raises
        ------
        Exception
            What ended the run, if it failed: :class:`~topox_core.errors.InputError` for bad input.
        """


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

    def wait(self, seconds: float) -> None:
        """Wait for the end, so long at the most."""
        self._thread.join(seconds)

    def cancel(self) -> None:
        """Ask the function to stop; what it then returns is the result."""
        self._stopped.set()

    def close(self) -> None:
        """Ask the function to stop and wait a second for its end."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
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


class RunsInTurn(FunctionRun[ResultT, object]):
    """Runs one after another.

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
        self._turn: Turn | None = None
        self._done = 0  # pieces of the runs that have ended
        self._complete = False
        super().__init__(self._take_turns, name="in turn")

    @property
    def progress(self) -> RunProgress:
        """How far this one is, or all where it is known how many pieces there are."""
        turn, total = self._turn, self._total
        if turn is None:  # the first is yet to begin, or the last has ended
            share, all_ = float(self._complete), self._done if total is None else total
            return RunProgress(self.elapsed_s, share, self._done, all_, self._unit)
        now = turn.run.progress
        unit = self._unit or now.unit
        now = replace(now, elapsed_s=self.elapsed_s, words=turn.words, unit=unit)
        if total is None:
            return now
        done = self._done + (now.done or 0)
        return replace(now, share=done / max(1, total), done=done, total=total)

    def cancel(self) -> None:
        """Stop; what is there is kept."""
        self.close()

    def result(self) -> ResultT:
        """Return what there is; raise what ended one of them, if it failed."""
        super().result()
        return self._read(self._turn, self._complete)

    def _take_turns(self, stop: Stop, _on_step: object) -> ResultT:
        result, ended = None, 0
        try:
            while not stop():
                turn = self._turns.send(result)
                self._done, self._turn = self._done + ended, turn
                result = finish(turn.run, stop)
                ended = turn.run.progress.done or 0
        except StopIteration:
            self._done = self._done + ended if self._total is None else self._total
            self._turn, self._complete = None, True
        finally:
            self._turns.close()
        return self.result()
