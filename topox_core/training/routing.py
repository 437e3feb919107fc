"""Which experts the tokens of a microbatch choose, where they choose unevenly."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import lru_cache

from topox_core.training.job import Job

# How much less the taste of one sender varies than the popularity of an expert.
OWN_TASTE = 0.25


@dataclass(frozen=True)
class Routing:
    """The routing of one layer and microbatch in one group of ranks that share the experts.

    Attributes
    ----------
    share
        Of the tokens of rank i, the part that goes to the experts of rank j; each row adds up to 1.
    """

    share: tuple[tuple[float, ...], ...]

    def load(self, rank: int) -> float:
        """Return how many ranks' tokens the experts of a rank are sent; 1 if routing is even."""
        return sum(row[rank] for row in self.share)


@lru_cache(maxsize=4096)
def _drawn(ranks: int, skew: float, draw: str) -> Routing:
    rng = random.Random(draw)
    popular = [math.exp(skew * rng.gauss(0, 1)) for _ in range(ranks)]
    rows = [
        [one * math.exp(OWN_TASTE * skew * rng.gauss(0, 1)) for one in popular]
        for _ in range(ranks)
    ]
    return Routing(tuple(tuple(one / sum(row) for one in row) for row in rows))


def routing(job: Job, group: int, microbatch: int, layer: int) -> Routing:
    """Return the routing of a layer and microbatch in one of the groups that share experts.

    Popularities are log-normal with the spread ``skew`` and drawn from the job's seed, so that the
    same job always routes alike.
    """
    draw = f"{job.plan.seed} {group} {microbatch} {layer}"
    return _drawn(job.plan.expert, job.plan.skew, draw)
