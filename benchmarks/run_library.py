"""How fast the run library is with 100,000 runs in it: written, opened, filtered, read.

python -m benchmarks.run_library [--runs 100000]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from topox_core.library.rows import RunFilter, RunRecord
from topox_core.library.run_library import RunLibrary

ROOT = Path(__file__).resolve().parents[1]
ITSELF = [sys.executable, "-m", "benchmarks.run_library"]
GRAPHS, STUDY = 20, 4_000


def record(number: int, drawn: random.Random, who: str = "") -> RunRecord:
    """Return a run of the size that a study's point has: 20 settings, 10 measures, a small result."""
    settings = {
        "fabric": drawn.choice(("static", "reactive", "scheduled")),
        "cluster.port_gbps": drawn.choice((100.0, 200.0, 400.0, 800.0)),
        "cluster.reconfiguration_ms": 10 ** drawn.uniform(-2, 2),
        "seed": number % 10,
        **{f"cluster.key_{key}": drawn.randrange(100) for key in range(8)},
        **{f"settings.key_{key}": "a word" for key in range(8)},
    }
    iteration_ms = drawn.uniform(50, 500)
    names = ("bound_ms", "gap", "dark_share", "changes", "dollars", "watts")
    measures = {"iteration_ms": iteration_ms, **{name: drawn.random() for name in names}}
    measures |= {"windows": 12.0, "iterations_per_dollar": 3.5, "joules_per_iteration": None}
    result = json.dumps([round(drawn.random(), 6) for _ in range(100)])
    return RunRecord(
        key=hashlib.sha256(f"{who}{number}".encode()).hexdigest(),
        version="1.0.0+0123456789ab",
        kind="fabric",
        subject=f"job {number % GRAPHS}",
        graph=hashlib.sha256(str(number % GRAPHS).encode()).hexdigest(),
        cluster=hashlib.sha256(str(number % 40).encode()).hexdigest(),
        settings=settings,
        status=drawn.choice(("feasible", "optimal", "simulated", "simulated")),
        stopped_by="heuristic",
        measures=measures,
        seed=number % 10,
        host="machine",
        started=1.7e9 + number,
        wall_s=0.01,
        result=zlib.compress(result.encode()),
    )


def median_ms(work: Callable[[], object], rounds: int = 7) -> str:
    """Return median and longest time of some rounds, and the median of the processor's time, which other work stretches less."""
    times, working = [], []
    for _ in range(rounds):
        began, worked = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - began) * 1e3)
        working.append((time.process_time() - worked) * 1e3)
    own = statistics.median(working)
    return f"{statistics.median(times):.1f} ms (longest {max(times):.1f}, own work {own:.1f})"


def fill(path: Path, count: int, who: str, at_once: int) -> float:
    """Write runs and return how many a second, drawing them not counted."""
    drawn = random.Random(0)
    spent_s = 0.0
    with RunLibrary.open(path) as library:
        numbers = iter(range(count))
        while chunk := [record(number, drawn, who) for number in islice(numbers, at_once)]:
            began = time.perf_counter()
            library.add(chunk)
            spent_s += time.perf_counter() - began
    return count / spent_s


def two_writers(folder: Path, count: int) -> None:
    """Let two processes write one row a transaction at once, and count what is there."""
    path = folder / "two.sqlite"
    writers = [
        subprocess.Popen(
            [*ITSELF, "--write", str(path), "--as", who, "--runs", str(count)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in "ab"
    ]
    rates = [float(writer.communicate()[0]) for writer in writers]
    with RunLibrary.open(path) as library:
        there = library.count()
    print(
        f"two processes, a row a transaction: {rates[0]:,.0f} + {rates[1]:,.0f} rows/s, {there:,} of {2 * count:,} there"
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=100_000)
    options.add_argument("--write")
    options.add_argument("--as", dest="who", default="")
    given = options.parse_args()
    if given.write:
        print(fill(Path(given.write), given.runs, given.who, 1))
        return
    with tempfile.TemporaryDirectory(prefix="topox-library-") as temporary:
        folder = Path(temporary)
        path = folder / "runs.sqlite"
        rate = fill(folder / "one.sqlite", 5_000, "", 1)
        print(f"one process, a row a transaction: {rate:,.0f} rows/s")
        two_writers(folder, 5_000)
        rate = fill(path, given.runs, "", 100)
        print(f"one process, 100 rows a transaction: {rate:,.0f} rows/s")
        print(
            f"file: {path.stat().st_size / 1e6:.1f} MB, {path.stat().st_size / given.runs:.0f} bytes a run"
        )
        measured(path)


def measured(path: Path) -> None:
    """Print how long everything takes that a reader waits for."""

    def open_and_count() -> None:
        with RunLibrary.open(path) as library:
            library.count()

    print(f"open, check every page and count: {median_ms(open_and_count, 3)}")
    with RunLibrary.open(path) as library:
        some = [one.record.key for one in library.runs(limit=2_000)]
        study = library.add_study("f" * 64, "study", {}, STUDY, "1")
        points = {at: one.id for at, one in enumerate(library.runs(limit=STUDY))}
        library.link_points(study, points)
        port, rare = {"cluster.port_gbps": 400.0}, {"cluster.key_1": 7, "cluster.key_2": 9}
        filters = {
            "newest": RunFilter(),
            "by subject": RunFilter(subject="job 3"),
            "by status": RunFilter(status="optimal"),
            "by a status that none has": RunFilter(status="failed"),
            "iteration within a range": RunFilter(shortest_ms=100, longest_ms=101),
            "by a setting": RunFilter(settings=port),
            "by two settings that few have": RunFilter(settings=rare),
            "by words that none has": RunFilter(text="nobody"),
            "points of a study": RunFilter(study=study),
        }
        for name, which in filters.items():
            listed = median_ms(lambda which=which: library.runs(which))
            counted = median_ms(lambda which=which: library.count(which))
            print(f"{name}: a page of 200 {listed}; counted {counted}")
        print(f"subjects: {median_ms(library.subjects)}")
        print(
            f"a study's {STUDY:,} points: {median_ms(lambda: list(library.each(RunFilter(study=study))), 3)}"
        )
        print(
            f"2,000 keys asked for: {median_ms(lambda: library.known(some, '1.0.0+0123456789ab'), 3)}"
        )
        everything = median_ms(lambda: sum(1 for _ in library.each()), 1)
        print(f"every run decoded: {everything}")


if __name__ == "__main__":
    main()
