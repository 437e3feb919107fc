"""A PyTorch execution trace (the host's side) beside the profiler's files: sizes and splits of each communication."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError, errors_in_file
from topox_core.io.limits import WHOLE_JSON
from topox_core.traces.communication import Meta, meta_of
from topox_core.traces.source import Content, Source

_ATTRIBUTES = {
    "collective_name": "Collective name",
    "in_msg_nelems": "In msg nelems",
    "out_msg_nelems": "Out msg nelems",
    "in_split_size": "In split size",
    "pg_name": "Process Group Name",
    "pg_desc": "Process Group Description",
    "pg_size": "Group size",
    "global_rank_start": "Global rank start",
    "global_rank_stride": "Global rank stride",
    "dtype": "dtype",
}


@dataclass(frozen=True)
class HostTrace:
    """What a host trace says, in order.

    Attributes
    ----------
    calls
        Its communications.
    waits
        For each wait the position of the call that it waits for; -1 if that is not in the trace.
    """

    calls: tuple[Meta, ...]
    waits: tuple[int, ...]


def read_host_trace(source: Source) -> HostTrace:
    """Return what a host trace says of its communications and waits.

    Raises
    ------
    InputError
        If it is no such file.
    """
    data = b"".join(Content(source, WHOLE_JSON))
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError("is not JSON", file=source.name) from None
    nodes = record.get("nodes") if isinstance(record, dict) else None
    if not isinstance(nodes, list):
        raise InputError("holds no nodes (an execution trace has them)", file=source.name)
    named = [
        one for one in nodes if isinstance(one, dict) and one.get("name") == "record_param_comms"
    ]
    calls: list[Meta] = []
    waits: list[int] = []
    number_of: dict[int, int] = {}
    with errors_in_file(source.name):
        for one in sorted(named, key=_order):
            meta, number = _meta(one), _number(one)
            if meta is not None:
                if number is not None:
                    number_of[number] = len(calls)
                calls.append(meta)
            elif number is not None and "wait" in (one.get("inputs") or ()):
                waits.append(number_of.get(number, -1))
    return HostTrace(tuple(calls), tuple(waits))


def _number(node: Mapping[str, Any]) -> int | None:
    """Return the number of a call or of the call that a wait is for: the first whole number of its inputs."""
    inputs = node.get("inputs")
    whole = (one for one in inputs if isinstance(one, int)) if isinstance(inputs, list) else ()
    return next(iter(whole), None)


def rank_of_host_trace(name: str) -> int | None:
    """Return the rank that the name of a host trace tells: the last number in it."""
    bare = name.replace("\\", "/").rpartition("/")[2]
    found = re.findall(r"\d+", re.sub(r"\.(json|gz|et)", "", bare))
    return int(found[-1]) if found and len(found[-1]) < 10 else None


def _order(node: Mapping[str, Any]) -> int:
    number = node.get("rf_id", node.get("id", 0))
    return number if isinstance(number, int) else 0


def _meta(node: Mapping[str, Any]) -> Meta | None:
    attributes: object = node.get("attrs")
    if isinstance(attributes, list):
        named = {
            _ATTRIBUTES[str(one["name"])]: one.get("value")
            for one in attributes
            if isinstance(one, dict) and str(one.get("name")) in _ATTRIBUTES
        }
        if named.get("Collective name"):
            meta = meta_of(named)
            return None if meta is None or named["Collective name"] == "wait" else meta
    inputs = node.get("inputs")
    if isinstance(inputs, dict):
        inputs = inputs.get("values")
    if not isinstance(inputs, list) or not inputs:
        return None
    return _positional(inputs)


def _positional(inputs: Sequence[object]) -> Meta | None:
    """Return what inputs without names say: the first text is the name, a tensor may stand first, lists last."""
    name = next((one for one in inputs if isinstance(one, str)), "")
    if name in ("", "wait", "init"):
        return None
    count, element = _tensor(inputs[0])
    at = inputs.index(name)
    splits = inputs[at + 1] if at + 1 < len(inputs) and isinstance(inputs[at + 1], list) else []
    args: dict[str, Any] = {"Collective name": name, "In split size": splits}
    if count is not None:
        args |= {"In msg nelems": count, "Out msg nelems": count, "dtype": _OF_SIZE[element]}
    return meta_of(args)


MOST_LEVELS = 4  # of lists of tensors within each other; recorders write two
_OF_SIZE = {1: "Byte", 2: "Half", 4: "Float", 8: "Double"}


def _tensor(value: object, levels: int = MOST_LEVELS) -> tuple[int | None, int]:
    """Return elements and bytes of an element of a tensor, or of a list of them together."""
    if not isinstance(value, list) or not value or not levels:
        return None, 1
    if all(isinstance(one, list) for one in value):
        parts = [_tensor(one, levels - 1) for one in value]
        known = [count for count, _ in parts if count is not None]
        return (sum(known), parts[0][1]) if len(known) == len(parts) else (None, 1)
    # [tensor, storage, offset, elements, bytes of an element, device]
    if len(value) >= 5 and all(isinstance(one, int) for one in value[3:5]) and value[4] in _OF_SIZE:
        return value[3], int(value[4])
    return None, 1
