"""Solves in processes of their own, on so many cores: ours through the command, a peer through its module."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.side_by_side.instances import Instance

ROOT = Path(__file__).resolve().parents[2]
# What a child may need besides its time limit: Python's start, reading, building a large model;
# then it is ended.
LOADING_S, OVERTIME_S = 120.0, 10.0
FIRST_LINE = re.compile(r"^ *([0-9.]+) s  makespan [0-9]", re.MULTILINE)


@dataclass(frozen=True)
class Solve:
    """One solve of one instance: makespan and bound in slots, what it took, and whether the schedule was checked."""

    instance: str
    who: str
    seconds: float
    makespan: int | None
    bound: int
    status: str
    first_s: float | None
    solve_s: float
    command_s: float
    memory_mb: float
    checked: bool
    bound_by: str = ""

    def row(self) -> dict[str, Any]:
        """Return the fields as a row of a table, rounded."""
        return {
            key: round(value, 3) if isinstance(value, float) else value
            for key, value in asdict(self).items()
        }


def ours(instance: Instance, engine: str, seconds: float, cores: int, seed: int = 0) -> Solve:
    """Return a whole solve of our command, its compiled code and its engine loaded."""
    command = [
        "-m",
        "benchmarks.side_by_side.warm_command",
        "schedule",
        str(instance.graph),
        str(instance.cluster),
        "--engine",
        engine,
        "--circuits",
        "per-slot",
        "--tick-ms",
        "slot",
        # Every peer gets these transfers.
        "--rings",
        "1",
        "--algorithm",
        "default",
        "--time-limit",
        f"{seconds:g}",
        "--threads",
        str(cores),
        "--seed",
        str(seed),
        "--json",
    ]
    out, err, took, memory = _run(command, seconds, cores)
    try:
        record = json.loads(out)
    except ValueError:
        last = (err.strip().splitlines() or ["nothing said"])[-1]
        return Solve(
            instance.name,
            engine,
            seconds,
            None,
            0,
            f"failed: {last}",
            None,
            took,
            took,
            memory,
            False,
        )
    first = FIRST_LINE.search(err)
    slot = record["slot_ms"]
    return Solve(
        instance.name,
        engine,
        seconds,
        round(record["makespan_ms"] / slot),
        round(record["bound_ms"] / slot),
        record["status"],
        float(first[1]) if first else None,
        record["wall_s"],
        took,
        memory,
        bool(record.get("checked")),
        record["bound_by"],
    )


def peer(instance: Instance, name: str, seconds: float, cores: int) -> Solve:
    """Return a peer's solve; what it had told when it was ended counts."""
    command = [
        "-m",
        "benchmarks.side_by_side.peer",
        name,
        str(instance.graph),
        str(instance.cluster),
        f"{seconds:g}",
        str(cores),
    ]
    out, err, took, memory = _run(command, seconds, cores)
    told = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
    heard = [line for line in told if "makespan" in line]
    if not heard:
        why = (err.strip().splitlines() or ["ended without a schedule"])[-1]
        return Solve(
            instance.name, name, seconds, None, 0, why[:120], None, took, took, memory, False
        )
    schedules = [line for line in heard if line["makespan"] is not None]
    best = min((line["makespan"] for line in schedules), default=None)
    return Solve(
        instance.name,
        name,
        seconds,
        best,
        max(line["bound"] for line in heard),
        heard[-1]["ended"] or "ended",
        schedules[0]["elapsed_s"] if schedules else None,
        heard[-1]["elapsed_s"],
        took,
        memory,
        bool(schedules) and all(line["checked"] for line in schedules),
    )


def _run(arguments: list[str], seconds: float, cores: int) -> tuple[str, str, float, float]:
    """Return (standard output, standard error, wall seconds, peak MB of the largest process of the child's family)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=ROOT,
            start_new_session=True,
        )
        _keep_to(child.pid, cores)
        memory_kb, ready = 0, began
        while True:
            ended, _, used = os.wait4(child.pid, os.WNOHANG)
            if ended:
                memory_kb, child.returncode = used.ru_maxrss, 0
                break
            if ready == began and _position(out) > 0:
                ready = time.monotonic()
            if time.monotonic() - ready > seconds + (OVERTIME_S if ready > began else LOADING_S):
                os.killpg(child.pid, 9)
            time.sleep(0.01)
        took = time.monotonic() - began
        out.seek(0)
        err.seek(0)
        return out.read(), err.read(), took, memory_kb / 1024


def _position(stream: IO[str]) -> int:
    return os.fstat(stream.fileno()).st_size


def _keep_to(process_id: int, cores: int) -> None:
    """Keep a process and its children to so many cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process_id, sorted(os.sched_getaffinity(0))[:cores])
