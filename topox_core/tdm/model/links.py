"""Algorithm 2, lines 9 to 17: how many links each pair of pods gets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.tdm.kernels.stage import Fabric, allocate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class TooFewPortsError(InputError):
    """No round exists because ports are too few: an answer (infeasible) rather than bad input."""

    def __str__(self) -> str:
        return self.located(f"infeasible: {self.problem}")


def ports_used(links: NDArray[np.integer]) -> Ints:
    """Return the ports in use in each pod: a link takes one at either end (eq. 6)."""
    used: Ints = np.asarray(links.sum(0) + links.sum(1), np.int64)
    return used


def allocated(
    demand: Floats, tor_s: float, fabric: Fabric, both_ways: bool = False
) -> tuple[float, Ints]:
    """Return the least time in which ``demand`` (Gbit) can be served, and links that serve it.

    Greedy and yet optimal: while the longest time exceeds the optimum, the slowest pair has fewer
    links than any optimal solution gives it, so no step takes a port that an optimal solution needs
    elsewhere. The time is infinite where ports are too few for one link a pair. ``both_ways`` keeps
    the links symmetric.
    """
    links = np.zeros(demand.shape, np.int64)
    return float(allocate(demand, tor_s, fabric, both_ways, links)), links


def refuse_few_ports(
    demand: Floats, ports: int, pod_group: int, name: str, both_ways: bool = False
) -> None:
    """Check that every pair that must talk can have a link.

    Raises
    ------
    TooFewPortsError
        If a pod has too few ports: the pod, what it needs and what it has.
    """
    talks = demand > 0
    if both_ways:
        talks = talks | talks.T
    need = ports_used(talks.astype(np.int64))
    pod = int(need.argmax())
    if need[pod] > ports:
        raise TooFewPortsError(
            f"pod {pod} has {ports} port{'s' if ports != 1 else ''} and needs {need[pod]} for one link to and from "
            "each pod that it talks with in one stage",
            file=name,
            item=f"pod group {pod_group}",
            field="ports_per_pod",
        )
