"""``accuracy``: what is predicted against what was measured, published or simulated elsewhere, and what is not modelled."""

from collections.abc import Iterator
from typing import Any

from topox_core.cli.command import Answer, Arguments, command, table
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.errors import unknown


@command(
    "accuracy",
    "predictions against what was measured, published or simulated elsewhere",
    "Compute predictions of every kind beside what was measured, published or simulated elsewhere, and say how far "
    "off they are and what is not modelled. With a KIND: every row of it.",
    Option("kind KIND", str, "a kind of prediction, such as megatron", nargs="?"),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Return how far off predictions are, by kind, or the rows of one kind."""
    from topox_core.papers.accuracy import NOT_MODELLED, as_record, kinds

    found = {one.name: as_record(one) for one in kinds()}
    if options.kind is None:
        record = {"kinds": found, "not_modelled": NOT_MODELLED}
        return Answer(record, _lines(record))
    if options.kind not in found:
        raise wrong_option("KIND", unknown(options.kind, found, "kind of prediction"))
    one = found[options.kind]
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
    return Answer(one, [table(("", "predicted", one["against"], "", "error"), *rows)])


def _lines(record: dict[str, Any]) -> Iterator[str]:
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
