"""Files of a recorded run: by path or from a browser, unpacked piece by piece, what arrived before a cut kept."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from topox_core.errors import InputError
from topox_core.io.content import why
from topox_core.io.limits import MAX_GZIP_MEMBERS, MB, RECORDING, Limits


class Refused(InputError):
    """The trace cannot carry the claim; commands end with status 1, not 2."""


PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
# What is read of a folder.
ENDINGS = (".json", ".json.gz", ".et", ".et.gz")


@dataclass(frozen=True)
class Source:
    """One file of a recorded run.

    Attributes
    ----------
    name
        What errors call it, and where a rank is looked for.
    open
        Opens it from the beginning.
    limits
        How large it may be, where its format has no smaller limit of its own.
    """

    name: str
    open: Callable[[], BinaryIO]
    limits: Limits = RECORDING

    @staticmethod
    def of_path(path: Path) -> Source:
        """Return the file at a path; it is opened when it is read."""
        return Source(str(path), lambda: path.open("rb"))

    @staticmethod
    def of_bytes(name: str, data: bytes, limits: Limits = RECORDING) -> Source:
        """Return a file that is in memory."""
        return Source(name, lambda: io.BytesIO(data), limits)


def sources_of(paths: Sequence[str]) -> tuple[Source, ...]:
    """Return the files that paths name: of a folder all traces in it, not those below it.

    Raises
    ------
    InputError
        If a path does not exist or a folder holds no trace.
    """
    found: list[Source] = []
    for name in paths:
        path = Path(name)
        try:
            folder = path.is_dir()
            if folder:
                inside = sorted(p for p in path.iterdir() if _is_trace(p))
                found += [Source.of_path(p) for p in inside]
                if not inside:
                    raise InputError(f"holds no {', '.join(ENDINGS)} file", file=name)
            else:
                path.stat()
                found.append(Source.of_path(path))
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"cannot be read: {why(error)}", file=name) from None
    return tuple(found)


def _is_trace(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(ENDINGS)


class Content:
    """The unpacked bytes of a source within the limits of its format.

    Attributes
    ----------
    cut
        Once read: whether packed data ended before its own end.
    size_bytes
        How much was unpacked so far.
    """

    def __init__(self, source: Source, limits: Limits | None = None) -> None:
        self._source, self._limits = source, limits or source.limits
        self.cut = False
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        try:
            with self._source.open() as stream:
                for piece in self._unpacked(stream):
                    self.size_bytes += len(piece)
                    if self.size_bytes > self._limits.file_bytes:
                        most = f"{self._limits.file_bytes / MB:,.0f} MB"
                        raise InputError(
                            f"is more than the {most} unpacked that a trace may have",
                            file=self._source.name,
                        )
                    yield piece
        except OSError as error:
            raise InputError(f"cannot be read: {why(error)}", file=self._source.name) from None

    def _unpacked(self, stream: BinaryIO) -> Iterator[bytes]:
        piece = stream.read(PIECE)
        if not piece.startswith(_GZIP):
            while piece:
                yield piece
                piece = stream.read(PIECE)
            return
        members, member = 1, zlib.decompressobj(wbits=31)
        try:
            while piece:
                yield member.decompress(piece, PIECE)
                while member.unconsumed_tail:
                    yield member.decompress(member.unconsumed_tail, PIECE)
                rest = member.unused_data
                if not member.eof:
                    piece = stream.read(PIECE)
                    continue
                piece = rest.lstrip(b"\0") or stream.read(PIECE).lstrip(b"\0")
                if piece:
                    members, member = members + 1, zlib.decompressobj(wbits=31)
                    if members > MAX_GZIP_MEMBERS:
                        problem = f"is gzip of more than {MAX_GZIP_MEMBERS:,} parts"
                        raise InputError(problem, file=self._source.name)
            self.cut = not member.eof
        except zlib.error:
            self.cut = True
