"""What a strategy takes on a fabric: the figure of ``compare`` for its task graph, and estimates for a search."""

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import (
    compare,
    default_options,
    run_one,
    run_with_best_lowering,
)
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.lowering_search import ring_choices
from topox_core.fabrics.run import JobRequest
from topox_core.model.cluster import Cluster, one_port_a_switch
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.run import Stop, never
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.planning.planner import prepare
from topox_core.schedule.planning.replay import replay
from topox_core.schedule.settings import FREE, Settings
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search.evaluator import FastEvaluator, non_blocking
from topox_core.strategy.strategy import Strategy, task_graph


def estimate(name: str, job: JobRequest, best_ms: float = math.inf) -> tuple[float, bool]:
    """Return an estimate of the iteration time on a fabric, and False where a bound alone says that it is not among the fastest.

    ``scheduled`` is taken half-way between the lower bound of plans that switch and the best of a few
    quick plans (the plans of 12 strategies for DLRM were within 5 % of that), or as static circuits
    where those are faster; no plan is made whose bound is above ``best_ms``. ``ideal`` is taken as
    fair shares. Every other fabric is run.

    Raises
    ------
    InputError
        If the fabric cannot run the graph.
    """
    if name == "ideal":
        at_full = replace(job, options=FabricOptions())  # a fat-tree of full bandwidth
        return run_one("fat_tree", at_full.lowered(job.settings.lowering)).iteration_ms, True
    if name != "scheduled" or job.settings.on_slots:
        return run_with_best_lowering(name, job).iteration_ms, True
    own = job.lowered(job.settings.lowering)
    requests = [own, *map(job.lowered, ring_choices(name, job))]
    bounds_ms = [circuit_bound(one.graph, job.cluster, job.settings).ms for one in requests]
    bound_ms, fixed_ms = min(bounds_ms), math.inf
    if job.settings.switching in ("auto", "fixed"):
        # Where two servers that talk are not connected, only switching serves them.
        with suppress(InputError):
            fixed_ms = run_one("static", own).iteration_ms
    if fixed_ms <= bound_ms:
        return fixed_ms, True
    if bound_ms > best_ms:
        return bound_ms, False
    order = requests[bounds_ms.index(bound_ms)]
    prepared = prepare(order.graph, job.cluster, job.settings)
    plans = prepared.planner.sketches(None, direct=True)
    plan_ms = min(replay(prepared, plan, job.cluster).makespan_ms for plan in plans)
    return min(fixed_ms, (bound_ms + plan_ms) / 2), True


# A strategy that the fast simulator finds this many times slower than the fastest so far is not
# estimated on the fabric: the two rank differently, so that less would lose good ones.
SPREAD = 1.5


def cluster_of(
    servers: int, ports: int, port_gbps: float, reconfiguration_ms: float = 0.0
) -> Cluster:
    """Return servers with one port on each of ``ports`` optical switches.

    Raises
    ------
    InputError
        If a number is out of range.
    """
    return one_port_a_switch(
        servers,
        ports,
        port_gbps,
        reconfiguration_ms=reconfiguration_ms,
        name=f"{servers} servers, {ports} OCS of {port_gbps:g} Gbit/s ports",
    )


@dataclass(frozen=True)
class Outcome:
    """A strategy on a fabric, as ``compare`` has it."""

    iteration_ms: float
    bound_ms: float
    bound_by: str


@dataclass(frozen=True)
class ModelOnCluster:
    """A model that is to be split over the servers of a cluster.

    Parameters
    ----------
    memory_gb
        Memory of one GPU in 10^9 bytes; the machine's own if None.
    settings
        As ``compare`` reads them; by default every fabric chooses rings and algorithms for itself.
    """

    graph: OperatorGraph
    cluster: Cluster
    memory_gb: float | None = None
    settings: Settings = field(default_factory=lambda: Settings.of(engine="list", free=FREE))

    def tasks(self, strategy: Strategy) -> TaskGraph:
        """Return the task graph of an iteration, as it is exported."""
        return task_graph(self.graph, strategy, self.memory_gb)

    def job(self, strategy: Strategy) -> JobRequest:
        """Return what the fabrics are asked to run."""
        options = default_options(self.cluster)
        return JobRequest(self.tasks(strategy), self.cluster, self.settings, options)

    def outcomes(
        self, strategy: Strategy, fabrics: Iterable[str], stop: Stop = never
    ) -> dict[str, Outcome]:
        """Return what ``compare`` says of a strategy on fabrics; nothing if ``stop`` turns true meanwhile.

        A plan that was cut short is not what ``compare`` would say.

        Raises
        ------
        InputError
            If a fabric cannot run it.
        """
        runs = compare(self.tasks(strategy), self.cluster, self.settings, fabrics, stop=stop)
        if stop():
            return {}
        return {
            name: Outcome(run.iteration_ms, run.bound_ms, run.bound_by)
            for name, run in runs.items()
        }


class FabricEvaluator:
    """Estimates the iteration time of strategies on one fabric, each strategy once.

    Attributes
    ----------
    fast
        The fast simulator, which is asked first.
    estimated
        The estimates that were not cut short, in ms.
    """

    def __init__(self, model: ModelOnCluster, fabric: str) -> None:
        self.model, self.fabric = model, fabric
        one = model.cluster
        network = non_blocking(one.servers, one.ports_per_server, one.port_gbps, one.latency_us)
        self.fast = FastEvaluator(model.graph, network)
        self.estimated: dict[Strategy, float] = {}
        self._known: dict[Strategy, float] = {}
        self._fastest_ms = self._best_ms = math.inf

    def __call__(self, strategy: Strategy) -> float:
        """Return the estimate in ms; what cannot be the fastest is somewhere above the best so far."""
        if strategy not in self._known:
            self._known[strategy] = self._time_ms(strategy)
        return self._known[strategy]

    def ranked(self) -> list[Strategy]:
        """Return the strategies whose estimates were not cut short, the most promising first."""
        return sorted(self.estimated, key=self.estimated.__getitem__)

    def _time_ms(self, strategy: Strategy) -> float:
        fast_ms = self.fast(strategy)
        self._fastest_ms = min(self._fastest_ms, fast_ms)
        if self.estimated and fast_ms > SPREAD * self._fastest_ms:
            return self._best_ms * fast_ms / self._fastest_ms
        found_ms, whole = estimate(self.fabric, self.model.job(strategy), self._best_ms)
        if whole:
            self.estimated[strategy] = found_ms
            self._best_ms = min(self._best_ms, found_ms)
        return found_ms
