"""Bounds of a job over the reconfiguration delay: from which on no plan that changes circuits is shorter than a rival."""

from collections.abc import Callable
from functools import partial

from topox_core.fabrics.planning.lowering_search import choices
from topox_core.fabrics.run import JobRequest
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import TransferGraph
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.planning.fine_clock import continuous_bound

# Between these delays ends are looked for, to a twentieth of the delay.
MIN_MS, MAX_MS, NEAR = 1e-3, 1e4, 1.05
# Of more tasks ancestors take seconds and hardly say more than chains do (moe: 3 s for 1 %).
SMALL_TASKS = 200


def turn(low_ms: float, high_ms: float, holds: Callable[[float], bool]) -> tuple[float, float]:
    """Return two delays, a twentieth apart, between which something begins to hold that holds at every longer delay."""
    while high_ms > low_ms * NEAR:
        between = (low_ms * high_ms) ** 0.5
        if holds(between):
            high_ms = between
        else:
            low_ms = between
    return low_ms, high_ms


class DelayBounds:
    """Bounds of a job over every way of lowering that is tried.

    Parameters
    ----------
    quickly
        Whether ancestors count only where tasks are few.
    """

    def __init__(self, job: JobRequest, quickly: bool) -> None:
        self.job = job
        self.near = 0 if quickly and len(job.task_graph.tasks) > SMALL_TASKS else None
        self.graphs: dict[Lowering, TransferGraph] = {}
        self.known: dict[Lowering, list[tuple[float, float]]] = {}
        self.use(job.settings.lowering)

    def use(self, lowering: Lowering) -> None:
        """Count one more way of lowering."""
        if lowering not in self.graphs:
            self.graphs[lowering] = lower(self.job.task_graph, lowering)

    def know(self, lowering: Lowering, delay_ms: float, bound_ms: float) -> None:
        """Keep what an engine proved at a delay, which holds at every longer one."""
        self.use(lowering)
        self.known.setdefault(lowering, []).append((delay_ms, bound_ms))

    def exceeds_from(self, target_ms: float, low_ms: float | None) -> float | None:
        """Return the least delay from which on the bound reaches ``target_ms``, to a twentieth; 0 where it always does."""
        while True:
            delay_ms = self._exceeds_from(target_ms, low_ms)
            if delay_ms is None:
                return None
            before = len(self.graphs)
            for lowering in choices("scheduled", self.job.at_delay(max(delay_ms, MIN_MS))):
                self.use(lowering)
            if len(self.graphs) == before:
                return delay_ms

    def _exceeds_from(self, target_ms: float, low_ms: float | None) -> float | None:
        """Return the same for the ways of lowering that are known: by loads and chains first, then by ancestors, which take longer."""
        delay_ms = MAX_MS
        for near in dict.fromkeys((0, self.near)):
            if low_ms is None and self._reaches(0.0, target_ms, near):
                return 0.0
            if delay_ms == MAX_MS and not self._reaches(MAX_MS, target_ms, near):
                continue
            reaches = partial(self._reaches, target_ms=target_ms, near=near)
            delay_ms = turn(max(MIN_MS, low_ms or 0.0), delay_ms, reaches)[1]
        return None if delay_ms == MAX_MS else delay_ms

    def _reaches(self, delay_ms: float, target_ms: float, near: int | None) -> bool:
        """Whether the bound at a delay is at least ``target_ms``, whichever way collectives are lowered."""
        at = self.job.at_delay(delay_ms)
        for lowering, graph in self.graphs.items():
            known = self.known.get(lowering, ())
            if any(ms >= target_ms for delay, ms in known if delay <= delay_ms):
                continue
            bound = circuit_bound(graph, at.cluster, at.settings)
            if bound.ms < target_ms and near != 0:
                bound = continuous_bound(graph, at.cluster, at.settings, near)
            if bound.ms < target_ms:
                # The next time it is asked first: one that says no is enough.
                self.graphs = {lowering: graph, **self.graphs}
                return False
        return True
