"""Runs made up for tests of the library."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

from topox_core.library.record import RunRecord


def key(word: object) -> str:
    return hashlib.sha256(str(word).encode()).hexdigest()


def record(word: object = "a", **changes: Any) -> RunRecord:
    """Return a run; each word is another computation."""
    iteration_ms = 100.0 + len(str(word))
    values: dict[str, Any] = {
        "key": key(word),
        "version": "1.0+abc",
        "kind": "fabric",
        "subject": "race",
        "graph": key("race graph"),
        "cluster": key("race cluster"),
        "settings": {"cluster.port_gbps": 100.0, "fabric": "scheduled", "seed": 0},
        "status": "feasible",
        "stopped_by": "heuristic",
        "measures": {"iteration_ms": iteration_ms, "bound_ms": 90.0, "gap": None, "windows": 3},
        "seed": 0,
        "host": "here",
        "started": 1000.0,
        "wall_s": 0.5,
    }
    return RunRecord(**{**values, **changes})


def packed(text: str) -> bytes:
    return zlib.compress(text.encode())
