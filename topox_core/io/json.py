"""JSON files of ours from a stranger's bytes: their header and their lists."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from topox_core.errors import InputError, printable, shown, unknown, visible
from topox_core.io.content import PIECE, text_pieces
from topox_core.io.limits import MAX_ENTRY_CHARACTERS, MAX_REST_CHARACTERS, Limits, check_count


def record_of(one: object, names: str) -> dict[str, Any]:
    """Return the named attributes (separated by spaces) of an object as a JSON record has them."""
    return {name: getattr(one, name) for name in names.split()}


def digest_of(parts: object) -> str:
    """Return SHA-256 of canonical JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


Pairs = list[tuple[str, Any]]
_SPACE = re.compile(r"[ \t\n\r]*")
_AFTER_A_VALUE = frozenset(" \t\n\r,]}:")
# No literal, escape or exponent that the end of a piece may cut is longer than this.
_CUT = 16
# Entries that end within so many characters are read together.
_BATCH = 1 << 15


class JsonStream:
    """The text of a JSON file as far as it has been read; what lies behind is forgotten.

    Parameters
    ----------
    pieces
        The text, piece by piece.
    hook
        Called with the pairs of every object that is complete; what it returns stands for it.
    """

    def __init__(self, pieces: Iterator[str], file: str, hook: Callable[[Pairs], Any]) -> None:
        self._pieces, self.file = pieces, file
        self._scan = json.JSONDecoder(object_pairs_hook=hook).raw_decode
        self._text, self._at, self._ended = "", 0, False
        self._lines, self._column = 0, 0
        # Characters of the value that was read last.
        self.length = 0

    def next_letter(self) -> str:
        """Move past blank space and return the letter there, ``""`` at the end of the file."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def expect(self, letters: str, problem: str) -> str:
        """Move past one of ``letters`` and return it.

        Raises
        ------
        InputError
            If another one comes, with ``problem``.
        """
        letter = self.next_letter()
        if not letter or letter not in letters:
            raise self.wrong(problem)
        self._at += 1
        return letter

    def value(self) -> Any:
        """Return the next value, whole.

        Raises
        ------
        InputError
            If it is not JSON, nested too deeply, or longer than an entry may be.
        """
        if not self.next_letter():
            raise self.wrong("Expecting value")
        while True:
            text, at = self._text, self._at
            try:
                value, end = self._scan(text, at)
            except InputError:
                raise
            except json.JSONDecodeError as error:
                problem, where = error.msg, error.pos
            except RecursionError:
                raise InputError(
                    "is nested too deeply (a file of ours has at most four levels)", file=self.file
                ) from None
            except ValueError:
                raise InputError(
                    "is not valid JSON: a number has too many digits", file=self.file
                ) from None
            else:
                # A number at the very end of a piece may go on in the next one.
                if self._ended or (
                    end < len(text) and (text[end] in _AFTER_A_VALUE or end < len(text) - _CUT)
                ):
                    self._at, self.length = end, end - at
                    return value
                problem, where = "", len(text)
            cut = where >= len(text) - _CUT or problem.startswith("Unterminated")
            if self._ended or not cut:
                raise self.wrong(problem, where)
            if len(text) - at > MAX_ENTRY_CHARACTERS:
                raise InputError(
                    f"holds an entry of more than {MAX_ENTRY_CHARACTERS:,} characters",
                    file=self.file,
                    item=f"line {self._place(at)[0]}",
                )
            self._more()

    def entries(self) -> Iterator[Any]:
        """Yield the entries of the list that begins here, one by one."""
        self.expect("[", "Expecting '['")
        if self.next_letter() == "]":
            self._at += 1
            return
        while True:
            yield from self._several()
            yield self.value()
            if self.expect(",]", "Expecting ',' delimiter") == "]":
                return
            self.next_letter()

    def _several(self) -> list[Any]:
        """Return some entries at once: what comes up to a ``},`` if that is a list by itself.

        JSON is read from left to right: whatever follows cannot change what a whole list of entries
        meant. Where it is none, or none ends near, entries are read one by one.
        """
        text, at = self._text, self._at
        cut = text.rfind("},", at, at + _BATCH)
        if cut < 0:
            return []
        several = f"[{text[at : cut + 1]}]"
        try:
            entries, end = self._scan(several, 0)
        except InputError:
            raise
        except (ValueError, RecursionError):
            return []
        if end != len(several):
            return []
        self._at = cut + 2
        self.next_letter()
        return list(entries)

    def object_keys(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; whoever asks reads the value after each."""
        self.expect("{", "Expecting '{'")
        if self.next_letter() == "}":
            self._at += 1
            return
        while True:
            if self.next_letter() != '"':
                raise self.wrong("Expecting property name enclosed in double quotes")
            key = self.value()
            self.expect(":", "Expecting ':' delimiter")
            yield key
            if self.expect(",}", "Expecting ',' delimiter") == "}":
                return

    def end(self) -> None:
        """Refuse anything after the object."""
        if self.next_letter():
            raise self.wrong("Extra data")

    def wrong(self, problem: str, where: int | None = None) -> InputError:
        """Return an error at a place of the text that is held; here by default."""
        line, column = self._place(self._at if where is None else where)
        return InputError(
            f"is not valid JSON at line {line}, column {column}: {problem}", file=self.file
        )

    def _place(self, where: int) -> tuple[int, int]:
        """Return line and column, both from 1, of a place of the text that is held."""
        begin = self._text.rfind("\n", 0, where)
        column = where - begin if begin >= 0 else self._column + where + 1
        return self._lines + self._text.count("\n", 0, where) + 1, column

    def _more(self) -> bool:
        """Read on, more than is held; return whether there was more."""
        line, column = self._place(self._at)
        kept = [self._text[self._at :]]
        self._text, self._at, self._lines, self._column = "", 0, line - 1, column - 1
        held, many = len(kept[0]), 0
        wanted = max(min(3 * held, MAX_ENTRY_CHARACTERS - held), PIECE)
        while many < wanted:
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                break
            kept.append(piece)
            many += len(piece)
        self._text = "".join(kept)
        return many > 0


# Takes an entry of a list and its number, from 1.
Take = Callable[[int, Any], None]


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


def read_object(
    data: bytes, file: str, form: FileFormat, lists: Mapping[str, Take] | None = None
) -> dict[str, Any]:
    """Read one file, gzipped or not, and return its keys, ``format`` and ``version`` among them.

    Parameters
    ----------
    lists
        By key, what takes the entries of a list one by one; the number of entries then stands for
        the list.

    Raises
    ------
    InputError
        If it is no JSON object, its header is not the one expected, a key is unknown or given
        twice, or it is larger than the format allows.
    """
    hook = partial(object_of, file=file, most=form.limits.keys)
    stream = JsonStream(text_pieces(data, file, form.limits), file, hook)
    letter = stream.next_letter()
    if not letter:
        raise InputError("is empty", file=file)
    if letter != "{":
        got = shown(stream.value())
        raise InputError(f"must be one JSON object in braces (got {got})", file=file)
    record = _object(stream, form, lists or {})
    stream.end()
    check_header(record, form.name, form.version, file)
    return record


def _object(stream: JsonStream, form: FileFormat, lists: Mapping[str, Take]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    known, rest = ("format", "version", *form.keys), 0
    for key in stream.object_keys():
        if key in record:
            raise InputError("is given twice in one object", file=stream.file, field=printable(key))
        if len(record) >= form.limits.keys:
            raise _too_many_keys(form.limits.keys, stream.file)
        if form.keys and key not in known:
            _check_known_header(record, form, stream.file)
            raise InputError(unknown(key, known), file=stream.file, field=printable(key))
        if stream.next_letter() == "[" and key in lists:
            _check_known_header(record, form, stream.file)
            record[key] = _listed(stream, form, key, lists[key])
        else:
            record[key] = stream.value()
            rest += stream.length
            if rest > MAX_REST_CHARACTERS:
                problem = f"holds more than {MAX_REST_CHARACTERS:,} characters besides its lists"
                raise InputError(problem, file=stream.file, field=printable(key))
    return record


def _listed(stream: JsonStream, form: FileFormat, key: str, take: Take) -> EntryCount:
    number, most = 0, form.limits.entries
    for number, entry in enumerate(stream.entries(), 1):
        check_count(number, most, "entries a file may have", stream.file, key)
        take(number, entry)
    return EntryCount(number)


def _check_known_header(record: dict[str, Any], form: FileFormat, file: str) -> None:
    """Say that a file is another one before its first strange key is named."""
    if "format" in record:
        given = {"version": form.version, **record}
        check_header(given, form.name, form.version, file)


def object_of(pairs: Pairs, file: str, most: int) -> dict[str, Any]:
    """Return an object.

    Raises
    ------
    InputError
        If it has a key twice, or more keys than there may be.
    """
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(
            "is given twice in one object",
            file=file,
            item=_owner(record),
            field=printable(twice),
        )
    if len(pairs) > most:
        raise _too_many_keys(most, file, _owner(record))
    return record


def _owner(record: dict[str, Any]) -> str:
    owner = record.get("id")
    return f"task {printable(owner)}" if isinstance(owner, str) and owner.strip() else ""


def _too_many_keys(most: int, file: str, item: str = "") -> InputError:
    return InputError(f"holds an object of more than {most} keys", file=file, item=item)


class EntryCount(int):
    """How many entries a list had that were passed on one by one."""


def count_of(record: Mapping[str, Any], key: str, what: str, file: str) -> int:
    """Return how many entries of a list :func:`read_object` passed on.

    Raises
    ------
    InputError
        If the list is missing or is none.
    """
    count = record.get(key)
    if isinstance(count, EntryCount):
        return count
    got = f"got {shown(count)}" if key in record else "is missing"
    raise InputError(f"must be a list of {what} in brackets ({got})", file=file, field=key)


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
    if got_version > version:
        raise InputError(
            f"{shown(got_version)} is newer than this program, which reads up to version {version}; "
            "update the program",
            file=file,
            field="version",
        )
    if got_version < 1:
        raise InputError(
            f"must be {version} (got {shown(got_version)})", file=file, field="version"
        )


def named(entry: Any, key: str, noun: str, number: int) -> str:
    """Return what errors call an entry: its name if it has a readable one, else its number."""
    name = entry.get(key) if isinstance(entry, dict) else None
    return f"{noun} {printable(name) if isinstance(name, str) and name.strip() else number}"


def without_header(record: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Return the keys of a file besides its header and ``others``."""
    return {key: record[key] for key in record if key not in ("format", "version", *others)}
