"""``lab``: labs for a class, shown, validated, keyed, graded, counted and printed."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, Commands, command
from topox_core.cli.shared.files import write, write_result
from topox_core.cli.shared.options import JSON, Option, numbered, whole
from topox_core.cli.shared.printing import columns, figure, note, percent, table
from topox_core.errors import needed, refuse_if
from topox_core.io.content import read, record_of
from topox_core.labs.classroom.class_folder import secret_for
from topox_core.labs.classroom.folder import (
    GradedFolder,
    GradeTable,
    Roster,
    answers_in,
    canvas_table,
    grade_folder,
    latest_of_each,
    load_explanations,
    load_roster,
    load_students,
    moodle_table,
    plain_table,
)
from topox_core.labs.classroom.leaderboard import board_of, board_table, entries_in, ranked
from topox_core.labs.classroom.statistics import lab_statistics, statistics_csv, statistics_html
from topox_core.labs.classroom.student import check_name
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.keys import (
    FORMAT,
    SEEDS_TRIED,
    VERSION,
    check_seed,
    filled,
    given_table,
    in_words,
    key_of,
    mistakes_of,
    names_a_value,
    option_texts,
    validate,
    written,
)
from topox_core.labs.lab import Lab, Texts, texts_in
from topox_core.labs.lab_file import lab_of, labs_in, ready_labs
from topox_core.labs.worksheet import worksheets

LAB = Option("lab LAB", str, "a lab's id, or its file (.lab.json)")
SEED = Option("--seed N", whole, "seed of the instance (default 0, the class's)", 0)
COURSE = Option("--course NAME", str, "course, as students type it")
STUDENTS = Option("--students FILE", str, "table whose first column names the students")
FOLDER = Option("folder FOLDER", str, "folder with answers")
CSV = Option("--csv FILE", str, "write the table", over=())


def _lab(options: Arguments) -> tuple[Lab, Texts]:
    """Return the lab that the options name, and the texts of its language."""
    lab = lab_of(options.lab)
    return lab, texts_in(lab.language)


@command("List the labs that ship.", JSON)
def run_list(_: Arguments) -> Answer:
    """Return the labs."""
    rows: list[dict[str, Any]] = [
        {
            "id": lab.id,
            "title": texts_in(lab.language).resolved(lab.title),
            "minutes": lab.minutes,
            "points": lab.points,
            "generators": sorted(lab.generator_versions),
        }
        for lab in ready_labs().values()
    ]
    return Answer(
        {"labs": rows},
        columns(
            rows,
            {
                "lab": "id",
                "title": "title",
                "minutes": "minutes",
                "points": "points",
                "instances": lambda row: " ".join(row["generators"]),
            },
        ),
    )


@command("Show a lab as a student sees it.", LAB, SEED, JSON)
def run_show(options: Arguments) -> Answer:
    """Return the questions of a lab for a seed."""
    (lab, words), seed = _lab(options), options.seed
    check_seed(seed)
    screens: list[dict[str, Any]] = []
    for screen in lab.screens:
        # What a reveal says is computed, and so may be what a later screen says.
        reveals = screen.stage == "reveal" or names_a_value(lab, screen)
        given = None if reveals else given_table(lab, screen, seed)
        screens.append(
            {
                "id": screen.id,
                "stage": screen.stage,
                "text": "" if reveals else filled(lab, screen, screen.text, seed, words),
                "given": given and asdict(given),
                "questions": [
                    record_of(question, "id type points")
                    | {
                        "text": filled(lab, screen, question.text, seed, words),
                        "options": option_texts(lab, question, seed, words),
                    }
                    for question in screen.questions
                ],
            }
        )
    return Answer(
        {"id": lab.id, "title": words.resolved(lab.title), "seed": seed, "screens": screens},
        _screen_lines(screens),
    )


def _screen_lines(screens: list[dict[str, Any]]) -> Iterator[str]:
    shown = None
    for screen in screens:
        yield f"[{screen['stage']}] {screen['text']}".rstrip()
        if screen["given"] is not None and screen["given"] != shown:
            shown = screen["given"]
            yield table(tuple(shown["columns"]), *map(tuple, shown["rows"]))
        for question in screen["questions"]:
            choices = " / ".join(question["options"].values())
            line = f"  {question['id']} ({question['points']:g}) {question['text']}"
            yield f"{line} [{choices}]" if choices else line


@command(
    "Say which seed a student has.",
    Option("--course NAME", str, "course, as students type it", required=True),
    Option("--student NAME", str, "student id", required=True),
)
def run_seed(options: Arguments) -> Answer:
    """Return the seed of a student."""
    check_name(options.course, "course")
    check_name(options.student, "student")
    return Answer(lines=f"{seed_of(options.course, options.student):08d}")


@command(
    "Compute the keys; never show them before the lock.",
    LAB,
    SEED,
    COURSE,
    STUDENTS,
    Option("--output FILE", str, "where the file goes", over=()),
    JSON,
)
def run_key(options: Arguments) -> Answer:
    """Return the keys and the values of misconceptions."""
    lab, words = _lab(options)
    asked = [question for question in lab.questions if question.key is not None]
    keyed = [
        {
            "student": name,
            "seed": seed,
            "keys": {question.id: key_of(lab, question, seed) for question in asked},
            "mistakes": {
                question.id: [
                    {"value": value, "say": words.resolved(feedback.say)}
                    for feedback, value in mistakes_of(lab, question, seed)
                ]
                for question in asked
            },
        }
        for name, seed in _seeds(options)
    ]
    note(words.say("cli.key"))
    record = {
        "format": FORMAT,
        "version": VERSION,
        "lab": lab.id,
        "digest": lab.digest,
        "seeds": keyed,
    }
    write_result(options, options.output, record, indent=1)
    return Answer(record, () if options.output else _key_lines(lab, keyed))


def _key_lines(lab: Lab, keyed: list[dict[str, Any]]) -> Iterator[str]:

    for entry in keyed:
        yield f"seed {entry['seed']} {entry['student']}".rstrip()
        mistakes = {
            name: ", ".join(written(one["value"]) for one in wrong)
            for name, wrong in entry["mistakes"].items()
        }
        rows = (
            (name, in_words(lab.question(name), value), mistakes[name])
            for name, value in entry["keys"].items()
        )
        yield table(("question", "key", "mistakes"), *rows)


@command(
    "Try a lab file: its schema, every key on seeds 0 to 50, feedback that is never told, texts that say an answer, time.",
    LAB,
    JSON,
)
def run_validate(options: Arguments) -> Answer:
    """Return what is wrong with a lab; 1 if a class would notice."""
    lab, _ = _lab(options)
    report = validate(lab)
    record = {
        "lab": lab.id,
        "points": lab.points,
        "errors": list(report.errors),
        "warnings": list(report.warnings),
        "slowest_key_s": report.slowest_s,
        "slowest_question": report.slowest,
    }
    count = len(lab.questions)
    slowest = f"slowest key: {report.slowest}, {figure(round(report.slowest_s, 4), 's')}"
    return Answer(
        record,
        (
            f"{lab.id}: {count} questions, {lab.points:g} points, {len(SEEDS_TRIED)} seeds tried",
            *(f"error: {line}" for line in report.errors),
            *(f"warning: {line}" for line in report.warnings),
            *([slowest] if report.slowest else ()),
        ),
        0 if report.ok else 1,
    )


@command(
    "Grade every *.answers.json of a folder, whatever their lab; points in the files do not count.",
    FOLDER,
    CSV,
    Option("--lab LAB", str, "the lab of a table for Moodle or Canvas"),
    Option("--labs FOLDER", str, "lab files of your own"),
    Option("--roster FILE", str, "students as the course system exports them"),
    Option("--lms", ("plain", "moodle", "canvas"), "form of the table (default plain)", "plain"),
    Option("--explanations FILE", str, "points of explanations: student,question,points"),
    JSON,
)
def run_grade(options: Arguments) -> Answer:
    """Grade a folder; 1 if a file is doubtful or could not be graded."""
    labs = ready_labs() if options.labs is None else labs_in(Path(options.labs))
    points = None
    if options.explanations:
        points = load_explanations(read(options.explanations), options.explanations)
    folder = Path(options.folder)
    roster = load_roster(read(options.roster), options.roster) if options.roster else None
    graded = grade_folder(folder, labs, points, secret_for(folder))
    content, notes = _grade_table(options, graded, labs, roster)
    write(options.csv, content)
    note(*notes)
    said = ("student", "lab", "predictions", "worked", "explanation", "total", "of")
    return Answer(
        {
            "grades": [asdict(one) for one in graded.grades],
            "unreadable": [asdict(one) for one in graded.unreadable],
        },
        (
            columns(
                graded.grades,
                {**{name: name for name in said}, "remarks": lambda one: "; ".join(one.remarks)},
            ),
            *(f"not graded: {one.file}: {one.problem}" for one in graded.unreadable),
        ),
        1 if graded.doubtful else 0,
    )


def _grade_table(
    options: Arguments, graded: GradedFolder, labs: dict[str, Lab], roster: Roster | None
) -> GradeTable:

    if options.lms == "plain":
        return plain_table(graded, labs)
    used = sorted({one.lab for one in graded.grades})
    name = options.lab or (used[0] if len(used) == 1 else "")
    one = f"must be one of {', '.join(used) or 'the labs'}: a table has one"
    refuse_if((name not in labs, one), file="command line", field="--lab")
    if options.lms == "moodle":
        return moodle_table(graded, labs[name], roster)
    export = "must be given: the gradebook as Canvas exports it"
    students = needed(roster, export, file="command line", field="--roster")
    return canvas_table(graded, labs[name], students)


@command(
    "Count the predictions of a folder: no names; share right before and after the discussion, frequent mistakes.",
    FOLDER,
    Option("--lab LAB", str, "which lab", required=True),
    JSON,
    CSV,
    Option("--html FILE", str, "write a page for print", over=()),
)
def run_stats(options: Arguments) -> Answer:
    """Return the statistics of a lab."""
    lab, words = _lab(options)
    files, refused = answers_in(Path(options.folder))
    every = lab_statistics(lab, latest_of_each(file.answers for _, file in files))
    note(*(f"not counted: {bad.file}: {bad.problem}" for bad in refused))
    write(options.csv, lambda: statistics_csv(lab, every))
    write(options.html, lambda: statistics_html(lab, every).encode())
    return Answer(
        {"lab": lab.id, "questions": [asdict(one) for one in every]},
        columns(
            every,
            {
                "question": "question",
                "answers": "count",
                "right": lambda one: percent(one.right),
                "after": lambda one: percent(one.right_again),
                "most frequent mistake": lambda one: " ".join(
                    f"{words.resolved(text)} ({count})" for text, count in one.mistakes[:1]
                ),
            },
        ),
    )


@command(
    "Rank the entries (*.entry.json) of a folder: every one is tested anew, a time that a file claims is not looked at.",
    Option("folder FOLDER", str, "folder with entries"),
    Option("--lab LAB", str, "six-tasks or time-division", required=True),
    JSON,
    CSV,
)
def run_board(options: Arguments) -> Answer:
    """Return a leaderboard; 1 if an entry could not be read."""
    board = board_of(options.lab)
    entries, refused = entries_in(Path(options.folder))
    ranks = ranked(board, entries)
    note(*(f"not read: {one.file}: {one.problem}" for one in refused))
    write(options.csv, lambda: board_table(ranks, board.unit))
    return Answer(
        {"board": board.lab, "unit": board.unit, "entries": [asdict(one) for one in ranks]},
        columns(
            ranks,
            {
                "rank": lambda one: one.rank or None,
                "alias": "alias",
                f"time ({board.unit})": lambda one: f"{one.time:g}" if one.rank else one.problem,
                "above the best known": lambda one: percent(one.gap if one.rank else None),
            },
        ),
        1 if refused else 0,
    )


@command(
    "Write printable sheets, two pages per student: predictions, then worked answers.",
    LAB,
    Option("--seeds LIST", numbered, "seeds, separated by commas", (0,)),
    COURSE,
    STUDENTS,
    Option("--with-key", bool, "pages with the keys after all sheets"),
    Option("--output FILE", str, "the HTML file to write", required=True, over=()),
)
def run_worksheet(options: Arguments) -> Answer:
    """Write the worksheets."""
    write(options.output, worksheets(_lab(options)[0], _seeds(options), options.with_key).encode())
    return Answer()


def _seeds(options: Arguments) -> list[tuple[str, int]]:
    """Return names and seeds: of a list of students, of a list of seeds, else of one seed."""
    if options.students is not None:
        refuse_if(
            (not options.course, "must be given with --students"),
            file="command line",
            field="--course",
        )
        roster = load_students(read(options.students), options.students)
        first = roster.columns[0]
        names = [row[first].strip() for row in roster.rows if row[first].strip()]
        refuse_if((not names, "names no student below its first row"), file=options.students)
        return [(name, seed_of(options.course, name)) for name in names]
    seeds = options.seeds if "seeds" in options else (options.seed,)
    for seed in seeds:
        check_seed(seed)
    return [("", seed) for seed in seeds]


COMMANDS = Commands(
    "Eight labs of 50 minutes, and your own: each student has a seed, predicts, locks, then sees. "
    "Answers are files; grading computes every key anew. docs/labs.md",
    {
        "list": (run_list, "all labs"),
        "show": (run_show, "questions, without keys"),
        "seed": (run_seed, "a student's seed"),
        "key": (run_key, "keys of a seed or of a class"),
        "grade": (run_grade, "grade a folder of answers"),
        "validate": (run_validate, "try a lab on seeds"),
        "stats": (run_stats, "what a class predicted"),
        "board": (run_board, "a leaderboard of entries"),
        "worksheet": (run_worksheet, "a lab on paper"),
    },
    "action",
)
