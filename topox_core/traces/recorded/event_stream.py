"""The events of a Chrome trace (JSON), decoded in chunks.

A chunk ends where one event ends and the next begins, at a match of ``}, {"ph"``: it cannot lie
inside a string, where the quote would be escaped.
"""

import codecs
import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from topox_core.errors import InputError, refuse_if
from topox_core.io.limits import MAX_ENTRY_CHARACTERS, MAX_REST_CHARACTERS
from topox_core.traces.source import Content, Source

Event = dict[str, Any]
CHUNK = 4_000_000
# Where the end of a chunk is looked for first: events take 0.3 to 3 kB each.
NEAR_END = 64_000
_LIST = re.compile(r'"traceEvents"\s*:\s*\[')
_FIRST_KEY = re.compile(r'\s*\{\s*"([A-Za-z_]+)"')
# A value that a writer left out: "Process Group Description": ,
_LEFT_OUT = re.compile(r'("[^"\\]*"):\s*(?=[,}\]])')
_COMMA = re.compile(r"\s*,?\s*")
_decoder = json.JSONDecoder()


class EventStream:
    """The events of one file, chunk by chunk; the rest of the file is there once all were read.

    Attributes
    ----------
    header
        What the file says besides its events.
    repairs
        Chunks in which values were missing and were read as null.
    cut
        Whether the file ends before its own end.
    seen
        Events that passed by.

    Raises
    ------
    InputError
        If the file holds no list of events or is no JSON; the byte is named.
    """

    def __init__(self, source: Source) -> None:
        self._source, self._content = source, Content(source)
        self.header: dict[str, Any] = {}
        self.repairs = 0
        self.cut = False
        self.seen = 0
        self._done = 0  # characters behind us, about bytes

    def __iter__(self) -> Iterator[list[Event]]:
        text = self._texts()
        before, buffer = self._beginning(text)
        # Writers other than the profiler begin an event with another key: events are found by that one.
        first = _FIRST_KEY.match(buffer)
        key = first[1] if first else "ph"
        self._boundary = re.compile(rf'\}}\s*,\s*\{{\s*"{key}"')
        opened = False
        for piece in chain(text, (None,)):  # None: there is no more
            at = -1
            if piece is None or len(buffer) >= CHUNK:
                at = self._last_boundary(buffer)
            if at >= 0:
                yield self._events(buffer[: at + 1], opened)
                opened = True
                self._done += at
                buffer = buffer[at + 1 :]
            elif piece is not None and len(buffer) > CHUNK + MAX_ENTRY_CHARACTERS:
                raise self._damaged(self._done)
            buffer += piece or ""
        yield self._ending(before, buffer.lstrip().removeprefix(",") if opened else buffer)

    def _texts(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for piece in self._content:
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)

    def _beginning(self, text: Iterator[str]) -> tuple[str, str]:
        """Return what stands before the list of events, and what was read of the list."""
        buffer = ""
        for piece in text:
            buffer += piece
            bare = buffer.lstrip("\ufeff \t\r\n")
            if bare.startswith("["):
                return "", bare[1:]
            found = _LIST.search(buffer)
            if found:
                return buffer[: found.start()], buffer[found.end() :]
            if len(buffer) > MAX_REST_CHARACTERS:
                break
        refuse_if((not buffer.strip(), "is empty"), file=self._source.name)
        raise InputError(
            "holds no traceEvents (a profiler trace has them; a task graph has tasks)",
            file=self._source.name,
        )

    def _last_boundary(self, buffer: str) -> int:
        """Return where the last event but one ends; -1 if there is only one."""
        for begin in (max(0, len(buffer) - NEAR_END), 0):
            if ends := [match.start() for match in self._boundary.finditer(buffer, begin)]:
                return ends[-1]
        return -1

    def _events(self, chunk: str, opened: bool) -> list[Event]:
        """Return the events of a chunk, which ends with an event."""
        listed = f"[{chunk.lstrip().removeprefix(',') if opened else chunk}]"
        try:
            events = msgspec.json.decode(listed)
        except (ValueError, RecursionError):
            events = self._repaired(listed)
        self.seen += len(events)
        return [one for one in events if isinstance(one, dict)]

    def _repaired(self, listed: str) -> list[Any]:
        """Return the events of a list that holds what is no JSON, such as NaN, or lacks values."""
        whole = _LEFT_OUT.sub(r"\1: null", listed)
        self.repairs += whole != listed
        try:
            events: list[Any] = json.loads(whole)
        except (ValueError, RecursionError) as error:
            raise self._damaged(self._done + int(getattr(error, "pos", 0))) from None
        return events

    def _ending(self, before: str, rest: str) -> list[Event]:
        """Return the last events, and read what stands around the list."""
        events: list[Event] = []
        whole, at = _LEFT_OUT.sub(r"\1: null", rest), 0
        self.repairs += whole != rest
        rest = whole.lstrip()
        while at < len(rest) and rest[at] != "]":
            try:
                event, at = _decoder.raw_decode(rest, at)
            except ValueError:
                break  # it ends within this event
            except RecursionError:
                raise self._damaged(self._done) from None
            self.seen += 1
            if isinstance(event, dict):
                events.append(event)
            gap = _COMMA.match(rest, at)
            assert gap is not None  # it may be empty
            at = gap.end()
            if "," not in gap[0] and at < len(rest) and rest[at] != "]":
                raise self._damaged(self._done)
        rest = rest[at:]
        self.cut = self._content.cut or not rest.startswith("]")
        self._read_header(before, rest[1:].strip() if rest.startswith("]") else "")
        return events

    def _read_header(self, before: str, after: str) -> None:
        """Read what stands before and after the list; of a file that ends early only what is before."""
        begin, after = before.strip().rstrip(", \t\r\n"), after.lstrip(", \t\r\n")
        join = "" if begin.endswith("{") or after.startswith("}") else ", "
        for text in (begin + join + after, begin + "}"):
            try:
                header = json.loads(_LEFT_OUT.sub(r"\1: null", text))
            except (ValueError, RecursionError):
                continue
            if isinstance(header, dict):
                self.header = header
                return

    def _damaged(self, at: int) -> InputError:
        return InputError(f"is not JSON near byte {at:,}", file=self._source.name)
