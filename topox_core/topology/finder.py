"""TopologyFinder: circuits for a job, fixed before it starts (TopoOpt, NSDI 2023, Algorithm 1).

Two variants: ``published`` follows the paper (degree split, rings, matching), ``released`` the code
that came with it (all ports to rings laid in both directions, model-parallel traffic forwarded by
hosts).
"""

from __future__ import annotations

from functools import partial

from topox_core.errors import InputError
from topox_core.io.ranges import check_one_of, check_whole
from topox_core.model.cluster import MAX_PORTS
from topox_core.topology.published import find_published
from topox_core.topology.released import find_released
from topox_core.topology.result import LayoutResult, LayoutStep, ring_strides
from topox_core.topology.traffic import Demand, check_servers, demand_of, traffic_of

_wrong = partial(InputError, file="topology")

__all__ = [
    "PATHS",
    "VARIANTS",
    "Demand",
    "LayoutResult",
    "LayoutStep",
    "demand_of",
    "find_layout",
    "ring_strides",
    "traffic_of",
]

VARIANTS = ("published", "released")
# The paper routes model-parallel traffic over k shortest paths and leaves k open.
PATHS = 2
# Named before memory is spent.
MAX_CIRCUITS = 250_000
MAX_PAIRS = 250_000


def find_layout(
    demand: Demand,
    degree: int,
    variant: str = "published",
    *,
    paths: int = PATHS,
    longer: int = 0,
    seed: int = 0,
) -> LayoutResult:
    """Return circuits and routes for a demand.

    Parameters
    ----------
    demand
        Of :func:`traffic_of` or :func:`demand_of`.
    degree
        Circuits out of and into each server, d. It may exceed the number of other servers: circuits
        between the same two servers add up.
    variant
        ``published`` or ``released``.
    paths, longer
        In ``published``: a model-parallel transfer is split evenly over up to ``paths`` loop-free
        paths, none more than ``longer`` hops longer than the shortest.
    seed
        In ``released``: of the random tie-breaks of its routing. ``published`` has no chance in it.

    Raises
    ------
    InputError
        If the degree is zero, odd in ``released`` (a ring in both directions takes two ports), or
        absurdly large; if the variant is unknown; if more pairs talk than a layout may route.
    """
    check_one_of(variant, VARIANTS, file="topology", field="variant")
    check_whole(degree, 1, MAX_PORTS, file="topology", field="degree")
    if paths < 1 or longer < 0:
        raise _wrong(
            f"must be at least 1 path, at least 0 hops longer (got {paths} and {longer})",
            field="paths",
        )
    check_servers(demand.servers)
    if degree * demand.servers > MAX_CIRCUITS:
        raise _wrong(
            f"would be {degree * demand.servers:,} circuits, more than the {MAX_CIRCUITS:,} a layout may have",
            field="degree",
        )
    if len(demand.pairs) > MAX_PAIRS:
        raise _wrong(
            f"has {len(demand.pairs):,} pairs of servers that talk, more than the {MAX_PAIRS:,} a layout may have",
            field="graph",
        )
    if variant == "released":
        if degree % 2:
            raise _wrong(
                f"must be even in the released variant, whose rings run both ways on two ports (got {degree})",
                field="degree",
            )
        return find_released(demand, degree, seed)
    return find_published(demand, degree, paths, longer)
