"""The cards that run in a moment, and their document written from a run.

    python -m benchmarks.card_tables --document docs/published-results.md [--check]

The whole document is replaced. With ``--check`` nothing is written, and the exit status is 1 if it
is not what a run gives.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from topox_core.papers.card import Card
from topox_core.papers.catalogue import CARDS
from topox_core.papers.rows import APART, APART_NAMES, Answer, Row, counted_verdicts
from topox_core.runs.run import never

# Those that need no worker processes.
DIRECT = tuple(card for card in CARDS.values() if not card.workers)
HEAD = """# Published results, card by card

Written by `benchmarks/card_tables.py` from a run of every card below with each switch in its first position; a test
compares it with a run. Rows that nothing printed can be set against are on the page and in `gallery --card NAME`, not here.
What is no simulation has no tick: its kind stands in its place, and it is not counted. The other cards, and what verdicts
and kinds mean, are in [gallery.md](gallery.md).
"""


def played(card: Card) -> Answer:
    """Return a card's answer with every switch in its first position."""
    return card.run(None, never, [].append)


def number(value: float | None) -> str:
    """Return a number with four digits, or a dash."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def line(card: Card, row: Row) -> str:
    """Return a row of the table."""
    off = "" if row.deviation is None else f"{100 * row.deviation:+.0f} %".replace("-", "−")
    unit = f" {row.unit}" if row.unit else ""
    cells = (
        card.series[row.series],
        f"{row.item}, {row.about}" if row.about else row.item,
        number(row.theirs),
        f"{number(row.ours)}{unit}",
        off,
        row.verdict_words,
    )
    return f"| {' | '.join(cells)} |"


def section(card: Card, answer: Answer) -> str:
    """Return what the document says of a card."""
    judged = [row for row in answer.rows if row.verdict != "not printed"]
    lines = [f"## {card.title}", "", f"`{card.name}`: {card.source}. {card.shows}", ""]
    lines += [f"{answer.finding} {counted_verdicts(answer.rows)}.", ""]
    if judged:
        lines += ["| series | row | printed | ours | off | verdict |", "| --- " * 6 + "|"]
        lines += [line(card, row) for row in judged]
        lines.append("")
    reasons = {row.reason: row.item for row in judged if row.counted_as == "differs"}
    lines += [f"* ✗ {item}: {reason}" for reason, item in reasons.items()]
    apart: dict[str, dict[str, None]] = {}
    for row in judged:
        if row.counted_as in APART and row.kind_reason:
            apart.setdefault(f"{APART_NAMES[row.kind]}: {row.kind_reason}", {})[
                card.series[row.series]
            ] = None
    lines += [f"* {'; '.join(series)} – {why}" for why, series in apart.items()]
    lines += [f"* {remark}" for remark in answer.remarks]
    return "\n".join(lines).rstrip() + "\n"


def document(answer_of: Callable[[Card], Answer] = played) -> str:
    """Return the whole document."""
    return "\n".join([HEAD, *(section(card, answer_of(card)) for card in DIRECT)])


def main() -> int:
    """Write the document, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--document", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = document()
    if options.check:
        return int(options.document.read_text(encoding="utf-8") != text)
    options.document.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
