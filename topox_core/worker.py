"""A solve in a process of its own: ``python -m topox_core.worker [ENGINE]``; an engine that is named is loaded at once.

What it is sent on standard input and what it says on standard output: :mod:`topox_core.schedule.engines.engine`.
The end of input, because the parent died, means stop.
"""

import os
import pickle
import queue
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import numpy as np

from topox_core.errors import InputError
from topox_core.runs.cores import lower_priority
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.engine import LOADED, READY, Engine, Failed, Limits
from topox_core.schedule.problem import Problem, SwitchNetwork

# HiGHS may be deep in a phase that does not ask whether to stop; after this long the process simply
# ends.
GRACE_S = 3.0
LOADING_S = 1.0  # for the solve that loads an engine


def engine(name: str) -> Engine:
    """Return the engine of a name; each is imported only here, so that a process loads one solver.

    Raises
    ------
    ValueError
        If there is no such engine.
    """
    if name not in ("highs", "cpsat", "printed"):
        raise ValueError(f"unknown engine {name!r} (expected highs, cpsat or printed)")
    solve: Engine = getattr(import_module(f"topox_core.schedule.engines.{name}"), f"solve_{name}")
    return solve


def load(name: str) -> None:
    """Load an engine and the compiled code that it calls, by solves of three tasks, two at a time and, of CP-SAT, with set-ups."""
    none, rows = np.zeros(0, np.int32), np.zeros(4, np.int32)
    three = Problem(
        duration=np.array([2, 2, 3], np.int64),
        on_grid=np.ones(3, np.bool_),
        device=np.full(3, -1, np.int32),
        capacity=np.array([2], np.int32),
        demand_ptr=np.arange(4, dtype=np.int32),
        demand_resource=np.zeros(3, np.int32),
        demand_amount=np.ones(3, np.int32),
        server_ports=np.zeros(1, np.bool_),
        pair=np.full(3, -1, np.int32),
        pred_ptr=rows,
        pred_idx=none,
        succ_ptr=rows,
        succ_idx=none,
        ticks_per_slot=1,
        tick_ms=1.0,
        device_names=(),
        resource_names=("two at a time",),
        task_names=("a", "b", "c"),
    )
    solve = engine(name)
    solve(three, Limits(LOADING_S, solution=Solution(np.array([0, 2, 0], np.int64))))
    if name == "cpsat":
        pair = np.array([0, 0, 1], np.int32)
        network = SwitchNetwork(pair, 2 - pair, 3, 1, 3, 1, 1, False, False, 1)
        in_turn, ports = np.array([0, 3, 6], np.int64), np.zeros((3, 3), np.int32)
        solve(replace(three, network=network), Limits(LOADING_S, solution=Solution(in_turn, ports)))


def _events() -> BinaryIO:
    """Return the stream of events; whatever a solver prints to standard output goes to standard error."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return out


def _show_in_process_list(engine: str) -> None:
    """Name this process after the engine that solves, where Linux lets it, so that it differs from those that wait."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(f"topox-{engine}")


def _listen(stopped: threading.Event, inbox: queue.SimpleQueue[Solution]) -> None:
    """Pass schedules on; on anything else or the end of input ask the engine to stop, and end the process if it does not."""
    with suppress(Exception):
        while isinstance(solution := pickle.load(sys.stdin.buffer), Solution):
            inbox.put(solution)
    stopped.set()
    time.sleep(GRACE_S)
    os._exit(3)


def main() -> int:
    """Read one request, solve it, tell what happens; return the exit code."""
    # The parent decides about an interrupt from the terminal, and about SIGTERM to its whole group.
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, signal.SIG_IGN)
    out = _events()
    stopped = threading.Event()
    inbox: queue.SimpleQueue[Solution] = queue.SimpleQueue()

    def tell(event: object) -> None:
        try:
            out.write(pickle.dumps(event))
        except OSError:
            os._exit(3)

    def news() -> Solution | None:
        latest = None
        while not inbox.empty():
            latest = inbox.get()
        return latest

    try:
        for named in sys.argv[1:]:
            load(named)
            tell(LOADED)
        lower_priority()
        name, problem, limits = pickle.load(sys.stdin.buffer)
        solve = engine(name)
        _show_in_process_list(name)
        threading.Thread(target=_listen, args=(stopped, inbox), daemon=True).start()
        tell(READY)
        tell(solve(problem, limits, stopped.is_set, tell, news))
    except InputError as error:
        tell(Failed(error.problem, refused=True))
        return 1
    except Exception as error:
        tell(Failed(f"{type(error).__name__}: {error}"[:500]))
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # The listening thread may hold the input's lock, which the interpreter's own farewell would
    # wait for.
    os._exit(code)
