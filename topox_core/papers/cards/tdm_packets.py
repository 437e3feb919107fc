"""The TDM drafts' figures 1 and 2: a packet network whose flows are hashed to paths, and circuits for the same traffic."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import Job, Jobs, Reading
from topox_core.tdm.model.traffic import StageTable, between_pods_gbit

SEEDS = 5
JOBS = (64, 256, 512)


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


def rows(run: CardRun) -> Rows:
    for count in JOBS:
        times = [
            _times(deploy(SetUp(jobs=count, seed=seed)), seed, run.settings)
            for seed in range(SEEDS)
        ]
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


def said(run: CardRun) -> dict[str, float]:
    hashed, even = (1 / run.ours(series, f"{JOBS[1]} jobs") for series in ("circuits", "bare"))
    return {"over_hashed": hashed, "over_even": even}
