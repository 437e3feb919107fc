"""One run of an algorithm: its problem, its clock, its trace, and the round it answers with."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from topox_core.runs.run import Stop, never
from topox_core.tdm.model.jobs import (
    DRAFT,
    Jobs,
    OnRoundTrace,
    Round,
    RoundBound,
    RoundForm,
    RoundTracePoint,
    StoppedBy,
    TdmSettings,
    with_bound,
)
from topox_core.tdm.model.rounds import after_push_s, round_of
from topox_core.tdm.model.traffic import Rings, StageTable, between_pods_gbit

ANY_ROUND = RoundBound(holds_for="any grouping, any rings", any_rings=True)


def floor_of(table: StageTable) -> RoundBound:
    """Return the largest of three bounds: one job alone, the ports of one pod, one top-of-rack switch.

    A job pushes, computes, pulls and computes in turn, and its group communicates no faster than it
    would alone. Every job pushes and pulls once a round, at different times if in different groups,
    so that twice the traffic of a pod must pass its ports; a ring enters and leaves each of its
    pods once, whatever its order.
    """
    network, found = table.jobs.network, [(0.0, "")]
    for g, members in enumerate(table.members):
        ports = np.zeros(network.pods_per_group)
        for n in members:
            job = table.jobs.jobs[n]
            demand = between_pods_gbit(job, table.reading, job.pods)
            ports += demand.sum(0) + demand.sum(1)
            computing_s = after_push_s(job, table.reading) + job.train_s
            alone_s = 2.0 * table.communication_s(g, (n,)) + computing_s
            if np.isfinite(alone_s):
                found.append((alone_s, f"job {job.id}: push, compute, pull and compute"))
        for what, seconds in (
            ("ports", 2.0 * ports / (network.ports_per_pod * network.port_gbps)),
            ("top-of-rack switch", 2.0 * table.load(g).local_gbit.sum(0) / network.tor_gbps),
        ):
            of_all = f"{what} of pod {int(seconds.argmax())} in pod group {g}: the traffic of all jobs, twice"
            found.append((float(seconds.max()), of_all))
    round_s, by = max(found, key=lambda one: one[0])
    return replace(ANY_ROUND, round_s=round_s, by=by)


class Search:
    """One run of an algorithm under its settings.

    Parameters
    ----------
    stop
        Stop criterion beside the time limit of the settings.
    on_trace
        Called with every trace point.
    """

    def __init__(
        self,
        jobs: Jobs,
        settings: TdmSettings,
        stop: Stop = never,
        on_trace: OnRoundTrace | None = None,
    ) -> None:
        self.jobs, self.settings = jobs, settings
        self.table = StageTable(jobs, settings.reading)
        self.trace: list[RoundTracePoint] = []
        self._cancelled, self._on_trace = stop, on_trace
        self._began, self._best_s = time.perf_counter(), float("inf")

    @cached_property
    def floor(self) -> RoundBound:
        """Bound over all rounds."""
        return floor_of(self.table)

    @property
    def dark_s(self) -> float:
        """Seconds that a change of circuits takes."""
        return self.jobs.network.reconfiguration_ms / 1000.0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the search began."""
        return time.perf_counter() - self._began

    @property
    def left_s(self) -> float:
        """Seconds until the time limit."""
        return max(0.0, self.settings.time_limit_s - self.elapsed_s)

    @property
    def stop_reason(self) -> StoppedBy | None:
        """Why the search must end: cancelled or out of time; None while it may go on."""
        if self._cancelled():
            return "cancelled"
        return "time_limit" if self.left_s <= 0 else None

    def stop(self) -> bool:
        """Return whether the search must end."""
        return self.stop_reason is not None

    def note(
        self, round_s: float, source: str, bound_s: float | None = None, *, always: bool = False
    ) -> None:
        """Add a trace point if the round is the shortest so far, or ``always``."""
        if round_s < self._best_s or always:
            self._best_s = min(self._best_s, round_s)
            known = self._best_s if self._best_s < float("inf") else None
            bound_s = self.floor.round_s if bound_s is None else bound_s
            point = RoundTracePoint(self.elapsed_s, len(self.trace), known, bound_s, source)
            self.trace.append(point)
            if self._on_trace is not None:
                self._on_trace(point)

    def round(
        self,
        group: Sequence[int],
        form: RoundForm = DRAFT,
        *,
        rings: Rings | None = None,
        source: str = "",
    ) -> Round:
        """Return the round of a grouping, noted under ``source`` (the algorithm's name if empty)."""
        result = round_of(self.table, group, form, rings)
        self.note(result.round_s, source or self.settings.algorithm)
        return result

    def all_at_once(self) -> Round:
        """Return the round of all jobs in one group.

        Raises
        ------
        TooFewPortsError
            If ports are too few for it.
        """
        return self.round((0,) * len(self.jobs))

    def answer(
        self,
        result: Round,
        bound: RoundBound | None = None,
        *,
        stopped_by: StoppedBy | None = None,
        message: str = "",
    ) -> Round:
        """Return a round as the answer of this search.

        Its bound is the larger of the given one and the floor; where it meets the round, that is a
        proof.

        Parameters
        ----------
        stopped_by
            Why the search ended without proof; if None, what :attr:`stop_reason` says now, or the
            algorithm's own end.
        """
        if bound is None or bound.round_s <= self.floor.round_s:
            bound = self.floor
        reason = stopped_by or self.stop_reason or "heuristic"
        return replace(
            with_bound(result, bound, reason),
            algorithm=self.settings.algorithm,
            wall_s=self.elapsed_s,
            seed=self.settings.seed,
            trace=tuple(self.trace),
            message=message,
        )


# One way to share the fabric: returns a round, the best so far once ``search.stop()`` is true; raises
# TooFewPortsError where ports are too few for the pairs that must talk, in whatever groupings it tries,
# and InputError past a limit of its own.
Algorithm = Callable[[Search], Round]


def shortest(*rounds: Round | None) -> Round | None:
    """Return the shortest of the rounds that are not None, the first of equals."""
    known = (one for one in rounds if one is not None)
    return min(known, key=lambda one: one.round_s, default=None)
