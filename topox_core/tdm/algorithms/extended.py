"""What all methods that start from a known round share: the clock, the story, and never giving back a worse round."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from topox_core.errors import InputError
from topox_core.runs.stopping import Stop
from topox_core.tdm.algorithms.hill_climbing import hill_climb
from topox_core.tdm.bounds.floor import ANY_ROUND, Floor, floor_of
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.round import (
    OnMoment,
    Round,
    RoundTracePoint,
    Status,
    StoppedBy,
    TdmSettings,
)
from topox_core.tdm.model.rounds import Barrier, round_of, round_s_of
from topox_core.tdm.model.stage_table import Rings, StageTable

# Relative; sums of the same times in another order differ by less.
SAME = 1e-9


def ignore(moment: RoundTracePoint) -> None:
    """Take no notice of a moment."""


@dataclass
class Search:
    """One run of a method: what it was given, when it began, and its story so far."""

    algorithm: str
    jobs: Jobs
    settings: TdmSettings
    asked: Stop
    on_moment: OnMoment
    began: float = field(default_factory=time.perf_counter)
    story: list[RoundTracePoint] = field(default_factory=list)
    best_s: float = float("inf")

    @cached_property
    def table(self) -> StageTable:
        """Stages under the settings' reading."""
        return StageTable(self.jobs, self.settings.reading)

    @cached_property
    def floor(self) -> Floor:
        """What no round at all can go below."""
        return floor_of(self.table)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    @property
    def left_s(self) -> float:
        """Seconds until the time limit."""
        return max(0.0, self.settings.time_limit_s - self.elapsed_s)

    def stop(self) -> bool:
        """Return whether to end: asked to, or out of time."""
        return self.asked() or self.left_s <= 0

    @property
    def dark_s(self) -> float:
        """Seconds that a change of circuits takes."""
        return self.jobs.network.reconfiguration_ms / 1000.0

    def note(
        self, round_s: float, source: str, bound_s: float | None = None, *, always: bool = False
    ) -> None:
        """Add a moment if the round is the shortest so far, or ``always``."""
        if round_s < self.best_s or always:
            self.best_s = min(self.best_s, round_s)
            known = self.best_s if self.best_s < float("inf") else None
            moment = RoundTracePoint(
                self.elapsed_s,
                len(self.story),
                known,
                self.floor.seconds if bound_s is None else bound_s,
                source,
            )
            self.story.append(moment)
            self.on_moment(moment)

    def start(self) -> Round | None:
        """Return the round of Algorithm 1; None if it cannot even start, because one stage cannot take all jobs."""
        try:
            found = hill_climb(
                self.jobs, replace(self.settings, time_limit_s=self.left_s), self.asked, ignore
            )
        except InputError:
            return None
        self.note(found.round_s, "hill climbing")
        return found

    def round(
        self,
        group: Sequence[int],
        *,
        groups: int = 2,
        all_train: bool = False,
        barrier: Barrier = "one",
        rings: Rings | None = None,
        source: str = "",
    ) -> Round:
        """Return the round of a grouping under this method's name, with the general bound."""
        found = round_of(
            self.table,
            group,
            algorithm=self.algorithm,
            groups=groups,
            all_train=all_train,
            barrier=barrier,
            rings=rings,
            bound_s=self.floor.seconds,
            bound_by=self.floor.by,
            bound_for=ANY_ROUND,
        )
        self.note(found.round_s, source or self.algorithm)
        return found

    def length(self, group: Sequence[int], all_train: bool) -> float:
        """Return only the length of a grouping's round behind one barrier."""
        return round_s_of(self.table, group, all_train=all_train)

    def answer(
        self,
        found: Round,
        *,
        bound_s: float = 0.0,
        bound_by: str = "",
        bound_for: str = "",
        stopped_by: StoppedBy = "heuristic",
        message: str = "",
    ) -> Round:
        """Return a round as this method's answer.

        The bound is the larger of the given one and the general one; where it meets the round, that
        is a proof.
        """
        if bound_s <= self.floor.seconds:
            bound_s, bound_by, bound_for = self.floor.seconds, self.floor.by, ANY_ROUND
        proved = bound_s >= found.round_s * (1 - SAME)
        if not proved and self.stop():
            stopped_by = "cancelled" if self.asked() else "time_limit"
        status: Status = "optimal" if proved else "feasible"
        return replace(
            found,
            algorithm=self.algorithm,
            status=status,
            stopped_by="proof" if proved else stopped_by,
            bound_s=min(bound_s, found.round_s),
            bound_by=bound_by,
            bound_for=bound_for,
            wall_s=self.elapsed_s,
            seed=self.settings.seed,
            story=tuple(self.story),
            message=message,
        )

    def too_few_ports(self) -> Round:
        """Return the round of all jobs in one group, or raise the :class:`InputError` that names the pod with too few ports."""
        return self.round((0,) * len(self.jobs))


def shortest(*rounds: Round | None) -> Round | None:
    """Return the shortest of the rounds there are, the first of equals."""
    return min(
        (found for found in rounds if found is not None),
        key=lambda found: found.round_s,
        default=None,
    )
