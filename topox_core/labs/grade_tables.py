"""Grades as tables: plain, for Moodle, for Canvas; UTF-8 with a mark, comma, and no cell that is a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from topox_core.errors import InputError, shown
from topox_core.io.content import whole
from topox_core.io.limits import Limits
from topox_core.io.tables import harmless
from topox_core.labs.folder import GradedFolder, folded
from topox_core.labs.grading import Grade
from topox_core.labs.lab import Lab
from topox_core.labs.lab import Texts, texts_in

# A file to import, and what the lecturer must know: who is not in the roster, which column is new.
GradeTable = tuple[bytes, tuple[str, ...]]
ROSTER = Limits(8 << 20, 20_000)
FORMS = ("plain", "moodle", "canvas")
_ID, _EMAIL = "ID number", "Email address"
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_LOGINS = ("SIS Login ID", "SIS User ID")
_POINTS_ROW = "points possible"
_HEAD = (
    *("student", "course", "lab", "seed", "predictions", "worked", "explanation", "total", "of"),
    *("minutes", "remarks"),
)


@dataclass(frozen=True)
class Roster:
    """A list of students as a course system exports it: columns and rows as they are."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


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
    if not rows or len(rows) > ROSTER.entries:
        problem = f"must have a first row of columns and at most {ROSTER.entries:,} students"
        raise InputError(problem, file=file)
    columns = rows[0]
    for number, row in enumerate(rows[1:], 2):
        if len(row) > len(columns):
            problem = f"has {len(row)} cells, the first row {len(columns)}"
            raise InputError(problem, file=file, item=f"row {number}")
    width = len(columns)
    return Roster(columns, tuple((*row, *[""] * (width - len(row))) for row in rows[1:]))


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
    if len(roster.columns) == 1 and ";" in first:
        problem = f"must separate columns by commas (got {shown(first)})"
        raise InputError(problem, file=file, item="row 1")
    if any(letter.isdigit() for letter in first):
        problem = f"must name the columns, such as student (got {shown(first)})"
        raise InputError(problem, file=file, item="row 1")
    return roster


def plain_table(graded: GradedFolder, labs: Mapping[str, Lab]) -> GradeTable:
    """Return one row a student and lab, then one a file that could not be graded."""
    used = sorted({one.lab for one in graded.grades})
    questions = [(lab, question.id) for lab in used for question in labs[lab].questions]
    several = len(used) > 1
    names = [f"{lab} {question}" if several else question for lab, question in questions]
    rows = [[*_HEAD, *names]]
    for one in graded.grades:
        points = {(one.lab, part.question): part.points for part in one.questions}
        head = [one.student, one.course, one.lab, str(one.seed)]
        numbers = (one.predictions, one.worked, one.explanation, one.total, one.of, one.minutes)
        head += [*map(_number, numbers), "; ".join(one.remarks)]
        rows.append([*head, *(_number(points.get(place)) for place in questions)])
    for refused in graded.unreadable:
        empty = [""] * (len(_HEAD) - 2)
        line = f"unreadable: {refused.file}: {refused.problem}"
        rows.append(["", *empty, line, *[""] * len(questions)])
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
    rows = [[_ID, _EMAIL, f"{name} (max {_number(lab.points)})", f"{name} feedback"]]
    for one in _of_lab(graded, lab):
        key = folded(one.student)
        if roster is not None and key not in emails:
            notes.append(f"{one.student} is not in the roster")
        student, email = emails.get(key, (one.student, ""))
        rows.append([student, email, _number(one.total), feedback(lab, one, words)])
    return _table(rows), tuple(notes)


def canvas_table(graded: GradedFolder, lab: Lab, roster: Roster) -> GradeTable:
    """Return the gradebook of a Canvas course with one column filled in; its other columns stay as they are.

    Raises
    ------
    InputError
        If the roster is no export of a gradebook: a column is missing.
    """
    for column in _CANVAS[:4]:
        if column not in roster.columns:
            problem = "is missing: export the course's gradebook and give that file"
            raise InputError(problem, file="roster", field=column)
    title = texts_in(lab.language).resolved(lab.title)
    own = f"TOPO-X: {title}"
    there = [name for name in roster.columns if name.startswith((own, title))]
    column = there[0] if there else own
    notes = [] if there else [f"column {column!r} is new: Canvas makes a new assignment of it"]
    grades = {folded(one.student): one for one in _of_lab(graded, lab)}
    kept = [name for name in roster.columns if name in _CANVAS]
    columns = [*kept, column]
    rows, found = [], set()
    for row in roster.rows:
        cells = dict(zip(roster.columns, row, strict=True))
        logins = [folded(cells[name]) for name in _LOGINS if cells[name].strip()]
        login = next((one for one in logins if one in grades), None)
        possible = any(_POINTS_ROW in folded(cell) for cell in row[:1])
        value = cells.get(column, "")
        if login is not None:
            found.add(login)
            value = _number(grades[login].total)
        elif possible:
            value = _number(lab.points)
        rows.append([*(cells[name] for name in kept), value])
    notes += [
        f"{one.student} is not in the roster" for key, one in grades.items() if key not in found
    ]
    # Cells of the roster go back as they came, or Canvas would not know its own students.
    return _written([columns, *rows]), tuple(notes)


def feedback(lab: Lab, one: Grade, words: Texts | None = None) -> str:
    """Return what a student is told in one cell: points a question, and the sentence of each misconception."""
    words = words or texts_in(lab.language)
    parts = []
    for part in one.questions:
        question = lab.question(part.question)
        points = words.say("answers.unread") if part.points is None else _number(part.points)
        text = f"{part.question}: {points}/{_number(question.points)}"
        said = words.resolved(part.say) if part.say and not part.right else ""
        parts.append(f"{text} {said}".strip())
    return " | ".join(parts)


def _emails(roster: Roster | None) -> dict[str, tuple[str, str]]:
    """Return ID number and e-mail address by either of them."""
    if roster is None:
        return {}
    if _ID not in roster.columns and _EMAIL not in roster.columns:
        problem = (
            f"must have a column {_ID!r} or {_EMAIL!r} (got {shown(', '.join(roster.columns))})"
        )
        raise InputError(problem, file="roster", item="first row")
    found = {}
    for row in roster.rows:
        cells = dict(zip(roster.columns, row, strict=True))
        student, email = cells.get(_ID, "").strip(), cells.get(_EMAIL, "").strip()
        for key in (student, email):
            if key:
                found[folded(key)] = (student, email)
    return found


def _of_lab(graded: GradedFolder, lab: Lab) -> list[Grade]:
    return [one for one in graded.grades if one.lab == lab.id]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _table(rows: Iterable[Sequence[str]]) -> bytes:
    return _written([[harmless(cell) for cell in row] for row in rows])


def _written(rows: Iterable[Sequence[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode("utf-8-sig", "replace")
