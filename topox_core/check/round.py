"""The independent checker of a round of jobs that share a fabric: everything is worked out anew from the jobs alone.

Equation numbers are those of the draft on time-division multiplexing, as docs/tdm.md reads them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from topox_core.check.report import CheckReport, ConstraintFinding
from topox_core.check.round_phases import RELATIVE, check_phases, same
from topox_core.tdm.model.jobs import Job, Reading
from topox_core.tdm.model.round import Round

Float = NDArray[np.float64]
Int = NDArray[np.int64]


def check_round(answer: Round) -> CheckReport:
    """Return the verdict on a round, constraint by constraint.

    Nothing is taken from the algorithms: demand, completion times, barriers and claims are
    recomputed from the jobs. A round that breaks a constraint is no error: the report names it.
    """
    shape = _shape(answer)
    if shape.report().violated:
        return CheckReport((shape.report(),))
    groups, rings = _groups(answer), _rings(answer)
    if groups.report().violated or rings.report().violated:
        return CheckReport(tuple(finding.report() for finding in (shape, groups, rings)))
    inter, intra = demands(answer)
    findings = [
        shape,
        groups,
        rings,
        *_links(answer),
        *_served(answer, inter, intra),
        *check_phases(answer),
        _claims(answer),
    ]
    return CheckReport(tuple(finding.report() for finding in findings))


def inter_pod(job: Job, ring: tuple[int, ...], reading: Reading) -> Float:
    """Return what a job sends from pod to pod while it pushes, in Gbit (eq. 4)."""
    pods = len(job.units_per_pod)
    sent = np.zeros((pods, pods))
    units = np.asarray(job.units_per_pod, np.float64)
    if job.collective == "parameter_server":
        assert job.server_pod is not None
        sent[:, job.server_pod] = units * job.volume_gbit
    elif job.collective == "all_to_all":
        sent = np.outer(units, units) * job.volume_gbit
    elif len(ring) > 1:
        factor = 2 * (len(ring) - 1) / len(ring) if reading.physical_ring else 1.0
        sent[list(ring), list(ring[1:] + ring[:1])] = factor * job.volume_gbit
    np.fill_diagonal(sent, 0.0)
    return sent


def intra_pod(job: Job) -> Float:
    """Return what passes between each pod's servers and its top-of-rack switch, in Gbit (eq. 5; units, not GPUs, less one)."""
    times = {"parameter_server": 1.0, "ring_all_reduce": 2.0, "all_to_all": 2.0 * (job.units - 1)}[
        job.collective
    ]
    return np.asarray(job.units_per_pod, np.float64) * (times * job.volume_gbit)


def demands(answer: Round) -> tuple[Float, Float]:
    """Return ``[pod group, group, i, j]`` and ``[pod group, group, i]``: what each group pushes in each pod group, in Gbit."""
    network = answer.jobs.network
    inter = np.zeros(
        (network.pod_groups, answer.groups, network.pods_per_group, network.pods_per_group)
    )
    intra = np.zeros(inter.shape[:3])
    for n, job in enumerate(answer.jobs.jobs):
        inter[job.pod_group, answer.group[n]] += inter_pod(job, answer.rings[n], answer.reading)
        intra[job.pod_group, answer.group[n]] += intra_pod(job)
    return inter, intra


def _shape(answer: Round) -> ConstraintFinding:
    network, jobs = answer.jobs.network, len(answer.jobs)
    finding = ConstraintFinding("everything is there", "format", 5)
    if not answer.cycles and jobs:
        finding.add("round", f"there is none to check (status {answer.status})")
    pods = network.pods_per_group
    for name, value, expected in (
        ("links", answer.links, (network.pod_groups, answer.groups, pods, pods)),
        ("communication_s", answer.communication_s, (network.pod_groups, answer.groups)),
    ):
        if np.shape(value) != expected:
            finding.add(name, f"must have the shape {expected} (got {np.shape(value)})")
    for name, count in (("group", len(answer.group)), ("rings", len(answer.rings))):
        if count != jobs:
            finding.add(name, f"must have one entry a job, {jobs} (got {count})")
    return finding


def _groups(answer: Round) -> ConstraintFinding:
    """Eq. 1: the groups share out the jobs."""
    finding = ConstraintFinding("every job is in one group", "1", len(answer.group))
    for n, group in enumerate(answer.group):
        if not 0 <= group < answer.groups:
            finding.add(f"job {answer.jobs.jobs[n].id}", f"is in group {group} of {answer.groups}")
    return finding


def _rings(answer: Round) -> ConstraintFinding:
    """Eq. 7: in and out once at every pod of the job and nowhere else, in one lap."""
    finding = ConstraintFinding("a ring is one ring", "7", len(answer.jobs))
    for job, ring in zip(answer.jobs.jobs, answer.rings, strict=True):
        pods = job.pods if job.collective == "ring_all_reduce" and len(job.pods) > 1 else ()
        if sorted(ring) != list(pods):
            finding.add(
                f"job {job.id}",
                f"its ring must pass once through the pods {list(pods)} (got {list(ring)})",
            )
    return finding


def _links(answer: Round) -> list[ConstraintFinding]:
    network, links = answer.jobs.network, answer.links
    whole = ConstraintFinding("links are whole numbers between two pods", "6", links.size)
    if not np.issubdtype(links.dtype, np.integer):
        fractions = np.argwhere(links != np.floor(links))
        whole.each(
            range(len(fractions)),
            lambda n: (_stage(*fractions[n]), f"{links[tuple(fractions[n])]} links"),
        )
    wrong = np.argwhere(
        (links < 0) | ((links != 0) & np.eye(network.pods_per_group, dtype=np.bool_))
    )
    whole.each(range(len(wrong)), lambda n: (_stage(*wrong[n]), f"{links[tuple(wrong[n])]} links"))
    # Half-duplex: a link takes a port in each of its pods, whichever way it goes.
    used = links.sum(axis=3, dtype=np.int64) + links.sum(axis=2, dtype=np.int64)
    ports = ConstraintFinding("ports of a pod", "6", used.size)
    over = np.argwhere(used > network.ports_per_pod)
    ports.each(
        range(len(over)),
        lambda n: (
            _stage(*over[n]),
            f"uses {used[tuple(over[n])]} of {network.ports_per_pod} ports",
        ),
    )
    return [whole, ports]


def needed_s(answer: Round, inter: Float, intra: Float) -> tuple[Float, NDArray[np.intp]]:
    """Return the time that each group's push takes in each pod group on its links (eq. 2), and pairs that have none."""
    network = answer.jobs.network
    ways = [inter, np.swapaxes(inter, 2, 3)] if answer.static else [inter]
    demand = np.maximum.reduce(ways)
    speed = network.port_gbps * np.maximum(answer.links, 0)
    # Written so that a pair without links takes for ever only if it has something to send.
    pair_s = np.where(
        demand > 0,
        np.divide(demand, speed, out=np.full(demand.shape, np.inf), where=speed > 0),
        0.0,
    )
    optical = pair_s.max(axis=(2, 3), initial=0.0)
    return np.maximum(optical, intra.max(axis=2, initial=0.0) / network.tor_gbps), np.argwhere(
        np.isinf(pair_s)
    )


def _served(answer: Round, inter: Float, intra: Float) -> list[ConstraintFinding]:
    """Eq. 2: links times speed times time covers every pair's demand, and the top-of-rack switches keep up."""
    needed, cut_off = needed_s(answer, inter, intra)
    pairs = ConstraintFinding("a pair that talks has a link", "2", int((inter > 0).sum()))
    pairs.each(
        range(len(cut_off)),
        lambda n: (_stage(*cut_off[n]), f"{inter[tuple(cut_off[n])]:.9g} Gbit and no link"),
    )
    claimed = answer.communication_s
    times = ConstraintFinding("demand is served in the time claimed", "2", claimed.size)
    wrong = np.argwhere(~same(claimed, needed))
    times.each(
        range(len(wrong)),
        lambda n: (
            _stage(*wrong[n]),
            f"takes {needed[tuple(wrong[n])]:.9g} s (claimed {claimed[tuple(wrong[n])]:.9g} s)",
        ),
    )
    return [pairs, times]


def _claims(answer: Round) -> ConstraintFinding:
    """Check what the answer says of itself: its bound cannot lie above it, and an optimum lies on its bound."""
    finding = ConstraintFinding("bound", "bound", 2)
    slack = RELATIVE * max(1.0, answer.round_s)
    if (
        not answer.bound_s >= 0
        or math.isinf(answer.bound_s)
        or answer.bound_s > answer.round_s + slack
    ):
        finding.add(
            "bound",
            f"{answer.bound_s:.9g} s is no lower bound of a round of {answer.round_s:.9g} s",
        )
    elif (
        answer.status == "optimal"
        and answer.round_s > answer.bound_s + 1e-4 * answer.round_s + slack
    ):
        finding.add(
            "status",
            f"optimal, but the bound is {answer.bound_s:.9g} s and the round {answer.round_s:.9g} s",
        )
    if answer.status in ("infeasible", "unknown") and answer.cycles:
        finding.add("status", f"{answer.status}, but there is a round")
    return finding


def _stage(pod_group: int, group: int, pod: int | None = None, other: int | None = None) -> str:
    words = f"pod group {pod_group}, group {group}"
    if pod is None:
        return words
    return f"{words}, pod {pod}" if other is None else f"{words}, pods {pod} to {other}"
