"""Files that are sound in form and made to cost their reader, of any size: recordings, execution traces, text workloads.

What is large in memory is small in the file: members of groups, texts, dependencies, attributes, steps.
"""

import gzip
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from topox_core.traces.chakra.nodes import (
    COLLECTIVE,
    COMPUTE,
    METADATA,
    global_metadata,
    node_bytes,
)


def event(
    category: str, name: str, thread: int, ts: float, dur: float, **args: Any
) -> dict[str, Any]:
    """Return an event of a PyTorch recording."""
    where = {"pid": 1, "tid": thread, "ts": ts, "dur": dur, "args": args}
    return {"ph": "X", "cat": category, "name": name, **where}


def _recording(events: Iterator[dict[str, Any]], **header: Any) -> bytes:
    """Return a packed recording of one step around events."""
    text = ",".join(json.dumps(one) for one in events)
    step = json.dumps(event("user_annotation", "ProfilerStep#3", 1, 0.0, 1e9))
    head = json.dumps({"distributedInfo": {"rank": 0, "world_size": 4_096}, **header})[:-1]
    return gzip.compress(f'{head}, "traceEvents": [{step}, {text}]}}'.encode(), 9)


def _calls(count: int, **args: Any) -> Iterator[dict[str, Any]]:
    told = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1000, "Seq": 1}
    name, told = "ncclDevKernel_AllReduce", {"stream": 20, **told, **args}
    for k in range(count):
        yield event("kernel", name, 7, 10.0 * k, 5.0, correlation=k, **told)


def large_group(kernels: int, ranks: int) -> bytes:
    """Return a recording whose kernels are all of one group, told once."""
    told = {
        "rank": 0,
        "world_size": ranks,
        "pg_config": [{"pg_name": "0", "ranks": list(range(ranks))}],
    }
    calls = _calls(kernels, **{"Process Group Name": "0", "Group size": ranks})
    return _recording(calls, distributedInfo=told)


def listed_ranks(kernels: int, ranks: int) -> bytes:
    """Return a recording each of whose kernels lists the ranks of its group."""
    return _recording(_calls(kernels, **{"Process Group Ranks": list(range(ranks))}))


def long_texts(kernels: int, length: int) -> bytes:
    """Return a recording each of whose kernels has a long text in place of its ranks."""
    return _recording(_calls(kernels, **{"Process Group Ranks": "1" * length}))


def long_scopes(scopes: int, length: int) -> bytes:
    """Return a recording each of whose scopes names a collective at length."""
    told = {"Collective name": "x" * length}
    return _recording(
        event("cpu_op", "record_param_comms", 7, 5.0 * k, 3.0, **told) for k in range(scopes)
    )


def in_place_of_events(count: int, piece: str) -> bytes:
    """Return a recording of something else than events."""
    return gzip.compress(f'{{"traceEvents": [{piece * count}{{}}]}}'.encode(), 9)


def _chakra(nodes: Iterator[bytes]) -> bytes:
    return gzip.compress(global_metadata() + b"".join(nodes), 1)


def collectives_of_all(count: int, size_bytes: int = 8) -> bytes:
    """Return an execution trace of collectives that name no group."""
    told: dict[str, bool | int | str] = {
        "comm_type": 0,
        "comm_size": size_bytes,
        "is_cpu_op": False,
    }
    return _chakra(node_bytes(k, "all", COLLECTIVE, (), 1, told) for k in range(count))


def metadata_chain(links: int, back: int = 1) -> bytes:
    """Return an execution trace of metadata nodes that pass on what all before them wait for."""

    def nodes() -> Iterator[bytes]:
        for k in range(links):
            yield node_bytes(2 * k, "c", COMPUTE, (), 1, {})
            passed = (2 * k, *range(max(1, 2 * (k - back) + 1), 2 * k, 2))
            yield node_bytes(2 * k + 1, "m", METADATA, passed, 0, {})
        yield node_bytes(2 * links, "c", COMPUTE, (2 * links - 1,) if links else (), 1, {})

    return _chakra(nodes())


def many_dependencies(nodes: int, each: int) -> bytes:
    """Return an execution trace whose nodes wait for one and the same many times over."""
    first = node_bytes(0, "first", METADATA, (), 0, {})
    rest = (node_bytes(k, "n", METADATA, [0] * each, 0, {}) for k in range(1, nodes + 1))
    return _chakra(iter((first, *rest)))


def empty_attributes(nodes: int, each: int) -> bytes:
    """Return an execution trace whose nodes have many attributes without a name."""
    node = b"\x52\x00" * each
    return gzip.compress(global_metadata() + (_varint(len(node)) + node) * nodes, 1)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def text_workload(rows: int, ranks: int) -> bytes:
    """Return a text workload of equal layers."""
    head = f"HYBRID_TRANSFORMER model_parallel_NPU_group: {ranks}\n{rows}\n"
    row = "l -1 1000 ALLREDUCE_EP 400 300 NONE 0 100 ALLREDUCE 800 5\n"
    return (head + row * rows).encode()


# Mostly few: a case of many thousands costs as much as a thousand others.
_COUNT = st.sampled_from([0, 1, 2, 7, 30] * 8 + [300] * 8 + [3_000] * 2 + [30_000])
_EACH = st.sampled_from([1, 2, 8, 64] * 6 + [1_000] * 4 + [16_000])
_PIECES = st.sampled_from(
    ["{},", "1,", "[],", "null,", '"",', '{"ph":"X"},', '{"ph":"M","args":{}},']
)
# What one file may hold before it is packed, about: more is for the files of full size.
_MAX_HELD = 4_000_000


def _sized(made: Any) -> st.SearchStrategy[bytes]:
    sizes = st.tuples(_COUNT, _EACH).filter(lambda both: both[0] * both[1] <= _MAX_HELD)
    return sizes.map(lambda both: made(*both))


COSTLY_RECORDINGS = st.one_of(
    *map(_sized, (large_group, listed_ranks, long_texts, long_scopes)),
    st.builds(in_place_of_events, _COUNT, _PIECES),
)
COSTLY_CHAKRA = st.one_of(
    *map(_sized, (metadata_chain, many_dependencies, empty_attributes, collectives_of_all))
)
COSTLY_TEXT = _sized(text_workload)
