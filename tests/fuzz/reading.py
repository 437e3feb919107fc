"""Reading one case: what came of it, the memory it took and the CPU seconds."""

import time
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from tests.fuzz.formats import FORMATS
from topox_core.errors import InputError, visible

CLEARS, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
MAX_CHARACTERS, MAX_MB, MAX_CPU_S = 400, 1_000, 10.0


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
    if len(told) >= MAX_CHARACTERS:
        return f"a line of {len(told)} characters"
    return "" if visible(line) == line else f"a line that is not all seen: {line!a}"


def read_case(name: str, data: bytes) -> Reading:
    """Read one case here and now."""
    form = FORMATS[name]
    if CLEARS.exists():
        CLEARS.write_text("5")  # the most memory held is counted from here on
    began, problem, refused = time.process_time(), "", False
    try:
        form.load(data, form.file)
    except InputError as error:
        refused, problem = True, problem_of(str(error))
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error)[:200]!a}"
    cpu_s, mb = time.process_time() - began, _most_mb()
    if not problem and cpu_s > MAX_CPU_S:
        problem = f"{cpu_s:.1f} CPU seconds"
    if not problem and mb > MAX_MB:
        problem = f"{mb:.0f} MB"
    return Reading(problem, refused, cpu_s, mb)


def _most_mb() -> float:
    _, _, most = STATUS.read_text().partition("VmHWM:") if STATUS.exists() else ("", "", "")
    return int(most.split()[0] if most else getrusage(RUSAGE_SELF).ru_maxrss) / 1024
