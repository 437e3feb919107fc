"""Malformed files of every format, built by knowing the format: hypothesis strategies, and what reads each.

A case begins as a sound file. Values are exchanged, dropped, doubled, renamed, nested or repeated many
times; then the text is damaged, encoded otherwise, packed, cut. What is left is a file that gets far
into its reader before it fails, or does not fail at all.
"""

import copy
import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.fuzz.costly import COSTLY_CHAKRA, COSTLY_RECORDINGS, COSTLY_TEXT, event
from tests.topox_core.io.test_flexnet_file import NOMINAL, fbuf, stored
from tests.topox_core.schedule.test_psplib import SMALL
from topox_core.check.schedule_file import read_linked, read_schedule
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS, load_parts, with_edits
from topox_core.io.cluster_file import load_cluster
from topox_core.io.foreign.infragraph import dump_infragraph
from topox_core.io.resource_limits import limited_reading
from topox_core.io.task_graph_file import load_graph
from topox_core.model.cluster import one_port_a_switch
from topox_core.rails.window_lengths import load_windows
from topox_core.schedule.rcpsp.psplib import read_psplib
from topox_core.strategy.strategy import load_strategy
from topox_core.tdm.model.jobs_file import load_jobs
from topox_core.traces.chakra.astra_sim import import_text, read_network
from topox_core.traces.chakra.nodes import (
    COLLECTIVE,
    COMPUTE,
    RECEIVE,
    SEND,
    global_metadata,
    node_bytes,
)
from topox_core.traces.chakra.reading import import_chakra
from topox_core.traces.importing import import_kineto
from topox_core.traces.recorded.recorded_run import read_host_trace
from topox_core.traces.recorded.windows import windows_of_trace
from topox_core.traces.source import ImportSettings, Source
from topox_core.training.job import load_job
from topox_core.training.measured.measurements import CALIBRATION_FILE, read_measured
from topox_core.workloads.catalogue import generate

Load = Callable[[bytes, str], object]


@dataclass(frozen=True)
class Format:
    """What reads a format, the name its files have, and a strategy of malformed ones."""

    load: Load
    file: str
    cases: st.SearchStrategy[bytes]


def _header(name: str, **keys: Any) -> dict[str, Any]:
    return {"format": f"topox-{name}", "version": 1, "name": "n", **keys}


GRAPH = _header(
    "taskgraph",
    tasks=[
        {"id": "f0", "kind": "forward", "server": 0, "device": 0, "duration_ms": 3.0, "stage": 1},
        {
            "id": "c",
            "kind": "communication",
            "source": 0,
            "destination": 1,
            "size_bytes": 8,
            "dependencies": ["f0"],
            "parallelism": "pp",
        },
        {
            "id": "g",
            "kind": "broadcast",
            "members": [0, 1],
            "root": 0,
            "size_bytes": 8.0,
            "dependencies": ["c", "f0"],
        },
    ],
)
CLUSTER = _header(
    "cluster",
    servers=4,
    ports_per_server=2,
    switches=2,
    ports_per_switch=4,
    port_gbps=100.0,
    slot_ms=1.0,
    duplex="full",
)
JOBS = _header(
    "jobs",
    network={
        "pod_groups": 1,
        "pods_per_group": 4,
        "ports_per_pod": 8,
        "port_gbps": 150.0,
        "tor_gbps": 1200.0,
    },
    jobs=[
        {
            "id": "j0",
            "collective": "parameter_server",
            "pod_group": 0,
            "units_per_pod": [0, 1, 1, 1],
            "server_pod": 0,
            "volume_gbit": 678.4,
            "train_s": 33.4,
        },
        {
            "id": "j1",
            "collective": "ring_all_reduce",
            "pod_group": 0,
            "units_per_pod": [2, 2, 2, 2],
            "volume_gbit": 78.7,
            "train_s": 31,
        },
    ],
)
PARTS = _header(
    "parts",
    based_on=DEFAULT_SET,
    port_gbps=400.0,
    parts=[
        {"id": "transceiver", "price_usd": 180.0, "price_from": "assumed", "source": "quote"},
        {"id": "packet_switch", "power_w": 100, "ports": 64},
    ],
)
STRATEGY = {
    "format": "topox-strategy",
    "version": 1,
    "model": "m",
    "servers": 4,
    "operators": [
        {"operator": "a", "partitions": 4, "start": 1},
        {"operator": "b", "partitions": 2},
    ],
}
WINDOWS = _header(
    "windows",
    iteration_ms=1000.0,
    windows=[
        {"length_ms": 32.9, "before": "dp", "after": "pp", "rank": 0, "begin_ms": 0.0},
        {"length_ms": -0.45, "operation": "x", "rail": 1, "begin_ms": 40.0, "size_bytes": 1e9},
    ],
)
SCHEDULE = {
    "format": "topox-schedule",
    "version": 2,
    "status": "feasible",
    "makespan_ms": 9.0,
    "bound_ms": 9.0,
    "gap": 0.0,
    "slot_ms": 1.0,
    "tick_ms": 1.0,
    "settings": {"seed": 0, "cluster": {"port_gbps": 40.0}},
    "chosen": {"switching": "fixed"},
    "tasks": [{"id": "f0", "start_ms": 0.0, "end_ms": 3.0}],
    "transfers": [
        {
            "id": "g/0",
            "collective": "g",
            "source": 0,
            "destination": 1,
            "size_bytes": 8,
            "dependencies": ["f0"],
            "paths": [{"servers": [0, 3, 1], "share": 0.5, "rates": [[3.0, 4.0, 50.0]]}],
            "rates": [[3.0, 4.0, 100.0]],
        }
    ],
    "circuits": [
        {
            "switch": 0,
            "source": 0,
            "destination": 1,
            "setup_ms": 2.0,
            "start_ms": 3.0,
            "end_ms": 9.0,
            "task": "g/0",
        }
    ],
}
LINKED = SCHEDULE | {
    "format": "topox-link",
    "version": 1,
    "link": {"sample": "moe", "port_gbps": "200"},
    "graph_digest": "d",
}
JOB = {
    "format": "topox-job",
    "version": 1,
    "name": "j",
    "assert": ["iteration_ms <= 120", "gap < 5e-2"],
    "shape": "llama3-8b",
    "plan": {"tensor": 8, "pipeline": 4, "data": 2, "microbatches": 8, "zero": 1, "capacity": 1.0},
    "machine": {
        "name": "m",
        "title": "M",
        "gpus_per_server": 8,
        "tflops": 989.0,
        "memory_gb": 80,
        "memory_gb_per_s": 3350.0,
        "inside_gb_per_s": 450.0,
        "nic_gbps": 400.0,
        "matmul_share": 0.85,
    },
    "schedule": {"order": "interleaved", "virtual": 2, "iteration_ms": None},
}
MEASURED_ROWS = [
    line.split(",") for line in CALIBRATION_FILE.read_text(encoding="utf-8").splitlines()[:4]
]
GRAPH_ROWS = [
    [
        "id",
        "kind",
        "server",
        "duration_ms",
        "source",
        "destination",
        "size_bytes",
        "members",
        "dependencies",
    ],
    ["f0", "forward", "0", "3.0", "", "", "", "", ""],
    ["c", "communication", "", "", "0", "1", "67108864", "", "f0"],
    ["g", "all_reduce", "", "", "", "", "8", "0 1", "f0 c"],
]
WINDOW_ROWS = [
    ["length_ms", "before", "after", "rank", "begin_ms"],
    ["32.9", "dp", "pp", "0", "0"],
    ["-0.45", "pp", "", "1", "40"],
]

ODD_WORDS = (
    *(
        "",
        " ",
        "\x00",
        "\x1c",
        "\u2028",
        "\ufeff",
        "\u200b\u202e",
        "\u3164",
        "\u0301" * 50,
        "\ud800",
    ),
    *("=1+1", "x" * 300, "é" * 5_000, "😀", "![x](http://x)", "<b>", "-", "'", '"', "a b", "a\nb"),
    *("f0", "nan", "1e999", "topox-" + "y" * 100_000, "\x1b[31m", "0" * 40),
)
ODD_TEXT = st.sampled_from(ODD_WORDS) | st.text(max_size=6)
ODD_NUMBERS = (
    *(0, -1, 1, 2**31, 2**63, 2**64, 10**30, 10**400, -(10**400), 99_999, 100_000, True, False),
    *(0.5, -0.0, 1e308, 5e-324, 1e15, 1e9, float("nan"), float("inf"), -float("inf")),
)
ODD_NUMBER = st.sampled_from(ODD_NUMBERS)
ODD_DIGITS = ODD_NUMBER.map(lambda number: str(number)[:400])
ODD_VALUE = st.recursive(
    ODD_TEXT | ODD_NUMBER | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)
# Texts that are multiplied: what is small in a file and large in memory.
UNITS = st.sampled_from(
    (
        *("1,", '"",', '"ab",', "[],", "{},", '{"a":1},', " ", "[", '{"a":', "null,", "1e5,", ","),
        *('"', "\n", '{"id":"a","kind":"barrier"},', '{"id":1},', '"\\ud800",', '"😀",'),
    )
)
# Mostly few: a case of millions costs as much as a thousand others.
TIMES = st.sampled_from([1] * 40 + [20] * 20 + [1_200] * 8 + [30_000] * 2 + [1_000_000])
# Characters of a table: a long row that is doubled many times must not take the machine's memory.
LARGEST = 50_000_000


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every list and object inside a value with each of its indices or keys."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


@st.composite
def json_files(draw: st.DrawFn, sound: dict[str, Any]) -> bytes:
    """Draw a file made of a sound record by a few changes."""
    record: Any = copy.deepcopy(sound)
    many: tuple[str, int] | None = None
    for _ in range(draw(st.integers(0, 3))):
        holder, last = draw(st.sampled_from([*_places(record)] or [({"": 0}, "")]))
        change = draw(st.integers(0, 7))
        if change == 0:
            del holder[last]
        elif change == 1 and isinstance(holder, dict):
            holder[draw(ODD_TEXT)] = holder.pop(last)
        elif change == 2:
            holder[last] = "@deep"
            many = ("[", draw(st.sampled_from([1, 5, 200, 990, 1_100])))
        elif change == 3 and isinstance(holder, list):
            holder += [copy.deepcopy(holder[last])] * draw(st.sampled_from([1, 3, 30]))
        elif change == 4:
            holder[last] = "@many"
            many = (draw(UNITS), draw(TIMES))
        elif change == 5 and isinstance(holder, dict):
            holder |= {f"k{k}": 1 for k in range(draw(st.sampled_from([1, 3, 40, 200])))}
        else:
            holder[last] = draw(ODD_VALUE)
    text = json.dumps(record, ensure_ascii=draw(st.booleans()))
    if draw(st.integers(0, 9)) == 0:
        text = text.replace(
            ", ", draw(st.sampled_from([",", ",\n\t", ",,", ", \x00", ' , "version": 1, ']))
        )
    if many is not None:
        unit, times = many
        end = "]" * times if unit == "[" else ""
        put = draw(st.sampled_from([f"[{unit * times}1]", f"{unit * times}1{end}", unit * times]))
        text = text.replace('"@many"', put).replace('"@deep"', f"{unit * times}{end}")
    return draw(damaged(text.encode("utf-8", "surrogatepass")))


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(c in text for c in ',;\t\n"\r') else text


@st.composite
def tables(draw: st.DrawFn, sound: list[list[str]]) -> bytes:
    """Draw a table made of a sound one by a few changes."""
    rows = copy.deepcopy(sound)
    for _ in range(draw(st.integers(0, 4))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        change = draw(st.integers(0, 5))
        if change == 0 and row:
            del row[draw(st.integers(0, len(row) - 1))]
        elif change == 1:
            row += [draw(ODD_TEXT)] * draw(st.sampled_from([1, 1, 20, 300]))
        elif change == 2:
            rows += [list(row)] * draw(st.sampled_from([1, 5, 1_500]))
        elif row:
            at = draw(st.integers(0, len(row) - 1))
            row[at] = draw(ODD_TEXT | ODD_DIGITS)
    sizes = accumulate(sum(map(len, row)) for row in rows)
    rows = [row for row, size in zip(rows, sizes, strict=True) if size <= LARGEST]
    delimiter = draw(st.sampled_from([",", ",", ",", ";", "\t", "|"]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"]))
    if draw(st.booleans()):
        rows = [[_quoted(cell) for cell in row] for row in rows]
    text = end.join(map(delimiter.join, rows)) + end
    text = draw(st.sampled_from(["", "", "", "sep=;\n", "\ufeff", "\n\n", '"'])) + text
    if draw(st.integers(0, 5)) == 0:
        text += draw(st.sampled_from([",,,\n", ",", " ", "\n", "x", '"', "a b "])) * draw(TIMES)
    return draw(damaged(text.encode("utf-8", "surrogatepass")))


@st.composite
def flexnet_files(draw: st.DrawFn) -> bytes:
    """Draw a FlexNet file whose numbers, offsets among them, are odd."""
    tasks = [
        stored(
            draw(st.integers(-1, 8)), number, draw(st.sampled_from([10, 11, 1001, 7])), number + 1
        )
        for number in range(draw(st.integers(0, 5)))
    ]
    data = bytearray(fbuf([*tasks, stored(NOMINAL, 90, 1001, ms=1.0, size=8)]))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data) - 4))
        word = draw(
            st.sampled_from([0, 1, 2, 4, 0xFF, 0xFFFF, 2**31 - 1, 2**32 - 1, 500_000, 10**6])
        )
        struct.pack_into("<I", data, at, word)
    if draw(st.integers(0, 30)) == 0:
        data += bytes(draw(st.sampled_from([100, 4_000_000])))
    return draw(damaged(bytes(data)))


KINETO_META = {
    "Collective name": "allreduce",
    "dtype": "Float",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "Group size": 2,
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1]",
    "Seq": 1,
}


RUN = {
    "schemaVersion": 1,
    "distributedInfo": {
        "rank": 0,
        "world_size": 2,
        "pg_config": [{"pg_name": "0", "ranks": [0, 1]}],
    },
    "traceEvents": [
        event("user_annotation", "ProfilerStep#3", 1, 0.0, 90.0),
        event("cuda_runtime", "cudaLaunchKernel", 1, 2.0, 1.0, correlation=1),
        event("cpu_op", "record_param_comms", 1, 5.0, 9.0, **KINETO_META),
        event("cuda_runtime", "cudaStreamWaitEvent", 1, 6.0, 1.0, correlation=2),
        event("cuda_runtime", "cudaLaunchKernelExC", 1, 8.0, 1.0, correlation=3),
        event(
            "cpu_op", "record_param_comms", 1, 20.0, 4.0, **{"Collective name": "wait", "Seq": 1}
        ),
        event(
            "cuda_sync",
            "Stream Wait Event",
            1,
            21.0,
            1.0,
            stream=7,
            wait_on_stream=20,
            correlation=4,
        ),
        event("cuda_runtime", "cudaStreamWaitEvent", 1, 21.0, 1.0, correlation=4),
        event("cuda_runtime", "cudaLaunchKernel", 1, 30.0, 1.0, correlation=5),
        event("cuda_runtime", "cudaDeviceSynchronize", 1, 40.0, 30.0, correlation=6),
        event("kernel", "gemm", 7, 10.0, 20.0, stream=7, correlation=1),
        event(
            "kernel",
            "ncclDevKernel_AllReduce",
            20,
            30.0,
            10.0,
            stream=20,
            correlation=3,
            **KINETO_META,
        ),
        event("kernel", "gemm", 7, 41.0, 9.0, stream=7, correlation=5),
    ],
}
HOST_TRACE = {
    "schema": "1.0.1",
    "nodes": [
        {
            "name": "record_param_comms",
            "id": 2,
            "rf_id": 1,
            "inputs": [[1, 2, 0, 64, 4, "cuda:0"], 1, "all_to_allv", [32, 32]],
        },
        {
            "name": "record_param_comms",
            "id": 3,
            "attrs": [
                {"name": "collective_name", "value": "allreduce"},
                {"name": "dtype", "value": "Float"},
                {"name": "in_msg_nelems", "value": 8},
            ],
        },
    ],
}
CHAKRA_JSON = {
    "workload_graph": [
        {"id": 0, "type": "COMP_NODE", "runtime": 5, "data_deps": []},
        {
            "id": 1,
            "type": 7,
            "data_deps": [0],
            "comm_type": 0,
            "comm_size": 8,
            "attr": [{"name": "pg_name", "string_val": ""}],
        },
    ]
}
OWN_TRACE = {
    "otherData": {"format": "topox-trace", "version": 1, "makespan_ms": 9.0},
    "traceEvents": [
        {"ph": "X", "pid": 0, "tid": 1, "name": f"x{k}", "cat": "all_reduce dp", "ts": k, "dur": 1.0,
         "args": {"source": 0, "destination": 1, "task": k, "kind": "all_reduce", "parallelism": p,
                  "size_bytes": 8.0, "start_ms": k, "end_ms": k + 1.0, "switch": 0}}
        for k, p in enumerate(("dp", "pp", "dp"))
    ],
}  # fmt: skip
TEXT_ROWS = [
    ["HYBRID_TRANSFORMER", "model_parallel_NPU_group:", "2"],
    ["2"],
    *(f"l{k} -1 1000 ALLREDUCE_EP 400 300 NONE 0 100 ALLREDUCE 800 5".split() for k in (0, 1)),
]
CLUSTER_WRITTEN = one_port_a_switch(4, 2, 100.0, latency_us=1.0, devices_per_server=8)
INFRAGRAPH: dict[str, Any] = yaml.safe_load(dump_infragraph(CLUSTER_WRITTEN))
NETWORK = "topology: [ Switch, Ring ]\nnpus_count: [ 8, 4 ]\nbandwidth: [ 450, 50.0 ]\nlatency: [ 500, 500 ]\n"


# An execution trace whose numbers and bytes are odd.
CHAKRA_NUMBERS = st.integers(0, 6) | st.sampled_from([2**31, 2**63, 2**64 - 1])
CHAKRA_FACTS = {
    **dict.fromkeys(("comm_type", "comm_size"), st.sampled_from([0, 1, 6, 2**63 - 1, -(2**63)])),
    **dict.fromkeys(
        ("comm_src", "comm_dst", "comm_tag"), st.sampled_from([0, 1, 6, 2**31 - 1, -(2**31)])
    ),
}
CHAKRA_NODES = st.builds(
    node_bytes,
    CHAKRA_NUMBERS,
    st.just("n"),
    st.sampled_from([0, 1, COMPUTE, SEND, RECEIVE, COLLECTIVE]),
    st.lists(CHAKRA_NUMBERS, max_size=3),
    CHAKRA_NUMBERS,
    st.fixed_dictionaries(
        {}, optional={**CHAKRA_FACTS, "pg_name": st.sampled_from(["", "1", "x" * 300])}
    ),
)


@st.composite
def spaced_files(draw: st.DrawFn, sound: str) -> bytes:
    """Draw a text of words whose words are odd."""
    words = sound.split(" ")
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(words) - 1))
        words[at] = draw(ODD_TEXT | ODD_DIGITS) * draw(st.sampled_from([1, 1, 1, 50]))
    text = " ".join(words)
    if draw(st.integers(0, 8)) == 0:
        text += draw(st.sampled_from(["\n", "1 1 ", "x\n", "*", "- 1\n", "a: 1\n"])) * draw(TIMES)
    return draw(damaged(text.encode("utf-8", "surrogatepass")))


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw what may happen to bytes on their way: a few exchanged, other encodings, gzip, a cut."""
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 4)) :]
    how = draw(st.integers(0, 15))
    if how == 0:
        data = data.decode("utf-8", "replace").encode(
            draw(st.sampled_from(["utf-16", "utf-32", "utf-8-sig"]))
        )
    elif how == 1:
        data = data[: draw(st.integers(0, len(data)))]
    elif how == 2:
        data = gzip.compress(data, 1, mtime=0)
    elif how == 3:
        data = gzip.compress(data, 1, mtime=0)
        data = data[: draw(st.integers(2, len(data)))] + draw(st.binary(max_size=3))
    elif how == 4:
        data = gzip.compress(data[:40], mtime=0) + gzip.compress(data[40:], 1, mtime=0)
    elif how == 5 and draw(st.integers(0, 20)) == 0:
        # A bomb: what unpacks to a hundred megabytes.
        engine, filler = zlib.compressobj(1, wbits=31), draw(st.sampled_from(" ,\n[1")).encode()
        packed = [engine.compress(data[: draw(st.integers(0, len(data)))])]
        packed += [engine.compress(filler * 1_000_000) for _ in range(100)]
        data = b"".join([*packed, engine.flush()])
    return data


# What a link may say about a workload, one ``key=value`` a line, and about prices.
WORKLOAD_NAMES = st.sampled_from(["moe", "fsdp", "pipeline", "dlrm", "random-layered"]) | ODD_TEXT
WORKLOAD_KEYS = st.sampled_from(
    [
        "servers",
        "layers",
        "skew",
        "seed",
        "microbatches",
        "stages",
        "replicas",
        "width",
        "tokens",
        "x",
    ]
)
WORKLOAD_VALUES = ODD_TEXT | ODD_DIGITS | st.sampled_from(["2", "3", "512"])
WORKLOAD_LINKS = st.tuples(
    WORKLOAD_NAMES, st.lists(st.tuples(WORKLOAD_KEYS, WORKLOAD_VALUES).map("=".join), max_size=4)
).map(lambda link: "\0".join([link[0], *link[1]]).encode("utf-8", "surrogatepass"))
PRICE_WORDS = st.sampled_from(["ocs_port", "nic", "1", "-1", "1e400", "nan", ":", ","]) | ODD_TEXT
PRICE_LINKS = st.lists(st.lists(PRICE_WORDS, max_size=4).map(":".join), max_size=4).map(
    lambda parts: ",".join(parts).encode("utf-8", "surrogatepass")
)


def _from_workload_link(data: bytes, _file: str) -> object:
    name, *lines = data.decode("utf-8", "surrogatepass").split("\0")
    return generate(name, dict(line.partition("=")[::2] for line in lines), 20_000)


def _from_price_link(data: bytes, _file: str) -> object:
    return with_edits(PRICE_SETS[DEFAULT_SET], data.decode("utf-8", "surrogatepass"))


def _as(read: Callable[[Source], object]) -> Load:
    return lambda data, file: read(Source.of_bytes(file, data))


def _within(read: Callable[[Source], object]) -> Load:
    """Return what reads as a command does: within the limits of memory and time."""

    def load(data: bytes, file: str) -> object:
        with limited_reading(file, len(data)):
            return read(Source.of_bytes(file, data))

    return load


FORMATS = {
    "run": Format(
        _as(lambda source: import_kineto([source], ImportSettings(assume_gbps=100.0))),
        "f_rank0.json",
        json_files(RUN),
    ),
    "host-trace": Format(_as(read_host_trace), "f_0.json", json_files(HOST_TRACE)),
    "chakra": Format(
        _as(lambda source: import_chakra([source], ImportSettings(world=2), {"1": (0, 1)})),
        "f.0.et",
        st.lists(CHAKRA_NODES, max_size=6)
        .map(b"".join)
        .flatmap(lambda nodes: damaged(global_metadata() + nodes)),
    ),
    "chakra-json": Format(
        _as(lambda source: import_chakra([source], ImportSettings(world=2), {})),
        "f.0.json",
        json_files(CHAKRA_JSON),
    ),
    "own-trace": Format(_as(windows_of_trace), "f.trace.json", json_files(OWN_TRACE)),
    "text-workload": Format(
        _as(lambda source: import_text(source, ImportSettings())),
        "f.txt",
        spaced_files("\n".join(" ".join(row) for row in TEXT_ROWS)),
    ),
    "network": Format(_as(read_network), "f.yml", spaced_files(NETWORK)),
    "graph": Format(load_graph, "f.taskgraph.json", json_files(GRAPH)),
    "graph-table": Format(load_graph, "f.csv", tables(GRAPH_ROWS)),
    "graph-flexnet": Format(load_graph, "f.fbuf", flexnet_files()),
    "cluster": Format(load_cluster, "f.cluster.json", json_files(CLUSTER)),
    "infragraph": Format(load_cluster, "f.infragraph.json", json_files(INFRAGRAPH)),
    "infragraph-yaml": Format(
        load_cluster, "f.yaml", spaced_files(dump_infragraph(CLUSTER_WRITTEN).decode())
    ),
    "jobs": Format(load_jobs, "f.jobs.json", json_files(JOBS)),
    "parts": Format(load_parts, "f.parts.json", json_files(PARTS)),
    "strategy": Format(load_strategy, "f.strategy.json", json_files(STRATEGY)),
    "windows": Format(load_windows, "f.windows.json", json_files(WINDOWS)),
    "windows-table": Format(load_windows, "f.csv", tables(WINDOW_ROWS)),
    "schedule": Format(read_schedule, "f.schedule.json", json_files(SCHEDULE)),
    "link": Format(read_linked, "f.link.json", json_files(LINKED)),
    "job": Format(load_job, "f.job.json", json_files(JOB)),
    "measured": Format(read_measured, "f.csv", tables(MEASURED_ROWS)),
    "psplib": Format(read_psplib, "f.sm", spaced_files(SMALL)),
    "workload-link": Format(_from_workload_link, "link", WORKLOAD_LINKS),
    "costly-run": Format(
        _within(lambda source: import_kineto([source], ImportSettings(assume_gbps=100.0))),
        "f_rank0.json.gz",
        COSTLY_RECORDINGS,
    ),
    "costly-chakra": Format(
        _within(lambda source: import_chakra([source], ImportSettings(world=64), {})),
        "f.0.et",
        COSTLY_CHAKRA,
    ),
    "costly-text": Format(
        _within(lambda source: import_text(source, ImportSettings())), "f.txt", COSTLY_TEXT
    ),
    "price-link": Format(_from_price_link, "link", PRICE_LINKS),
}
