"""TopoOpt's figure 16: a cluster shared by several jobs, each on its own shard of circuits or all on one fat-tree."""

import random
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

import numpy as np

from topox_core.fabrics.options import FabricOptions
from topox_core.papers.card import Call, CardRun, Rows, Settings
from topox_core.papers.rows import LEVEL, Row
from topox_core.papers.topoopt_jobs import iteration_ms, network, shared_iterations_ms

EACH, DEGREE, PORT_GBPS, RACK = 16, 8, 100.0, 16
TAIL = 99.0  # percentile
# Shares of the jobs in TopoOpt's evaluation script, as it means them.
MIX = (("dlrm-16", 0.35), ("bert-16", 0.30), ("candle-16", 0.25), ("vgg16-measured", 0.10))
RIVALS = {"fat_tree": "Fat-tree of similar cost", "oversubscribed": "Oversubscribed fat-tree"}
SEEDS = tuple(range(5))
ALL_SEEDS = "0-4"
# Of each draw, the times of its jobs in ms.
Draws = Mapping[int, Sequence[float]]


def drawn_jobs(count: int, seed: int) -> tuple[str, ...]:
    """Return the models of ``count`` jobs drawn from the mix."""
    chance = random.Random(seed)
    return tuple(chance.choices([name for name, _ in MIX], [share for _, share in MIX], k=count))


def _jobs(settings: Settings) -> dict[int, tuple[str, ...]]:
    """Return the models of each draw."""
    seeds = SEEDS if settings["seed"] == ALL_SEEDS else (int(settings["seed"]),)
    return {seed: drawn_jobs(int(settings["servers"]) // EACH, seed) for seed in seeds}


def calls(run: CardRun) -> list[Call]:
    """Return the calls: of every draw the two fat-trees, of every model a shard of its own."""
    settings, jobs = run.settings, _jobs(run.settings)
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
            (models, EACH, places(servers, seed), cluster, options),
        )
        for rival, options in rivals.items()
        for seed, models in jobs.items()
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


def rows(run: CardRun) -> Rows:
    known, jobs = run.answers, _jobs(run.settings)
    if not {model for models in jobs.values() for model in models} <= set(known):
        return
    ours = {seed: [known[model] for model in models] for seed, models in jobs.items()}
    for series in run.card.series:
        for rival in RIVALS:
            if all((rival, seed) in known for seed in jobs):
                yield _row(series, rival, ours, {seed: known[rival, seed] for seed in jobs}, run)


def _row(series: str, rival: str, ours: Draws, others: Draws, run: CardRun) -> Row:
    def measure(times: Sequence[float]) -> float:
        return float(np.mean(times) if series == "average" else np.percentile(times, TAIL))

    draws = {seed: measure(others[seed]) / measure(ours[seed]) for seed in ours}
    values = list(draws.values())
    data = {
        "topoopt_ms": fmean(map(measure, ours.values())),
        f"{rival}_ms": fmean(map(measure, others.values())),
        "least": min(values),
        "most": max(values),
        "standard_deviation": pstdev(values),
        **{f"seed_{seed}": draw for seed, draw in draws.items()},
    }
    jobs, spread = len(next(iter(ours.values()))), _spread(values) if len(values) > 1 else ""
    return run.row(series, RIVALS[rival], fmean(values), data=data, jobs=jobs, spread=spread)


def _spread(values: Sequence[float]) -> str:
    same = sum(abs(value - 1) <= LEVEL for value in values)
    level = f", {same} of them level with TopoOpt" if same else ""
    return (
        f"Mean of {len(values)} draws from {min(values):.2f} to {max(values):.2f}, standard deviation "
        f"{pstdev(values):.2f}{level}. "
    )


def said(run: CardRun) -> dict[str, str]:
    mixes = (
        f"seed {seed}: "
        + ", ".join(f"{models.count(name)} × {name}" for name, _ in MIX if name in models)
        for seed, models in _jobs(run.settings).items()
    )
    return {"mixes": "; ".join(mixes)}
