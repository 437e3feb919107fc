"""A folder of answers: every file graded or told why not, one row per student and lab, whoever else is odd; and its tables.

Grades as tables are plain, for Moodle or for Canvas: UTF-8 with a mark, comma, and no cell that is a formula.
"""

import csv
import io
import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from topox_core.errors import InputError, check_known, refuse_if, shown
from topox_core.io.content import read, whole, why
from topox_core.io.limits import ANSWERS, Limits, is_number, number_in
from topox_core.io.tables import as_meant, harmless, read_table
from topox_core.labs.classroom.answers import Answers, AnswersFile, load_answers
from topox_core.labs.classroom.grading import Explanations, Grade, grade
from topox_core.labs.lab import Lab, Texts, texts_in
from topox_core.model.arrays.groups import by_key

ENDING = ".answers.json"
MAX_FILES = 2_000
# Two explanations of at least so many characters that are the same.
LONG_TEXT = 60
_POINTS = Limits(4 << 20, 20_000)
T = TypeVar("T")
OfStudent = TypeVar("OfStudent", Answers, Grade)
# A file to import, and what the lecturer must know: who is not in the roster, which column is new.
GradeTable = tuple[bytes, tuple[str, ...]]
ROSTER = Limits(8 << 20, 20_000)
_ID, _EMAIL = "ID number", "Email address"
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_LOGINS = ("SIS Login ID", "SIS User ID")
_POINTS_ROW = "points possible"
_HEAD = (
    *("student", "course", "lab", "seed", "predictions", "worked", "explanation", "total", "of"),
    *("minutes", "remarks"),
)


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
    return _each_of(folder, load_answers)


def _each_of(
    folder: Path, load: Callable[[bytes, str], T]
) -> tuple[list[tuple[str, T]], list[Unreadable]]:
    found = files_in(folder, ENDING, MAX_FILES, "answers")
    refuse_if((not found, f"holds no file whose name ends in {ENDING}"), file=str(folder))
    return load_each(found, load)


def files_in(
    folder: Path, ending: str, most: int, what: str
) -> list[tuple[str, Callable[[], bytes]]]:
    """Return the files of a folder, not below it, whose names have an ending, in order of the names, with what reads each.

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
    refuse_if(
        (len(found) > most, f"holds {len(found):,} {what}, more than the {most:,} that are read"),
        file=str(folder),
    )
    return [(entry.name, partial(_read, entry)) for entry in found]


def load_each(
    files: Iterable[tuple[str, Callable[[], bytes]]], load: Callable[[bytes, str], T]
) -> tuple[list[tuple[str, T]], list[Unreadable]]:
    """Return what files hold, by name, and those that cannot be used: what is wrong with one never touches another.

    Parameters
    ----------
    files
        Each by its name and what reads it.
    """
    found: list[tuple[str, T]] = []
    refused: list[Unreadable] = []
    for name, content in files:
        try:
            found.append((name, load(content(), name)))
        except InputError as error:
            refused.append(Unreadable(name, _problem(error)))
    return found, refused


def latest_of_each(every: Iterable[Answers]) -> tuple[Answers, ...]:
    """Return of each student and lab the answers that were finished last: nobody is counted twice."""
    return tuple(several[-1] for several in _by_student(every))


def _by_student(every: Iterable[OfStudent]) -> Iterable[list[OfStudent]]:
    """Return what there is of each student and lab, what was finished last at the end."""
    return by_key(
        ((one.lab, folded(one.course), folded(one.student)), one)
        for one in sorted(every, key=attrgetter("finished"))
    ).values()


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
        As in :func:`~topox_core.labs.classroom.grading.grade`.

    Raises
    ------
    InputError
        As :func:`answers_in`.
    """

    def graded(data: bytes, name: str) -> Grade:
        file = load_answers(data, name)
        lab = file.answers.lab
        check_known(lab, labs, "lab", item=f"lab {lab[:40]!r}")
        return grade(labs[lab], file, name, explanations, secret)

    every, refused = _each_of(folder, graded)
    grades = _with_equal_texts([one for _, one in every])
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
    for number, row in table.records(file):
        value = number_in(row.get("points", "").replace(",", "."))
        refuse_if(
            (
                not is_number(value, 0, 1_000),
                f"must be a number from 0 (got {row.get('points', '')!r})",
            ),
            file=file,
            item=f"row {number}",
            field="points",
        )
        points[as_meant(row["student"]), row.get("question", "")] = value
    return points


def _read(entry: os.DirEntry[str]) -> bytes:
    size, most = entry.stat(follow_symlinks=False).st_size, ANSWERS.file_bytes
    refuse_if(
        (entry.is_symlink(), "is a link, which is not followed"),
        (not entry.is_file(follow_symlinks=False), "is no file"),
        (size > most, f"is larger than the {most // 1024} kB that such a file may have"),
        file=entry.name,
    )
    return read(entry.path)


def _problem(error: InputError) -> str:
    return InputError(error.problem, item=error.item, field=error.field).located(error.problem)


def folded(text: str) -> str:
    """Return text as it is compared: capitals, forms of a letter and spaces make no difference."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _with_equal_texts(grades: list[Grade]) -> list[Grade]:
    """Return grades with a remark where two students wrote the same long text."""
    texts = [
        ((one.lab, folded(part.answer)), one)
        for one in grades
        for part in one.questions
        if isinstance(part.answer, str) and len(part.answer.strip()) >= LONG_TEXT
    ]
    writers = by_key((text, one.student) for text, one in texts)
    same = by_key(
        (id(one), f"same text as {', '.join(others)}")
        for text, one in texts
        if (others := _others(writers[text], one.student))
    )
    return [replace(one, remarks=(*one.remarks, *same.get(id(one), ()))) for one in grades]


def _others(students: Iterable[str], student: str) -> list[str]:
    return sorted({one for one in students if folded(one) != folded(student)})


def _one_a_student(grades: list[Grade]) -> list[Grade]:
    """Return one grade a student and lab: of several files the one that was finished last."""
    kept = [
        replace(
            last,
            remarks=(*last.remarks, *(f"{e.file} is earlier and does not count" for e in earlier)),
        )
        for *earlier, last in _by_student(grades)
    ]
    return sorted(kept, key=lambda one: (one.lab, folded(one.course), folded(one.student)))


# -- grades as tables -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Roster:
    """A list of students as a course system exports it: columns and rows as they are."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]


def load_roster(data: bytes, file: str) -> Roster:
    """Read a roster, a table with any columns.

    Raises
    ------
    InputError
        If it is no table in UTF-8, empty, or a row has more cells than columns.
    """
    text = whole(data, file, ROSTER)
    try:
        lines = io.StringIO(text.decode("utf-8-sig"), newline="")
        rows = [tuple(row) for row in csv.reader(lines, strict=True) if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read as a table: {error}", file=file) from None
    refuse_if(
        (
            not rows or len(rows) > ROSTER.entries,
            f"must have a first row of columns and at most {ROSTER.entries:,} students",
        ),
        file=file,
    )
    columns, *others = rows
    for number, row in enumerate(others, 2):
        refuse_if(
            (len(row) > len(columns), f"has {len(row)} cells, the first row {len(columns)}"),
            file=file,
            item=f"row {number}",
        )
    return Roster(columns, tuple(dict(zip_longest(columns, row, fillvalue="")) for row in others))


def load_students(data: bytes, file: str) -> Roster:
    """Read a roster whose first column names the students, below a heading.

    Raises
    ------
    InputError
        As :func:`load_roster`; if semicolons separate the columns; or if the first row is no heading
        but a student: an id has a digit, and that student would get no sheet.
    """
    roster = load_roster(data, file)
    first = roster.columns[0].strip()
    one, got = len(roster.columns) == 1, f"(got {shown(first)})"
    is_student = any(letter.isdigit() for letter in first)
    refuse_if(
        (one and ";" in first, f"must separate columns by commas {got}"),
        (is_student, f"must name the columns, such as student {got}"),
        file=file,
        item="row 1",
    )
    return roster


def plain_table(graded: GradedFolder, labs: Mapping[str, Lab]) -> GradeTable:
    """Return one row per student and lab, then one per file that could not be graded."""
    used = sorted({one.lab for one in graded.grades})
    questions = [(lab, question.id) for lab in used for question in labs[lab].questions]
    several = len(used) > 1
    names = [f"{lab} {question}" if several else question for lab, question in questions]
    rows = [[*_HEAD, *names]]
    for one in graded.grades:
        points = {(one.lab, part.question): part.points for part in one.questions}
        values = (*(getattr(one, name) for name in _HEAD), *map(points.get, questions))
        rows.append([*map(_cell, values)])
    for refused in graded.unreadable:
        line = f"unreadable: {refused.file}: {refused.problem}"
        rows.append([line if name == "remarks" else "" for name in (*_HEAD, *names)])
    return _table(rows), ()


def moodle_table(graded: GradedFolder, lab: Lab, roster: Roster | None = None) -> GradeTable:
    """Return a table that Moodle's import of grades reads: grade and feedback are always both in it.

    Raises
    ------
    InputError
        If a roster has neither an ID number nor an e-mail address.
    """
    words = texts_in(lab.language)
    title = words.resolved(lab.title)
    emails, notes = _emails(roster), []
    name = f"topox: {title}"
    rows = [[_ID, _EMAIL, f"{name} (max {_cell(lab.points)})", f"{name} feedback"]]
    for one in _of_lab(graded, lab):
        key = folded(one.student)
        if roster is not None and key not in emails:
            notes.append(f"{one.student} is not in the roster")
        student, email = emails.get(key, (one.student, ""))
        rows.append([student, email, _cell(one.total), feedback(lab, one, words)])
    return _table(rows), tuple(notes)


def canvas_table(graded: GradedFolder, lab: Lab, roster: Roster) -> GradeTable:
    """Return the gradebook of a Canvas course with one column filled in; its other columns stay as they are.

    Raises
    ------
    InputError
        If the roster is no export of a gradebook: a column is missing.
    """
    export = "is missing: export the course's gradebook and give that file"
    for column in _CANVAS[:4]:
        refuse_if((column not in roster.columns, export), file="roster", field=column)
    title = texts_in(lab.language).resolved(lab.title)
    own = f"TOPO-X: {title}"
    column = next((name for name in roster.columns if name.startswith((own, title))), own)
    grades = {folded(one.student): one for one in _of_lab(graded, lab)}
    columns = [*(name for name in roster.columns if name in _CANVAS), column]
    rows, found = [columns], set[str]()
    for cells in roster.rows:
        filled = {column: "", **cells}
        login = next((one for name in _LOGINS if (one := folded(cells[name])) in grades), "")
        if login:
            filled[column] = _cell(grades[login].total)
        elif _POINTS_ROW in folded(cells[roster.columns[0]]):
            filled[column] = _cell(lab.points)
        found.add(login)
        rows.append([filled[name] for name in columns])
    notes = [
        f"{one.student} is not in the roster" for name, one in grades.items() if name not in found
    ]
    if column not in roster.columns:
        notes.insert(0, f"column {column!r} is new: Canvas makes a new assignment of it")
    # Cells of the roster go back as they came, or Canvas would not know its own students.
    return _written(rows), tuple(notes)


def feedback(lab: Lab, one: Grade, words: Texts | None = None) -> str:
    """Return what a student is told in one cell: points per question, and the sentence of each misconception."""
    words = words or texts_in(lab.language)
    parts = []
    for part in one.questions:
        question = lab.question(part.question)
        points = words.say("answers.unread") if part.points is None else _cell(part.points)
        text = f"{part.question}: {points}/{_cell(question.points)}"
        said = words.resolved(part.say) if part.say and not part.right else ""
        parts.append(f"{text} {said}".strip())
    return " | ".join(parts)


def _emails(roster: Roster | None) -> dict[str, tuple[str, str]]:
    """Return ID number and e-mail address by either of them."""
    if roster is None:
        return {}
    refuse_if(
        (
            _ID not in roster.columns and _EMAIL not in roster.columns,
            f"must have a column {_ID!r} or {_EMAIL!r} (got {shown(', '.join(roster.columns))})",
        ),
        file="roster",
        item="first row",
    )
    both = [(one.get(_ID, "").strip(), one.get(_EMAIL, "").strip()) for one in roster.rows]
    return {
        folded(key): (student, email) for student, email in both for key in (student, email) if key
    }


def _of_lab(graded: GradedFolder, lab: Lab) -> list[Grade]:
    return [one for one in graded.grades if one.lab == lab.id]


def _cell(value: str | float | tuple[str, ...] | None) -> str:
    """Return a value of a grade as a cell."""
    if isinstance(value, int | float):
        return f"{value:.10g}"
    return value if isinstance(value, str) else "; ".join(value or ())


def _table(rows: Iterable[Sequence[str]]) -> bytes:
    return _written([[harmless(cell) for cell in row] for row in rows])


def _written(rows: Iterable[Sequence[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode("utf-8-sig", "replace")
