"""Where units go: to the pod group and the pods with the least traffic so far (section IV.B of the drafts)."""

from __future__ import annotations

import numpy as np

from topox_core.tdm.model.jobs import Collective, PodNetwork, total_gbit


class Placement:
    """Room and traffic so far, of each pod.

    Parameters
    ----------
    room_per_pod
        What a pod has room for, in the measure in which units are large.
    """

    def __init__(self, network: PodNetwork, room_per_pod: int) -> None:
        self._room = np.full((network.pod_groups, network.pods_per_group), room_per_pod, np.int64)
        self._pod_gbit = np.zeros(self._room.shape)
        self._group_gbit = np.zeros(network.pod_groups)

    def place(
        self, collective: Collective, units: int, volume_gbit: float, size: int = 1
    ) -> tuple[int, tuple[int, ...], int | None] | None:
        """Return pod group, units in each pod and the pod of a parameter server.

        None if no pod group has room.

        The pod group with the least traffic among those with room takes the job, its pod with the
        least a parameter server, then units go one by one to the pod with the least that has room;
        ties go to the lowest index.

        Parameters
        ----------
        size
            Room that a unit takes in one pod.
        """
        fits = (self._room // size).sum(1) >= units
        if not fits.any():
            return None
        g = int(np.where(fits, self._group_gbit, np.inf).argmin())
        self._group_gbit[g] += total_gbit(collective, units, volume_gbit)
        server = None
        if collective == "parameter_server":
            server = int(self._pod_gbit[g].argmin())
            self._pod_gbit[g, server] += units * volume_gbit
        weight = volume_gbit * (units - 1 if collective == "all_to_all" else 1)
        per_pod = [0] * self._room.shape[1]
        for _ in range(units):
            pod = int(np.where(self._room[g] >= size, self._pod_gbit[g], np.inf).argmin())
            per_pod[pod] += 1
            self._room[g, pod] -= size
            self._pod_gbit[g, pod] += weight
        return g, tuple(per_pod), server
