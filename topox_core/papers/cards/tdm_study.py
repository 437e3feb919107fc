"""The TDM drafts' section IV.C: rounds over the number of jobs and the context length."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev

from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.papers.rows import LEVEL
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.mixes.deployment import CONTEXTS, JOBS, SetUp, deploy
from topox_core.tdm.model.jobs import Reading, TdmSettings

FIXED_JOBS, FIXED_CONTEXT = 256, 8_192
READINGS: Mapping[str, Reading] = {
    "built": Reading(),
    "eq3": Reading(eq3_literal=True),
    "ring": Reading(physical_ring=True),
    "inside": Reading(delay_inside=True),
}


def rows(run: CardRun) -> Rows:
    points = [("jobs", f"{jobs} jobs", jobs, FIXED_CONTEXT) for jobs in JOBS]
    points += [
        ("context", f"{context // 1024}k tokens", FIXED_JOBS, context) for context in CONTEXTS
    ]
    known: dict[tuple[int, int], tuple[list[float], list[float], list[float]]] = {}
    for series, item, jobs, context in points:
        if (jobs, context) not in known:
            known[jobs, context] = _point(jobs, context, run.settings)
        shorter, before, _ = known[jobs, context]
        mean = fmean(shorter)
        clear = mean > max(LEVEL, pstdev(shorter))
        data = {
            "least": 100 * min(shorter),
            "most": 100 * max(shorter),
            "without_over_with": 1 / (1 - mean),
        }
        made = partial(run.row, item=item, jobs=jobs, context=context)
        yield made(series, ours=100 * mean, follows=clear, data=data)
        if series == "jobs":
            yield made("round", ours=fmean(before))
    share = fmean(known[FIXED_JOBS, FIXED_CONTEXT][2])
    yield run.row("dark", f"{FIXED_JOBS} jobs", 100 * share, follows=share > LEVEL)


def _point(
    jobs: int, context: int, settings: Settings
) -> tuple[list[float], list[float], list[float]]:
    """Return of each seed how much shorter the round is, the round without, and its dark share."""
    base = SetUp(jobs=jobs, context=context, literal_eq8=settings["eq8"] == "gpu")
    choice = TdmSettings(
        algorithm=str(settings["algorithm"]), reading=READINGS[str(settings["reading"])]
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
