"""Our solves and its peers' side by side in one run, over any folder of instances.

    python -m benchmarks.schedule_suite [--suite FOLDER] [--seconds 10,60] [--engine auto,highs]
    [--peers plain-cpsat,pyjobshop]

Each instance is solved by our command (a whole solve, compiled code loaded) and then by each peer,
every solve in a process of its own on the same cores, one after another. Prints a line for each
solve, then which goals of the suite hold.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from benchmarks.side_by_side.goals import Run, goals
from benchmarks.side_by_side.instances import Instance, instances
from benchmarks.side_by_side.peer import PEERS
from benchmarks.side_by_side.solves import ROOT, Solve, ours, peer

PACKAGES = ("ortools", "highspy", "numba", "numpy", "pyjobshop")
COLUMNS = (
    f"{'instance':30} {'who':12} {'limit':>6} {'slots':>6} {'bound':>6} {'gap %':>6} {'/best':>6} {'first s':>8} "
    f"{'solve s':>8} {'MB':>6} checked status"
)


def machine(cores: int) -> str:
    """Return what the figures belong to."""
    model = platform.processor() or "unknown processor"
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        model = next(
            (
                line.partition(":")[2].strip()
                for line in cpus.read_text().splitlines()
                if line.startswith("model name")
            ),
            model,
        )
    there = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    packages = []
    for name in PACKAGES:
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"no {name}")
    load = f", load {os.getloadavg()[0]:.1f} before the run" if hasattr(os, "getloadavg") else ""
    return (
        f"{min(cores, there)} of {there} cores of {model}, {platform.system()}, Python {platform.python_version()}, "
        f"{', '.join(packages)}{load}"
    )


def line(one: Instance, solve: Solve) -> str:
    """Return a solve as a line of the table."""

    def figure(value: float | None, places: int) -> str:
        return "-" if value is None else f"{value:.{places}f}"

    gap = (
        None
        if solve.makespan is None
        else 100 * (solve.makespan - solve.bound) / max(1, solve.makespan)
    )
    ratio = (
        None
        if solve.makespan is None or one.best_known is None
        else solve.makespan / max(1, one.best_known)
    )
    return (
        f"{one.name:30} {solve.who:12} {solve.seconds:6g} {figure(solve.makespan, 0):>6} {solve.bound:6} {figure(gap, 1):>6} "
        f"{figure(ratio, 3):>6} {figure(solve.first_s, 2):>8} {solve.solve_s:8.2f} {solve.memory_mb:6.0f} "
        f"{'yes' if solve.checked else 'NO':>7} {solve.status}"
    )


def solves(one: Instance, options: argparse.Namespace) -> Iterator[Solve]:
    """Yield every solve of one instance."""
    for engine in options.engine:
        for seconds in options.seconds:
            for seed in range(options.seeds):
                yield ours(one, engine, seconds, options.cores, seed)
    for name in options.peers:
        if name != "printed" or one.size == "tiny":
            yield peer(one, name, options.peer_seconds, options.cores)


def ratios(run: Run, options: argparse.Namespace) -> Iterator[str]:
    """Yield how our makespans compare with each peer's, over the instances on which both have one."""
    for engine in options.engine:
        for seconds in options.seconds:
            for name in options.peers:
                theirs = {
                    one.name: solve.makespan for one, solve in run.of(name, options.peer_seconds)
                }
                ratios = [
                    (one.name, solve.makespan / theirs[one.name])
                    for one, solve in run.of(engine, seconds)
                    if solve.makespan and theirs.get(one.name)
                ]
                if ratios:
                    values = [ratio for _, ratio in ratios]
                    name_worst, worst = max(ratios, key=lambda pair: pair[1])
                    counts = (
                        f"{sum(r < 1 for r in values)} shorter, {sum(r == 1 for r in values)} equal, "
                        f"{sum(r > 1 for r in values)} longer"
                    )
                    yield (
                        f"{engine} at {seconds:g} s over {name} at {options.peer_seconds:g} s: {counts}; "
                        f"ratio {min(values):.3f} to {worst:.3f} ({name_worst})"
                    )


def over_seeds(run: Run, options: argparse.Namespace) -> Iterator[str]:
    """Yield median and worst of our makespans over the seeds, with what a peer reached in the same run."""
    for engine in options.engine:
        for seconds in options.seconds:
            yield f"{engine} at {seconds:g} s over {options.seeds} seeds, median and worst in slots:"
            for one in run.instances:
                found = [
                    solve.makespan
                    for solve in run.solves
                    if (solve.instance, solve.who, solve.seconds) == (one.name, engine, seconds)
                    and solve.makespan is not None
                ]
                theirs = [
                    f"{name} {solve.makespan}"
                    for name in options.peers
                    for other, solve in run.of(name, options.peer_seconds)
                    if other is one
                ]
                if found:
                    figures = f"{median(found):8g} {max(found):6}"
                    yield f"  {one.name:30} {figures}  {', '.join(theirs)}".rstrip()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--suite",
        type=Path,
        default=ROOT / "benchmarks" / "suite",
        metavar="FOLDER",
        help="folder of NAME.taskgraph.json[.gz] with NAME.cluster.json (default: our own)",
    )
    parser.add_argument(
        "--seconds",
        type=lambda text: [float(part) for part in text.split(",")],
        default=[10.0],
        metavar="10,60",
        help="time limits of our solves (default 10)",
    )
    parser.add_argument(
        "--peer-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="time limit of a peer (default 60)",
    )
    parser.add_argument(
        "--engine",
        type=lambda text: text.split(","),
        default=["auto"],
        metavar="auto,highs",
        help="our engines (default auto)",
    )
    parser.add_argument(
        "--peers",
        type=lambda text: [part for part in text.split(",") if part],
        metavar=",".join(PEERS),
        default=list(PEERS),
        help="printed takes part on tiny instances only (default all; empty for none)",
    )
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="only instances whose name matches"
    )
    parser.add_argument(
        "--cores", type=int, default=2, metavar="N", help="cores of every solve (default 2)"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="N",
        help="our solves with seeds 0 to N - 1 (default 1)",
    )
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write a row for each solve, as it ends"
    )
    options = parser.parse_args()
    unknown = [name for name in options.peers if name not in PEERS]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)} (expected {', '.join(PEERS)})")
    return options


def main() -> int:
    options = read_options()
    chosen = instances(options.suite, options.only)
    if not chosen:
        print(f"no instance in {options.suite} matches")
        return 1
    print(machine(options.cores))
    print("compiling, once for this machine ...", flush=True)
    subprocess.run(
        [sys.executable, "-m", "topox_core.warm_up"], cwd=ROOT, check=True, capture_output=True
    )
    for engine in options.engine:
        for one in chosen[:1] + chosen[-1:]:
            ours(one, engine, 3.0, options.cores)
    print(COLUMNS)
    done: list[Solve] = []
    table = options.csv.open("w", newline="") if options.csv else None
    writer: csv.DictWriter[str] | None = None
    try:
        for one in chosen:
            for solve in solves(one, options):
                done.append(solve)
                print(line(one, solve), flush=True)
                if table is not None:
                    row = {
                        **solve.row(),
                        "best_known": one.best_known,
                        "best_bound": one.best_bound,
                    }
                    if writer is None:
                        writer = csv.DictWriter(table, list(row))
                        writer.writeheader()
                    writer.writerow(row)
                    table.flush()
    except KeyboardInterrupt:
        print("stopped; what follows counts what was done")
    finally:
        if table is not None:
            table.close()
    run = Run(chosen, done)
    if options.seeds > 1:
        for summary in over_seeds(run, options):
            print(summary)
    for summary in ratios(run, options):
        print(summary)
    print("goals (10 s means --seconds 10, 60 s --seconds 60, highs --engine highs):")
    for verdict in goals(run):
        word = "not measured" if verdict.holds is None else "holds" if verdict.holds else "MISSED"
        print(f"  {word:12} {verdict.goal:55} {verdict.why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
