"""A command: its options, what they ask for before it begins, and its answer, which is printed here and nowhere else."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from topox_core.cli.files import must_be_writable
from topox_core.cli.options import Group, Option, settings_as_options, wrong_option

Arguments = argparse.Namespace


@dataclass(frozen=True)
class Answer:
    """What a command found.

    Attributes
    ----------
    record
        What ``--json`` prints; None where a command has lines alone.
    lines
        What it prints for people, made only then.
    status
        Exit status.
    """

    record: Mapping[str, Any] | None = None
    lines: Iterable[str] = ()
    status: int = 0

    def show(self, options: Arguments) -> int:
        """Print the answer as the user asked for it, as one JSON object or for people; return the exit status."""
        if self.record is not None and options.json:
            print(json.dumps(self.record, allow_nan=False))
        else:
            for line in self.lines:
                print(line)
        return self.status


# One that has printed its answer itself returns its exit status.
Run = Callable[[Arguments], Answer | int]


@dataclass(frozen=True)
class Command:
    """A command with its options.

    Attributes
    ----------
    brief
        Its line in the list of commands.
    listing
        What ``--list`` answers.
    flags
        Options of settings that have another name; None where errors do not name settings.
    """

    name: str
    brief: str
    description: str
    options: tuple[Option | Group, ...]
    run: Run
    listing: Run | None = None
    flags: Mapping[str, str] | None = None

    def add_to(self, commands: argparse._SubParsersAction[Any]) -> None:
        """Add the command to the command line."""
        command = commands.add_parser(
            self.name, allow_abbrev=False, help=self.brief, description=self.description
        )
        command.set_defaults(run=self.answered)
        for one in self.options:
            one.add_to(command)

    def answered(self, options: Arguments) -> int:
        """Run the command, print its answer and return the exit status."""
        if self.listing is not None and options.listing:
            found = self.listing(options)
        else:
            for one in self.options:
                for option in one.options if isinstance(one, Group) else (one,):
                    _check(option, options)
            named = settings_as_options(options, self.flags)
            with nullcontext() if self.flags is None else named:
                found = self.run(options)
        return found.show(options) if isinstance(found, Answer) else found


def command(
    name: str,
    brief: str,
    description: str,
    *options: Option | Group,
    listing: Run | None = None,
    flags: Mapping[str, str] | None = None,
) -> Callable[[Run], Command]:
    """Return what makes a command of a function; the attributes of :class:`Command` say what is what."""
    return lambda run: Command(name, brief, description, options, run, listing, flags)


@dataclass(frozen=True)
class Commands:
    """A command that has commands: ``dest`` is what the help calls them."""

    name: str
    brief: str
    description: str
    parts: tuple[Command, ...]
    dest: str = "part"

    def add_to(self, commands: argparse._SubParsersAction[Any]) -> None:
        """Add them to the command line."""
        whole = commands.add_parser(
            self.name, allow_abbrev=False, help=self.brief, description=self.description
        )
        parts = whole.add_subparsers(dest=self.dest, metavar=self.dest.upper(), required=True)
        for one in self.parts:
            one.add_to(parts)


def _check(option: Option, options: Arguments) -> None:
    """Refuse now what is left out though it is needed, and a file that could not be written later."""
    value = getattr(options, option.key)
    if not value:
        if option.needed:
            raise wrong_option(option.spoken, option.needed)
        return
    if option.endings and not value.removesuffix(".gz").endswith(option.endings):
        raise wrong_option(option.spoken, f"must end in {' or '.join(option.endings)}")
    if option.over is not None:
        must_be_writable(
            value, [path for name in option.over for path in _paths(getattr(options, name))]
        )


def _paths(value: str | list[str] | None) -> list[str]:
    """Return the files that an option names."""
    return [value] if isinstance(value, str) else value or []
