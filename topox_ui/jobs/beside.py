"""Solves and bounds in child processes: HiGHS must not run in the process that serves pages, and a child can be ended."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from topox_core.runs.child_processes import ChildProcesses, WorkerDied
from topox_core.runs.stopping import Stop
from topox_core.tdm.bounds.round_bounds import bounded
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import OnRoundTrace, Round, RoundTracePoint, TdmSettings
from topox_core.tdm.solve import solve

TOLD, STOP = "told.jsonl", "stop"
POLL_S = 0.1
# Asked to stop, a solver gets this long; HiGHS may be deep in a phase that does not listen.
GRACE_S = 2.0
# Past its time limit likewise, and a child has to start first.
LATE_S = 15.0
# Pages answer sliders while a bound is worked out: it gives way.
NICENESS = 10


def told_in(folder: str, jobs: Jobs, settings: TdmSettings) -> Round:
    """Solve (in the child): every moment becomes a line of a file, a file named ``stop`` means stop."""
    stop = Path(folder) / STOP
    looked = [0.0, False]

    def asked() -> bool:
        now = time.monotonic()
        if now - looked[0] > POLL_S:
            looked[:] = [now, stop.exists()]
        return bool(looked[1])

    with (Path(folder) / TOLD).open("a", encoding="utf-8") as file:

        def tell(moment: RoundTracePoint) -> None:
            file.write(json.dumps(asdict(moment)) + "\n")
            file.flush()

        return solve(jobs, settings, asked, tell)


def solve_beside(jobs: Jobs, settings: TdmSettings, stop: Stop, on_moment: OnRoundTrace) -> Round:
    """Return what :func:`topox_core.tdm.solve.solve` would, worked out in a child process.

    A child that does not stop when it is asked to, or that dies, is answered for by hill climbing,
    with a message.
    """
    children = ChildProcesses(1)
    with tempfile.TemporaryDirectory(prefix="topox-jobs-") as folder:
        try:
            future = children.submit(told_in, folder, jobs, settings)
            lines, ends = 0, time.monotonic() + settings.time_limit_s + LATE_S
            while not future.done():
                time.sleep(POLL_S)
                lines = _pass_on(Path(folder) / TOLD, lines, on_moment)
                if stop() and not (Path(folder) / STOP).exists():
                    (Path(folder) / STOP).touch()
                    ends = time.monotonic() + GRACE_S
                if time.monotonic() > ends:
                    children.kill()
            _pass_on(Path(folder) / TOLD, lines, on_moment)
            return future.result()
        except WorkerDied as death:
            instead = solve(jobs, replace(settings, algorithm="hill-climbing"))
            why = "It did not stop when asked and was ended" if stop() else f"{death}"
            return replace(
                instead,
                algorithm=settings.algorithm,
                stopped_by="cancelled" if stop() else "time_limit",
                message=f"{why}: this is the round of hill climbing.",
            )
        finally:
            children.kill()


def _pass_on(file: Path, known: int, on_moment: OnRoundTrace) -> int:
    """Tell the moments that came since the last look; return how many lines were read in all."""
    if not file.exists():
        return known
    lines = file.read_text(encoding="utf-8").split("\n")[
        :-1
    ]  # a line that is still being written has no end yet
    for line in lines[known:]:
        on_moment(RoundTracePoint(**json.loads(line)))
    return len(lines)


def bounded_giving_way(answer: Round) -> Round:
    """Work out a bound (in the child) with less claim to the processor than the pages."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    return bounded(answer)


def bounded_beside(answer: Round, stop: Stop) -> Round | None:
    """Return what :func:`topox_core.tdm.bounds.round_bounds.bounded` would, from a child process; None if it was stopped or has died.

    The bound asks nobody whether to stop, so a stop ends the child.
    """
    children = ChildProcesses(1)
    try:
        future = children.submit(bounded_giving_way, answer)
        while not future.done():
            if stop():
                return None
            time.sleep(POLL_S)
        return future.result()
    except WorkerDied:
        return None
    finally:
        children.kill()
