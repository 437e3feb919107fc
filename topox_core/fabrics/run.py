"""What running a task graph on a fabric returns, and the one interface of all fabrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from topox_core.fabrics.options import FabricOptions
from topox_core.io.content import record_of
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import CriticalPath, critical_path
from topox_core.model.execution import Execution
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import TaskGraph
from topox_core.model.transfer_graph import COMPUTE, TransferGraph
from topox_core.runs.run import Stop
from topox_core.schedule.bounds.unrounded import Bound
from topox_core.schedule.results.result import Result, gap
from topox_core.schedule.settings import Settings
from topox_core.text.choices import chosen_words


@dataclass(frozen=True)
class FabricRequest:
    """What a fabric is asked to run: a lowered graph on a cluster, how the model is read, and its own options.

    ``settings`` carries the rounding and the engine of ``scheduled``; the simulators read only
    ``exclusive_devices`` and the seed (they run on continuous time). ``runs`` are the runs of other
    fabrics on the same input that are there already, by name: a fabric that needs one of them does
    not run it again. ``others`` are the graphs that the job may be lowered to as well, for fabrics
    that look at several at once.
    """

    graph: TransferGraph
    cluster: Cluster
    settings: Settings
    options: FabricOptions = field(default_factory=FabricOptions)
    runs: Mapping[str, FabricRun] = field(default_factory=dict)
    others: tuple[TransferGraph, ...] = ()


@dataclass(frozen=True)
class JobRequest:
    """What the fabrics of a comparison are asked to run: one task graph, which each lowers as it may.

    The other attributes are those of :class:`FabricRequest`.
    """

    task_graph: TaskGraph
    cluster: Cluster
    settings: Settings
    options: FabricOptions = field(default_factory=FabricOptions)
    runs: Mapping[str, FabricRun] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """Digest of everything that its schedule depends on with the usual options; who solves and for how long does not count.

        The names count: sessions share results, and no session may read those of another one's files.
        """
        return f"{self.cluster.digest}|{self.key_of_plans}"

    @cached_property
    def key_of_plans(self) -> str:
        """The same without the cluster: what plans for several clusters have in common."""
        return f"{self.task_graph.digest}|{self.names!r}|{self.settings.question}"

    @property
    def names(self) -> tuple[str, str]:
        """What graph and cluster are called, which their digests leave out."""
        return self.task_graph.name, self.cluster.name

    @cached_property
    def by_rules(self) -> JobRequest:
        """The same planned by list scheduling, which the limits of exact solves do not concern."""
        listing = replace(self.settings.by_rules, time_limit_s=Settings.time_limit_s)
        return replace(self, settings=listing)

    def at_delay(self, delay_ms: float) -> JobRequest:
        """Return the job on a cluster with another delay."""
        return replace(self, cluster=self.cluster.changed(reconfiguration_ms=delay_ms))

    @property
    def nodes(self) -> int:
        """Nodes of the graph as the settings lower it."""
        return len(lower(self.task_graph, self.settings.lowering))

    def lowered(self, lowering: Lowering) -> FabricRequest:
        """Return the request of one fabric that lowers the graph so."""
        return FabricRequest(
            lower(self.task_graph, lowering),
            self.cluster,
            replace(self.settings, lowering=lowering),
            self.options,
            self.runs,
        )


@dataclass(frozen=True)
class Traffic:
    """How far the bytes went; a hop is one time that bytes leave a server.

    Attributes
    ----------
    bandwidth_tax
        Bytes times hops over bytes: 1 where every transfer goes direct (TopoOpt's measure).
    longest_hops
        Of any transfer; 0 where nothing moves.
    """

    bandwidth_tax: float = 1.0
    longest_hops: int = 1

    @property
    def mean_hops(self) -> float:
        """Mean over the bytes, which is the bandwidth tax."""
        return self.bandwidth_tax


@dataclass(frozen=True)
class Breakdown:
    """Where the iteration's time goes along its critical path, in ms; the four add up to the iteration.

    Compute; transfers exposed (nothing on the path computes meanwhile); dark (a port being set up);
    waiting (for a slot boundary). Dark time that hides behind other work on the path does not count.
    """

    compute_ms: float
    exposed_ms: float
    dark_ms: float
    waiting_ms: float

    @staticmethod
    def of(graph: TransferGraph, path: CriticalPath) -> Breakdown:
        """Sum a critical path up."""
        work_ms = path.end_ms - path.start_ms
        compute = graph.kind[path.nodes] == COMPUTE
        return Breakdown(
            float(work_ms[compute].sum()),
            float(work_ms[~compute].sum()),
            float((path.start_ms - path.begin_ms).sum()),
            round(float(path.slack_ms.sum()), 9),  # what is less are roundings
        )


@dataclass(frozen=True)
class LoweringChoice:
    """What a fabric chose where the settings left it free: ``lowering``, of which ``free`` was open."""

    lowering: Lowering
    free: tuple[str, ...]


@dataclass(frozen=True)
class FabricRun:
    """One iteration on one fabric, with its lower bound and its measures.

    ``first_ms`` is how long the first iteration takes, which begins with its first circuits; None
    where every one is alike. ``mean_ms`` is what counts where iterations take turns, of which
    ``execution`` is one.
    """

    fabric: str
    execution: Execution
    bound_ms: float
    bound_by: str
    traffic: Traffic
    path: CriticalPath
    breakdown: Breakdown
    circuits_changed: int = 0
    dark_ms: float = 0.0
    result: Result | None = None
    message: str = ""
    chosen: LoweringChoice | None = None
    first_ms: float | None = None
    mean_ms: float | None = None

    @staticmethod
    def of(
        fabric: str, execution: Execution, bound: Bound, settings: Settings, **more: Any
    ) -> FabricRun:
        """Return the run of an execution, with where its time goes and what its circuits do; ``more`` are further attributes."""
        makespan_ms, circuits = execution.makespan_ms, execution.circuits
        # The two add the same numbers up in another order; a last bit must not put the bound above
        # the time.
        near = makespan_ms < bound.ms <= makespan_ms * (1 + 1e-9)
        path = critical_path(execution, settings.exclusive_devices)
        measures: dict[str, Any] = {
            "traffic": Traffic(longest_hops=min(1, len(circuits))),
            "circuits_changed": int(circuits.changed.sum()),
            "dark_ms": float((circuits.start_ms - circuits.setup_ms).sum()),
        }
        return FabricRun(
            fabric,
            execution,
            makespan_ms if near else bound.ms,
            bound.text,
            path=path,
            breakdown=Breakdown.of(execution.graph, path),
            **(measures | more),
        )

    @property
    def chosen_words(self) -> str:
        """What the fabric chose by itself; empty where that is the default. Of a plan what it holds: it may have been passed on."""
        if self.result is not None:
            return chosen_words(self.result.settings.lowering, self.result.settings.free)
        return chosen_words(self.chosen.lowering, self.chosen.free) if self.chosen else ""

    @property
    def iteration_ms(self) -> float:
        """From the start of an iteration to that of the next one."""
        return self.execution.makespan_ms if self.mean_ms is None else self.mean_ms

    @property
    def switching(self) -> Execution:
        """The execution, or where circuits stay fixed because that is faster, that of the best plan that changes them."""
        plan = None if self.result is None else self.result.alternative
        return self.execution if plan is None or plan.execution is None else plan.execution

    @property
    def dark_share(self) -> float:
        """Share of the time of all out-ports that is dark."""
        cluster = self.execution.cluster
        whole = cluster.servers * cluster.ports_per_server * self.iteration_ms
        return self.dark_ms / whole if whole > 0 else 0.0

    def as_record(self) -> dict[str, Any]:
        """Return the run as JSON has it, which keys of labs name too."""
        record: dict[str, Any] = {
            **record_of(self, "iteration_ms first_ms bound_ms bound_by circuits_changed dark_ms"),
            "gap": gap(self.iteration_ms, self.bound_ms),
            **record_of(self.traffic, "bandwidth_tax mean_hops longest_hops"),
            "time": asdict(self.breakdown),
        }
        if self.result is not None:
            record |= record_of(self.result, "status stopped_by slot_ms")
        if self.chosen is not None:
            record["chosen"] = self.chosen.lowering.choices()
        if self.message:
            record["message"] = self.message
        return record


class Fabric(Protocol):
    """One fabric with its controller."""

    def __call__(self, request: FabricRequest, stop: Stop) -> FabricRun:
        """Run one iteration.

        Raises
        ------
        InputError
            If the fabric cannot run the graph (two talking servers not connected, ...).
        """
        ...
