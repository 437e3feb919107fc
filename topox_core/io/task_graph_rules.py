"""A task graph out of tasks: each checked when it comes, then ids, dependencies and cycles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter

from topox_core.errors import InputError, Mistakes, printable, shown
from topox_core.io.limits import MAX_DEPENDENCIES, MAX_MEMBERS, MAX_TASKS, MAX_TEXT
from topox_core.io.ranges import check_text
from topox_core.io.task_rules import (
    Shape,
    checked_values,
    is_id,
    sound_lists,
    twice,
    wrong_fields,
    wrong_types,
)
from topox_core.model.task_graph import COMPUTE_KINDS, FIELD_NAMES, Task, TaskGraph

# Values are checked by so many tasks at once.
_MANY = 1024


def validated(name: str, tasks: Iterable[Task], file: str = "") -> TaskGraph:
    """Check tasks and return their graph.

    Parameters
    ----------
    name
        Name of the graph; any printable text of at most 200 characters.
    file
        File that errors name.

    Raises
    ------
    InputError
        For the first thing that is wrong; ``(and N more)`` counts others of the same pass.
    """
    checked = CheckedTasks(file)
    check_text(name, MAX_TEXT, file=file, field="name")
    for number, task in enumerate(tasks, 1):
        checked.add(task, number)
    return checked.graph(name)


class CheckedTasks:
    """Tasks on their way into a graph.

    This is the only place where the values of tasks are checked, whatever file they come from:
    types first, then ranges and what a kind needs, then ids, dependencies and cycles. A task of a
    wrong type is not kept, so that a bad file costs no more than a good one.

    ``device`` defaults to 0, and times and sizes become floats, so that equal graphs have equal
    digests.

    Parameters
    ----------
    file
        File that errors name.
    noun
        What a file's items are called: ``entry`` or ``row``.
    findings
        What the reader of the file could not make tasks of; counted with values of a wrong type.
    """

    def __init__(
        self, file: str = "", noun: str = "entry", findings: Mistakes | None = None
    ) -> None:
        self._file, self._noun = file, noun
        self._types, self._ranges = findings or Mistakes(file), Mistakes(file)
        self._tasks: list[Task] = []
        self._numbers: list[int] = []
        self._checked = 0
        # Few combinations of types occur; each is looked into once.
        self._codes: dict[tuple[type, ...], int] = {}
        self._shapes: dict[tuple[str, int], Shape | None] = {}
        self._places: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        self._dependencies = self._members = 0

    def add(self, task: Task, number: int) -> None:
        """Take one task, the ``number``-th of its file.

        Raises
        ------
        InputError
            If there are more tasks, dependencies, members or mistakes than may be.
        """
        types = tuple(map(type, checked_values(task)))
        code = self._codes.get(types)
        if code is None or not sound_lists(task):
            before = self._types.count
            for field, problem in wrong_types(task):
                self._types.add(problem, item=self._item(task.id, number), field=field)
            if self._types.count > before:
                return
            code = self._codes.setdefault(types, len(self._codes))
        self._places[task.kind, code].append(len(self._tasks))
        self._tasks.append(task)
        self._numbers.append(number)
        self._dependencies += len(task.dependencies)
        if task.members:
            self._members += len(task.members)
        if self._dependencies > MAX_DEPENDENCIES or self._members > MAX_MEMBERS:
            self._check_counts()
        if len(self._tasks) - self._checked >= _MANY:
            self._check_values()

    def graph(self, name: str) -> TaskGraph:
        """Return the graph of all tasks.

        Raises
        ------
        InputError
            For the first thing that is wrong.
        """
        check_text(name, MAX_TEXT, file=self._file, field="name")
        self._types.stop()
        if not self._tasks:
            raise InputError("must hold at least one task", file=self._file, field="tasks")
        self._check_values()
        self._ranges.stop()
        cycle = self._cycle()
        if cycle:
            first = self._tasks[cycle[0]].id
            raise InputError(
                _cycle_line([self._tasks[i].id for i in cycle]),
                file=self._file,
                item=self._item(first, self._numbers[cycle[0]]),
                field="dependencies",
            )
        return TaskGraph(name, tuple(self._tasks))

    def _item(self, task_id: object, number: int) -> str:
        named = f"task {printable(str(task_id))}" if is_id(task_id) else ""
        if self._noun == "row":
            return f"row {number}" + (f" ({named})" if named else "")
        return named or f"{self._noun} {number}"

    def _check_counts(self) -> None:
        for what, count, most in (
            ("tasks", len(self._tasks), MAX_TASKS),
            ("dependencies", self._dependencies, MAX_DEPENDENCIES),
            ("members", self._members, MAX_MEMBERS),
        ):
            if count > most:
                problem = f"holds more than the {most:,} {what} a graph may have"
                raise InputError(problem, file=self._file)

    def _check_values(self) -> None:
        """Check the values of the tasks that came since the last time, and make them alike."""
        self._check_counts()
        tasks, right = self._tasks, True
        for key, places in self._places.items():
            if key not in self._shapes:
                self._shapes[key] = Shape.of(tasks[places[0]])
            shape = self._shapes[key]
            right = right and shape is not None and shape.holds([tasks[i] for i in places])
        if not right:
            for i in range(self._checked, len(tasks)):
                for field, problem in wrong_fields(tasks[i]):
                    item = self._item(tasks[i].id, self._numbers[i])
                    self._ranges.add(problem, item=item, field=field)
        if not self._ranges.count:
            for key, places in self._places.items():
                shape = self._shapes[key]
                for i in places:
                    if shape is None or not shape.normal or _has_zero(tasks[i]):
                        tasks[i] = _normal(tasks[i])
        self._checked = len(tasks)
        self._places.clear()

    def _positions(self) -> dict[str, int]:
        """Return where each id stands; no two tasks may have one id."""
        position = {task.id: i for i, task in enumerate(self._tasks)}
        if len(position) < len(self._tasks):
            findings, first = Mistakes(self._file), dict[str, int]()
            for task, number in zip(self._tasks, self._numbers, strict=True):
                before = first.setdefault(task.id, number)
                if before != number:
                    item = self._item(task.id, number)
                    findings.add(
                        f"is used twice (the first time by {self._noun} {before})",
                        item=item if self._noun == "row" else f"{item} ({self._noun} {number})",
                        field="id",
                    )
            findings.stop()
        return position

    def _cycle(self) -> list[int]:
        """Return the positions along one cycle, or none; every dependency must be a known id."""
        position = self._positions()
        findings, in_order = Mistakes(self._file), True
        for i, task in enumerate(self._tasks):
            if not task.dependencies:
                continue
            waits = [position.get(name, -1) for name in task.dependencies]
            last = max(waits)
            if last >= i or min(waits) < 0 or len(set(waits)) < len(waits):
                in_order = False
                if -1 in waits or i in waits or len(set(waits)) < len(waits):
                    problem = _dependency_line(task, waits, i, self._noun == "row")
                    item = self._item(task.id, self._numbers[i])
                    findings.add(problem, item=item, field="dependencies")
        findings.stop()
        # Tasks that only wait for earlier ones, as most files list them, are in no cycle.
        if in_order:
            return []
        return _cycle([[position[name] for name in task.dependencies] for task in self._tasks])


def _dependency_line(task: Task, waits: list[int], own: int, table: bool) -> str:
    if -1 in waits:
        name = task.dependencies[waits.index(-1)]
        hint = (
            "; ids in a cell are separated by spaces"
            if table and ("," in name or ";" in name)
            else ""
        )
        return f"names {shown(name)}, which is not the id of a task{hint}"
    if own in waits:
        return "names the task itself"
    return f"names {printable(twice(task.dependencies))} twice"


def _cycle(predecessors: list[list[int]]) -> list[int]:
    """Return the positions along one cycle, each waiting for the one before; or none."""
    waiting = [len(p) for p in predecessors]
    successors: list[list[int]] = [[] for _ in predecessors]
    for i, waits in enumerate(predecessors):
        for j in waits:
            successors[j].append(i)
    ready = [i for i, count in enumerate(waiting) if count == 0]
    done = 0
    while ready:
        j = ready.pop()
        done += 1
        for i in successors[j]:
            waiting[i] -= 1
            if waiting[i] == 0:
                ready.append(i)
    if done == len(predecessors):
        return []
    # Whatever still waits has a predecessor that still waits: walking back must come round.
    at = next(i for i, count in enumerate(waiting) if count)
    seen: dict[int, int] = {}
    walk: list[int] = []
    while at not in seen:
        seen[at] = len(walk)
        walk.append(at)
        at = next(j for j in predecessors[at] if waiting[j])
    cycle = walk[seen[at] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _cycle_line(ids: list[str], most: int = 8) -> str:
    names = [printable(name, 40) for name in ids]
    if len(names) > most:
        names = [*names[: most - 2], f"... {len(names) - most + 1} more ...", names[-1]]
    return f"is in a cycle of {len(ids)} tasks, each waiting for the one before: {' -> '.join([*names, names[0]])}"


def _has_zero(task: Task) -> bool:
    return task.duration_ms == 0 or task.size_bytes == 0


_everything = attrgetter(*FIELD_NAMES)
_DEVICE, _DURATION, _SIZE = map(FIELD_NAMES.index, ("device", "duration_ms", "size_bytes"))


def _normal(task: Task) -> Task:
    """Return the task with its default device, times and sizes as floats (-0 as 0)."""
    values = list(_everything(task))
    if values[_DEVICE] is None and task.kind in COMPUTE_KINDS:
        values[_DEVICE] = 0
    for at in (_DURATION, _SIZE):
        if values[at] is not None:
            values[at] = float(values[at]) + 0.0
    return Task(*values)
