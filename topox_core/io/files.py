"""Files that a path names, as bytes."""

from __future__ import annotations

import os
from pathlib import Path

from topox_core.errors import InputError, as_mb
from topox_core.io.limits import MAX_FILE_BYTES


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


def why(error: Exception) -> str:
    """Return what the system says about a file, as the end of a sentence."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason[:1].lower() + reason[1:]
