"""One JSON object read entry by entry, so that only one entry of a long list is held at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from topox_core.errors import InputError
from topox_core.io.content import PIECE
from topox_core.io.limits import MAX_ENTRY_CHARACTERS

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
