"""Limits that stop a file before its memory is spent, and bytes to text."""

from __future__ import annotations

import gzip
import io
import zlib

from topox_core.errors import InputError
from topox_core.io.errors import as_mb

# Limits stop a file before its memory is spent; docs/files.md lists them.
MAX_FILE_BYTES = 150_000_000
MAX_UNPACKED_BYTES = 400_000_000
MAX_JSON_VALUES = 13_000_000
MAX_JSON_CONTAINERS = 2_000_000
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"


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
