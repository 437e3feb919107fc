"""``lab``: labs for a class, shown, validated, keyed, graded, counted and printed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, read, write
from topox_core.cli.options import JSON, Option, add_options, whole, wrong_option
from topox_core.cli.printing import as_json, cell, figure, note, percent, show, table
from topox_core.errors import InputError

if TYPE_CHECKING:
    from topox_core.labs.folder import GradedFolder
    from topox_core.labs.grade_tables import GradeTable, Roster
    from topox_core.labs.lab import Lab

LAB = Option("lab LAB", str, "a lab's id, or its file (.lab.json)")
SEED = Option("--seed N", whole, "seed of the instance (default 0, the class's)", 0)
COURSE = Option("--course NAME", str, "course, as students type it")
STUDENTS = Option("--students FILE", str, "table whose first column names the students")
OUTPUT = Option("--output FILE", str, "where the file goes")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command: argparse.ArgumentParser = commands.add_parser(
        "lab",
        allow_abbrev=False,
        help="labs for a class: show, key, grade, statistics, worksheets",
        description="Eight labs of 50 minutes, and your own: each student has a seed, predicts, locks, then sees. "
        "Answers are files; grading computes every key anew. docs/labs.md",
    )
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    given.add_command(actions, "list", run_list, "all labs", "List the labs that ship.", JSON)
    given.add_command(
        actions,
        "show",
        run_show,
        "questions, without keys",
        "Show a lab as a student sees it.",
        LAB,
        SEED,
        JSON,
    )
    seed = given.add_command(
        actions, "seed", run_seed, "a student's seed", "Say which seed a student has."
    )
    required = Option("--course NAME", str, "course, as students type it", required=True)
    add_options(seed, required, Option("--student NAME", str, "student id", required=True))
    given.add_command(
        actions,
        "key",
        run_key,
        "keys of a seed or of a class",
        "Compute the keys; never show them before the lock.",
        LAB,
        SEED,
        COURSE,
        STUDENTS,
        OUTPUT,
        JSON,
    )
    given.add_command(
        actions,
        "grade",
        run_grade,
        "grade a folder of answers",
        "Grade every *.answers.json of a folder, whatever their lab; points in the files do not count.",
        Option("folder FOLDER", str, "folder with answers"),
        Option("--csv FILE", str, "write the table"),
        Option("--lab LAB", str, "the lab of a table for Moodle or Canvas"),
        Option("--labs FOLDER", str, "lab files of your own"),
        Option("--roster FILE", str, "students as the course system exports them"),
        Option("--lms plain|moodle|canvas", str, "form of the table (default plain)", "plain"),
        Option("--explanations FILE", str, "points of explanations: student,question,points"),
        JSON,
    )
    given.add_command(
        actions,
        "validate",
        run_validate,
        "try a lab on seeds",
        "Try a lab file: its schema, every key on seeds 0 to 50, feedback that is never told, texts that say an answer, time.",
        LAB,
        JSON,
    )
    given.add_command(
        actions,
        "stats",
        run_stats,
        "what a class predicted",
        "Count the predictions of a folder: no names; share right before and after the discussion, frequent mistakes.",
        Option("folder FOLDER", str, "folder with answers"),
        Option("--lab LAB", str, "which lab", required=True),
        JSON,
        Option("--csv FILE", str, "write the table"),
        Option("--html FILE", str, "write a page for print"),
    )
    given.add_command(
        actions,
        "board",
        run_board,
        "a leaderboard of entries",
        "Rank the entries (*.entry.json) of a folder: every one is tested anew, a time that a file claims is not looked at.",
        Option("folder FOLDER", str, "folder with entries"),
        Option("--lab LAB", str, "six-tasks or time-division", required=True),
        JSON,
        Option("--csv FILE", str, "write the table"),
    )
    sheet = given.add_command(
        actions,
        "worksheet",
        run_worksheet,
        "a lab on paper",
        "Write printable sheets, two pages a student: predictions, then worked answers.",
    )
    where = Option("--output FILE", str, "the HTML file to write", required=True)
    seeds = Option("--seeds LIST", str, "seeds, separated by commas")
    with_key = Option("--with-key", bool, "pages with the keys after all sheets")
    add_options(sheet, LAB, seeds, COURSE, STUDENTS, with_key, where)


def run_list(options: argparse.Namespace) -> int:
    """Print the labs."""
    from topox_core.labs.ready_labs import ready_labs
    from topox_core.labs.texts_in import texts_in

    rows: list[dict[str, Any]] = []
    for lab in ready_labs().values():
        title = texts_in(lab.language).resolved(lab.title)
        generators = sorted(lab.generator_versions)
        rows.append(
            {
                "id": lab.id,
                "title": title,
                "minutes": lab.minutes,
                "points": lab.points,
                "generators": generators,
            }
        )
    if options.json:
        as_json({"labs": rows})
    else:
        for row in rows:
            row["generators"] = " ".join(row["generators"])
        head = ("lab", "title", "minutes", "points", "instances")
        table(head, *[tuple(map(cell, row.values())) for row in rows])
    return 0


def run_show(options: argparse.Namespace) -> int:
    """Print the questions of a lab for a seed."""
    from topox_core.labs.keys import check_seed, filled, given_table, names_a_value, options_of
    from topox_core.labs.ready_labs import lab_of
    from topox_core.labs.texts_in import texts_in

    lab = lab_of(options.lab)
    check_seed(options.seed)
    words = texts_in(lab.language)
    screens = []
    for screen in lab.screens:
        # What a reveal says is computed, and so may be what a later screen says.
        reveals = screen.stage == "reveal" or names_a_value(lab, screen)
        given_rows = given_table(lab, screen, options.seed)
        screens.append(
            {
                "id": screen.id,
                "stage": screen.stage,
                "text": "" if reveals else filled(lab, screen, screen.text, options.seed, words),
                "given": None
                if reveals or given_rows is None
                else {"columns": given_rows.columns, "rows": given_rows.rows},
                "questions": [
                    {
                        "id": question.id,
                        "type": question.type,
                        "points": question.points,
                        "text": filled(lab, screen, question.text, options.seed, words),
                        "options": {
                            one: next(
                                (words.resolved(o.text) for o in question.options if o.id == one),
                                one,
                            )
                            for one in options_of(lab, question, options.seed)
                        },
                    }
                    for question in screen.questions
                ],
            }
        )
    if options.json:
        title = words.resolved(lab.title)
        as_json({"id": lab.id, "title": title, "seed": options.seed, "screens": screens})
        return 0
    _print_screens(screens)
    return 0


def _print_screens(screens: list[dict[str, Any]]) -> None:
    shown = None
    for screen in screens:
        print(f"[{screen['stage']}] {screen['text']}".rstrip())
        if screen["given"] is not None and screen["given"] != shown:
            shown = screen["given"]
            table(tuple(shown["columns"]), *map(tuple, shown["rows"]))
        for question in screen["questions"]:
            choices = " / ".join(question["options"].values())
            line = f"  {question['id']} ({question['points']:g}) {question['text']}"
            print(f"{line} [{choices}]" if choices else line)


def run_seed(options: argparse.Namespace) -> int:
    """Print the seed of a student."""
    from topox_core.labs.draws import seed_of
    from topox_core.labs.student import check_name

    check_name(options.course, "course")
    check_name(options.student, "student")
    print(f"{seed_of(options.course, options.student):08d}")
    return 0


def run_key(options: argparse.Namespace) -> int:
    """Print the keys and the values of misconceptions."""
    from topox_core.labs.keys import key_of, mistakes_of
    from topox_core.labs.ready_labs import lab_of
    from topox_core.labs.texts_in import texts_in

    lab = lab_of(options.lab)
    words = texts_in(lab.language)
    keyed = []
    for name, seed in _seeds(options):
        entry: dict[str, Any] = {"student": name, "seed": seed, "keys": {}, "mistakes": {}}
        for question in lab.questions:
            if question.key is not None:
                entry["keys"][question.id] = key_of(lab, question, seed)
                entry["mistakes"][question.id] = [
                    {"value": one.value, "say": words.resolved(one.feedback.say)}
                    for one in mistakes_of(lab, question, seed)
                ]
        keyed.append(entry)
    note(words.say("cli.key"))
    record = {"lab": lab.id, "digest": lab.digest, "seeds": keyed}
    if options.output:
        must_be_writable(options.output)
        write(options.output, json.dumps(record, allow_nan=False, indent=1).encode())
    if options.json:
        as_json(record)
    elif not options.output:
        _print_keys(lab, keyed)
    return 0


def _print_keys(lab: Lab, keyed: list[dict[str, Any]]) -> None:
    from topox_core.labs.keys import written

    for entry in keyed:
        print(f"seed {entry['seed']} {entry['student']}".rstrip())
        rows = []
        for name, value in entry["keys"].items():
            question = lab.question(name)
            number = isinstance(value, int | float) and question.type == "number"
            text = written(value, question.digits if number else None)
            mistakes = ", ".join(written(one["value"]) for one in entry["mistakes"][name])
            rows.append((name, f"{text} {question.unit}".strip(), mistakes))
        table(("question", "key", "mistakes"), *rows)


def run_validate(options: argparse.Namespace) -> int:
    """Print what is wrong with a lab; 1 if a class would notice."""
    from topox_core.labs.ready_labs import lab_of
    from topox_core.labs.validation import SEEDS_TRIED, validate

    lab = lab_of(options.lab)
    report = validate(lab)
    if options.json:
        as_json(
            {
                "lab": lab.id,
                "points": lab.points,
                "errors": list(report.errors),
                "warnings": list(report.warnings),
                "slowest_key_s": report.slowest_s,
                "slowest_question": report.slowest,
            }
        )
    else:
        count = len(lab.questions)
        print(f"{lab.id}: {count} questions, {lab.points:g} points, {len(SEEDS_TRIED)} seeds tried")
        for kind, lines in (("error", report.errors), ("warning", report.warnings)):
            for line in lines:
                print(f"{kind}: {line}")
        if report.slowest:
            print(f"slowest key: {report.slowest}, {figure(round(report.slowest_s, 4), 's')}")
    return 0 if report.ok else 1


def run_grade(options: argparse.Namespace) -> int:
    """Grade a folder; 1 if a file is doubtful or could not be graded."""
    from topox_core.labs.class_folder import secret_for
    from topox_core.labs.folder import grade_folder, load_explanations
    from topox_core.labs.grade_tables import FORMS, load_roster
    from topox_core.labs.ready_labs import labs_in, ready_labs

    if options.lms not in FORMS:
        raise wrong_option("--lms", f"must be one of {', '.join(FORMS)} (got {options.lms[:40]})")
    if options.csv:
        must_be_writable(options.csv)
    labs = ready_labs() if options.labs is None else labs_in(Path(options.labs))
    points = None
    if options.explanations:
        points = load_explanations(read(options.explanations), options.explanations)
    folder = Path(options.folder)
    roster = load_roster(read(options.roster), options.roster) if options.roster else None
    graded = grade_folder(folder, labs, points, secret_for(folder))
    made = _grade_table(options, graded, labs, roster)
    if options.csv:
        write(options.csv, made.content)
    for line in made.notes:
        note(line)
    show(options, _grade_record(graded), lambda: _print_grades(graded))
    return 1 if graded.doubtful else 0


def _grade_table(
    options: argparse.Namespace, graded: GradedFolder, labs: dict[str, Lab], roster: Roster | None
) -> GradeTable:
    from topox_core.labs.grade_tables import canvas_table, moodle_table, plain_table

    if options.lms == "plain":
        return plain_table(graded, labs)
    used = sorted({one.lab for one in graded.grades})
    name = options.lab or (used[0] if len(used) == 1 else "")
    if name not in labs:
        raise wrong_option(
            "--lab", f"must be one of {', '.join(used) or 'the labs'}: a table has one"
        )
    if options.lms == "moodle":
        return moodle_table(graded, labs[name], roster)
    if roster is None:
        raise wrong_option("--roster", "must be given: the gradebook as Canvas exports it")
    return canvas_table(graded, labs[name], roster)


def _grade_record(graded: GradedFolder) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "grades": [asdict(one) for one in graded.grades],
        "unreadable": [asdict(one) for one in graded.unreadable],
    }


def _print_grades(graded: GradedFolder) -> None:
    rows: list[tuple[str, ...]] = [
        ("student", "lab", "predictions", "worked", "explanation", "total", "of", "remarks")
    ]
    for one in graded.grades:
        parts = (one.predictions, one.worked, one.explanation, one.total, one.of)
        rows.append((one.student, one.lab, *map(cell, parts), "; ".join(one.remarks)))
    table(*rows)
    for refused in graded.unreadable:
        print(f"not graded: {refused.file}: {refused.problem}")


def run_stats(options: argparse.Namespace) -> int:
    """Print the statistics of a lab."""
    from dataclasses import asdict

    from topox_core.labs.folder import answers_in, latest_of_each
    from topox_core.labs.ready_labs import lab_of
    from topox_core.labs.statistics import lab_statistics, statistics_csv, statistics_html
    from topox_core.labs.texts_in import texts_in

    lab = lab_of(options.lab)
    words = texts_in(lab.language)
    files, refused = answers_in(Path(options.folder))
    every = lab_statistics(lab, latest_of_each(file.answers for _, file in files))
    for bad in refused:
        note(f"not counted: {bad.file}: {bad.problem}")
    for path in filter(None, (options.csv, options.html)):
        must_be_writable(path)
    if options.csv:
        write(options.csv, statistics_csv(lab, every))
    if options.html:
        write(options.html, statistics_html(lab, every).encode())
    if options.json:
        as_json({"lab": lab.id, "questions": [asdict(one) for one in every]})
        return 0
    rows = [("question", "answers", "right", "after", "most frequent mistake")]
    for one in every:
        said = (
            f"{words.resolved(one.mistakes[0][0])} ({one.mistakes[0][1]})" if one.mistakes else ""
        )
        right, again = percent(one.right), percent(one.right_again)
        rows.append((one.question, str(one.count), right, again, said))
    table(*rows)
    return 0


def run_board(options: argparse.Namespace) -> int:
    """Print a leaderboard; 1 if an entry could not be read."""
    from dataclasses import asdict

    from topox_core.labs.leaderboard import board_of, board_table, entries_in, ranked

    board = board_of(options.lab)
    if options.csv:
        must_be_writable(options.csv)
    entries, refused = entries_in(Path(options.folder))
    lines = ranked(board, entries)
    for name, problem in refused:
        note(f"not read: {name}: {problem}")
    if options.csv:
        write(options.csv, board_table(lines, board.unit))
    if options.json:
        as_json({"board": board.lab, "unit": board.unit, "entries": [asdict(one) for one in lines]})
        return 1 if refused else 0
    rows: list[tuple[str, ...]] = [
        ("rank", "alias", f"time ({board.unit})", "above the best known")
    ]
    for one in lines:
        shown = ("-", one.alias, one.problem, "-")
        if one.rank:
            shown = (str(one.rank), one.alias, f"{one.time:g}", percent(one.gap))
        rows.append(shown)
    table(*rows)
    return 1 if refused else 0


def run_worksheet(options: argparse.Namespace) -> int:
    """Write the worksheets."""
    from topox_core.labs.ready_labs import lab_of
    from topox_core.labs.worksheet import worksheets

    must_be_writable(options.output)
    lab = lab_of(options.lab)
    html = worksheets(lab, _seeds(options), options.with_key)
    write(options.output, html.encode())
    return 0


def _seeds(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Return names and seeds: of a list of students, of a list of seeds, else of one seed."""
    from topox_core.labs.draws import seed_of
    from topox_core.labs.grade_tables import load_students
    from topox_core.labs.keys import check_seed

    if options.students is not None:
        if not options.course:
            raise wrong_option("--course", "must be given with --students")
        roster = load_students(read(options.students), options.students)
        names = [row[0].strip() for row in roster.rows if row[0].strip()]
        if not names:
            raise InputError("names no student below its first row", file=options.students)
        return [(name, seed_of(options.course, name)) for name in names]
    listed = getattr(options, "seeds", None)
    if listed is None:
        seeds = [getattr(options, "seed", 0)]
    else:
        try:
            seeds = [int(part) for part in listed.split(",")]
        except ValueError:
            problem = f"must be whole numbers separated by commas (got {listed[:40]!r})"
            raise wrong_option("--seeds", problem) from None
    for seed in seeds:
        check_seed(seed)
    return [("", seed) for seed in seeds]
