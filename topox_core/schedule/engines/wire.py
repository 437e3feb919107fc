"""What a solver process and its parent say to each other: messages as JSON lines, arrays as base64."""

import base64
from contextlib import suppress
from typing import Any, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.schedule.circuits.held_ports import Solution
from topox_core.schedule.engines.engine import Answer, Limits, Progress
from topox_core.schedule.problem import Problem


class Request(msgspec.Struct, frozen=True):
    """Asks for a solve."""

    engine: str
    problem: Problem
    limits: Limits


class Loaded(msgspec.Struct, frozen=True, tag="loaded", tag_field="event"):
    """The engine is loaded, before there is a request."""


class Ready(msgspec.Struct, frozen=True, tag="ready", tag_field="event"):
    """The request has been read; the solve begins."""


class Step(msgspec.Struct, frozen=True, tag="step", tag_field="event"):
    """A better schedule or a higher bound."""

    progress: Progress


class Done(msgspec.Struct, frozen=True, tag="done", tag_field="event"):
    """Ends a solve."""

    answer: Answer


class Failed(msgspec.Struct, frozen=True, tag="failed", tag_field="event"):
    """Says why there is no answer; of bad input problem, file, item and field."""

    message: str
    bad_input: tuple[str, str, str, str] | None = None


Event = Loaded | Ready | Step | Done | Failed


def failed(error: BaseException) -> Failed:
    """Return the event that tells an error."""
    if isinstance(error, InputError):
        return Failed(str(error), (error.problem, error.file, error.item, error.field))
    return Failed(f"{type(error).__name__}: {error}"[:500])


def line(message: Request | Solution | Event) -> bytes:
    """Return a message as one line of JSON."""
    return msgspec.json.encode(message, enc_hook=_packed) + b"\n"


def read_request(data: bytes) -> Request:
    """Return what a request asks for; raises ValueError if the line is none."""
    request: Request = _read(data, Request, "a request")
    return request


def read_offer(data: bytes) -> Solution | None:
    """Return the better schedule that a line tells a running solve, or None: any other line means stop."""
    with suppress(ValueError):
        offered: Solution = _read(data, Solution, "a schedule")
        return offered
    return None


def read_event(data: bytes) -> Event:
    """Return an event; raises ValueError if the line is none."""
    event: Event = _read(data, Event, "an event")
    return event


def _read(data: bytes, kind: Any, words: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_unpacked)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not {words}: {error}") from None


def _packed(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    """Return an array as its kind of numbers, shape and bytes."""
    plain = np.ascontiguousarray(array)
    return plain.dtype.str, plain.shape, plain.tobytes()


def _unpacked(kind: Any, packed: Any) -> NDArray[Any]:
    """Return the array of a field that is annotated as ``NDArray[number]``."""
    name, shape, content = msgspec.convert(packed, tuple[str, tuple[int, ...], str])
    given, wanted = np.dtype(name), np.dtype(get_args(get_args(kind)[1])[0])
    if given != wanted:
        raise ValueError(f"numbers must be {wanted} (got {given})")
    return np.frombuffer(base64.b64decode(content), wanted).reshape(shape).copy()
