"""A demand matrix planned over parallel switches, by our method and by two baselines.

After Spectra (arXiv 2603.07373), of which the abstract is public: few weighted matchings, given to
switches by their load and evened out by splitting. The formulas, and both baselines, are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from topox_core.demand.assignment import SwitchTimes, assigned, equalised
from topox_core.demand.configuration import Configuration, DemandPlan
from topox_core.demand.decomposition import begun_by_peeling, peeled, peels, shortest_few
from topox_core.errors import InputError
from topox_core.io.ranges import check_number, check_one_of, check_whole
from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.stopping import never

Stop = Callable[[], bool]
METHODS: Mapping[str, str] = MappingProxyType(
    {
        "best": "the shortest of three decompositions, evened out",
        "few": "few matchings, evened out",
        "even": "the matrix with even lines, peeled and evened out",
        "mixed": "the first peels of the matrix with even lines, few matchings for the rest, evened out",
        "peeled": "baseline A: the matrix with even lines, peeled, each matching on one switch",
        "shared": "baseline B: an equal share of the matrix for each switch, peeled there",
    }
)
# Of the entries of the fullest line: so many peels before the rest goes into few matchings.
PEELED = (0.25, 0.5, 1.0, 2.0)
MAX_LINES, MAX_SWITCHES = 256, 1_000
MAX_MS = 1e12


def plan_demand(
    demand_ms: FloatArray,
    switches: int,
    delay_ms: float,
    *,
    first_free: bool = False,
    method: str = "best",
    programme: bool = True,
    stop: Stop = never,
) -> DemandPlan:
    """Return configurations of parallel switches that serve a matrix, each one port of every input and output.

    Parameters
    ----------
    demand_ms
        Square matrix: time on one port from an input to an output. Entries may be split over
        configurations and switches.
    switches, delay_ms
        How many switches; what the set-up of a configuration takes.
    first_free
        Whether the first configuration of each switch stands before the beginning.
    method
        One of :data:`METHODS`.
    programme
        Whether HiGHS finds the times of few matchings; a process that it must stay out of does
        without, and its plans are a little longer.

    Raises
    ------
    InputError
        If the matrix is not square, too large, or has an entry that is no time; or a setting is
        out of range.
    """
    check_one_of(method, METHODS, file="settings", field="method")
    check_whole(switches, 1, MAX_SWITCHES, file="settings", field="switches")
    check_number(delay_ms, file="settings", field="delay_ms")
    demand = checked_matrix(demand_ms)
    times = SwitchTimes(delay_ms, first_free)

    def plan(name: str, carried: list[list[Configuration]]) -> DemandPlan:
        rows = tuple(map(tuple, carried))
        return DemandPlan(demand, delay_ms, first_free, rows, METHODS[name])

    if method == "shared":
        mine = peeled(demand / switches, stop)
        return plan(method, [list(mine) for _ in range(switches)])
    if method == "peeled":
        return plan(method, assigned(peeled(demand, stop), switches, times))
    plans = [
        plan(name, equalised(assigned(configurations, switches, times), times))
        for name, configurations in _decompositions(demand, method, stop, programme)
    ]
    return min(plans, key=lambda one: one.makespan_ms)


def _decompositions(
    demand: FloatArray, method: str, stop: Stop, programme: bool
) -> Iterator[tuple[str, list[Configuration]]]:
    """Yield the decompositions of one method or of all, each with its name."""
    if method in ("few", "best"):
        yield "few", shortest_few(demand, stop, programme)
    if method in ("even", "best"):
        yield "even", peeled(demand, stop)
    if method in ("mixed", "best"):
        first = peels(demand, stop)
        entries = demand > 0
        degree = int(max(entries.sum(axis=0).max(), entries.sum(axis=1).max()))
        for count in sorted({math.ceil(degree * share) for share in PEELED}):
            yield "mixed", begun_by_peeling(demand, first[:count], stop, programme)


def checked_matrix(demand_ms: FloatArray) -> FloatArray:
    """Return a matrix of demands that can be planned.

    Raises
    ------
    InputError
        As :func:`plan_demand`.
    """
    demand = np.asarray(demand_ms, np.float64)
    if demand.ndim != 2 or demand.shape[0] != demand.shape[1]:
        shape = " x ".join(map(str, demand.shape))
        raise InputError(f"must be a square matrix (got {shape})", file="demand")
    if not 1 <= len(demand) <= MAX_LINES:
        raise InputError(
            f"must have 1 to {MAX_LINES} rows and columns (got {len(demand):,})", file="demand"
        )
    wrong = np.argwhere(~((demand >= 0) & (demand <= MAX_MS)))
    if len(wrong):
        i, j = wrong[0].tolist()
        raise InputError(
            f"must be a time from 0 to {MAX_MS:g} ms (got {demand[i, j]:g})",
            file="demand",
            item=f"row {i + 1}, column {j + 1}",
        )
    return demand
