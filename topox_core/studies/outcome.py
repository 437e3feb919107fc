"""What computing one point brings, before it is a record of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """Measures and state of one point.

    Attributes
    ----------
    graph, cluster
        Digests of what was run.
    held
        The cluster as it was, by field; empty if there is none.
    result
        The result file as deflated JSON, where the same point would not bring the same again.
    """

    measures: Mapping[str, float | None]
    status: str = "simulated"
    stopped_by: str = ""
    graph: str = ""
    cluster: str = ""
    held: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    result: bytes | None = None
