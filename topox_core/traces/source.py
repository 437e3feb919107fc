"""Files of a recorded run: by path or from a browser, unpacked piece by piece, what arrived before a cut kept."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from topox_core.errors import InputError, wrong_setting
from topox_core.io.content import why
from topox_core.io.limits import MAX_GZIP_MEMBERS, MAX_RANKS, MB, RECORDING, Limits
from topox_core.model.cluster import MAX_PORTS
from topox_core.model.task_graph import PARALLELISMS


@dataclass(frozen=True)
class ImportSettings:
    """How a recorded run is read (docs/recorded-runs.md).

    Attributes
    ----------
    step
        A number, ``median`` or ``last``.
    ranks
        Use these only; None for all that are given.
    gpus_per_server
        Neighbouring ranks that share a server; 1: every rank is a server.
    host_gaps
        ``keep``: a segment lasts as long as on the clock; ``drop``: only its kernels' time.
    symmetry
        Whether one rank stands for all, and of how many (``world``; 0: as the file says).
    assume_gbps
        Speed from which sizes that nothing tells are taken; None: they stay unknown.
    parallelism
        Label by name or description of a group.
    max_tasks
        Calls are bundled until there are no more.
    communication
        A regular expression of further kernels that communicate.
    nic_gbps
        Speed of a server for the cluster and the replay.
    uneven
        ``pairs``: an exchange of uneven parts becomes a transfer a pair; ``one``: it stays one call.
    """

    step: int | str = "median"
    ranks: tuple[int, ...] | None = None
    gpus_per_server: int = 1
    host_gaps: str = "keep"
    symmetry: bool = False
    world: int = 0
    assume_gbps: float | None = None
    parallelism: Mapping[str, str] = field(default_factory=dict)
    max_tasks: int = 20_000
    communication: str = ""
    nic_gbps: float = 400.0
    uneven: str = "pairs"

    def __post_init__(self) -> None:
        if isinstance(self.step, str) and self.step not in ("median", "last"):
            raise wrong_setting("step", f"must be a number, median or last (got {self.step!r})")
        if not 1 <= self.gpus_per_server <= MAX_PORTS // 2:
            raise wrong_setting("gpus_per_server", f"must be from 1 to {MAX_PORTS // 2:,}")
        if not 0 <= self.world <= MAX_RANKS:
            raise wrong_setting("world", f"must be from 0 to {MAX_RANKS:,} (got {self.world})")
        for name in ("assume_gbps", "nic_gbps"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e9:
                raise wrong_setting(name, f"must be above 0 and below 1e9 (got {value:g})")
        if self.max_tasks < 1:
            raise wrong_setting("max_tasks", f"must be at least 1 (got {self.max_tasks})")
        for label in self.parallelism.values():
            if label not in PARALLELISMS:
                raise wrong_setting(
                    "parallelism", f"must be one of {', '.join(PARALLELISMS)} (got {label!r})"
                )


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
                held = bytearray()  # gzip of many parts comes in crumbs
                for piece in self._unpacked(stream):
                    self.size_bytes += len(piece)
                    if self.size_bytes > self._limits.file_bytes:
                        most = f"{self._limits.file_bytes / MB:,.0f} MB"
                        raise InputError(
                            f"is more than the {most} unpacked that a trace may have",
                            file=self._source.name,
                        )
                    held += piece
                    if len(held) >= PIECE:
                        yield bytes(held)
                        held.clear()
                yield bytes(held)
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


KINETO, CHAKRA, TEXT, PERFETTO = "kineto", "chakra", "text", "perfetto"
NETWORK, GROUPS = "network", "groups"
_HEADER = re.compile(rb"\s*(MODEL|DATA|HYBRID|MICRO|DLRM)[A-Z_]*\b[^\n]*\n\s*\d+\s*\n")
_NETWORK = re.compile(rb"^\s*(topology|npus_count)\s*:", re.MULTILINE)
_ZIP = b"PK\x03\x04"
# What no message of Chakra's wire format begins with.
_PLAIN = re.compile(rb"[\t\n\r -~\x80-\xff]+")
_GROUPS = re.compile(rb'\s*\{\s*"[^"]{0,100}"\s*:\s*\[\s*\d')


def format_of(source: Source) -> str:
    """Return the format of a file: of a profiler, our own trace, Chakra, a text workload, or groups.

    Raises
    ------
    InputError
        If it is empty, an archive, or a text that is no trace.
    """
    head = b"".join(islice(Content(source), 3))
    if not head.strip():
        raise InputError("is empty", file=source.name)
    if head.startswith(_ZIP) or head[257:262] == b"ustar":
        raise InputError("is an archive: unpack it and give its folder", file=source.name)
    if _HEADER.match(head):
        return TEXT
    if _NETWORK.search(head[:20_000]) and b"\0" not in head[:20_000]:
        return NETWORK
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        if _PLAIN.fullmatch(head[:200]):
            problem = "holds no traceEvents (a profiler trace has them; a task graph has tasks)"
            raise InputError(problem, file=source.name)
        return CHAKRA
    if b'"topox-trace"' in head[:2_000]:
        return PERFETTO
    bare = head.lower().replace(b"_", b"")
    if b'"workloadgraph"' in bare:
        return CHAKRA
    if b'"traceEvents"' not in head and _GROUPS.match(head):
        return GROUPS
    return KINETO


def format_of_all(sources: Sequence[Source]) -> tuple[str, tuple[Source, ...]]:
    """Return the one format of several files, and the files of it; groups beside them are left out.

    Raises
    ------
    InputError
        If they are of several formats.
    """
    found = [(format_of(source), source) for source in sources]
    traces = [(form, source) for form, source in found if form != GROUPS]
    if not traces:
        raise InputError("is no trace, only groups of ranks", file=sources[0].name)
    first = traces[0][0]
    for form, source in traces:
        if form != first:
            raise InputError(
                f"is of format {form}, {traces[0][1].name} of {first}: give files of one",
                file=source.name,
            )
    return first, tuple(source for _, source in traces)
