"""A job that the ``rails`` commands run: a preset by its name, with keys that ``--set`` changes."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from topox_core.cli.options import Option, add_options, key_and_value, wrong_option
from topox_core.cli.printing import as_json, table
from topox_core.errors import InputError, printable, unknown
from topox_core.io.record import record_of

if TYPE_CHECKING:
    from topox_core.rails.presets import Preset


def add_preset(command: argparse.ArgumentParser) -> None:
    """Add the preset by its name, ``--list`` and ``--set``."""
    add_options(
        command,
        Option("preset PRESET", str, "a job, such as llama3-8b-perlmutter", nargs="?"),
        Option("--list", bool, "show the presets", dest="listing"),
    )
    add_changes(command)


def add_changes(command: argparse.ArgumentParser) -> None:
    """Add the option that changes keys of a preset."""
    Option(
        "--set KEY=VALUE",
        str,
        "change a key of the preset (gpus, tensor, pipeline, data, microbatches, shape, ...); "
        "may be repeated",
        [],
        dest="changes",
        repeated=True,
    ).add_to(command)


def preset_of(options: argparse.Namespace) -> Preset:
    """Return the preset with what ``--set`` changes.

    Raises
    ------
    InputError
        If there is none of that name, a key is unknown, or the values do not go together.
    """
    from topox_core.rails.presets import Preset, preset

    if options.preset is None:
        raise wrong_option("PRESET", "is needed (--list shows them)")
    try:
        base = preset(options.preset)
    except InputError as error:
        raise wrong_option("PRESET", error.problem) from None
    kinds = {
        field.name: str(field.type)
        for field in fields(Preset)
        if field.name not in ("name", "title", "source")
    }
    changes: dict[str, Any] = {}
    for pair in options.changes:
        key, text = key_and_value(pair)
        if key not in kinds:
            raise wrong_option("--set", f"{printable(key)}: {unknown(key, kinds)}")
        changes[key] = _value(key, text, kinds[key])
    return base.changed(**changes, title=f"{base.title}, changed") if changes else base


def _value(key: str, text: str, kind: str) -> Any:
    from topox_core.training.shapes import SHAPES

    if kind == "Shape":
        if text not in SHAPES:
            raise wrong_option("--set", f"shape: {unknown(text, SHAPES, 'model')}")
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
        raise wrong_option("--set", f"{key} must be {expected} (got {text[:60]!r})") from None
    return text


def list_presets(as_record: bool) -> int:
    """Print the presets."""
    from topox_core.rails.presets import PRESETS

    if as_record:
        as_json(
            {"presets": [record_of(one, "name title words source") for one in PRESETS.values()]}
        )
    else:
        table(
            ("preset", "job", "degrees"),
            *((one.name, one.title, one.words) for one in PRESETS.values()),
        )
    return 0
