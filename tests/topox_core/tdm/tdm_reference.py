"""Algorithms 1 to 3 of the drafts line by line in plain Python, slow and without anything of the product but its data.

Every neighbour is worked out from nothing: all four stages, all pod groups.
"""

from __future__ import annotations

import math

from topox_core.tdm.model.jobs import Job, Jobs, Reading

Matrix = list[list[float]]
Counts = list[list[int]]


def zeros(pods: int) -> Matrix:
    return [[0.0] * pods for _ in range(pods)]


def transposed(matrix: Counts) -> Counts:
    return [list(row) for row in zip(*matrix, strict=True)]


def algorithm_3(pods: tuple[int, ...], linked: list[list[bool]]) -> tuple[int, ...]:
    """A ring through ``pods`` from the arcs that are linked anyway; the drafts' line numbers beside."""
    ring = {(a, b) for a in pods for b in pods if a != b and linked[a][b]}  # 1-3

    def into(n: int) -> list[int]:
        return [a for a in pods if (a, n) in ring]

    def out(n: int) -> list[int]:
        return [b for b in pods if (n, b) in ring]

    for n in pods:  # 4
        while len(into(n)) > 1:  # 5-8
            ring.remove((min(into(n), key=lambda a: (-len(out(a)), a)), n))
        while len(out(n)) > 1:  # 9-12
            ring.remove((n, min(out(n), key=lambda b: (-len(into(b)), b))))
    paths = []  # 14
    left = set(pods)
    for n in pods:
        if not into(n):
            paths.append([n])
            while out(paths[-1][-1]):
                paths[-1].append(out(paths[-1][-1])[0])
            left -= set(paths[-1])
    while left:
        cycle = [min(left)]
        while out(cycle[-1])[0] != cycle[0]:
            cycle.append(out(cycle[-1])[0])
        left -= set(cycle)
        paths.append(cycle)
    return tuple(n for path in sorted(paths) for n in path)  # 15


def local_gbit(job: Job, pod: int) -> float:
    units = job.units_per_pod[pod]
    if job.collective == "parameter_server":
        return units * job.volume_gbit
    if job.collective == "ring_all_reduce":
        return 2 * units * job.volume_gbit
    return 2 * units * job.volume_gbit * (sum(job.units_per_pod) - 1)


def algorithm_2(
    jobs: Jobs, members: list[int], pod_group: int, reading: Reading
) -> tuple[float, Counts, dict[int, tuple[int, ...]]]:
    """Push time of the members in a pod group, links and rings; infinite time where ports are too few."""
    network = jobs.network
    size, speed, ports = network.pods_per_group, network.port_gbps, network.ports_per_pod
    demand, local, rings = zeros(size), [0.0] * size, {}
    here = [n for n in sorted(members) if jobs.jobs[n].pod_group == pod_group]
    for n in here:  # 2-4
        job = jobs.jobs[n]
        for i, units in enumerate(job.units_per_pod):
            local[i] += local_gbit(job, i)
            for j, others in enumerate(job.units_per_pod):
                if i != j and job.collective == "parameter_server" and j == job.server_pod:
                    demand[i][j] += units * job.volume_gbit
                if i != j and job.collective == "all_to_all":
                    demand[i][j] += units * others * job.volume_gbit
    for n in here:  # 5-8
        job = jobs.jobs[n]
        pods = tuple(i for i, units in enumerate(job.units_per_pod) if units)
        if job.collective == "ring_all_reduce" and len(pods) > 1:
            ring = algorithm_3(pods, [[value > 0 for value in row] for row in demand])
            rings[n] = ring
            arc = job.volume_gbit * (
                2 * (len(pods) - 1) / len(pods) if reading.physical_ring else 1
            )
            for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
                demand[a][b] += arc
    links = [[int(value > 0) for value in row] for row in demand]  # 9
    free = [ports - sum(links[i]) - sum(row[i] for row in links) for i in range(size)]
    if min(free) < 0:
        return math.inf, links, rings
    tor_s = max(local) / network.tor_gbps  # 10
    while True:  # 11
        times = [
            (demand[i][j] / (speed * links[i][j]), -i, -j)
            for i in range(size)
            for j in range(size)
            if links[i][j]
        ]
        oxc_s, i, j = max(times, default=(0.0, 0, 0))  # 12
        i, j = -i, -j
        if tor_s >= oxc_s or not free[i] or not free[j]:  # 13-15
            return max(tor_s, oxc_s), links, rings
        links[i][j] += 1  # 16
        free[i] -= 1
        free[j] -= 1


def round_s(jobs: Jobs, group: list[int], reading: Reading) -> float:
    """Eq. 1 with eq. 3, and the reconfiguration at each of the four transitions."""
    groups = range(jobs.network.pod_groups)
    stages = []  # (k, t) in the order of 2t + k + 1: group, communication of each pod group, its links
    for t in (0, 1):
        for k in (0, 1):
            members = [n for n in range(len(jobs)) if group[n] == k]
            found = [algorithm_2(jobs, members, g, reading) for g in groups]
            links = [transposed(one[1]) if t else one[1] for one in found]
            stages.append((k, t, max(one[0] for one in found), links))
    delay_s = jobs.network.reconfiguration_ms / 1000
    changed = [False] * 4
    for g in groups:
        # Circuits stay as they are through a stage in which nobody of the pod group communicates
        # between pods.
        using = [s for s in range(4) if any(map(any, stages[s][3][g]))]
        for at, s in enumerate(using):
            changed[s] |= stages[s][3][g] != stages[using[at - 1]][3][g]
    total = 0.0
    for s, (k, t, talk_s, _) in enumerate(stages):
        train_s = 0.0
        for n, job in enumerate(jobs.jobs):
            if group[n] != k:
                # Group 1 stands before its push in (0, 0) and after it in (0, 1); group 0 after its
                # push in (1, 0).
                pulled_last = (k == 0 and t == 0) or (k == 1 and t == 1)
                server = job.collective == "parameter_server" and not reading.eq3_literal
                train_s = max(
                    train_s, job.train_s if pulled_last or not server else job.aggregate_s
                )
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
        neighbours = []
        for n in range(len(jobs)):
            flipped = [1 - k if m == n else k for m, k in enumerate(group)]
            neighbours.append((round_s(jobs, flipped, reading), n, flipped))
        least = min(value for value, _, _ in neighbours)
        # Equal to the last digits is equal: the order of a sum must not decide.
        if not least < best * (1 - 1e-12):
            return group, best
        _, _, group = next(one for one in neighbours if one[0] <= least * (1 + 1e-12))
        best = least
