"""Reading one case: what came of it, the memory it took and the CPU seconds."""

from __future__ import annotations

import resource
import struct
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from topox_core.errors import InputError, visible

MOST_CHARACTERS, MOST_MB, MOST_CPU_S = 400, 1_000, 10.0
# Bytes that a process of the fuzzers may ask for; then it has a MemoryError, and the machine has none.
MOST_OF_ALL = 6 << 30


@dataclass(frozen=True)
class Reading:
    """What came of one case.

    ``problem`` is empty if the file was read, or refused in one short line.
    """

    problem: str
    refused: bool
    cpu_s: float
    mb: float


def problem_of(line: str) -> str:
    """Return what is wrong with the line of an error, or nothing."""
    told = f"topox: error: {line}"
    if len(told) >= MOST_CHARACTERS:
        return f"a line of {len(told)} characters"
    return "" if visible(line) == line else f"a line that is not all seen: {line!a}"


def read_case(name: str, data: bytes) -> Reading:
    """Read one case here and now."""
    from tests.fuzz.formats import FORMATS

    form = FORMATS[name]
    measured = Path("/proc/self/clear_refs")
    if measured.exists():
        measured.write_text("5")  # the most memory held is counted from here on
    began, problem, refused = time.process_time(), "", False
    try:
        form.load(data, form.file)
    except InputError as error:
        refused, problem = True, problem_of(str(error))
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error)[:200]!a}"
    cpu_s, mb = time.process_time() - began, _most_mb()
    if not problem and cpu_s > MOST_CPU_S:
        problem = f"{cpu_s:.1f} CPU seconds"
    if not problem and mb > MOST_MB:
        problem = f"{mb:.0f} MB"
    return Reading(problem, refused, cpu_s, mb)


def _most_mb() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = (one for one in status.read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    """Read cases from standard input until it ends: name, length and bytes of each; answer in JSON lines."""
    import json

    resource.setrlimit(resource.RLIMIT_AS, (MOST_OF_ALL, MOST_OF_ALL))
    into, out = sys.stdin.buffer, sys.stdout
    while head := into.read(36):
        name, length = struct.unpack("<32sI", head)
        print(
            json.dumps(asdict(read_case(name.rstrip(b"\0").decode(), into.read(length)))), file=out
        )
        out.flush()


if __name__ == "__main__":
    main()
