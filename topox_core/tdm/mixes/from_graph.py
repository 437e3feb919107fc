"""Jobs from task graphs: what an iteration sends becomes one collective, what it computes becomes one training time.

A graph's stages are those of the drafts: train, then communicate. Overlap within an iteration and
the order of several collectives are given up; bytes and computing are kept. The rules, one by one,
are those of :func:`derived`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from topox_core.errors import InputError, refuse_if
from topox_core.model.arrays.waiting_order import last_end
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import (
    COLLECTIVE_KINDS,
    COMPUTE_KINDS,
    TRANSFER_KINDS,
    Task,
    TaskGraph,
)
from topox_core.tdm.mixes.deployment import Placement
from topox_core.tdm.model.jobs import MAX_UNITS, Collective, Job, Jobs, PodNetwork
from topox_core.tdm.model.jobs_file import MAX_JOBS, check_network, validated
from topox_core.text.numbers import enumeration, percent, plural

_GBIT = 8 / 1e9  # of a byte
# The drafts' pods in a group, and ports of a pod: enough for a link to and from every other pod.
PODS, PORTS = 8, 16
_RING_KINDS = ("all_reduce", "all_gather", "reduce_scatter")


class Derived(NamedTuple):
    """What a task graph is as a job.

    Attributes
    ----------
    collective
        Whose pattern its traffic takes: the one that moves most of its bytes.
    units
        Servers that take part; the parameter server is not one of them.
    volume_gbit
        Of one unit, or of one pair of units, such that an iteration of the job moves as much as the
        graph.
    train_s
        Computing of one iteration.
    """

    collective: Collective
    units: int
    volume_gbit: float
    train_s: float


def derived(graph: TaskGraph) -> Derived:
    """Return what a task graph is as a job.

    All-reduce, all-gather and reduce-scatter count as ring all-reduce, point-to-point transfers and
    broadcasts as a parameter server if one server is an end of all of them, and else, with
    all-to-all, as all-to-all. The collective with the most bytes gives the pattern, its servers are
    the units, and the bytes of all of them the volume:

    - ring: M, the tensor whose all-reduce over all units moves as much, total / (2 (E - 1));
    - parameter server: M, pushed and pulled by each unit, total / (2 E);
    - all-to-all: v of an ordered pair, total / (E (E - 1)).

    Training is the time of all compute tasks, in the order that their dependencies allow, one at a
    time on a device, as if the network took no time.

    Raises
    ------
    InputError
        If nothing crosses the network, or only transfers whose bytes the graph does not have.
    """
    traffic = _traffic(graph)
    sums = {name: sum(total for total, _ in parts) for name, parts in traffic.items()}
    total = sum(sums.values())
    if total <= 0:
        without_bytes = any(
            task.kind in TRANSFER_KINDS and task.size_bytes is None for task in graph.tasks
        )
        raise InputError(
            "gives its transfers by their time: as a job it needs their bytes"
            if without_bytes
            else "sends nothing over the network, so that it has no turn on a shared fabric",
            item=f"graph {graph.name}",
        )
    # Ties go to the simpler pattern, in the order in which they are collected.
    collective = max(sums, key=lambda name: sums[name])
    servers = {server for _, ends in traffic[collective] for server in ends}
    if collective == "parameter_server":
        servers -= {_centre(traffic[collective])}
    units = len(servers)
    shares = {
        "ring_all_reduce": 2 * (units - 1),
        "parameter_server": 2 * units,
        "all_to_all": units * (units - 1),
    }
    volume = total / shares[collective] * _GBIT
    return Derived(collective, units, volume, computing_ms(graph) / 1000)


# One collective in words, and the tasks that are one, or a part of one, without a word.
_AS: dict[Collective, tuple[str, tuple[str, ...]]] = {
    "ring_all_reduce": ("ring all-reduce of {}", _RING_KINDS),
    "parameter_server": ("exchange of {} with a parameter server", TRANSFER_KINDS),
    "all_to_all": ("all-to-all of {}", ("all_to_all", *TRANSFER_KINDS)),
}


def counted_as(graph: TaskGraph) -> str:
    """Return what all that an iteration sends counts as, and what share of its bytes is something else in the graph."""
    of = derived(graph)
    one, own = _AS[of.collective]
    moved = [(task.kind, _moved(task)[0]) for task in graph.tasks if task.kind not in COMPUTE_KINDS]
    others = [(kind, size) for kind, size in moved if size and kind not in own]
    names = dict.fromkeys(
        "transfers between two servers" if kind in TRANSFER_KINDS else f"{kind.replace('_', '-')}s"
        for kind, _ in others
    )
    share = sum(size for _, size in others) / sum(size for _, size in moved)
    but = f", though {percent(share)} of its bytes are {enumeration([*names])}" if others else ""
    if own == _RING_KINDS and any(size and kind in _RING_KINDS[1:] for kind, size in moved):
        but = f" (all-gathers and reduce-scatters are its halves){but}"
    return f"What it sends counts as one {one.format(plural(of.units, 'server'))}{but}."


def jobs_from_graphs(
    graphs: Sequence[tuple[TaskGraph, int]],
    network: PodNetwork,
    *,
    name: str = "from task graphs",
    units_per_pod: int | None = None,
) -> Jobs:
    """Return a mix of jobs made from task graphs and placed on a network.

    Each job goes to the pod group with the least traffic among those with room, a parameter server
    to the pod with the least, then the units one by one likewise, as in section IV.B of the drafts;
    ties to the lowest index.

    Parameters
    ----------
    graphs
        A graph with how many jobs of it there are.
    units_per_pod
        How many units a pod has room for, of all jobs together; as many as a file may have if None.

    Raises
    ------
    InputError
        If a graph does not communicate, a count is not positive, units find no room, or jobs and
        network do not agree.
    """
    check_network(network, name)
    room = MAX_UNITS if units_per_pod is None else units_per_pod
    placement = Placement(network, room, "units_per_pod")
    jobs: list[Job] = []
    for graph, copies in graphs:
        refuse_if(
            (not 1 <= copies <= MAX_JOBS, f"must be from 1 to {MAX_JOBS:,} (got {copies:,})"),
            item=f"graph {graph.name}",
            field="count",
        )
        names = [f"{graph.name}-{k}" if copies > 1 else graph.name for k in range(copies)]
        of = derived(graph)
        jobs += [placement.placed(one, *of) for one in names]
    return validated(name, network, jobs, name)


def pods_of(cluster: Cluster) -> PodNetwork:
    """Return one pod group for the servers of a cluster, whose ports are together as fast as the servers' own.

    A link works one way and takes a port at both ends; a port of the cluster works both ways, unless it is
    half duplex.
    """
    pods = min(PODS, cluster.servers)
    servers_per_pod = -(-cluster.servers // pods)
    ways = 2 if cluster.duplex == "full" else 1
    gbps = ways * servers_per_pod * cluster.ports_per_server * cluster.port_gbps
    return PodNetwork(1, pods, PORTS, gbps / PORTS, gbps, cluster.reconfiguration_ms)


def computing_ms(graph: TaskGraph) -> float:
    """Return how long the compute tasks take on their devices, one at a time, when transfers take no time.

    A device takes, of the tasks that wait for it, the one that waited longest; ties in the order of
    the graph.
    """
    following: list[list[int]] = [[] for _ in graph.tasks]
    for i, task in enumerate(graph.tasks):
        for dependency in task.dependencies:
            following[graph.position[dependency]].append(i)
    free: dict[tuple[int, int], float] = {}

    def end_of(i: int, since: float) -> float:
        task = graph.tasks[i]
        if task.kind not in COMPUTE_KINDS:
            return since
        device = task.server or 0, task.device or 0
        free[device] = max(since, free.get(device, 0.0)) + (task.duration_ms or 0.0)
        return free[device]

    return last_end(following, end_of)


def _traffic(graph: TaskGraph) -> dict[Collective, list[tuple[float, tuple[int, ...]]]]:
    """Return of each collective the bytes and the servers of its tasks."""
    ring, exchange, direct = (
        [_moved(task) for task in graph.tasks if task.kind in kinds]
        for kinds in (_RING_KINDS, ("all_to_all",), (*TRANSFER_KINDS, "broadcast"))
    )
    traffic: dict[Collective, list[tuple[float, tuple[int, ...]]]] = {"ring_all_reduce": ring}
    direct = [part for part in direct if part[0] > 0]
    if direct and _centre(direct) >= 0:
        traffic["parameter_server"] = direct
    else:
        exchange += direct
    traffic["all_to_all"] = exchange
    return {name: [part for part in parts if part[0] > 0] for name, parts in traffic.items()}


def _moved(task: Task) -> tuple[float, tuple[int, ...]]:
    """Return the bytes that a task moves over the network in all, and between which servers."""
    size = task.size_bytes or 0.0
    if task.kind not in COLLECTIVE_KINDS:
        ends = (task.source or 0, task.destination or 0)
        return (size if ends[0] != ends[1] else 0.0), ends
    members = task.members or ()
    return size * max(0, len(members) - 1) * (2 if task.kind == "all_reduce" else 1), members


def _centre(parts: Sequence[tuple[float, tuple[int, ...]]]) -> int:
    """Return the server that is an end of every transfer between more than two servers, or -1."""
    ends = Counter(server for _, servers in parts for server in set(servers))
    server, count = max(ends.items(), key=lambda item: (item[1], -item[0]))
    return server if count == len(parts) and len(ends) > 2 else -1
