"""``schema``: the JSON Schema of a kind of file, so that editors check and complete it as one types."""

from __future__ import annotations

import argparse
from typing import Any

from topox_core.cli import options as given
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.cli.printing import as_json, show, table
from topox_core.errors import unknown


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command."""
    given.add_command(
        commands,
        "schema",
        run,
        "what a kind of file may hold, as JSON Schema",
        "Print the JSON Schema of a kind of file: every key with its type, range and meaning.",
        Option("name NAME", str, "a kind of file; without it all kinds are listed", nargs="?"),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Print it."""
    from topox_core.file_schemas import DOCUMENTS, json_schema

    if options.name is None:
        rows = [(name, f"*{one.ending}", one.format) for name, one in DOCUMENTS.items()]
        return show(
            options,
            {"schemas": [dict(zip(("name", "files", "format"), r, strict=True)) for r in rows]},
            lambda: table(("name", "files", "format"), *rows),
        )
    if options.name not in DOCUMENTS:
        raise wrong_option("NAME", unknown(options.name, DOCUMENTS, "kind of file"))
    as_json(json_schema(options.name))
    return 0
