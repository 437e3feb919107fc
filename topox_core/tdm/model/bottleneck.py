"""What every stage of a round waits for, as data and in a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.io.content import record_of
from topox_core.tdm.model.jobs import NOBODY, PULL, PUSH, Cycle, Phase, Round
from topox_core.tdm.model.round_words import lasting
from topox_core.tdm.model.rounds import computing_after, cycle_in_view
from topox_core.tdm.model.traffic import Floats, between_pods_gbit, inside_pods_gbit, ports_used
from topox_core.text.numbers import enumeration, plural

Cause = Literal["link", "tor", "training", "aggregation", "nothing"]
_SAME = 1e-9
TOO_SHORT = 0.005  # of a cycle: a stage that is no wider than a line of its chart


@dataclass(frozen=True)
class Limit:
    """What a stage lasts as long as.

    Attributes
    ----------
    stage
        1 for the first phase of its cycle.
    seconds
        Of the stage, dark time included.
    cause
        ``link``: a pair of pods; ``tor``: the switch of one pod; else computing, or nothing at all.
    job
        Index of the job that computes, or sends most there.
    jobs
        How many jobs send there.
    pods
        From and to, in the direction of the stage; the one pod of a ``tor``.
    gbit, links
        What passes there, and over how many links.
    full_pods
        The pods of the pair that have no free port.
    alike
        How many pairs of pods (or pods, of a ``tor``) take as long as this one, and how many send.
    """

    stage: int
    seconds: float
    cause: Cause
    pod_group: int | None = None
    job: int | None = None
    jobs: int = 0
    pods: tuple[int, ...] = ()
    gbit: float = 0.0
    links: int = 0
    full_pods: tuple[int, ...] = ()
    alike: tuple[int, int] = (1, 1)

    def words(self, answer: Round) -> str:
        """Return the sentence, e.g. ``stage 2 lasts 41.2 s: job 17, pods 3 to 5, ...``."""
        return f"stage {self.stage} lasts {_seconds(self.seconds)}: {self._because(answer)}"

    def _because(self, answer: Round) -> str:
        if self.cause == "nothing":
            return "nothing to wait for"
        name = "" if self.job is None else answer.jobs.jobs[self.job].id
        if self.cause in ("training", "aggregation"):
            return f"{self.cause} of job {name}"
        name = f"job {name}" + (f" and {self.jobs - 1} more" if self.jobs > 1 else "")
        where = f" of pod group {self.pod_group}" if answer.jobs.network.pod_groups > 1 else ""
        if self.cause == "tor":
            return f"{name}, servers of pod {self.pods[0]}{where}, {self.gbit:,.4g} Gbit through its top-of-rack switch"
        over = "one link" if self.links == 1 else f"{self.links} links"
        line = f"{name}, pods {self.pods[0]} to {self.pods[1]}{where}, {_gbit(self.gbit)} Gbit over {over}"
        if self.full_pods:
            has = "pods {} and {} have" if len(self.full_pods) == 2 else "pod {} has"
            line += f", {has.format(*self.full_pods)} no free port"
        return line

    def of_many(self, answer: Round) -> str:
        """Return the cause whichever job sends and whichever way, with how many pairs or pods take as long."""
        if self.cause not in ("link", "tor"):
            return self._because(answer)
        tor, (alike, among) = self.cause == "tor", self.alike
        all_ = "both" if among == 2 else f"all {among}"
        where = f" of pod group {self.pod_group}" if answer.jobs.network.pod_groups > 1 else ""
        carries = f"{_gbit(self.gbit)} Gbit over {'a top-of-rack switch' if tor else plural(self.links, 'link')}"
        if alike == 1:
            return f"pod{'' if tor else 's'} {enumeration(sorted(self.pods))}{where}, {carries}"
        return (
            f"{all_ if alike == among else f'{alike} of the {among}'} {'pods' if tor else 'pairs of pods'}{where} "
            f"that send take as long, such as one with {carries}"
        )

    def as_record(self, answer: Round) -> dict[str, Any]:
        """Return it as files write it."""
        return {
            **record_of(self, "stage seconds cause pod_group"),
            "job": None if self.job is None else answer.jobs.jobs[self.job].id,
            "jobs": self.jobs,
            "pods": list(self.pods),
            **record_of(self, "gbit links"),
            "full_pods": list(self.full_pods),
            "words": self.words(answer),
        }


def bottlenecks(answer: Round, cycle: Cycle | None = None) -> tuple[Limit, ...]:
    """Return what each stage of a cycle waits for; the longest cycle's, if none is named."""
    one = cycle or cycle_in_view(answer, None)
    return tuple(_limit(answer, one, position) for position in range(len(one.phases)))


def in_words(answer: Round, cycle: Cycle | None = None) -> list[str]:
    """Return what the stages of a cycle that take time wait for, a sentence for all that wait for the same."""
    limits = [limit for limit in bottlenecks(answer, cycle) if limit.seconds > 0]
    every = {2: "Both stages"}.get(len(limits), f"All {len(limits)} stages")
    too_short = TOO_SHORT * sum(limit.seconds for limit in limits)
    same: dict[tuple[str, str], list[int]] = {}
    for number, limit in enumerate(limits, 1):
        same.setdefault((lasting(limit.seconds), limit.of_many(answer)), []).append(number)
    return [
        f"{every if len(of) == len(limits) else f'Stages {enumeration(of)}'} last {length} each: {why}."
        if len(of) > 1
        else f"Stage {of[0]} lasts {length}{', too short to be seen' * (limits[of[0] - 1].seconds < too_short)}: "
        f"{limits[of[0] - 1]._because(answer)}."
        for (length, why), of in same.items()
    ]


def _limit(answer: Round, cycle: Cycle, position: int) -> Limit:
    phase = cycle.phases[position]
    seconds = phase.end_s - phase.start_s
    talking = phase.communication_s + (phase.dark_s if answer.reading.delay_inside else 0.0)
    if phase.computing_s > talking:
        cause, job = _computing(answer, cycle, phase)
        home = None if job is None else answer.jobs.jobs[job].pod_group
        return Limit(position + 1, seconds, cause, home, job)
    if phase.group == NOBODY or phase.communication_s <= 0:
        return Limit(position + 1, seconds, "nothing")
    groups = list(cycle.pod_groups)
    pod_group = groups[int(np.argmax(answer.communication_s[groups, phase.group]))]
    return _communication(answer, position + 1, phase, pod_group)


def _computing(answer: Round, cycle: Cycle, phase: Phase) -> tuple[Cause, int | None]:
    """Return what sets the computing of a phase, and of which job.

    While a group communicates, the other computes what follows its last turn. In a phase in which all
    train, a group is the later the longer its own window was.
    """
    inside = answer.reading.delay_inside
    other = 1 - phase.group
    turns = {other: (phase.way if other == 0 else 1 - phase.way, 0.0)}
    if phase.group == NOBODY:
        turns = {
            one.group: (one.way, one.communication_s + (one.dark_s if inside else 0.0))
            for one in cycle.phases
            if one.way == phase.way
        }
    found: list[tuple[float, str, int | None]] = []
    for n, job in enumerate(answer.jobs.jobs):
        if job.pod_group in cycle.pod_groups and answer.group[n] in turns:
            way, busy_s = turns[answer.group[n]]
            kind, computing_s = computing_after(job, way, answer.reading)
            found.append((busy_s + computing_s, kind, n))
    _, kind, slowest = max(found, key=lambda one: one[0], default=(0.0, "train", None))
    return "aggregation" if kind == "aggregate" else "training", slowest


def _communication(answer: Round, stage: int, phase: Phase, pod_group: int) -> Limit:
    """Return the slowest pair of a pod group's stage, or the pod whose servers are slower still."""
    network, view = answer.jobs.network, link_view(answer, pod_group, phase.group)
    members = [n for n in answer.jobs.of_group(pod_group) if answer.group[n] == phase.group]
    sent = np.array(
        [between_pods_gbit(answer.jobs.jobs[n], answer.reading, answer.rings[n]) for n in members]
    )
    local = np.array([inside_pods_gbit(answer.jobs.jobs[n]) for n in members])
    i, j = view.worst or (0, 0)
    length = phase.end_s - phase.start_s
    pods = (j, i) if phase.way == PULL else (i, j)
    full = tuple(pod for pod in pods if view.ports[pod] >= view.limit)
    # A pair that could have more links has no more than it needs: the servers are as slow.
    tor_s = float(local.sum(0).max()) / network.tor_gbps * (1 - _SAME if full else 1 + _SAME)
    if tor_s > view.time_s[i, j]:
        pod = int(local.sum(0).argmax())
        return Limit(
            stage,
            length,
            "tor",
            pod_group,
            *_most(members, local[:, pod]),
            (pod,),
            float(local[:, pod].sum()),
            alike=as_large(local.sum(0)),
        )
    return Limit(
        stage,
        length,
        "link",
        pod_group,
        *_most(members, sent[:, i, j]),
        pods,
        float(view.demand_gbit[i, j]),
        int(view.links[i, j]),
        full,
        as_large(view.time_s),
    )


def as_large(values: Floats) -> tuple[int, int]:
    """Return how many of some values are as large as the largest, and how many are above zero."""
    return int((values >= values.max() * (1 - _SAME)).sum()), int((values > 0).sum())


def _most(members: Sequence[int], gbit: Floats) -> tuple[int, int]:
    """Return the job that sends most, and how many send."""
    return members[int(gbit.argmax())], int((gbit > 0).sum())


def _gbit(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.3g} ms"


@dataclass(frozen=True)
class LinkView:
    """One stage in one pod group: what is to be sent, over how many links, and how long each pair takes.

    Attributes
    ----------
    demand_gbit, links, time_s
        ``[i, j]``: from pod i to pod j. ``time_s`` is 0 where nothing is sent.
    ports
        In use at each pod: a link takes one at both ends (eq. 6).
    wanted
        ``[i, j]``: there is traffic besides that of rings, so the link was there before any ring
        was laid.
    """

    demand_gbit: NDArray[np.float64]
    links: NDArray[np.int32]
    time_s: NDArray[np.float64]
    ports: NDArray[np.int64]
    limit: int
    wanted: NDArray[np.bool_]

    @property
    def worst(self) -> tuple[int, int] | None:
        """The pair that takes longest, the first of equals; None where nothing is sent."""
        if not self.time_s.any():
            return None
        i, j = np.unravel_index(int(self.time_s.argmax()), self.time_s.shape)
        return int(i), int(j)


def link_view(round_: Round, pod_group: int, group: int, way: int = PUSH) -> LinkView:
    """Return a stage's links in a pod group as eqs (2) and (4) have them.

    A pull is its push the other way round.
    """
    network, pods = round_.jobs.network, round_.jobs.network.pods_per_group
    demand = np.zeros((pods, pods))
    wanted = np.zeros((pods, pods), bool)
    for n in round_.jobs.of_group(pod_group):
        if round_.group[n] != group:
            continue
        job = round_.jobs.jobs[n]
        sent = between_pods_gbit(job, round_.reading, round_.rings[n])
        demand += sent
        if job.collective != "ring_all_reduce":
            wanted |= sent > 0
    links = np.asarray(round_.links[pod_group, group])
    if way != PUSH:
        demand, links, wanted = demand.T, links.T, wanted.T
    with np.errstate(divide="ignore", invalid="ignore"):
        time_s = np.where(demand > 0, demand / (network.port_gbps * links), 0.0)
    return LinkView(demand, links, time_s, ports_used(links), network.ports_per_pod, wanted)
