"""Options of commands, and those that several share: cluster keys, the model's switches, when to stop, fabrics."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from topox_core.errors import InputError, errors_at, refuse_if
from topox_core.fabrics.options import FabricOptions
from topox_core.model.cluster import Cluster
from topox_core.model.lowering_choices import Lowering
from topox_core.schedule.settings import AUTO, DEFAULT, Settings, lowering_and_free
from topox_core.schema.fields import Field, fields_of
from topox_core.text.numbers import uncapitalised

# Fields whose options have another name.
_FLAGS = {
    "tick": "tick_ms",
    "time_limit_s": "time_limit",
    "regional_packet_ports": "packet_ports",
}
T = TypeVar("T")


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
tick = reader(
    lambda text: text if text in ("auto", "slot") else float(text), "auto, slot or a length in ms"
)


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
strides = reader(
    lambda text: tuple(map(int, text.split(","))),
    "whole numbers",
    lambda values: min(values) >= 1 and len(set(values)) == len(values),
    "different whole numbers of at least 1, such as 1,3",
)


def algorithms(text: str) -> tuple[dict[str, str], str]:
    """Read algorithms such as ``all_reduce=tree,broadcast=chain(8)``, the other kinds ``auto`` or ``default``.

    Return those that are named by kind of collective, and what the other kinds have.
    """
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.partition("=") for part in parts if part not in (AUTO, DEFAULT)]
    others = [part for part in parts if part in (AUTO, DEFAULT)]
    if len(others) > 1 or not all(sign and key and name for key, sign, name in pairs):
        raise argparse.ArgumentTypeError(
            f"must be auto, default, or KIND=NAME such as all_reduce=ring,all_to_all=pairwise (got {text!r})"
        )
    words = {key.strip(): name.strip() for key, _, name in pairs}
    return words, others[0] if others else AUTO


# Choices of a lowering that are written in a way of their own.
_LOWERING: dict[str, tuple[str, Callable[[str], object]]] = {
    "rings": ("--rings K|auto", lambda text: AUTO if text == AUTO else positive(text)),
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
    needed
        What an error says if it is left out; ``--list`` needs nothing.
    over
        Of a file to be written: the options whose files it may not replace. It is seen before a
        command begins that it can be written.
    endings
        Of a file to be written: how its name may end.
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
            keys |= {"choices": self.read, "metavar": "|".join(self.read)}
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


_READ_AS: dict[object, tuple[Callable[[str], object], str]] = {
    int: (whole, "N"),
    float: (number, "X"),
    str: (str, "TEXT"),
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
        if error.file not in ("", "settings", "topology", "command line"):
            raise
        field = error.field.partition("[")[0]  # an option holds its whole list
        if flags and field in flags:
            field = flags[field]
        elif hasattr(options, field):
            field = f"--{field.replace('_', '-')}"
        raise InputError(error.problem, file="command line", item=error.item, field=field) from None


def errors_of_option(name: str) -> AbstractContextManager[None]:
    """Name an option in the error of what it asks for."""
    return errors_at("command line", field=name)


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


def options_of(record: type, *names: str, prefix: str = "") -> tuple[Option, ...]:
    """Return the options of some fields of a record, of all without names; a value that is left out is None.

    Each says the field's default, except where a ``prefix`` of its name among the options says that
    the record is given and only changed.
    """
    options = []
    for name, one in fields_of(record).items():
        if name in names or not names:
            words = uncapitalised(one.description or one.title)
            aside = (one.unit if prefix else f"default {one.default:g} {one.unit}").strip()
            words += f" ({aside})" if aside else ""
            options.append(option_of(one, name, f"{prefix}{name}")._replace(help=words))
    return tuple(options)


def _of_settings(*names: str) -> tuple[Option, ...]:
    """Return the options of some settings, each with the field's words."""
    fields = fields_of(Settings)
    return tuple(option_of(fields[name], _FLAGS.get(name, name), dest=name) for name in names)


def _said_by_settings(usage: str, name: str, read: Callable[[str], object] = str) -> Option:
    """Return the option of a setting whose value the settings check themselves."""
    return Option(usage, read, fields_of(Settings)[name].description, dest=name)


def planner(engines: str, who: str) -> tuple[Option, ...]:
    """Return who plans circuits (``--engine``), on which clock (``--clock``, ``--tick-ms``), and whether they switch."""
    return (
        Option(f"--engine {engines}", str, who),
        _said_by_settings("--tick-ms X|slot|auto", "tick", tick),
        _said_by_settings("--clock continuous|slots", "clock"),
        ITERATION,
        _said_by_settings("--switching auto|planned|provisioned|fixed", "switching"),
    )


ITERATION = _said_by_settings("--iteration repeated|first", "iteration")
# The model's preset, and its switches one by one.
PRESET = _of_settings("model", "circuits")
MODEL = Group("model", (*PRESET, *_of_settings("share_circuits", "exclusive_devices", "any_port")))
# How collectives become transfers.
LOWERING = Group(
    "collectives",
    tuple(
        Option(*_LOWERING[name], field.help) if name in _LOWERING else option_of(field, name)
        for name, field in fields_of(Lowering).items()
    ),
)
# When a solve stops, and what makes it repeatable.
LIMITS = Group("solve", _of_settings("time_limit_s", "gap", "seed", "threads"))
_CLUSTER = "cluster_"
# One option a cluster key, so that each can be changed without touching the file.
CLUSTER_KEYS = Group(
    "cluster keys, in place of the file's",
    tuple(
        option_of(field, name, dest=f"{_CLUSTER}{name}")
        for name, field in fields_of(Cluster).items()
        if name != "name"
    ),
)
SOLVE = (MODEL, LOWERING, LIMITS, CLUSTER_KEYS)


def given_of(options: argparse.Namespace, keys: Iterable[str], prefix: str = "") -> dict[str, Any]:
    """Return the values of those of some options that a command has and that were given, by key."""
    return {
        key: value
        for key in keys
        if (value := getattr(options, f"{prefix}{key}", None)) is not None
    }


def cluster_overrides(options: argparse.Namespace) -> dict[str, object]:
    """Return the cluster keys that were given, by name."""
    return given_of(options, fields_of(Cluster), _CLUSTER)


def settings(options: argparse.Namespace, **usual: Any) -> Settings:
    """Return the settings that the options describe: the model's preset, what is usual, what was given on top."""
    model: Any = getattr(options, "model", None) or "physical"
    fixed = given_of(options, fields_of(Lowering))
    others = None
    if "algorithm" in fixed:
        fixed["algorithm"], others = fixed["algorithm"]
    lowering, free = lowering_and_free(fixed, model, others)
    changes = usual | given_of(options, fields_of(Settings).keys() - {"model"})
    return Settings.of(model, **{**changes, "lowering": lowering, "free": free})


_SHAPE = ("oversubscription", "servers_per_rack", "equivalent_gbps")
_FABRIC_FIELDS = tuple(name for name in fields_of(FabricOptions) if name != "layout")
# How fabrics are built.
FABRICS = Group(
    "fabrics",
    (
        Option(
            "--fat-tree",
            ("same-cost", "full"),
            "a fat-tree of the cost of the circuits (default), or of their full bandwidth d_S B",
        ),
        *(
            option_of(fields_of(FabricOptions)[name], _FLAGS.get(name, name), dest=name)
            for name in _FABRIC_FIELDS
        ),
    ),
)


def fabric_options(options: argparse.Namespace, cluster: Cluster) -> FabricOptions:
    """Return the options of the fabrics; the fat-tree costs the same as the circuits unless another is described.

    Raises
    ------
    InputError
        If the fat-tree is described twice.
    """
    from topox_core.fabrics.comparison.compare import default_options

    chosen = given_of(options, _FABRIC_FIELDS)
    described = not chosen.keys().isdisjoint(_SHAPE)
    refuse_if(
        (
            options.fat_tree is not None and described,
            "describes another fat-tree than the options of its racks or its NIC: leave it out",
        ),
        file="command line",
        field="--fat-tree",
    )
    if options.fat_tree != "full" and not described:
        chosen["equivalent_gbps"] = default_options(cluster).equivalent_gbps
    return FabricOptions(**chosen)
