"""Machine code on its way: one process compiles what this machine lacks, and tells how far it is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numba

from topox_core.warm_up import is_ready

# How many kernels a machine without any compiles: `python -m topox_core.warm_up all | wc -l`.
KERNELS = 244
# How long they take on two shared cores (benchmarks/first_minute.py), which is what is said before
# any is compiled, and counts like so many of this machine's until there are more.
USUAL_S, USUAL_COUNTS = 156.0, 30
# Tells each kernel that it has compiled in a line.
COMMAND = (sys.executable, "-m", "topox_core.warm_up", "all")


class Preparation:
    """Compiles all kernels in a process of its own where this machine has not got them yet.

    Where they cannot be kept, nothing is prepared: who needs one compiles it.

    Parameters
    ----------
    command
        What compiles them, and writes a line for each.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._began, self._compiled, self._over = time.monotonic(), 0, threading.Event()
        folder = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
        if is_ready() or not os.access(folder, os.W_OK):
            self._over.set()
            return
        threading.Thread(target=self._compile, name="preparation", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether nothing is being compiled, and nobody need wait."""
        return self._over.is_set()

    def wait(self) -> None:
        """Wait until it is ready."""
        self._over.wait()

    @property
    def words(self) -> str:
        """How far it is, and about how long it will take."""
        done, spent_s = self._compiled, time.monotonic() - self._began
        each_s = (spent_s + USUAL_S * USUAL_COUNTS / KERNELS) / (done + USUAL_COUNTS)
        left_s = each_s * (KERNELS - done)
        about = f"{max(5, 5 * round(left_s / 5))} s" if left_s < 90 else f"{round(left_s / 60)} min"
        return f"{min(done, KERNELS)} of {KERNELS}, about {about}"

    def _compile(self) -> None:
        """Count the lines of the process that compiles; one that fails leaves the rest to whoever needs it."""
        package = str(Path(__file__).resolve().parents[1])
        environment = {**os.environ, "PYTHONPATH": package}
        try:
            with subprocess.Popen(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as child:
                for _ in child.stdout or ():
                    self._compiled += 1
        finally:
            self._over.set()
