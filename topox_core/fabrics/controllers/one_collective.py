"""One collective alone on circuits that change between its steps while other ports send.

After SWOT (arXiv 2510.19322), of which the abstract is public: messages are split unevenly over the
ports of a server, and set-ups overlap transmission. The model is ours; forwarding over circuits that
stand (bypassing) is not in it.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Annotated

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.kernels.split_steps import Pattern, StepTimes, best_pattern, shared_steps
from topox_core.io.limits import check_one_of
from topox_core.model.lowering.algorithm_choice import RING_KINDS
from topox_core.model.lowering.collective_steps import (
    ALGORITHMS,
    Shape,
    divisor_near_root,
    step_list,
)
from topox_core.model.quantities import DelayMs
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import FloatArray, IntArray
from topox_core.runs.run import Stop, never
from topox_core.schedule.engines.mip import Float, Index, MipBuilder, Run, solve
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import check_fields

# Of each kind the algorithm whose steps are permutations and move least.
PERMUTATIONS = {
    "all_reduce": "halving_doubling",
    "all_gather": "bruck",
    "reduce_scatter": "halving",
    "broadcast": "tree",
    "all_to_all": "pairwise",
}
# How its steps may lie on the ports.
WAYS = {"together": "all ports together", "one_port": "one port per step", "split": "uneven split"}
MAX_MEMBERS, MAX_PORTS, MAX_STEPS = 256, 64, 512
# Entries of steps times ports: beyond, the search looks at whole patterns only.
MAX_SEARCHED = 160
SEARCH_ROUNDS = 12
WHOLE = 100_000  # what the parts of a message add up to
_wrong = partial(InputError, file="settings", field="algorithm")


@dataclass(frozen=True)
class StepsOnPorts:
    """What is sent by which port in which step of a collective.

    Attributes
    ----------
    share_ms
        Steps by ports: for how long each sends (latency not included).
    start_ms
        From when; meaningless where nothing is sent.
    makespan_ms
        End of the last step.
    proved_ms
        No split of these steps is shorter; None where nothing is proved.
    """

    share_ms: FloatArray
    start_ms: FloatArray
    makespan_ms: float
    proved_ms: float | None = None

    def shares(self) -> tuple[tuple[int, ...], ...]:
        """Return the parts of each step's messages, the largest first, in whole numbers up to :data:`WHOLE`.

        The largest first, because first come, first served gives it the port that is ready first.
        """
        steps = []
        for row in self.share_ms:
            whole = np.rint(WHOLE * row / row.sum() if row.sum() > 0 else row).astype(int)
            steps.append(tuple(sorted((int(part) for part in whole if part > 0), reverse=True)))
        return tuple(step or (1,) for step in steps)


@dataclass(frozen=True)
class OneCollective:
    """A collective by an algorithm whose steps are permutations, on the ports of each member.

    Parameters
    ----------
    algorithm
        Of :data:`~topox_core.model.lowering.collective_steps.ALGORITHMS`.
    ports
        On as many parallel switches.
    delay_ms
        The first circuit of a port stands.
    """

    kind: Annotated[str, plain_setting("Kind", "kind of collective", choices=tuple(ALGORITHMS))]
    algorithm: Annotated[
        str,
        plain_setting(
            "Algorithm",
            "steps that are permutations (default: halving_doubling, pairwise, ...)",
        ),
    ]
    members: Annotated[int, plain_setting("Members", "members", ge=2, le=MAX_MEMBERS)]
    ports: Annotated[int, plain_setting("Ports", "ports of each member", ge=1, le=MAX_PORTS)]
    tensor_ms: Annotated[float, setting("Tensor", "ms", "the whole tensor on one port", ge=0)]
    latency_ms: Annotated[float, setting("Latency", "ms", "latency of a message", ge=0)]
    delay_ms: Annotated[DelayMs, setting(description="what a change of a circuit takes")]

    def __post_init__(self) -> None:
        check_fields(self, "settings")
        check_one_of(self.algorithm, ALGORITHMS[self.kind], file="settings", field="algorithm")
        if len(self.steps.busy) > MAX_STEPS:
            raise _wrong(f"has {len(self.steps.busy)} steps (limit {MAX_STEPS})")

    @cached_property
    def steps(self) -> StepTimes:
        """The steps; raises :class:`InputError` where they are no permutations."""
        share, circuits = permutation_steps(self.kind, self.algorithm, self.members)
        return StepTimes(share * self.tensor_ms, circuits, self.latency_ms, self.delay_ms)

    def shares(self, way: StepsOnPorts) -> list[list[float]]:
        """Return what each port sends of each step, as a share of it."""
        return [
            [share / busy if busy else 0.0 for share in row]
            for row, busy in zip(way.share_ms.tolist(), self.steps.busy.tolist(), strict=True)
        ]

    def together(self) -> StepsOnPorts:
        """Return every step on all ports at once."""
        pattern = np.ones((len(self.steps.busy), self.ports), np.bool_)
        return self._on(pattern)

    def one_port_a_step(self) -> StepsOnPorts:
        """Return every step whole on one port: one that holds its circuits, else the one idle longest."""
        pattern = np.zeros((len(self.steps.busy), self.ports), np.bool_)
        held, last = [-1] * self.ports, [-1] * self.ports
        for q, circuits in enumerate(self.steps.circuits.tolist()):
            port = min(range(self.ports), key=lambda r: (held[r] != circuits, last[r], r))
            pattern[q, port], held[port], last[port] = True, circuits, q
        return self._on(pattern)

    def split(self) -> StepsOnPorts:
        """Return the shortest division of the steps that a search finds, from several beginnings."""
        steps, c = self.steps, self.ports
        m = len(steps.busy)
        rounds = SEARCH_ROUNDS if m * c <= MAX_SEARCHED else 0
        best_ms, best = math.inf, np.ones((m, c), np.bool_)
        for begin in self._beginnings():
            took_ms, pattern = best_pattern(steps, begin, rounds)
            if took_ms < best_ms * (1 - 1e-12):
                best_ms, best = took_ms, pattern
        return self._on(best)

    def _beginnings(self) -> list[Pattern]:
        """Return patterns to begin with: all ports, one a step, and groups of ports by turns."""
        m, c = len(self.steps.busy), self.ports
        patterns = [np.ones((m, c), np.bool_), self.one_port_a_step().share_ms > 0]
        for group in range(1, c):
            pattern = np.zeros((m, c), np.bool_)
            for q in range(m):
                pattern[q, [(q * group + k) % c for k in range(group)]] = True
            patterns.append(pattern)
        return patterns

    def _on(self, pattern: Pattern) -> StepsOnPorts:
        share, start = np.zeros(pattern.shape), np.zeros(pattern.shape)
        makespan = shared_steps(self.steps, pattern, share, start)
        return StepsOnPorts(share, start, makespan)

    @property
    def rings_ms(self) -> float | None:
        """Time on one ring a port, whose circuits never change; None where the kind has no ring."""
        if self.kind not in RING_KINDS:
            return None
        steps = (self.members - 1) * (2 if self.kind == "all_reduce" else 1)
        return steps * (self.latency_ms + self.tensor_ms / (self.members * self.ports))

    @property
    def bound_ms(self) -> float:
        """No division of these steps is shorter: each takes its latency, and its time on all ports."""
        return float((self.steps.busy / self.ports + self.latency_ms).sum())


@lru_cache(maxsize=256)
def permutation_steps(kind: str, name: str, members: int) -> tuple[FloatArray, IntArray]:
    """Return of each step the share of the tensor that a member sends, and a number for its circuits.

    Raises
    ------
    InputError
        If the algorithm does not fit the members, or a member sends or receives twice in a step.
    """
    if ALGORITHMS[kind][name].power_of_two and members & (members - 1):
        raise _wrong(f"{name} needs 2, 4, 8, ... members (got {members})")
    steps = step_list(kind, name, Shape(members, 0, divisor_near_root(members)))
    known: dict[frozenset[tuple[int, int]], int] = {}
    share, circuits = [], []
    for step in steps.steps:
        pairs = [(one.source, one.destination) for one in step]
        if any(len({pair[side] for pair in pairs}) < len(pairs) for side in (0, 1)):
            raise _wrong(f"{name}: a member sends or receives twice in a step, which no port can")
        share.append(max(len(one.blocks) for one in step) / steps.blocks)
        circuits.append(known.setdefault(frozenset(pairs), len(known)))
    return np.array(share), np.array(circuits, np.int32)


def largest_collective(graph: TaskGraph, kinds: Collection[str], most_members: int) -> Task | None:
    """Return the collective of a task graph with the largest tensor, of those that run by steps that are permutations.

    Parameters
    ----------
    kinds
        Of :data:`PERMUTATIONS`.
    most_members
        Collectives of more are left out.

    Returns
    -------
    The first of equal ones; None where there is none.
    """
    sized = [task for task in graph.tasks if task.kind in kinds and task.size_bytes]
    known = {
        (kind, members): _runs(kind, members)
        for kind, members in {(task.kind, len(task.members or ())) for task in sized}
        if 2 <= members <= most_members
    }
    fitting = [task for task in sized if known.get((task.kind, len(task.members or ())))]
    return max(fitting, key=lambda task: task.size_bytes or 0.0, default=None)


def _runs(kind: str, members: int) -> bool:
    """Whether a collective of so many members runs by steps that are permutations."""
    try:
        permutation_steps(kind, PERMUTATIONS[kind], members)
    except InputError:
        return False
    return True


def sent_rows(one: OneCollective, way: StepsOnPorts) -> list[dict[str, float]]:
    """Return what each port sends of each step, counted from 1: start, end (latency included), and share of the step."""
    rows = []
    for q, shares in enumerate(one.shares(way)):
        for r in np.flatnonzero(way.share_ms[q] > 0).tolist():
            start, sent = float(way.start_ms[q, r]), float(way.share_ms[q, r])
            rows.append(
                {
                    "step": q + 1,
                    "port": r + 1,
                    "start_ms": start,
                    "end_ms": start + sent + one.latency_ms,
                    "share": shares[r],
                }
            )
    return rows


def set_ups(one: OneCollective, way: StepsOnPorts) -> list[tuple[int, float]]:
    """Return port and beginning of every set-up, drawn as late as it may be."""
    found = []
    for r in range(one.ports):
        used = np.flatnonzero(way.share_ms[:, r] > 0).tolist()
        for before, after in pairwise(used):
            if one.steps.circuits[before] != one.steps.circuits[after] and one.delay_ms > 0:
                found.append((r, float(way.start_ms[after, r]) - one.delay_ms))
    return found


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
    x, y, e = (
        [[model.new(*kind) for _ in range(c)] for _ in range(m)]
        for kind in ((large, False), (1.0, True), (large, False))
    )
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
