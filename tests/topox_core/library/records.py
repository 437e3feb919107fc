"""Runs made up for tests of the library."""

import hashlib
import random
import zlib
from pathlib import Path
from typing import Any

from topox_core.library.rows import RunRecord
from topox_core.library.run_library import KeptInput, RunLibrary


def key(word: object) -> str:
    return hashlib.sha256(str(word).encode()).hexdigest()


def record(word: object = "a", **changes: Any) -> RunRecord:
    """Return a run; each word is another computation."""
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
        "measures": {"iteration_ms": 101.0, "bound_ms": 90.0, "gap": None, "windows": 3},
        "seed": 0,
        "host": "here",
        "started": 1000.0,
        "wall_s": 0.5,
    }
    return RunRecord(**{**values, **changes})


def packed(text: str) -> bytes:
    return zlib.compress(text.encode())


def filled(path: Path, count: int) -> Path:
    """Write a library of so many runs, all points of one study, and one input."""
    drawn = random.Random(0).random
    with RunLibrary.open(path) as library:
        study = library.add_study(key("s"), "delay and speed", {"axes": [1, 2]}, count, "1")
        records = [
            record(
                number,
                started=float(number),
                measures={"iteration_ms": drawn(), "windows": number},
                result=packed(repr([drawn() for _ in range(20)])),
            )
            for number in range(count)
        ]
        library.link_points(study, dict(enumerate(library.add(records))))
        library.keep_inputs([KeptInput(key("race graph"), "graph", "race.json", b"tasks" * 1000)])
    return path


def inputs_of(library: RunLibrary) -> list[str]:
    """Return the digests of all inputs that are kept."""
    return [row["digest"] for row in library._rows("SELECT digest FROM inputs ORDER BY digest")]
