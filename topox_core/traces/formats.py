"""Which format a file of a recorded run has, by its content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from topox_core.errors import InputError
from topox_core.traces.source import Content, Source

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
