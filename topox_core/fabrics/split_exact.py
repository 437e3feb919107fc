"""The shortest division of a collective's steps over ports, as a mixed-integer programme in HiGHS."""

from dataclasses import replace

import numpy as np

from topox_core.fabrics.one_collective import OneCollective, StepsOnPorts
from topox_core.runs.stopping import Stop, never
from topox_core.schedule.engines.mip import Float, Index, MipBuilder, Run, solve

EXACT_LIMIT_S = 20.0


def shortest_split(
    one: OneCollective, limit_s: float = EXACT_LIMIT_S, stop: Stop = never
) -> StepsOnPorts:
    """Return the shortest division of the steps, or the best known when the limit is reached.

    Steps keep in step: t_0 <= t_1 <= ... <= t_m. Of step q with the time b_q, port r sends x[q,r],
    used if y[q,r], and ends at e[q,r]; a is the latency, delta the delay:

    minimise t_m; sum over r of x[q,r] = b_q; x[q,r] <= b_q y[q,r];
    y[q,r] = 1: e[q,r] >= t_q + x[q,r] + a and t_{q+1} >= e[q,r];
    y[p,r] = y[q,r] = 1, p < q: e[q,r] - x[q,r] - a >= e[p,r] + (delta if the circuits differ).

    What holds besides, and makes the bound better: a step takes at least b_q / c + a; of steps whose
    circuits all differ a port serves k in no less than their times and k - 1 set-ups; ports are alike,
    so that they are numbered by first use. ``proved_ms`` is the bound of HiGHS.
    """
    known = one.split()
    steps, c = one.steps, one.ports
    m = len(steps.busy)
    large = float(steps.busy.sum()) + m * (steps.delay + steps.latency)
    model = MipBuilder()
    x, y, e = (_columns(model, m, c, *kind) for kind in ((large,), (1.0, True), (large,)))
    t = [model.new(large if q else 0.0, cost=float(q == m)) for q in range(m + 1)]
    for q, busy in enumerate(steps.busy.tolist()):
        model.row(dict.fromkeys(x[q], 1.0), busy, busy)
        model.row({t[q + 1]: 1.0, t[q]: -1.0}, lower=busy / c + steps.latency)
        for r in range(c):
            xq, yq, eq = x[q][r], y[q][r], e[q][r]
            model.row({xq: 1.0, yq: -busy}, upper=0.0)
            model.row({eq: 1.0, t[q]: -1.0, xq: -1.0, yq: -large}, lower=steps.latency - large)
            model.row({t[q + 1]: 1.0, eq: -1.0, yq: -large}, lower=-large)
            for p in range(q):
                dark = steps.delay if steps.circuits[p] != steps.circuits[q] else 0.0
                terms = {eq: 1.0, xq: -1.0, e[p][r]: -1.0, yq: -large, y[p][r]: -large}
                model.row(terms, lower=steps.latency + dark - 2 * large)
            if r:  # a port is used for the first time only after the port before it
                model.row({yq: 1.0} | {y[p][r - 1]: -1.0 for p in range(q + 1)}, upper=0.0)
    for first, last in _windows_of_distinct_circuits(steps.circuits.tolist()):
        for r in range(c):
            sent = {x[q][r]: 1.0 for q in range(first, last)}
            used = {y[q][r]: steps.delay + steps.latency for q in range(first, last)}
            model.row(sent | used | {t[first]: 1.0, t[last]: -1.0}, upper=steps.delay)
    begin = _beginning(known, y)
    outcome = solve(model.built(), Run(limit_s, 1e-7, 1e-9), begin, stop)
    dual = max(one.bound_ms, outcome.dual if np.isfinite(outcome.dual) else 0.0)
    best = known
    if outcome.values is not None and outcome.values[t[m]] < known.makespan_ms * (1 - 1e-9):
        used = outcome.values[np.array(y)] > 0.5
        share = np.where(used, np.maximum(outcome.values[np.array(x)], 0.0), 0.0)
        start = np.where(used, outcome.values[np.array(e)] - share - steps.latency, 0.0)
        best = StepsOnPorts(share, start, float(outcome.values[t[m]]))
    return replace(best, proved_ms=min(dual, best.makespan_ms))


def _windows_of_distinct_circuits(circuits: list[int]) -> list[tuple[int, int]]:
    """Return first step and end of all runs of two or more steps in which no circuits come twice."""
    windows = []
    for first in range(len(circuits)):
        for last in range(first + 2, len(circuits) + 1):
            if len(set(circuits[first:last])) < last - first:
                break
            windows.append((first, last))
    return windows


def _beginning(known: StepsOnPorts, y: list[list[int]]) -> tuple[Index, Float]:
    """Return which port serves which step in a known division, ports numbered by first use."""
    used = known.share_ms > 0
    first = np.where(used.any(axis=0), used.argmax(axis=0), len(used))
    ordered = used[:, np.argsort(first, kind="stable")]
    return np.array(y, np.int32).ravel(), ordered.astype(np.float64).ravel()


def _columns(
    model: MipBuilder, steps: int, ports: int, upper: float, integer: bool = False
) -> list[list[int]]:
    return [[model.new(upper, integer) for _ in range(ports)] for _ in range(steps)]
