"""The drafts' large set-up: Llama 3 jobs drawn at random and placed so that traffic is even (section IV)."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from topox_core.errors import InputError, refuse_if, wrong_setting
from topox_core.model.quantities import DelayMs, Gbps
from topox_core.schema.fields import plain_setting, setting
from topox_core.schema.records import wrong_fields
from topox_core.tdm.model.jobs import (
    MAX_PODS,
    MAX_PODS_PER_GROUP,
    MAX_PORTS,
    Collective,
    Job,
    Jobs,
    PodNetwork,
    TorGbps,
    total_gbit,
)
from topox_core.tdm.model.jobs_file import MAX_JOBS, check_network, validated


class Placement:
    """Room and traffic so far, of each pod.

    Parameters
    ----------
    room_per_pod
        What a pod has room for, in the measure in which units are large.
    field
        What errors call that.
    """

    def __init__(self, network: PodNetwork, room_per_pod: int, field: str) -> None:
        self._most, self._field = room_per_pod, field
        self._room = np.full((network.pod_groups, network.pods_per_group), room_per_pod, np.int64)
        self._pod_gbit = np.zeros(self._room.shape)
        self._group_gbit = np.zeros(network.pod_groups)

    def placed(
        self,
        name: str,
        collective: Collective,
        units: int,
        volume_gbit: float,
        train_s: float,
        size: int = 1,
    ) -> Job:
        """Return a job in its place.

        The pod group with the least traffic among those with room takes the job, its pod with the
        least a parameter server, then units go one by one to the pod with the least that has room;
        ties go to the lowest index.

        Parameters
        ----------
        size
            Room that a unit takes in one pod.

        Raises
        ------
        InputError
            If no pod group has room.
        """
        fits = (self._room // size).sum(1) >= units
        if not fits.any():
            each = f" of {size} GPUs, each within one pod of {self._most}" if size > 1 else ""
            problem = f"no pod group has room for {units:,} units{each}"
            raise InputError(problem, file="settings", item=f"job {name}", field=self._field)
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
        return Job(name, collective, g, tuple(per_pod), volume_gbit, train_s, server)


# Section IV.C: the jobs of a set, and their context lengths in tokens.
JOBS = (32, 64, 128, 256, 512)
CONTEXTS = (1_024, 8_192, 32_768, 65_536, 131_072)
FLOP_PER_TOKEN_PARAMETER = 8
SYNC_BYTES = 8
GPU_MEMORY_GB = 80.0
_STATE_BYTES = 32
_ORDER: tuple[Collective, ...] = ("parameter_server", "ring_all_reduce", "all_to_all")


@dataclass(frozen=True)
class Model:
    """A row of Table III.

    Attributes
    ----------
    table_gb
        As printed: the parameters in two bytes each.
    hidden, layers
        Width and depth, for the tokens that experts exchange.
    """

    name: str
    table_gb: float
    hidden: int
    layers: int

    @property
    def parameters(self) -> float:
        """Number of parameters (Phi)."""
        return self.table_gb * 1e9 / 2

    @property
    def gpus_per_unit(self) -> int:
        """GPUs of one unit (U): the least power of two whose memory holds 32 bytes a parameter."""
        return 1 << max(
            0, math.ceil(math.log2(_STATE_BYTES * self.parameters / (GPU_MEMORY_GB * 1e9)))
        )

    @property
    def sync_gbit(self) -> float:
        """What one replica synchronises (M): every parameter in FP64."""
        return self.parameters * SYNC_BYTES * 8 / 1e9

    def exchange_gbit(self, context: int, units: int) -> float:
        """Return what one unit sends another in an all-to-all (v): tokens to and from experts, forward and backward."""
        return context * self.hidden * SYNC_BYTES * self.layers * 4 / units * 8 / 1e9


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model("1B", 2.46, 2048, 16),
        Model("3B", 6.42, 3072, 28),
        Model("8B", 21.2, 4096, 40),
        Model("90B", 177.6, 8192, 100),
    )
}


@dataclass(frozen=True)
class SetUp:
    """Settings of the generator; the defaults are the drafts' (section IV.A)."""

    jobs: Annotated[int, setting("Jobs", ge=1, le=MAX_JOBS, steps=(16, *JOBS, 1_024))] = 256
    context: Annotated[
        int,
        setting(
            "Context length",
            "tokens",
            "one context, which each unit trains on in an iteration",
            ge=1,
            le=100_000_000,
            steps=tuple(1_024 * 2**k for k in range(8)),
        ),
    ] = 8192
    pod_groups: Annotated[int, setting("Pod groups", ge=1, le=MAX_PODS)] = 32
    pods_per_group: Annotated[int, setting("Pods per group", ge=1, le=MAX_PODS_PER_GROUP)] = 8
    ports_per_pod: Annotated[int, setting("Ports per pod", ge=1, le=MAX_PORTS)] = 16
    port_gbps: Gbps = 150.0
    tor_gbps: TorGbps | None = None
    reconfiguration_ms: DelayMs = 0.5
    degree_min: Annotated[
        int,
        plain_setting(
            "Fewest units of a job", "fewest parallel units of a job, drawn evenly", ge=1, le=4_096
        ),
    ] = 2
    degree_max: Annotated[
        int,
        plain_setting("Most units of a job", "most parallel units of a job", ge=1, le=4_096),
    ] = 16
    seed: Annotated[int, plain_setting("Seed", "seed of all that is drawn", ge=0, le=2**63 - 1)] = 0
    efficiency: Annotated[
        float, plain_setting("Share of the peak", "share of the peak reached", gt=0, le=1)
    ] = 0.4
    gpu_tflops: Annotated[float, setting("Peak of a GPU", "TFLOP/s", gt=0, le=1e12)] = 26.0
    literal_eq8: Annotated[
        bool,
        plain_setting(
            "Eq. 8 as printed",
            "train a whole replica on one GPU, as eq. 8 is printed, instead of on all GPUs of its unit",
        ),
    ] = False
    gpus_per_pod: Annotated[int, setting("GPUs per pod", ge=1, le=1_000_000_000)] = 2048
    mix: Annotated[
        tuple[Annotated[float, setting(ge=0, le=1e12)], ...],
        plain_setting(
            "Mix of collectives",
            "weights of parameter server, ring and all-to-all (default 1,1,1)",
        ),
    ] = (1.0, 1.0, 1.0)

    def network(self) -> PodNetwork:
        """Return the network of this set-up."""
        tor_gbps = self.ports_per_pod * self.port_gbps if self.tor_gbps is None else self.tor_gbps
        return PodNetwork(
            self.pod_groups,
            self.pods_per_group,
            self.ports_per_pod,
            self.port_gbps,
            tor_gbps,
            self.reconfiguration_ms,
        )

    def train_s(self, model: Model) -> float:
        """Return the training time of one iteration (eq. 8), in seconds."""
        gpus = 1 if self.literal_eq8 else model.gpus_per_unit
        flop = FLOP_PER_TOKEN_PARAMETER * self.context * model.parameters
        return flop / (gpus * self.gpu_tflops * 1e12 * self.efficiency)


def deploy(setup: SetUp) -> Jobs:
    """Draw the jobs of a set-up and place them (section IV.B); the same set-up gives the same jobs.

    A seed's first jobs are the same whatever their number. Each job goes to the pod group with the
    least traffic among those with room, its parameter server to the pod with the least, then its
    units one by one likewise.

    Raises
    ------
    InputError
        If a value is out of range, or a job finds no pod group with enough free GPUs.
    """
    _check(setup)
    network = setup.network()
    check_network(network, "settings")
    draws = np.random.default_rng(setup.seed).random((setup.jobs, 3))
    shares = np.cumsum(setup.mix) / sum(setup.mix)
    models = list(MODELS.values())
    placement = Placement(network, setup.gpus_per_pod, "gpus_per_pod")
    jobs = []
    for n, (which, how, degree) in enumerate(draws):
        model = models[int(which * len(models))]
        collective = _ORDER[int(np.searchsorted(shares, how, side="right"))]
        units = setup.degree_min + int(degree * (setup.degree_max - setup.degree_min + 1))
        exchanges = collective == "all_to_all"
        volume = model.exchange_gbit(setup.context, units) if exchanges else model.sync_gbit
        of = (collective, units, volume, setup.train_s(model), model.gpus_per_unit)
        jobs.append(placement.placed(f"j{n}-{model.name}", *of))
    name = f"{setup.jobs} jobs on {setup.pod_groups * setup.pods_per_group} pods, seed {setup.seed}"
    return validated(name, network, jobs, "settings")


def _check(setup: SetUp) -> None:
    """Refuse what cannot be drawn; the network has a check of its own."""
    for field, problem in wrong_fields(setup):
        raise wrong_setting(field, problem)
    refuse_if(
        (
            setup.degree_min > setup.degree_max,
            f"must be from 1 to {setup.degree_max:,} (got {setup.degree_min:,})",
            "degree_min",
        ),
        (
            len(setup.mix) != 3 or not sum(setup.mix) > 0,
            "must be three weights of at least 0, not all 0: parameter server, ring, all-to-all",
            "mix",
        ),
        file="settings",
    )
