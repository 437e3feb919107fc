"""One way to compile: cached on disk, free of the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with numba; the machine code is cached beside the file (or in the user's cache folder)."""
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True)(function))
