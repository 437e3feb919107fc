"""``study``: many what-ifs at once, each kept the moment it is done."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from topox_core.claims.cells import JOBS, Cell, cells_of, rivals_run
from topox_core.claims.claims import (
    CLAIMS,
    argument,
    as_record as claims_record,
    cell_rows,
    crossing_words,
    measured_words,
    tried,
    verdict_words,
)
from topox_core.cli.command import (
    Answer,
    Arguments,
    Commands,
    cell,
    columns,
    command,
    note,
    percent,
    read,
    table,
    write,
)
from topox_core.cli.library_options import (
    CSV,
    LIBRARY,
    NO_LIBRARY,
    SCHEDULER,
    WORKERS,
    compute,
    library_of,
    write_rows,
)
from topox_core.cli.options import (
    JSON,
    Group,
    Option,
    given_of,
    key_and_value,
    listed,
    number,
    options_of,
    positive,
    settings_as_options,
    value_of,
)
from topox_core.economics.comparison import Running
from topox_core.errors import InputError, look_up, refuse_if
from topox_core.io.assertions import FAILED
from topox_core.io.content import record_of
from topox_core.io.limits import check_one_of
from topox_core.library.run_library import RunLibrary
from topox_core.runs.executor import Executor
from topox_core.runs.identity import code_version
from topox_core.schema.fields import fields_of
from topox_core.studies.axes import unknown_key
from topox_core.studies.buying.answer import prices_of
from topox_core.studies.buying.offers import OFFERS, dump_offers, load_offers, offer_of, sources_of
from topox_core.studies.buying.question import RIVALS, Assumptions, Question, buying_study
from topox_core.studies.buying.run import Answer as BuyingAnswer, buying_run
from topox_core.studies.buying.words import (
    as_record,
    caveats,
    details,
    finding,
    network_rows,
    plain,
    questions_turned,
    swing_rows,
    unfit_words,
)
from topox_core.studies.keys import Value
from topox_core.studies.ready import READY, study_given
from topox_core.studies.slices import failed_assertions, records
from topox_core.studies.study import dump_study
from topox_core.studies.study_run import (
    StudyPlan,
    StudyResult,
    StudyRun,
    known_rows,
    plan_of,
    probe_s,
)
from topox_core.studies.subject import Resolved, Subject, resolve, subject_of
from topox_core.text.numbers import plural

SHOWN_ROWS = 40
FILE = Option("study STUDY", str, "a study file, or the name of a ready one (study ready)")
# The files that name the job.
_JOB = ("graph", "cluster")


def _plan(options: Arguments, library: RunLibrary | None) -> StudyPlan:

    study, folder = study_given(options.study, library)
    return plan_of(study, library, folder)


@command(
    "Compute the points that the library lacks.",
    FILE,
    WORKERS,
    SCHEDULER,
    LIBRARY,
    NO_LIBRARY,
    CSV,
    JSON,
)
def run(options: Arguments) -> Answer:
    """Compute a study; 1 if points are missing at the end."""
    with library_of(options, to_write=True) as library:
        plan = _plan(options, library)
        known = known_rows(plan, library)

        def begun(executor: Executor) -> StudyRun:
            points, missing = plural(len(plan.cells), "point"), len(plan.keys) - len(known)
            kept = f", {len(known)} kept" if known else ""
            note(f"{plan.study.name}: {points}, {missing} to compute{kept}")
            return StudyRun(plan, library, executor)

        result: StudyResult = compute(options, begun)
    note(*result.lost)
    if not result.complete:
        again = "" if options.no_library else f"; go on with: topox study run {options.study}"
        note(f"{result.done} of {plural(len(result.rows), 'point')} are computed{again}")
    return _answer(options, result, everything=False)


def _answer(options: Arguments, result: StudyResult, everything: bool) -> Answer:
    """Return the table of a study, and write it; 3 if an assertion failed, else 1 if points are missing."""
    rows, failed = records(result, everything), failed_assertions(result)
    write_rows(options.csv, rows)
    note(*failed)
    record = {
        "study": result.study.name,
        "complete": result.complete,
        "failed_assertions": failed,
        "points": rows,
    }
    status = FAILED if failed else 0 if result.complete else 1
    return Answer(record, _lines(result, rows) if rows else (), status)


def _lines(result: StudyResult, rows: list[dict[str, Any]]) -> list[str]:
    axes = [axis.key.name for axis in result.study.axes]
    if result.study.design.kind == "one_at_a_time":
        rows = [_moved(row, axes) for row in rows]
    head = [key for key in rows[0] if key not in ("message", "run", "version")]
    cells = (tuple(cell(row[key]) for key in head) for row in rows[:SHOWN_ROWS])
    lines = [table(tuple(key.rpartition(".")[2] for key in head), *cells)]
    if len(rows) > SHOWN_ROWS:
        lines.append(f"... {len(rows) - SHOWN_ROWS:,} more (--json or --csv has all)")
    failed = [row for row in rows if row["status"] == "failed"]
    return lines + [f"point {row['point']}: {row['message']}" for row in failed[:3]]


def _moved(row: dict[str, Any], axes: list[str]) -> dict[str, Any]:
    """Return a row of one axis at a time with the axis that moved and its value in place of all axes."""
    key = next((key for key in axes if row[key] is not None), "")
    rest = {name: value for name, value in row.items() if name not in (*axes, "point")}
    return {"point": row["point"], "moved": key or "nothing", "to": row.get(key), **rest}


@command(
    "Without a file: the studies of the library. With one: its points, which are computed, and the time of the rest.",
    Option("study STUDY", str, FILE.help, nargs="?"),
    LIBRARY,
    JSON,
)
def status(options: Arguments) -> Answer:
    """Return how far a study is, or all of a library."""
    with library_of(options) as library:
        assert library is not None
        if options.study is None:
            return _list(library)
        plan = _plan(options, library)
        known = known_rows(plan, library)
        missing = len(plan.keys) - len(known)
        record = {
            "study": plan.study.name,
            "points": len(plan.cells),
            "different": len(plan.keys),
            "kept": len(known),
            "missing": missing,
            "expected_s": probe_s(plan, known) if missing else 0.0,
            "digest": plan.study.digest,
        }
    return Answer(record, table(*((key, str(value)) for key, value in record.items())))


def _list(library: RunLibrary) -> Answer:
    """Return the studies of a library."""
    studies = [
        record_of(one, "id name points kept state")
        | {"this_version": one.version == code_version()}
        for one in library.studies()
    ]
    lines = columns(
        studies,
        {
            "id": "id",
            "name": "name",
            "points": lambda one: f"{one['kept']} of {one['points']}",
            "state": "state",
            "": lambda one: "" if one["this_version"] else "another version",
        },
    )
    return Answer(
        {"studies": studies},
        [lines if studies else "no study yet; study ready lists some to begin with"],
    )


@command(
    "Print what the library has of a study.",
    FILE,
    LIBRARY,
    Option("--all-measures", bool, "every measure that was kept"),
    Option("--any-version", bool, "rows of other versions too, marked"),
    CSV,
    JSON,
)
def show(options: Arguments) -> Answer:
    """Return what the library has of a study; 1 if points are missing."""
    with library_of(options) as library:
        plan = _plan(options, library)
        rows = plan.rows(known_rows(plan, library, options.any_version))
    return _answer(options, StudyResult(plan.study, rows), options.all_measures)


@command(
    "Without a name: list them. With one: write it as a file, to be changed.",
    Option("name NAME", str, "of a ready study", nargs="?"),
    Option("--sample NAME", str, "the sample that it is about, where it may be"),
    Option("--output FILE", str, "the study file (.study.json)", over=()),
    JSON,
)
def ready(options: Arguments) -> Answer:
    """Return ready studies, or one as its file."""
    if options.name is None:
        questions = {name: one.question for name, one in READY.items()}
        return Answer({"ready": questions}, table(*questions.items()))
    one, subject = look_up(options.name, READY, "study", file="command line", field="NAME"), None
    if options.sample is not None:
        refuse_if(
            ("sample" not in one.kinds, f"is not for {options.name}"),
            file="command line",
            field="--sample",
        )
        subject = {"kind": "sample", "name": options.sample}
        one.study(subject)
    text = json.dumps(one.record(subject), indent=1)
    write(options.output, f"{text}\n".encode())
    return Answer(lines=() if options.output else [text])


@command(
    "Run six jobs on every network at delays from 10 ns to 1 s, two numbers and two speeds of ports, and say which "
    "published claims hold (docs/who-is-right.md).",
    Option("--jobs LIST", listed, "some of the jobs, such as dense,experts (default: all six)"),
    WORKERS,
    LIBRARY,
    NO_LIBRARY,
    Option("--csv FILE", str, "write every cell", over=()),
    JSON,
)
def rivals(options: Arguments) -> Answer:
    """Compute what is missing and say which claims hold; 1 if points are missing at the end."""
    for name in options.jobs or ():
        check_one_of(name, JOBS, file="command line", field="--jobs")
    jobs = tuple(name for name in JOBS if not options.jobs or name in options.jobs)
    with library_of(options, to_write=True) as library:
        results = compute(options, lambda executor: rivals_run(library, executor, jobs))
    note(*dict.fromkeys(line for result in results.values() for line in result.lost))
    cells = cells_of(results)
    complete = all(result.complete for result in results.values())
    write_rows(options.csv, cell_rows(cells))
    return Answer(
        claims_record(cells, complete), _rivals_lines(cells, complete), 0 if complete else 1
    )


def _rivals_lines(cells: Sequence[Cell], complete: bool) -> Iterator[str]:

    yield argument(cells, complete)
    for claim in CLAIMS:
        one = tried(claim, cells)
        yield f"\n{claim.says}\n  {claim.source}{', from the abstract alone' * claim.abstract}"
        yield f"  {verdict_words(one)} ({claim.counted})"
        if measured := measured_words(one):
            printed = f"; printed: {claim.published}" if claim.published else ""
            yield f"  {claim.measured}: {measured}{printed}"
    rows = ((JOBS[job], crossing_words(cells, job)) for job in JOBS)
    yield "\nWhere changing circuits win"
    yield table(("job", "ports and speed, up to a delay of"), *rows)


@command(
    "Run a job on seven kinds of optical switch and on networks without one: which is worth buying, how slow, how "
    "expensive and with how few ports it may be, and what the answer depends on (docs/buying.md).",
    Option("--sample NAME", str, "the job: a sample"),
    Option("--graph FILE", str, "the job: its task graph, with --cluster"),
    Option("--cluster FILE", str, "and the cluster that it runs on"),
    Option(
        "--fixed KEY=VALUE",
        key_and_value,
        "what holds for every network, by the keys of a study file, such as cluster.port_gbps=100",
        repeated=True,
    ),
    Group(
        "what is compared",
        (
            Option(
                "--ports LIST",
                lambda text: tuple(map(positive, listed(text))),
                "ports per server, such as 2,4 (default: the cluster's)",
            ),
            Option("--offers FILE", str, "switches of your own: .offers.json"),
            Option("--only LIST", listed, "some of the switches, such as mems,piezo"),
            Option(
                "--rivals LIST",
                listed,
                "networks without one: some of fixed,fat_tree,same_cost",
            ),
            Option(
                "--by dollars|time|price",
                str,
                "what is to be least (default: dollars)",
                "dollars",
            ),
        ),
    ),
    Group(
        "assumed figures",
        (
            Option("--usd-per-gpu-hour X", number, "an hour of a GPU (default 2)", 2.0),
            *options_of(Running),
            Option("--gpus-per-server N", positive, "GPUs per server (default: the cluster's)"),
        ),
    ),
    Group(
        "running and writing",
        (
            WORKERS,
            LIBRARY,
            NO_LIBRARY,
            Option("--csv FILE", str, "write the table of networks", over=_JOB),
            Option("--save-study FILE", str, "write the networks as a study file", over=_JOB),
            Option(
                "--save-offers FILE", str, "write the switches as a file, to be changed", over=_JOB
            ),
            JSON,
        ),
    ),
)
def buy(options: Arguments) -> Answer:
    """Answer what to buy; 1 if points are missing at the end."""
    question = _question(options)
    write(options.save_study, lambda: dump_study(buying_study(question)))
    write(options.save_offers, lambda: dump_offers(question.offers))
    with library_of(options, to_write=True) as library:
        answer = compute(options, lambda executor: buying_run(question, library, executor))
    note(*answer.lost)
    write_rows(options.csv, network_rows(answer))
    whole = answer.complete and not answer.lost
    sources = sources_of(prices=prices_of(question), offers=question.offers)
    return Answer(as_record(answer), _buying_lines(answer), 0 if whole else 1, sources)


def _question(options: Arguments) -> Question:
    offers = OFFERS
    if options.offers:
        offers = load_offers(read(options.offers), Path(options.offers).name)
    if options.only:
        offers = tuple(offer_of(offers, key) for key in dict.fromkeys(options.only))
    resolved = _resolved(options)
    fixed = _fixed(options, resolved.subject)
    with settings_as_options(options, {"offers": "--only"}):
        running = Running(**given_of(options, fields_of(Running)))
        assumed = Assumptions.of(options.usd_per_gpu_hour, running, options.gpus_per_server)
        return Question(
            resolved,
            offers,
            options.ports or (),
            options.rivals or tuple(RIVALS),
            fixed,
            assumed,
            options.by,
        )


def _resolved(options: Arguments) -> Resolved:

    both = (options.sample is None) == (options.graph is None)
    refuse_if(
        (both, "or --graph with --cluster must name the job", "--sample"),
        (options.graph is not None and options.cluster is None, "is missing", "--cluster"),
        file="command line",
    )
    sample = {"kind": "sample", "name": options.sample}
    files = {"kind": "files", "graph": options.graph, "cluster": options.cluster}
    return resolve(subject_of(files if options.sample is None else sample))


def _fixed(options: Arguments, subject: Subject) -> dict[str, Value]:

    fixed: dict[str, Value] = {}
    for name, text in options.fixed or ():
        refuse_if(
            (name not in subject.keys, unknown_key(name, subject.keys, "key")),
            file="command line",
            field="--fixed",
        )
        try:
            fixed[name] = subject.keys[name].value(value_of(text))
        except InputError as error:
            problem = f"{name} {error.problem}"
            raise InputError(problem, file="command line", field="--fixed") from None
    return fixed


def _buying_lines(answer: BuyingAnswer) -> Iterator[str]:

    same = ("network", "ports per server", "iteration (ms)", "price per port")
    yield from (plain(finding(answer)), "")
    yield from (f"{name}: {plain(words)}" for name, words in details(answer))
    yield ""
    yield columns(
        network_rows(answer),
        {
            **{name: name for name in (*same, "network ($)", "network (W)")},
            "$ per iteration": "dollars per iteration",
            "saves": lambda row: percent(
                None if row["saves (%)"] is None else row["saves (%)"] / 100
            ),
            "on the front": "nothing beats it",
        },
    )
    for asked, answered in questions_turned(answer):
        yield f"\n{asked}\n  {plain(answered)}"
    if swings := swing_rows(answer):
        yield "\nWhat it depends on"
        saves = {"saves": lambda row: percent(row["saves (%)"] / 100)}
        yield columns(swings, {"figure": "figure", "to": "to", **saves})
    yield from ("", *unfit_words(answer.question), *caveats(answer.question))


COMMANDS = Commands(
    "A study file says what is varied (docs/studies.md). What is done is kept in the run library; a study "
    "that is started again computes only what is missing.",
    {
        "run": (run, "compute a study"),
        "status": (status, "how far studies are, and how long the rest takes"),
        "show": (show, "print the table of a study"),
        "ready": (ready, "list studies to begin with, or write one"),
        "buy": (buy, "which optical switch to buy for a job"),
        "rivals": (rivals, "who is right: published claims against each other"),
    },
)
