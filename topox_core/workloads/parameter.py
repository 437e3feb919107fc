"""What a workload is: a generator with named, ranged parameters."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import Task


@dataclass(frozen=True)
class Parameter:
    """One choice of a workload.

    The type is that of ``default``: int, float or str. Numbers lie from ``least`` to ``most``;
    words (and numbers, if given) are one of ``choices``. ``group`` is what it belongs to, if many do.
    """

    key: str
    default: int | float | str
    unit: str
    meaning: str
    least: float = 0.0
    most: float = math.inf
    choices: tuple[int | str, ...] = ()
    group: str = ""

    @property
    def range(self) -> str:
        """What a value may be, in words."""
        if self.choices:
            return "one of " + ", ".join(str(c) for c in self.choices)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.least:,.12g} to {self.most:,.12g}"

    def value(self, given: object, workload: str) -> int | float | str:
        """Return ``given`` (text or a number) as the parameter's type.

        Raises
        ------
        InputError
            If it has the wrong type or lies outside the range.
        """
        expected = InputError(
            f"must be {self.range} (got {str(given)[:80]})",
            file=f"workload {workload}",
            field=self.key,
        )
        if isinstance(self.default, str):
            if given not in self.choices:
                raise expected
            return str(given)
        try:
            number = float(str(given).strip())
        except ValueError:
            raise expected from None
        if (
            isinstance(given, bool)
            or not math.isfinite(number)
            or not self.least <= number <= self.most
        ):
            raise expected
        if isinstance(self.default, float):
            return number
        if number != int(number) or (self.choices and int(number) not in self.choices):
            raise expected
        return int(number)


@dataclass(frozen=True)
class Workload:
    """A generator of task graphs.

    Attributes
    ----------
    name, title, meaning
        The word on the command line, a heading, and a line on what it models.
    source
        Where its formulas and numbers come from.
    parameters
        Its choices, in the order they are shown.
    tasks
        Yields the tasks one by one.
    count
        How many tasks it yields at least, without making one: exactly, unless chance decides. What
        is too large is refused before any work begins.
    cluster
        Suggests a cluster that fits.
    words
        Says what it is once parameters were changed; None: its title and what was changed.
    """

    name: str
    title: str
    meaning: str
    source: str
    parameters: tuple[Parameter, ...]
    tasks: Callable[[dict[str, Any]], Iterator[Task]]
    count: Callable[[dict[str, Any]], int]
    cluster: Callable[[dict[str, Any]], Cluster]
    words: Callable[[dict[str, Any]], str] | None = None


def compute_task(
    name: str, kind: str, waits: tuple[str, ...], server: int, duration_ms: float, **notes: Any
) -> Task:
    """Return a task that computes on the first device of a server."""
    return Task(name, kind, waits, server, 0, duration_ms, **notes)


def suggested_cluster(servers: int, port_gbps: float, switches: int = 2) -> Cluster:
    """Return a cluster whose servers have one port on each optical switch."""
    name = f"{servers} servers, {switches} OCS"
    return one_port_a_switch(servers, switches, port_gbps, name=name)


def cluster_of_servers(values: dict[str, Any]) -> Cluster:
    """Return the cluster of a workload that names its servers and port speed: two switches."""
    return suggested_cluster(values["servers"], values["port_gbps"])
