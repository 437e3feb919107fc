"""The TDM drafts' section IV.C: rounds over the number of jobs and the context length."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean, pstdev

from topox_core.papers.card import CardRun, Settings
from topox_core.papers.rows import LEVEL, Row, directed, unprinted
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.mixes.deployment import CONTEXTS, JOBS, SetUp, deploy
from topox_core.tdm.model.jobs import Reading
from topox_core.tdm.model.round import TdmSettings

FIXED_JOBS, FIXED_CONTEXT = 256, 8_192
ALGORITHMS = {
    "hill-climbing": "Algorithm 1",
    "best-grouping": "best grouping, same rings",
    "all-train": "best grouping with a phase in which all train",
}
READINGS: Mapping[str, tuple[str, Reading]] = {
    "built": ("the reading taken here", Reading()),
    "eq3": ("equation 3 as printed", Reading(eq3_literal=True)),
    "ring": ("2 (N − 1) / N on each arc", Reading(physical_ring=True)),
    "inside": ("changes inside the communication", Reading(delay_inside=True)),
}


def rows(run: CardRun) -> Iterator[Row]:
    points = [("jobs", f"{jobs} jobs", jobs, FIXED_CONTEXT) for jobs in JOBS]
    points += [
        ("context", f"{context // 1024}k tokens", FIXED_JOBS, context) for context in CONTEXTS
    ]
    known: dict[tuple[int, int], tuple[list[float], list[float], list[float]]] = {}
    for series, item, jobs, context in points:
        if (jobs, context) not in known:
            known[jobs, context] = _point(jobs, context, run.settings)
        shorter, before, _ = known[jobs, context]
        about = f"{jobs} jobs, {context:,} tokens, {len(shorter)} seeds"
        mean = fmean(shorter)
        yield directed(
            series,
            item,
            about,
            mean > max(LEVEL, pstdev(shorter)),
            100 * mean,
            f"“Can significantly improve training efficiency”, by “***”: from {100 * min(shorter):.0f} to "
            f"{100 * max(shorter):.0f} % over the seeds. A mean of up to 2 %, or below the spread of the seeds, shows no difference.",
            unit="%",
            data={
                "least": 100 * min(shorter),
                "most": 100 * max(shorter),
                "without_over_with": 1 / (1 - mean),
            },
        )
        if series == "jobs":
            yield unprinted("round", item, about, fmean(before), unit="s")
    share = fmean(known[FIXED_JOBS, FIXED_CONTEXT][2])
    yield directed(
        "dark",
        f"{FIXED_JOBS} jobs",
        f"0.5 ms a change, {FIXED_CONTEXT:,} tokens",
        share > LEVEL,
        100 * share,
        "“On the order of hundreds of microseconds, which cannot be overlooked”: of a round of minutes they are a "
        "hundred-thousandth.",
        unit="%",
    )


def _point(
    jobs: int, context: int, settings: Settings
) -> tuple[list[float], list[float], list[float]]:
    """Return of each seed how much shorter the round is, the round without, and its dark share."""
    base = SetUp(jobs=jobs, context=context, literal_eq8=settings["eq8"] == "gpu")
    choice = TdmSettings(
        algorithm=str(settings["algorithm"]), reading=READINGS[str(settings["reading"])][1]
    )
    shorter, before, dark = [], [], []
    for seed in range(int(settings["seeds"])):
        drawn = deploy(replace(base, seed=seed))
        without = solve(drawn, replace(choice, algorithm="non-tdm"))
        served = solve(drawn, choice)
        shorter.append(1 - served.round_s / without.round_s)
        before.append(without.round_s)
        phases = [phase for cycle in served.cycles for phase in cycle.phases]
        dark.append(sum(phase.dark_s for phase in phases) / served.round_s)
    return shorter, before, dark
