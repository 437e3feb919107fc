"""FlexNet task graphs: what each stored task becomes, and that damage is always told."""

import struct
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import long_after
from tests.topox_core.io.test_bad_input import line_of as line_in
from topox_core.io.foreign import flexnet as flexnet_file
from topox_core.io.task_graph_file import load_graph
from topox_core.model.task_graph import Task

FORWARD, BACKWARD, LINK, UPDATE, BARRIER, NOMINAL, ALL_REDUCE = range(7)
NOWHERE = 2**64 - 1
Fields = dict[int, tuple[str, Any]]


class FlatWriter:
    """Just enough of FlatBuffers to write a FlexNet file: tables, scalars, vectors of numbers and of tables."""

    def __init__(self, root: Fields) -> None:
        self.out = bytearray(4)
        self.point(0, self.table(root))

    def point(self, at: int, target: int) -> None:
        struct.pack_into("<I", self.out, at, target - at)

    def table(self, fields: Fields) -> int:
        offsets = {slot: 4 + 8 * k for k, slot in enumerate(fields)}  # each as wide as the widest
        length, slots, described = 4 + 8 * len(fields), max(fields) + 1, len(self.out)
        self.out += struct.pack(
            f"<HH{slots}H", 4 + 2 * slots, length, *(offsets.get(slot, 0) for slot in range(slots))
        )
        at = len(self.out)
        self.out += struct.pack("<i", at - described) + bytes(length - 4)
        for slot, (form, value) in fields.items():
            where = at + offsets[slot]
            if form == "tables":
                self.point(where, self.tables(value))
            elif form == "numbers":
                self.point(where, len(self.out))
                self.out += struct.pack(f"<I{len(value)}Q", len(value), *value)
            else:
                struct.pack_into("<" + form, self.out, where, value)
        return at

    def tables(self, entries: Sequence[Fields]) -> int:
        at = len(self.out)
        self.out += struct.pack("<I", len(entries)) + bytes(4 * len(entries))
        for i, entry in enumerate(entries):
            self.point(at + 4 + 4 * i, self.table(entry))
        return at


def stored(
    kind: int, number: int, device: int, *following: int, ms: float = 0.0, size: int = 0
) -> Fields:
    return {
        0: ("h", kind),
        1: ("Q", number),
        2: ("Q", device),
        3: ("f", ms),
        4: ("Q", size),
        5: ("numbers", following),
    }


def device(number: int, node: int, pair: int = 0) -> Fields:
    return {
        0: ("h", 0 if node != NOWHERE else 14),
        1: ("Q", number),
        2: ("Q", node),
        3: ("Q", pair),
    }


def fbuf(tasks: Sequence[Fields], nodes: int = 2, switches: int = 1) -> bytes:
    """Write a file whose devices are 10, 11, ... on nodes 0, 1, ... and 100 * source + destination + 1000 between them."""
    ports = nodes + switches
    devices = [device(10 + node, node) for node in range(nodes)]
    devices += [
        device(1000 + 100 * a + b, NOWHERE, a * ports + b)
        for a in range(ports)
        for b in range(ports)
    ]
    link: Fields = {0: ("I", 0), 1: ("I", 1), 2: ("I", 1)}
    return bytes(
        FlatWriter(
            {
                0: ("I", 1),
                1: ("I", nodes),
                2: ("I", switches),
                6: ("tables", [link]),
                8: ("tables", tasks),
                9: ("tables", devices),
            }
        ).out
    )


BIG = 2**63
ITERATION = fbuf(
    [
        stored(FORWARD, BIG + 1, 10, BIG + 3, BIG + 2, ms=1.5),
        stored(BACKWARD, BIG + 2, 10, BIG + 7, BIG + 8, ms=0.109363),
        stored(NOMINAL, BIG + 3, 1001, BIG + 4, ms=99.0, size=2_097_152),
        stored(FORWARD, BIG + 4, 11, BIG + 5, ms=2.0),
        stored(BACKWARD, BIG + 5, 11, BIG + 6, BIG + 7, BIG + 9, ms=3.0),
        stored(NOMINAL, BIG + 6, 1100, BIG + 2, size=4096),
        stored(ALL_REDUCE, BIG + 7, 77, 1, 0, ms=6.1, size=1_000_000),
        stored(ALL_REDUCE, BIG + 8, 77, 0, size=5_000_000),
        stored(NOMINAL, BIG + 9, 1101, BIG + 10, size=64),
        stored(BARRIER, BIG + 10, 0, BIG + 11),
        stored(UPDATE, BIG + 11, 11),
    ]
)


line_of = partial(line_in, file="g.fbuf")


def test_each_stored_task_becomes_a_task_of_ours() -> None:
    graph = load_graph(ITERATION, "small.fbuf")
    assert graph.name == "small"
    assert graph.tasks == (
        Task("f0", "forward", dependencies=(), server=0, device=0, duration_ms=1.5),
        Task("b1", "backward", dependencies=("f0", "c5"), server=0, device=0, duration_ms=0.109363),
        Task(
            "c2",
            "nominal_communication",
            dependencies=("f0",),
            source=0,
            destination=1,
            size_bytes=2_097_152.0,
            parallelism="mp",
        ),
        Task("f3", "forward", dependencies=("c2",), server=1, device=0, duration_ms=2.0),
        Task("b4", "backward", dependencies=("f3",), server=1, device=0, duration_ms=3.0),
        Task(
            "c5",
            "nominal_communication",
            dependencies=("b4",),
            source=1,
            destination=0,
            size_bytes=4096.0,
            parallelism="mp",
        ),
        Task(
            "a6",
            "all_reduce",
            dependencies=("b1", "b4"),
            members=(1, 0),
            size_bytes=1e6,
            parallelism="dp",
        ),
        Task(
            "a7", "all_reduce", dependencies=("b1",), members=(0,), size_bytes=5e6, parallelism="dp"
        ),
        Task("c8", "barrier", dependencies=("b4",)),
        Task("j9", "barrier", dependencies=("c8",)),
        Task("u10", "update", dependencies=("j9",), server=1, device=0, duration_ms=0.0),
    )


@pytest.mark.parametrize(
    ("tasks", "line"),
    [
        (
            [stored(FORWARD, 1, 12)],
            ", task f0, field deviceid: must be a device on one of the 2 nodes (got 12)",
        ),
        (
            [stored(FORWARD, 1, 1001)],
            ", task f0, field deviceid: must be a device on one of the 2 nodes (got 1001)",
        ),
        (
            [stored(NOMINAL, 1, 10)],
            ", task c0, field deviceid: must be a device between two of the 2 nodes (got 10)",
        ),
        (
            [stored(NOMINAL, 1, 1002)],
            ", task c0, field deviceid: must be a device between two of the 2 nodes (got 1002)",
        ),
        (
            [stored(LINK, 1, 10)],
            ", task 1 (entry 1), field type: must be one of 0, 1, 3, 4, 5, 6 (got 2)",
        ),
        (
            [stored(FORWARD, 1, 10), stored(FORWARD, 1, 10)],
            ", task 1 (entry 2), field taskid: is used twice (the first time by entry 1)",
        ),
        (
            [stored(FORWARD, 1, 10, 9)],
            ", task 1 (f0), field nexttasks: names 9, which is not the id of a task",
        ),
        (
            [stored(FORWARD, 1, 10, 2), stored(BACKWARD, 2, 10, 1)],
            ", task f0, field dependencies: is in a cycle of 2 tasks, each waiting for the one before: f0 -> b1 -> f0",
        ),
        (
            [stored(FORWARD, 1, 10, ms=float("nan"))],
            ", task f0, field duration_ms: must be a finite number (got nan)",
        ),
        (
            [stored(FORWARD, 1, 10, ms=-1.0)],
            ", task f0, field duration_ms: must be at least 0 (got -1)",
        ),
        ([stored(ALL_REDUCE, 1, 0)], ", task a0, field members: must name at least one server"),
        (
            [stored(ALL_REDUCE, 1, 0, 1, 1)],
            ", task a0, field members: must name each server once (server 1 is there twice)",
        ),
        ([], ", field tasks: must hold at least one task"),
    ],
)
def test_what_no_iteration_can_hold_is_told(tasks: list[Fields], line: str) -> None:
    assert line_of(fbuf(tasks)) == line


@pytest.mark.parametrize(
    "data", [b"x", b"hello world", bytes(64), b"\xff" * 64, b'{"format": "topox-taskgraph"}']
)
def test_other_files_are_not_taken_for_flexnet(data: bytes) -> None:
    assert "FlexNet task graph" in line_of(data) or "at least one task" in line_of(data)


def test_a_file_cut_short_anywhere_is_told() -> None:
    for cut in range(1, len(ITERATION)):
        assert "is not a FlexNet task graph, or is damaged or cut short" in line_of(ITERATION[:cut])


@pytest.mark.parametrize(
    ("limit", "line"),
    [
        ("MAX_TASKS", ": holds 11 tasks, more than the 5 a graph may have"),
        ("MAX_DEPENDENCIES", ": holds more than the 5 dependencies a graph may have"),
    ],
)
def test_lists_that_are_or_claim_to_be_long_are_refused_before_memory_is_spent(
    monkeypatch: pytest.MonkeyPatch, limit: str, line: str
) -> None:
    count = ITERATION.index(struct.pack("<I3Q", 3, BIG + 6, BIG + 7, BIG + 9))
    longer = ITERATION[:count] + struct.pack("<I", 2**32 - 1) + ITERATION[count + 4 :]
    assert "a list of 4,294,967,295 entries" in line_of(longer)
    monkeypatch.setattr(flexnet_file, limit, 5)
    assert line_of(ITERATION) == line


@pytest.mark.parametrize(
    ("name", "kinds"),
    long_after(
        2,
        [
            ("10dlrm_16", (400, 400, 480, 62)),
            ("100candle_16", (492, 492, 456, 140)),
            ("100dlrm_16", (360, 360, 496, 62)),
            ("100dlrm_128", (2904, 2904, 16528, 110)),
        ],
    ),
)
def test_real_files_hold_what_flexnet_stored(
    real_inputs: Path, name: str, kinds: tuple[int, ...]
) -> None:
    graph = load_graph((real_inputs / "flexnet" / f"{name}.fbuf").read_bytes(), f"{name}.fbuf")
    count = Counter(task.kind for task in graph.tasks)
    stored_kinds = ("forward", "backward", "nominal_communication", "all_reduce")
    assert count == dict(zip(stored_kinds, kinds, strict=True))
