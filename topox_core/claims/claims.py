"""What papers claim against each other, each made a statement about cells that is true or not; as records and in words.

One wording for command, page and document.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from topox_core.claims.cells import JOBS, Cell
from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.fabrics.registry import FABRICS
from topox_core.io.content import record_of
from topox_core.papers.rows import VERDICTS, Verdict
from topox_core.text.numbers import delay_label, is_or_are, percent, plural

FORMAT, VERSION = "topox-claims", 1
# A claim holds where it is true of so many cells, and in part where it is of so many.
HOLDS, IN_PART = 0.9, 0.5
EXPERTS = "experts"
ABOUT_MS = 1e-3  # TopoOpt, Figure 17: "about a microsecond"
Network = tuple[str, int, float]
SIDES = {"changing": "changing circuits", "fixed": "fixed networks", "even": "even", "": "-"}
VERDICT_WORDS = {
    "match": "holds",
    "trend": "holds in part",
    "differs": "does not hold",
    "not printed": "not tried",
}

# Where the share by decades and that of all trials lie further apart, both are told.
SENSITIVE = 0.1


@dataclass(frozen=True)
class Trial:
    """One cell, or one network, of which a claim is true or not.

    Attributes
    ----------
    delay_ms
        The delay by whose decade it is weighed.
    value
        What was measured there, as the claim's ``measured`` says.
    otherwise
        What is so where it is not true, if that may be one of several things.
    """

    job: str
    delay_ms: float
    true: bool
    value: float
    otherwise: str = ""

    @property
    def decade(self) -> float:
        """The decade of its delay."""
        return math.floor(math.log10(self.delay_ms) + 1e-9) if self.delay_ms > 0 else -math.inf


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, and how it is tried.

    Attributes
    ----------
    name, source
        A word for links, and where it is from.
    says
        What the paper says, in our words.
    counted
        Of which cells it is tried, and what is counted.
    measured
        What the number of a trial is.
    trials
        Makes the trials.
    published
        The number or range that the paper prints; empty for none.
    abstract
        Whether only the abstract was there to build from: a rebuild is not judged.
    identity
        Why it is true by construction, so that no outcome could refute it; empty where one could.
    needs
        The fabrics without which nothing can be tried.
    """

    name: str
    source: str
    says: str
    counted: str
    measured: str
    trials: Callable[[Sequence[Cell]], Iterable[Trial]]
    needs: tuple[str, ...]
    published: str = ""
    abstract: bool = False
    identity: str = ""


@dataclass(frozen=True)
class Tried:
    """A claim with what came of it.

    Attributes
    ----------
    trials
        How many there were.
    share
        Of how many of them it is true, the mean over the decades of the delay; None where there were none.
    of_all, decades
        The same share with every trial weighed alike, and in each decade.
    verdict
        As of a card: ``match`` where it holds, ``trend`` where it holds in part, ``differs`` where it
        does not, ``not printed`` where nothing could be tried or nothing can be judged.
    middle, largest
        Of what was measured.
    by_job
        (true, trials) of each job.
    otherwise
        Of how many trials what is so instead.
    """

    claim: Claim
    trials: int
    share: float | None
    of_all: float | None
    decades: Mapping[float, float]
    verdict: Verdict
    middle: float | None
    largest: float | None
    by_job: Mapping[str, tuple[int, int]]
    otherwise: Mapping[str, int]


def tried(claim: Claim, cells: Sequence[Cell]) -> Tried:
    """Return what comes of a claim on the cells that are complete."""
    usable = [
        one for one in cells if one.complete and all(name in one.times_ms for name in claim.needs)
    ]
    trials = list(claim.trials(usable))
    by_job = {
        job: (sum(one.true for one in trials if one.job == job), count)
        for job in JOBS
        if (count := sum(one.job == job for one in trials))
    }
    values = sorted(one.value for one in trials)
    # How many delays a study has in a decade is our choice: no decade counts for more than another.
    decades = {
        decade: fmean(one.true for one in trials if one.decade == decade)
        for decade in sorted({one.decade for one in trials})
    }
    share = fmean(decades.values()) if trials else None
    return Tried(
        claim,
        len(trials),
        share,
        fmean(one.true for one in trials) if trials else None,
        decades,
        _verdict(None if claim.abstract or claim.identity else share),
        values[len(values) // 2] if values else None,
        values[-1] if values else None,
        by_job,
        Counter(one.otherwise for one in trials if one.otherwise),
    )


def _verdict(share: float | None) -> Verdict:
    if share is None:
        return "not printed"
    return "match" if share >= HOLDS else "trend" if share >= IN_PART else "differs"


# -- how each is tried ---------------------------------------------------------------------------


def _fixed_wins(cells: Sequence[Cell]) -> Iterable[Trial]:
    """Try each cell: fixed circuits ahead of all that changes a circuit there; even where nothing does."""
    for one in cells:
        fixed = one.times_ms["static_graph"]
        best = min((one.times_ms[name] for name in CHANGING if one.changes(name)), default=fixed)
        yield Trial(one.job, one.delay_ms, fixed < best * (1 - EQUAL), 1 - best / fixed)


def _shorter(
    cells: Sequence[Cell], fabric: str, rival: str, changes: bool = False
) -> Iterable[Trial]:
    """Try each cell: shorter than the rival, by the share of its time that is saved.

    With ``changes`` it is true only where the fabric changes a circuit.
    """
    for one in cells:
        ratio = one.ratio(fabric, rival)
        if ratio is not None:
            true = ratio < 1 - EQUAL and (one.changes(fabric) or not changes)
            yield Trial(one.job, one.delay_ms, true, 1 - ratio)


def _without_delay(
    cells: Sequence[Cell], fabric: str, rival: str, changes: bool = False
) -> Iterable[Trial]:
    """Try the cells of the shortest delay as :func:`_shorter` does."""
    least = min((one.delay_ms for one in cells), default=0.0)
    return _shorter([one for one in cells if one.delay_ms == least], fabric, rival, changes)


def _beyond_a_microsecond(cells: Sequence[Cell]) -> Iterable[Trial]:
    """Try each cell beyond a microsecond: slower there, and no slower on that network at one."""
    known = [(one, ratio) for one in cells if (ratio := one.ratio("reevaluated", "static"))]
    at_one = {
        (one.job, one.ports, one.port_gbps): ratio <= 1 + EQUAL
        for one, ratio in known
        if math.isclose(one.delay_ms, ABOUT_MS)
    }
    for one, ratio in known:
        network = (one.job, one.ports, one.port_gbps)
        if one.delay_ms > ABOUT_MS * (1 + EQUAL) and network in at_one:
            true = ratio > 1 + EQUAL and at_one[network]
            otherwise = (
                "do not match even at a microsecond"
                if ratio > 1 + EQUAL
                else "match at the longer delay too"
            )
            yield Trial(one.job, one.delay_ms, true, ratio - 1, otherwise * (not true))


def _hidden(cells: Sequence[Cell], most: float) -> Iterable[Trial]:
    """Try each network: provisioned at 10 ms takes no more than so much longer than at the shortest delay."""
    least: dict[Network, Cell] = {}
    slow: dict[Network, Cell] = {}
    for one in cells:
        network = (one.job, one.ports, one.port_gbps)
        if network not in least or one.delay_ms < least[network].delay_ms:
            least[network] = one
        if one.delay_ms == 10.0:
            slow[network] = one
    for network, one in slow.items():
        longer = one.times_ms["provisioned"] / least[network].times_ms["provisioned"] - 1
        yield Trial(one.job, one.delay_ms, longer <= most, longer)


def _a_dollar(cells: Sequence[Cell], port_gbps: float, least: float) -> Iterable[Trial]:
    """Try the mixture of experts: iterations per dollar over the fat-tree's, in the printed range or above."""
    for one in cells:
        if one.job != EXPERTS or one.port_gbps != port_gbps or one.delay_ms > 25.0:
            continue
        ratio = one.ratio("fat_tree", "regional")
        prices = [one.dollars.get(name) for name in ("fat_tree", "regional")]
        if ratio is not None and prices[0] and prices[1]:
            value = ratio * prices[0] / prices[1]
            yield Trial(one.job, one.delay_ms, value >= least * 0.9, value)


CHANGING = ("reactive", "provisioned", "phased", "in_collective", "scheduled")
TRIALS: Mapping[str, Callable[..., Iterable[Trial]]] = {
    "fixed wins": _fixed_wins,
    "shorter": _shorter,
    "shorter without delay": _without_delay,
    "longer beyond a microsecond": _beyond_a_microsecond,
    "hidden": _hidden,
    "more per dollar": _a_dollar,
}


def _claim(counted: str, trials: dict[str, Any], **said: Any) -> Claim:
    """Return a claim as ``claims.toml`` has it."""
    how = TRIALS[trials.pop("how")]
    words = trials | {"equal": percent(EQUAL), "most": percent(trials.get("most", 0.0))}
    said |= {"counted": counted.format(**words), "needs": tuple(said["needs"])}
    return Claim(trials=partial(how, **trials), **said)


_FILE = Path(__file__).with_name("claims.toml").read_text(encoding="utf-8")
CLAIMS: tuple[Claim, ...] = tuple(_claim(**one) for one in tomllib.loads(_FILE)["claims"])


def crossings(cells: Sequence[Cell], job: str) -> tuple[tuple[int, float, float | None], ...]:
    """Return by (ports, port speed) the longest delay at which changing circuits win; None where they never do."""
    found: dict[tuple[int, float], float | None] = {}
    for one in cells:
        if one.job == job:
            network = (one.ports, one.port_gbps)
            before = found.setdefault(network, None)
            if one.side == "changing" and (before is None or one.delay_ms > before):
                found[network] = one.delay_ms
    return tuple((*network, delay) for network, delay in sorted(found.items()))


def argument(cells: Sequence[Cell], complete: bool = True) -> str:
    """Return who is right, as text: how many claims hold, where changing circuits win and up to which delay, how many cells are even.

    Cells of which fabrics are still to come do not count; unless ``complete``, the sentence says "so far".
    """
    judged = [one for one in cells if one.side]
    if not judged:
        return "Nothing is computed yet."
    changing = [one for one in judged if one.side == "changing"]
    fixed, even = (sum(one.side == side for one in judged) for side in ("fixed", "even"))
    words = (
        f"Changing circuits inside an iteration is faster in {len(changing) or 'none'} of {plural(len(judged), 'cell')}"
        f"{'' if complete else ' so far'}"
    )
    if changing:
        half = sorted(one.lead for one in changing)[len(changing) // 2]
        longest = max(one.delay_ms for one in changing)
        words += f", by {percent(half)} at the median, up to a delay of {delay_label(longest)}"
    return f"{_judgement(cells)}{words}; fixed networks are faster in {fixed or 'none'}; {even or 'none'} {is_or_are(even)} even."


def _judgement(cells: Sequence[Cell]) -> str:
    """Return how many claims hold, hold in part, fail and cannot be judged, with a space; empty while none is judged."""
    counts: Counter[str] = Counter(tried(claim, cells).verdict for claim in CLAIMS)
    judged = counts.total() - counts["not printed"]
    if not judged:
        return ""
    hold, part, fail = (
        f"{counts[verdict] or 'none'} {verb}{'s' * (counts[verdict] < 2)}"
        for verdict, verb in (("match", "hold"), ("trend", "hold"), ("differs", "fail"))
    )
    return (
        f"Of {plural(judged, 'claim')} that can be judged {hold}, {part} in part and {fail}; "
        f"{counts['not printed'] or 'none'} cannot be judged. "
    )


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
        return f"true by construction: {one.claim.identity}; {percent(one.share)} of {one.trials} are {one.claim.counted}"
    words = (
        "not judged: the paper's setting is not public; on ours"
        if one.claim.abstract
        else f"{words}:"
    )
    least, most = min(one.decades.values()), max(one.decades.values())
    by_decade = f", {percent(least)} to {percent(most)} by decade of the delay"
    alike = f", {percent(one.of_all)} with all weighed alike"
    instead = "".join(f"; {count} {what}" for what, count in one.otherwise.items())
    return (
        f"{words} true of {percent(one.share)} of {plural(one.trials, 'cell')}{by_decade if least < most else ''}"
        f"{alike if abs(one.share - one.of_all) > SENSITIVE else ''}{instead}"
    )


def measured_words(one: Tried) -> str:
    """Return the middle and the largest number of a claim's trials."""
    if one.middle is None or one.largest is None:
        return ""
    if one.claim.measured.startswith("iterations"):
        return f"{one.middle:.2f} at the median, {one.largest:.2f} at most"
    return f"{_share(one.middle)} at the median, {_share(one.largest)} at most"


def _share(value: float) -> str:
    """Return a share in percent; one that nobody would measure, below 0.005 %, as nothing."""
    return "nothing" if abs(value) < 5e-5 else percent(value)


def crossing_words(cells: Sequence[Cell], job: str) -> str:
    """Return up to which delay changing circuits win for a job, network by network."""
    return "; ".join(
        f"{ports} × {gbps:g}G: {'never' if delay is None else 'up to ' + delay_label(delay)}"
        for ports, gbps, delay in crossings(cells, job)
    )


def as_record(cells: Sequence[Cell], complete: bool = True) -> dict[str, Any]:
    """Return the whole answer as JSON has it."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "finding": argument(cells, complete),
        "claims": [
            {
                "claim": one.claim.name,
                **record_of(one.claim, "source says counted measured published identity"),
                "abstract_only": one.claim.abstract,
                **record_of(one, "verdict trials share middle largest"),
                "share_of_all": one.of_all,
                "share_by_decade": [list(pair) for pair in one.decades.items()],
                "jobs": {job: list(counts) for job, counts in one.by_job.items()},
            }
            for one in (tried(claim, cells) for claim in CLAIMS)
        ],
        "cells": [
            {
                **record_of(one, "job ports port_gbps delay_ms side complete lead fastest"),
                "times_ms": dict(one.times_ms),
            }
            for one in cells
        ],
    }
