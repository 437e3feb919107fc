"""The crossover map: which fabric wins over the reconfiguration delay and the port speed (or the degree)."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import math
import pickle
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Literal

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.compare import EQUAL, MAX_DELAY_MS, chosen, run_freely
from topox_core.fabrics.registry import FABRICS, MAPPED, PAYS_DELAY
from topox_core.fabrics.run import FabricOptions, FabricRun, JobRequest
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import MAX_PORTS, Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.cells import CellsRun
from topox_core.schedule.settings import Settings

_wrong = partial(InputError, file="sweep")

MAX_POINTS = 2_500
MAX_GBPS = 1e6
# The ideal switch is left out of the map: it is the yardstick, not a choice.

By = Literal["port_gbps", "degree"]


def log_range(low: float, high: float, points: int, field_name: str = "range") -> tuple[float, ...]:
    """Return ``points`` values from ``low`` to ``high``, evenly spaced on a logarithmic scale.

    Raises
    ------
    InputError
        If the range is empty, not above 0, or has more than :data:`MAX_POINTS` points.
    """
    if not (math.isfinite(low) and math.isfinite(high) and 0 < low <= high):
        raise _wrong(
            f"must run from a number above 0 to one no smaller (got {low:g} to {high:g})",
            field=field_name,
        )
    if isinstance(points, bool) or not isinstance(points, int) or not 1 <= points <= MAX_POINTS:
        raise _wrong(f"must have 1 to {MAX_POINTS:,} points (got {points!r})", field=field_name)
    if points == 1:
        return (float(low),)
    return tuple(float(f"{value:.12g}") for value in np.geomspace(low, high, points))


@dataclass(frozen=True)
class Axes:
    """The points of a map: every delay with every port speed in Gbit/s, or with every degree (ports a server).

    Raises
    ------
    InputError
        If an axis is empty, holds a value twice or out of range, or there are too many points.
    """

    delay_ms: tuple[float, ...]
    values: tuple[float, ...]
    by: By = "port_gbps"

    def __post_init__(self) -> None:
        if self.by not in ("port_gbps", "degree"):
            raise _wrong(f"must be 'port_gbps' or 'degree' (got {self.by!r})", field="by")
        _axis("delay_ms", self.delay_ms, 0.0, MAX_DELAY_MS)
        if self.by == "degree":
            _axis("degree", self.values, 1.0, float(MAX_PORTS))
            for value in self.values:
                if value != int(value):
                    raise _wrong(f"must be whole numbers (got {value:g})", field="degree")
        else:
            _axis("port_gbps", self.values, 0.0, MAX_GBPS)
            if min(self.values) <= 0:
                raise _wrong(
                    f"must be greater than 0 (got {min(self.values):g})", field="port_gbps"
                )
        if len(self) > MAX_POINTS:
            raise _wrong(
                f"has {len(self):,} points (limit {MAX_POINTS:,}): {len(self.delay_ms):,} delays times "
                f"{len(self.values):,} values of {self.by}"
            )

    def __len__(self) -> int:
        return len(self.delay_ms) * len(self.values)

    def points(self) -> Iterator[tuple[float, float]]:
        """Yield (value, delay) value by value."""
        return product(self.values, self.delay_ms)


def _axis(name: str, values: tuple[float, ...], least: float, most: float) -> None:
    if not values:
        raise _wrong("is empty: a sweep needs at least one value", field=name)
    for value in values:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise _wrong(f"must be finite numbers (got {value!r})", field=name)
        if not least <= value <= most:
            raise _wrong(f"must be from {least:,g} to {most:,.10g} (got {value:g})", field=name)
    if len(set(values)) < len(values):
        raise _wrong("holds a value twice", field=name)


@dataclass(frozen=True)
class MapOutcome:
    """What is kept of one run."""

    iteration_ms: float
    bound_ms: float
    circuits_changed: int
    dark_ms: float
    bandwidth_tax: float


@dataclass(frozen=True)
class Cell:
    """What one call runs: a value with a delay, or (delay None) the fabrics that do not depend on the delay."""

    value: float
    delay_ms: float | None


@dataclass(frozen=True)
class CellResult:
    """The outcomes of a cell, and in words why a fabric could not run."""

    outcomes: dict[str, MapOutcome]
    failed: dict[str, str]


@dataclass(frozen=True)
class Point:
    """One point of the map, with the outcome of each fabric in the order of ``FABRICS``."""

    value: float
    delay_ms: float
    outcomes: Mapping[str, MapOutcome]
    failed: Mapping[str, str]

    @property
    def fastest(self) -> tuple[str, ...]:
        """The fastest fabric and those called equal to it (within 0.5 %), from the simplest controller on."""
        best = min((one.iteration_ms for one in self.outcomes.values()), default=0.0)
        return tuple(
            name for name, one in self.outcomes.items() if one.iteration_ms - best <= EQUAL * best
        )

    @property
    def winner(self) -> str:
        """The simplest of the fastest; empty if no fabric could run."""
        return next(iter(self.fastest), "")

    @property
    def undecided(self) -> bool:
        """Whether the plan is behind by less than its gap, so that a better plan could win."""
        plan = self.outcomes.get("scheduled")
        if plan is None or "scheduled" in self.fastest:
            return False
        return plan.bound_ms < self.outcomes[self.winner].iteration_ms * (1 - EQUAL)


@dataclass(frozen=True)
class Sweep:
    """A map to compute: what runs, on what, over which axes, under which fabrics.

    ``scheduled`` is planned by list scheduling whatever the settings say: a map has thousands of
    plans.

    Raises
    ------
    InputError
        If the graph does not fit the cluster, or a name is no fabric.
    """

    task_graph: TaskGraph
    cluster: Cluster
    settings: Settings
    axes: Axes
    fabrics: tuple[str, ...] = MAPPED
    options: FabricOptions = field(default_factory=FabricOptions)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fabrics", chosen(self.fabrics))
        object.__setattr__(self, "settings", replace(self.settings, engine="list"))
        check_fits(self.task_graph, self.cluster)
        for value in self.axes.values if self.axes.by == "degree" else ():
            with_degree(self.cluster, int(value))

    @cached_property
    def job(self) -> bytes:
        """Everything but the axes, for a worker process."""
        return pickle.dumps(
            (self.task_graph, self.cluster, self.settings, self.fabrics, self.options, self.axes.by)
        )

    @cached_property
    def job_digest(self) -> str:
        """SHA-256 over everything but the axes' values: what two maps share whose cells may be shared."""
        # The swept keys are the axes' to say.
        cluster = replace(self.cluster, reconfiguration_ms=0.0)
        if self.axes.by == "port_gbps":
            cluster = replace(cluster, port_gbps=1.0)
        layout = self.options.layout
        choices = {
            **asdict(replace(self.options, layout=None)),
            "layout": None
            if layout is None
            else [
                layout.circuits.tolist(),
                sorted(
                    (list(pair), [list(route) for route in routes])
                    for pair, routes in layout.routes.items()
                ),
            ],
        }
        parts = [
            self.task_graph.digest,
            cluster.digest,
            self.settings.as_record(),
            self.fabrics,
            choices,
            self.axes.by,
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything: the key of a finished map."""
        axes = json.dumps(asdict(self.axes), sort_keys=True)
        return hashlib.sha256(f"{self.job_digest} {axes}".encode()).hexdigest()

    def cells(self) -> list[Cell]:
        """Return the calls: for each value the fabrics that do not depend on the delay once, and then delay by delay."""
        once = (
            [Cell(value, None) for value in self.axes.values]
            if set(self.fabrics) - PAYS_DELAY
            else []
        )
        paying = (
            [Cell(value, delay) for value, delay in self.axes.points()]
            if set(self.fabrics) & PAYS_DELAY
            else []
        )
        return once + paying

    def key(self, cell: Cell) -> str:
        """Return the key under which a cell's result may be kept."""
        return f"{self.job_digest} {cell.value!r} {cell.delay_ms!r}"

    def point(
        self, value: float, delay_ms: float, known: Mapping[Cell, CellResult]
    ) -> Point | None:
        """Return a point of the map, or None while a part of it is missing."""
        parts = []
        for names, cell in (
            (set(self.fabrics) - PAYS_DELAY, Cell(value, None)),
            (set(self.fabrics) & PAYS_DELAY, Cell(value, delay_ms)),
        ):
            if names and cell not in known:
                return None
            if names:
                parts.append(known[cell])
        outcomes = {
            name: part.outcomes[name] for name in FABRICS for part in parts if name in part.outcomes
        }
        failed = {
            name: part.failed[name] for name in FABRICS for part in parts if name in part.failed
        }
        return Point(value, delay_ms, outcomes, failed)

    def points(self, known: Mapping[Cell, CellResult]) -> tuple[Point, ...]:
        """Return the complete points of the map, in the order of the axes."""
        points = (self.point(value, delay_ms, known) for value, delay_ms in self.axes.points())
        return tuple(point for point in points if point is not None)

    def start(
        self,
        known: MutableMapping[str, CellResult] | None = None,
        executor: concurrent.futures.Executor | None = None,
        workers: int | None = None,
    ) -> CellsRun[Cell, str, CellResult]:
        """Start to compute the map; the arguments are those of :class:`~topox_core.runs.cells.CellsRun`."""
        function = partial(run_cell, self.job_digest, self.job)
        return CellsRun(self.cells(), self.key, function, known, executor, workers)


def with_degree(cluster: Cluster, degree: int) -> Cluster:
    """Return the cluster with ``degree`` ports a server.

    With one port on each switch the number of switches follows the degree, as in TOPO-X's Table
    III; with several the switches stay and the ports spread over them.

    Raises
    ------
    InputError
        If the ports cannot be spread evenly over the switches.
    """
    if cluster.ports_per_server == cluster.switches:
        return cluster.changed(ports_per_server=degree, switches=degree)
    if degree % cluster.switches:
        raise _wrong(
            f"must be multiples of the {cluster.switches} switches, which have several ports of a server each "
            f"(got {degree})",
            field="degree",
        )
    return cluster.changed(ports_per_server=degree)


# In a worker process: the job that was unpacked last, by its digest.
_unpacked: dict[str, tuple[TaskGraph, Cluster, Settings, tuple[str, ...], FabricOptions, By]] = {}


def run_cell(digest: str, packed: bytes, cell: Cell) -> CellResult:
    """Run one cell, in a worker process; why a fabric cannot run stands beside the others' outcomes."""
    known = _unpacked.get(digest)
    if known is None:
        known = pickle.loads(packed)
        _unpacked.clear()
        _unpacked[digest] = known
    graph, cluster, settings, fabrics, options, by = known
    cluster = (
        with_degree(cluster, int(cell.value))
        if by == "degree"
        else cluster.changed(port_gbps=cell.value)
    )
    paying = cell.delay_ms is not None
    cluster = cluster.changed(reconfiguration_ms=cell.delay_ms or 0.0)
    outcomes: dict[str, MapOutcome] = {}
    failed: dict[str, str] = {}
    job = JobRequest(graph, cluster, settings, options)
    runs: dict[str, FabricRun] = {}
    for name in fabrics:
        if (name in PAYS_DELAY) != paying:
            continue
        try:
            run = runs[name] = run_freely(name, replace(job, runs=runs))
        except InputError as error:
            failed[name] = str(error)
            continue
        outcomes[name] = MapOutcome(
            run.iteration_ms,
            run.bound_ms,
            run.circuits_changed,
            run.dark_ms,
            run.traffic.bandwidth_tax,
        )
    return CellResult(outcomes, failed)
