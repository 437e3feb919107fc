"""The cells and the verdicts as records and in words: one wording for command, page and document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topox_core.claims.cells import JOBS, Cell
from topox_core.claims.claims import CLAIMS, Tried, argument, crossings, tried
from topox_core.fabrics.registry import FABRICS
from topox_core.papers.rows import VERDICTS
from topox_core.text.numbers import delay_label, percent

SIDES = {"changing": "changing circuits", "fixed": "fixed networks", "even": "even", "": "-"}
VERDICT_WORDS = {
    "match": "holds",
    "trend": "holds in part",
    "differs": "does not hold",
    "not printed": "not tried",
}

# Where the share by decades and that of all trials lie further apart, both are told.
SENSITIVE = 0.1


def cell_rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return every cell as a row of a table: its setting, who is ahead, and the time on each fabric."""
    present = [name for name in FABRICS if any(name in one.times_ms for one in cells)]
    return [
        {
            "job": JOBS[one.job],
            "ports": one.ports,
            "port speed (Gbit/s)": one.port_gbps,
            "delay (ms)": one.delay_ms,
            "ahead": SIDES[one.side],
            "lead (%)": round(100 * one.lead, 2),
            "fastest": FABRICS.get(one.fastest, ""),
            **{f"{FABRICS[name]} (ms)": one.times_ms.get(name) for name in present},
        }
        for one in cells
    ]


def verdict_words(one: Tried) -> str:
    """Return a verdict with its sign, and of which share of the trials the claim is true; what is not judged has no sign."""
    words = f"{VERDICTS[one.verdict][0]} {VERDICT_WORDS[one.verdict]}"
    if one.share is None or one.of_all is None:
        return words
    if one.claim.identity:
        return f"identity: {one.claim.identity}; counted: {percent(one.share)} of {one.trials}"
    if one.claim.abstract:
        words = "not comparable"
    least, most = min(one.decades.values()), max(one.decades.values())
    by_decade = f", {percent(least)} to {percent(most)} by decade of the delay"
    alike = f", {percent(one.of_all)} with all weighed alike"
    return (
        f"{words}: true of {percent(one.share)} of {one.trials}{by_decade if least < most else ''}"
        f"{alike if abs(one.share - one.of_all) > SENSITIVE else ''}"
    )


def measured_words(one: Tried) -> str:
    """Return the middle and the largest number of a claim's trials."""
    if one.middle is None or one.largest is None:
        return ""
    if one.claim.measured.startswith("iterations"):
        return f"{one.middle:.2f} at the median, {one.largest:.2f} at most"
    return f"{percent(one.middle)} at the median, {percent(one.largest)} at most"


def crossing_words(cells: Sequence[Cell], job: str) -> str:
    """Return up to which delay changing circuits win for a job, network by network."""
    return "; ".join(
        f"{ports} × {gbps:g}G: {'never' if delay is None else 'up to ' + delay_label(delay)}"
        for ports, gbps, delay in crossings(cells, job)
    )


def as_record(cells: Sequence[Cell], complete: bool = True) -> dict[str, Any]:
    """Return the whole answer as JSON has it."""
    return {
        "finding": argument(cells, complete),
        "claims": [
            {
                "claim": one.claim.name,
                "source": one.claim.source,
                "says": one.claim.says,
                "counted": one.claim.counted,
                "verdict": one.verdict,
                "trials": one.trials,
                "share": one.share,
                "share_of_all": one.of_all,
                "share_by_decade": [list(pair) for pair in one.decades.items()],
                "measured": one.claim.measured,
                "middle": one.middle,
                "largest": one.largest,
                "published": one.claim.published,
                "abstract_only": one.claim.abstract,
                "identity": one.claim.identity,
                "jobs": {job: list(counts) for job, counts in one.by_job.items()},
            }
            for one in (tried(claim, cells) for claim in CLAIMS)
        ],
        "cells": [
            {
                "job": one.job,
                "ports": one.ports,
                "port_gbps": one.port_gbps,
                "delay_ms": one.delay_ms,
                "side": one.side,
                "complete": one.complete,
                "lead": one.lead,
                "fastest": one.fastest,
                "times_ms": dict(one.times_ms),
            }
            for one in cells
        ],
    }
