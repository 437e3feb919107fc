"""The result file, ``*.schedule.json``: read, refused with one clear line, and laid out in columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.check.rows import (
    NUMBER,
    CircuitRow,
    PathsOfTransfers,
    StandingRow,
    TaskRow,
    TransferRow,
    columns_of_rows,
    is_finite,
    name_of_row,
    refuse_unknown,
    rows_of,
    wrong,
)
from topox_core.errors import InputError, shown
from topox_core.io.json import FileFormat, check_header, read_object
from topox_core.io.limits import SCHEDULE
from topox_core.io.ranges import check_one_of

FORMAT, VERSION = "topox-schedule", 2
_FORM = FileFormat(FORMAT, VERSION, (), SCHEDULE)
# A link with its result: the keys of the result, and those two of the link.
LINKED = FileFormat("topox-link", 1, (), SCHEDULE)
STATUSES = ("optimal", "feasible", "infeasible", "unknown")
CLOCKS = ("slots", "continuous")
EFFORTS = ("first", "search", "prove")
SWITCHING = ("planned", "provisioned", "fixed")


def _keys(words: str) -> frozenset[str]:
    return frozenset(words.split())


# What a result may claim besides its makespan and its bound.
CLAIMS = (
    *("first_ms", "slotted_ms", "bound_slotted_ms", "bound_switching_ms", "bound_fixed_ms"),
    *("best_switching_ms", "best_fixed_ms"),
)
# Keys of version 2; version 1 had no others that count.
KEYS = frozenset(CLAIMS) | _keys(
    "format version status engine effort clock makespan_ms bound_ms gap bound_by unrounded_bound_ms "
    "stopped_by wall_s working_s slot_ms tick_ms rounding chosen message manifest settings tasks transfers circuits"
)
CHOSEN_KEYS = _keys("slot_ms rings strides algorithms switching")
KEYS_OF = {
    "task": _keys("id start_ms end_ms"),
    "transfer": _keys("id collective source destination size_bytes dependencies paths rates"),
    "circuit": _keys(
        "switch source destination source_port destination_port setup_ms start_ms end_ms task"
    ),
}
# Lengths of a tick or slot; what lies beyond is a slip of units, and would overflow.
SHORTEST_MS, LONGEST_MS = 1e-9, 1e9


@dataclass(frozen=True)
class Schedule:
    """A result in columns: tasks, the transfers that collectives became, and circuits.

    ``has_schedule`` is false where the result has no makespan (infeasible, or stopped before any).
    Ports are -1 where the file leaves them out. All times in ms; ``claims_ms`` holds those of
    :data:`CLAIMS` that the file has. ``clock`` is ``slots`` where the
    file does not say; ``fixed`` holds the paths of transfers where circuits stay fixed, whose rows
    then belong to no one transfer (``circuit_task`` is empty).
    """

    status: str
    clock: str
    has_schedule: bool
    makespan_ms: float
    bound_ms: float
    gap: float | None
    slot_ms: float
    tick_ms: float
    claims_ms: Mapping[str, float]
    settings: Mapping[str, Any]
    task: list[str]
    start_ms: Float
    end_ms: Float
    transfer: list[str]
    collective: list[str]
    transfer_source: Int
    transfer_destination: Int
    transfer_bytes: Float
    transfer_dependencies: list[Sequence[str]]
    circuit_task: list[str]
    switch: Int
    source: Int
    destination: Int
    source_port: Int
    destination_port: Int
    setup_ms: Float
    circuit_start_ms: Float
    circuit_end_ms: Float
    fixed: PathsOfTransfers | None = None


def read_schedule(data: bytes, file: str = "") -> dict[str, Any]:
    """Return the record of a result file, gzipped or not, once its shape is right.

    Whether ids are known and appear once is a matter of the constraints (eq. 3), not of the shape.

    Raises
    ------
    InputError
        If the file is no such record; names the item and the field.
    """
    record = read_object(data, file, _FORM)
    columns_of(record, file)
    return record


def read_linked(data: bytes, file: str = "") -> tuple[dict[str, str], str, dict[str, Any]]:
    """Return the link, the digest of the task graph and the record of a link with its result, gzipped or not.

    Raises
    ------
    InputError
        If the file is none; names the item and the field.
    """
    record = read_object(data, file, LINKED)
    link, digest = record.pop("link", None), record.pop("graph_digest", None)
    if not isinstance(link, dict) or not all(isinstance(text, str) for text in link.values()):
        raise InputError(
            f"must be an object: the parameters of a link as text (got {shown(link)})",
            file=file,
            field="link",
        )
    if not isinstance(digest, str):
        problem = f"must be text: what identifies the task graph (got {shown(digest)})"
        raise InputError(problem, file=file, field="graph_digest")
    record |= {"format": FORMAT, "version": VERSION}
    columns_of(record, file)
    return link, digest, record


def columns_of(record: Any, file: str = "") -> Schedule:
    """Return a result record as columns.

    Raises
    ------
    InputError
        If a key is missing or a value is of the wrong kind; names the item and the field.
    """
    if not isinstance(record, Mapping):
        raise wrong("one JSON object", record, file, "", "")
    check_header(dict(record), FORMAT, VERSION, file)
    if "fixed" in record:
        raise InputError(
            "is no key of version 2, in which transfers have paths and rates: save the result again",
            file=file,
            field="fixed",
        )
    status = record.get("status")
    check_one_of(status, STATUSES, file=file, field="status")
    settings = record.get("settings")
    if not isinstance(settings, Mapping):
        raise InputError(
            "must be an object: the choices the result was made with", file=file, field="settings"
        )
    clock = record.get("clock", "slots")
    check_one_of(clock, CLOCKS, file=file, field="clock")
    stays = _switching(record, file) == "fixed"
    makespan = _number(record, "makespan_ms", file, optional=status in ("infeasible", "unknown"))
    there = makespan is not None
    every = rows_of(record, "transfers", file, needed=False)
    if record["version"] > 1:
        refuse_unknown(record, KEYS, file, "")
        for noun, keys in KEYS_OF.items():
            rows = rows_of(record, f"{noun}s", file, needed=False)
            if not set(chain.from_iterable(rows)) <= keys:
                for i, row in enumerate(rows):
                    refuse_unknown(row, keys, file, "", name_of_row(row, noun, i))
    tasks = columns_of_rows(TaskRow, rows_of(record, "tasks", file, there), "task", file)
    # Where circuits stay, transfers of the graph itself are listed only with the paths that they take.
    listed = [row for row in every if not stays or "collective" in row]
    transfers = columns_of_rows(TransferRow, listed, "transfer", file)
    kind, rows = StandingRow if stays else CircuitRow, rows_of(record, "circuits", file, there)
    circuits = columns_of_rows(kind, rows, "circuit", file)
    ports = {
        end: [-1 if port is None else port for port in circuits[end]]
        for end in ("source_port", "destination_port")
    }
    return Schedule(
        status=str(status),
        clock=str(clock),
        has_schedule=there,
        makespan_ms=makespan or 0.0,
        bound_ms=_number(record, "bound_ms", file, optional=not there) or 0.0,
        gap=_number(record, "gap", file, optional=True),
        slot_ms=_length(record, "slot_ms", file, optional=not there),
        tick_ms=_length(record, "tick_ms", file, optional=not there),
        claims_ms={
            key: value for key in CLAIMS if (value := _number(record, key, file, True)) is not None
        },
        settings=settings,
        task=tasks["id"],
        start_ms=np.array(tasks["start_ms"], np.float64),
        end_ms=np.array(tasks["end_ms"], np.float64),
        transfer=transfers["id"],
        collective=transfers["collective"],
        transfer_source=np.array(transfers["source"], np.int64),
        transfer_destination=np.array(transfers["destination"], np.int64),
        transfer_bytes=np.array(transfers["size_bytes"], np.float64),
        transfer_dependencies=transfers["dependencies"],
        circuit_task=circuits.get("task", [""] * len(rows)),
        switch=np.array(circuits["switch"], np.int64),
        source=np.array(circuits["source"], np.int64),
        destination=np.array(circuits["destination"], np.int64),
        source_port=np.array(ports["source_port"], np.int64),
        destination_port=np.array(ports["destination_port"], np.int64),
        setup_ms=np.array(circuits["setup_ms"], np.float64),
        circuit_start_ms=np.array(circuits["start_ms"], np.float64),
        circuit_end_ms=np.array(circuits["end_ms"], np.float64),
        fixed=PathsOfTransfers.of(every, file) if stays else None,
    )


def _switching(record: Mapping[str, Any], file: str) -> str:
    """Return how the schedule uses circuits, and refuse other keys of ``chosen`` and ``effort`` that are none."""
    chosen = record.get("chosen", {})
    if not isinstance(chosen, Mapping):
        raise wrong("an object", chosen, file, "", "chosen")
    refuse_unknown(chosen, CHOSEN_KEYS, file, "chosen")
    switching = chosen.get("switching", "planned")
    check_one_of(switching, SWITCHING, file=file, field="chosen.switching")
    check_one_of(record.get("effort", "first"), EFFORTS, file=file, field="effort")
    return str(switching)


def _number(record: Mapping[str, Any], key: str, file: str, optional: bool) -> float | None:
    value = record.get(key)
    if value is None and optional:
        return None
    if not is_finite(value):
        raise wrong(NUMBER, value, file, "", key)
    return float(value)


def _length(record: Mapping[str, Any], key: str, file: str, optional: bool) -> float:
    value = _number(record, key, file, optional)
    if value is None:
        return 1.0
    if not SHORTEST_MS <= value <= LONGEST_MS:
        raise InputError(
            f"must be from {SHORTEST_MS:g} to {LONGEST_MS:g} ms (got {value:g})",
            file=file,
            field=key,
        )
    return value
