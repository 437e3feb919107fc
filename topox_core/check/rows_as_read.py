"""The rows of a result file while it is read: what no row can hold ends the reading before it is kept."""

from __future__ import annotations

from typing import Any

from topox_core.errors import InputError, printable, shown
from topox_core.io.json import EntryCount, Take
from topox_core.io.limits import MAX_DEPENDENCIES, SCHEDULE

# The lists of a file, and what a row of each is called.
LISTS = {"tasks": "task", "transfers": "transfer", "circuits": "circuit"}
# What each column holds, as errors say it.
COUNT, NUMBER, ID = "a whole number from 0", "a finite number", "an id"
EXPECTED = {
    **dict.fromkeys(("id", "task", "collective"), ID),
    **dict.fromkeys(("source", "destination", "switch", "source_port", "destination_port"), COUNT),
    **dict.fromkeys(("start_ms", "end_ms", "setup_ms", "size_bytes"), NUMBER),
    "dependencies": "a list of ids",
    "paths": "a list of paths",
    "rates": "a list of [from_ms, to_ms, gbps]",
}
_NESTED = ("dependencies", "paths", "rates")
_MOST_KEYS = 16


class RowsAsRead:
    """The rows of all lists; whether values are right is seen later, column by column."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lists: dict[str, list[Any]] = {}
        self._count = self._nested = 0

    def take(self, key: str) -> Take:
        """Return what takes the rows of one list."""
        rows = self._lists[key] = []
        # By keys and types of a row: its keys of no column, and those that hold lists.
        known: dict[tuple[Any, ...], tuple[list[str], list[str]]] = {}

        def take(number: int, row: Any) -> None:
            self._count += 1
            if self._count > SCHEDULE.entries:
                problem = f"holds more than the {SCHEDULE.entries:,} rows a schedule may have"
                raise InputError(problem, file=self._file)
            shape = (*row, *map(type, row.values())) if type(row) is dict else ()
            if shape not in known:
                known[shape] = self._looked_at(row, f"{LISTS[key]} number {number - 1}")
            strange, nested = known[shape]
            for field in strange:
                row[field] = None
            for field in nested:
                self._count_nested(row[field])
            rows.append(row)

        return take

    def _looked_at(self, row: Any, item: str) -> tuple[list[str], list[str]]:
        if not isinstance(row, dict):
            raise InputError(f"must be an object (got {shown(row)})", file=self._file, item=item)
        if len(row) > _MOST_KEYS:
            raise InputError(f"has more than {_MOST_KEYS} keys", file=self._file, item=item)
        name = row.get("id")
        if isinstance(name, str):
            item = f"{item.split()[0]} {printable(name)}"
        for field, value in row.items():
            expected = EXPECTED.get(field, "")
            if isinstance(value, str):
                wrong = expected != ID
            elif isinstance(value, list):
                wrong = field not in _NESTED
            else:
                wrong = isinstance(value, dict)
            if expected and wrong:
                problem = f"must be {expected} (got {shown(value)})"
                raise InputError(problem, file=self._file, item=item, field=field)
        strange = [field for field in row if field not in EXPECTED]
        return strange, [field for field in _NESTED if isinstance(row.get(field), list)]

    def _count_nested(self, value: Any) -> None:
        """Count what lists inside rows hold: dependencies, paths with their servers, rates."""
        left = [value]
        while left:
            holder = left.pop()
            self._nested += len(holder)
            if self._nested > MAX_DEPENDENCIES:
                problem = f"holds more than the {MAX_DEPENDENCIES:,} values in lists of its rows that there may be"
                raise InputError(problem, file=self._file)
            inner = holder.values() if isinstance(holder, dict) else holder
            left += [one for one in inner if type(one) in (list, dict)]

    def put_into(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the keys of a file with their rows."""
        return {
            key: self._lists[key] if isinstance(value, EntryCount) else value
            for key, value in body.items()
        }
