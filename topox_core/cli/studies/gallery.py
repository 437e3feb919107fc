"""``gallery``: published tables and figures, run here, with a verdict, or what kind it is, on every number.

``accuracy``: how far off predictions of every kind are.
"""

import time
from collections.abc import Iterator
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, command, ctrl_c_stops
from topox_core.cli.shared.library import LIBRARY, SCHEDULER, WORKERS, executor_of, library_of
from topox_core.cli.shared.options import JSON, Option, changes_of, setting_option
from topox_core.cli.shared.printing import columns, figure, note, table
from topox_core.errors import look_up, refuse_if
from topox_core.io.content import record_of
from topox_core.papers.card import Card
from topox_core.papers.catalogue import CARDS, CardStep, card_named, keep, run_cards, to_record
from topox_core.papers.rows import COUNTED, Answer as CardAnswer, counts_of


@command(
    "List the cards of the gallery, or run one: theirs, ours, deviation, verdict and the reason.",
    Option("--card NAME", str, "run this card (default: list all)"),
    Option("--all", bool, "run every card, the quickest first, and keep the answers", dest="every"),
    LIBRARY,
    Option("--no-library", bool, "with --all: keep nothing"),
    setting_option("--set KEY=VALUE", "position of a switch of the card", "switches"),
    WORKERS,
    SCHEDULER,
    JSON,
)
def run(options: Arguments) -> Answer | int:
    """List the cards, or run one; 1 if rows are missing because it was stopped or a process died."""
    one = options.card is not None
    refuse_if(
        (
            options.every and (one or options.switches),
            "runs every card as it is: leave --card and --set out",
            "--all",
        ),
        (options.switches and not one, "needs --card: switches belong to a card", "--set"),
        file="command line",
    )
    if options.every:
        return _run_all(options)
    if not one:
        cards = [
            record_of(card, "name title source shows")
            | {
                "switches": {
                    choice.key: [value for value, _ in choice.options] for choice in card.choices
                },
                "defaults": card.settings(),
            }
            for card in CARDS.values()
        ]
        says = {"card": "name", "source": "source", "title": "title"}
        return Answer({"cards": cards}, columns(cards, says))
    card = card_named(options.card)
    switches = card.settings(changes_of(options.switches))
    with executor_of(options) as executor, ctrl_c_stops() as stop:
        answer = card.run(
            switches,
            stop,
            lambda row: note(
                f"{row.series} {row.item}: {figure(row.ours, row.unit)} ({row.counted_as})"
            ),
            executor,
        )
    return Answer(to_record(card, answer), _lines(card, answer), 0 if answer.complete else 1)


def _run_all(options: Arguments) -> int:
    """Run every card; 1 if one is incomplete, or this version brought other rows before."""
    began, steps, others = time.monotonic(), dict[str, CardStep](), list[str]()
    with library_of(options, to_write=True) as library, executor_of(options) as executor:

        def take(step: CardStep) -> None:
            if step.row is not None:
                return
            steps[step.card] = step
            answer = step.answer
            if (
                library is not None
                and answer is not None
                and answer.complete
                and not keep(library, CARDS[step.card], answer, step.wall_s)
            ):
                others.append(step.card)
            words = step.failed or f"{figure(round(step.wall_s, 2), 's')}"
            note(f"{len(steps)} of {len(CARDS)}: {step.card} ({words})")

        with ctrl_c_stops("the cards computed so far are kept") as stop:
            run_cards(tuple(CARDS), stop, take, executor)
    answered = [step.answer for step in steps.values() if step.answer is not None]
    counts = counts_of(row for answer in answered for row in answer.rows)
    record = {
        "verdicts": counts,
        "seconds": round(time.monotonic() - began, 3),
        "other_rows_than_before": others,
        "cards": [
            {**to_record(CARDS[answer.card], answer), "wall_s": steps[answer.card].wall_s}
            for answer in answered
        ],
    }
    rows = (
        (
            step.card,
            *map(str, counts_of(step.answer.rows if step.answer else ()).values()),
            f"{step.wall_s:.1f}",
        )
        for step in steps.values()
    )
    words = ", ".join(f"{count} {name}" for name, count in counts.items())
    Answer(record, (table(("card", *COUNTED, "seconds"), *rows), words)).show(options)
    note(*(f"{name}: other rows than this version brought before" for name in others))
    complete = len(answered) == len(CARDS) and all(answer.complete for answer in answered)
    return 0 if complete and not others else 1


def _lines(card: Card, answer: CardAnswer) -> Iterator[str]:
    yield f"{card.title} ({card.source})"
    for key, words in card.series.items():
        if rows := answer.of(key):
            yield f"\n{words}"
            yield columns(
                rows,
                {
                    "": "item",
                    "on": "about",
                    "theirs": "theirs",
                    "ours": lambda row: figure(row.ours, row.unit),
                    "deviation": lambda row: (
                        None if row.deviation is None else f"{row.deviation:+.1%}"
                    ),
                    "bound": "bound",
                    "verdict": "verdict_words",
                    "why": lambda row: f"{row.reason} {row.kind_reason}".rstrip(),
                },
            )
    yield f"\n{answer.finding}"
    for name, value, aside in answer.facts:
        yield f"{name}: {value}" + (f" ({aside})" if aside else "")
    yield from (*answer.remarks, *answer.lost)


@command(
    "Compute predictions of every kind beside what was measured, published or simulated elsewhere, and say how far "
    "off they are and what is not modelled. With a KIND: every row of it.",
    Option("kind KIND", str, "a kind of prediction, such as megatron", nargs="?"),
    JSON,
)
def accuracy(options: Arguments) -> Answer:
    """Return how far off predictions are, by kind, or the rows of one kind."""
    from topox_core.papers.accuracy import NOT_MODELLED, as_record, kinds

    found = {one.name: as_record(one) for one in kinds()}
    if options.kind is None:
        record = {"kinds": found, "not_modelled": NOT_MODELLED}
        return Answer(record, _kinds(record))
    one = look_up(options.kind, found, "kind of prediction", file="command line", field="KIND")
    rows = (
        (
            row["subject"],
            f"{row['predicted']:.6g}",
            f"{row['reference']:.6g}",
            row["unit"],
            f"{row['error']:+.2%}",
        )
        for row in one["rows"]
    )
    return Answer(one, table(("", "predicted", one["against"], "", "error"), *rows))


def _kinds(record: dict[str, Any]) -> Iterator[str]:
    rows = (
        (
            one["name"],
            one["title"],
            one["against"],
            one["fitted"],
            f"{one['comparisons']:,}",
            *(
                ""
                if one[f"{key}_absolute_error"] is None
                else f"{one[f'{key}_absolute_error']:.2%}"
                for key in ("median", "p90", "worst")
            ),
            one["worst"] or "",
        )
        for one in record["kinds"].values()
    )
    head = ("kind", "prediction", "against", "fitted", "rows", "median", "90 %", "worst", "where")
    yield table(head, *rows)
    yield ""
    yield from (f"not modelled, {what}: {words}" for what, words in record["not_modelled"].items())
