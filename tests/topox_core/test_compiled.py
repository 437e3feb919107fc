"""The cache of machine code."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from topox_core.compiled import COMPILED, PACKAGE, compiled_in_place


def test_every_file_with_compiled_functions_counts_in_the_name_of_the_cache() -> None:
    counted = {path for pattern in COMPILED for path in PACKAGE.glob(pattern)}
    with_kernels = {
        path for path in PACKAGE.rglob("*.py") if "\n@compiled" in path.read_text("utf-8")
    }
    assert with_kernels <= counted


def test_a_kernel_that_counts_no_references_may_make_no_array() -> None:
    def first_of_a_new_array(numbers: np.ndarray) -> float:
        return (numbers + 1.0)[0]

    with pytest.raises(numba.core.errors.NumbaError, match="NRT required but not enabled"):
        compiled_in_place(first_of_a_new_array)(np.zeros(2))


def test_two_processes_never_give_a_function_one_number() -> None:
    """Numba tells functions of one name and type apart by a number alone, and keeps their code for all processes."""
    number = "from topox_core import compiled; print(next(compiled.bytecode.FunctionIdentity._unique_ids))"
    first, second = (
        int(subprocess.run([sys.executable, "-c", number], capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    # A process compiles some thousand functions.
    assert abs(first - second) > 1_000_000
