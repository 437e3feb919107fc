"""TopoOpt's figure 16: a cluster shared by several jobs, each on its own shard of circuits or all on one fat-tree."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

import numpy as np

from topox_core.fabrics.options import FabricOptions
from topox_core.papers.calls import Call, answers
from topox_core.papers.card import (
    LEVEL,
    MATCH,
    Answer,
    Card,
    Choice,
    OnRow,
    Row,
    Settings,
    Verdict,
    counted_verdicts,
    judged_over,
    stated,
)
from topox_core.papers.switches import SHARE, VARIANT
from topox_core.papers.topoopt_jobs import iteration_ms, network, shared_iterations_ms
from topox_core.runs.stopping import Stop

EACH, DEGREE, PORT_GBPS, RACK = 16, 8, 100.0, 16
TAIL = 99.0  # percentile
# Shares of the jobs in TopoOpt's evaluation script, as it means them.
MIX = (("dlrm-16", 0.35), ("bert-16", 0.30), ("candle-16", 0.25), ("vgg16-measured", 0.10))
PRINTED = {("average", "fat_tree"): 1.7, ("average", "oversubscribed"): 1.15}
SERIES = {"average": "Average of the jobs", "tail": "Slowest jobs (99th percentile)"}
RIVALS = {"fat_tree": "Fat-tree of similar cost", "oversubscribed": "Oversubscribed fat-tree"}

SEEDS = tuple(range(5))
ALL_SEEDS = "0-4"

CHOICES = (
    Choice(
        "servers",
        "Servers",
        "Size of the cluster, 16 servers a job; the paper has 432.",
        ((432, "432 (27 jobs)"), (128, "128 (8 jobs)"), (64, "64 (4 jobs)")),
        432,
    ),
    SHARE,
    Choice(
        "oversubscription",
        "Oversubscription",
        "Of the other fat-tree above racks of 16 servers, with d × B a server.",
        ((2, "2 : 1"), (4, "4 : 1"), (8, "8 : 1")),
        2,
    ),
    VARIANT,
    Choice(
        "seed",
        "Draws",
        "Of the jobs and of their places: one seed, or mean and spread of five.",
        ((ALL_SEEDS, "mean of seeds 0 to 4"), *((seed, f"seed {seed}") for seed in SEEDS)),
        ALL_SEEDS,
    ),
)


def drawn_jobs(count: int, seed: int) -> tuple[str, ...]:
    """Return the models of ``count`` jobs drawn from the mix."""
    chance = random.Random(seed)
    return tuple(chance.choices([name for name, _ in MIX], [share for _, share in MIX], k=count))


def _play(settings: Settings, stop: Stop, on_row: OnRow) -> Answer:
    lost: list[str] = []
    seeds = SEEDS if settings["seed"] == ALL_SEEDS else (int(settings["seed"]),)
    jobs = {seed: drawn_jobs(int(settings["servers"]) // EACH, seed) for seed in seeds}
    on_shard: dict[str, float] = {}
    on_rival: dict[tuple[str, int], list[float]] = {}
    for key, answer in answers(_calls(settings, jobs), stop, lost):
        if isinstance(key, str):
            on_shard[key] = answer
        else:
            on_rival[key] = answer
    rows: list[Row] = []
    if {model for drawn in jobs.values() for model in drawn} <= set(on_shard):
        ours = {seed: [on_shard[model] for model in drawn] for seed, drawn in jobs.items()}
        for series in SERIES:
            for rival in RIVALS:
                if all((rival, seed) in on_rival for seed in seeds):
                    others = {seed: on_rival[rival, seed] for seed in seeds}
                    rows.append(_row(series, rival, ours, others, settings))
                    on_row(rows[-1])
    return CARD.answer(settings, rows, _finding(rows), _remarks(rows, jobs), lost)


def _calls(settings: Settings, jobs: Mapping[int, tuple[str, ...]]) -> list[Call]:
    """Return the calls: of every draw the two fat-trees, of every model a shard of its own."""
    servers = int(settings["servers"])
    cluster, shard = network(servers, DEGREE, PORT_GBPS), network(EACH, DEGREE, PORT_GBPS)
    rivals = {
        "oversubscribed": FabricOptions(
            oversubscription=float(settings["oversubscription"]), servers_per_rack=RACK
        ),
        "fat_tree": FabricOptions(equivalent_gbps=DEGREE * PORT_GBPS * float(settings["fat_tree"])),
    }
    static = FabricOptions(topology_variant=str(settings["variant"]))
    shared = [
        Call(
            (rival, seed),
            shared_iterations_ms,
            (drawn, EACH, places(servers, seed), cluster, options),
        )
        for rival, options in rivals.items()
        for seed, drawn in jobs.items()
    ]
    models = sorted({model for drawn in jobs.values() for model in drawn})
    return shared + [
        Call(model, iteration_ms, (model, shard, "static", static)) for model in models
    ]


def places(servers: int, seed: int) -> tuple[int, ...]:
    """Return the servers in the order in which jobs get them, scattered over the racks."""
    scattered = list(range(servers))
    random.Random(seed + 1).shuffle(scattered)
    return tuple(scattered)


def _row(
    series: str,
    rival: str,
    ours: Mapping[int, Sequence[float]],
    others: Mapping[int, Sequence[float]],
    settings: Settings,
) -> Row:
    def measure(times: Sequence[float]) -> float:
        return float(np.mean(times) if series == "average" else np.percentile(times, TAIL))

    draws = {seed: measure(others[seed]) / measure(ours[seed]) for seed in ours}
    values, theirs = list(draws.values()), PRINTED.get((series, rival))
    value = fmean(values)
    data = {
        "topoopt_ms": fmean(map(measure, ours.values())),
        f"{rival}_ms": fmean(map(measure, others.values())),
        "least": min(values),
        "most": max(values),
        "standard_deviation": pstdev(values),
        **{f"seed_{seed}": draw for seed, draw in draws.items()},
    }
    jobs = len(next(iter(ours.values())))
    about = f"{settings['servers']} servers, {jobs} jobs"
    verdict: Verdict
    if theirs is None:
        verdict = stated(value, spread=pstdev(values))
        reason = "No number is printed for the tail; the paper says that it is like the average, TopoOpt ahead."
    else:
        verdict, reason = (
            judged_over(theirs, value, pstdev(values), level=1.0),
            _reason(rival, value / theirs, settings),
        )
    if len(values) > 1:
        reason = f"{_spread(values)} {reason}"
    return Row(series, RIVALS[rival], about, theirs, value, verdict, reason, data=data)


def _spread(values: Sequence[float]) -> str:
    same = sum(abs(value - 1) <= LEVEL for value in values)
    level = f", {same} of them level with TopoOpt" if same else ""
    return (
        f"Mean of {len(values)} draws from {min(values):.2f} to {max(values):.2f}, standard deviation "
        f"{pstdev(values):.2f}{level}."
    )


def _reason(rival: str, share: float, settings: Settings) -> str:
    if rival == "fat_tree":
        if abs(share - 1) <= MATCH:
            return "The same within a tenth."
        return (
            "Jobs do not disturb one another on a fat-tree without oversubscription, so the factor is that of its NIC, "
            f"{float(settings['fat_tree']):g} of d × B, on jobs that wait for the network only in part."
        )
    return (
        f"Jobs meet above the racks at {settings['oversubscription']} : 1; the paper's factor hangs on its "
        "oversubscription and on how jobs are placed, which are not printed."
    )


def _finding(rows: Sequence[Row]) -> str:
    value = {(row.series, row.item): row.ours for row in rows}
    if len(value) < len(SERIES) * len(RIVALS):
        return "Not all networks were computed."
    fat, over = RIVALS.values()
    average, tail = ({rival: value[series, rival] for rival in (fat, over)} for series in SERIES)
    return (
        f"Against shards of fixed circuits the average iteration is {average[fat]:.2f}× on a fat-tree of similar cost and "
        f"{average[over]:.2f}× on an oversubscribed one (printed: 1.7× and 1.15×); among the slowest jobs {tail[fat]:.2f}× "
        f"and {tail[over]:.2f}×."
    )


def _remarks(rows: Sequence[Row], jobs: Mapping[int, Sequence[str]]) -> tuple[str, ...]:
    if not rows:
        return ()
    mixes = "; ".join(
        f"seed {seed}: "
        + ", ".join(f"{drawn.count(name)} × {name}" for name, _ in MIX if name in drawn)
        for seed, drawn in jobs.items()
    )
    return (
        f"{counted_verdicts(rows)}.",
        f"Jobs of 16 servers each, by draw: {mixes}.",
        "All jobs start together and run one iteration; on the fat-trees their servers are scattered over the racks. A "
        "shard of circuits belongs to one job, so there a job never waits for another.",
    )


CARD = Card(
    name="topoopt-shared",
    title="Shared cluster",
    source="TopoOpt (NSDI 2023), section 5, Figure 16",
    shows="432 servers of degree 8 at 100 Gbit/s shared by several jobs: with a shard of circuits for each job the average "
    "iteration is 1.7 times faster than on a fat-tree of similar cost and 1.15 times faster than on an oversubscribed "
    "one.",
    choices=CHOICES,
    series=SERIES,
    row_count=len(SERIES) * len(RIVALS),
    play=_play,
    takes_s=6.5,
)
