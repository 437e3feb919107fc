"""A job that the ``rails`` commands run: a preset by its name, with keys that ``--set`` changes."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from topox_core.cli.printing import as_json, table
from topox_core.errors import InputError
from topox_core.io.errors import printable, unknown

if TYPE_CHECKING:
    from topox_core.rails.presets import Preset


def add_preset(command: argparse.ArgumentParser) -> None:
    """Add the preset by its name, ``--list`` and ``--set``."""
    command.add_argument(
        "preset", nargs="?", metavar="PRESET", help="a job, such as llama3-8b-perlmutter"
    )
    command.add_argument("--list", dest="listing", action="store_true", help="show the presets")
    add_changes(command)


def add_changes(command: argparse.ArgumentParser) -> None:
    """Add the option that changes keys of a preset."""
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="changes",
        help="change a key of the preset (gpus, tensor, pipeline, data, microbatches, shape, ...); "
        "may be repeated",
    )


def preset_of(options: argparse.Namespace) -> Preset:
    """Return the preset with what ``--set`` changes.

    Raises
    ------
    InputError
        If there is none of that name, a key is unknown, or the values do not go together.
    """
    from topox_core.rails.presets import Preset, preset

    if options.preset is None:
        raise InputError("is needed (--list shows them)", file="command line", field="PRESET")
    try:
        base = preset(options.preset)
    except InputError as error:
        raise InputError(error.problem, file="command line", field="PRESET") from None
    kinds = {
        field.name: str(field.type)
        for field in fields(Preset)
        if field.name not in ("name", "title", "source")
    }
    changes: dict[str, Any] = {}
    for pair in options.changes:
        key, sign, text = (part.strip() for part in pair.partition("="))
        if not sign or not key:
            raise InputError(
                f"must be KEY=VALUE (got {pair[:80]!r})", file="command line", field="--set"
            )
        if key not in kinds:
            raise InputError(
                f"{printable(key)}: {unknown(key, kinds)}", file="command line", field="--set"
            )
        changes[key] = _value(key, text, kinds[key])
    return base.changed(**changes, title=f"{base.title}, changed") if changes else base


def _value(key: str, text: str, kind: str) -> Any:
    from topox_core.strategy.transformers import SHAPES

    if kind == "Shape":
        if text not in SHAPES:
            raise InputError(
                f"shape: {unknown(text, SHAPES, 'model')}", file="command line", field="--set"
            )
        return SHAPES[text]
    try:
        if kind == "int":
            return int(text)
        if kind.startswith("float"):
            return None if text == "none" and "None" in kind else float(text)
        if kind == "bool":
            return {"yes": True, "no": False, "true": True, "false": False}[text.lower()]
    except (ValueError, KeyError):
        expected = {"int": "a whole number", "bool": "yes or no"}.get(kind, "a number")
        raise InputError(
            f"{key} must be {expected} (got {text[:60]!r})", file="command line", field="--set"
        ) from None
    return text


def list_presets(as_record: bool) -> int:
    """Print the presets."""
    from topox_core.rails.presets import PRESETS

    if as_record:
        as_json(
            {
                "presets": [
                    {"name": one.name, "title": one.title, "words": one.words, "source": one.source}
                    for one in PRESETS.values()
                ]
            }
        )
    else:
        table(
            [
                ("preset", "job", "degrees"),
                *((one.name, one.title, one.words) for one in PRESETS.values()),
            ]
        )
    return 0
