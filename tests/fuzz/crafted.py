"""Files that are sound in form and made to cost their reader: by kind, what one of them may expand to.

A few kilobytes packed that ask for gigabytes or minutes (docs/security.md). Each is read by the command
as anybody would, and must end in a line or an answer within :data:`MAX_S` and :data:`MAX_MB`.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.reading import Reading, problem_of
from topox_core.traces.chakra_wire import COLLECTIVE, COMPUTE, METADATA, global_metadata, node_bytes

MAX_S, MAX_MB = 5.0, 1_500


@dataclass(frozen=True)
class Crafted:
    """One hostile file: its name, what is in it, and the command that reads it."""

    file: str
    make: Callable[[], bytes]
    command: tuple[str, ...] = ("trace", "import")


def _event(category: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    where = {"pid": 1, "tid": 7, "ts": ts, "dur": dur, "args": args}
    return {"ph": "X", "cat": category, "name": name, **where}


def _recording(events: Iterator[dict[str, Any]], **header: Any) -> bytes:
    """Return a packed recording of one step around events."""
    text = ",".join(json.dumps(event) for event in events)
    step = json.dumps(_event("user_annotation", "ProfilerStep#3", 0.0, 1e9))
    head = json.dumps({"distributedInfo": {"rank": 0, "world_size": 4_096}, **header})[:-1]
    return gzip.compress(f'{head}, "traceEvents": [{step}, {text}]}}'.encode(), 9)


def _calls(count: int, **args: Any) -> Iterator[dict[str, Any]]:
    told = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Seq": 1}
    for k in range(count):
        yield _event(
            "kernel",
            "ncclDevKernel_AllReduce",
            10.0 * k,
            5.0,
            stream=20,
            correlation=k,
            **told,
            **args,
        )


def _large_group() -> bytes:
    group = {"pg_name": "0", "ranks": list(range(4_096))}
    told = {"rank": 0, "world_size": 4_096, "pg_config": [group]}
    return _recording(
        _calls(100_000, **{"Process Group Name": "0", "Group size": 4_096}), distributedInfo=told
    )


def _in_place_of_events(piece: bytes) -> bytes:
    return gzip.compress(b'{"traceEvents": [' + piece * (3_000_000 // len(piece)) + b"{}]}", 9)


def _chakra(nodes: Iterator[bytes]) -> bytes:
    return gzip.compress(global_metadata() + b"".join(nodes), 1)


def _collectives_of_all() -> Iterator[bytes]:
    told: Mapping[str, bool | int | str] = {"comm_type": 0, "comm_size": 8, "is_cpu_op": False}
    return (node_bytes(k, "all", COLLECTIVE, (), 1, told) for k in range(20_000))


def _metadata_chain() -> Iterator[bytes]:
    """Yield nodes that pass on what all before them wait for."""
    for k in range(30_000):
        yield node_bytes(2 * k, "c", COMPUTE, (), 1, {})
        yield node_bytes(2 * k + 1, "m", METADATA, (2 * k, 2 * k - 1) if k else (0,), 0, {})
    yield node_bytes(60_000, "c", COMPUTE, (59_999,), 1, {})


def _many_dependencies() -> Iterator[bytes]:
    yield node_bytes(0, "first", METADATA, (), 0, {})
    for k in range(1, 3):
        yield node_bytes(k, "n", METADATA, [0] * 15_000_000, 0, {})


def _empty_attributes() -> bytes:
    node = b"\x52\x00" * 8_000_000
    return gzip.compress(global_metadata() + (_varint(len(node)) + node) * 10, 1)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def _text_workload(rows: int, ranks: int) -> bytes:
    head = f"HYBRID_TRANSFORMER model_parallel_NPU_group: {ranks}\n{rows}\n"
    row = "l -1 1000 ALLREDUCE_EP 400 300 NONE 0 100 ALLREDUCE 800 5\n"
    return (head + row * rows).encode()


CRAFTED: Mapping[str, Crafted] = {
    "a large group in each of many kernels": Crafted("c_rank0.json.gz", _large_group),
    "a list of ranks in each kernel": Crafted(
        "c_rank0.json.gz",
        lambda: _recording(_calls(4_000, **{"Process Group Ranks": list(range(16_000))})),
    ),
    "long text in each kernel": Crafted(
        "c_rank0.json.gz",
        lambda: _recording(_calls(50, **{"Process Group Ranks": "1" * 7_000_000})),
    ),
    "long text in each scope": Crafted(
        "c_rank0.json.gz",
        lambda: _recording(
            _event(
                "cpu_op", "record_param_comms", 5.0 * k, 3.0, **{"Collective name": "x" * 7_000_000}
            )
            for k in range(50)
        ),
    ),
    "empty objects in place of events": Crafted(
        "c_rank0.json.gz", lambda: _in_place_of_events(b"{},")
    ),
    "numbers in place of events": Crafted("c_rank0.json.gz", lambda: _in_place_of_events(b"1,")),
    "collectives of all ranks": Crafted("c.4095.et", lambda: _chakra(_collectives_of_all())),
    "metadata in a chain": Crafted("c.0.et", lambda: _chakra(_metadata_chain())),
    "dependencies by the million": Crafted("c.0.et", lambda: _chakra(_many_dependencies())),
    "empty attributes by the million": Crafted("c.0.et", _empty_attributes),
    "empty nodes in JSON": Crafted(
        "c.0.json", lambda: b'{"workload_graph": [' + b"{}," * 7_800_000 + b"{}]}"
    ),
    "a text workload of many rows": Crafted("c.txt", lambda: _text_workload(80_000, 8)),
    "a text workload near the limit": Crafted("c.txt", lambda: _text_workload(5_800, 8)),
    "a text workload of many servers": Crafted(
        "c.txt", lambda: _text_workload(16, 8), ("trace", "import", "--servers", "10000")
    ),
}


def read_crafted(name: str, folder: Path) -> Reading:
    """Return what came of one: the command reads it, in a process whose memory and time are measured."""
    one = CRAFTED[name]
    path = folder / one.file
    path.write_bytes(one.make())
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
