"""Parts of a document that a script writes from a run, and whether they are what a run gives.

A part stands between two comments, ``<!-- NAME -->`` and ``<!-- end of NAME -->``; what is between
them is replaced.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path


def _pattern(name: str) -> re.Pattern[str]:
    begin, end = re.escape(f"<!-- {name} -->"), re.escape(f"<!-- end of {name} -->")
    return re.compile(f"({begin}\n)(.*?)(\n{end})", re.DOTALL)


def part_of(document: str, name: str) -> str:
    """Return what stands in a part.

    Raises
    ------
    SystemExit
        If the document has no place for it.
    """
    found = _pattern(name).search(document)
    if found is None:
        raise SystemExit(f"the document has no comment <!-- {name} --> with its end")
    return found.group(2)


def written(document: str, name: str, part: str) -> str:
    """Return the document with a part replaced; raises as :func:`part_of`."""
    part_of(document, name)
    return _pattern(name).sub(lambda found: f"{found.group(1)}{part}{found.group(3)}", document)


def stale(document: str, parts: Mapping[str, str]) -> list[str]:
    """Return the names of parts that are not what they should be; raises as :func:`part_of`."""
    return [name for name, part in parts.items() if part_of(document, name) != part]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--document`` and ``--check``."""
    parser.add_argument("--document", type=Path, help="where to write; without it, print")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a part is stale")


def deliver(options: argparse.Namespace, parts: Mapping[str, str]) -> int:
    """Print the parts, write them, or say which are stale; return the exit status."""
    if options.document is None:
        print(*parts.values(), sep="\n\n")
        return 0
    document = options.document.read_text(encoding="utf-8")
    if options.check:
        names = stale(document, parts)
        for name in names:
            print(f"stale: {name}")
        return 1 if names else 0
    for name, part in parts.items():
        document = written(document, name, part)
    options.document.write_text(document, encoding="utf-8")
    return 0
