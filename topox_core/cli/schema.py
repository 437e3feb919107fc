"""``schema``: the JSON Schema of a kind of file, so that editors check and complete it as one types."""

import json

from topox_core.cli.command import Answer, Arguments, command, table
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.errors import unknown


@command(
    "schema",
    "what a kind of file may hold, as JSON Schema",
    "Print the JSON Schema of a kind of file: every key with its type, range and meaning.",
    Option("name NAME", str, "a kind of file; without it all kinds are listed", nargs="?"),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Return it, or the kinds of files."""
    from topox_core.file_schemas import DOCUMENTS, json_schema

    head = ("name", "files", "format")
    if options.name is None:
        rows = [(name, f"*{one.ending}", one.format) for name, one in DOCUMENTS.items()]
        record = {"schemas": [dict(zip(head, row, strict=True)) for row in rows]}
        return Answer(record, [table(head, *rows)])
    if options.name not in DOCUMENTS:
        raise wrong_option("NAME", unknown(options.name, DOCUMENTS, "kind of file"))
    return Answer(lines=[json.dumps(json_schema(options.name), allow_nan=False)])
