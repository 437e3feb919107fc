"""The manifest of a JSON answer: which program made it of which inputs, what was asked, how far it is proved, whose figures it has."""

import argparse
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from topox_core.economics.parts import Catalogue
from topox_core.library.rows import RunRecord
from topox_core.runs.identity import code_version
from topox_core.studies.offers import FIGURES, SwitchProduct
from topox_core.training.machine import Machine, figures

FORMAT, VERSION = "topox-manifest", 1
# What a bound of a schedule holds for, where an answer does not say itself.
ANY_SCHEDULE = (
    "any schedule of this task graph on this cluster, whatever it chooses of what was left open"
)
CHECKER = "topox_core.check, which shares no code with what schedules"
# Keys of an answer that say how far it is proved, and for what.
_VALIDITY = ("status", "stopped_by", "checked", "gap", "bound_by", "bound_for")
# What no question is about.
_ABOUT_ITSELF = ("command", "run", "json", "part", "library", "no_library", "keep", "written")


def manifest(
    options: argparse.Namespace,
    record: Mapping[str, Any],
    figures_from: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of a command's answer.

    Parameters
    ----------
    figures_from
        By figure of a machine or a price: ``measured``, ``published``, ``assumed``, ... (:func:`sources_of`).
    """
    named = vars(options).items()
    given = {key: value for key, value in named if key not in _ABOUT_ITSELF and _is_given(value)}
    # What stood where the command writes is no input.
    read = [value for key, value in given.items() if key not in options.written]
    words = (getattr(options, name, "") for name in ("command", "part"))
    inputs = {file: _digest(file) for file in _files(read)}
    return _made(record, code_version(), " ".join(filter(None, words)), inputs, given, figures_from)


def manifest_of_run(run: RunRecord, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a kept run's result: what made it then, not what reads it now; inputs by kind."""
    inputs = {kind: one for kind in ("graph", "cluster") if (one := getattr(run, kind))}
    asked = {"subject": run.subject, "settings": dict(run.settings), "seed": run.seed}
    return _made(result, run.version, run.kind, inputs, asked, {})


def _made(
    record: Mapping[str, Any],
    code: str,
    command: str,
    inputs: Mapping[str, str],
    asked: Mapping[str, Any],
    figures_from: Mapping[str, Any],
) -> dict[str, Any]:
    settings = record.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    validity = {key: record[key] for key in _VALIDITY if key in record}
    if "bound_ms" in record:
        validity.setdefault("bound_for", ANY_SCHEDULE)
    if "checked" in record:
        validity["checked_by"] = CHECKER
    return {
        "format": FORMAT,
        "version": VERSION,
        "program": f"topox-workbench {code}",
        "command": command,
        "inputs": dict(inputs),
        "options": dict(asked),
        "seed": record.get("seed", settings.get("seed", asked.get("seed"))),
        "effort": record.get("effort"),
        "validity": validity,
        "figures": dict(figures_from),
    }


def sources_of(
    machine: Machine | None = None,
    prices: Catalogue | None = None,
    offers: Iterable[SwitchProduct] = (),
) -> dict[str, str]:
    """Return where the figures of a machine, of parts and of switches on offer are from, a word each."""
    found: dict[str, str] = {}
    if machine is not None:
        found |= {f"{machine.name}.{one.field}": one.status for one in figures(machine)}
    for part in () if prices is None else prices.parts:
        found |= {f"{part.id}.price_usd": part.price_from, f"{part.id}.power_w": part.power_from}
    for offer in offers:
        for field in FIGURES:
            found[f"{offer.key}.{field}"] = offer.figure(field).provenance
    return found


def _is_given(value: object) -> bool:
    if value is None or value is False or value == []:
        return False
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _files(values: Iterable[Any]) -> list[str]:
    """Return those of some values, and of lists of them, that name a file."""
    texts = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return [one for one in texts if isinstance(one, str) and len(one) < 4096 and _is_file(one)]


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _digest(file: str) -> str:
    with Path(file).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
