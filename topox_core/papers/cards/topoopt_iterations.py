"""TopoOpt's figures 11 to 13, 16 and 17: iterations on its circuits and on rivals, alone and shared."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, geometric_mean, pstdev

import numpy as np

from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.fabrics.options import FabricOptions
from topox_core.model.cluster import Cluster
from topox_core.papers.card import Call, CardRun, Rows, Settings
from topox_core.papers.rows import LEVEL, TREND, Row, drawn, judged
from topox_core.papers.topoopt_jobs import (
    BATCHES,
    DEGREES,
    SERVERS,
    bandwidth_taxes,
    iteration_ms,
    iterations_ms,
    network,
    rival_fabrics,
    shared_iterations_ms,
)

NEAR = 0.02  # of the printed tax


def topoopt_bandwidth_tax_calls(run: CardRun) -> list[Call]:
    """Return a call for every batch."""
    settings = run.settings
    return [
        Call(
            batch,
            bandwidth_taxes,
            (f"dlrm-batch/{batch}/{settings['bytes']}", SERVERS, DEGREES, settings["variant"]),
        )
        for batch in BATCHES
    ]


def topoopt_bandwidth_tax(run: CardRun) -> Rows:
    """TopoOpt's figure 13: traffic that host forwarding adds as DLRM's batch, and with it the all-to-all, grows."""
    batches = [batch for batch in BATCHES if batch in run.answers]
    for place, degree in enumerate(DEGREES):
        yield from drawn([_tax(batch, degree, place, run) for batch in batches], rising=True)
    if BATCHES[-1] in run.answers:
        yield run.row("share", f"batch {BATCHES[-1]}", run.answers[BATCHES[-1]][0][1])


def _tax(batch: int, degree: int, place: int, run: CardRun) -> Row:
    series, item, tax = f"d{degree}", f"batch {batch}", run.answers[batch][place][0]
    theirs = run.card.printed.get(f"{series}/{item}")
    if theirs is None:
        return run.row(series, item, tax, off=0.0)
    off = abs(tax - theirs)
    # The tax is read from 1 on: 1.01 against 1.11 is no match.
    verdict = "match" if off <= NEAR else judged(theirs - 1, tax - 1)
    return run.row(series, item, tax, verdict=verdict, off=off)


# The points of Figure 12b's statement: the batch with most all-to-all, at both degrees.
MITIGATED = ((2048, 4), (2048, 8))


def topoopt_all_to_all_calls(run: CardRun) -> list[Call]:
    """Return a call for every batch, the one with most traffic first."""
    cases = tuple(case for _, case in _cases(run.settings))
    return [
        Call(batch, iterations_ms, (f"dlrm-batch/{batch}/{run.settings['bytes']}", cases))
        for batch in reversed(BATCHES)
    ]


def _cases(settings: Settings) -> list[tuple[int, tuple[Cluster, str, FabricOptions]]]:
    """Return what every batch is run on: degree, and cluster, fabric, options."""
    cases = []
    for degree in DEGREES:
        cluster = network(SERVERS, degree, float(settings["port_gbps"]))
        cases += [
            (degree, (cluster, fabric, chosen))
            for fabric, chosen in rival_fabrics(settings, cluster).items()
        ]
    return cases


def topoopt_all_to_all(run: CardRun) -> Rows:
    """TopoOpt's figure 12: what all-to-all traffic costs as DLRM's batch grows."""
    share = float(run.settings["fat_tree"])
    times: dict[tuple[int, int], dict[str, float]] = {}
    for batch in BATCHES:
        for (degree, (_, fabric, _)), ms in zip(
            _cases(run.settings), run.answers.get(batch, ()), strict=False
        ):
            times.setdefault((batch, degree), {})[fabric] = ms
    for series, over, under, rising in (
        ("fat_tree", "fat_tree", "static", False),
        ("ideal", "static", "ideal", True),
    ):
        for degree in DEGREES:
            line = []
            for (batch, of), point in times.items():
                if of == degree:
                    data = {f"{name}_ms": ms for name, ms in point.items()}
                    at, ours = (f"{series}_d{degree}", f"batch {batch}"), point[over] / point[under]
                    row = run.row(*at, ours, data=data, degree=degree, share=share, limit=1 / share)
                    line.append(row)
            yield from drawn(line, rising)
    if MITIGATED[0] in times:
        small, large = (times[key]["fat_tree"] / times[key]["static"] for key in MITIGATED)
        data = {f"d{key[1]}_{name}_ms": ms for key in MITIGATED for name, ms in times[key].items()}
        item = f"batch {MITIGATED[0][0]}"
        yield run.row("degree", item, large / small, data=data, small=small, large=large)


DELAYS_US = (1, 5, 20, 100, 1_000, 10_000)
EACH, PORTS, PORT_GBPS, RACK = 16, 8, 100.0, 16  # of figures 16 and 17
SWITCHED = ("reactive", "provisioned")
JUDGED = ("forwarding", "direct")  # the others change circuits as no line of the figure does
RINGS = (1, 2, 4, 8)
# (series, delay, rings) of a time; fixed circuits stand under their own name.
FIXED = ("static", 0, 0)


def _rings(settings: Settings, series: str) -> tuple[int, ...]:
    """Return the numbers of rings that are tried on a line."""
    if series not in SWITCHED:
        return (0,)
    return RINGS if settings["rings"] == "best" else (int(settings["rings"]),)


def topoopt_reconfiguration_latency_calls(run: CardRun) -> list[Call]:
    """Return the calls, those with most transfers first."""
    settings = run.settings
    model, variant = str(settings["model"]), str(settings["variant"])
    static = FabricOptions(topology_variant=variant)
    watched = {
        series: replace(
            static,
            reevaluate_ms=float(settings["interval_ms"]),
            pause=str(settings["pause"]),
            forwarding=series == "forwarding",
        )
        for series in JUDGED
    }
    at = {delay: network(EACH, PORTS, PORT_GBPS, delay / 1000) for delay in DELAYS_US}
    made = [Call(FIXED, iteration_ms, (model, at[1], "static", static))]
    for rings in reversed(_rings(settings, SWITCHED[0])):
        made += [
            Call(
                (fabric, delay, rings),
                iteration_ms,
                (model, at[delay], fabric, FabricOptions(), rings),
            )
            for delay in DELAYS_US
            for fabric in SWITCHED
        ]
    return made + [
        Call((series, delay, 0), iteration_ms, (model, at[delay], "reevaluated", options))
        for delay in DELAYS_US
        for series, options in watched.items()
    ]


def topoopt_reconfiguration_latency(run: CardRun) -> Rows:
    """TopoOpt's figure 17: how fast a switch must be before circuits that change within the iteration match fixed ones."""
    if FIXED not in run.answers:
        return
    for series in run.card.series:
        rings = _rings(run.settings, series)
        line = [
            _latency_row(series, delay, rings, run)
            for delay in DELAYS_US
            if all((series, delay, one) in run.answers for one in rings)
        ]
        yield from drawn(line, rising=True) if series in JUDGED else line


def _latency_row(series: str, delay: int, tried: tuple[int, ...], run: CardRun) -> Row:
    fixed = run.answers[FIXED]
    time, rings = min((run.answers[series, delay, one], one) for one in tried)
    data = {"static_ms": fixed, f"{series}_ms": time}
    if series in SWITCHED:
        data["rings"] = float(rings)
    words = "1 ring" if rings == 1 else f"{rings} rings"
    return run.row(series, f"{delay:,} µs", time / fixed, data=data, on_rings=words, time=time)


def topoopt_reconfiguration_latency_said(_run: CardRun) -> dict[str, float]:
    return {"equal": EQUAL}


DEGREE = 4
# Words and the catalogue's names at 16 and at 128 servers.
MODELS = {
    "DLRM": ("dlrm-16", "dlrm-128"),
    "CANDLE Uno": ("candle-16", "candle-128"),
    "BERT": ("bert-16", "bert-128"),
    "NCF": ("ncf", "ncf"),
    "ResNet50": ("resnet50", "resnet50"),
    "VGG16": ("vgg16-measured", "vgg16"),
}
FABRICS = ("static", "ideal", "fat_tree")


def topoopt_dedicated_calls(run: CardRun) -> list[Call]:
    """Return a call for every model and fabric."""
    servers = int(run.settings["servers"])
    cluster = network(servers, DEGREE, float(run.settings["port_gbps"]))
    options = rival_fabrics(run.settings, cluster)
    return [
        Call(
            (words, fabric), iteration_ms, (names[servers == 128], cluster, fabric, options[fabric])
        )
        for words, names in MODELS.items()
        for fabric in FABRICS
    ]


def topoopt_dedicated(run: CardRun) -> Rows:
    """TopoOpt's figure 11: a cluster dedicated to one job, model by model."""
    times = {
        words: {fabric: run.answers[words, fabric] for fabric in FABRICS}
        for words in MODELS
        if all((words, fabric) in run.answers for fabric in FABRICS)
    }
    data = {
        words: {f"{name}_ms": ms for name, ms in point.items()} for words, point in times.items()
    }
    behind = {words: point["fat_tree"] / point["static"] for words, point in times.items()}
    share = float(run.settings["fat_tree"])
    for words, ours in behind.items():
        follows = None if 1 - 1e-9 <= ours <= 1 + LEVEL else ours > 1
        yield run.row("fat_tree", words, ours, follows=follows, data=data[words])
    if len(times) == len(MODELS):
        model = max(behind, key=behind.__getitem__)
        needs = 1 / run.card.printed["fat_tree/largest"]
        most, limit = behind[model], 1 / share
        yield run.row("fat_tree", "largest", most, model=model, limit=limit, needs=needs)
    for words, point in times.items():
        near = point["static"] / point["ideal"]
        yield run.row(
            "ideal", words, near, follows=None if near <= 1 + TREND else False, data=data[words]
        )


def topoopt_dedicated_said(run: CardRun) -> dict[str, float]:
    return {"mean": geometric_mean(row.ours for row in run.of("fat_tree") if row.item in MODELS)}


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


def topoopt_shared_calls(run: CardRun) -> list[Call]:
    """Return the calls: of every draw the two fat-trees, of every model a shard of its own."""
    settings, jobs = run.settings, _jobs(run.settings)
    servers = int(settings["servers"])
    cluster, shard = network(servers, PORTS, PORT_GBPS), network(EACH, PORTS, PORT_GBPS)
    rivals = {
        "oversubscribed": FabricOptions(
            oversubscription=float(settings["oversubscription"]), servers_per_rack=RACK
        ),
        "fat_tree": FabricOptions(equivalent_gbps=PORTS * PORT_GBPS * float(settings["fat_tree"])),
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


def topoopt_shared(run: CardRun) -> Rows:
    """TopoOpt's figure 16: a cluster shared by several jobs, each on its own shard of circuits or all on one fat-tree."""
    known, jobs = run.answers, _jobs(run.settings)
    if not {model for models in jobs.values() for model in models} <= set(known):
        return
    ours = {seed: [known[model] for model in models] for seed, models in jobs.items()}
    for series in run.card.series:
        for rival in RIVALS:
            if all((rival, seed) in known for seed in jobs):
                yield _shared_row(
                    series, rival, ours, {seed: known[rival, seed] for seed in jobs}, run
                )


def _shared_row(series: str, rival: str, ours: Draws, others: Draws, run: CardRun) -> Row:
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


def topoopt_shared_said(run: CardRun) -> dict[str, str]:
    mixes = (
        f"seed {seed}: "
        + ", ".join(f"{models.count(name)} × {name}" for name, _ in MIX if name in models)
        for seed, models in _jobs(run.settings).items()
    )
    return {"mixes": "; ".join(mixes)}
