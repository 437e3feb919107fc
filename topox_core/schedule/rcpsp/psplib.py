"""Project scheduling instances of PSPLIB (single-mode ``.sm`` files), to validate the engines on published optima.

Kolisch & Sprecher, "PSPLIB - a project scheduling problem library", EJOR 96 (1996).
"""

import re
from collections.abc import Callable, Iterator

import numpy as np

from topox_core.errors import InputError, refuse_if, shown
from topox_core.io.content import decoded, whole
from topox_core.io.limits import PSPLIB
from topox_core.model.arrays.csr import flattened, transposed
from topox_core.schedule.problem import Problem

MAX_JOBS = PSPLIB.entries
# A makespan is at most the sum of durations; keep that within a million ticks.
MAX_TOTAL_DURATION = 1_000_000


class _Lines:
    """The file's lines, looked through once from top to bottom; errors name the line."""

    def __init__(self, data: bytes, file: str) -> None:
        self.file = file
        self.lines = decoded(whole(data, file, PSPLIB), file).splitlines()
        refuse_if(
            (not any(line.strip() for line in self.lines), "is empty (expected a PSPLIB .sm file)"),
            file=file,
        )
        self.at = 0

    def error(self, problem: str, line: int | None = None) -> InputError:
        """Return an error at a line (0-based; the current one by default)."""
        return InputError(
            problem, file=self.file, item=f"line {(self.at if line is None else line) + 1}"
        )

    def seek(self, pattern: str, expected: str) -> re.Match[str]:
        """Move past the first line from here on that matches the pattern."""
        for at in range(self.at, len(self.lines)):
            found = re.search(pattern, self.lines[at], re.IGNORECASE)
            if found:
                self.at = at + 1
                return found
        raise InputError(f"has no line '{expected}' (expected a PSPLIB .sm file)", file=self.file)

    def numbers(self) -> Iterator[tuple[int, list[int]]]:
        """Yield (line, whole numbers) until the line of stars that ends a section; headings are skipped."""
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line.startswith("*"):
                return
            if line and not line.startswith("-") and not re.match(r"(?i)(jobnr|R\s)", line):
                try:
                    yield self.at, [int(word) for word in line.split()]
                except ValueError:
                    raise self.error(f"must hold whole numbers (got {shown(line, 40)})") from None
            self.at += 1


def read_psplib(data: bytes, file: str) -> Problem:
    """Return the instance as a problem with one tick a slot: tasks hold resources, no devices.

    Job numbers stay the names (1 is the source, the last one the sink). One period is one tick of 1
    ms.

    Raises
    ------
    InputError
        If the file is no single-mode instance with renewable resources; the line is named.
    """
    text = _Lines(data, file)
    jobs = int(
        text.seek(r"^\s*jobs\s*\([^)]*\)\s*:\s*(\d{1,9})\s*$", "jobs (incl. supersource/sink ): …")[
            1
        ]
    )
    if not 1 <= jobs <= MAX_JOBS:
        raise text.error(f"must name 1 to {MAX_JOBS:,} jobs (got {jobs:,})", text.at - 1)
    renewable = int(text.seek(r"renewable\s*:\s*(\d{1,6})", "- renewable : …")[1])
    for kind in ("nonrenewable", "doubly constrained"):
        count = int(text.seek(kind + r"\s*:\s*(\d{1,9})", f"- {kind} : …")[1])
        if count:
            raise text.error(
                f"must be 0: only renewable resources are supported (got {count} {kind})",
                text.at - 1,
            )
    text.seek(r"PRECEDENCE RELATIONS", "PRECEDENCE RELATIONS:")
    successors = _successors(text, jobs)
    text.seek(r"REQUESTS/DURATIONS", "REQUESTS/DURATIONS:")
    duration, demand = _requests(text, jobs, renewable)
    text.seek(r"RESOURCEAVAILABILITIES", "RESOURCEAVAILABILITIES:")
    capacity = _availabilities(text, renewable)
    problem = _problem(duration, demand, capacity, successors)
    refuse_if((len(problem.order) < problem.n, "the precedence has a cycle"), file=file)
    return problem


def _successors(text: _Lines, jobs: int) -> list[list[int]]:
    def wrong(row: list[int]) -> str:
        if len(row) < 3:
            return "must hold job number, modes, number of successors and the successors"
        if row[1] != 1:
            return f"must have 1 mode: only single-mode files are supported (got {row[1]})"
        if row[2] != len(row) - 3:
            return f"announces {row[2]} successors but lists {len(row) - 3}"
        strange = [number for number in row[3:] if not 1 <= number <= jobs]
        if strange:
            return f"names job {strange[0]}, expected 1 to {jobs}"
        return f"makes job {row[0]} its own successor" if row[0] in row[3:] else ""

    return [
        [number - 1 for number in row[3:]]
        for row in _by_job(text, jobs, "PRECEDENCE RELATIONS", wrong)
    ]


def _requests(text: _Lines, jobs: int, renewable: int) -> tuple[list[int], list[list[int]]]:
    def wrong(row: list[int]) -> str:
        if len(row) != 3 + renewable:
            return f"must hold job number, mode, duration and {renewable} requests (got {len(row)} numbers)"
        if min(row[2:]) < 0 or max(row[2:]) > MAX_TOTAL_DURATION:
            return f"must hold durations and requests from 0 to {MAX_TOTAL_DURATION:,}"
        return ""

    rows = _by_job(text, jobs, "REQUESTS/DURATIONS", wrong)
    total = sum(row[2] for row in rows)
    refuse_if(
        (
            total > MAX_TOTAL_DURATION,
            f"durations add up to {total:,}, at most {MAX_TOTAL_DURATION:,} are supported",
        ),
        file=text.file,
    )
    return [row[2] for row in rows], [row[3:] for row in rows]


def _by_job(
    text: _Lines, jobs: int, section: str, wrong: Callable[[list[int]], str]
) -> list[list[int]]:
    """Return the row of each job in a section; ``wrong`` says what is wrong with a row, if anything."""
    found: dict[int, list[int]] = {}
    for at, row in text.numbers():
        problem = wrong(row)
        if not problem and not 1 <= row[0] <= jobs:
            problem = f"names job {row[0]}, expected 1 to {jobs}"
        if not problem and row[0] in found:
            problem = f"repeats job {row[0]}: only single-mode files are supported"
        if problem:
            raise text.error(problem, at)
        found[row[0]] = row
    missing = next((job for job in range(1, jobs + 1) if job not in found), None)
    if missing is not None:
        raise text.error(f"{section} ends without job {missing} (expected {jobs} jobs)")
    return [found[job] for job in range(1, jobs + 1)]


def _availabilities(text: _Lines, renewable: int) -> list[int]:
    values: list[int] = []
    for at, row in text.numbers():
        values += row
        if len(values) > renewable or min(row) < 0 or max(row) > 2**31 - 1:
            raise text.error(f"must hold {renewable} capacities of at least 0", at)
    if len(values) < renewable:
        raise text.error(f"ends with {len(values)} of {renewable} capacities")
    return values


def _problem(
    duration: list[int], demand: list[list[int]], capacity: list[int], successors: list[list[int]]
) -> Problem:
    n = len(duration)
    used = [[(r, amount) for r, amount in enumerate(row) if amount > 0] for row in demand]
    demand_ptr, demand_resource = flattened([[r for r, _ in row] for row in used], np.int32)
    succ_ptr, succ_idx = flattened(successors, np.int32)
    pred_ptr, pred_idx = transposed(succ_ptr, succ_idx, n)
    return Problem(
        duration=np.array(duration, np.int64),
        on_grid=np.ones(n, np.bool_),
        device=np.full(n, -1, np.int32),
        capacity=np.array(capacity, np.int32),
        demand_ptr=demand_ptr,
        demand_resource=demand_resource,
        demand_amount=np.array([amount for row in used for _, amount in row], np.int32),
        server_ports=np.zeros(len(capacity), np.bool_),
        pair=np.full(n, -1, np.int32),
        pred_ptr=pred_ptr,
        pred_idx=pred_idx,
        succ_ptr=succ_ptr,
        succ_idx=succ_idx,
        ticks_per_slot=1,
        tick_ms=1.0,
        device_names=(),
        resource_names=tuple(f"resource R{r + 1}" for r in range(len(capacity))),
        task_names=tuple(str(j + 1) for j in range(n)),
    )
