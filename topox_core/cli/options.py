"""Options that several commands share: cluster keys, the model's switches, when to stop."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from topox_core.errors import InputError
from topox_core.model.cluster import DUPLEXES, Cluster

if TYPE_CHECKING:
    from topox_core.schedule.settings import Settings

_LOWERING = ("rings", "strides", "all_reduce_on_network", "steps", "broadcast")
_SWITCHES = (
    "circuits",
    "share_circuits",
    "exclusive_devices",
    "any_port",
    "tick",
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
    command.add_argument(
        "graph", metavar="GRAPH", help="task graph: .json, .csv or .fbuf, each also .gz"
    )
    command.add_argument("cluster", metavar="CLUSTER", help="cluster: .cluster.json")


def add_json(command: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    command.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )


def add_planner(command: argparse.ArgumentParser, engines: str, who: str, where: str = "") -> None:
    """Add who plans circuits (``--engine``) and on which clock (``--tick-ms``)."""
    command.add_argument("--engine", metavar=engines, help=who)
    command.add_argument(
        "--tick-ms",
        dest="tick",
        type=tick,
        metavar="X|slot|auto",
        help=f"clock of compute tasks{where}; divides the slot (default auto)",
    )


def add_solve(command: argparse.ArgumentParser) -> None:
    """Add the model's switches, the lowering, when a solve stops, and the cluster keys."""
    add_model(command)
    add_lowering(command)
    add_limits(command)
    add_cluster_keys(command)


def add_choice(
    group: argparse._ActionsContainer, flag: str, choices: tuple[str, ...], meaning: str
) -> None:
    """Add an option that takes one of a few words."""
    group.add_argument(flag, choices=choices, metavar="|".join(choices), help=meaning)


def add_switch(group: argparse._ActionsContainer, flag: str, meaning: str) -> None:
    """Add an option that takes ``yes`` or ``no``."""
    group.add_argument(flag, type=yes_or_no, metavar="yes|no", help=meaning)


_READ_AS: dict[str, tuple[Callable[[str], object], str]] = {
    "int": (whole, "N"),
    "float": (number, "X"),
    "str": (str, "|".join(DUPLEXES)),
}


def on_command_line(
    error: InputError, options: argparse.Namespace, flags: Mapping[str, str] | None = None
) -> InputError:
    """Return an error of a setting with the option that holds it; one of a file stays as it is.

    Parameters
    ----------
    flags
        Options of settings that have another name; the others are called as the setting.
    """
    if error.file not in ("", "settings", "command line"):
        return error
    field = error.field
    if flags and field in flags:
        field = flags[field]
    elif hasattr(options, field):
        field = f"--{field.replace('_', '-')}"
    return InputError(error.problem, file="command line", item=error.item, field=field)


def add_cluster_keys(command: argparse.ArgumentParser) -> None:
    """Add one option a cluster key, so that each can be changed without touching the file."""
    group = command.add_argument_group("cluster keys, in place of the file's")
    for field in fields(Cluster):
        if field.name == "name":
            continue
        kind, metavar = _READ_AS[str(field.type)]
        group.add_argument(
            f"--{field.name.replace('_', '-')}",
            dest=f"cluster_{field.name}",
            type=kind,
            metavar=metavar,
        )


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
    add_choice(
        group,
        "--model",
        ("physical", "paper"),
        "what hardware can do (physical, the default), or the equations as printed (paper)",
    )
    add_choice(
        group,
        "--circuits",
        ("continuous", "per-slot"),
        "whether a transfer stays on its switch, or circuits are drawn afresh each slot",
    )


def add_model(command: argparse.ArgumentParser) -> None:
    """Add ``--model``, ``--circuits`` and the model's switches one by one."""
    group = command.add_argument_group("model")
    add_preset(group)
    add_switch(
        group,
        "--share-circuits",
        "transfers of one pair may share a circuit, each at full rate (eq. 6 as printed)",
    )
    add_switch(group, "--exclusive-devices", "compute tasks hold their device alone")
    add_switch(
        group,
        "--any-port",
        "a server may use any switch, at most one port on each (eqs 9 and 10 as printed)",
    )


def add_lowering(command: argparse.ArgumentParser) -> None:
    """Add how collectives become transfers."""
    group = command.add_argument_group("collectives")
    group.add_argument(
        "--rings", type=positive, metavar="K", help="rings of a ring collective (default 1)"
    )
    group.add_argument(
        "--strides",
        type=strides,
        metavar="1,3",
        help="strides of the rings instead of the smallest that fit",
    )
    add_switch(
        group,
        "--all-reduce-on-network",
        "no: all-reduces take no time on the network (default yes)",
    )
    add_choice(
        group,
        "--steps",
        ("fluid", "stepwise"),
        "one lump a member and ring, or the lock steps one by one (default fluid)",
    )
    add_choice(
        group,
        "--broadcast",
        ("chain", "tree"),
        "pipelined chain, or tree that stores and forwards (default chain)",
    )


def add_limits(command: argparse.ArgumentParser) -> None:
    """Add when a solve stops and what makes it repeatable."""
    group = command.add_argument_group("solve")
    group.add_argument(
        "--time-limit", dest="time_limit_s", type=number, metavar="S", help="seconds (default 60)"
    )
    group.add_argument(
        "--gap", type=number, metavar="X", help="stop at this relative gap (default 0: a proof)"
    )
    group.add_argument("--seed", type=whole, metavar="N", help="seed of the search (default 0)")
    group.add_argument(
        "--threads", type=positive, metavar="N", help="cores that the solve may use (default 2)"
    )


def settings(options: argparse.Namespace) -> Settings:
    """Return the settings that the options describe: the model's preset with what was given on top."""
    from topox_core.model.transfer_graph import Lowering
    from topox_core.schedule.settings import Settings

    given = {key: value for key, value in vars(options).items() if value is not None}
    changes: dict[str, Any] = {key: given[key] for key in _SWITCHES if key in given}
    changes["lowering"] = Lowering(**{key: given[key] for key in _LOWERING if key in given})
    return Settings.of(given.get("model", "physical"), **changes)
