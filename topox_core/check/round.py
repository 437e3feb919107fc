"""The independent checker of a round of jobs that share a fabric: everything is worked out anew from the jobs alone.

Equation numbers are those of the draft on time-division multiplexing, as docs/tdm.md reads them.
"""

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topox_core.check.intervals import Bool, Float
from topox_core.check.report import CheckReport, ConstraintReport
from topox_core.tdm.model.jobs import NOBODY, PULL, PUSH, Cycle, Job, Phase, Reading, Round

RELATIVE, ABSOLUTE_S = 1e-8, 1e-9
# Of the clock: what the difference of two late times loses.
LATE = 1e-14


def check_round(answer: Round) -> CheckReport:
    """Return the verdict on a round, constraint by constraint.

    Nothing is taken from the algorithms: demand, completion times, barriers and claims are
    recomputed from the jobs. A round that breaks a constraint is no error: the report names it.
    """
    shape = _shape(answer)
    if shape.violated:
        return CheckReport((shape,))
    groups, rings = _groups(answer), _rings(answer)
    if groups.violated or rings.violated:
        return CheckReport((shape, groups, rings))
    inter, intra = demands(answer)
    findings = [
        shape,
        groups,
        rings,
        *_links(answer),
        *_served(answer, inter, intra),
        *check_phases(answer),
        _claims(answer),
    ]
    return CheckReport(tuple(findings))


def inter_pod(job: Job, ring: tuple[int, ...], reading: Reading) -> Float:
    """Return what a job sends from pod to pod while it pushes, in Gbit (eq. 4)."""
    pods = len(job.units_per_pod)
    sent = np.zeros((pods, pods))
    units = np.asarray(job.units_per_pod, np.float64)
    if job.collective == "parameter_server":
        assert job.server_pod is not None
        sent[:, job.server_pod] = units * job.volume_gbit
    elif job.collective == "all_to_all":
        sent = np.outer(units, units) * job.volume_gbit
    elif len(ring) > 1:
        factor = 2 * (len(ring) - 1) / len(ring) if reading.physical_ring else 1.0
        sent[list(ring), list(ring[1:] + ring[:1])] = factor * job.volume_gbit
    np.fill_diagonal(sent, 0.0)
    return sent


def intra_pod(job: Job) -> Float:
    """Return what passes between each pod's servers and its top-of-rack switch, in Gbit (eq. 5; units, not GPUs, less one)."""
    times = {"parameter_server": 1.0, "ring_all_reduce": 2.0, "all_to_all": 2.0 * (job.units - 1)}[
        job.collective
    ]
    return np.asarray(job.units_per_pod, np.float64) * (times * job.volume_gbit)


def demands(answer: Round) -> tuple[Float, Float]:
    """Return ``[pod group, group, i, j]`` and ``[pod group, group, i]``: what each group pushes in each pod group, in Gbit."""
    network = answer.jobs.network
    inter = np.zeros(
        (network.pod_groups, answer.groups, network.pods_per_group, network.pods_per_group)
    )
    intra = np.zeros(inter.shape[:3])
    for n, job in enumerate(answer.jobs.jobs):
        inter[job.pod_group, answer.group[n]] += inter_pod(job, answer.rings[n], answer.reading)
        intra[job.pod_group, answer.group[n]] += intra_pod(job)
    return inter, intra


def _shape(answer: Round) -> ConstraintReport:
    network, jobs = answer.jobs.network, len(answer.jobs)
    finding = ConstraintReport("everything is there", "format", 5)
    if not answer.cycles and jobs:
        finding.add("round", f"there is none to check (status {answer.status})")
    pods = network.pods_per_group
    for name, value, expected in (
        ("links", answer.links, (network.pod_groups, answer.groups, pods, pods)),
        ("communication_s", answer.communication_s, (network.pod_groups, answer.groups)),
    ):
        if np.shape(value) != expected:
            finding.add(name, f"must have the shape {expected} (got {np.shape(value)})")
    for name, count in (("group", len(answer.group)), ("rings", len(answer.rings))):
        if count != jobs:
            finding.add(name, f"must have one entry a job, {jobs} (got {count})")
    return finding


def _groups(answer: Round) -> ConstraintReport:
    """Eq. 1: the groups share out the jobs."""
    finding = ConstraintReport("every job is in one group", "1", len(answer.group))
    for n, group in enumerate(answer.group):
        if not 0 <= group < answer.groups:
            finding.add(f"job {answer.jobs.jobs[n].id}", f"is in group {group} of {answer.groups}")
    return finding


def _rings(answer: Round) -> ConstraintReport:
    """Eq. 7: in and out once at every pod of the job and nowhere else, in one lap."""
    finding = ConstraintReport("a ring is one ring", "7", len(answer.jobs))
    for job, ring in zip(answer.jobs.jobs, answer.rings, strict=True):
        pods = job.pods if job.collective == "ring_all_reduce" and len(job.pods) > 1 else ()
        if sorted(ring) != list(pods):
            finding.add(
                f"job {job.id}",
                f"its ring must pass once through the pods {list(pods)} (got {list(ring)})",
            )
    return finding


def _links(answer: Round) -> list[ConstraintReport]:
    network, links = answer.jobs.network, answer.links
    whole = ConstraintReport("links are whole numbers between two pods", "6", links.size)
    for wrong in (
        links != np.floor(links),
        (links < 0) | ((links != 0) & np.eye(network.pods_per_group, dtype=np.bool_)),
    ):
        whole.where(wrong, lambda *at: (_stage(*at), f"{links[at]} links"))
    # Half-duplex: a link takes a port in each of its pods, whichever way it goes.
    used = links.sum(axis=3, dtype=np.int64) + links.sum(axis=2, dtype=np.int64)
    ports = ConstraintReport("ports of a pod", "6", used.size)
    ports.where(
        used > network.ports_per_pod,
        lambda *at: (_stage(*at), f"uses {used[at]} of {network.ports_per_pod} ports"),
    )
    return [whole, ports]


def needed_s(answer: Round, inter: Float, intra: Float) -> tuple[Float, Bool]:
    """Return the time that each group's push takes in each pod group on its links (eq. 2), and which pairs have none."""
    network = answer.jobs.network
    ways = [inter, np.swapaxes(inter, 2, 3)] if answer.static else [inter]
    demand = np.maximum.reduce(ways)
    speed = network.port_gbps * np.maximum(answer.links, 0)
    # Written so that a pair without links takes for ever only if it has something to send.
    pair_s = np.where(
        demand > 0,
        np.divide(demand, speed, out=np.full(demand.shape, np.inf), where=speed > 0),
        0.0,
    )
    optical = pair_s.max(axis=(2, 3), initial=0.0)
    electrical = intra.max(axis=2, initial=0.0) / network.tor_gbps
    return np.maximum(optical, electrical), np.isinf(pair_s)


def _served(answer: Round, inter: Float, intra: Float) -> list[ConstraintReport]:
    """Eq. 2: links times speed times time covers every pair's demand, and the top-of-rack switches keep up."""
    needed, cut_off = needed_s(answer, inter, intra)
    pairs = ConstraintReport("a pair that talks has a link", "2", int((inter > 0).sum()))
    pairs.where(cut_off, lambda *at: (_stage(*at), f"{inter[at]:.9g} Gbit and no link"))
    claimed = answer.communication_s
    times = ConstraintReport("demand is served in the time claimed", "2", claimed.size)
    times.where(
        ~same(claimed, needed),
        lambda *at: (_stage(*at), f"takes {needed[at]:.9g} s (claimed {claimed[at]:.9g} s)"),
    )
    return [pairs, times]


def _claims(answer: Round) -> ConstraintReport:
    """Check what the answer says of itself: its bound cannot lie above it, and an optimum lies on its bound."""
    finding = ConstraintReport("bound", "bound", 2)
    slack = RELATIVE * max(1.0, answer.round_s)
    if (
        not answer.bound_s >= 0
        or math.isinf(answer.bound_s)
        or answer.bound_s > answer.round_s + slack
    ):
        finding.add(
            "bound",
            f"{answer.bound_s:.9g} s is no lower bound of a round of {answer.round_s:.9g} s",
        )
    elif (
        answer.status == "optimal"
        and answer.round_s > answer.bound_s + 1e-4 * answer.round_s + slack
    ):
        finding.add(
            "status",
            f"optimal, but the bound is {answer.bound_s:.9g} s and the round {answer.round_s:.9g} s",
        )
    if answer.status in ("infeasible", "unknown") and answer.cycles:
        finding.add("status", f"{answer.status}, but there is a round")
    return finding


def _stage(pod_group: int, group: int, pod: int | None = None, other: int | None = None) -> str:
    words = f"pod group {pod_group}, group {group}"
    if pod is None:
        return words
    return f"{words}, pod {pod}" if other is None else f"{words}, pods {pod} to {other}"


# -- the clock: phases follow one another, every group has its turn, and everybody has time to compute -----


def same(claimed: Any, worked_out: Any, clock_s: float = 0.0) -> NDArray[np.bool_]:
    """Return where two times in seconds agree but for rounding, ``clock_s`` being the latest time they come from."""
    agree: NDArray[np.bool_] = np.isclose(
        claimed, worked_out, rtol=RELATIVE, atol=ABSOLUTE_S + LATE * clock_s
    )
    return agree


def check_phases(answer: Round) -> list[ConstraintReport]:
    """Return the findings on every barrier's phases."""
    clock = _Clock(answer)
    for position, cycle in enumerate(answer.cycles):
        clock.check(f"barrier {position}" if len(answer.cycles) > 1 else "round", cycle)
    return clock.findings()


def computing_s(job: Job, way: int, reading: Reading) -> float:
    """Return what a job computes after its push or its pull: a parameter server aggregates, then trains."""
    aggregates = job.collective == "parameter_server" and way == PUSH and not reading.eq3_literal
    return job.aggregate_s if aggregates else job.train_s


# Which way a group's turn goes, and the phases (by position) between it and the group's next turn.
_Turn = tuple[int, tuple[int, ...]]


class _Clock:
    """The constraints on the clock, checked barrier by barrier."""

    def __init__(self, answer: Round) -> None:
        self.answer = answer
        self.covered = ConstraintReport(
            "every pod group follows one barrier", "1", answer.jobs.network.pod_groups
        )
        self.order = ConstraintReport("phases follow one another", "1")
        self.turns = ConstraintReport("every group pushes once, then pulls once", "1")
        self.length = ConstraintReport("length of a phase", "3")
        self.computing = ConstraintReport("time to compute", "3", 2 * len(answer.jobs))
        self.dark = ConstraintReport("reconfiguration where links change", "reconfiguration")
        self.static = ConstraintReport("a static topology stays", "static", answer.links.size)

    def findings(self) -> list[ConstraintReport]:
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
        self.static.where(
            answer.links != answer.links[:, :1],
            lambda pod_group, group, pod, other: (
                f"pod group {pod_group}",
                f"pods {pod} to {other} have other links in group {group}",
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
            (PUSH, tuple(range(push + 1, pull))),
            (PULL, (*range(pull + 1, len(cycle.phases)), *range(push))),
        ]

    def _usable_s(self, phase: Phase) -> float:
        """Return how much of a phase the others can compute: what Algorithm 1 adds for switching comes on top."""
        dark_s = 0.0 if self.answer.reading.delay_inside else phase.dark_s
        return phase.end_s - phase.start_s - dark_s

    def _time_to_compute(self, cycle: Cycle, mine: list[Job], turn: _Turn) -> None:
        way, between = turn
        free = sum(self._usable_s(cycle.phases[position]) for position in between)
        for job in mine:
            needed = computing_s(job, way, self.answer.reading)
            if needed > free * (1 + RELATIVE) + ABSOLUTE_S + LATE * cycle.round_s:
                after = "pull" if way == PULL else "push"
                self.computing.add(
                    f"job {job.id}",
                    f"computes {needed:.9g} s after its {after}, and has {free:.9g} s",
                )

    def _missing(self, cycle: Cycle, mine: list[Job], turn: _Turn, missing: list[float]) -> None:
        """Note what computing must fit into which phase: the one in which all train, or the only one between two turns."""
        way, between = turn
        if not mine or not between:
            return
        idle = [position for position in between if cycle.phases[position].group == NOBODY]
        if not idle and len(between) > 1:
            return
        into = idle[0] if idle else between[0]
        others = sum(
            self._usable_s(cycle.phases[position]) for position in between if position != into
        )
        needed = max(computing_s(job, way, self.answer.reading) for job in mine)
        missing[into] = max(missing[into], needed - others)


def _of(name: str, position: int) -> str:
    return f"{name}, phase {position + 1}"
