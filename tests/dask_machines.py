"""A Dask scheduler and its workers as processes on this machine, for tests."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.real_inputs import ROOT
from topox_core.errors import InputError
from topox_core.runs.dask_executor import DaskExecutor

NEEDED = "needs Dask: pip install .[dask], or make test"


class Machines:
    """A scheduler and workers on this machine, as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, unused_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, path: Path = ROOT) -> subprocess.Popen[bytes]:
        once = {"PYTHONPATH": str(path), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                cwd=self.folder,
                env=os.environ | once,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def scheduler(self) -> subprocess.Popen[bytes]:
        process = self.start(
            "scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"
        )
        wait_until(self.answers)
        return process

    def answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def worker(self, path: Path = ROOT) -> subprocess.Popen[bytes]:
        return self.start(
            *("worker", self.address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard"),
            path=path,
        )

    def executor(self, workers: int = 2) -> DaskExecutor:
        """Connect once so many workers are there."""

        def there() -> DaskExecutor | None:
            with suppress(InputError):  # as long as there are no workers
                one = DaskExecutor(self.address)
                if one.workers == workers:
                    return one
                one.kill()
            return None

        return wait_until(there)

    def started(self) -> DaskExecutor:
        """Start a scheduler and two workers, and connect."""
        for start in (self.scheduler, self.worker, self.worker):
            start()
        return self.executor()

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextmanager
def machines_in(folder: Path) -> Iterator[Machines]:
    """Yield machines that all end; skip the test where Dask is not installed."""
    pytest.importorskip("distributed", reason=NEEDED)
    these = Machines(folder)
    try:
        yield these
    finally:
        these.end()
