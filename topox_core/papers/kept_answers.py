"""Answers of cards: those that come with the release, and in the run library the last run on this machine."""

import gzip
import json
import platform
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from topox_core.io.json import digest_of, record_of
from topox_core.library.rows import CARD, RunRecord
from topox_core.library.run_library import RunLibrary
from topox_core.papers.card import Answer, Card, Settings
from topox_core.papers.rows import Row, counts_of
from topox_core.runs.identity import code_version
from topox_core.runs.pace import slowness

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
    return Answer(
        record["card"],
        record["settings"],
        rows,
        record["finding"],
        tuple((fact["name"], fact["value"], fact["note"]) for fact in record["facts"]),
        tuple(record["remarks"]),
        tuple(record["lost"]),
    )


SHIPPED = Path(__file__).parent / "shipped_answers.json.gz"


@dataclass(frozen=True)
class KeptAnswer:
    """A complete answer of this version, with when it was computed (seconds since the epoch) and how long that took.

    ``shipped``: it comes with the release, and was computed elsewhere; it would take about that long here.
    """

    answer: Answer
    started: float
    wall_s: float
    shipped: bool = False


@cache
def shipped_answers() -> dict[str, KeptAnswer]:
    """Return by name the answer of every card that comes with the release, its switches in their first positions.

    ``tools/make_answers.py`` writes them, and the tests that run a card say whether they are what it gives.
    """
    return {
        name: KeptAnswer(
            of_record(one["answer"]), one["started"], one["wall_s"] * slowness(), shipped=True
        )
        for name, one in json.loads(gzip.decompress(SHIPPED.read_bytes())).items()
    }


def key_of(card: Card, settings: Settings) -> str:
    """Return the key of an answer in the library."""
    return digest_of([CARD, card.name, sorted((name, str(settings[name])) for name in settings)])


def keep(library: RunLibrary, card: Card, answer: Answer, wall_s: float) -> bool:
    """Keep a complete answer; return False if this version of the code brought another one before.

    The answer that was there first stays.
    """
    before = kept(library, [card], answer.settings).get(card.name)
    if before is not None:
        return before.answer == answer
    record = RunRecord(
        key=key_of(card, answer.settings),
        version=code_version(),
        kind=CARD,
        subject=f"{card.title}: {card.source}",
        graph=digest_of([CARD, card.name]),
        cluster="",
        settings={"card": card.name, **answer.settings},
        status="compared",
        stopped_by="",
        measures={f"rows {name}": float(n) for name, n in counts_of(answer.rows).items() if n},
        message=answer.finding,
        host=platform.node(),
        started=time.time() - wall_s,
        wall_s=wall_s,
        result=zlib.compress(json.dumps(to_record(card, answer)).encode()),
    )
    library.add([record])
    return True


def kept(
    library: RunLibrary, cards: Iterable[Card], settings: Settings | None = None
) -> dict[str, KeptAnswer]:
    """Return by name the last answers of cards by this version of the code.

    Parameters
    ----------
    settings
        Positions of switches; None for those without a wish.

    Raises
    ------
    InputError
        If the library cannot be read.
    """
    keys = {key_of(card, settings or card.settings()): card.name for card in cards}
    answers: dict[str, KeptAnswer] = {}
    for key, run in library.known(keys, code_version()).items():
        content = library.result(run.id)
        # What a library that somebody brought has in its place is no answer: the card is run again.
        with suppress(KeyError, TypeError, ValueError):
            answer = of_record(json.loads(content or b"{}"))
            answers[keys[key]] = KeptAnswer(answer, run.record.started, run.record.wall_s)
    return answers
