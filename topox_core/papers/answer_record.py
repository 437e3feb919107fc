"""A card's answer as a plain record, and back: what commands print and worker processes send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topox_core.io.json import record_of
from topox_core.papers.card import Answer, Card
from topox_core.papers.rows import Row

_ROW = "series item about theirs ours unit bound verdict reason kind kind_reason counts_with"


def to_record(card: Card, answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON has it."""
    rows = [
        record_of(row, f"{_ROW} deviation counted_as") | {"data": dict(row.data)}
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


def of_record(record: Mapping[str, Any]) -> Answer:
    """Return the answer of a record that :func:`to_record` made.

    Raises
    ------
    KeyError, TypeError
        If it is none.
    """
    rows = tuple(
        Row(**{name: row[name] for name in _ROW.split()}, data=row["data"])
        for row in record["rows"]
    )
    facts = tuple((fact["name"], fact["value"], fact["note"]) for fact in record["facts"])
    return Answer(
        record["card"],
        record["settings"],
        rows,
        record["finding"],
        facts,
        tuple(record["remarks"]),
        tuple(record["lost"]),
    )
