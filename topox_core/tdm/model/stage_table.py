"""How long a set of jobs communicates in its pod group, worked out once for each set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.runs.latest import Latest
from topox_core.tdm.kernels.stage import Fabric, GroupLoad, stage_demand, stage_s
from topox_core.tdm.model.jobs import Jobs, Reading
from topox_core.tdm.model.traffic import (
    Ring,
    allocated,
    fabric_of,
    from_lowest,
    load_of,
    refuse_few_ports,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rings = Mapping[int, Ring]
_KEPT_STAGES = 2_048


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
        self.fabric: Fabric = fabric_of(jobs)
        self.members = [jobs.of_group(g) for g in range(jobs.network.pod_groups)]
        # Where a job stands among those of its pod group: its bit in a mask.
        self.place = np.zeros(len(jobs), np.int64)
        for group in self.members:
            self.place[list(group)] = range(len(group))
        self._loads: dict[int, GroupLoad] = {}
        self._seconds: list[dict[int, float]] = [{} for _ in self.members]
        self._stages = Latest[Stage](_KEPT_STAGES)

    def load(self, pod_group: int) -> GroupLoad:
        """Return the jobs of a pod group as arrays, in the order of ``members[pod_group]``."""
        if pod_group not in self._loads:
            self._loads[pod_group] = load_of(self.jobs, self.members[pod_group], self.reading)
        return self._loads[pod_group]

    def mask(self, members: Sequence[int]) -> int:
        """Return the members as bits: bit b for the b-th job of the pod group."""
        mask = 0
        for n in members:
            mask |= 1 << int(self.place[n])
        return mask

    def chosen(self, pod_group: int, members: Sequence[int]) -> NDArray[np.bool_]:
        """Return, of each job of a pod group, whether it is a member."""
        chosen = np.zeros(len(self.members[pod_group]), np.bool_)
        chosen[self.place[list(members)]] = True
        return chosen

    def communication_s(self, pod_group: int, members: Sequence[int]) -> float:
        """Return how long the members push, in seconds; infinite where ports are too few."""
        mask, known = self.mask(members), self._seconds[pod_group]
        if mask not in known:
            load, chosen = self.load(pod_group), self.chosen(pod_group, members)
            pods = load.units.shape[1]
            known[mask] = stage_s(
                load,
                chosen,
                self.fabric,
                np.empty((pods, pods)),
                np.empty((pods, pods), np.int64),
                np.empty(load.units.shape, np.int64),
            )
        return known[mask]

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
        given = {n: rings[n] for n in members if rings.get(n)} if rings else {}
        key = pod_group, self.mask(members)
        if not given and key in self._stages:
            return self._stages[key]
        stage = self._measured(pod_group, tuple(sorted(members)), given)
        if not given:
            self._stages[key] = stage
        return stage

    def _measured(self, pod_group: int, members: tuple[int, ...], given: Rings) -> Stage:
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
