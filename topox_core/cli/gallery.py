"""``gallery``: published tables and figures, run here, with a verdict on every number."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.interrupt import ctrl_c_stops
from topox_core.cli.options import JSON, SCHEDULER, WORKERS, Option, add_options, wrong_option
from topox_core.cli.printing import as_json, figure, note, table
from topox_core.io.record import record_of

if TYPE_CHECKING:
    from topox_core.papers.card import Answer, Card, Row


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "gallery",
        run,
        "run published tables and figures and compare",
        "List the cards of the gallery, or run one: theirs, ours, deviation, verdict and the reason.",
    )
    add_options(
        command,
        Option("--card NAME", str, "run this card (default: list all)"),
        Option(
            "--set KEY=VALUE",
            str,
            "position of a switch of the card; may be repeated",
            [],
            dest="switches",
            repeated=True,
        ),
        WORKERS,
        SCHEDULER,
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """List the cards, or run one.

    The exit code is 1 if rows are missing because it was stopped or a process died.
    """
    from topox_core.papers.catalogue import CARDS, card_named
    from topox_core.runs.choose import executor_for

    if options.card is None:
        if options.switches:
            raise wrong_option("--set", "needs --card: switches belong to a card")
        _list(options.json, CARDS)
        return 0
    card = card_named(options.card)
    switches = card.settings(dict(map(given.key_and_value, options.switches)))
    executor = executor_for(options.scheduler, options.workers)
    try:
        with ctrl_c_stops() as stop:
            answer = card.run(switches, stop, _tell, executor)
    finally:
        executor.kill()
    if options.json:
        as_json(record(card, answer))
    else:
        _print(card, answer)
    return 0 if answer.complete else 1


def _list(as_record: bool, cards: dict[str, Card]) -> None:
    if as_record:
        as_json(
            {
                "cards": [
                    record_of(card, "name title source shows")
                    | {
                        "switches": {
                            choice.key: [value for value, _ in choice.options]
                            for choice in card.choices
                        },
                        "defaults": card.settings(),
                    }
                    for card in cards.values()
                ]
            }
        )
        return
    table(
        ("card", "source", "title"),
        *((card.name, card.source, card.title) for card in cards.values()),
    )


def _tell(row: Row) -> None:
    note(f"{row.series} {row.item}: {figure(row.ours, row.unit)} ({row.verdict})")


def record(card: Card, answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON has it."""
    rows = [
        record_of(row, "series item about theirs ours unit deviation bound verdict reason")
        | {"data": dict(row.data)}
        for row in answer.rows
    ]
    return {
        "card": card.name,
        "source": card.source,
        "settings": dict(answer.settings),
        "finding": answer.finding,
        "facts": [
            {"name": name, "value": value, "note": aside} for name, value, aside in answer.facts
        ],
        "remarks": list(answer.remarks),
        "lost": list(answer.lost),
        "rows": rows,
    }


def _print(card: Card, answer: Answer) -> None:
    from topox_core.papers.card import VERDICTS

    print(f"{card.title} ({card.source})")
    for key, words in card.series.items():
        rows = answer.of(key)
        if not rows:
            continue
        print(f"\n{words}")
        lines: list[tuple[str, ...]] = [
            ("", "on", "theirs", "ours", "deviation", "bound", "verdict", "why")
        ]
        for row in rows:
            off = "-" if row.deviation is None else f"{row.deviation:+.1%}"
            lines.append(
                (
                    row.item,
                    row.about,
                    figure(row.theirs),
                    figure(row.ours, row.unit),
                    off,
                    figure(row.bound),
                    " ".join(VERDICTS[row.verdict]),
                    row.reason,
                )
            )
        table(*lines)
    print(f"\n{answer.finding}")
    for name, value, aside in answer.facts:
        print(f"{name}: {value}" + (f" ({aside})" if aside else ""))
    for line in (*answer.remarks, *answer.lost):
        print(line)
