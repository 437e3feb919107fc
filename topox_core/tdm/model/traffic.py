"""What jobs send: between pods, and between the servers of a pod and its top-of-rack switch (eq. 4 and 5)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import InputError
from topox_core.tdm.kernels.stage import (
    NO_POD,
    Fabric,
    GroupLoad,
    allocate,
    stage_demand,
)
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ring = tuple[int, ...]
Rings = Mapping[int, Ring]


class TooFewPortsError(InputError):
    """No round exists because ports are too few: an answer (infeasible) rather than bad input."""

    def __str__(self) -> str:
        return self.located(f"infeasible: {self.problem}")


def ports_used(links: NDArray[np.integer]) -> Ints:
    """Return the ports in use in each pod: a link takes one at either end (eq. 6)."""
    used: Ints = np.asarray(links.sum(0) + links.sum(1), np.int64)
    return used


def allocated(
    demand: Floats, tor_s: float, fabric: Fabric, both_ways: bool = False
) -> tuple[float, Ints]:
    """Return the least time in which ``demand`` (Gbit) can be served, and links that serve it.

    Greedy and yet optimal: while the longest time exceeds the optimum, the slowest pair has fewer
    links than any optimal solution gives it, so no step takes a port that an optimal solution needs
    elsewhere. The time is infinite where ports are too few for one link a pair. ``both_ways`` keeps
    the links symmetric.
    """
    links = np.zeros(demand.shape, np.int64)
    return float(allocate(demand, tor_s, fabric, both_ways, links)), links


def refuse_few_ports(
    demand: Floats, ports: int, pod_group: int, name: str, both_ways: bool = False
) -> None:
    """Check that every pair that must talk can have a link.

    Raises
    ------
    TooFewPortsError
        If a pod has too few ports: the pod, what it needs and what it has.
    """
    talks = demand > 0
    if both_ways:
        talks = talks | talks.T
    need = ports_used(talks.astype(np.int64))
    pod = int(need.argmax())
    if need[pod] > ports:
        raise TooFewPortsError(
            f"pod {pod} has {ports} port{'s' if ports != 1 else ''} and needs {need[pod]} for one link to and from "
            "each pod that it talks with in one stage",
            file=name,
            item=f"pod group {pod_group}",
            field="ports_per_pod",
        )


def from_lowest(lap: Iterable[int]) -> Ring:
    """Return the same ring, written from its lowest pod."""
    ring = tuple(int(pod) for pod in lap)
    at = ring.index(min(ring)) if ring else 0
    return ring[at:] + ring[:at]


def arc_gbit(job: Job, reading: Reading) -> float:
    """Return what each arc of a job's ring carries: the volume, or 2 (N - 1) / N of it on N pods; 0 without a ring."""
    if job.collective != "ring_all_reduce":
        return 0.0
    pods = len(job.pods)
    return job.volume_gbit * (2 * (pods - 1) / pods if reading.physical_ring else 1.0)


def _units_and_into(job: Job) -> tuple[Floats, Floats]:
    """Return the units of each pod, and what of a pod's push each pod gets, as :class:`GroupLoad` has them."""
    units = np.array(job.units_per_pod, float)
    into = units if job.collective == "all_to_all" else np.zeros(len(units))
    if job.server_pod is not None:
        into[job.server_pod] = 1.0
    return units, into


def between_pods_gbit(job: Job, reading: Reading, ring: Sequence[int] = ()) -> Floats:
    """Return what a job pushes from pod to pod, ``[from, to]`` (eq. 4).

    A ring job along ``ring``.
    """
    demand: Floats = np.outer(*_units_and_into(job)) * job.volume_gbit
    if len(ring) > 1:
        demand[list(ring), [*ring[1:], ring[0]]] += arc_gbit(job, reading)
    np.fill_diagonal(demand, 0.0)
    return demand


def job_seconds(job: Job, network: PodNetwork, reading: Reading) -> tuple[Floats, float, Floats]:
    """Return what a job pushes whatever its ring, ``[from, to]``, what each arc of a ring adds, and what passes each pod's switch.

    In seconds of one link, and of the top-of-rack switch. A ring of two pods has no choice: its arcs
    are fixed, and what an arc adds is 0.
    """
    free = job.collective == "ring_all_reduce" and len(job.pods) > 2
    fixed = between_pods_gbit(job, reading, () if free else job.pods)
    arc = arc_gbit(job, reading) if free else 0.0
    inside = inside_pods_gbit(job) / network.tor_gbps
    return fixed / network.port_gbps, arc / network.port_gbps, inside


def inside_pods_gbit(job: Job) -> Floats:
    """Return what a job's servers exchange with the switch of each pod (eq. 5, with E_n - 1 for U_n - 1)."""
    units = np.array(job.units_per_pod, float)
    if job.collective == "parameter_server":
        return units * job.volume_gbit
    partners = job.units - 1 if job.collective == "all_to_all" else 1
    return 2.0 * units * job.volume_gbit * partners


def load_of(
    jobs: Jobs, members: Sequence[int], reading: Reading, rings: Mapping[int, Ring] | None = None
) -> GroupLoad:
    """Return jobs of one pod group as arrays.

    ``rings`` (by index of the job) replace Algorithm 3 where given.
    """
    chosen = [jobs.jobs[n] for n in members]
    pods = jobs.network.pods_per_group
    given = np.full((len(chosen), pods), NO_POD, np.int64)
    for at, n in enumerate(members):
        ring = (rings or {}).get(n, ())
        given[at, : len(ring)] = ring
    return GroupLoad(
        units=np.array([job.units_per_pod for job in chosen], float).reshape(-1, pods),
        into=np.array([_units_and_into(job)[1] for job in chosen]).reshape(-1, pods),
        volume_gbit=np.array([job.volume_gbit for job in chosen], float),
        arc_gbit=np.array([arc_gbit(job, reading) for job in chosen], float),
        local_gbit=np.array([inside_pods_gbit(job) for job in chosen], float).reshape(-1, pods),
        ring=given,
    )


@dataclass(frozen=True)
class Stage:
    """The push of some jobs of one pod group: its rings by job, ``[from, to]`` demand and links."""

    pod_group: int
    members: tuple[int, ...]
    rings: dict[int, Ring]
    demand_gbit: Floats
    local_gbit: Floats
    links: Ints
    communication_s: float


class StageTable:
    """Stages of all pod groups of ``jobs``, under one reading.

    Members are indices into ``jobs.jobs`` and belong to the pod group; their order does not matter.
    """

    def __init__(self, jobs: Jobs, reading: Reading | None = None) -> None:
        self.jobs = jobs
        self.reading = reading or Reading()
        network = jobs.network
        self.fabric = Fabric(
            network.ports_per_pod, float(network.port_gbps), float(network.tor_gbps)
        )
        self.members = [jobs.of_group(g) for g in range(jobs.network.pod_groups)]
        # Where a job stands among those of its pod group.
        self.place = np.zeros(len(jobs), np.int64)
        for group in self.members:
            self.place[list(group)] = range(len(group))

    @cached_property
    def _loads(self) -> list[GroupLoad]:
        return [load_of(self.jobs, members, self.reading) for members in self.members]

    def load(self, pod_group: int) -> GroupLoad:
        """Return the jobs of a pod group as arrays, in the order of ``members[pod_group]``."""
        return self._loads[pod_group]

    def chosen(self, pod_group: int, members: Sequence[int]) -> NDArray[np.bool_]:
        """Return, of each job of a pod group, whether it is a member."""
        chosen = np.zeros(len(self.members[pod_group]), np.bool_)
        chosen[self.place[list(members)]] = True
        return chosen

    def communication_s(self, pod_group: int, members: Sequence[int]) -> float:
        """Return how long the members push, in seconds; infinite where ports are too few."""
        try:
            return self.stage(pod_group, members).communication_s
        except TooFewPortsError:
            return np.inf

    def stage(self, pod_group: int, members: Sequence[int], rings: Rings | None = None) -> Stage:
        """Return the push of the members with its rings and links.

        Parameters
        ----------
        rings
            Rings by job, where Algorithm 3 is not to decide; those of other jobs are ignored.

        Raises
        ------
        TooFewPortsError
            If ports are too few for the pairs that must talk.
        """
        members = tuple(sorted(members))
        given = {n: rings[n] for n in members if rings.get(n)} if rings else {}
        load = load_of(self.jobs, members, self.reading, given)
        pods = self.jobs.network.pods_per_group
        demand = np.zeros((pods, pods))
        laps = np.full((len(members), pods), -1, np.int64)
        local = stage_demand(load, np.ones(len(members), np.bool_), demand, laps)
        seconds, links = allocated(demand, float(local.max()) / self.fabric.tor_gbps, self.fabric)
        if seconds == np.inf:
            refuse_few_ports(demand, self.fabric.ports, pod_group, self.jobs.name)
        rings = {n: from_lowest(lap[lap >= 0]) for n, lap in zip(members, laps, strict=True)}
        return Stage(pod_group, members, rings, demand, local, links, seconds)
