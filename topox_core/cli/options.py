"""Options that several commands share: cluster keys, the model's switches, when to stop."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.lowering_choices import Lowering
from topox_core.schedule.settings import AUTO, DEFAULT, Settings, lowering_and_free
from topox_core.schema.fields import Field, fields_of

# Fields of Settings and Lowering whose options have another name.
_FLAGS = {"tick": "tick_ms", "time_limit_s": "time_limit"}
_MODEL = ("model", "circuits")
_SWITCHES = ("share_circuits", "exclusive_devices", "any_port")
_LIMITS = ("time_limit_s", "gap", "seed", "threads")


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number (got {text!r})") from None


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    value = whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {value})")
    return value


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number (got {text!r})") from None


def yes_or_no(text: str) -> bool:
    """Read ``yes`` or ``no``."""
    if text.lower() not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"must be yes or no (got {text!r})")
    return text.lower() == "yes"


def tick(text: str) -> str | float:
    """Read a tick: ``auto``, ``slot`` or a length in ms."""
    if text in ("auto", "slot"):
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be auto, slot or a length in ms (got {text!r})"
        ) from None


def strides(text: str) -> tuple[int, ...]:
    """Read ring strides such as ``1,3``."""
    values = tuple(whole(part) for part in text.split(","))
    if any(value < 1 for value in values) or len(set(values)) < len(values):
        raise argparse.ArgumentTypeError(
            f"must be different whole numbers of at least 1, such as 1,3 (got {text!r})"
        )
    return values


def positive_or_auto(text: str) -> int | str:
    """Read a whole number of at least 1, or ``auto``."""
    return AUTO if text == AUTO else positive(text)


class Algorithms(NamedTuple):
    """Algorithms by kind of collective, and what the other kinds have: ``auto`` or ``default``."""

    words: dict[str, str]
    others: str


def algorithms(text: str) -> Algorithms:
    """Read algorithms such as ``all_reduce=tree,broadcast=chain(8)``, the other kinds ``auto`` or ``default``."""
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.partition("=") for part in parts if part not in (AUTO, DEFAULT)]
    others = [part for part in parts if part in (AUTO, DEFAULT)]
    if len(others) > 1 or not all(sign and key and name for key, sign, name in pairs):
        raise argparse.ArgumentTypeError(
            f"must be auto, default, or KIND=NAME such as all_reduce=ring,all_to_all=pairwise (got {text!r})"
        )
    words = {key.strip(): name.strip() for key, _, name in pairs}
    return Algorithms(words, others[0] if others else AUTO)


# Choices of a lowering that are written in a way of their own.
_LOWERING: dict[str, tuple[str, Callable[[str], object]]] = {
    "rings": ("--rings K|auto", positive_or_auto),
    "strides": ("--strides 1,3", strides),
    "algorithm": ("--algorithm auto|default|KIND=NAME,...", algorithms),
    "group": ("--group M", positive),
    "chunks": ("--chunks C", positive),
    "parts": ("--parts K", positive),
}


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
    """

    usage: str
    read: Callable[[str], object] | tuple[str, ...]
    help: str | None = None
    default: object = None
    dest: str | None = None
    nargs: str | None = None
    const: object = None
    required: bool = False
    repeated: bool = False

    def add_to(self, group: argparse._ActionsContainer) -> None:
        """Add the option to a command or to a group of its options."""
        name, _, metavar = self.usage.partition(" ")
        keys: dict[str, Any] = {"help": self.help, "default": self.default}
        if self.read is bool:
            keys |= {"action": "store_true", "default": False}
        elif isinstance(self.read, tuple):
            keys |= {"choices": self.read, "metavar": "|".join(self.read)}
        else:
            keys |= {"type": self.read, "metavar": metavar}
        if self.const is not None:
            keys["const"] = self.const
        if self.repeated:
            keys["action"] = "append"
        keys |= {key: one for key in ("dest", "nargs", "required") if (one := getattr(self, key))}
        group.add_argument(name, **keys)


JSON = Option("--json", bool, "print one JSON object instead of a table")


def add_options(group: argparse._ActionsContainer, *options: Options) -> None:
    """Add a table of options to a command or to a group of its options."""
    for one in options:
        (one.add_to if isinstance(one, Option) else one)(group)


class Group(NamedTuple):
    """Options of a command under a heading of their own."""

    title: str
    options: tuple[Option | Callable[[Any], object], ...]

    def __call__(self, command: argparse._ActionsContainer) -> None:
        """Add them to a command."""
        add_options(command.add_argument_group(self.title), *self.options)


# An option, a group of them, or what adds several.
Options = Option | Group | Callable[[Any], object]


def add_command(
    commands: argparse._SubParsersAction[Any],
    name: str,
    run: Callable[[argparse.Namespace], int],
    brief: str,
    description: str,
    *options: Options,
) -> argparse.ArgumentParser:
    """Add a command with its line in the list of commands and its options, and return it."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, allow_abbrev=False, help=brief, description=description
    )
    command.set_defaults(run=run)
    add_options(command, *options)
    return command


def add_files(command: argparse.ArgumentParser) -> None:
    """Add the two files that most commands read."""
    add_options(
        command,
        Option("graph GRAPH", str, "task graph: .json, .csv or .fbuf, each also .gz"),
        Option("cluster CLUSTER", str, "cluster: .cluster.json"),
    )


def add_solve(command: argparse.ArgumentParser) -> None:
    """Add the model's switches, the lowering, when a solve stops, and the cluster keys."""
    add_model(command)
    add_lowering(command)
    add_limits(command)
    add_cluster_keys(command)


_READ_AS: dict[object, tuple[Callable[[str], object], str]] = {
    int: (whole, "N"),
    float: (number, "X"),
    str: (str, "TEXT"),
}


def wrong_option(field: str, problem: str) -> InputError:
    """Return the error of an option or argument of the command line."""
    return InputError(problem, file="command line", field=field)


def key_and_value(pair: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``, what ``--set`` takes.

    Raises
    ------
    InputError
        If there is no key or no equals sign.
    """
    key, sign, value = (part.strip() for part in pair.partition("="))
    if not sign or not key:
        raise wrong_option("--set", f"must be KEY=VALUE (got {pair[:80]!r})")
    return key, value


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
def settings_as_options(
    options: argparse.Namespace, flags: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Name the option in the error of a setting that it holds; one of a file stays as it is.

    Parameters
    ----------
    flags
        Options of settings that have another name; the others are called as the setting.
    """
    try:
        yield
    except InputError as error:
        if error.file not in ("", "settings", "command line"):
            raise
        field = error.field
        if flags and field in flags:
            field = flags[field]
        elif hasattr(options, field):
            field = f"--{field.replace('_', '-')}"
        raise InputError(error.problem, file="command line", item=error.item, field=field) from None


def option_of(field: Field, flag: str, dest: str | None = None) -> Option:
    """Return the option of a field of a record: a number, a word of some, or yes or no."""
    kinds = dict(field.alternatives)
    usage = f"--{flag.replace('_', '-')}"
    if bool in kinds:
        return Option(f"{usage} yes|no", yes_or_no, field.help, dest=dest)
    for kind, (read, metavar) in _READ_AS.items():
        if kind in kinds and kind is not str:
            return Option(f"{usage} {metavar}", read, field.help, dest=dest)
    return Option(usage, tuple(map(str, field.choices)) or str, field.help, dest=dest)


def add_cluster_keys(command: argparse.ArgumentParser) -> None:
    """Add one option a cluster key, so that each can be changed without touching the file."""
    group = command.add_argument_group("cluster keys, in place of the file's")
    for name, field in fields_of(Cluster).items():
        if name != "name":
            option_of(field, name, dest=f"cluster_{name}").add_to(group)


def cluster_overrides(options: argparse.Namespace) -> dict[str, object]:
    """Return the cluster keys that were given, by name."""
    prefix = "cluster_"
    return {
        key.removeprefix(prefix): value
        for key, value in vars(options).items()
        if key.startswith(prefix) and value is not None
    }


def add_fields(group: argparse._ActionsContainer, record: type, *names: str) -> None:
    """Add the options of some fields of a record, each with the field's words."""
    for name in names:
        option_of(fields_of(record)[name], _FLAGS.get(name, name), dest=name).add_to(group)


def said_by_settings(usage: str, name: str, read: Callable[[str], object] = str) -> Option:
    """Return the option of a setting whose value the settings check themselves."""
    return Option(usage, read, fields_of(Settings)[name].description, dest=name)


ITERATION = said_by_settings("--iteration repeated|first", "iteration")


def add_planner(group: argparse._ActionsContainer, engines: str, who: str) -> None:
    """Add who plans circuits (``--engine``), on which clock (``--clock``, ``--tick-ms``), and whether they switch."""
    add_options(
        group,
        Option(f"--engine {engines}", str, who),
        said_by_settings("--tick-ms X|slot|auto", "tick", tick),
        said_by_settings("--clock continuous|slots", "clock"),
        ITERATION,
        said_by_settings("--switching auto|planned|provisioned|fixed", "switching"),
    )


def add_preset(group: argparse._ArgumentGroup) -> None:
    """Add ``--model`` and ``--circuits``."""
    add_fields(group, Settings, *_MODEL)


def add_model(command: argparse.ArgumentParser) -> None:
    """Add ``--model``, ``--circuits`` and the model's switches one by one."""
    add_fields(command.add_argument_group("model"), Settings, *_MODEL, *_SWITCHES)


def add_lowering(command: argparse.ArgumentParser) -> None:
    """Add how collectives become transfers."""
    group = command.add_argument_group("collectives")
    for name, field in fields_of(Lowering).items():
        usage, read = _LOWERING.get(name, ("", str))
        one = Option(usage, read, field.help) if usage else option_of(field, name)
        one.add_to(group)


def add_limits(command: argparse.ArgumentParser) -> None:
    """Add when a solve stops and what makes it repeatable."""
    add_fields(command.add_argument_group("solve"), Settings, *_LIMITS)


def settings(options: argparse.Namespace) -> Settings:
    """Return the settings that the options describe: the model's preset with what was given on top."""
    given = {key: value for key, value in vars(options).items() if value is not None}
    model = given.get("model", "physical")
    algorithms: Algorithms | None = given.pop("algorithm", None)
    fixed = {key: given[key] for key in fields_of(Lowering) if key in given}
    if algorithms is not None:
        fixed["algorithm"] = algorithms.words
    others = algorithms.others if algorithms is not None else None
    lowering, free = lowering_and_free(fixed, model, others)
    changes = {key: given[key] for key in fields_of(Settings) if key in given and key != "model"}
    return Settings.of(model, **{**changes, "lowering": lowering, "free": free})
