"""``study buy``: which optical switch is worth buying for a job, and when it would no longer be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read, write
from topox_core.cli.library_options import LIBRARY
from topox_core.cli.library_options import NO_LIBRARY, WORKERS, compute, library_of, write_rows
from topox_core.cli.options import (
    JSON,
    Group,
    Option,
    key_and_value,
    listed,
    number,
    positive,
    settings_as_options,
    value_of,
    wrong_option,
)
from topox_core.cli.printing import cell, note, percent, table
from topox_core.errors import InputError

if TYPE_CHECKING:
    from topox_core.studies.buying import Question
    from topox_core.studies.buying_run import Answer as BuyingAnswer
    from topox_core.studies.keys import Value
    from topox_core.studies.subject import Resolved, Subject

# The files that name the job.
_JOB = ("graph", "cluster")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(positive(word) for word in listed(text))


@command(
    "buy",
    "which optical switch to buy for a job",
    "Run a job on seven kinds of optical switch and on networks without one: which is worth buying, how slow, how "
    "dear and with how few ports it may be, and what the answer depends on (docs/buying.md).",
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
                _numbers,
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
            Option("--usd-per-kwh X", number, "price of electricity (default 0.10)", 0.10),
            Option("--pue X", number, "building watts a watt in it (default 1.3)", 1.3),
            Option("--years X", number, "the network is written off over (default 4)", 4.0),
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
def run(options: Arguments) -> Answer:
    """Answer what to buy; 1 if points are missing at the end."""
    from topox_core.studies.buying import buying_study
    from topox_core.studies.buying_run import buying_run
    from topox_core.studies.buying_words import as_record, network_rows
    from topox_core.studies.offers import dump_offers
    from topox_core.studies.study import dump_study

    question = _question(options)
    write(options.save_study, lambda: dump_study(buying_study(question)))
    write(options.save_offers, lambda: dump_offers(question.offers))
    with library_of(options, to_write=True) as library:
        answer = compute(options, lambda executor: buying_run(question, library, executor))
    note(*answer.lost)
    write_rows(options.csv, network_rows(answer))
    whole = answer.complete and not answer.lost
    return Answer(as_record(answer), _lines(answer), 0 if whole else 1)


def _question(options: Arguments) -> Question:
    from topox_core.studies.buying import RIVALS, Assumptions, Question
    from topox_core.studies.offers import OFFERS, load_offers, offer_of

    offers = OFFERS
    if options.offers:
        offers = load_offers(read(options.offers), Path(options.offers).name)
    if options.only:
        offers = tuple(offer_of(offers, key) for key in dict.fromkeys(options.only))
    resolved = _resolved(options)
    fixed = _fixed(options, resolved.subject)
    usual = Assumptions()
    with settings_as_options(options, {"offers": "--only"}):
        assumed = Assumptions(
            usual.usd_per_gpu_hour.moved(options.usd_per_gpu_hour),
            usual.usd_per_kwh.moved(options.usd_per_kwh),
            usual.years.moved(options.years),
            options.pue,
            options.gpus_per_server,
        )
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
    from topox_core.studies.subject import resolve, subject_of

    if (options.sample is None) == (options.graph is None):
        raise wrong_option("--sample", "or --graph with --cluster must name the job")
    if options.sample is not None:
        return resolve(subject_of({"kind": "sample", "name": options.sample}))
    if options.cluster is None:
        raise wrong_option("--cluster", "is missing")
    return resolve(
        subject_of({"kind": "files", "graph": options.graph, "cluster": options.cluster})
    )


def _fixed(options: Arguments, subject: Subject) -> dict[str, Value]:
    from topox_core.studies.axes import unknown_key

    fixed: dict[str, Value] = {}
    for name, text in options.fixed or ():
        if name not in subject.keys:
            raise wrong_option("--fixed", unknown_key(name, subject.keys, "key"))
        try:
            fixed[name] = subject.keys[name].value(value_of(text))
        except InputError as error:
            raise wrong_option("--fixed", f"{name} {error.problem}") from None
    return fixed


def _lines(answer: BuyingAnswer) -> Iterator[str]:
    from topox_core.studies.buying_words import (
        caveats,
        finding,
        network_rows,
        plain,
        questions_turned,
        swing_rows,
        unfit_words,
    )

    head = (
        "network",
        "ports per server",
        "iteration (ms)",
        "price per port",
        "network ($)",
        "network (W)",
    )
    rows = (
        (
            *(cell(row[name]) for name in head),
            cell(row["dollars per iteration"]),
            percent(None if row["saves (%)"] is None else row["saves (%)"] / 100),
            row["nothing beats it"],
        )
        for row in network_rows(answer)
    )
    yield from (plain(finding(answer)), "")
    yield table((*head, "$ per iteration", "saves", "on the front"), *rows)
    for asked, answered in questions_turned(answer):
        yield f"\n{asked}\n  {plain(answered)}"
    if swings := swing_rows(answer):
        of_figures = ((row["figure"], row["to"], percent(row["saves (%)"] / 100)) for row in swings)
        yield "\nWhat it depends on"
        yield table(("figure", "to", "saves"), *of_figures)
    yield from ("", *unfit_words(answer.question.unfits), *caveats(answer.question))
