"""The cache of machine code."""

from __future__ import annotations

from topox_core.compiled import COMPILED, PACKAGE


def test_every_file_with_compiled_functions_counts_in_the_name_of_the_cache() -> None:
    counted = {path for pattern in COMPILED for path in PACKAGE.glob(pattern)}
    with_kernels = {
        path for path in PACKAGE.rglob("*.py") if "\n@compiled\n" in path.read_text("utf-8")
    }
    assert with_kernels <= counted
