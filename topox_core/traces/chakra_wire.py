"""Chakra execution traces as bytes: protobuf messages, each with its length before it.

The messages are those of ``et_def.proto`` (mlcommons/chakra) as far as they are read or written here:
a file is one GlobalMetadata, then Nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, proto

from topox_core.errors import InputError

METADATA, MEMORY_LOAD, MEMORY_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)
# Of one node; more is no trace. Recorders write some twenty attributes.
MAX_BYTES, MAX_ATTRIBUTES = 16 << 20, 500
_PACKAGE = "chakra"
# Of each message: its fields with number and type; ``*`` before a type repeats it. Text is bytes,
# since what others write need not be UTF-8.
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "GlobalMetadata": {"version": (1, "bytes")},
    "Inputs": {"values": (1, "bytes")},
    "Attribute": {
        "name": (1, "bytes"),
        "double_val": (3, "double"),
        "float_val": (5, "float"),
        "int32_val": (7, "int32"),
        "int64_val": (9, "int64"),
        "uint32_val": (11, "uint32"),
        "uint64_val": (13, "uint64"),
        "bool_val": (27, "bool"),
        "string_val": (29, "bytes"),
    },
    "Node": {
        "id": (1, "uint64"),
        "name": (2, "bytes"),
        "type": (3, "int32"),
        "ctrl_deps": (4, "*uint64"),
        "data_deps": (5, "*uint64"),
        "duration_micros": (7, "uint64"),
        "inputs": (8, "Inputs"),
        "attr": (10, "*Attribute"),
    },
}


def _classes() -> dict[str, Any]:
    """Return the class of each message."""
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, of) in fields.items():
            label = kind.LABEL_REPEATED if of.startswith("*") else kind.LABEL_OPTIONAL
            one = message.field.add(name=field, number=number, label=label)
            of = of.removeprefix("*")
            if of in _MESSAGES:
                one.type, one.type_name = kind.TYPE_MESSAGE, f".{_PACKAGE}.{of}"
            else:
                one.type = getattr(kind, f"TYPE_{of.upper()}")
            if field.endswith("_val"):
                one.oneof_index = 0
        if name == "Attribute":
            message.oneof_decl.add(name="value")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _classes()


def messages(data: bytes, file: str) -> Iterator[bytes]:
    """Yield the messages of a file.

    Raises
    ------
    InputError
        If a length does not fit; the byte is named.
    """
    at = 0
    while at < len(data):
        begin = at
        try:
            length, at = _varint(data, at)
        except (ValueError, IndexError):
            raise _damaged(file, begin) from None
        if length > MAX_BYTES or at + length > len(data):
            raise _damaged(file, begin)
        yield data[at : at + length]
        at += length


def _damaged(file: str, at: int) -> InputError:
    return InputError(f"is no Chakra trace, or is cut, near byte {at:,}", file=file)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the position behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def node_of(message: bytes) -> dict[str, Any]:
    """Return a node's id, name, type, dependencies, duration, inputs and attributes.

    Raises
    ------
    google.protobuf.message.DecodeError
        If it is no such message.
    InputError
        If it has more attributes than a node may.
    """
    node = _CLASSES["Node"].FromString(message)
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
        "name": _text(node.name),
        "type": node.type,
        "duration_micros": node.duration_micros,
        "inputs": _text(node.inputs.values),
        "ctrl_deps": list(node.ctrl_deps),
        "data_deps": list(node.data_deps),
        "attributes": attributes,
    }


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
    node = _CLASSES["Node"](
        id=number,
        name=name.encode(),
        type=kind,
        data_deps=waits,
        ctrl_deps=controls,
        duration_micros=duration_us,
    )
    for key, value in attributes.items():
        one = node.attr.add(name=key.encode())
        if isinstance(value, bool):
            one.bool_val = value
        elif isinstance(value, str):
            one.string_val = value.encode()
        elif key in ("comm_src", "comm_dst", "comm_tag"):
            one.int32_val = value
        else:
            one.int64_val = value
    return _with_length(node)


def _with_length(message: Any) -> bytes:
    out = BytesIO()
    proto.serialize_length_prefixed(message, out)
    return out.getvalue()


def global_metadata() -> bytes:
    """Return the message that begins a file: its version."""
    return _with_length(_CLASSES["GlobalMetadata"](version=b"0.0.4"))
