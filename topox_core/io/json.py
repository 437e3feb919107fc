"""JSON files of ours from a stranger's bytes: their header and their lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError, printable, shown, unknown, visible
from topox_core.io.content import text_pieces
from topox_core.io.json_stream import JsonStream, Pairs
from topox_core.io.limits import MAX_REST_CHARACTERS, Limits

# Takes an entry of a list and its number, from 1.
Take = Callable[[int, Any], None]


@dataclass(frozen=True)
class FileFormat:
    """A JSON format of ours.

    Attributes
    ----------
    name, version
        What the keys ``format`` and ``version`` must say.
    keys
        The keys at the top besides those two; none if any key is allowed.
    limits
        How large a file may be.
    """

    name: str
    version: int
    keys: tuple[str, ...]
    limits: Limits


def read_object(
    data: bytes, file: str, form: FileFormat, lists: Mapping[str, Take] | None = None
) -> dict[str, Any]:
    """Read one file, gzipped or not, and return its keys, ``format`` and ``version`` among them.

    Parameters
    ----------
    lists
        By key, what takes the entries of a list one by one; the number of entries then stands for
        the list.

    Raises
    ------
    InputError
        If it is no JSON object, its header is not the one expected, a key is unknown or given
        twice, or it is larger than the format allows.
    """
    stream = JsonStream(text_pieces(data, file, form.limits), file, _Once(file, form.limits.keys))
    letter = stream.next_letter()
    if not letter:
        raise InputError("is empty", file=file)
    if letter != "{":
        got = shown(stream.value())
        raise InputError(f"must be one JSON object in braces (got {got})", file=file)
    record = _object(stream, form, lists or {})
    stream.end()
    check_header(record, form.name, form.version, file)
    return record


def _object(stream: JsonStream, form: FileFormat, lists: Mapping[str, Take]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    known, rest = ("format", "version", *form.keys), 0
    for key in stream.object_keys():
        if key in record:
            raise InputError("is given twice in one object", file=stream.file, field=printable(key))
        if len(record) >= form.limits.keys:
            raise _too_many_keys(form.limits.keys, stream.file)
        if form.keys and key not in known:
            _check_known_header(record, form, stream.file)
            raise InputError(unknown(key, known), file=stream.file, field=printable(key))
        if stream.next_letter() == "[" and key in lists:
            _check_known_header(record, form, stream.file)
            record[key] = _listed(stream, form, key, lists[key])
        else:
            record[key] = stream.value()
            rest += stream.length
            if rest > MAX_REST_CHARACTERS:
                problem = f"holds more than {MAX_REST_CHARACTERS:,} characters besides its lists"
                raise InputError(problem, file=stream.file, field=printable(key))
    return record


def _listed(stream: JsonStream, form: FileFormat, key: str, take: Take) -> EntryCount:
    number, most = 0, form.limits.entries
    for number, entry in enumerate(stream.entries(), 1):
        if number > most:
            problem = f"holds more than the {most:,} entries a file may have"
            raise InputError(problem, file=stream.file, field=key)
        take(number, entry)
    return EntryCount(number)


def _check_known_header(record: dict[str, Any], form: FileFormat, file: str) -> None:
    """Say that a file is another one before its first strange key is named."""
    if "format" in record:
        given = {"version": form.version, **record}
        check_header(given, form.name, form.version, file)


class _Once:
    """Makes dictionaries of pairs; refuses a key given twice, and more keys than may be."""

    def __init__(self, file: str, most: int) -> None:
        self.file, self.most = file, most

    def __call__(self, pairs: Pairs) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise InputError(
                "is given twice in one object",
                file=self.file,
                item=_owner(record),
                field=printable(twice),
            )
        if len(pairs) > self.most:
            raise _too_many_keys(self.most, self.file, _owner(record))
        return record


def _owner(record: dict[str, Any]) -> str:
    owner = record.get("id")
    return f"task {printable(owner)}" if isinstance(owner, str) and owner.strip() else ""


def _too_many_keys(most: int, file: str, item: str = "") -> InputError:
    return InputError(f"holds an object of more than {most} keys", file=file, item=item)


class EntryCount(int):
    """How many entries a list had that were passed on one by one."""


def count_of(record: Mapping[str, Any], key: str, what: str, file: str) -> int:
    """Return how many entries of a list :func:`read_object` passed on.

    Raises
    ------
    InputError
        If the list is missing or is none.
    """
    count = record.get(key)
    if isinstance(count, EntryCount):
        return count
    got = f"got {shown(count)}" if key in record else "is missing"
    raise InputError(f"must be a list of {what} in brackets ({got})", file=file, field=key)


def check_header(record: dict[str, Any], name: str, version: int, file: str) -> None:
    """Check the keys ``format`` and ``version`` that every file of ours begins with.

    Raises
    ------
    InputError
        If one is missing or is not the one expected.
    """
    given = record.get("format")
    if given != name:
        got = "is missing" if "format" not in record else f"got {shown(given)}"
        if isinstance(given, str) and given.startswith("topox-") and visible(given) == given:
            got += f": this is a {given.removeprefix('topox-')[:30]} file"
        raise InputError(f"must be {name!r} ({got})", file=file, field="format")
    got_version = record.get("version")
    if isinstance(got_version, bool) or not isinstance(got_version, int):
        got = "is missing" if "version" not in record else f"got {shown(got_version)}"
        raise InputError(f"must be the whole number {version} ({got})", file=file, field="version")
    if got_version > version:
        raise InputError(
            f"{shown(got_version)} is newer than this program, which reads up to version {version}; "
            "update the program",
            file=file,
            field="version",
        )
    if got_version < 1:
        raise InputError(
            f"must be {version} (got {shown(got_version)})", file=file, field="version"
        )


def named(entry: Any, key: str, noun: str, number: int) -> str:
    """Return what errors call an entry: its name if it has a readable one, else its number."""
    name = entry.get(key) if isinstance(entry, dict) else None
    return f"{noun} {printable(name) if isinstance(name, str) and name.strip() else number}"


def without_header(record: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return the keys of a file besides its header and ``others``."""
    return {key: record[key] for key in record if key not in ("format", "version", *others)}
