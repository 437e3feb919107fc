"""Files that are sound in form and made to cost their reader: by kind, what one of them may expand to.

A few kilobytes packed that ask for gigabytes or minutes (docs/security.md). Each is read by the command
as anybody would, and must end in a line or an answer within :data:`MAX_S` and :data:`MAX_MB`.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz import costly
from tests.fuzz.reading import Reading, problem_of
from topox_core.io.limits import MAX_EXPANDED_TASKS

MAX_S, MAX_MB = 5.0, 1_500


@dataclass(frozen=True)
class Crafted:
    """One hostile file: its name, what is in it, and the command that reads it."""

    file: str
    make: Callable[[], bytes]
    command: tuple[str, ...] = ("trace", "import")


CRAFTED: Mapping[str, Crafted] = {
    "a large group in each of many kernels": Crafted(
        "c_rank0.json.gz", lambda: costly.large_group(100_000, 4_096)
    ),
    "a list of ranks in each kernel": Crafted(
        "c_rank0.json.gz", lambda: costly.listed_ranks(4_000, 16_000)
    ),
    "long text in each kernel": Crafted(
        "c_rank0.json.gz", lambda: costly.long_texts(50, 7_000_000)
    ),
    "long text in each scope": Crafted(
        "c_rank0.json.gz", lambda: costly.long_scopes(50, 7_000_000)
    ),
    "empty objects in place of events": Crafted(
        "c_rank0.json.gz", lambda: costly.in_place_of_events(1_000_000, "{},")
    ),
    "numbers in place of events": Crafted(
        "c_rank0.json.gz", lambda: costly.in_place_of_events(1_500_000, "1,")
    ),
    "collectives of all ranks": Crafted("c.4095.et", lambda: costly.collectives_of_all(20_000)),
    "metadata in a chain": Crafted("c.0.et", lambda: costly.metadata_chain(30_000)),
    "metadata that passes on much twice": Crafted(
        "c.0.et", lambda: costly.metadata_chain(3_000, 20)
    ),
    "dependencies by the million": Crafted(
        "c.0.et", lambda: costly.many_dependencies(2, 15_000_000)
    ),
    "empty attributes by the million": Crafted(
        "c.0.et", lambda: costly.empty_attributes(10, 8_000_000)
    ),
    "empty nodes in JSON": Crafted(
        "c.0.json", lambda: b'{"workload_graph": [' + b"{}," * 7_800_000 + b"{}]}"
    ),
    "a text workload of many rows": Crafted("c.txt", lambda: costly.text_workload(80_000, 8)),
    "a text workload near the limit": Crafted(
        "c.txt", lambda: costly.text_workload(MAX_EXPANDED_TASKS // 34, 8)
    ),
    "a text workload of many servers": Crafted(
        "c.txt",
        lambda: costly.text_workload(16, 8),
        ("trace", "import", "--servers", "10000"),
    ),
}


def write_crafted(name: str, path: Path) -> None:
    """Write one file."""
    path.write_bytes(CRAFTED[name].make())


def read_crafted(name: str, folder: Path) -> Reading:
    """Return what came of one: the command reads it, in a process whose memory and time are measured."""
    one = CRAFTED[name]
    path = folder / one.file
    # In a process of its own: the largest memory of a child counts what its parent held when it began.
    writer = get_context("spawn").Process(target=write_crafted, args=(name, path))
    writer.start()
    writer.join()
    command = [*one.command, str(path), "--output", str(folder / "o.taskgraph.json")]
    with (folder / "lines").open("w+") as lines:
        child = subprocess.Popen(
            [sys.executable, "-m", "topox_core", *command], stdout=subprocess.DEVNULL, stderr=lines
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        lines.seek(0)
        told = [line for line in lines.read().splitlines() if not line.startswith("reading ")]
    problem = ""
    if child.returncode not in (0, 1, 2):
        problem = f"status {child.returncode}"
    elif child.returncode:
        problem = (
            problem_of(told[0].removeprefix("topox: error: ")) if len(told) == 1 else str(told)
        )
    return Reading(
        problem, child.returncode != 0, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    )
