"""The cards of TopoOpt's figures run again, and their tables in the document written from the run.

    python -m benchmarks.topoopt_page --document docs/gallery.md [--check] [--card NAME ...]

Every card has a part of its own; ``other readings`` runs two of them with another switch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks.card_tables import number, section
from benchmarks.document_parts import add_options, deliver
from topox_core.papers.card import Settings
from topox_core.papers.catalogue import card_named
from topox_core.papers.rows import Answer
from topox_core.runs.run import never

NAMES = (
    "topoopt-bandwidth-tax",
    "topoopt-all-to-all",
    "topoopt-reconfiguration-latency",
    "topoopt-dedicated",
    "topoopt-shared",
)
OTHER = "other readings of TopoOpt"
AnswerOf = Callable[[str, Settings], Answer]


def played(name: str, switches: Settings) -> Answer:
    """Return a card's answer with some switches moved."""
    return card_named(name).run(switches, never, [].append)


def card_part(name: str, answer_of: AnswerOf = played) -> str:
    """Return what the document says of a card with every switch in its first position."""
    return "#" + section(card_named(name), answer_of(name, {})).rstrip()


def other_part(answer_of: AnswerOf = played) -> str:
    """Return what two cards give with another switch."""
    tax = answer_of("topoopt-bandwidth-tax", {"variant": "released"})
    largest = answer_of("topoopt-dedicated", {"port_gbps": 10}).of("fat_tree")[-1]
    smallest = [tax.of(series)[0] for series in ("d4", "d8")]
    lines = [
        f"* Bandwidth tax at {smallest[0].item} with the released layout: "
        + ", ".join(
            f"{row.ours:.3f} at degree {row.series[1:]} (printed: {row.theirs:g})"
            for row in smallest
        )
        + ".",
        f"* One job at 10 Gbit/s a port: the fat-tree is up to {number(largest.ours)} times as slow (printed: "
        f"up to {largest.theirs:g}).",
    ]
    return "\n".join(lines)


def main() -> int:
    """Write the parts, compare or print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_options(parser)
    parser.add_argument("--card", action="append", choices=(*NAMES, OTHER), help="only this part")
    options = parser.parse_args()
    # Each part as soon as it is there: all together take minutes.
    return max(
        deliver(options, {name: other_part() if name == OTHER else card_part(name)})
        for name in options.card or (*NAMES, OTHER)
    )


if __name__ == "__main__":
    sys.exit(main())
