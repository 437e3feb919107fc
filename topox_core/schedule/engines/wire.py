"""Problems, limits, progress and answers as JSON lines between a solver process and its parent."""

from __future__ import annotations

import base64
import json
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.engine import Answer, Limits, Progress
from topox_core.schedule.problem import Int, Int32, Problem, SwitchNetwork
from topox_core.schedule.source import TraceSource

STOPPED_BY = ("proof", "time_limit", "gap", "cancelled", "heuristic", "failed")


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    plain = np.ascontiguousarray(array)
    return {
        "dtype": plain.dtype.str,
        "shape": list(plain.shape),
        "base64": base64.b64encode(plain.tobytes()).decode("ascii"),
    }


def _unpacked(record: dict[str, Any]) -> NDArray[Any]:
    array: NDArray[Any] = np.frombuffer(
        base64.b64decode(record["base64"]), dtype=np.dtype(record["dtype"])
    ).reshape(record.get("shape", [-1]))
    return array.copy()


def _flat(value: object) -> dict[str, Any]:
    """Return the fields of a record, arrays packed."""
    record: dict[str, Any] = {}
    for field in fields(value):  # type: ignore[arg-type]
        item = getattr(value, field.name)
        if isinstance(item, np.ndarray):
            item = _packed(item)
        elif isinstance(item, TraceSource):
            item = {"family": item.family, "name": item.name}
        record[field.name] = item
    return record


def _raised(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields as they were: packed arrays as arrays, lists as tuples."""
    raised: dict[str, Any] = {}
    for key, item in record.items():
        if isinstance(item, dict) and "base64" in item:
            raised[key] = _unpacked(item)
        elif isinstance(item, dict) and item.keys() == {"family", "name"}:
            raised[key] = TraceSource(item["family"], str(item["name"]))
        else:
            raised[key] = tuple(item) if isinstance(item, list) else item
    return raised


def line(record: dict[str, Any]) -> bytes:
    """Return a record as one line of JSON."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def request(engine: str, problem: Problem, limits: Limits) -> bytes:
    """Return the line that asks for a solve."""
    record = _flat(problem)
    record["network"] = None if problem.network is None else _flat(problem.network)
    return line({"engine": engine, "problem": record, "limits": _flat(limits)})


def read_request(data: bytes) -> tuple[str, Problem, Limits]:
    """Return what a request asks for.

    Raises
    ------
    ValueError
        If the line is no request.
    """
    try:
        record = json.loads(data)
        problem = dict(record["problem"])
        network = problem.pop("network")
        raised = SwitchNetwork(**_raised(network)) if network is not None else None
        return (
            str(record["engine"]),
            Problem(**_raised(problem), network=raised),
            Limits(**_raised(record["limits"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a request: {error}") from None


def offer(solution: Solution) -> bytes:
    """Return the line that tells a running solve of a better schedule."""
    return line(_flat(solution))


def read_offer(data: bytes) -> Solution | None:
    """Return the schedule that a line tells, or None: any other line means stop."""
    try:
        record = _raised(json.loads(data))
        start = _ticks(record["start"])
        return None if start is None else Solution(start, _ports(record.get("ports")))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def progress_event(progress: Progress) -> bytes:
    """Return an ``incumbent`` event (with its start ticks) or a ``bound`` event."""
    return line({"event": "bound" if progress.start is None else "incumbent", **_flat(progress)})


def done_event(answer: Answer) -> bytes:
    """Return the event that ends a solve."""
    return line({"event": "done", **_flat(answer)})


def failed_event(error: BaseException) -> bytes:
    """Return the event that says why there is no answer; bad input keeps its place."""
    if isinstance(error, InputError):
        place = {
            "problem": error.problem,
            "file": error.file,
            "item": error.item,
            "field": error.field,
        }
        return line({"event": "failed", "message": str(error), "input_error": place})
    return line(
        {
            "event": "failed",
            "message": f"{type(error).__name__}: {error}"[:500],
            "input_error": None,
        }
    )


def read_event(data: bytes) -> dict[str, Any]:
    """Return an event with its arrays.

    Raises
    ------
    ValueError
        If the line is no event.
    """
    try:
        record = json.loads(data)
        if not isinstance(record, dict) or not isinstance(record.get("event"), str):
            raise ValueError("no event")
        nested = record.pop("input_error", None)
        return {**_raised(record), "input_error": nested}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not an event: {error}") from None


def as_progress(event: dict[str, Any]) -> Progress:
    """Return the progress that an ``incumbent`` or ``bound`` event tells.

    Raises
    ------
    ValueError
        If a field is missing or has the wrong type.
    """
    start = event.get("start")
    incumbent = event.get("incumbent")
    whole = isinstance(event.get("bound"), int) and (
        incumbent is None or isinstance(incumbent, int)
    )
    timed = isinstance(event.get("elapsed_s"), int | float)
    if not (
        whole
        and timed
        and isinstance(event.get("source"), TraceSource)
        and (start is None or isinstance(start, np.ndarray))
    ):
        raise ValueError("not an event: a progress field is missing")
    return Progress(
        float(event["elapsed_s"]),
        incumbent,
        int(event["bound"]),
        event["source"],
        _ticks(start),
        str(event.get("words", "")),
        _ports(event.get("ports")),
    )


def as_answer(event: dict[str, Any]) -> Answer:
    """Return the answer that a ``done`` event tells.

    Raises
    ------
    ValueError
        If a field is missing or has the wrong type.
    """
    start = event.get("start")
    by = event.get("bound_source")
    words = isinstance(event.get("bound_by"), str) and isinstance(event.get("message"), str)
    if not (
        words
        and isinstance(event.get("bound"), int)
        and event.get("stopped_by") in STOPPED_BY
        and (start is None or isinstance(start, np.ndarray))
        and isinstance(event.get("infeasible"), bool)
        and (by is None or isinstance(by, TraceSource))
    ):
        raise ValueError("not an event: an answer's field is missing")
    return Answer(
        _ticks(start),
        int(event["bound"]),
        event["bound_by"],
        event["stopped_by"],
        event["infeasible"],
        event["message"],
        by,
        _ports(event.get("ports")),
    )


def _ticks(start: NDArray[Any] | None) -> Int | None:
    if start is None:
        return None
    if start.dtype.kind not in "iu":
        raise ValueError("not an event: start ticks must be whole numbers")
    return start.astype(np.int64)


def _ports(ports: object) -> Int32 | None:
    if ports is None:
        return None
    if not isinstance(ports, np.ndarray) or ports.dtype.kind not in "iu":
        raise ValueError("not an event: ports must be whole numbers")
    return ports.astype(np.int32)
