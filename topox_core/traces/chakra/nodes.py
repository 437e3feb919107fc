"""A Chakra execution trace of one rank: its nodes with the dependencies that hold, from ``.et`` or JSON.

Bytes are protobuf messages, each with its length before it: those of ``et_def.proto`` (mlcommons/chakra) as
far as they are read or written here. A file is one GlobalMetadata, then Nodes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, proto, text_format
from google.protobuf.message import DecodeError

from topox_core.errors import InputError, as_mb, errors_in_file, needed, refuse_if
from topox_core.io.content import gc_paused
from topox_core.io.limits import (
    CHAKRA,
    MAX_RUN_DEPENDENCIES,
    WHOLE_JSON,
    check_count,
    is_number,
    is_whole,
)
from topox_core.model.arrays.waiting_order import cycle_of
from topox_core.traces.source import (
    Content,
    Source,
    groups_listed,
    json_of,
    rank_in_name,
    read_json,
)

METADATA, MEMORY_LOAD, MEMORY_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)
# Of one node; more is no trace. Recorders write some twenty attributes.
MAX_BYTES, MAX_ATTRIBUTES = 16 << 20, 500
# Text is bytes, since what others write need not be UTF-8.
_DEFINITION = """
name: "et.proto" package: "chakra" syntax: "proto3"
message_type { name: "GlobalMetadata" field { name: "version" number: 1 type: TYPE_BYTES } }
message_type { name: "Inputs" field { name: "values" number: 1 type: TYPE_BYTES } }
message_type {
  name: "Attribute"
  oneof_decl { name: "value" }
  field { name: "name" number: 1 type: TYPE_BYTES }
  field { name: "double_val" number: 3 type: TYPE_DOUBLE oneof_index: 0 }
  field { name: "float_val" number: 5 type: TYPE_FLOAT oneof_index: 0 }
  field { name: "int32_val" number: 7 type: TYPE_INT32 oneof_index: 0 }
  field { name: "int64_val" number: 9 type: TYPE_INT64 oneof_index: 0 }
  field { name: "uint32_val" number: 11 type: TYPE_UINT32 oneof_index: 0 }
  field { name: "uint64_val" number: 13 type: TYPE_UINT64 oneof_index: 0 }
  field { name: "bool_val" number: 27 type: TYPE_BOOL oneof_index: 0 }
  field { name: "string_val" number: 29 type: TYPE_BYTES oneof_index: 0 }
}
message_type {
  name: "Node"
  field { name: "id" number: 1 type: TYPE_UINT64 }
  field { name: "name" number: 2 type: TYPE_BYTES }
  field { name: "type" number: 3 type: TYPE_INT32 }
  field { name: "ctrl_deps" number: 4 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "data_deps" number: 5 type: TYPE_UINT64 label: LABEL_REPEATED }
  field { name: "duration_micros" number: 7 type: TYPE_UINT64 }
  field { name: "inputs" number: 8 type: TYPE_MESSAGE type_name: ".chakra.Inputs" }
  field { name: "attr" number: 10 type: TYPE_MESSAGE type_name: ".chakra.Attribute" label: LABEL_REPEATED }
}
"""
MAX_ID = (1 << 64) - 1
# What stands before each message: its length, seven bits a byte, the lowest first.
_LENGTH = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]")
_IN_NAME = (r"\.(\d+)\.(?:et|json)", r"rank[-_]?(\d+)", r"[._](\d+)\.")
_WAITS = ("data_deps", "ctrl_deps")
# An attribute of our own exports: the control dependencies of a collective order it among those of its
# servers, for simulators that come to a halt without; here nothing waits for them.
ORDER_ONLY = "ctrl_deps_order"
_TYPES = {
    "METADATA": 1,
    "MEM_LOAD": 2,
    "MEM_STORE": 3,
    "COMP": 4,
    "COMM_SEND": 5,
    "COMM_RECV": 6,
    "COMM_COLL": 7,
}


@dataclass(frozen=True, slots=True)
class ChakraNode:
    """One node; ``waits`` are the positions of nodes that exist."""

    id: int
    type: int
    waits: tuple[int, ...]
    duration_us: float
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class ChakraRank:
    """One rank's trace.

    Attributes
    ----------
    groups
        Ranks by name, from its metadata; an empty list means all.
    control_ignored
        Control dependencies left out because they go round in circles with the data's.
    dropped
        Dependencies on nodes that do not exist.
    """

    file: str
    rank: int
    nodes: tuple[ChakraNode, ...]
    groups: Mapping[str, tuple[int, ...]]
    control_ignored: int
    dropped: int


def read_chakra(source: Source, rank: int | None = None) -> ChakraRank:
    """Read one rank's execution trace.

    Raises
    ------
    InputError
        If it is no such file, is cut, tells no rank, or its data dependencies have a cycle.
    """
    content = Content(source, CHAKRA)
    data = b"".join(content)
    refuse_if((content.cut, "ends early"), (not data.strip(), "is empty"), file=source.name)
    with gc_paused():
        text = data.lstrip()[:1] in (b"{", b"[")
        records = _of_json(data, source.name) if text else _of_wire(data, source.name)
        refuse_if((not records, "holds no node"), file=source.name)
        return _rank(source.name, records, rank)


def _of_wire(data: bytes, file: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    dependencies = 0
    for number, message in enumerate(_messages(data, file)):
        if not number:
            continue  # what the whole file says of itself
        try:
            with errors_in_file(file):
                records.append(_node_of(message))
        except DecodeError:
            raise InputError("is no Chakra node", file=file, item=f"message {number}") from None
        dependencies += len(records[-1]["data_deps"]) + len(records[-1]["ctrl_deps"])
        check_count(dependencies, MAX_RUN_DEPENDENCIES, "dependencies a trace may have", file)
        check_count(len(records), CHAKRA.entries, "nodes a trace may have", file)
    return records


def _of_json(data: bytes, file: str) -> list[dict[str, Any]]:
    refuse_if(
        (
            len(data) > WHOLE_JSON.file_bytes,
            f"is more than the {as_mb(WHOLE_JSON.file_bytes)} of JSON that a trace may have",
        ),
        file=file,
    )
    record = json_of(data, file)
    named = _plain(record) if isinstance(record, dict) else {}
    listed = named.get("workloadgraph", named.get("nodes"))
    if not isinstance(listed, list):
        raise InputError("holds no workload_graph", file=file)
    check_count(len(listed), CHAKRA.entries, "nodes a trace may have", file)
    records = []
    for number, one in enumerate(listed, 1):
        if not isinstance(one, dict):
            raise InputError("must be an object in braces", file=file, item=f"node {number}")
        node = _plain(one)
        attributes = {
            key: value for key, value in node.items() if key not in ("id", "name", "type")
        }
        attributes |= {
            of["name"].lower().replace("_", ""): next(
                (value for key, value in of.items() if key not in ("name", "doc_string")), None
            )
            for of in _listed(node.get("attr") or node.get("attrs"))
            if isinstance(of, dict) and isinstance(of.get("name"), str)
        }
        kind = node.get("type", 0)
        if isinstance(kind, str):
            kind = _TYPES.get(kind.upper().removesuffix("_NODE"), 0)
        duration = node.get("durationmicros", node.get("runtime", node.get("duration", 0)))
        records.append(
            {
                "id": node.get("id", 0),
                "type": kind,
                "ctrl_deps": _listed(node.get("ctrldeps")),
                "data_deps": _listed(node.get("datadeps")),
                "duration_micros": duration or 0,
                "inputs": node.get("inputs") or "",
                "attributes": {
                    name: attributes[bare] for name, bare in _BARE.items() if bare in attributes
                },
            }
        )
    return records


_BARE = {
    name: name.replace("_", "")
    for name in (
        *("is_cpu_op", "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag"),
        *("pg_name", "num_ops", "tensor_size"),
    )
}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with its keys in lower case and without underscores."""
    return {str(key).lower().replace("_", ""): value for key, value in record.items()}


def _rank(file: str, records: Sequence[Mapping[str, Any]], given: int | None) -> ChakraRank:
    number = rank_in_name(file, *_IN_NAME) if given is None else given
    number = needed(number, "names no rank: rename it to ....0.et, or give --ranks", file=file)
    ids: dict[int, int] = {}
    for at, one in enumerate(records):
        key = one["id"]
        if not is_whole(key, 0, MAX_ID):
            raise InputError(
                "must be a whole number from 0", file=file, item=f"node {at + 1}", field="id"
            )
        if key in ids:
            raise InputError("is used twice", file=file, item=f"node {key}", field="id")
        ids[key] = at
    of_data, of_control = (
        [[ids[w] for w in one[key] if isinstance(w, int) and w in ids] for one in records]
        for key in _WAITS
    )
    named = sum(len(one[key]) for one in records for key in _WAITS)
    dropped, ignored = named - sum(map(len, (*of_data, *of_control))), 0
    control = [
        [] if one["attributes"].get(ORDER_ONLY) else of
        for one, of in zip(records, of_control, strict=True)
    ]
    data = [list(dict.fromkeys(of)) for of in of_data]
    waits = [list(dict.fromkeys((*of, *more))) for of, more in zip(data, control, strict=True)]
    controls = sum(map(len, control))
    if controls and cycle_of(waits):
        waits, ignored = data, controls
    if cycle := cycle_of(waits):
        shown = " -> ".join(str(records[at]["id"]) for at in cycle[:8])
        more = " -> ..." if len(cycle) > 8 else ""
        raise InputError(
            f"data_deps are in a cycle of {len(cycle):,} nodes: {shown}{more}", file=file
        )
    nodes, groups = [], {}
    for at, one in enumerate(records):
        if one["type"] == METADATA:
            groups.update(_groups(one["inputs"]))
        if not is_number(one["duration_micros"], 0.0, 1e15):
            raise InputError(
                "must be a number from 0",
                file=file,
                item=f"node {one['id']}",
                field="duration_micros",
            )
        nodes.append(
            ChakraNode(
                int(one["id"]),
                one["type"] if isinstance(one["type"], int) else 0,
                tuple(waits[at]),
                float(one["duration_micros"]),
                one["attributes"],
            )
        )
    return ChakraRank(file, number, tuple(nodes), groups, ignored, dropped)


def groups_of_text(text: object) -> dict[str, tuple[int, ...]]:
    """Return groups that a metadata node or a groups file lists: name and ranks."""
    if isinstance(text, dict):
        text = [{"pg_name": key, "ranks": value} for key, value in text.items()]
    return {name: ranks for name, (ranks, _) in groups_listed(text, missing=None).items()}


def read_groups(source: Source) -> dict[str, tuple[int, ...]]:
    """Read a groups file: an object of names and lists of ranks.

    Raises
    ------
    InputError
        If it is no such file.
    """
    record = read_json(source)
    found = groups_of_text(record)
    refuse_if(
        (
            not (isinstance(record, dict) and len(found) == len(record)),
            'must be groups such as {"1": [0, 1]}',
        ),
        file=source.name,
    )
    return found


def _groups(inputs: object) -> dict[str, tuple[int, ...]]:
    if isinstance(inputs, dict):
        inputs = inputs.get("values", "")
    if not isinstance(inputs, str):
        return {}
    for quoted in (inputs, inputs.replace("'", '"')):
        try:
            found = groups_of_text(json.loads(quoted))
        except (ValueError, RecursionError):
            continue
        if found:
            return found
    return {}


# -- as bytes -------------------------------------------------------------------------------------


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(text_format.Parse(_DEFINITION, descriptor_pb2.FileDescriptorProto()))
_METADATA, _NODE = (
    message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"chakra.{name}"))
    for name in ("GlobalMetadata", "Node")
)


def _messages(data: bytes, file: str) -> Iterator[bytes]:
    """Yield the messages of a file.

    Raises
    ------
    InputError
        If a length does not fit; the byte is named.
    """
    at = 0
    while at < len(data):
        found = _LENGTH.match(data, at)
        length = sum((byte & 0x7F) << 7 * k for k, byte in enumerate(found[0] if found else b""))
        if found is None or length > min(MAX_BYTES, len(data) - found.end()):
            raise InputError(f"is no Chakra trace, or is cut, near byte {at:,}", file=file)
        at = found.end() + length
        yield data[found.end() : at]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _node_of(message: bytes) -> dict[str, Any]:
    """Return a node's id, type, dependencies, duration, inputs and attributes.

    Raises
    ------
    google.protobuf.message.DecodeError
        If it is no such message.
    InputError
        If it has more attributes than a node may.
    """
    node = _NODE.FromString(message)
    if len(node.attr) > MAX_ATTRIBUTES:
        raise InputError(
            f"has more than the {MAX_ATTRIBUTES} attributes that a node may have",
            item=f"node {node.id}",
        )
    attributes: dict[str, Any] = {}
    for one in node.attr:
        which = one.WhichOneof("value")
        value = None if which is None else getattr(one, which)
        attributes[_text(one.name)] = _text(value) if isinstance(value, bytes) else value
    return {
        "id": node.id,
        "type": node.type,
        "duration_micros": node.duration_micros,
        "inputs": _text(node.inputs.values),
        "ctrl_deps": list(node.ctrl_deps),
        "data_deps": list(node.data_deps),
        "attributes": attributes,
    }


# Where the value of an attribute is written; numbers of ranks and messages are short.
_FIELD = {bool: "bool_val", str: "string_val", int: "int64_val"}
_SHORT = ("comm_src", "comm_dst", "comm_tag")


def node_bytes(
    number: int,
    name: str,
    kind: int,
    waits: Sequence[int],
    duration_us: int,
    attributes: Mapping[str, bool | int | str],
    controls: Sequence[int] = (),
) -> bytes:
    """Return a node as a message with its length before it; it waits for data and for ``controls``."""
    node = _NODE(
        id=number,
        name=name.encode(),
        type=kind,
        data_deps=waits,
        ctrl_deps=controls,
        duration_micros=duration_us,
    )
    for key, value in attributes.items():
        field = "int32_val" if key in _SHORT else _FIELD[type(value)]
        plain = value.encode() if isinstance(value, str) else value
        node.attr.add(name=key.encode(), **{field: plain})
    return _with_length(node)


def _with_length(message: Any) -> bytes:
    out = BytesIO()
    proto.serialize_length_prefixed(message, out)
    return out.getvalue()


def global_metadata() -> bytes:
    """Return the message that begins a file: its version."""
    return _with_length(_METADATA(version=b"0.0.4"))
