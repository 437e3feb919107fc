"""Jobs that share an optical fabric of pods, and how the drafts on time-division multiplexing are read."""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Literal

from topox_core.schema.fields import PRINTABLE, plain_setting, setting

# Limits are named before memory or hours are spent.
MAX_PODS = 16_384
MAX_PODS_PER_GROUP = 64
MAX_PORTS = 1_024
MAX_UNITS = 1_000_000
# Beyond this a sum of squares could overflow; nothing real comes near.
_LARGEST = 1e15
# Some thirty years: rounds of such jobs still show a millisecond.
MAX_S = 1e9
MAX_NAME = 200
Collective = Literal["parameter_server", "ring_all_reduce", "all_to_all"]
COLLECTIVES: dict[str, str] = {
    "parameter_server": "Parameter server",
    "ring_all_reduce": "Ring all-reduce",
    "all_to_all": "All-to-all",
}


@dataclass(frozen=True)
class PodNetwork:
    """Pods behind top-of-rack switches, joined by optical switches inside each pod group.

    Attributes
    ----------
    pod_groups, pods_per_group
        Circuits join pods of one group only.
    ports_per_pod
        Optical ports of a pod (N_link): a link i -> j takes one in each of the two pods, whichever
        way it goes (eq. 6).
    port_gbps
        Speed of a link (B), gigabits a second.
    tor_gbps
        Speed between a pod's servers and its top-of-rack switch (B_tor).
    reconfiguration_ms
        Time in which all optical switches change at once.
    """

    pod_groups: Annotated[int, setting("Pod groups", ge=1, le=MAX_PODS)]
    pods_per_group: Annotated[int, setting("Pods per group", ge=1, le=MAX_PODS_PER_GROUP)]
    ports_per_pod: Annotated[int, setting("Ports per pod", ge=1, le=MAX_PORTS)]
    port_gbps: Annotated[float, setting("Port speed", "Gbit/s", gt=0, le=_LARGEST)]
    tor_gbps: Annotated[float, setting("Top-of-rack speed", "Gbit/s", gt=0, le=_LARGEST)]
    reconfiguration_ms: Annotated[
        float, setting("Reconfiguration delay", "ms", ge=0, le=1000 * MAX_S)
    ] = 0.5


@dataclass(frozen=True)
class Job:
    """One training job, placed inside one pod group.

    Attributes
    ----------
    units_per_pod
        Parallel units (replicas or expert shards) in each pod of its group.
    volume_gbit
        Of one unit (parameter server, ring: M), or of one ordered pair of units (all-to-all: v).
    train_s, aggregate_s
        Computing of one iteration; what a parameter server computes between push and pull.
    server_pod
        Pod of the parameter server; None for the other collectives.
    """

    id: Annotated[str, setting("Job", min_length=1, max_length=MAX_NAME, without=PRINTABLE)]
    collective: Collective
    pod_group: Annotated[int, setting("Pod group", ge=0)]
    units_per_pod: Annotated[
        tuple[Annotated[int, setting(ge=0, le=MAX_UNITS)], ...],
        setting("Units per pod", max_length=MAX_PODS_PER_GROUP),
    ]
    volume_gbit: Annotated[float, setting("Volume", "Gbit", gt=0, le=_LARGEST)]
    train_s: Annotated[float, setting("Training", "s", ge=0, le=MAX_S)]
    server_pod: Annotated[int | None, setting("Pod of the parameter server")] = None
    aggregate_s: Annotated[float, setting("Aggregation", "s", ge=0, le=MAX_S)] = 0.0

    @property
    def units(self) -> int:
        """All its units (E_n)."""
        return sum(self.units_per_pod)

    @property
    def pods(self) -> tuple[int, ...]:
        """Pods that hold a unit, ascending: those whose masters talk (RM_i = 1)."""
        return tuple(pod for pod, units in enumerate(self.units_per_pod) if units)

    @property
    def total_gbit(self) -> float:
        """Traffic by which jobs are ranked."""
        return total_gbit(self.collective, self.units, self.volume_gbit)


def total_gbit(collective: Collective, units: int, volume_gbit: float) -> float:
    """Return the traffic by which jobs are ranked: E M, or E (E - 1) v of an all-to-all."""
    return units * volume_gbit * (units - 1 if collective == "all_to_all" else 1)


@dataclass(frozen=True)
class Jobs:
    """A network and the jobs on it, validated by :func:`topox_core.tdm.model.jobs_file.validated`."""

    name: str
    network: PodNetwork
    jobs: tuple[Job, ...]

    def __len__(self) -> int:
        return len(self.jobs)

    def of_group(self, pod_group: int) -> tuple[int, ...]:
        """Return the indices of a pod group's jobs."""
        return self._by_group.get(pod_group, ())

    @cached_property
    def _by_group(self) -> dict[int, tuple[int, ...]]:
        groups: dict[int, list[int]] = {}
        for n, job in enumerate(self.jobs):
            groups.setdefault(job.pod_group, []).append(n)
        return {pod_group: tuple(members) for pod_group, members in groups.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of network and jobs; names of the whole do not count."""
        record = [asdict(self.network), [asdict(job) for job in self.jobs]]
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Reading:
    """Choices where the drafts can be read in two ways.

    The defaults are what docs/tdm.md argues for.

    Attributes
    ----------
    eq3_literal
        A parameter-server job trains in both stages of the other group, as eq. 3 is printed.
    physical_ring
        A ring carries 2 (N - 1) / N times the volume on each arc (N pods), instead of the volume
        once.
    delay_inside
        Reconfiguration counts as part of the communication (section II.C), instead of being added
        to the stage (Algorithm 1).
    """

    eq3_literal: Annotated[
        bool,
        plain_setting(
            "Eq. 3 as printed",
            "a parameter-server job trains in both stages of the other group, as eq. 3 is printed",
        ),
    ] = False
    physical_ring: Annotated[
        bool,
        plain_setting(
            "Rings carry 2 (N − 1)/N",
            "a ring carries 2 (N - 1) / N times the volume on each arc, instead of the volume once",
        ),
    ] = False
    delay_inside: Annotated[
        bool,
        plain_setting(
            "Delay counts as communication",
            "switching is part of the communication (section II.C), not added to the stage (Algorithm 1)",
        ),
    ] = False
