"""The result file, ``*.schedule.json``: read, refused with one clear line, laid out in columns; the rules it was made by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np

from topox_core.check.intervals import Float, Int
from topox_core.check.rows import (
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
from topox_core.errors import InputError, refuse_if, shown
from topox_core.io.content import FileFormat, check_header, read_object
from topox_core.io.limits import SCHEDULE, check_one_of
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import fields_of, setting
from topox_core.schema.records import from_values

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
    refuse_if(
        (
            not isinstance(link, dict) or not all(isinstance(text, str) for text in link.values()),
            f"must be an object: the parameters of a link as text (got {shown(link)})",
            "link",
        ),
        (
            not isinstance(digest, str),
            f"must be text: what identifies the task graph (got {shown(digest)})",
            "graph_digest",
        ),
        file=file,
    )
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
    refuse_if(
        (
            "fixed" in record,
            "is no key of version 2, in which transfers have paths and rates: save the result again",
        ),
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
        raise wrong("a finite number", value, file, "", key)
    return float(value)


def _length(record: Mapping[str, Any], key: str, file: str, optional: bool) -> float:
    value = _number(record, key, file, optional)
    if value is None:
        return 1.0
    refuse_if(
        (
            not SHORTEST_MS <= value <= LONGEST_MS,
            f"must be from {SHORTEST_MS:g} to {LONGEST_MS:g} ms (got {value:g})",
        ),
        file=file,
        field=key,
    )
    return value


MODELS = ("physical", "paper")
CIRCUIT_RULES = ("continuous", "per-slot")


@dataclass(frozen=True)
class Rules:
    """The switches of the model and of the lowering, as the checker reads them.

    Attributes
    ----------
    model, circuits
        ``physical`` or ``paper``; ``continuous`` or ``per-slot``.
    share_circuits
        Transfers of one pair may use one circuit, each at full rate (eq. 6 as printed).
    exclusive_devices
        A device runs one task at a time.
    any_port
        A server may use any switch, with one port on each (eqs 9 and 10 as printed).
    tick
        ``auto``, ``slot`` or a length in ms.
    clock
        ``slots``, or ``continuous``: times are not rounded at all. Circuits that are drawn slot by
        slot know slots only.
    iteration
        ``repeated``: the next one begins with the circuits that this one ends with, when its last
        task has ended. ``first``, also where a result does not say: the first circuit of every port
        stands before the iteration begins.
    rings, strides, all_reduce_on_network, steps, broadcast, algorithm, group
        How collectives became transfers.
    """

    model: Annotated[str, setting(choices=MODELS)]
    circuits: Annotated[str, setting(choices=CIRCUIT_RULES)]
    share_circuits: bool
    exclusive_devices: bool
    any_port: bool
    tick: Literal["auto", "slot"] | Annotated[float, setting(gt=0)] = "auto"
    rings: Annotated[int, setting(ge=1)] = 1
    strides: tuple[Annotated[int, setting(ge=1)], ...] = ()
    all_reduce_on_network: bool = True
    steps: Literal["fluid", "stepwise"] = "fluid"
    broadcast: Literal["chain", "tree"] = "chain"
    algorithm: Mapping[str, Any] = field(default_factory=dict)
    group: Annotated[int, setting(ge=0)] = 0
    iteration: Literal["first", "repeated"] = "first"
    clock: str = "slots"

    def __post_init__(self) -> None:
        refuse_if(
            (
                not all(isinstance(word, str) for word in self.algorithm.values()),
                f"must be a record of names of algorithms (got {shown(self.algorithm)})",
                "algorithm",
            ),
            (
                self.continuous and (self.share_circuits or self.any_port),
                "continuous circuits book real ports: they are neither shared nor on any switch a server likes, "
                "as the printed model has them",
                "circuits",
            ),
        )

    @property
    def repeats(self) -> bool:
        """Whether the last circuit of a port is before its first."""
        return self.iteration == "repeated" and self.continuous

    @property
    def on_slots(self) -> bool:
        """Whether tasks last whole ticks and transfers whole slots; if not, nothing is rounded."""
        return self.clock == "slots"

    @property
    def continuous(self) -> bool:
        """Whether a transfer stays on its switch and ports have a state."""
        return self.circuits == "continuous"

    def ports_on_switch(self, cluster: Cluster) -> int:
        """Return k, the circuits that a server may send (and receive) on one switch (right-hand side of eqs 9, 10).

        Raises
        ------
        InputError
            If the ports do not spread evenly over the switches and the rules need them to.
        """
        if self.any_port:
            return 1
        refuse_if(
            (
                cluster.ports_per_server % cluster.switches,
                f"must be a multiple of switches, {cluster.switches} (got {cluster.ports_per_server}): only the "
                "printed model lets a server use any switch",
            ),
            item="cluster",
            field="ports_per_server",
        )
        return cluster.ports_per_server // cluster.switches

    @staticmethod
    def of(
        settings: Mapping[str, Any],
        file: str = "",
        model: str | None = None,
        circuits: str | None = None,
        clock: str = "slots",
    ) -> Rules:
        """Return the rules of a result's settings and its clock.

        ``model`` and ``circuits`` win over them where given.

        A given model brings all its own switches: ``physical`` means exclusive devices, a circuit
        for each transfer and k ports on every switch; ``paper`` none of these, and circuits slot by
        slot.

        Raises
        ------
        InputError
            If a value is of the wrong kind; the field is named.
        """
        known = fields_of(Rules).keys() - {"clock"}
        given = {key: value for key, value in settings.items() if key in known}
        chosen = model or given.get("model", "physical")
        paper = chosen == "paper"
        printed = {"share_circuits": paper, "exclusive_devices": not paper, "any_port": paper}
        rule = "per-slot" if paper else "continuous"
        if circuits is not None:
            rule = circuits
        elif model != "paper":
            rule = given.get("circuits", rule)
        held = {**printed, **given, **(printed if model else {}), "model": chosen, "circuits": rule}
        clock = clock if rule == "continuous" else "slots"
        return from_values(Rules, held, file, "settings", clock=clock)


def changed_cluster(cluster: Cluster, changes: Any, file: str) -> Cluster:
    """Return the cluster with the keys that a result's settings override.

    Raises
    ------
    InputError
        If they are no record, or a key or a value is not a cluster's.
    """
    if changes is None:
        return cluster
    if not isinstance(changes, Mapping):
        raise wrong("a record of cluster keys", changes, file, "settings", "cluster")
    try:
        return cluster.changed(**{str(key): value for key, value in changes.items()})
    except InputError as error:
        raise InputError(
            error.problem, file=file, item="settings", field=f"cluster.{error.field}"
        ) from None
