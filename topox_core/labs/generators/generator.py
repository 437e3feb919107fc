"""What a generator is: an instance for every seed, what of it a student is given, and its values by name.

Draws are seeded and have names: each number comes from a hash of its name, so that a new draw changes no
old one. Any language can repeat them: SHA-256 over plain text, numbers in decimal.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

from topox_core.errors import look_up, wrong_setting
from topox_core.io.limits import check_whole
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import Task, TaskGraph

Number = int | float
Row = tuple[Number, ...]
# A number, the id of an option, several of them, or the rows of a matrix; None where a seed has none.
Value = Number | str | tuple[str, ...] | tuple[Row, ...] | None
# By the name of a value: the attribute of an instance that it is, or what computes it.
Of = Mapping[str, str | Callable[[Any], Value]]
MAX_ATTEMPTS = 3_000
SEEDS = 100_000_000
KEPT_SEEDS = 1_000  # below: for classes, practice and tests
GBPS = 8.0  # of the ports of small instances: a MB takes a ms

T = TypeVar("T")


@dataclass(frozen=True)
class GivenTable:
    """What a student is given, as a table for pages and paper; it holds no answer."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def by_column(self) -> dict[str, list[str]]:
        """Return the cells by column."""
        return {name: [row[k] for row in self.rows] for k, name in enumerate(self.columns)}


@dataclass(frozen=True)
class Matrix:
    """Rows and columns of an answer that is a matrix.

    Attributes
    ----------
    marks
        Whether cells are marked or not; else they hold whole numbers.
    symmetric
        Whether a mark of (i, j) is one of (j, i) as well; the diagonal then stays empty.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    marks: bool
    symmetric: bool = False

    def as_table(self, values: Sequence[Sequence[object]] = ()) -> GivenTable:
        """Return it filled in, marks as ticks, or empty without values."""
        signs: Mapping[object, str] = {0: "", 1: "✓"} if self.marks else {}
        cells = [[signs.get(one, str(one)) for one in row] for row in values]
        blank = [[""] * len(self.columns)] * len(self.rows)
        rows = zip(self.rows, cells or blank, strict=True)
        return GivenTable(("", *self.columns), tuple((name, *row) for name, row in rows))


@dataclass(frozen=True)
class Instance:
    """One drawn problem.

    Attributes
    ----------
    seed, attempt
        What it was drawn from, and which attempt fulfilled every invariant.
    """

    seed: int
    attempt: int

    def given(self) -> GivenTable:
        """Return what a student is given."""
        raise NotImplementedError


class TaskInstance(Instance):
    """A drawn problem that is a small task graph; its cluster has one port per server unless it is asked for others."""

    def graph(self) -> TaskGraph:
        """Return the instance as a task graph."""
        raise NotImplementedError

    def cluster(self, ports: int = 1, port_gbps: float = GBPS, delay_ms: float = 0.0) -> Cluster:
        """Return its servers with some ports each, one on each switch."""
        return small_cluster(self.graph().servers, ports, port_gbps, delay_ms)

    def given(self) -> GivenTable:
        """Return the tasks."""
        return task_table(self.graph())


@dataclass(frozen=True)
class Draws:
    """The draws of one attempt at one instance of a generator."""

    generator: str
    seed: int
    attempt: int

    def whole(self, name: str, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        text = f"topox-lab/1|{self.generator}|{self.seed}|{self.attempt}|{name}"
        return low + _number(text) % (high - low + 1)

    def ranged(self, **ranges: tuple[int, int]) -> dict[str, int]:
        """Return whole numbers by name, each drawn from its range."""
        return {name: self.whole(name, low, high) for name, (low, high) in ranges.items()}

    def row(self, name: str, count: int, low: int, high: int, first: int = 0) -> tuple[int, ...]:
        """Return several whole numbers, drawn under a name and their number, which is counted from ``first``."""
        return tuple(self.whole(f"{name}{k}", low, high) for k in range(first, first + count))

    def pick(self, name: str, items: Sequence[T]) -> T:
        """Return one of several."""
        return items[self.whole(name, 0, len(items) - 1)]

    def shuffle(self, name: str, items: Sequence[T]) -> list[T]:
        """Return items in a drawn order."""
        order = list(items)
        for i in range(len(order) - 1, 0, -1):
            other = self.whole(f"{name}#{i}", 0, i)
            order[i], order[other] = order[other], order[i]
        return order


@dataclass(frozen=True)
class Generator:
    """One generator.

    Attributes
    ----------
    name, version
        As lab files and answers name it; another range of a draw is another version.
    stream
        What its draws are named after: another name is another instance of every seed.
    kind, draw, is_lesson
        What an instance is; draw its fields; say whether it has every invariant, or the next attempt is
        drawn.
    shown
        What a text may say of an instance at any time.
    values
        What is computed of it: keys, and the values of misconceptions. Each is computed when it is
        asked for, from a closed form, a full enumeration or a deterministic simulator.
    options
        Of values that are options: those of an instance, where they depend on it.
    matrices
        Of values that are matrices: their rows and columns.
    """

    name: str
    version: int
    stream: str
    kind: Callable[..., Any]
    draw: Callable[[Draws], Mapping[str, Any]]
    is_lesson: Callable[[Any], bool]
    shown: Of
    values: Of
    options: Mapping[str, Callable[[Any], tuple[str, ...]]] = field(default_factory=dict)
    matrices: Mapping[str, Callable[[Any], Matrix]] = field(default_factory=dict)

    def make(self, seed: int) -> Any:
        """Return the instance of a seed: what the first attempt draws that has every invariant.

        Raises
        ------
        InputError
            If the seed is negative, or no attempt has made an instance; the generator is named.
        """
        check_whole(seed, 0, file="settings", field="seed")
        for attempt in range(MAX_ATTEMPTS):
            one = self.kind(seed, attempt, **self.draw(Draws(self.stream, seed, attempt)))
            if self.is_lesson(one):
                return one
        problem = f"{seed} makes no instance of generator {self.name} in {MAX_ATTEMPTS:,} attempts"
        raise wrong_setting("seed", problem)

    def value(self, instance: Instance, name: str) -> Value:
        """Return a value of an instance, whether shown or computed.

        Raises
        ------
        InputError
            If there is none of that name; the names are listed.
        """
        known = {**self.shown, **self.values}
        of = look_up(name, known, f"value of generator {self.name}", field="value")
        value: Value = getattr(instance, of) if isinstance(of, str) else of(instance)
        return value


def send(task: str, waits: tuple[str, ...], source: int, destination: int, mb: int) -> Task:
    """Return a transfer of some megabytes."""
    return Task(
        task,
        "communication",
        dependencies=waits,
        source=source,
        destination=destination,
        size_bytes=mb * 1e6,
    )


def small_cluster(
    servers: int, ports: int = 1, port_gbps: float = GBPS, delay_ms: float = 0.0
) -> Cluster:
    """Return the cluster of the small instances: as many switches as ports."""
    return one_port_a_switch(servers, ports, port_gbps, reconfiguration_ms=delay_ms)


def task_table(graph: TaskGraph) -> GivenTable:
    """Return the tasks of a small graph as a table."""
    rows = []
    for task in graph.tasks:
        computes = task.duration_ms is not None
        where = f"server {task.server}" if computes else f"{task.source} → {task.destination}"
        long = f"{task.duration_ms:g} ms" if computes else f"{(task.size_bytes or 0) / 1e6:g} MB"
        rows.append((task.id, where, long, ", ".join(task.dependencies) or "–"))
    return GivenTable(("task", "where", "how much", "waits for"), tuple(rows))


# -- seeds ----------------------------------------------------------------------------------------


def seed_of(course: str, student: str) -> int:
    """Return the seed of a student of a course; spelling in capitals or with spaces around makes no difference."""
    names = (unicodedata.normalize("NFKC", one).strip().casefold() for one in (course, student))
    seed = _number("|".join(("topox-seed/1", *names))) % SEEDS
    return seed + KEPT_SEEDS if seed < KEPT_SEEDS else seed


def _number(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")
