"""Where the TDM drafts are misprinted or silent: every reading as a switch, and what a round becomes under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from topox_core.papers.card import Card, Choice, Row, Settings, stated
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.direct import direct, directed, row_of, unprinted
from topox_core.papers.tdm_literal import RINGS, Climbed, Draft, DraftRound
from topox_core.tdm.mixes.deployment import MODELS, SetUp, deploy
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import PUSH

NAME = "tdm-readings"
SEEDS = 3
BUILT = Draft()
READINGS: Mapping[str, tuple[str, Draft, str]] = {
    "eq5": (
        "equation 5 with U − 1",
        Draft(eq5=True),
        "As both drafts print it; built with E − 1, for one GPU a unit would send nothing.",
    ),
    "eq2": (
        "older draft: D_ij over B_tor",
        Draft(eq2=True),
        "The older equation 2; with ports as fast as servers its second term never decides.",
    ),
    "undirected": (
        "older draft: undirected rings",
        Draft(rings="undirected"),
        "The older Algorithm 3 with its degree mended: neighbours are cut above two.",
    ),
    "undirected as printed": (
        "older draft: rings, degree ≥ 2",
        Draft(rings="undirected, as printed"),
        "As line 4 of the older Algorithm 3 is printed: neighbours are cut down to one.",
    ),
    "pull": (
        "pull solved apart",
        Draft(pull_apart=True),
        "Algorithms 2 and 3 for all four stages; built as the push transposed.",
    ),
    "bare": (
        "neighbours without ε",
        Draft(bare_neighbours=True),
        "Line 11 of Algorithm 1 leaves the reconfiguration out that line 4 adds.",
    ),
}
DEMANDS: Mapping[str, tuple[str, Draft, str]] = {
    "hierarchical": (
        "hierarchical ring",
        Draft(all_reduce="hierarchical"),
        "Section II.B names it: units add up inside their pod, then 2 (N − 1) / N of the volume on each arc.",
    ),
    "flat": (
        "flat ring of all units",
        Draft(all_reduce="flat ring"),
        "One ring through all E units: 2 (E − 1) / E of the volume on each arc.",
    ),
    "trees": (
        "double binary tree",
        Draft(all_reduce="double tree"),
        "Section II.B names it: half the volume up and down each edge of two trees.",
    ),
    "FI": (
        "units split over two pods (FI)",
        Draft(split_share=0.01),
        "Each unit sends a hundredth of its volume to the next pod of its job and back; the drafts' units fit one pod.",
    ),
}
SERIES = {
    "reading": "Round over the round as built, by reading",
    "demand": "Round over the round as built, by all-reduce and units",
    "reuse": "Arcs on pairs that talk anyway, over rings in ascending order",
}
CHOICES = (
    Choice(
        "jobs",
        "Jobs",
        "On 256 pods.",
        ((128, "128"), (64, "64"), (256, "256")),
        128,
    ),
    Choice(
        "context",
        "Context",
        "Tokens that a unit trains on in an iteration.",
        ((8_192, "8,192"), (1_024, "1,024"), (32_768, "32,768")),
        8_192,
    ),
)


def gpus_of_units(jobs: Jobs) -> list[int]:
    """Return the GPUs of a unit of each job (U), by the model that its name ends with."""
    return [MODELS[job.id.rpartition("-")[2]].gpus_per_unit for job in jobs.jobs]


def climbed(jobs: Jobs, draft: Draft) -> Climbed:
    """Return where Algorithm 1 ends under a reading."""
    return DraftRound(jobs, gpus_of_units(jobs), draft).climb()


def reused(jobs: Jobs, rings: str, group: Sequence[int]) -> float:
    """Return the share of ring arcs that lie on pairs with traffic, over the pushes of both groups."""
    one = DraftRound(jobs, gpus_of_units(jobs), Draft(rings=rings))
    for pod_group in range(jobs.network.pod_groups):
        for k in (0, 1):
            members = tuple(n for n in jobs.of_group(pod_group) if group[n] == k)
            one.stage(pod_group, members, PUSH)
    return one.reused / one.arcs if one.arcs else 0.0


def _rows(settings: Settings) -> Iterator[Row]:
    drawn = [
        deploy(SetUp(jobs=int(settings["jobs"]), context=int(settings["context"]), seed=seed))
        for seed in range(SEEDS)
    ]
    about = f"{settings['jobs']} jobs, {int(settings['context']):,} tokens, {SEEDS} seeds"
    built = [climbed(jobs, BUILT) for jobs in drawn]
    for series, readings in (("reading", READINGS), ("demand", DEMANDS)):
        for words, draft, reason in readings.values():
            ratios = [
                climbed(jobs, draft).round_s / before.round_s
                for jobs, before in zip(drawn, built, strict=True)
            ]
            yield unprinted(
                series,
                words,
                about,
                fmean(ratios),
                f"{reason} From {min(ratios):.2f} to {max(ratios):.2f} over the seeds.",
                unit="×",
                data={"least": min(ratios), "most": max(ratios)},
            )
    shares = {
        rings: fmean(reused(jobs, rings, one.group) for jobs, one in zip(drawn, built, strict=True))
        for rings in RINGS
    }
    plain = shares["ascending"]
    for words, rings in (
        ("Algorithm 3", "directed"),
        ("older draft's Algorithm 3", "undirected"),
        ("the same, degree ≥ 2", "undirected, as printed"),
    ):
        share = shares[rings]
        yield directed(
            "reuse",
            words,
            about,
            stated(share / plain) == "trend",
            share / plain,
            f"“A higher degree of redundancy with the current topology”: {share:.0%} of the arcs, in ascending order "
            f"{plain:.0%}.",
            unit="×",
        )


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    readings = [row for row in rows if row.series == "reading"]
    widest = max(readings, key=lambda row: abs(row.ours - 1))
    same = [row.item for row in readings if abs(row.ours - 1) < 5e-4]
    reuse = row_of(rows, "reuse", "Algorithm 3").ours
    return (
        f"The reading that matters most is “{widest.item}”: a round of {widest.ours:.2f}× the built one. Rings of Algorithm 3 "
        f"lie {reuse:.2f}× as often on pairs that talk anyway as rings in ascending order.",
        (
            f"Without effect here: {', '.join(same)}."
            if same
            else "Every reading changes the round.",
            "Each row climbs anew by Algorithm 1 under its reading, in plain Python; as built it gives the product's round and "
            "grouping.",
        ),
    )


CARD = Card(
    name=NAME,
    title="Misprints and readings",
    source="TDM drafts (Tang, Chen, Zhu), sections II and III: equations 2, 4 and 5, Algorithms 1 to 3",
    shows="Equations and algorithms of two drafts differ or cannot be meant as printed; Algorithm 3 is to lay rings on links "
    "that are there anyway.",
    choices=CHOICES,
    series=SERIES,
    row_count=len(READINGS) + len(DEMANDS) + 3,
    play=direct(NAME, _rows, _words),
    takes_s=1.9,
)
CLAIMS = (
    Claim(
        NAME,
        "Algorithm 3 lays rings on links that are there anyway: over rings in ascending order",
        None,
        Reading("reuse", lambda rows: row_of(rows, "reuse", "Algorithm 3").ours, 1.0206),
    ),
)
