"""The cache of machine code."""

from __future__ import annotations

import subprocess
import sys

from topox_core.compiled import COMPILED, PACKAGE


def test_every_file_with_compiled_functions_counts_in_the_name_of_the_cache() -> None:
    counted = {path for pattern in COMPILED for path in PACKAGE.glob(pattern)}
    with_kernels = {
        path for path in PACKAGE.rglob("*.py") if "\n@compiled\n" in path.read_text("utf-8")
    }
    assert with_kernels <= counted


def test_two_processes_never_give_a_function_one_number() -> None:
    """Numba tells functions of one name and type apart by a number alone, and keeps their code for all processes."""
    number = "from topox_core import compiled; print(next(compiled.bytecode.FunctionIdentity._unique_ids))"
    first, second = (
        int(subprocess.run([sys.executable, "-c", number], capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    # A process compiles some thousand functions.
    assert abs(first - second) > 1_000_000
