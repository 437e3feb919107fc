"""``gallery``: published tables and figures, run here, with a verdict on every number."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.interrupt import ctrl_c_stops
from topox_core.cli.printing import as_json, figure, note, table
from topox_core.errors import InputError

if TYPE_CHECKING:
    from topox_core.papers.card import Answer, Card, Row


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "gallery",
        allow_abbrev=False,
        help="run published tables and figures and compare",
        description="List the cards of the gallery, or run one: theirs, ours, deviation, verdict and the reason.",
    )
    command.add_argument("--card", metavar="NAME", help="run this card (default: list all)")
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="switches",
        help="position of a switch of the card; may be repeated",
    )
    given.add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the cards, or run one.

    The exit code is 1 if rows are missing because it was stopped or a process died.
    """
    from topox_core.papers.catalogue import CARDS, card_named

    if options.card is None:
        if options.switches:
            raise InputError(
                "needs --card: switches belong to a card", file="command line", field="--set"
            )
        _list(options.json, CARDS)
        return 0
    card = card_named(options.card)
    with ctrl_c_stops() as stop:
        answer = card.run(_switches(options.switches), stop, _tell)
    if options.json:
        as_json(record(card, answer))
    else:
        _print(card, answer)
    return 0 if answer.complete else 1


def _switches(pairs: list[str]) -> dict[str, str | int | float]:
    switches: dict[str, str | int | float] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key.strip():
            raise InputError(
                f"must be KEY=VALUE (got {pair[:80]!r})", file="command line", field="--set"
            )
        switches[key.strip()] = value.strip()
    return switches


def _list(as_record: bool, cards: dict[str, Card]) -> None:
    if as_record:
        as_json(
            {
                "cards": [
                    {
                        "name": card.name,
                        "title": card.title,
                        "source": card.source,
                        "shows": card.shows,
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
        [
            ("card", "source", "title"),
            *((card.name, card.source, card.title) for card in cards.values()),
        ]
    )


def _tell(row: Row) -> None:
    note(f"{row.series} {row.item}: {figure(row.ours, row.unit)} ({row.verdict})")


def record(card: Card, answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON has it."""
    rows = [
        {
            "series": row.series,
            "item": row.item,
            "about": row.about,
            "theirs": row.theirs,
            "ours": row.ours,
            "unit": row.unit,
            "deviation": row.deviation,
            "bound": row.bound,
            "verdict": row.verdict,
            "reason": row.reason,
            "data": dict(row.data),
        }
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
        table(lines)
    print(f"\n{answer.finding}")
    for name, value, aside in answer.facts:
        print(f"{name}: {value}" + (f" ({aside})" if aside else ""))
    for line in (*answer.remarks, *answer.lost):
        print(line)
