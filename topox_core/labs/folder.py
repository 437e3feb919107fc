"""A folder of answers: every file graded or told why not, one row a student and lab, whoever else is odd."""

from __future__ import annotations

import os
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from topox_core.errors import InputError, unknown
from topox_core.io.content import read, why
from topox_core.io.limits import ANSWERS, Limits
from topox_core.io.ranges import is_number, number_in
from topox_core.io.tables import as_meant, read_table
from topox_core.labs.answers import Answers, Explained
from topox_core.labs.answers_file import AnswersFile, load_answers
from topox_core.labs.grading import Explanations, Grade, grade
from topox_core.labs.lab import Lab

ENDING = ".answers.json"
MAX_FILES = 2_000
# Two explanations of at least so many characters that are the same.
LONG_TEXT = 60
_POINTS = Limits(4 << 20, 20_000)
T = TypeVar("T")


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be graded, and why, in one line."""

    file: str
    problem: str


@dataclass(frozen=True)
class GradedFolder:
    """All files of a folder.

    Attributes
    ----------
    grades
        One a student and lab, by lab, course and student.
    unreadable
        Files without a grade.
    """

    grades: tuple[Grade, ...]
    unreadable: tuple[Unreadable, ...]

    @property
    def doubtful(self) -> bool:
        """Whether a person should look at something."""
        return bool(self.unreadable) or any(one.doubtful for one in self.grades)


def answers_in(folder: Path) -> tuple[list[tuple[str, AnswersFile]], list[Unreadable]]:
    """Return the answers of a folder, not below it, with their names, and the files that are none.

    Raises
    ------
    InputError
        If there is no such folder, no answers in it, or more than ``MAX_FILES``.
    """
    found = files_in(folder, ENDING, MAX_FILES, "answers")
    if not found:
        problem = f"holds no file whose name ends in {ENDING}"
        raise InputError(problem, file=str(folder))
    return answers_from((entry.name, partial(_read, entry)) for entry in found)


def answers_from(
    files: Iterable[tuple[str, Callable[[], bytes]]],
) -> tuple[list[tuple[str, AnswersFile]], list[Unreadable]]:
    """Return the answers among files that are given by name and what reads them, and those that are none."""
    found, refused = load_each(files, load_answers)
    return found, [Unreadable(name, _problem(error)) for name, error in refused]


def files_in(folder: Path, ending: str, most: int, what: str) -> list[os.DirEntry[str]]:
    """Return the files of a folder, not below it, whose names have an ending, by name.

    Raises
    ------
    InputError
        If there is no such folder, or more than ``most`` of these files are in it.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted((e for e in entries if e.name.endswith(ending)), key=lambda e: e.name)
    except OSError as error:
        raise InputError(f"cannot be read: {why(error)}", file=str(folder)) from None
    if len(found) > most:
        problem = f"holds {len(found):,} {what}, more than the {most:,} that are read"
        raise InputError(problem, file=str(folder))
    return found


def load_each(
    files: Iterable[tuple[str, Callable[[], bytes]]], load: Callable[[bytes, str], T]
) -> tuple[list[tuple[str, T]], list[tuple[str, InputError]]]:
    """Return what files hold, by name, and those that cannot be used: what is wrong with one never touches another."""
    found: list[tuple[str, T]] = []
    refused: list[tuple[str, InputError]] = []
    for name, content in files:
        try:
            found.append((name, load(content(), name)))
        except InputError as error:
            refused.append((name, error))
    return found, refused


def latest_of_each(every: Iterable[Answers]) -> tuple[Answers, ...]:
    """Return of each student and lab the answers that were finished last: nobody is counted twice."""
    latest: dict[tuple[str, str, str], Answers] = {}
    for one in every:
        student = one.lab, folded(one.course), folded(one.student)
        if student not in latest or one.finished >= latest[student].finished:
            latest[student] = one
    return tuple(latest.values())


def grade_folder(
    folder: Path,
    labs: Mapping[str, Lab],
    explanations: Explanations | None = None,
    secret: bytes | None = None,
) -> GradedFolder:
    """Grade every file of a folder; what is wrong with one never touches another.

    Parameters
    ----------
    labs
        By id.
    explanations, secret
        As in :func:`~topox_core.labs.grading.grade`.

    Raises
    ------
    InputError
        As :func:`answers_in`.
    """
    files, refused = answers_in(folder)
    grades: list[Grade] = []
    texts: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for name, file in files:
        lab = file.answers.lab
        try:
            if lab not in labs:
                raise InputError(f"lab {lab[:40]!r}: {unknown(lab, labs, 'lab')}")
            graded = grade(labs[lab], file, name, explanations, secret)
        except InputError as error:
            refused.append(Unreadable(name, _problem(error)))
            continue
        for given in file.answers.given.values():
            if isinstance(given, Explained) and len(given.value.strip()) >= LONG_TEXT:
                texts[lab, folded(given.value)].append(len(grades))
        grades.append(graded)
    grades = _with_equal_texts(grades, texts)
    refused.sort(key=lambda one: one.file)
    return GradedFolder(tuple(_one_a_student(grades)), tuple(refused))


def load_explanations(data: bytes, file: str) -> dict[tuple[str, str], float]:
    """Read points of explanations: a table with the columns student, question and points.

    Raises
    ------
    InputError
        If a column is missing or points are no number; row and column are named.
    """
    known = ("student", "question", "points")
    table = read_table(data, file, _POINTS, known, ",".join(known), known)
    points: dict[tuple[str, str], float] = {}
    for number, cells in table.rows:
        row = dict(zip(table.columns, cells, strict=False))
        value = number_in(row.get("points", "").replace(",", "."))
        if not is_number(value, 0, 1_000):
            problem = f"must be a number from 0 (got {row.get('points', '')!r})"
            raise InputError(problem, file=file, item=f"row {number}", field="points")
        points[as_meant(row["student"]), row.get("question", "")] = value
    return points


def _read(entry: os.DirEntry[str]) -> bytes:
    if entry.is_symlink():
        raise InputError("is a link, which is not followed", file=entry.name)
    if not entry.is_file(follow_symlinks=False):
        raise InputError("is no file", file=entry.name)
    if entry.stat(follow_symlinks=False).st_size > ANSWERS.file_bytes:
        most = ANSWERS.file_bytes // 1024
        raise InputError(f"is larger than the {most} kB that answers may have", file=entry.name)
    return read(entry.path)


def _problem(error: InputError) -> str:
    return InputError(error.problem, item=error.item, field=error.field).located(error.problem)


def folded(text: str) -> str:
    """Return text as it is compared: capitals, forms of a letter and spaces make no difference."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _with_equal_texts(
    grades: list[Grade], texts: Mapping[tuple[str, str], list[int]]
) -> list[Grade]:
    """Return grades with a remark where two students wrote the same long text."""
    marked = list(grades)
    for places in texts.values():
        for at in places:
            others = sorted(
                {
                    grades[o].student
                    for o in places
                    if folded(grades[o].student) != folded(grades[at].student)
                }
            )
            if others:
                remark = f"same text as {', '.join(others)}"
                marked[at] = replace(marked[at], remarks=(*marked[at].remarks, remark))
    return marked


def _one_a_student(grades: list[Grade]) -> list[Grade]:
    """Return one grade a student and lab: of several files the one that was finished last."""
    by_student: defaultdict[tuple[str, str, str], list[Grade]] = defaultdict(list)
    for one in grades:
        by_student[one.lab, folded(one.course), folded(one.student)].append(one)
    kept = []
    for several in by_student.values():
        several.sort(key=lambda one: (one.finished, one.file))
        *earlier, last = several
        notes = tuple(f"{one.file} is earlier and does not count" for one in earlier)
        kept.append(replace(last, remarks=last.remarks + notes))
    return sorted(kept, key=lambda one: (one.lab, folded(one.course), folded(one.student)))
