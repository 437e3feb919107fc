"""The fastest algorithm of each collective on a fabric, each run there alone.

Which algorithm wins depends on tensor, members, latency, delay and fabric: circuits that change pay
for every new peer, fixed ones carry only what they have links for.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from topox_core.errors import InputError
from topox_core.fabrics.controllers.circuits import Profile
from topox_core.fabrics.controllers.one_collective import MAX_MEMBERS, MAX_PORTS, OneCollective
from topox_core.fabrics.fixed.static import run_static
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.model.cluster import Cluster
from topox_core.model.lowering.algorithm_choice import (
    DEFAULT,
    Choice,
    collective_key,
    distinct_rings,
    misfit,
    on_rings,
    step_transfers,
)
from topox_core.model.lowering.collective_steps import ALGORITHMS, divisor_near_root
from topox_core.model.lowering.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.task_graph import COLLECTIVE_KINDS, Task, TaskGraph
from topox_core.model.transfer_graph import TransferGraph, transfer_ms
from topox_core.runs.run import never
from topox_core.schedule.settings import Settings

# Transfers of one algorithm alone, and of all that are tried for one graph: what is beyond is left out.
MAX_ALONE = 5_000
MAX_ALONE_STATIC = 1_000  # every algorithm has a layout of its own
MAX_TRIED = 50_000
FIRST = ("direct",)  # in a tie, after the default
DEFAULT_CHAIN = 8


@dataclass(frozen=True)
class Collective:
    """A collective as far as its algorithm goes: kind, members, and bytes to three digits."""

    kind: str
    members: int
    size_bytes: float

    @property
    def key(self) -> str:
        """Its key among the algorithms of a lowering."""
        return collective_key(self.kind, self.members, self.size_bytes)


def collectives_of(graph: TaskGraph, lowering: Lowering) -> tuple[Collective, ...]:
    """Return the distinct collectives that use the network and whose algorithm the lowering leaves open."""
    fixed = {key.split(":")[0] for key, _ in lowering.algorithm}
    kinds = set(COLLECTIVE_KINDS) - fixed
    if not lowering.all_reduce_on_network:
        kinds.discard("all_reduce")
    distinct = {
        Collective(task.kind, len(task.members or ()), float(f"{task.size_bytes or 0.0:.3g}")): None
        for task in graph.tasks
        if task.kind in kinds and len(task.members or ()) > 1
    }
    return tuple(distinct)


def with_fastest_algorithms(
    fabric: str, graph: TaskGraph, cluster: Cluster, settings: Settings, variant: str = "published"
) -> Lowering:
    """Return the lowering with the fastest algorithm of each distinct collective, run alone.

    Algorithms that the lowering names stay. What is faster alone can be slower among others: the
    caller compares the whole graph with its default.

    Parameters
    ----------
    fabric
        On which each is run: ``static``, ``reactive`` or ``provisioned``.
    variant
        Of TopologyFinder, for static circuits.
    """
    lowering = settings.lowering
    alone, unnamed = replace(lowering, algorithm=()), replace(cluster, name="")
    scales = cluster.latency_us == 0 and cluster.reconfiguration_ms == 0
    tried = 0
    words: dict[str, str] = dict(lowering.algorithm)
    for one in collectives_of(graph, lowering):
        # Without latency and delay all times grow with the bytes, and so the order stays.
        judged = replace(one, size_bytes=1e6) if scales else one
        case = _Alone(fabric, judged, unnamed, alone, settings.seed, variant)
        tried += sum(count for _, count in case.algorithms())
        if tried > MAX_TRIED:
            break
        word = _fastest(case)
        if word != DEFAULT:
            words[one.key] = word
    return replace(lowering, algorithm=tuple(sorted(words.items())))


@dataclass(frozen=True)
class _Alone:
    """One collective alone on a fabric: what its fastest algorithm depends on."""

    fabric: str
    collective: Collective
    cluster: Cluster
    lowering: Lowering
    seed: int
    variant: str

    def time_ms(self, word: str) -> float:
        """Return how long it takes by an algorithm; infinity where the fabric cannot run it."""
        one = self.collective
        lowering = replace(self.lowering, algorithm=((one.kind, word),))
        cluster = replace(self.cluster, servers=one.members)
        if self.fabric != "static":
            on_demand_ms, known_ms = _circuit_times(one, lowering, cluster)
            return on_demand_ms if self.fabric == "reactive" else known_ms
        settings = Settings.of(iteration="first", lowering=lowering, seed=self.seed)
        options = FabricOptions(topology_variant=self.variant)
        try:
            graph = _lowered(one.kind, one.members, lowering, one.size_bytes)
            request = FabricRequest(graph, cluster, settings, options)
            return run_static(request, never).iteration_ms
        except InputError:
            return float("inf")

    def bound_ms(self) -> float:
        """Return what no algorithm goes below: a latency, and what a server must send on all its ports."""
        one, cluster = self.collective, self.cluster
        n = one.members
        share = {"all_reduce": 2 * (n - 1) / n, "broadcast": 1.0}.get(one.kind, (n - 1) / n)
        gbps = cluster.ports_per_server * cluster.port_gbps
        return transfer_ms(share * one.size_bytes, gbps, cluster.latency_us)

    def algorithms(self) -> Iterator[tuple[str, int]]:
        """Yield the words of the algorithms that fit, with the transfers each becomes.

        Rings run on the lowering's rings; messages of the others go whole, or in one part for each
        port.
        """
        one, ports = self.collective, self.cluster.ports_per_server
        most = MAX_ALONE_STATIC if self.fabric == "static" else MAX_ALONE
        names = sorted(ALGORITHMS[one.kind], key=lambda name: name not in FIRST)
        rings = min(self.lowering.rings, len(distinct_rings(one.members)))
        for name, parts in product(names, sorted({1, ports})):
            choice = Choice(name, _parameter(name, one, self.cluster), parts)
            if misfit(one.kind, choice, one.members):
                continue
            if (name == "two_level" and choice.parameter in (1, one.members)) or (
                parts > 1 and on_rings(one.kind, name)
            ):
                continue  # the same as a ring, a pairwise exchange, or its own whole messages
            count = step_transfers(one.kind, choice, one.members, rings)
            if count <= most:
                yield str(choice), count
        if self.fabric == "in_collective" and ports > 1 and self.cluster.reconfiguration_ms > 0:
            for name in names:
                yield from self._split_unevenly(name)

    def _split_unevenly(self, name: str) -> Iterator[tuple[str, int]]:
        """Yield an algorithm with its messages in uneven parts, if its steps are permutations that gain by it."""
        one, cluster = self.collective, self.cluster
        if name == "chain" or on_rings(one.kind, name) or one.members > MAX_MEMBERS:
            return
        whole = Choice(name, _parameter(name, one, cluster))
        if misfit(one.kind, whole, one.members):
            return
        tensor_ms = transfer_ms(one.size_bytes, cluster.port_gbps)
        latency_ms, delay_ms = cluster.latency_us / 1000, cluster.reconfiguration_ms
        ports = min(cluster.ports_per_server, MAX_PORTS)
        try:
            alone = OneCollective(
                one.kind, name, one.members, ports, tensor_ms, latency_ms, delay_ms
            )
        except InputError:
            return  # no permutations, or too many steps
        shares = alone.split().shares()
        choice = whole._replace(shares=shares)
        count = step_transfers(one.kind, choice, one.members, 1)
        if count <= MAX_ALONE and max(map(len, shares)) > 1:
            yield str(choice), count


@lru_cache(maxsize=8192)
def _circuit_times(one: Collective, lowering: Lowering, cluster: Cluster) -> tuple[float, float]:
    """Return how long a collective takes on demand and provisioned, which are one sweep and another over it."""
    try:
        # Collectives differ in the size of their transfers alone.
        graph = _lowered(one.kind, one.members, lowering)
        graph = replace(graph, size_bytes=graph.size_bytes * one.size_bytes)
        profile = Profile.of(
            FabricRequest(graph, cluster, Settings.of(iteration="first", lowering=lowering))
        )
    except InputError:
        return float("inf"), float("inf")
    starts = (profile.known.start, profile.provisioned_start_ms())
    on_demand_ms, known_ms = (float((s + profile.length_ms).max(initial=0.0)) for s in starts)
    return on_demand_ms, known_ms


@lru_cache(maxsize=64)
def _lowered(kind: str, members: int, lowering: Lowering, size_bytes: float = 1.0) -> TransferGraph:
    """Return a collective alone, lowered."""
    root = 0 if kind == "broadcast" else None
    task = Task(
        "c", kind, dependencies=(), members=tuple(range(members)), size_bytes=size_bytes, root=root
    )
    return lower(TaskGraph("alone", (task,)), lowering)


@lru_cache(maxsize=4096)
def _fastest(case: _Alone) -> str:
    """Return the word of the fastest algorithm; of equal ones the first."""
    best, best_ms = DEFAULT, case.time_ms(DEFAULT)
    if best_ms <= case.bound_ms() * (1 + 1e-9):
        return best
    for word, _ in case.algorithms():
        time_ms = case.time_ms(word)
        if time_ms < best_ms * (1 - 1e-9):
            best, best_ms = word, time_ms
    return best


def _parameter(name: str, one: Collective, cluster: Cluster) -> int:
    """Return groups near the square root, and chunks that balance latency against the chain's length."""
    if name == "two_level":
        return divisor_near_root(one.members)
    if name != "chain":
        return 0
    latency_ms = cluster.latency_us / 1000
    if latency_ms <= 0:
        return DEFAULT_CHAIN
    tensor_ms = transfer_ms(one.size_bytes, cluster.port_gbps)
    chunks = math.sqrt((one.members - 2) * tensor_ms / latency_ms)
    return max(1, min(round(chunks), MAX_ALONE))
