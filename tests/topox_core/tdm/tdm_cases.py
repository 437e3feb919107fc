"""Jobs on an optical fabric for tests: the four-pod case with known answers, the drafts' set-up made small, and random ones."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import DRAFT, Job, Jobs, PodNetwork, RoundForm
from topox_core.tdm.model.jobs_file import validated
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.traffic import StageTable, TooFewPortsError

# The four-pod case without reconfiguration time: hill climbing, the optimum, and the stage of all
# jobs under each.
GOLDEN_HILL_CLIMBING_S = 118.7998
GOLDEN_OPTIMUM_S = 107.7832
GOLDEN_STAGE_S = 18.944


def golden(reconfiguration_ms: float = 0.0) -> Jobs:
    """Four pods with four rings and one parameter server: time division gains nothing, other rings do."""
    network = PodNetwork(1, 4, 8, 150.0, 1200.0, reconfiguration_ms)
    rings = (
        ((2, 2, 2, 2), 78.72, 31.0036),
        ((1, 1, 1, 1), 78.72, 31.0036),
        ((0, 2, 2, 1), 205.44, 40.4559),
        ((0, 1, 0, 1), 5683.2, 34.9735),
    )
    jobs = [
        Job(f"r{n}", "ring_all_reduce", 0, units, volume, train)
        for n, (units, volume, train) in enumerate(rings)
    ]
    jobs.append(Job("ps", "parameter_server", 0, (0, 1, 1, 1), 678.4, 33.3982, server_pod=0))
    return validated("four pods", network, jobs, "golden")


def round_s_of(table: StageTable, group: Sequence[int], form: RoundForm = DRAFT) -> float:
    """The length of the round of a grouping, infinite where ports are too few."""
    try:
        return round_of(table, group, form).round_s
    except TooFewPortsError:
        return math.inf


def laps(job: Job) -> list[tuple[int, ...]]:
    """Every ring through the pods of a job, from its first pod; one empty ring for what is no ring."""
    if job.collective != "ring_all_reduce" or len(job.pods) < 2:
        return [()]
    return [(job.pods[0], *rest) for rest in permutations(job.pods[1:])]


def small(seed: int, reconfiguration_ms: float = 0.0) -> Jobs:
    """The drafts' set-up on one group of four pods with eight ports: 4 to 6 jobs, 8k to 32k tokens, degree 2 to 8."""
    rng = random.Random(seed)
    return deploy(
        SetUp(
            jobs=rng.randint(4, 6),
            context=rng.choice((8192, 16384, 32768)),
            pod_groups=1,
            pods_per_group=4,
            ports_per_pod=8,
            degree_max=8,
            seed=seed,
            reconfiguration_ms=reconfiguration_ms,
        )
    )


def random_jobs(
    seed: int,
    *,
    most_jobs: int = 8,
    pod_groups: int = 2,
    pods: int | None = None,
    reconfiguration_ms: float | None = None,
) -> Jobs:
    """Jobs of any kind, volume and computing on small pods, with just enough ports and up to thrice that; long delays."""
    rng = random.Random(seed)
    pods = pods or rng.randint(1, 6)
    ports = max(2, 2 * (pods - 1)) + rng.randint(0, 4 * pods)
    delay = rng.choice((0.0, 0.5, 2000.0)) if reconfiguration_ms is None else reconfiguration_ms
    network = PodNetwork(
        pod_groups, pods, ports, 100.0, rng.choice((20.0, 100.0, 100.0 * ports)), delay
    )
    jobs = []
    for n in range(rng.randint(1, most_jobs)):
        units = [rng.choice((0, 0, 1, 1, 2, 3)) for _ in range(pods)]
        units[rng.randrange(pods)] += not any(units)
        job = Job(
            f"j{n}",
            "ring_all_reduce",
            rng.randrange(pod_groups),
            tuple(units),
            rng.choice((5.0, 50.0, 200.0 * rng.random() + 1.0)),
            rng.choice((0.0, 4.0, 10.0 * rng.random())),
        )
        kind = rng.randrange(3)
        if kind == 1:
            job = replace(job, collective="all_to_all")
        elif kind == 2:
            job = replace(
                job,
                collective="parameter_server",
                server_pod=rng.randrange(pods),
                aggregate_s=rng.choice((0.0, 0.0, 2.5)),
            )
        jobs.append(job)
    return validated(f"random {seed}", network, jobs, "random")
