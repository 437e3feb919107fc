"""Contents as a library keeps them: deflated, and read back within a limit."""

from __future__ import annotations

import zlib

from topox_core.errors import InputError, as_mb
from topox_core.io.limits import MAX_FILE_BYTES

# Level 6 takes twice the time of level 1 and a fifth less room on result files.
LEVEL = 6


def deflated(content: bytes) -> bytes:
    """Return a content as a library keeps it."""
    return zlib.compress(content, LEVEL)


def inflated(packed: bytes, file: str, item: str) -> bytes:
    """Return a content that a library kept.

    Raises
    ------
    InputError
        If it is damaged, or larger than any file of ours may be.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(packed, MAX_FILE_BYTES)
    except (zlib.error, TypeError) as error:
        raise InputError(f"is damaged ({error})", file=file, item=item) from None
    if unpacking.unconsumed_tail:
        problem = f"unpacks to more than the {as_mb(MAX_FILE_BYTES)} a file may have"
        raise InputError(problem, file=file, item=item)
    if not unpacking.eof:
        raise InputError("is damaged (it ends too early)", file=file, item=item)
    return content
