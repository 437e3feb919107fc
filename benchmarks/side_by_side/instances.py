"""Instances of a folder, and what is known of them from the README beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HALF, TOTAL = "half", "total"


@dataclass(frozen=True)
class Instance:
    """Two files, and the best makespan and bound known (slots; None where nobody has said)."""

    name: str
    graph: Path
    cluster: Path
    best_known: int | None = None
    best_bound: int | None = None

    @property
    def size(self) -> str:
        """First word of the name: tiny, small, medium or large."""
        return self.name.partition("-")[0]

    @property
    def open(self) -> bool:
        """Whether the best makespan known is not proved."""
        return (
            self.best_known is not None
            and self.best_bound is not None
            and self.best_bound < self.best_known
        )

    def has(self, *words: str) -> bool:
        """Whether one of the words is a word of the name."""
        return any(word in self.name.split("-") for word in words)


def instances(folder: Path, only: str = "") -> list[Instance]:
    """Return the instances of a folder, smallest class first, whose names match ``only``."""
    known = values(folder)
    found = []
    for graph in sorted(folder.glob("*.taskgraph.json*")):
        name = graph.name.partition(".")[0]
        if re.search(only, name):
            best, bound = known.get(name, (None, None))
            found.append(Instance(name, graph, folder / f"{name}.cluster.json", best, bound))
    rank = {"tiny": 0, "small": 1, "medium": 2, "large": 3}
    return sorted(found, key=lambda one: (rank.get(one.size, 4), one.name))


def values(folder: Path) -> dict[str, tuple[int, int]]:
    """Return (best known, best bound) by name from the table in the folder's README.md, or in the one above it."""
    for readme in (folder / "README.md", folder.parent / "README.md"):
        if readme.is_file():
            return _table(readme.read_text(encoding="utf-8"))
    return {}


def _table(text: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    known = bound = -1
    for line in text.splitlines():
        cells = [cell.strip().strip("*") for cell in line.split("|")[1:-1]]
        if {"instance", "best known", "best bound"} <= set(cells):
            known, bound = cells.index("best known"), cells.index("best bound")
        elif (
            known >= 0
            and len(cells) > max(known, bound)
            and cells[known].isdigit()
            and cells[bound].isdigit()
        ):
            found[cells[0]] = int(cells[known]), int(cells[bound])
    return found
