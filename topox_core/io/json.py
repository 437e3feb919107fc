"""JSON files of ours from a stranger's bytes: their header and their lists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from topox_core.errors import InputError, check_known, printable, shown, visible
from topox_core.io.content import decoded, whole
from topox_core.io.limits import Limits, check_count


def record_of(one: object, names: str) -> dict[str, Any]:
    """Return the named attributes (separated by spaces) of an object as a JSON record has them."""
    return {name: getattr(one, name) for name in names.split()}


def digest_of(parts: object) -> str:
    """Return SHA-256 of canonical JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


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


def read_object(data: bytes, file: str, form: FileFormat) -> dict[str, Any]:
    """Read one file, gzipped or not, and return its keys, ``format`` and ``version`` among them.

    Raises
    ------
    InputError
        If it is no JSON object, its header is not the one expected, a key is unknown or given
        twice, or it is larger than the format allows.
    """
    record = loaded(data, file, form.limits)
    if not isinstance(record, dict):
        raise InputError(f"must be one JSON object in braces (got {shown(record)})", file=file)
    check_header(record, form.name, form.version, file)
    known = ("format", "version", *form.keys)
    for key in record if form.keys else ():
        check_known(key, known, file=file, field=printable(key))
    return record


def loaded(data: bytes, file: str, limits: Limits) -> Any:
    """Return what a JSON file says, gzipped or not.

    Raises
    ------
    InputError
        If it is not JSON, a key is given twice in one object, or it is larger than the limits allow.
    """
    content = whole(data, file, limits)
    check_values(content, limits, file)
    hook = partial(_object_of, file=file, most=limits.keys)
    try:
        return json.loads(decoded(content, file), object_pairs_hook=hook)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"is not valid JSON at {place}: {error.msg}", file=file) from None
    except RecursionError:
        raise InputError(
            "is nested too deeply (a file of ours has at most four levels)", file=file
        ) from None
    except ValueError:
        raise InputError("is not valid JSON: a number has too many digits", file=file) from None


def check_values(content: bytes, limits: Limits, file: str) -> None:
    """Refuse more values, or more objects, than a file may hold: what is counted bounds the memory of what is read."""
    objects = content.count(b"{")
    check_count(objects, limits.objects, "objects a file may have", file)
    values = objects + content.count(b"[") + content.count(b",")
    check_count(values, limits.values, "values a file may have", file)


def entries_of(
    record: Mapping[str, Any], key: str, what: str, form: FileFormat, file: str
) -> list[Any]:
    """Return a list of a file that was read.

    Raises
    ------
    InputError
        If it is missing, is none, or is longer than the format allows.
    """
    entries = record.get(key)
    if not isinstance(entries, list):
        got = f"got {shown(entries)}" if key in record else "is missing"
        raise InputError(f"must be a list of {what} in brackets ({got})", file=file, field=key)
    check_count(len(entries), form.limits.entries, "entries a file may have", file, key)
    return entries


def _object_of(pairs: list[tuple[str, Any]], file: str, most: int) -> dict[str, Any]:
    """Return an object; one that has a key twice or more keys than may be is refused."""
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(
            "is given twice in one object",
            file=file,
            item=_owner(record),
            field=printable(twice),
        )
    if len(pairs) > most:
        problem = f"holds an object of more than {most} keys"
        raise InputError(problem, file=file, item=_owner(record))
    return record


def _owner(record: dict[str, Any]) -> str:
    owner = record.get("id")
    return f"task {printable(owner)}" if isinstance(owner, str) and owner.strip() else ""


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
