"""Files of a recorded run: by path or from a browser, unpacked piece by piece, what arrived before a cut kept."""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from topox_core.errors import InputError, as_mb, refuse_if
from topox_core.io.content import GZIP, bare_name, unpacked, why
from topox_core.io.limits import MAX_RANKS, RECORDING, WHOLE_JSON, Limits, check_one_of, is_whole
from topox_core.model.cluster import MAX_PORTS
from topox_core.model.quantities import Gbps
from topox_core.model.task_graph import PARALLELISMS
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields
from topox_core.text.numbers import first_that_holds

# Told what is being read: a sentence, and how far it is (0 to 1).
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class ImportSettings:
    """How a recorded run is read (docs/recorded-runs.md)."""

    step: Annotated[
        int | Literal["median", "last"], plain_setting("Step", "which ProfilerStep")
    ] = "median"
    ranks: Annotated[tuple[int, ...] | None, plain_setting("Ranks", "use these ranks only")] = None
    gpus_per_server: Annotated[
        int,
        plain_setting(
            "GPUs per server", "neighbouring ranks that share a server", ge=1, le=MAX_PORTS // 2
        ),
    ] = 1
    host_gaps: Annotated[
        str,
        plain_setting(
            "Gaps of the host",
            "keep (default): a segment lasts as on the clock; drop: only its kernels' time",
            "keep",
            "drop",
        ),
    ] = "keep"
    symmetry: Annotated[bool, plain_setting("Symmetry", "one rank stands for all (default no)")] = (
        False
    )
    world: Annotated[
        int,
        plain_setting(
            "Ranks of the job", "ranks of the job (default 0: as the files say)", ge=0, le=MAX_RANKS
        ),
    ] = 0
    assume_gbps: (
        Annotated[
            Gbps,
            setting(
                "Speed", description="take sizes that nothing tells from durations at this speed"
            ),
        ]
        | None
    ) = None
    parallelism: Annotated[
        Mapping[str, str],
        plain_setting("Labels", "label of a group by its name or description; may be repeated"),
    ] = field(default_factory=dict)
    max_tasks: Annotated[
        int, plain_setting("Tasks", "bundle calls until there are no more tasks than this", ge=1)
    ] = 20_000
    communication: Annotated[
        str, plain_setting("Communication", "further kernels that communicate")
    ] = ""
    nic_gbps: Annotated[
        Gbps,
        setting("Speed of a server", description="speed of a server for cluster and replay"),
    ] = 400.0
    uneven: Annotated[
        str,
        plain_setting(
            "Uneven exchanges",
            "an exchange of uneven parts: a transfer per pair (default), or one call",
            "pairs",
            "one",
        ),
    ] = "pairs"

    def __post_init__(self) -> None:
        check_fields(self, "settings")
        for label in self.parallelism.values():
            check_one_of(label, PARALLELISMS, file="settings", field="parallelism")


class Refused(InputError):
    """The trace cannot carry the claim; commands end with status 1, not 2."""


PIECE = 1 << 20
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
            path.stat()
            inside = (
                sorted(
                    one
                    for one in path.iterdir()
                    if one.is_file() and one.name.lower().endswith(ENDINGS)
                )
                if path.is_dir()
                else [path]
            )
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read: {why(error)}", file=name) from None
        refuse_if((not inside, f"holds no {', '.join(ENDINGS)} file"), file=name)
        found += map(Source.of_path, inside)
    return tuple(found)


def with_ranks(
    sources: Sequence[Source], settings: ImportSettings, progress: Progress | None
) -> Iterator[tuple[Source, int | None]]:
    """Yield each file with the rank that the settings give it, once its progress is told."""
    given = settings.ranks
    for number, source in enumerate(sources):
        if progress is not None:
            progress(source.name, number / len(sources))
        yield source, given[number] if given is not None and len(given) == len(sources) else None


def rank_in_name(file: str, *patterns: str, most: int = MAX_RANKS) -> int | None:
    """Return the rank below ``most`` that the name of a file tells by the first of some patterns; None if by none."""
    for pattern in patterns:
        found = re.search(pattern, bare_name(file), re.IGNORECASE)
        if found and len(found[1]) < 10 and int(found[1]) < most:
            return int(found[1])
    return None


def groups_listed(listed: object, missing: object) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return ranks and description of each group that a list names; one that is not as it should be is left out.

    Parameters
    ----------
    missing
        What stands for the ranks of a group that lists none.
    """
    groups: dict[str, tuple[tuple[int, ...], str]] = {}
    for one in listed if isinstance(listed, list) else ():
        ranks = one.get("ranks", missing) if isinstance(one, dict) else None
        if isinstance(ranks, list) and all(is_whole(rank, 0, MAX_RANKS - 1) for rank in ranks):
            words = str(one.get("pg_desc", ""))[:100]
            groups[str(one.get("pg_name", ""))[:100]] = (tuple(ranks), words)
    return groups


def read_json(source: Source) -> Any:
    """Return what a JSON file that is read as a whole holds.

    Raises
    ------
    InputError
        If it is too large or is no JSON.
    """
    return json_of(b"".join(Content(source, WHOLE_JSON)), source.name)


def json_of(data: bytes, file: str) -> Any:
    """Return what JSON says.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise InputError("is not JSON", file=file) from None


class Content:
    """The unpacked bytes of a source within the limits of its format.

    Attributes
    ----------
    cut
        Once read: whether packed data ended before its own end.
    """

    def __init__(self, source: Source, limits: Limits | None = None) -> None:
        self._source, self._limits = source, limits or source.limits
        self.cut = False

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            with self._source.open() as stream:
                held = bytearray()  # gzip of many parts comes in crumbs
                for piece in self._unpacked(stream):
                    size += len(piece)
                    most = self._limits.file_bytes
                    refuse_if(
                        (
                            size > most,
                            f"is more than the {as_mb(most)} unpacked that a trace may have",
                        ),
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
        if piece.startswith(GZIP):
            try:
                yield from unpacked(piece, stream, self._source.name, PIECE)
            except zlib.error:
                self.cut = True
            return
        while piece:
            yield piece
            piece = stream.read(PIECE)


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
    refuse_if(
        (not head.strip(), "is empty"),
        (
            head.startswith(_ZIP) or head[257:262] == b"ustar",
            "is an archive: unpack it and give its folder",
        ),
        file=source.name,
    )
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    form = first_that_holds(
        (_HEADER.match(head), TEXT),
        (_NETWORK.search(head[:20_000]) and b"\0" not in head[:20_000], NETWORK),
        (not is_json, CHAKRA),
        (b'"topox-trace"' in head[:2_000], PERFETTO),
        (b'"workloadgraph"' in head.lower().replace(b"_", b""), CHAKRA),
        (b'"traceEvents"' not in head and _GROUPS.match(head), GROUPS),
        (True, KINETO),
    )
    refuse_if(
        (
            not is_json and form == CHAKRA and _PLAIN.fullmatch(head[:200]),
            "holds no traceEvents (a profiler trace has them; a task graph has tasks)",
        ),
        file=source.name,
    )
    return form


def format_of_all(sources: Sequence[Source]) -> tuple[str, tuple[Source, ...]]:
    """Return the one format of several files, and the files of it; groups beside them are left out.

    Raises
    ------
    InputError
        If they are of several formats.
    """
    found = [(format_of(source), source) for source in sources]
    traces = [(form, source) for form, source in found if form != GROUPS]
    refuse_if((not traces, "is no trace, only groups of ranks"), file=sources[0].name)
    first = traces[0][0]
    for form, source in traces:
        refuse_if(
            (
                form != first,
                f"is of format {form}, {traces[0][1].name} of {first}: give files of one",
            ),
            file=source.name,
        )
    return first, tuple(source for _, source in traces)
