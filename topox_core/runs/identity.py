"""Which code computes, so that results are told apart by it and machines of different code do not mix."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import astuple, dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path

import topox_core

SHORT = 12  # characters of the digest


@dataclass(frozen=True)
class Identity:
    """What a process computes with: this package, and what numbers may depend on besides."""

    topox: str
    python: str
    numpy: str
    numba: str

    def difference(self, other: Identity) -> str:
        """Return in words the first thing in which another process differs; empty if it computes the same."""
        for field, mine, theirs in zip(fields(self), astuple(self), astuple(other), strict=True):
            if mine != theirs:
                return f"runs {field.name} {theirs}, this machine {mine}"
        return ""


@cache
def code_version() -> str:
    """Return the package's version and a short SHA-256 of its source, e.g. ``1.4.0+3fa91c20b7de``.

    The digest is over names and bytes of all Python and TOML files, so that it is the same wherever the
    package lies, and another after any change of a line.
    """
    root = Path(topox_core.__file__).parent
    digest = hashlib.sha256()
    for name, path in sorted(
        (path.relative_to(root).as_posix(), path)
        for path in root.rglob("*")
        if path.suffix in (".py", ".toml")
    ):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return f"{topox_core.__version__}+{digest.hexdigest()[:SHORT]}"


@cache
def identity() -> Identity:
    """Return what this process computes with."""
    return Identity(code_version(), platform.python_version(), version("numpy"), version("numba"))
