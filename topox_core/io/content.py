"""The content of a file, unpacked and decoded, within the limits of its format."""

import codecs
import gc
import io
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from topox_core.errors import InputError, as_mb
from topox_core.io.limits import MAX_FILE_BYTES, MAX_GZIP_MEMBERS, Limits


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
            if size > MAX_FILE_BYTES:
                raise InputError(
                    f"is {as_mb(size)}, more than the {as_mb(MAX_FILE_BYTES)} a file may have",
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


_lock = threading.Lock()
_reading = 0
_was_on = False


@contextmanager
def gc_paused() -> Iterator[None]:
    """Collect no garbage in this process until every reader that is within has ended."""
    global _reading, _was_on
    with _lock:
        _was_on = gc.isenabled() if _reading == 0 else _was_on
        _reading += 1
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _reading -= 1
            if _reading == 0 and _was_on:
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
    if len(data) > most:
        raise InputError(
            f"is {as_mb(len(data))}, more than the {as_mb(most)} such a file may have", file=file
        )
    content = _gunzipped(data, file, most) if data.startswith(GZIP) else data
    if content is data and data and file.lower().endswith(".gz"):
        raise InputError(
            "is not gzip data although its name ends in .gz (rename it if it was unpacked on its way)",
            file=file,
        )
    if not content or content.isspace():
        raise InputError("is empty", file=file)
    return content


def _gunzipped(data: bytes, file: str, most: int) -> bytes:
    content, stream = bytearray(), io.BytesIO(data)
    try:
        for piece in unpacked(stream.read(PIECE), stream, file, PIECE):
            content += piece
            if len(content) > most:
                raise InputError(
                    f"unpacks to more than the {as_mb(most)} such a file may have", file=file
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
        if members > MAX_GZIP_MEMBERS:
            raise InputError(f"is gzip of more than {MAX_GZIP_MEMBERS:,} parts", file=file)
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
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError("is UTF-16 text; save it as UTF-8", file=file)
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
