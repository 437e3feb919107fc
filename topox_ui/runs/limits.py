"""What the owner of the server allows: solver places, the longest time limit, the most tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache

from topox_core.errors import InputError
from topox_core.workloads.catalogue import MAX_TASKS

CORES = os.cpu_count() or 1


def _read_as(variable: str, default: float, least: float) -> float:
    return field(default=default, metadata={"variable": variable, "least": least})


@dataclass(frozen=True)
class ServerLimits:
    """Limits that hold for every session of this server; each is set by an environment variable.

    Attributes
    ----------
    solver_places
        How many solves and other long runs go on at once, over all sessions
        (``TOPOX_SOLVER_PLACES``, by default one a core).
    longest_s
        The longest time limit of a solve, whatever a link asks for (``TOPOX_LONGEST_S``).
    most_tasks
        The largest task graph that is opened (``TOPOX_MOST_TASKS``).
    """

    solver_places: int = _read_as("TOPOX_SOLVER_PLACES", CORES, 1)  # type: ignore[assignment]
    longest_s: float = _read_as("TOPOX_LONGEST_S", 3600.0, 1)
    most_tasks: int = _read_as("TOPOX_MOST_TASKS", MAX_TASKS, 1)  # type: ignore[assignment]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ServerLimits:
        """Return the limits that an environment sets; raises InputError where one is no number of its range."""
        values = {}
        for one in fields(cls):
            variable, least = one.metadata["variable"], one.metadata["least"]
            text = environment.get(variable, "").strip()
            if not text:
                continue
            kind = type(one.default)
            try:
                values[one.name] = kind(text)
                if not least <= values[one.name] < float("inf"):
                    raise ValueError
            except ValueError:
                what = "a whole number" if kind is int else "a number"
                problem = f"must be {what} of at least {least} (got {text[:40]!r})"
                raise InputError(problem, file="environment", field=variable) from None
        return cls(**values)


@cache
def server_limits() -> ServerLimits:
    """Return the limits of this server, read once."""
    return ServerLimits.of(os.environ)
