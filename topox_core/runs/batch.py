"""One call of a run of cells, as a worker answers it: a few cells, each with its own result or its own error."""

from __future__ import annotations

import hashlib
import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from topox_core.errors import InputError

REMEMBERED = 4  # values that a worker holds: several runs, or pages, may share its time


class NotSent(LookupError):
    """A worker was told the digest of a shared value that it has not been sent, or has forgotten."""


@dataclass(frozen=True)
class Shared:
    """The bulky part of a run's cells, which goes to each worker once and not with each cell.

    Attributes
    ----------
    digest
        SHA-256 of the content, or another name that no other value has.
    content
        The pickled value; without it a worker takes the value it knows by the digest.
    """

    digest: str
    content: bytes | None

    @classmethod
    def of(cls, value: object, digest: str = "") -> Shared:
        """Return a value made ready to be sent."""
        content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        return cls(digest or hashlib.sha256(content).hexdigest(), content)

    @property
    def size_bytes(self) -> int:
        """How much is sent to each worker."""
        return len(self.content or b"")

    @cached_property
    def named(self) -> Shared:
        """The same for a worker that has the value."""
        return Shared(self.digest, None)

    def value(self) -> Any:
        """Return the value, unpacked once a process; raises NotSent where it is not known."""
        if self.digest in _held:
            return _held[self.digest]
        if self.content is None:
            raise NotSent(self.digest)
        value = pickle.loads(self.content)
        for old in list(_held)[: 1 - REMEMBERED or None]:
            _held.pop(old, None)
        _held[self.digest] = value
        return value


_held: dict[str, Any] = {}  # in a worker: shared values by digest, the latest ones


class Answer(NamedTuple):
    """What one cell gave, and how long it took in seconds; without an error it is a result."""

    result: Any
    error: Exception | None
    wall_s: float


def answer_cells(
    function: Callable[..., Any], shared: Shared | None, cells: Sequence[Any], most_s: float
) -> list[Answer]:
    """Compute cells in order, and begin none after ``most_s`` seconds; those have no answer.

    Raises
    ------
    NotSent
        If the worker does not have the shared value.
    """
    ahead = () if shared is None else (shared.value(),)
    ends_s = time.perf_counter() + most_s
    answers: list[Answer] = []
    for cell in cells:
        began_s = time.perf_counter()
        if answers and began_s >= ends_s:
            break
        result, error = None, None
        try:
            result = function(*ahead, cell)
        except Exception as raised:
            error = _sendable(raised)
        answers.append(Answer(result, error, time.perf_counter() - began_s))
    return answers


def _sendable(error: Exception) -> Exception:
    """Return an error that survives the way back, with where it was raised unless it is bad input."""
    if not isinstance(error, InputError):
        error.add_note(f"In a worker:\n{''.join(traceback.format_exception(error))}")
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
