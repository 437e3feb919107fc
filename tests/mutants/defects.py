"""A defect as it is written down: a few lines of one file, and what a tired engineer might have made of them."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Defect:
    """One defect: `old` stands in `file` exactly once, and `new` takes its place."""

    name: str
    file: str
    kind: str
    old: str
    new: str

    @property
    def tests(self) -> str:
        """The folder of tests that mirrors the package of the file."""
        top, package = Path(self.file).parts[:2]
        return f"tests/{top}" if package.endswith(".py") else f"tests/{top}/{package}"

    def in_text(self, text: str) -> str:
        """Return a file's text with this defect; raises ValueError where the text has moved on."""
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: its lines stand {text.count(self.old)} times in {self.file}"
            )
        return text.replace(self.old, self.new)

    @contextmanager
    def applied(self, root: Path) -> Iterator[None]:
        """Put the defect into a copy of the project; afterwards the file is as before, to its time of change."""
        path = root / self.file
        before, status = path.read_bytes(), path.stat()
        path.write_text(self.in_text(before.decode()), encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(before)
            # Machine code is kept by the time of its source.
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def all_defects() -> list[Defect]:
    """Return every defect that is written down, package by package."""
    return [
        Defect(**row)
        for file in sorted(FOLDER.glob("*.toml"))
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"]
    ]
