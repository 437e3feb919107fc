"""Options of commands: how they are read, those of the fields of a record, and the record that they make."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar, cast

from topox_core.errors import InputError, errors_at, refuse_if
from topox_core.schema.fields import Field, fields_of
from topox_core.text.numbers import uncapitalised

T = TypeVar("T")
# What errors of values call their place where it is no file.
_NO_FILES = (
    "",
    "settings",
    "search",
    "strategy",
    "demand",
    "topology",
    "command line",
    "command line, network",
)


def reader(
    read: Callable[[str], T],
    what: str,
    may_be: Callable[[Any], bool] = lambda _: True,
    limits: str = "",
) -> Callable[[str], T]:
    """Return how an option reads its value; ``what`` and ``limits`` say what it must be."""

    def value_read(text: str) -> T:
        try:
            value = read(text)
        except (ValueError, KeyError):
            raise argparse.ArgumentTypeError(f"must be {what} (got {text!r})") from None
        if not may_be(value):
            raise argparse.ArgumentTypeError(f"must be {limits} (got {text})")
        return value

    return value_read


whole = reader(int, "a whole number")
number = reader(float, "a number")
positive = reader(int, "a whole number", lambda value: value >= 1, "at least 1")
above_zero = reader(float, "a number", lambda value: value > 0, "greater than 0")
yes_or_no = reader(lambda text: {"yes": True, "no": False}[text.lower()], "yes or no")


def _spans(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if not 0 <= first <= last < min(1 << 63, first + 100_000):
            raise ValueError
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


numbered = reader(_spans, "numbers such as 7, 0-7 or 0,2,4, at most 100,000 of them")


# Fields whose options are written otherwise: under another name, or with a reader of their own.
Written = Mapping[str, str | tuple[str, Callable[[str], object]]]


class Option(NamedTuple):
    """One option or argument of a command: a row of its table.

    Attributes
    ----------
    usage
        Name and, after a space, what the help calls the value: ``--seed N``.
    read
        How the value is read; a tuple lists the words that it may be; ``bool`` takes no value.
    repeated
        Whether it may be given several times; its values are a list.
    const
        What stands for a value that may be left out (``nargs="?"``).
    needed
        What an error says if it is left out; ``--list`` needs nothing.
    over
        Of a file to be written: the options whose files it may not replace. It is seen before a
        command begins that it can be written.
    endings
        Of a file to be written: how its name may end.
    field
        The field of a record that it is, if that is not what its value is called.
    """

    usage: str
    read: Callable[[str], object] | tuple[str, ...]
    help: str | None = None
    default: object = None
    dest: str | None = None
    nargs: str | int | None = None
    const: object = None
    required: bool = False
    repeated: bool = False
    needed: str = ""
    over: tuple[str, ...] | None = None
    endings: tuple[str, ...] = ()
    field: str = ""

    @property
    def key(self) -> str:
        """What the value is called among the options of a command."""
        return self.dest or self.usage.partition(" ")[0].lstrip("-").replace("-", "_")

    @property
    def spoken(self) -> str:
        """What errors call it: the flag, or an argument as the help has it."""
        name, _, metavar = self.usage.partition(" ")
        return name if name.startswith("-") else metavar

    def add_to(self, group: argparse._ActionsContainer) -> None:
        """Add the option to a command or to a group of its options."""
        name, *metavars = self.usage.split(" ")
        keys: dict[str, Any] = {"help": self.help, "default": self.default}
        if self.read is bool:
            keys |= {"action": "store_true", "default": False}
        elif isinstance(self.read, tuple):
            words = dict(zip(self.read, self.read, strict=True))
            one_of = reader(words.__getitem__, f"one of {', '.join(self.read)}")
            keys |= {"type": one_of, "metavar": "|".join(self.read)}
        else:
            metavar = tuple(metavars) if isinstance(self.nargs, int) else " ".join(metavars)
            keys |= {"type": self.read, "metavar": metavar}
        if self.const is not None:
            keys["const"] = self.const
        if self.repeated:
            keys["action"] = "append"
        keys |= {key: one for key in ("dest", "nargs", "required") if (one := getattr(self, key))}
        group.add_argument(name, **keys)


class Group(NamedTuple):
    """Options of a command under a heading of their own."""

    title: str
    options: tuple[Option, ...]

    def add_to(self, command: argparse._ActionsContainer) -> None:
        """Add them to a command."""
        group = command.add_argument_group(self.title)
        for one in self.options:
            one.add_to(group)


JSON = Option("--json", bool, "print one JSON object instead of a table")
# The two files that most commands read.
GRAPH = Option(
    "graph GRAPH",
    str,
    "task graph: .json, .csv or .fbuf, each also .gz; or a training job: .job.json",
)
FILES = (
    GRAPH,
    Option(
        "cluster CLUSTER",
        str,
        "cluster: .cluster.json, or InfraGraph; a training job suggests one itself",
        nargs="?",
    ),
)


_NUMBERS: dict[object, tuple[Callable[[str], object], str]] = {
    int: (whole, "N"),
    float: (number, "X"),
}


def key_and_value(pair: str) -> tuple[str, str]:
    """Read ``KEY=VALUE``."""
    key, sign, value = (part.strip() for part in pair.partition("="))
    if not sign or not key:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE (got {pair[:80]!r})")
    return key, value


def changes_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return what ``--set`` changes, by key.

    Raises
    ------
    InputError
        If a key is given twice.
    """
    changes: dict[str, str] = {}
    for key, text in pairs:
        refuse_if((key in changes, "is given twice"), file="command line", item="--set", field=key)
        changes[key] = text
    return changes


def setting_option(usage: str, help: str, dest: str = "changes") -> Option:
    """Return an option that changes values by their keys, again and again; :func:`changes_of` takes it."""
    return Option(
        usage, key_and_value, f"{help}; may be given several times", [], dest, repeated=True
    )


def value_of(text: str) -> Any:
    """Return the value of ``KEY=VALUE`` as a file would have it; what is no number, truth, list or object is a word."""
    text = text.strip()
    words = {"yes": True, "true": True, "no": False, "false": False, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    for read in (int, float, json.loads):
        with suppress(ValueError, RecursionError):
            return read(text)
    return text


def listed(text: str) -> tuple[str, ...]:
    """Read words separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


@contextmanager
def fields_as_options(flags: Mapping[str, str]) -> Iterator[None]:
    """Name the option in the error of a field that it sets; what is wrong in a file stays as it is."""
    try:
        yield
    except InputError as error:
        if error.file not in _NO_FILES:
            raise
        name = error.field.partition("[")[0]  # an option holds its whole list
        field = flags.get(name, name)
        raise InputError(error.problem, file="command line", item=error.item, field=field) from None


def errors_of_option(name: str) -> AbstractContextManager[None]:
    """Name an option in the error of what it asks for."""
    return errors_at("command line", field=name)


def options_of(
    record: type,
    *names: str,
    written: Written | None = None,
    usual: Mapping[str, object] | None = None,
    prefix: str = "",
    switches: bool = False,
) -> tuple[Option, ...]:
    """Return the options of some fields of a record, of all without names; :func:`of_options` makes the record again.

    A value that is left out is None, and the field's default holds.

    Parameters
    ----------
    written
        By field: what its option is called in place of ``--field-name``, or usage and reader.
    usual
        By field: the default of this command, where the field has none.
    prefix
        Of its name among the options, where a record that is given is only changed.
    switches
        Whether what is no by default takes no value: given, it is yes.
    """
    fields, written, usual = fields_of(record), written or {}, usual or {}
    return tuple(
        _option_of(fields[name], written.get(name, ""), switches)._replace(
            help=_words(fields[name], usual.get(name, fields[name].default), told=bool(prefix)),
            default=usual.get(name),
            dest=f"{prefix}{name}",
            field=name,
        )
        for name in names or fields
    )


def _option_of(
    field: Field, written: str | tuple[str, Callable[[str], object]], switch: bool
) -> Option:
    """Return the option of a field: a number, a word of some, yes or no, or as it is written."""
    if isinstance(written, tuple):
        return Option(*written)
    kinds, usage = dict(field.alternatives), written or f"--{field.name.replace('_', '-')}"
    if bool in kinds:
        bare = switch and field.default is False
        return Option(usage, bool) if bare else Option(f"{usage} yes|no", yes_or_no)
    for kind, (read, metavar) in _NUMBERS.items():
        if kind in kinds:
            return Option(f"{usage} {metavar}", read)
    words = tuple(map(str, field.choices))
    return Option(usage, words) if words else Option(f"{usage} TEXT", str)


def _words(field: Field, default: object, told: bool) -> str:
    """Return the words of a field with its unit, and with its default unless they or a file tell it."""
    words, aside = uncapitalised(field.description or field.title), field.unit
    told = told or "default" in words or default in ("", ()) or isinstance(default, bool | None)
    if not told:
        value = f"{default:g}" if isinstance(default, float) else default
        aside = f"default {value} {field.unit}".strip()
    return f"{words} ({aside})".replace("%", "%%") if aside else words.replace("%", "%%")


def given_of(options: argparse.Namespace, keys: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """Return the values of those of some options that a command has and that were given, by key."""
    return {
        key: value
        for key in keys
        if (value := getattr(options, f"{prefix}{key}", None)) is not None
    }


def of_options(record: type[T], options: argparse.Namespace, **more: Any) -> T:
    """Return a record of the options that :func:`options_of` made of its fields, and of what is given besides."""
    return record(**given_of(options, fields_of(cast("type", record))) | more)
