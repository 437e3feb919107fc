"""The clock of a round: phases follow one another, every group has its turn, and everybody has time to compute."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.check.report import ConstraintFinding
from topox_core.tdm.model.jobs import Job, Reading
from topox_core.tdm.model.round import NOBODY, PULL, PUSH, Cycle, Phase, Round

Float = NDArray[np.float64]
RELATIVE, ABSOLUTE_S = 1e-8, 1e-9
# Of the clock: what the difference of two late times loses.
LATE = 1e-14


def same(claimed: Any, worked_out: Any, clock_s: float = 0.0) -> NDArray[np.bool_]:
    """Return where two times in seconds agree but for rounding, ``clock_s`` being the latest time they come from."""
    agree: NDArray[np.bool_] = np.isclose(
        claimed, worked_out, rtol=RELATIVE, atol=ABSOLUTE_S + LATE * clock_s
    )
    return agree


def check_phases(answer: Round) -> list[ConstraintFinding]:
    """Return the findings on every barrier's phases."""
    clock = _Clock(answer)
    for position, cycle in enumerate(answer.cycles):
        clock.check(f"barrier {position}" if len(answer.cycles) > 1 else "round", cycle)
    return clock.findings()


def computing_s(job: Job, way: int, reading: Reading) -> float:
    """Return what a job computes after its push or its pull: a parameter server aggregates, then trains."""
    aggregates = job.collective == "parameter_server" and way == PUSH and not reading.eq3_literal
    return job.aggregate_s if aggregates else job.train_s


@dataclass(frozen=True)
class _Turn:
    """A group's push or pull, and the positions of the phases between it and the group's next turn."""

    way: int
    between: tuple[int, ...]


class _Clock:
    """The constraints on the clock, checked barrier by barrier."""

    def __init__(self, answer: Round) -> None:
        self.answer = answer
        self.covered = ConstraintFinding(
            "every pod group follows one barrier", "1", answer.jobs.network.pod_groups
        )
        self.order = ConstraintFinding("phases follow one another", "1")
        self.turns = ConstraintFinding("every group pushes once, then pulls once", "1")
        self.length = ConstraintFinding("length of a phase", "3")
        self.computing = ConstraintFinding("time to compute", "3", 2 * len(answer.jobs))
        self.dark = ConstraintFinding("reconfiguration where links change", "reconfiguration")
        self.static = ConstraintFinding("a static topology stays", "static", answer.links.size)

    def findings(self) -> list[ConstraintFinding]:
        """Return the findings, once every barrier is checked."""
        answer = self.answer
        seen = Counter(g for cycle in answer.cycles for g in cycle.pod_groups)
        for g in sorted({job.pod_group for job in answer.jobs.jobs} - set(seen)):
            self.covered.add(f"pod group {g}", "has jobs and follows no barrier")
        for g, times in sorted(seen.items()):
            if times > 1 or not 0 <= g < answer.jobs.network.pod_groups:
                self.covered.add(
                    f"pod group {g}", f"is named {times} times" if times > 1 else "does not exist"
                )
        findings = [self.covered, self.order, self.turns, self.length, self.computing, self.dark]
        if not answer.static:
            return findings
        moved = np.argwhere(answer.links != answer.links[:, :1])
        self.static.each(
            range(len(moved)),
            lambda n: (
                f"pod group {moved[n][0]}",
                f"pods {moved[n][2]} to {moved[n][3]} have other links in group {moved[n][1]}",
            ),
        )
        return [*findings, self.static]

    def check(self, name: str, cycle: Cycle) -> None:
        """Check one barrier."""
        self.turns.checked += self.answer.groups
        for phase in cycle.phases:
            if not (NOBODY <= phase.group < self.answer.groups and phase.way in (PUSH, PULL)):
                self.turns.add(name, f"has a phase of group {phase.group}, way {phase.way}")
                return
        groups = [g for g in cycle.pod_groups if 0 <= g < self.answer.jobs.network.pod_groups]
        self._order(name, cycle)
        self._lengths(name, cycle, groups)
        self._dark(name, cycle, groups)
        members = [n for n, job in enumerate(self.answer.jobs.jobs) if job.pod_group in set(groups)]
        missing = [0.0] * len(cycle.phases)
        for k in range(self.answer.groups):
            mine = [self.answer.jobs.jobs[n] for n in members if self.answer.group[n] == k]
            for turn in self._turns_of(name, cycle, k, required=bool(mine)):
                self._time_to_compute(cycle, mine, turn)
                self._missing(cycle, mine, turn, missing)
        for position, (phase, due) in enumerate(zip(cycle.phases, missing, strict=True)):
            if not same(phase.computing_s, due, cycle.round_s):
                self.length.add(
                    _of(name, position),
                    f"{due:.9g} s of computing must fit in (claimed {phase.computing_s:.9g} s)",
                )

    def _order(self, name: str, cycle: Cycle) -> None:
        """Phases begin at 0 and leave no gap."""
        clock = 0.0
        self.order.checked += len(cycle.phases)
        for position, phase in enumerate(cycle.phases):
            if not (
                same(phase.start_s, clock)
                and np.isfinite(phase.end_s)
                and phase.end_s >= phase.start_s - ABSOLUTE_S
            ):
                self.order.add(
                    _of(name, position),
                    f"runs from {phase.start_s:.9g} to {phase.end_s:.9g} s after {clock:.9g} s",
                )
            clock = phase.end_s

    def _lengths(self, name: str, cycle: Cycle, groups: list[int]) -> None:
        """Eq. 3: a phase lasts as long as its slowest communication, and as the computing that it must hold."""
        self.length.checked += len(cycle.phases)
        for position, phase in enumerate(cycle.phases):
            slowest = 0.0
            if phase.group != NOBODY and groups:
                slowest = float(self.answer.communication_s[groups, phase.group].max())
            if not same(phase.communication_s, slowest):
                self.length.add(
                    _of(name, position),
                    f"its slowest pod group communicates for {slowest:.9g} s "
                    f"(claimed {phase.communication_s:.9g} s)",
                )
            if self.answer.reading.delay_inside:
                due = max(phase.dark_s + slowest, phase.computing_s)
            else:
                due = phase.dark_s + max(slowest, phase.computing_s)
            if not same(phase.end_s - phase.start_s, due, phase.end_s):
                self.length.add(
                    _of(name, position),
                    f"must last {due:.9g} s (got {phase.end_s - phase.start_s:.9g} s)",
                )

    def _dark(self, name: str, cycle: Cycle, groups: list[int]) -> None:
        """Check that a phase begins dark where any pod group changes its links.

        A turn without links changes none.
        """
        delay = 0.0 if self.answer.static else self.answer.jobs.network.reconfiguration_ms / 1000
        due = [0.0] * len(cycle.phases)
        for g in groups:
            held = [
                (position, self._held(g, phase))
                for position, phase in enumerate(cycle.phases)
                if phase.group != NOBODY
            ]
            using = [(position, links) for position, links in held if links.any()]
            for (_, before), (position, links) in zip(using[-1:] + using[:-1], using, strict=True):
                if not np.array_equal(before, links):
                    due[position] = delay
        self.dark.checked += len(cycle.phases)
        for position, phase in enumerate(cycle.phases):
            if not same(phase.dark_s, due[position]):
                self.dark.add(
                    _of(name, position),
                    f"must be dark for {due[position]:.9g} s (claimed {phase.dark_s:.9g} s)",
                )

    def _held(self, pod_group: int, phase: Phase) -> NDArray[np.int32]:
        links: NDArray[np.int32] = self.answer.links[pod_group, phase.group]
        return links.T if phase.way == PULL else links

    def _turns_of(self, name: str, cycle: Cycle, k: int, required: bool) -> list[_Turn]:
        mine = [position for position, phase in enumerate(cycle.phases) if phase.group == k]
        ways = [cycle.phases[position].way for position in mine]
        if ways != [PUSH, PULL]:
            if required or ways:
                self.turns.add(
                    f"{name}, group {k}",
                    f"has {ways.count(PUSH)} pushes and {ways.count(PULL)} pulls, "
                    "instead of one push and then one pull",
                )
            return []
        push, pull = mine
        return [
            _Turn(PUSH, tuple(range(push + 1, pull))),
            _Turn(PULL, (*range(pull + 1, len(cycle.phases)), *range(push))),
        ]

    def _usable_s(self, phase: Phase) -> float:
        """Return how much of a phase the others can compute: what Algorithm 1 adds for switching comes on top."""
        dark_s = 0.0 if self.answer.reading.delay_inside else phase.dark_s
        return phase.end_s - phase.start_s - dark_s

    def _time_to_compute(self, cycle: Cycle, mine: list[Job], turn: _Turn) -> None:
        free = sum(self._usable_s(cycle.phases[position]) for position in turn.between)
        for job in mine:
            needed = computing_s(job, turn.way, self.answer.reading)
            if needed > free * (1 + RELATIVE) + ABSOLUTE_S + LATE * cycle.round_s:
                after = "pull" if turn.way == PULL else "push"
                self.computing.add(
                    f"job {job.id}",
                    f"computes {needed:.9g} s after its {after}, and has {free:.9g} s",
                )

    def _missing(self, cycle: Cycle, mine: list[Job], turn: _Turn, missing: list[float]) -> None:
        """Note what computing must fit into which phase: the one in which all train, or the only one between two turns."""
        if not mine or not turn.between:
            return
        idle = [position for position in turn.between if cycle.phases[position].group == NOBODY]
        if not idle and len(turn.between) > 1:
            return
        into = idle[0] if idle else turn.between[0]
        others = sum(
            self._usable_s(cycle.phases[position]) for position in turn.between if position != into
        )
        needed = max(computing_s(job, turn.way, self.answer.reading) for job in mine)
        missing[into] = max(missing[into], needed - others)


def _of(name: str, position: int) -> str:
    return f"{name}, phase {position + 1}"
