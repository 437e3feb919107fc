"""Print the statements of each package: what there is to read, whatever the lines are long.

python -m tools.size
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("topox_core", "topox_ui", "pages", "tests", "benchmarks", "tools")


def statements(path: Path) -> int:
    """Return the statements of a file, docstrings left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(isinstance(node, ast.stmt) and not _is_text(node) for node in ast.walk(tree))


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def main() -> None:
    """Print a line per package of the core and of the app, and a sum per part."""
    for part in PARTS:
        counts: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for path in sorted((ROOT / part).rglob("*.py")):
            inside = path.relative_to(ROOT / part).parts
            package = inside[0] if len(inside) > 1 and part.startswith("topox") else "."
            counts[package] += statements(path)
            files[package] += 1
        for package in counts if len(counts) > 1 else ():
            print(f"{part + '/' + package:36} {counts[package]:7,} {files[package]:5}")
        print(f"{part:36} {counts.total():7,} {files.total():5}")


if __name__ == "__main__":
    main()
