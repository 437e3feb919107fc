"""A job that the ``rails`` commands run: a preset by its name, with keys that ``--set`` changes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli.options import Option, add_options, key_and_value, wrong_option
from topox_core.cli.printing import as_json, table
from topox_core.errors import InputError, printable, unknown

if TYPE_CHECKING:
    from topox_core.training.job import Job


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


def preset_of(options: argparse.Namespace) -> Job:
    """Return the preset with what ``--set`` changes.

    Raises
    ------
    InputError
        If there is none of that name, a key is unknown, or the values do not go together.
    """
    from topox_core.rails.presets import KEYS, changed, preset, settings_of

    if options.preset is None:
        raise wrong_option("PRESET", "is needed (--list shows them)")
    try:
        base = preset(options.preset)
    except InputError as error:
        raise wrong_option("PRESET", error.problem) from None
    own = settings_of(base)
    changes: dict[str, Any] = {}
    for pair in options.changes:
        key, text = key_and_value(pair)
        if key not in KEYS:
            raise wrong_option("--set", f"{printable(key)}: {unknown(key, KEYS)}")
        changes[key] = _value(key, text, own.get(key, text))
    if not changes:
        return base
    return changed(base, changes).changed(title=f"{base.heading}, changed")


def _value(key: str, text: str, own: Any) -> Any:
    """Return text as the kind of value that a setting has, ``own`` for example; ``none`` where it may be none."""
    if isinstance(own, str) or (key == "iteration_ms" and text == "none"):
        return text if isinstance(own, str) else None
    expected = {bool: "yes or no", int: "a whole number"}.get(type(own), "a number")
    try:
        if isinstance(own, bool):
            return {"yes": True, "no": False, "true": True, "false": False}[text.lower()]
        return int(text) if isinstance(own, int) else float(text)
    except (ValueError, KeyError):
        raise wrong_option("--set", f"{key} must be {expected} (got {text[:60]!r})") from None


def list_presets(as_record: bool) -> int:
    """Print the presets."""
    from topox_core.rails.presets import PRESETS, degrees_in_words

    rows = [(one.name, one.title, degrees_in_words(one), one.source) for one in PRESETS.values()]
    if as_record:
        names = ("name", "title", "words", "source")
        as_json({"presets": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        table(("preset", "job", "degrees"), *(row[:3] for row in rows))
    return 0
