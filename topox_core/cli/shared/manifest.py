"""The manifest of a command's answer and of a kept run: their files by digest, the options that were given."""

import argparse
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from topox_core.io.content import digest_of
from topox_core.io.manifest import manifest
from topox_core.library.rows import RunRecord

# What no question is about.
_ABOUT_ITSELF = ("command", "run", "json", "part", "library", "no_library", "keep", "written")


def manifest_of_answer(
    options: argparse.Namespace,
    record: Mapping[str, Any],
    figures_from: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of a command's answer; ``figures_from`` as of :func:`~topox_core.studies.buying.offers.sources_of`."""
    named = vars(options).items()
    given = {key: value for key, value in named if key not in _ABOUT_ITSELF and _is_given(value)}
    # What stood where the command writes is no input.
    read = [value for key, value in given.items() if key not in options.written]
    words = (getattr(options, name, "") for name in ("command", "part"))
    inputs = {text: _digest(Path(text)) for text in _files(read)}
    return manifest(record, " ".join(filter(None, words)), inputs, given, figures_from)


def with_manifest(
    options: argparse.Namespace,
    record: Mapping[str, Any],
    figures: Mapping[str, str] | None = None,
    found: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a result with its manifest, as it is printed and written.

    Parameters
    ----------
    found
        What the manifest says besides the result, such as the checker's verdict on it.
    """
    return {
        **record,
        "manifest": manifest_of_answer(options, {**record, **(found or {})}, figures or {}),
    }


def manifest_of_run(run: RunRecord, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a kept run's result: what made it then, not what reads it now; inputs by kind."""
    inputs = {kind: one for kind in ("graph", "cluster") if (one := getattr(run, kind))}
    asked = {"subject": run.subject, "settings": dict(run.settings), "seed": run.seed}
    return manifest(result, run.kind, inputs, asked, code=run.version)


def _is_given(value: object) -> bool:
    if value is None or value is False or value == []:
        return False
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _files(values: Iterable[Any]) -> list[str]:
    """Return those of some values, and of lists of them, that name a file or a folder."""
    texts = [one for value in values for one in (value if isinstance(value, list) else [value])]
    # Unlike a path, it says False of what cannot be a name at all.
    return [one for one in texts if isinstance(one, str) and os.path.exists(one)]  # noqa: PTH110


def _digest(path: Path) -> str:
    """Return the digest of a file, or of a folder that of the names and digests of its files."""
    if path.is_dir():
        files = (one for one in path.iterdir() if one.is_file() and os.access(one, os.R_OK))
        return digest_of({one.name: _digest(one) for one in files})
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
