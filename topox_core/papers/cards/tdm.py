"""The TDM drafts: hashed packets, sizes and training times, the traffic of collectives, rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.papers.rows import LEVEL
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.mixes.deployment import CONTEXTS, JOBS, MODELS, Model, SetUp, deploy
from topox_core.tdm.model.jobs import Collective, Job, Jobs, Reading, TdmSettings, shorter_by
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.traffic import StageTable, TooFewPortsError, between_pods_gbit
from topox_core.training.shape import SHAPES, Shape

SEEDS = range(5)
PACKET_JOBS = (64, 256, 512)


def flows_of(job: Job, ring: Sequence[int], each: int) -> list[tuple[int, int, float]]:
    """Return the flows of a job's push as (from pod, to pod, Gbit), ``each`` for a pair of units."""
    demand = between_pods_gbit(job, Reading(), ring)
    flows = []
    for a, b in np.argwhere(demand > 0).tolist():
        units = job.units_per_pod
        pairs = {
            "parameter_server": units[a],
            "ring_all_reduce": 1,
            "all_to_all": units[a] * units[b],
        }[job.collective]
        flows += [(a, b, float(demand[a, b]) / (pairs * each))] * (pairs * each)
    return flows


def packet_s(
    flows: Sequence[tuple[int, int, float]],
    planes: NDArray[np.int64],
    pods: int,
    paths: int,
    port_gbps: float,
) -> float:
    """Return how long the busiest link takes: flow k goes up from its pod and down to the other on plane ``planes[k]``."""
    up, down = np.zeros((pods, paths)), np.zeros((pods, paths))
    for (a, b, gbit), plane in zip(flows, planes.tolist(), strict=True):
        up[a, plane] += gbit
        down[b, plane] += gbit
    return float(max(up.max(), down.max())) / port_gbps


def _times(jobs: Jobs, seed: int, settings: Settings) -> tuple[float, float, float, float]:
    """Return the push of all jobs at once: spread evenly, hashed, polarised, and on circuits; the slowest pod group each."""
    table, network = StageTable(jobs), jobs.network
    draws = np.random.default_rng(seed)
    longest = np.zeros(4)
    paths = network.ports_per_pod
    few = max(1, round(paths * float(settings["polarised"])))
    for pod_group in range(network.pod_groups):
        members = jobs.of_group(pod_group)
        if not members:
            continue
        stage = table.stage(pod_group, members)
        flows = [
            flow
            for n in members
            for flow in flows_of(jobs.jobs[n], stage.rings[n], int(settings["flows"]))
        ]
        local_s = float(stage.local_gbit.max()) / network.tor_gbps
        busiest = max(float(stage.demand_gbit.sum(way).max()) for way in (0, 1))
        hashed = draws.integers(0, paths, len(flows))
        seconds = [
            packet_s(flows, planes, network.pods_per_group, paths, network.port_gbps)
            for planes in (hashed, hashed % few)
        ]
        longest = np.maximum(
            longest,
            [
                max(local_s, busiest / (paths * network.port_gbps)),
                *(max(local_s, one) for one in seconds),
                stage.communication_s,
            ],
        )
    even, spread, polarised, circuits = longest.tolist()
    return even, spread, polarised, circuits


def tdm_packets(run: CardRun) -> Rows:
    """Figures 1 and 2 of the TDM drafts: a packet network whose flows are hashed to paths, and circuits for the same traffic."""
    for count in PACKET_JOBS:
        times = [_times(deploy(SetUp(jobs=count, seed=seed)), seed, run.settings) for seed in SEEDS]
        ratios = {
            "hashed": [hashed / even for even, hashed, _, _ in times],
            "polarised": [polarised / even for even, _, polarised, _ in times],
            "circuits": [hashed / circuits for _, hashed, _, circuits in times],
            "bare": [even / circuits for even, _, _, circuits in times],
        }
        for series, values in ratios.items():
            data = {} if series == "bare" else {"spread": float(np.std(values))}
            least, most = min(values), max(values)
            item, mean = f"{count} jobs", fmean(values)
            yield run.row(series, item, mean, data=data, least=least, most=most)


# Section IV.A of draft 003: ports of an optical switch, pods of a group, ports of a pod.
SWITCH_PORTS, GROUP, POD_PORTS = 128, 8, 16
WEIGHT_BYTES = 2  # BF16, as the models are published
PUBLISHED = "Llama 3.2 model cards (Meta, 2024)"
_BIG, _SMALL = SHAPES["llama3-70b"], SHAPES["llama3-8b"]
# The text model of a vision model is the dense one with a layer of cross-attention for every four.
SIZES: dict[str, Shape] = {
    "1B": Shape(
        "llama3.2-1b", "Llama 3.2 1B", PUBLISHED, 16, 2_048, 32, 512, 8_192, 3, 128_256, 8_192,
        tied=True,
    ),
    "3B": Shape(
        "llama3.2-3b", "Llama 3.2 3B", PUBLISHED, 28, 3_072, 24, 1_024, 8_192, 3, 128_256, 8_192,
        tied=True,
    ),
    "8B": replace(_SMALL, name="llama3.2-11b", title="Llama 3.2 11B, text", layers=40),
    "90B": replace(_BIG, name="llama3.2-90b", title="Llama 3.2 90B, text", layers=100),
}  # fmt: skip
MOST_JOBS = 512


def tdm_training_times(run: CardRun) -> Rows:
    """Table III of the TDM drafts and equation 8: sizes of the models, training times, and the ports that they are given."""
    for name, model in MODELS.items():
        shape = _SMALL if (name, run.settings["third"]) == ("8B", "8B") else SIZES[name]
        yield run.row(
            "size",
            name,
            shape.parameters * WEIGHT_BYTES / 1e9,
            theirs=model.table_gb,
            shape=shape.title,
            billions=shape.parameters / 1e9,
        )
    setup = SetUp(context=int(run.settings["context"]), literal_eq8=run.settings["unit"] == "gpu")
    for name, model in MODELS.items():
        gpus = 1 if setup.literal_eq8 else model.gpus_per_unit
        words = f"{gpus} GPU{'s' if gpus > 1 else ''}"
        yield run.row("train", name, setup.train_s(model), gpus=words)
    network = setup.network()
    pods = network.pod_groups * network.pods_per_group
    for item, ours in (
        ("pods", pods),
        ("optical switches", pods * network.ports_per_pod / SWITCH_PORTS),
        ("ports of a switch", network.pods_per_group * network.ports_per_pod),
        ("oversubscription", network.ports_per_pod * network.port_gbps / network.tor_gbps),
    ):
        yield run.row("ports", item, ours, pods=pods, network=network)
    # Whether all jobs at once find a link for every pair that talks, as the drafts assume.
    full = 2 * (GROUP - 1)
    yield run.row("mesh", "ports of a full mesh", full, follows=full <= POD_PORTS)
    fitting = sum(_fits(replace(setup, jobs=MOST_JOBS, seed=seed)) for seed in SEEDS)
    share = 100 * fitting / len(SEEDS)
    yield run.row("fit", "draws that fit", share, follows=fitting == len(SEEDS))


def _fits(setup: SetUp) -> bool:
    jobs = deploy(setup)
    try:
        round_of(StageTable(jobs), (0,) * len(jobs))
    except TooFewPortsError:
        return False
    return True


PODS = 8
# Those that send most come first, those that need most links last.
COLLECTIVES: tuple[Collective, ...] = ("parameter_server", "ring_all_reduce", "all_to_all")


def sent_gbit(model: Model, collective: Collective, settings: Settings) -> float:
    """Return what a job sends between pods in one iteration; a parameter server pushes and pulls."""
    pushed = between_pods_gbit(
        _job(model, collective, settings),
        Reading(physical_ring=bool(settings["ring"])),
        tuple(range(PODS)),
    ).sum()
    return float(pushed) * (2 if collective == "parameter_server" else 1)


def _job(model: Model, collective: Collective, settings: Settings) -> Job:
    units = PODS * int(settings["each"])
    all_to_all = collective == "all_to_all"
    volume = model.exchange_gbit(int(settings["context"]), units) if all_to_all else model.sync_gbit
    server = 0 if collective == "parameter_server" else None
    return Job(model.name, collective, 0, (int(settings["each"]),) * PODS, volume, 1.0, server)


def tdm_traffic(run: CardRun) -> Rows:
    """Section II.B of the TDM drafts: which collective sends most, which needs most links, and where that turns over."""
    context, units = int(run.settings["context"]), PODS * int(run.settings["each"])
    for model in MODELS.values():
        server, ring, experts = (sent_gbit(model, one, run.settings) for one in COLLECTIVES)
        for series, more, less in (
            ("ps_over_ring", server, ring),
            ("ring_over_all", ring, experts),
        ):
            yield run.row(series, model.name, more / less, more=more, less=less, units=units)
        yield run.row("turn", model.name, context * ring / experts, units=units)
    sends = (_job(model, one, run.settings) for one in reversed(COLLECTIVES))
    pairs = [
        int((between_pods_gbit(one, Reading(), tuple(range(PODS))) > 0).sum()) for one in sends
    ]
    for item, many, fewer in zip(("all-to-all", "ring"), pairs[:2], pairs[1:], strict=True):
        yield run.row("links", item, many, follows=many > fewer, fewer=fewer, units=units)
    yield run.row("links", "parameter server", pairs[2], units=units)


FIXED_JOBS, FIXED_CONTEXT = 256, 8_192
READINGS: Mapping[str, Reading] = {
    "built": Reading(),
    "eq3": Reading(eq3_literal=True),
    "ring": Reading(physical_ring=True),
    "inside": Reading(delay_inside=True),
}


def tdm_study(run: CardRun) -> Rows:
    """Section IV.C of the TDM drafts: rounds over the number of jobs and the context length."""
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
        shorter.append(shorter_by(served.round_s, without.round_s))
        before.append(without.round_s)
        phases = [phase for cycle in served.cycles for phase in cycle.phases]
        dark.append(sum(phase.dark_s for phase in phases) / served.round_s)
    return shorter, before, dark
