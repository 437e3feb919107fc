"""``study buy``: which optical switch to buy for a job."""

from collections.abc import Iterator
from pathlib import Path

from topox_core.cli.shared.command import Answer, Arguments, command
from topox_core.cli.shared.files import write
from topox_core.cli.shared.library import (
    LIBRARY,
    NO_LIBRARY,
    WORKERS,
    compute,
    library_of,
    write_rows,
)
from topox_core.cli.shared.options import (
    JSON,
    Group,
    Option,
    key_and_value,
    listed,
    number,
    of_options,
    options_of,
    positive,
    value_of,
)
from topox_core.cli.shared.printing import columns, note, percent
from topox_core.economics.comparison import Running
from topox_core.errors import InputError, refuse_if
from topox_core.io.content import read
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
from topox_core.studies.study import dump_study
from topox_core.studies.subject import Resolved, Subject, resolve, subject_of

# The files that name the job.
_JOB = ("graph", "cluster")


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
    flags={"offers": "--only"},
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
    running = of_options(Running, options)
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
