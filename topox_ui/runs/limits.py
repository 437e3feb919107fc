"""What the owner of the server allows: where it listens, and what one visitor may ask of it."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from topox_core.errors import InputError
from topox_core.io.task_graph_rules import MAX_TASKS
from topox_core.runs.cores import ALLOWED
from topox_core.schema.fields import (
    WITHOUT_SPACES,
    expected,
    fields_of,
    problems,
    setting,
)

# Cores that this process may use.
CORES = len(ALLOWED) or os.cpu_count() or 1


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
    lecturer_word
        What opens the page Present, with the keys of labs, where others reach the server
        (``TOPOX_LECTURER_WORD``); without one it stays closed there.
    """

    address: Annotated[
        str,
        setting(
            description="an address or the name of a host", max_length=255, without=WITHOUT_SPACES
        ),
    ] = "127.0.0.1"
    port: Annotated[int, setting(ge=1, le=65_535)] = 8501
    hosts: Annotated[
        str, setting(description="names of hosts", max_length=255, without=WITHOUT_SPACES)
    ] = ""
    solver_places: Annotated[int, setting(ge=1, le=1_024)] = CORES
    longest_s: Annotated[float, setting(ge=5, le=86_400)] = 3600.0
    most_tasks: Annotated[int, setting(ge=1, le=MAX_TASKS)] = MAX_TASKS
    session_mb: Annotated[int, setting(ge=10, le=1_000_000)] = 500
    schedule_workers: Annotated[int, setting(ge=0, le=1_024)] = CORES
    shared_mb: Annotated[int, setting(ge=10, le=1_000_000)] = 400
    rejoin_s: Annotated[float, setting(ge=0, le=3_600)] = 60.0
    run_library: Annotated[str, setting(description="yes or no", choices=("", "yes", "no"))] = ""
    lecturer_word: Annotated[
        str, setting(description="a word", max_length=60, without=WITHOUT_SPACES)
    ] = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "ServerLimits":
        """Return the limits that an environment sets; raises InputError where one is nothing of its range."""
        values = {}
        for name, one in fields_of(cls).items():
            variable = f"TOPOX_{name.upper()}"
            if text := environment.get(variable, "").strip():
                values[name] = one.value_of(text)
                if any(problems(one.hint, values[name])):
                    problem = f"must be {one.description or expected(one.hint)} (got {text[:40]!r})"
                    raise InputError(problem, file="environment", field=variable)
        return cls(**values)

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """Names in a browser's address that the server answers to; none: to all.

        A page elsewhere could otherwise have its own name lead to this machine and read what is here
        (DNS rebinding).
        """
        named = tuple(name for name in self.hosts.split(",") if name)
        return named or (LOOPBACK if only_this_machine(self.address) else ())

    @property
    def shared(self) -> bool:
        """Whether others reach this server: itself, or through a proxy that it is named for."""
        return bool(self.hosts) or not only_this_machine(self.address)

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


@cache
def server_limits() -> "ServerLimits":
    """Return the limits of this server, read once; raises InputError."""
    return ServerLimits.of(os.environ)
