"""JSON objects from a stranger's bytes, our files' header, pydantic's errors in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from topox_core.errors import InputError
from topox_core.io.errors import Mistakes, printable, shown, unknown
from topox_core.io.limits import MAX_JSON_CONTAINERS, MAX_JSON_VALUES, text_of, unpacked

Record = TypeVar("Record", bound=BaseModel)
# Where pydantic saw a mistake: keys and positions from the outside in.
Location = tuple[int | str, ...]


def json_object(data: bytes, file: str) -> dict[str, Any]:
    """Parse one JSON object; NaN and infinities are left for the reader to refuse.

    Raises
    ------
    InputError
        If the text is not UTF-8, not JSON, nested too deeply, holds more values than any file
        may have, names a key twice in one object, or is not an object.
    """
    text = text_of(data, file)
    if (
        data.count(b",") > MAX_JSON_VALUES
        or data.count(b"[") + data.count(b"{") > MAX_JSON_CONTAINERS
    ):
        raise InputError(
            f"holds more than {MAX_JSON_VALUES:,} values or {MAX_JSON_CONTAINERS:,} lists and objects",
            file=file,
        )
    try:
        record = json.loads(text, object_pairs_hook=_once)
    except InputError as error:
        raise error.in_file(file) from None
    except RecursionError:
        raise InputError(
            "is nested too deeply (a file of ours has at most four levels)", file=file
        ) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}",
            file=file,
        ) from None
    except ValueError:
        raise InputError("is not valid JSON: a number has too many digits", file=file) from None
    if not isinstance(record, dict):
        raise InputError(f"must be one JSON object in braces (got {shown(record)})", file=file)
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        owner = record.get("id")
        item = f"task {printable(owner)}" if isinstance(owner, str) and owner.strip() else ""
        raise InputError("is given twice in one object", item=item, field=printable(twice))
    return record


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
        if isinstance(given, str) and given.startswith("topox-") and given.isprintable():
            got += f": this is a {given.removeprefix('topox-')} file"
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


def file_body(data: bytes, file: str, name: str, version: int) -> dict[str, Any]:
    """Return the keys of a file of ours after its header, gunzipping it if needed.

    Raises
    ------
    InputError
        If it is no JSON object or its header is not the one expected.
    """
    record = json_object(unpacked(data, file), file)
    check_header(record, name, version, file)
    return {key: value for key, value in record.items() if key not in ("format", "version")}


def read_record(
    kind: type[Record],
    entry: Any,
    file: str,
    place: Callable[[Location], tuple[str, str, Iterable[str]]],
) -> Record:
    """Return an entry of a file as a record of a kind.

    Parameters
    ----------
    place
        Item, field and known keys that an error names, by where the mistake is.

    Raises
    ------
    InputError
        For the first mistake; the others are counted.
    """
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        findings = Mistakes(file)
        for mistake in error.errors(include_url=False):
            item, field, known = place(mistake["loc"])
            findings.add(_described(mistake, known), item=item, field=field)
        raise findings.error() from None


_WORDS = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text in quotes",
    "list_type": "must be a list in brackets",
    "dict_type": "must be an object",
    "model_type": "must be an object in braces",
    "string_unicode": "must be text without broken characters",
}


def _described(error: Any, known: Iterable[str]) -> str:
    """Return one entry of pydantic's ``ValidationError.errors()`` in the words of our files."""
    if error["type"] == "missing":
        return "is missing"
    if error["type"] == "extra_forbidden":
        return unknown(error["loc"][-1], known)
    words = _WORDS.get(error["type"]) or str(error["msg"])
    if (
        error["type"] == "int_type"
        and isinstance(error["input"], float)
        and error["input"].is_integer()
    ):
        return f"{words} without a decimal point (got {error['input']})"
    return f"{words} (got {shown(error['input'])})"
