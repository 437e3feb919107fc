"""All cards by name, in the order of the gallery; what they claim; several of them one after the other.

A claim reads its number from the answer of its card with every switch in its first position: of a
run here, or the one that comes with the release. Several cards run in a process of their own: every
row as it comes, every answer as it is there. The last answer on this machine is kept in the run library.
"""

import gzip
import json
import platform
import time
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from topox_core.errors import InputError, look_up
from topox_core.io.content import digest_of, record_of
from topox_core.library.rows import CARD, RunRecord
from topox_core.library.run_library import RunLibrary
from topox_core.papers.card import Card, Settings
from topox_core.papers.rows import VERDICTS, Answer, CardClaim, Kind, Row, apart_words, counts_of
from topox_core.runs.identity import code_version
from topox_core.runs.pace import slowness
from topox_core.runs.run import RunProgress, Stop

HERE = Path(__file__).parent
GALLERY: dict[str, Any] = tomllib.loads((HERE / "gallery.toml").read_text(encoding="utf-8"))
# Sources in the order of the gallery: what each is called, and its address, empty where it has none.
PAPERS: dict[str, tuple[str, str]] = {
    name: (of, at) for name, (of, at) in GALLERY["papers"].items()
}


def _card(name: str) -> Card:
    """Return the card of a file, its claims, switches and rows made complete."""
    path = HERE / "cards" / f"{name.replace('-', '_')}.toml"
    record = tomllib.loads(path.read_text(encoding="utf-8"))
    printed, rows = record.get("printed", {}), record.get("rows", {})
    for key, words in rows.items():  # what one row does not say is said of its series
        rows[key] = rows.get(words.pop("same_as", key.partition("/")[0]), {}) | words
    for choice in record.get("choices", ()):
        choice.update(GALLERY["choices"].get(choice.pop("same_as", ""), {}) | choice)
        choice.setdefault("default", choice["options"][0][0])
    for claim in record.get("claims", ()):
        claim["printed"] = printed.get(claim.get("printed"), claim.get("printed"))
        claim |= {"card": name, "comparable": "built" not in record}
    return msgspec.convert(record | {"name": name}, Card)


CARDS: dict[str, Card] = {name: _card(name) for name in GALLERY["cards"]}
CLAIMS: tuple[CardClaim, ...] = tuple(claim for card in CARDS.values() for claim in card.claims)


def card_named(name: str) -> Card:
    """Return a card.

    Raises
    ------
    InputError
        If there is none of that name; the message has the nearest one.
    """
    return look_up(name, CARDS, "card", file="gallery", field="card")


def kind_of(claim: CardClaim) -> Kind:
    """Return what a claim is tried with: the kind of the rows that it reads."""
    return CARDS[claim.card].words(claim.reading.series).kind[0]


def complete_answers(answers: Mapping[str, Answer | None]) -> dict[str, Answer]:
    """Return a complete answer by card: one of ``answers``, else the one that comes with the release."""
    own = {name: one for name, one in answers.items() if one is not None and one.complete}
    return {name: one.answer for name, one in shipped_answers().items()} | own


def answer_words(answers: Mapping[str, Answer]) -> str:
    """Return in three sentences how many claims hold, as HTML; ``answers`` has a complete one for each card.

    Only claims that a simulation tries are counted.
    """
    tried = [claim for claim in CLAIMS if claim.comparable and kind_of(claim) == "simulated"]
    verdicts = [claim.verdict(answers[claim.card]) for claim in tried]
    apart = apart_words(Counter(kind_of(claim) for claim in CLAIMS))
    rebuilt = sum(not claim.comparable for claim in CLAIMS)
    largest, answer = CLAIMS[0], answers[CLAIMS[0].card]
    assert largest.other is not None
    count = {word: verdicts.count(word) for word in VERDICTS}
    beyond = [
        one.least and told == "match" for one, told in zip(tried, verdicts, strict=True)
    ].count(True)
    return (
        f"Of {len(tried)} published claims that a simulation tries <b>{count['match']} hold</b> "
        f"({count['match'] - beyond} within 10\u00a0%, {beyond} beyond a printed “more than”), "
        f"{count['trend']} roughly, and <b>{count['differs']} do not</b>. Not counted: {apart}, "
        f"{rebuilt} from abstracts alone. TOPO\u2011X’s speed-up of {largest.printed:.2f}× is "
        f"<b>{largest.reading.value(answer):.2f}×</b> with the all-reduce counted on both networks."
    )


@dataclass(frozen=True)
class CardStep:
    """A row of a card, or its answer with how long it took; or in words why it has none."""

    card: str
    row: Row | None = None
    answer: Answer | None = None
    wall_s: float = 0.0
    failed: str = ""


def run_cards(
    names: Sequence[str],
    stop: Stop,
    on_step: Callable[[CardStep], None],
    executor: Executor | None = None,
) -> None:
    """Run cards with every switch in its first position, the quickest first, until ``stop()``.

    Parameters
    ----------
    executor
        As of :meth:`~topox_core.papers.card.Card.run`.
    """
    for card in by_time(CARDS[name] for name in names):
        if stop():
            return
        began = time.monotonic()
        try:
            answer = card.run(None, stop, partial(_pass_on, card.name, on_step), executor)
        except InputError as error:
            on_step(CardStep(card.name, failed=str(error)))
            continue
        on_step(CardStep(card.name, answer=answer, wall_s=time.monotonic() - began))


def _pass_on(name: str, on_step: Callable[[CardStep], None], row: Row) -> None:
    on_step(CardStep(name, row))


def by_time(cards: Iterable[Card]) -> list[Card]:
    """Return cards by how long they take, the quickest first."""
    return sorted(cards, key=lambda card: card.takes_s)


def measured(names: Sequence[str], steps: Sequence[CardStep], elapsed_s: float) -> RunProgress:
    """Return how far a run of cards is, by how long each is known to take."""
    done = {step.card for step in steps if step.answer is not None or step.failed}
    rows = Counter(step.card for step in steps if step.card not in done)
    behind = {name: min(1.0, rows[name] / max(1, CARDS[name].row_count)) for name in names}
    behind |= dict.fromkeys(done, 1.0)
    whole = sum(CARDS[name].takes_s for name in names)
    spent = sum(CARDS[name].takes_s * share for name, share in behind.items())
    share = spent / whole if whole else 1.0
    left_s = elapsed_s / share * (1 - share) if share > 0.02 else whole * slowness()
    words = CARDS[next(iter(rows))].title if rows else ""
    return RunProgress(elapsed_s, share, len(done), len(names), "cards", words, left_s)


# -- answers that are kept ------------------------------------------------------------------------


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
