"""The one error type for anything a user gave us that we cannot use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Bad input, told in one line: which file, which item, which field, what was expected.

    Parameters
    ----------
    problem
        What is wrong and what was expected, e.g. ``must be greater than 0 (got -1)``.
    file
        Name of the file (or ``settings``, ``command line``); empty if unknown.
    item
        The task, row or entry, e.g. ``task f0`` or ``row 3``; empty if the file as a whole.
    field
        The key or column; empty if the item as a whole.
    """

    def __init__(self, problem: str, *, file: str = "", item: str = "", field: str = "") -> None:
        self.problem = " ".join(str(problem).split())
        self.file = file
        self.item = item
        self.field = field
        super().__init__(str(self))

    def __str__(self) -> str:
        return self.located(self.problem)

    def located(self, problem: str) -> str:
        """Return a problem behind the file, item and field that have it."""
        place = [
            part for part in (self.file, self.item, self.field and f"field {self.field}") if part
        ]
        return ", ".join(place) + (": " if place else "") + problem

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.file, self.item, self.field)

    def in_file(self, file: str) -> InputError:
        """Return the same error with the file named, keeping a name it already has."""
        return _rebuild(type(self), self.problem, self.file or file, self.item, self.field)


def _rebuild(kind: type[InputError], problem: str, file: str, item: str, field: str) -> InputError:
    return kind(problem, file=file, item=item, field=field)


def wrong_setting(field: str, problem: str) -> InputError:
    """Return the error of a setting."""
    return InputError(problem, file="settings", field=field)


@contextmanager
def errors_in_file(file: str) -> Iterator[None]:
    """Name a file in the bad input that names none."""
    try:
        yield
    except InputError as error:
        raise error.in_file(file) from None
