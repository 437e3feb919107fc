"""Leaderboards of two class instances: a schedule by hand of 24 tasks, and 40 jobs in two groups.

An entry is a ``*.entry.json`` file, format ``topox-entry`` version 1. What counts is what the checker
or the core makes of it; a time that the file claims is not looked at.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import structs

from topox_core.errors import InputError, check_known, look_up, printable, refuse_if, shown
from topox_core.io.content import FileFormat, read_object
from topox_core.io.limits import ANSWERS
from topox_core.io.tables import table_bytes
from topox_core.labs.classroom.folder import Unreadable, files_in, load_each
from topox_core.labs.hand_schedule import check_by_hand, planned
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.model.jobs import Jobs, TdmSettings
from topox_core.tdm.model.jobs_file import load_job_sample
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.traffic import StageTable
from topox_core.workloads.catalogue import generate

ENDING = ".entry.json"
MAX_ENTRIES, MAX_ALIAS = 2_000, 20
# Times this near share a rank.
SAME = 1e-9
FORM = FileFormat(
    "topox-entry", 1, ("board", "alias", "starts_ms", "groups", "makespan_ms", "round_s"), ANSWERS
)
# The extension of lab 1: small enough for a hand, large enough that nobody sees the best at once.
_TASKS = {"layers": 3, "width": 4, "servers": 4, "mean_mb": 15, "seed": 3}
_JOBS = "mix-32-pods"


@dataclass(frozen=True)
class Entry:
    """What somebody handed in: an alias, and start times by task or a group by job."""

    board: str
    alias: str
    value: Mapping[str, Any]


@dataclass(frozen=True)
class Ranked:
    """A line of a board.

    Attributes
    ----------
    rank
        0 where the entry is not feasible; equal times share one.
    time
        In the board's unit, as checked.
    gap
        Above the best that is known, as a share of it.
    problem
        Why it has no rank; empty if it has one.
    """

    rank: int
    alias: str
    time: float
    gap: float
    problem: str = ""


@dataclass(frozen=True)
class Board:
    """One leaderboard.

    Attributes
    ----------
    lab
        The lab whose extension it is; also its name in entries.
    field, unit
        Of an entry's value, and of its time.
    checked
        Returns the time of a value, or raises InputError with the first thing that is wrong.
    best_known
        What the core finds itself.
    empty
        Returns a value to fill in.
    """

    lab: str
    field: str
    unit: str
    checked: Callable[[Mapping[str, Any]], float]
    best_known: Callable[[], float]
    empty: Callable[[], Mapping[str, Any]]


@cache
def hand_instance() -> tuple[TaskGraph, Cluster]:
    """Return the 24 tasks of the first board, compute rounded up to whole slots, and their cluster."""
    graph, cluster = generate("random-layered", _TASKS)
    whole = tuple(
        task
        if task.duration_ms is None
        else structs.replace(task, duration_ms=float(math.ceil(task.duration_ms)))
        for task in graph.tasks
    )
    return replace(graph, tasks=whole), cluster.changed(ports_per_server=1, switches=1)


@cache
def shared_jobs() -> Jobs:
    """Return the 40 jobs of the second board."""
    return load_job_sample(_JOBS)


def _hand_ms(starts_ms: Mapping[str, Any]) -> float:
    graph, cluster = hand_instance()
    verdict = check_by_hand(graph, cluster, starts_ms)
    more = f" and {verdict.more} more" if verdict.more else ""
    refuse_if((verdict.broken is not None, f"{verdict.broken}{more}"), field="starts_ms")
    return verdict.makespan_ms


def _round_s(groups: Mapping[str, Any]) -> float:
    jobs = shared_jobs()
    known = [job.id for job in jobs.jobs]
    for name, group in groups.items():
        check_known(name, known, "job", field="groups")
        refuse_if(
            (group not in ("A", "B"), f"must be A or B (got {shown(group)})"),
            item=f"job {printable(name)}",
            field="groups",
        )
    for name in known:
        refuse_if((name not in groups, "has no group"), item=f"job {name}", field="groups")
    return float(round_of(StageTable(jobs), ["AB".index(groups[name]) for name in known]).round_s)


BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        "six-tasks": Board(
            "six-tasks",
            "starts_ms",
            "ms",
            _hand_ms,
            cache(lambda: float(planned(*hand_instance()).makespan_ms)),
            lambda: {task.id: 0 for task in hand_instance()[0].tasks},
        ),
        "time-division": Board(
            "time-division",
            "groups",
            "s",
            _round_s,
            cache(lambda: float(solve(shared_jobs(), TdmSettings("best-grouping")).round_s)),
            lambda: {job.id: "A" for job in shared_jobs().jobs},
        ),
    }
)


def board_of(lab: str) -> Board:
    """Return the board of a lab; raises InputError where it has none."""
    return look_up(lab, BOARDS, "leaderboard", field="lab")


def empty_entry(board: Board) -> bytes:
    """Return an entry to fill in: every task at 0, or every job in group A."""
    return FORM.written({"board": board.lab, "alias": "", board.field: board.empty()})


def load_entry(data: bytes, file: str) -> Entry:
    """Read an entry; what it claims of its own time is not kept.

    Raises
    ------
    InputError
        If it is none: one line names file and field.
    """
    record = read_object(data, printable(file, 200), FORM)
    name = record.get("board")
    check_known(name, BOARDS, "leaderboard", file=file, field="board")
    alias, field = record.get("alias"), BOARDS[str(name)].field
    value = record.get(field)
    short = isinstance(alias, str) and 1 <= len(alias.strip()) <= MAX_ALIAS
    refuse_if(
        (not short, f"must be 1 to {MAX_ALIAS} characters (got {shown(alias)})", "alias"),
        (
            not isinstance(value, dict) or not value,
            f"must be an object with an entry for each task or job (got {shown(value)})",
            field,
        ),
        file=file,
    )
    return Entry(str(name), printable(str(alias).strip(), MAX_ALIAS), dict(value or {}))


def entries_in(folder: Path) -> tuple[list[Entry], list[Unreadable]]:
    """Return the entries of a folder, not below it, and the files that are none.

    Raises
    ------
    InputError
        If there is no such folder, or too many files are in it.
    """
    found, refused = load_each(files_in(folder, ENDING, MAX_ENTRIES, "entries"), load_entry)
    return [entry for _, entry in found], refused


def ranked(board: Board, entries: Iterable[Entry]) -> tuple[Ranked, ...]:
    """Return the entries to a board, the shortest first, those that are not feasible last; of an alias the best."""
    best: dict[str, tuple[float, str]] = {}
    for one in (entry for entry in entries if entry.board == board.lab):
        outcome = _checked(board, one)
        best[one.alias] = min(best.get(one.alias, outcome), outcome, key=itemgetter(0))
    times = [time for time, _ in best.values()]
    known = min([board.best_known(), *times])
    return tuple(
        Ranked(0, alias, 0.0, 0.0, problem)
        if problem
        else Ranked(
            1 + sum(other < time * (1 - SAME) for other in times), alias, time, time / known - 1
        )
        for alias, (time, problem) in sorted(best.items(), key=lambda one: (one[1][0], one[0]))
    )


def _checked(board: Board, entry: Entry) -> tuple[float, str]:
    """Return the time of an entry; endless where it is not feasible, and then why."""
    try:
        return board.checked(entry.value), ""
    except InputError as error:
        return math.inf, error.located(error.problem)


def board_table(lines: Iterable[Ranked], unit: str) -> bytes:
    """Return a board as a CSV file; a cell that a spreadsheet would calculate is disarmed."""
    columns = ["rank", "alias", f"time_{unit}", "gap", "checked"]
    rows = [
        [one.rank or None, one.alias, one.time, round(one.gap, 6), "yes"]
        if one.rank
        else [None, one.alias, None, None, one.problem]
        for one in lines
    ]
    return table_bytes(columns, rows)
