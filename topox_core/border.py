"""The border: a stranger's bytes become text or JSON, or one clear line."""

from __future__ import annotations

import difflib
import gzip
import io
import json
import zlib
from collections.abc import Iterable
from typing import Any

from topox_core.errors import InputError

# Limits stop a file before its memory is spent; docs/files.md lists them.
MAX_FILE_BYTES = 150_000_000
MAX_UNPACKED_BYTES = 400_000_000
MAX_JSON_VALUES = 13_000_000
MAX_JSON_CONTAINERS = 2_000_000
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"


def shown(value: object, most: int = 60) -> str:
    """Return ``value`` as one short printable piece of an error line."""
    # Only scalars are written out: writing a list could take as much memory and depth as reading it
    # did.
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,} entries"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    if isinstance(value, float):
        return f"{value:.15g}"
    text = repr(value[: 2 * most] if isinstance(value, str) else value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def as_mb(count: int) -> str:
    """Return a number of bytes in megabytes, as error lines write it."""
    return f"{count / 1e6:,.1f} MB"


def unknown(key: object, known: Iterable[str], what: str = "key") -> str:
    """Say that a key is unknown: the nearest known one if there is one, else all of them."""
    names = list(known)
    near = difflib.get_close_matches(str(key)[:60].lower(), names, n=1, cutoff=0.6)
    return (
        f"unknown {what} (did you mean {near[0]!r}?)"
        if near
        else f"unknown {what} (expected one of {', '.join(names)})"
    )


class Findings:
    """What is wrong with one file: the first finding is told, the others are counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.first: InputError | None = None
        self.count = 0

    def add(self, problem: str, *, item: str = "", field: str = "") -> None:
        """Note one finding."""
        if self.first is None:
            self.first = InputError(problem, file=self.file, item=item, field=field)
        self.count += 1

    def error(self) -> InputError:
        """Return the first finding, ending in ``(and N more)`` if there are others."""
        first = self.first or InputError("is not valid", file=self.file)
        more = f" (and {self.count - 1:,} more)" if self.count > 1 else ""
        return InputError(first.problem + more, file=first.file, item=first.item, field=first.field)

    def stop(self) -> None:
        """Raise :meth:`error` if anything was found.

        Raises
        ------
        InputError
            The first finding.
        """
        if self.count:
            raise self.error()


def unpacked(data: bytes, file: str) -> bytes:
    """Return the content of a file, gunzipped if it is gzip.

    Raises
    ------
    InputError
        If the file is empty, larger than a limit, or damaged gzip.
    """
    if len(data) > MAX_FILE_BYTES:
        raise InputError(
            f"is {as_mb(len(data))}, more than the {as_mb(MAX_FILE_BYTES)} a file may have",
            file=file,
        )
    if data.startswith(_GZIP):
        data = _gunzipped(data, file)
    elif data and file.lower().endswith(".gz"):
        raise InputError(
            "is not gzip data although its name ends in .gz (rename it if it was unpacked on its way)",
            file=file,
        )
    if not data or data.isspace():
        raise InputError("is empty", file=file)
    return data


def _gunzipped(data: bytes, file: str) -> bytes:
    pieces: list[bytes] = []
    total = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while piece := stream.read(_PIECE):
                total += len(piece)
                if total > MAX_UNPACKED_BYTES:
                    raise InputError(
                        f"unpacks to more than the {as_mb(MAX_UNPACKED_BYTES)} a file may have",
                        file=file,
                    )
                pieces.append(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"is damaged or cut short as gzip ({error})", file=file) from None
    return b"".join(pieces)


def text_of(data: bytes, file: str) -> str:
    """Decode UTF-8, with or without a byte order mark.

    Raises
    ------
    InputError
        If the bytes are not UTF-8; the first bad byte is named.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("is UTF-16 text; save it as UTF-8", file=file)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        bad = data[error.start]
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"is not UTF-8 text (byte 0x{bad:02X} in line {line}); save it as UTF-8", file=file
        ) from None


def json_object(data: bytes, file: str) -> dict[str, Any]:
    """Parse one JSON object; NaN and infinities pass, for the reader that knows the field to refuse.

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
    found = record.get("format")
    if found != name:
        got = "is missing" if "format" not in record else f"got {shown(found)}"
        if isinstance(found, str) and found.startswith("topox-") and found.isprintable():
            got += f": this is a {found.removeprefix('topox-')} file"
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


def printable(text: str, most: int = 60) -> str:
    """Return ``text`` as it is if it can stand in an error line, else quoted and shortened."""
    return text if text.isprintable() and 0 < len(text) <= most else shown(text, most)


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


def told(error: Any, known: Iterable[str]) -> str:
    """Tell one entry of pydantic's ``ValidationError.errors()`` in the words of our files."""
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
