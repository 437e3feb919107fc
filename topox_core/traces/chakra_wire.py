"""Chakra execution traces as bytes: length-prefixed protobuf messages, read and written without generated code.

Field numbers are those of ``et_def.proto`` (mlcommons/chakra): a file is one GlobalMetadata, then Nodes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topox_core.errors import InputError

METADATA, MEMORY_LOAD, MEMORY_STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_INT32, _INT64, _UINT64, _BOOL, _STRING = 7, 9, 13, 27, 29
# Of one node; more is no trace.
MOST_BYTES = 64 << 20


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


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, wire type, value) of a message."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            length, at = _varint(data, at)
            if at + length > end:
                raise ValueError("a field that is longer than its message")
            value, at = data[at : at + length], at + length
        elif wire == _FIXED64:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif wire == _FIXED32:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        else:
            raise ValueError(f"a field of unknown type {wire}")
        yield number, wire, value


def _numbers(wire: int, value: Any, into: list[int]) -> None:
    """Take a repeated number, packed or one by one."""
    if wire == _VARINT:
        into.append(value)
        return
    at = 0
    while at < len(value):
        one, at = _varint(value, at)
        into.append(one)


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
        if length > MOST_BYTES or at + length > len(data):
            raise _damaged(file, begin)
        yield data[at : at + length]
        at += length


def _damaged(file: str, at: int) -> InputError:
    return InputError(f"is no Chakra trace, or is cut, near byte {at:,}", file=file)


def node_of(message: bytes) -> dict[str, Any]:
    """Return a node's id, name, type, dependencies, duration, inputs and attributes.

    Raises
    ------
    ValueError, IndexError, struct.error
        If it is no such message.
    """
    node: dict[str, Any] = {"id": 0, "name": "", "type": 0, "duration_micros": 0, "inputs": ""}
    controls: list[int] = []
    data: list[int] = []
    attributes: dict[str, Any] = {}
    for number, wire, value in _fields(message):
        if number == 5:
            _numbers(wire, value, data)
        elif number == 4:
            _numbers(wire, value, controls)
        elif number == 10:
            name, one = _attribute(value)
            attributes[name] = one
        elif number in (1, 3, 7):
            node[("id", "", "type", "", "", "", "duration_micros")[number - 1]] = int(value)
        elif number == 2:
            node["name"] = value.decode("utf-8", "replace")
        elif number == 8:
            node["inputs"] = _text_of_inputs(value)
    return node | {"ctrl_deps": controls, "data_deps": data, "attributes": attributes}


def _attribute(message: bytes) -> tuple[str, Any]:
    name, found = "", None
    for number, wire, value in _fields(message):
        if number == 1:
            name = value.decode("utf-8", "replace")
        elif wire == _BYTES:
            found = value.decode("utf-8", "replace") if number == _STRING else value
        elif number == _BOOL:
            found = bool(value)
        elif wire == _VARINT:
            found = value - (1 << 64) if number in (_INT32, _INT64) and value >> 63 else value
        else:
            found = value
    return name, found


def _text_of_inputs(message: bytes) -> str:
    for number, wire, value in _fields(message):
        if number == 1 and wire == _BYTES:
            return str(value.decode("utf-8", "replace"))
    return ""


def _number_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _number_bytes(number << 3 | _VARINT) + _number_bytes(value)
    return _number_bytes(number << 3 | _BYTES) + _number_bytes(len(value)) + value


def node_bytes(
    number: int,
    name: str,
    kind: int,
    waits: Sequence[int],
    duration_us: int,
    attributes: Mapping[str, bool | int | str],
) -> bytes:
    """Return a node as a message with its length before it."""
    parts = [_field(1, number), _field(2, name.encode()), _field(3, kind)]
    if waits:
        parts.append(_field(5, b"".join(map(_number_bytes, waits))))
    if duration_us:
        parts.append(_field(7, duration_us))
    for key, value in attributes.items():
        if isinstance(value, bool):
            one = _field(_BOOL, int(value))
        elif isinstance(value, int):
            one = _field(_INT32 if key in ("comm_src", "comm_dst", "comm_tag") else _INT64, value)
        else:
            one = _field(_STRING, value.encode())
        parts.append(_field(10, _field(1, key.encode()) + one))
    return with_length(b"".join(parts))


def with_length(message: bytes) -> bytes:
    """Return a message with its length before it."""
    return _number_bytes(len(message)) + message


def global_metadata() -> bytes:
    """Return the message that begins a file: its version."""
    return with_length(_field(1, b"0.0.4"))
