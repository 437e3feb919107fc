"""What the owner of the server allows: where it listens, and what one visitor may ask of it."""

from __future__ import annotations

import ipaddress
import math
import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache

from topox_core.errors import InputError
from topox_core.io.task_graph_rules import MAX_TASKS


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Cores that this process may use.
CORES = _cores()


def _from(
    variable: str, least: float = 0, most: float = math.inf, words: tuple[str, ...] = ()
) -> dict[str, object]:
    return {"variable": variable, "least": least, "most": most, "words": words}


@dataclass(frozen=True)
class ServerLimits:
    """Limits that hold for every session of this server; each is set by an environment variable.

    Attributes
    ----------
    address, port
        Where the server listens (``TOPOX_ADDRESS``, ``TOPOX_PORT``); by default only this machine
        reaches it.
    hosts
        By which names visitors reach it, with commas between (``TOPOX_HOSTS``); by default those of
        this machine where nobody else reaches the address, any elsewhere.
    solver_places
        How many solves and other long runs go on at once, over all sessions
        (``TOPOX_SOLVER_PLACES``, by default one a core).
    longest_s
        The longest time limit of a solve, whatever a link asks for (``TOPOX_LONGEST_S``).
    most_tasks
        The largest task graph that is opened (``TOPOX_MOST_TASKS``).
    session_mb
        How much memory the results that a session keeps may take; the oldest are dropped first
        (``TOPOX_SESSION_MB``).
    schedule_workers
        How many processes make list schedules once several sessions ask for them at once
        (``TOPOX_SCHEDULE_WORKERS``, by default one a core; with 0 the server makes them itself).
    shared_mb
        How much memory the schedules that all sessions share may take; the least used are dropped
        first (``TOPOX_SHARED_MB``).
    rejoin_s
        How long what a tab has is kept after it was left, so that a reload finds it again
        (``TOPOX_REJOIN_S``).
    run_library
        Whether runs are kept in one library for everybody who uses this server
        (``TOPOX_RUN_LIBRARY``, ``yes`` or ``no``); by default where only this machine reaches it.
    """

    address: str = field(default="127.0.0.1", metadata=_from("TOPOX_ADDRESS"))
    port: int = field(default=8501, metadata=_from("TOPOX_PORT", 1, 65_535))
    hosts: str = field(default="", metadata=_from("TOPOX_HOSTS"))
    solver_places: int = field(default=CORES, metadata=_from("TOPOX_SOLVER_PLACES", 1, 1_024))
    longest_s: float = field(default=3600.0, metadata=_from("TOPOX_LONGEST_S", 5, 86_400))
    most_tasks: int = field(default=MAX_TASKS, metadata=_from("TOPOX_MOST_TASKS", 1, MAX_TASKS))
    session_mb: int = field(default=500, metadata=_from("TOPOX_SESSION_MB", 10, 1_000_000))
    schedule_workers: int = field(default=CORES, metadata=_from("TOPOX_SCHEDULE_WORKERS", 0, 1_024))
    shared_mb: int = field(default=400, metadata=_from("TOPOX_SHARED_MB", 10, 1_000_000))
    rejoin_s: float = field(default=60.0, metadata=_from("TOPOX_REJOIN_S", 0, 3_600))
    run_library: str = field(default="", metadata=_from("TOPOX_RUN_LIBRARY", words=("yes", "no")))

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ServerLimits:
        """Return the limits that an environment sets; raises InputError where one is nothing of its range."""
        values: dict[str, str | int | float] = {}
        for one in fields(cls):
            text = environment.get(one.metadata["variable"], "").strip()
            if text:
                assert one.default is not MISSING
                values[one.name] = _value(type(one.default), text, **one.metadata)
        return cls(**values)  # type: ignore[arg-type]

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """Names in a browser's address that the server answers to; none: to all.

        A page elsewhere could otherwise have its own name lead to this machine and read what is here
        (DNS rebinding).
        """
        named = tuple(name for name in self.hosts.split(",") if name)
        return named or (LOOPBACK if only_this_machine(self.address) else ())

    @property
    def keeps_runs(self) -> bool:
        """Whether there is a run library on this server."""
        return self.run_library == "yes" or (
            not self.run_library and only_this_machine(self.address)
        )

    def allowed_s(self, time_limit_s: float) -> float:
        """Return a time limit, cut to the longest one."""
        return min(time_limit_s, self.longest_s)

    def check_time_limit(self, time_limit_s: float, name: str = "time_limit_s") -> None:
        """Raise InputError if a solve would be given more time than this server gives."""
        if time_limit_s > self.longest_s:
            raise InputError(
                f"must be at most {self.longest_s:,.10g} on this server (got {time_limit_s:,.10g})",
                file="settings",
                field=name,
            )

    def check_tasks(self, tasks: int, file: str) -> None:
        """Raise InputError if a graph has more tasks than this server takes."""
        if tasks > self.most_tasks:
            raise InputError(
                f"holds {tasks:,} tasks, more than the {self.most_tasks:,} that this server takes",
                file=file,
            )


LOOPBACK = ("127.0.0.1", "localhost", "::1")


def only_this_machine(address: str) -> bool:
    """Return whether nobody on another machine reaches an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _value(
    kind: type[str | int | float],
    text: str,
    *,
    variable: str,
    least: float,
    most: float,
    words: tuple[str, ...],
) -> str | int | float:
    """Return what a variable's text says; raises InputError."""
    if words:
        if text in words:
            return text
        raise _wrong(variable, " or ".join(words), text)
    if kind is str:
        if len(text) <= 255 and text.isprintable() and " " not in text:
            return text
        raise _wrong(variable, "an address or the name of a host", text)
    what = "a whole number" if kind is int else "a number"
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not (isinstance(value, int | float) and least <= value <= most):
        raise _wrong(variable, f"{what} from {least:,} to {most:,}", text)
    return value


def _wrong(variable: str, what: str, text: str) -> InputError:
    return InputError(f"must be {what} (got {text[:40]!r})", file="environment", field=variable)


@cache
def server_limits() -> ServerLimits:
    """Return the limits of this server, read once; raises InputError."""
    return ServerLimits.of(os.environ)
