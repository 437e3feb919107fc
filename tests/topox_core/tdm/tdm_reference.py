"""Algorithms 1 to 3 of the drafts line by line, slow and without anything of the product but its data.

Every neighbour is worked out from nothing: all four stages, all pod groups.
"""

import math
from bisect import bisect_left

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading

Floats = NDArray[np.float64]
Ring = tuple[int, ...]


def algorithm_3(pods: tuple[int, ...], linked: list[list[bool]]) -> tuple[int, ...]:
    """A ring through ``pods`` from the arcs that are linked anyway; the drafts' line numbers beside."""
    ring = nx.DiGraph((a, b) for a in pods for b in pods if a != b and linked[a][b])  # 1-3
    ring.add_nodes_from(pods)
    for n in pods:  # 4
        while ring.in_degree(n) > 1:  # 5-8
            ring.remove_edge(min(ring.pred[n], key=lambda a: (-ring.out_degree(a), a)), n)
        while ring.out_degree(n) > 1:  # 9-12
            ring.remove_edge(n, min(ring.succ[n], key=lambda b: (-ring.in_degree(b), b)))
    paths = []  # 14
    for part in nx.weakly_connected_components(ring):
        first = next((n for n in part if not ring.pred[n]), min(part))
        paths.append(list(nx.dfs_preorder_nodes(ring, first)))
    return tuple(n for path in sorted(paths) for n in path)  # 15


def pushed_gbit(job: Job, ring: Ring, reading: Reading) -> Floats:
    """What a job pushes from pod to pod (eq. 4), over a ring if it has one."""
    units = np.array(job.units_per_pod, float)
    demand = np.zeros((len(units), len(units)))
    if job.collective == "parameter_server":
        demand[:, job.server_pod] = units * job.volume_gbit
    elif job.collective == "all_to_all":
        demand = np.outer(units, units) * job.volume_gbit
    arcs = 2 * (len(ring) - 1) / len(ring) if ring and reading.physical_ring else 1
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        demand[a, b] = job.volume_gbit * arcs
    np.fill_diagonal(demand, 0)
    return demand


def local_gbit(job: Job) -> Floats:
    """What the servers of each pod exchange with their switch (eq. 5)."""
    times = {
        "parameter_server": 1,
        "ring_all_reduce": 2,
        "all_to_all": 2 * (sum(job.units_per_pod) - 1),
    }
    return times[job.collective] * job.volume_gbit * np.array(job.units_per_pod, float)


def least_s(demand: Floats, tor_s: float, network: PodNetwork) -> float:
    """The least time over all allocations of links: the least at which every pod has ports enough."""
    pairs, seconds = np.argwhere(demand > 0), demand[demand > 0] / network.port_gbps
    if not len(seconds):
        return tor_s
    times = np.unique(np.outer(seconds, 1.0 / np.arange(1, network.ports_per_pod + 1)))

    def enough(position: int) -> bool:
        links = np.ceil(seconds / times[position] * (1 - 1e-12))
        return bool(np.bincount(pairs.ravel(), np.repeat(links, 2)).max() <= network.ports_per_pod)

    first = bisect_left(range(len(times)), True, key=enough)
    return max(float(times[first]), tor_s) if first < len(times) else math.inf


def algorithm_2(
    jobs: Jobs, members: list[int], pod_group: int, reading: Reading
) -> tuple[float, NDArray[np.int64], dict[int, Ring]]:
    """Push time of the members in a pod group, links and rings; infinite time where ports are too few."""
    network = jobs.network
    here = {n: jobs.jobs[n] for n in sorted(members) if jobs.jobs[n].pod_group == pod_group}
    local, rings = np.zeros(network.pods_per_group), {}
    demand = np.zeros((len(local), len(local)))
    for job in here.values():  # 2-4
        demand += pushed_gbit(job, (), reading)
        local += local_gbit(job)
    for n, job in here.items():  # 5-8
        if job.collective == "ring_all_reduce" and len(job.pods) > 1:
            rings[n] = algorithm_3(job.pods, (demand > 0).tolist())
            demand += pushed_gbit(job, rings[n], reading)
    links = (demand > 0).astype(int)  # 9
    free = network.ports_per_pod - links.sum(0) - links.sum(1)
    if free.min() < 0:
        return math.inf, links, rings
    tor_s = float(local.max()) / network.tor_gbps  # 10
    while True:  # 11
        times = demand / (network.port_gbps * np.maximum(links, 1))
        i, j = divmod(int(times.argmax()), len(times))  # 12
        if tor_s >= times[i, j] or not free[i] or not free[j]:  # 13-15
            return max(tor_s, float(times[i, j])), links, rings
        links[i, j] += 1  # 16
        free[[i, j]] -= 1


def round_s(jobs: Jobs, group: list[int], reading: Reading) -> float:
    """Eq. 1 with eq. 3, and the reconfiguration at each of the four transitions."""
    groups = range(jobs.network.pod_groups)
    members = [[n for n in range(len(jobs)) if group[n] == k] for k in (0, 1)]
    found = [[algorithm_2(jobs, of, g, reading) for g in groups] for of in members]
    stages = [  # (k, t) in the order of 2t + k + 1: group, communication of each pod group, its links
        (k, t, max(one[0] for one in found[k]), [one[1].T if t else one[1] for one in found[k]])
        for t in (0, 1)
        for k in (0, 1)
    ]
    delay_s = jobs.network.reconfiguration_ms / 1000
    changed = [False] * 4
    for g in groups:
        # Circuits stay as they are through a stage in which nobody of the pod group communicates
        # between pods.
        using = [s for s in range(4) if stages[s][3][g].any()]
        for at, s in enumerate(using):
            changed[s] |= not np.array_equal(stages[s][3][g], stages[using[at - 1]][3][g])
    total = 0.0
    for s, (k, t, talk_s, _) in enumerate(stages):
        # Group 1 stands before its push in (0, 0) and after it in (0, 1); group 0 after its push in
        # (1, 0).
        pulled_last, train_s = k == t, 0.0
        for job in (job for n, job in enumerate(jobs.jobs) if group[n] != k):
            server = job.collective == "parameter_server" and not reading.eq3_literal
            train_s = max(train_s, job.train_s if pulled_last or not server else job.aggregate_s)
        dark = delay_s if changed[s] else 0.0
        total += (
            max(talk_s + dark, train_s) if reading.delay_inside else dark + max(talk_s, train_s)
        )
    return total


def algorithm_1(jobs: Jobs, reading: Reading) -> tuple[list[int], float]:
    """Hill climbing with its loop the right way round."""
    group = [0] * len(jobs)
    best = round_s(jobs, group, reading)
    while True:
        flips = [[k ^ (n == m) for m, k in enumerate(group)] for n in range(len(jobs))]
        neighbours = [(round_s(jobs, flipped, reading), flipped) for flipped in flips]
        least = min(value for value, _ in neighbours)
        # Equal to the last digits is equal: the order of a sum must not decide.
        if not least < best * (1 - 1e-12):
            return group, best
        group = next(flip for value, flip in neighbours if value <= least * (1 + 1e-12))
        best = least
