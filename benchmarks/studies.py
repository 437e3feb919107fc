"""Measure what it costs to compute the points of a study in worker processes, here and on a Dask scheduler.

    python -m benchmarks.studies [--rounds 5] [--points 2000] [--only speed,overhead,memory,dask,simulation]

Both cores of a small machine are shared with whatever else runs on it: one process, two processes of
one run and two independent processes are timed in turns, and medians are compared.
"""

from __future__ import annotations

import argparse
import heapq
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from topox_core.errors import InputError
from topox_core.library.rows import RunRecord
from topox_core.runs.cells import MAX_CELLS, WINDOW, CellsRun
from topox_core.runs.dask_executor import LONG_TASK_S, DaskExecutor
from topox_core.runs.executor import Executor, LocalExecutor, Shared
from topox_core.runs.run import finish
from topox_core.studies.point import Cell, StudyJob, run_cell
from topox_core.studies.subject import Subject, resolve

FABRICS = ("static", "reactive", "provisioned", "scheduled")
SPEEDS_GBPS = (50.0, 100.0, 200.0, 400.0, 800.0)
BLOCKS = ("speed", "overhead", "memory", "dask", "simulation")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=int, default=2_000)
    parser.add_argument("--only", default=",".join(BLOCKS))
    given = parser.parse_args()
    chosen = given.only.split(",")
    points = Points(given.points)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if "speed" in chosen or "overhead" in chosen:
        with LocalExecutor(2, niceness=0) as two:
            speed(points, given.rounds, two, "two processes")
    if "memory" in chosen:
        memory()
    cost = Cost()
    if "dask" in chosen:
        try:
            with Machines(2) as machines:
                executor = machines.executor()
                speed(points, given.rounds, executor, "two Dask workers")
                cost = machines.cost(executor)
                executor.kill()
        except InputError as error:
            print(error)
    if "simulation" in chosen:
        simulation(cost)
    return 0


class Points:
    """Points of the sample ``race``: delays by port speeds by fabrics, each time at other delays."""

    def __init__(self, count: int) -> None:
        self.count, self.times = count, 0
        self.job = StudyJob(resolve(Subject("sample", {"name": "race"})))
        self.shared = Shared.of(self.job)

    def cells(self) -> list[Cell]:
        """Return points that no process has computed before, so that none remembers them."""
        self.times += 1
        each = -(-self.count // (len(FABRICS) * len(SPEEDS_GBPS)))
        cells = [
            self.job.cell(
                {
                    "cluster.reconfiguration_ms": 10.0 ** (4 * k / each - 2 + self.times * 1e-6),
                    "cluster.port_gbps": speed,
                    "fabric": fabric,
                    "settings.effort": "first",
                }
            )
            for speed in SPEEDS_GBPS
            for k in range(each)
            for fabric in FABRICS
        ]
        return cells[: self.count]


def loop(shared: Shared, cells: list[Cell]) -> tuple[float, float]:
    """Compute cells one after the other; return when the first began and the last ended."""
    began = time.time()
    for cell in cells:
        run_cell(shared.value(), cell)
    return began, time.time()


def spread(intervals: list[tuple[float, float]]) -> float:
    return max(end for _, end in intervals) - min(begin for begin, _ in intervals)


# -- speed and overhead ----------------------------------------------------------------------------


def speed(points: Points, rounds: int, two: Executor, name: str) -> None:
    """Time one process, a run on two, and two independent processes, in turns."""
    alone = [LocalExecutor(1, niceness=0), LocalExecutor(1, niceness=0)]
    times: dict[str, list[float]] = {"one process": [], name: [], "two independent": []}
    overheads, equal = [], True
    computed(points, two, points.cells()[:200])  # everything loaded
    for one in alone:
        one.submit(loop, points.shared, points.cells()[:200]).result()
    for _ in range(rounds):
        cells = points.cells()
        began, ended = alone[0].submit(loop, points.shared, cells).result()
        times["one process"].append(ended - began)
        cells = points.cells()
        middle = len(cells) // 2
        halves = [
            one.submit(loop, points.shared, part)
            for one, part in zip(alone, (cells[:middle], cells[middle:]), strict=True)
        ]
        times["two independent"].append(spread([half.result() for half in halves]))
        cells = points.cells()
        wall_s, records = computed(points, two, cells)
        times[name].append(wall_s)
        inside_s = sum(record.wall_s for record in records.values())
        overheads.append((wall_s * 2 - inside_s) / len(cells) * 1e3)
        some = cells[:: max(1, len(cells) // 50)]
        equal &= all(run_cell(points.job, cell).measures == records[cell].measures for cell in some)
    for one in alone:
        one.kill()
    medians = {key: statistics.median(values) for key, values in times.items()}
    print(f"\n{points.count:,} points, {rounds} rounds in turns, load {os.getloadavg()[0]:.1f}")
    for key, values in times.items():
        rounded = " ".join(f"{one:.2f}" for one in values)
        print(f"{key:18} median {medians[key]:6.2f} s   {rounded}")
    print(
        f"{name}: {medians['one process'] / medians[name]:.2f} times one process, "
        f"{medians['two independent'] / medians[name]:.2f} of two independent ones; "
        f"overhead {statistics.median(overheads):.2f} ms a point; "
        f"{'equal' if equal else 'NOT EQUAL'} to the plain loop"
    )


def computed(
    points: Points, executor: Executor, cells: list[Cell]
) -> tuple[float, dict[Cell, RunRecord]]:
    began = time.perf_counter()
    run = CellsRun(cells, points.job.key, run_cell, None, executor, shared=points.shared)
    while run.running:
        time.sleep(0.005)
    wall_s = time.perf_counter() - began
    result = finish(run)
    assert result is not None and not result.lost, result
    return wall_s, result.results


# -- memory ----------------------------------------------------------------------------------------


def memory(cells: int = 100_000) -> None:
    """Print the memory of a run of many cells whose results are handed on."""
    done, seen = 0, []

    def take(batch: list[tuple[int, bytes]]) -> None:
        nonlocal done
        done += len(batch)
        if len(seen) < 10 * done // cells:
            seen.append(resident_mb())

    with LocalExecutor(2, niceness=0) as executor:
        began = time.perf_counter()
        run = CellsRun(range(cells), str, a_result, None, executor, take)
        finish(run)
        took_s = time.perf_counter() - began
    print(
        f"\n{cells:,} cells with results of 1 kB handed on: {took_s:.1f} s, "
        f"MB after each tenth: {' '.join(f'{one:.0f}' for one in seen)}"
    )


def a_result(cell: int) -> bytes:
    return cell.to_bytes(1_000, "big")


def resident_mb(process: int | str = "self") -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1e3


# -- Dask ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What a task costs the scheduler and the client, in ms of CPU; the row of a point in the library besides."""

    scheduler_ms: float = 1.12
    client_ms: float = 0.83
    row_ms: float = 0.125


class Machines:
    """A scheduler and its workers on this machine."""

    def __init__(self, workers: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        file = f"{self.folder.name}/scheduler.json"
        self.file = Path(file)
        nothing = ("--no-dashboard", "--scheduler-file", file)
        environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, *nothing],
                env=environment,
                cwd=self.folder.name,
                stderr=subprocess.DEVNULL,
            )
            for arguments in (
                ("scheduler", "--host", "127.0.0.1", "--port", "0"),
                *[("worker", "--nworkers", "1", "--nthreads", "1")] * workers,
            )
        ]
        self.workers = workers

    def __enter__(self) -> Machines:
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
        self.folder.cleanup()

    def executor(self) -> DaskExecutor:
        """Connect once all workers are there; raises InputError where Dask is not installed."""
        import json

        until = time.monotonic() + 60
        while True:
            with suppress(InputError, OSError, ValueError):
                found = DaskExecutor(json.loads(self.file.read_text())["address"])
                if found.workers == self.workers:
                    return found
                found.kill()
            if time.monotonic() > until or self.processes[0].poll() is not None:
                raise InputError("dask does not start: pip install .[dask]")
            time.sleep(0.3)

    def cost(self, executor: DaskExecutor, tasks: int = 2_000) -> Cost:
        """Return what empty tasks cost, one cell each."""
        before, mine = self._scheduler_s(), time.process_time()
        waiting: deque[object] = deque()
        for _ in range(tasks):
            waiting.append(executor.submit(int))
            if len(waiting) > WINDOW * executor.workers:
                waiting.popleft().result()  # type: ignore[attr-defined]
        while waiting:
            waiting.popleft().result()  # type: ignore[attr-defined]
        cost = replace(
            Cost(),
            scheduler_ms=(self._scheduler_s() - before) / tasks * 1e3,
            client_ms=(time.process_time() - mine) / tasks * 1e3,
        )
        print(f"a task: {cost.scheduler_ms:.2f} ms of the scheduler, {cost.client_ms:.2f} ms here")
        return cost

    def _scheduler_s(self) -> float:
        fields = Path(f"/proc/{self.processes[0].pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- beyond one machine ----------------------------------------------------------------------------


def simulation(cost: Cost, points: int = 100_000, workers: int = 1_000) -> None:
    """Print where a study on many workers saturates, by the measured costs."""
    print(
        f"\n{points:,} points on {workers:,} workers, simulated with {cost.scheduler_ms:.2f} ms of the scheduler, "
        f"{cost.client_ms:.2f} of the client a task, {cost.row_ms:.3f} a row\n"
        f"{'cell':>8} {'cells a task':>12} {'end':>7} {'alone':>7} {'scheduler':>9} {'client':>7}"
    )
    for cell_s in (0.0075, 0.1, 1.0):
        by_rule = max(1, min(MAX_CELLS, round(LONG_TASK_S / cell_s)))
        for size in sorted({1, 10, by_rule}):
            end_s, scheduler_s, client_s = simulated(cost, points, workers, cell_s, size)
            print(
                f"{cell_s * 1e3:5.1f} ms {size:11}{'*' if size == by_rule else ' '} {end_s:5.0f} s "
                f"{points * cell_s / workers:5.0f} s {scheduler_s / end_s:8.0%} {client_s / end_s:7.0%}"
            )
    print("* the size that runs choose")


def simulated(
    cost: Cost, points: int, workers: int, cell_s: float, size: int
) -> tuple[float, float, float]:
    """Return when the last result is in the library, and how long scheduler and client worked, in seconds."""
    latency_s, first_s = 0.0005, 1.3
    todo, window = -(-points // size), WINDOW * workers
    client = scheduler = client_busy = scheduler_busy = end = 0.0
    idle, fresh, queue = workers, workers, 0
    events: list[tuple[float, int, str]] = []
    number = 0

    def at(moment: float, what: str) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (moment, number, what))

    for _ in range(min(window, todo)):
        at(0.0, "send")
    todo -= min(window, todo)
    while events:
        now, _, what = heapq.heappop(events)
        if what in ("send", "take"):
            rows = size * cost.row_ms if what == "take" else 0.0
            spent = (cost.client_ms / 2 + rows) / 1e3
            client, client_busy = max(client, now) + spent, client_busy + spent
            if what == "send":
                at(client + latency_s, "receive")
            elif todo:
                todo -= 1
                at(client, "send")
            end = max(end, client)
        elif what in ("receive", "answered"):
            spent = cost.scheduler_ms / 2e3
            scheduler, scheduler_busy = max(scheduler, now) + spent, scheduler_busy + spent
            at(scheduler + latency_s, "wait" if what == "receive" else "take")
        else:
            queue += what == "wait"
            idle += what == "free"
            while queue and idle:
                queue, idle = queue - 1, idle - 1
                took_s = size * cell_s + (first_s if fresh > 0 else 0.0)
                fresh -= 1
                at(now + took_s + latency_s, "answered")
                at(now + took_s, "free")
    return end, scheduler_busy, client_busy


if __name__ == "__main__":
    sys.exit(main())
