"""The shortest plan of a small demand matrix by a mixed-integer programme: each switch with so many configurations."""

from itertools import product

import numpy as np

from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.run import never
from topox_core.schedule.engines.mip import MipBuilder, Run, solve


def exact_ms(
    demand: FloatArray, switches: int, delay_ms: float, each: int, limit_s: float = 20.0
) -> tuple[float, bool]:
    """Return the shortest makespan with at most ``each`` configurations a switch, and whether it is proved."""
    n, model = len(demand), MipBuilder()
    largest = float(demand.max())
    makespan = model.new(np.inf, cost=1.0)
    served: dict[tuple[int, int], dict[int, float]] = {}
    pairs = [(i, j) for i, j in product(range(n), repeat=2) if demand[i, j] > 0]
    for _ in range(switches):
        ends = {makespan: -1.0}
        for _ in range(each):
            used, weight = model.new(1.0, integer=True), model.new(largest)
            ends |= {used: delay_ms, weight: 1.0}
            model.row({weight: 1.0, used: -largest}, upper=0.0)
            stands = {pair: model.new(1.0, integer=True) for pair in pairs}
            for side, line in product((0, 1), range(n)):
                mine = {stands[pair]: 1.0 for pair in pairs if pair[side] == line}
                if mine:
                    model.row(mine, upper=1.0)
            for pair in pairs:
                sent = model.new(float(demand[pair]))
                model.row({sent: 1.0, weight: -1.0}, upper=0.0)
                model.row({sent: 1.0, stands[pair]: -float(demand[pair])}, upper=0.0)
                served.setdefault(pair, {})[sent] = 1.0
        model.row(ends, upper=0.0)
    for pair, terms in served.items():
        model.row(terms, lower=float(demand[pair]))
    outcome = solve(model.built(), Run(limit_s, 1e-7, 1e-9), None, never)
    assert outcome.values is not None
    return float(outcome.values[makespan]), outcome.ended == "optimal"
