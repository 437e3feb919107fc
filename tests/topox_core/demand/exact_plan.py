"""The shortest plan of a small demand matrix by a mixed-integer programme: each switch with so many configurations."""

from __future__ import annotations

from itertools import product

import numpy as np

from topox_core.model.transfer_graph import FloatArray
from topox_core.runs.stopping import never
from topox_core.schedule.engines.mip import Mip, Run, solve


class Programme:
    """Columns and rows of a model, one at a time."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.integer: list[bool] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def column(self, upper: float, cost: float = 0.0, integer: bool = False) -> int:
        self.cost.append(cost)
        self.upper.append(upper)
        self.integer.append(integer)
        return len(self.cost) - 1

    def row(self, terms: dict[int, float], low: float = -np.inf, high: float = np.inf) -> None:
        self.rows.append((terms, low, high))

    def mip(self) -> Mip:
        lengths = [len(terms) for terms, _, _ in self.rows]
        return Mip(
            cost=np.array(self.cost),
            lower=np.zeros(len(self.cost)),
            upper=np.array(self.upper),
            integer=np.array(self.integer),
            row_lower=np.array([low for _, low, _ in self.rows]),
            row_upper=np.array([high for _, _, high in self.rows]),
            row_start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
            column=np.array([c for terms, _, _ in self.rows for c in terms], np.int32),
            value=np.array([v for terms, _, _ in self.rows for v in terms.values()]),
        )


def exact_ms(
    demand: FloatArray, switches: int, delay_ms: float, each: int, limit_s: float = 20.0
) -> tuple[float, bool]:
    """Return the shortest makespan with at most ``each`` configurations a switch, and whether it is proved."""
    n, model = len(demand), Programme()
    largest = float(demand.max())
    makespan = model.column(np.inf, cost=1.0)
    served: dict[tuple[int, int], dict[int, float]] = {}
    pairs = [(i, j) for i, j in product(range(n), repeat=2) if demand[i, j] > 0]
    for _ in range(switches):
        ends = {makespan: -1.0}
        for _ in range(each):
            used, weight = model.column(1.0, integer=True), model.column(largest)
            ends |= {used: delay_ms, weight: 1.0}
            model.row({weight: 1.0, used: -largest}, high=0.0)
            stands = {pair: model.column(1.0, integer=True) for pair in pairs}
            for side, line in product((0, 1), range(n)):
                mine = {stands[pair]: 1.0 for pair in pairs if pair[side] == line}
                if mine:
                    model.row(mine, high=1.0)
            for pair in pairs:
                sent = model.column(float(demand[pair]))
                model.row({sent: 1.0, weight: -1.0}, high=0.0)
                model.row({sent: 1.0, stands[pair]: -float(demand[pair])}, high=0.0)
                served.setdefault(pair, {})[sent] = 1.0
        model.row(ends, high=0.0)
    for pair, terms in served.items():
        model.row(terms, low=float(demand[pair]))
    outcome = solve(model.mip(), Run(limit_s, 1e-7, 1e-9), None, never)
    assert outcome.values is not None
    return float(outcome.values[makespan]), outcome.ended == "optimal"
