"""Options that several commands share: cluster keys, the model's switches, when to stop."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import Field, fields_of

if TYPE_CHECKING:
    from topox_core.schedule.settings import Settings

AUTO, DEFAULT = "auto", "default"
_LOWERING = (
    *("rings", "strides", "all_reduce_on_network", "steps", "broadcast"),
    *("algorithm", "group", "chunks", "parts"),
)
_SWITCHES = (
    "circuits",
    "share_circuits",
    "exclusive_devices",
    "any_port",
    "tick",
    "clock",
    "iteration",
    "switching",
    "engine",
    "time_limit_s",
    "gap",
    "seed",
    "threads",
)


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
# Who computes what comes in many pieces.
WORKERS = Option("--workers N", positive, "processes on this machine (default: one a core)")
SCHEDULER = Option("--scheduler ADDRESS", str, "a Dask scheduler, such as tcp://host:8786")


def add_options(group: argparse._ActionsContainer, *options: Option) -> None:
    """Add a table of options to a command or to a group of its options."""
    for one in options:
        one.add_to(group)


def add_command(
    commands: argparse._SubParsersAction[Any],
    name: str,
    run: Callable[[argparse.Namespace], int],
    brief: str,
    description: str,
) -> argparse.ArgumentParser:
    """Add a command with its line in the list of commands, and return it for its options."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, allow_abbrev=False, help=brief, description=description
    )
    command.set_defaults(run=run)
    return command


def add_files(command: argparse.ArgumentParser) -> None:
    """Add the two files that most commands read."""
    add_options(
        command,
        Option("graph GRAPH", str, "task graph: .json, .csv or .fbuf, each also .gz"),
        Option("cluster CLUSTER", str, "cluster: .cluster.json"),
    )


def iteration(where: str = "") -> Option:
    """Return the option for which iteration is timed."""
    return Option(
        "--iteration repeated|first",
        str,
        f"which iteration is timed{where}: one of many, which begins with the circuits that the last "
        "one left (default), or the first, whose first circuits are free",
    )


def add_planner(command: argparse.ArgumentParser, engines: str, who: str, where: str = "") -> None:
    """Add who plans circuits (``--engine``), on which clock (``--clock``, ``--tick-ms``), and whether they switch."""
    add_options(
        command,
        Option(f"--engine {engines}", str, who),
        Option(
            "--tick-ms X|slot|auto",
            tick,
            f"ticks of compute tasks on slots{where}; divides the slot (default auto)",
            dest="tick",
        ),
        Option(
            "--clock continuous|slots",
            str,
            f"time that the plan lives on{where}: unrounded, or whole slots (default continuous, where "
            "transfers stay on real ports)",
        ),
        iteration(where),
        Option(
            "--switching auto|planned|provisioned|fixed",
            str,
            f"how circuits may be used{where} (default auto: the fastest)",
        ),
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


def add_preset(group: argparse._ArgumentGroup) -> None:
    """Add ``--model`` and ``--circuits``."""
    add_options(
        group,
        Option(
            "--model",
            ("physical", "paper"),
            "what hardware can do (physical, the default), or the equations as printed (paper)",
        ),
        Option(
            "--circuits",
            ("continuous", "per-slot"),
            "whether a transfer stays on its switch, or circuits are drawn afresh each slot",
        ),
    )


def add_model(command: argparse.ArgumentParser) -> None:
    """Add ``--model``, ``--circuits`` and the model's switches one by one."""
    group = command.add_argument_group("model")
    add_preset(group)
    add_options(
        group,
        Option(
            "--share-circuits yes|no",
            yes_or_no,
            "transfers of one pair may share a circuit, each at full rate (eq. 6 as printed)",
        ),
        Option("--exclusive-devices yes|no", yes_or_no, "compute tasks hold their device alone"),
        Option(
            "--any-port yes|no",
            yes_or_no,
            "a server may use any switch, at most one port on each (eqs 9 and 10 as printed)",
        ),
    )


def add_lowering(command: argparse.ArgumentParser) -> None:
    """Add how collectives become transfers."""
    group = command.add_argument_group("collectives")
    add_options(
        group,
        Option(
            "--rings K|auto",
            positive_or_auto,
            "rings of a ring collective (default auto: 1, 2, 4 or one a port, whichever is fastest)",
        ),
        Option("--strides 1,3", strides, "strides of the rings instead of the smallest that fit"),
        Option(
            "--all-reduce-on-network yes|no",
            yes_or_no,
            "no: all-reduces take no time on the network (default yes)",
        ),
        Option(
            "--steps",
            ("fluid", "stepwise"),
            "one lump a member and ring, or the lock steps one by one (default fluid)",
        ),
        Option(
            "--broadcast",
            ("chain", "tree"),
            "pipelined chain, or tree that stores and forwards (default chain)",
        ),
        Option(
            "--algorithm auto|default|KIND=NAME,...",
            algorithms,
            "algorithms of collectives, e.g. all_reduce=two_level(4),all_to_all=pairwise (docs/collectives.md; "
            "default auto: the fastest on each fabric)",
        ),
        Option("--group M", positive, "neighbours of a group of two_level (default near root n)"),
        Option("--chunks C", positive, "chunks of a broadcast chain (default 8)"),
        Option("--parts K", positive, "parts of each message of such an algorithm (default 1)"),
    )


def add_limits(command: argparse.ArgumentParser) -> None:
    """Add when a solve stops and what makes it repeatable."""
    group = command.add_argument_group("solve")
    add_options(
        group,
        Option("--time-limit S", number, "seconds (default 60)", dest="time_limit_s"),
        Option("--gap X", number, "stop at this relative gap (default 0: a proof)"),
        Option("--seed N", whole, "seed of the search (default 0)"),
        Option("--threads N", positive, "cores that the solve may use (default 2)"),
    )


def settings(options: argparse.Namespace) -> Settings:
    """Return the settings that the options describe: the model's preset with what was given on top."""
    from topox_core.schedule.settings import Settings, lowering_and_free

    given = {key: value for key, value in vars(options).items() if value is not None}
    model = given.get("model", "physical")
    changes: dict[str, Any] = {key: given[key] for key in _SWITCHES if key in given}
    algorithms: Algorithms | None = given.pop("algorithm", None)
    fixed = {key: given[key] for key in _LOWERING if key in given}
    if algorithms is not None:
        fixed["algorithm"] = algorithms.words
    others = algorithms.others if algorithms is not None else None
    changes["lowering"], changes["free"] = lowering_and_free(fixed, model, others)
    return Settings.of(model, **changes)
