"""A command: its options, what they ask for before it begins, and its answer, which is printed here and nowhere else.

Whatever goes wrong with a file is an :class:`InputError`; progress goes to standard error.
"""

import argparse
import json
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from topox_core.cli.shared.files import must_be_writable
from topox_core.cli.shared.manifest import with_manifest
from topox_core.cli.shared.options import Group, Option, fields_as_options
from topox_core.cli.shared.printing import note
from topox_core.errors import refuse_if

Arguments = argparse.Namespace
Lines = Iterable[str | None]


@dataclass(frozen=True)
class Answer:
    """What a command found.

    Attributes
    ----------
    record
        What ``--json`` prints; None where a command has lines alone.
    lines
        What it prints for people, made only then: a table, or lines and tables; None is no line.
    status
        Exit status.
    figures
        Where the figures of machines and prices that it rests on are from
        (:func:`~topox_core.studies.buying.offers.sources_of`).
    """

    record: Mapping[str, Any] | None = None
    lines: str | Lines = ()
    status: int = 0
    figures: Mapping[str, str] = field(default_factory=dict)

    def show(self, options: Arguments) -> int:
        """Print the answer as the user asked for it, as one JSON object or for people; return the exit status."""
        if self.record is not None and options.json:
            print(json.dumps(with_manifest(options, self.record, self.figures), allow_nan=False))
        else:
            for line in [self.lines] if isinstance(self.lines, str) else self.lines:
                if line is not None:
                    print(line)
        return self.status


# One that has printed its answer itself returns its exit status.
Run = Callable[[Arguments], Answer | int]


@dataclass(frozen=True)
class Command:
    """A command with its options.

    Attributes
    ----------
    listing
        What ``--list`` answers.
    flags
        Options that errors name otherwise than by their field.
    """

    description: str
    options: tuple[Option | Group, ...]
    run: Run
    listing: Run | None = None
    flags: Mapping[str, str] = field(default_factory=dict)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser the command's options."""
        written = tuple(one.key for one in self._each() if one.over is not None)
        parser.description = self.description
        parser.set_defaults(run=self.answered, written=written)
        for one in self.options:
            one.add_to(parser)

    def answered(self, options: Arguments) -> int:
        """Run the command, print its answer and return the exit status."""
        if self.listing is not None and options.listing:
            found = self.listing(options)
        else:
            for option in self._each():
                _check(option, options)
            fields = {one.field or one.key: one.spoken for one in self._each()}
            with fields_as_options({**fields, **self.flags}):
                found = self.run(options)
        return found.show(options) if isinstance(found, Answer) else found

    def _each(self) -> Iterator[Option]:
        for one in self.options:
            yield from one.options if isinstance(one, Group) else (one,)


def command(
    description: str,
    *options: Option | Group,
    listing: Run | None = None,
    flags: Mapping[str, str] | None = None,
) -> Callable[[Run], Command]:
    """Return what makes a command of a function; the attributes of :class:`Command` say what is what."""
    return lambda run: Command(description, options, run, listing, flags or {})


@dataclass(frozen=True)
class Commands:
    """A command that has commands, by name, each with its line in their list; ``dest`` is what the help calls them."""

    description: str
    parts: Mapping[str, tuple[Command, str]]
    dest: str = "part"

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Give a parser these commands."""
        parser.description = self.description
        parts = parser.add_subparsers(dest=self.dest, metavar=self.dest.upper(), required=True)
        for name, (one, brief) in self.parts.items():
            one.add_to(parts.add_parser(name, allow_abbrev=False, help=brief))


def _check(option: Option, options: Arguments) -> None:
    """Refuse now what is left out though it is needed, and a file that could not be written later."""
    value, endings = getattr(options, option.key), option.endings
    ends = not value or not endings or value.removesuffix(".gz").endswith(endings)
    refuse_if(
        (not value and option.needed, option.needed),
        (not ends, f"must end in {' or '.join(endings)}"),
        file="command line",
        field=option.spoken,
    )
    if value and option.over is not None:
        must_be_writable(
            value, [path for name in option.over for path in _paths(getattr(options, name))]
        )


def _paths(value: str | list[str] | None) -> list[str]:
    """Return the files that an option names."""
    return [value] if isinstance(value, str) else value or []


@contextmanager
def ctrl_c_stops(
    kept: str = "the best schedule so far is kept",
) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a stop was asked for; asking again ends the command at once.

    Batch systems ask by SIGTERM, and kill a while later. ``kept`` says what becomes of the work.
    """
    asked = threading.Event()

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        note(f"stopping; {kept} (Ctrl-C again ends at once)")

    asking = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(one, on_interrupt) for one in asking]
    try:
        yield asked.is_set
    finally:
        for one, handler in zip(asking, before, strict=True):
            signal.signal(one, handler)
