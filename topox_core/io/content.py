"""The content of a file: bytes unpacked within its limits, text decoded, JSON objects with their format, version and keys."""

import codecs
import gc
import hashlib
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from topox_core.errors import InputError, as_mb, check_known, printable, refuse_if, shown, visible
from topox_core.io.limits import MAX_FILE_BYTES, MAX_GZIP_MEMBERS, Limits, check_count


def read(path: str | Path) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    InputError
        If it is missing, a folder, not readable, or larger than any file of ours may be.
    """
    try:
        with Path(path).open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            refuse_if(
                (
                    size > MAX_FILE_BYTES,
                    f"is {as_mb(size)}, more than the {as_mb(MAX_FILE_BYTES)} a file may have",
                ),
                file=str(path),
            )
            return stream.read(MAX_FILE_BYTES + 1)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {why(error)}", file=str(path)) from None


def bare_name(file: str) -> str:
    """Return the name of a file without its folders, whichever system wrote them."""
    return file.replace("\\", "/").rpartition("/")[2]


def why(error: Exception) -> str:
    """Return what the system says about a file, as the end of a sentence."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason[:1].lower() + reason[1:]


@contextmanager
def gc_paused() -> Iterator[None]:
    """Collect no garbage in this process while a file is read; of several readers the first to end lets it begin again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


PIECE = 1 << 18
GZIP = b"\x1f\x8b"


def whole(data: bytes, file: str, limits: Limits) -> bytes:
    """Return the content of a file, gunzipped if it is gzip.

    Raises
    ------
    InputError
        If there is nothing in it, it is larger than its format needs, packed or unpacked, or it is damaged
        gzip.
    """
    most = limits.file_bytes
    refuse_if(
        (
            len(data) > most,
            f"is {as_mb(len(data))}, more than the {as_mb(most)} such a file may have",
        ),
        file=file,
    )
    content = _gunzipped(data, file, most) if data.startswith(GZIP) else data
    refuse_if(
        (
            content is data and data and file.lower().endswith(".gz"),
            "is not gzip data although its name ends in .gz (rename it if it was unpacked on its way)",
        ),
        (not content or content.isspace(), "is empty"),
        file=file,
    )
    return content


def _gunzipped(data: bytes, file: str, most: int) -> bytes:
    content, stream = bytearray(), io.BytesIO(data)
    try:
        for piece in unpacked(stream.read(PIECE), stream, file, PIECE):
            content += piece
            refuse_if(
                (
                    len(content) > most,
                    f"unpacks to more than the {as_mb(most)} such a file may have",
                ),
                file=file,
            )
    except zlib.error as error:
        raise InputError(f"is damaged or cut short as gzip ({error})", file=file) from None
    return bytes(content)


def unpacked(packed: bytes, stream: BinaryIO, file: str, most: int) -> Iterator[bytes]:
    """Yield what gzip unpacks to, in pieces of at most so many bytes.

    Parameters
    ----------
    packed
        What was read of the stream.

    Raises
    ------
    InputError
        If it is of very many parts.
    zlib.error
        If it is damaged or ends too early.
    """
    members = 0
    while packed:
        members, member = members + 1, zlib.decompressobj(wbits=31)
        refuse_if(
            (members > MAX_GZIP_MEMBERS, f"is gzip of more than {MAX_GZIP_MEMBERS:,} parts"),
            file=file,
        )
        while not member.eof:
            if not packed:
                raise zlib.error("it ends too early")
            if piece := member.decompress(packed, most):
                yield piece
            packed = member.unconsumed_tail or member.unused_data or stream.read(most)
        packed = packed.lstrip(b"\0")  # padding
        while not packed and (more := stream.read(most)):
            packed = more.lstrip(b"\0")


def decoded(content: bytes, file: str) -> str:
    """Return what :func:`whole` returned as text: UTF-8, with or without a byte order mark.

    Raises
    ------
    InputError
        If the bytes are not UTF-8; the first bad byte is named.
    """
    refuse_if(
        (
            content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
            "is UTF-16 text; save it as UTF-8",
        ),
        file=file,
    )
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        problem = f"is not UTF-8 text (byte 0x{content[error.start]:02X} in line {line})"
        raise InputError(f"{problem}; save it as UTF-8", file=file) from None


def first_letter(data: bytes, file: str, limits: Limits) -> str:
    """Return the first character that is not blank, if it is ASCII; raises as :func:`whole`."""
    letters = whole(data, file, limits).removeprefix(codecs.BOM_UTF8).lstrip()
    return letters[:1].decode("ascii", "replace")


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

    def written(self, values: Mapping[str, Any]) -> bytes:
        """Return a file of this format that says ``values``."""
        record = {"format": self.name, "version": self.version, **values}
        return (json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


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
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise InputError(
            "is given twice in one object",
            file=file,
            item=_owner(record),
            field=printable(twice),
        )
    if len(pairs) > most:
        raise InputError(
            f"holds an object of more than {most} keys", file=file, item=_owner(record)
        )
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
    refuse_if(
        (
            got_version > version,
            f"{shown(got_version)} is newer than this program, which reads up to version {version}; "
            "update the program",
        ),
        (got_version < 1, f"must be {version} (got {shown(got_version)})"),
        file=file,
        field="version",
    )


def named(entry: Any, key: str, noun: str, number: int) -> str:
    """Return what errors call an entry: its name if it has a readable one, else its number."""
    name = entry.get(key) if isinstance(entry, dict) else None
    return f"{noun} {printable(name) if isinstance(name, str) and name.strip() else number}"


def without_header(record: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return the keys of a file besides its header and ``others``."""
    return {key: record[key] for key in record if key not in ("format", "version", *others)}
