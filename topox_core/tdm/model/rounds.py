"""From a grouping to a round: who communicates when, how long each phase lasts, when circuits change.

Two groups in the drafts' form take four phases, A push, B push, A pull, B pull, each as long as the
longer of the communicating and the computing (eq. 1 to 3). With all-train phases, or with other
numbers of groups, the windows of the groups follow each other in two half rounds, and each half
ends in a phase in which all train.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.tdm.model.jobs import Job, Jobs, Reading
from topox_core.tdm.model.links import allocated, refuse_few_ports
from topox_core.tdm.model.round import (
    NOBODY,
    PULL,
    PUSH,
    Cycle,
    Phase,
    Round,
    RoundTracePoint,
    Status,
    StoppedBy,
)
from topox_core.tdm.model.stage_table import Rings, Stage, StageTable
from topox_core.tdm.model.traffic import Ring, between_pods_gbit, inside_pods_gbit

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Barrier = Literal["one", "pod_group"]


def after_push_s(job: Job, reading: Reading) -> float:
    """Return what a job computes between push and pull: an iteration, or the aggregation of a parameter server."""
    return (
        job.aggregate_s
        if job.collective == "parameter_server" and not reading.eq3_literal
        else job.train_s
    )


def computing_s(
    jobs: Jobs,
    group: Sequence[int],
    groups: int,
    reading: Reading,
    members: Sequence[int] | None = None,
) -> Floats:
    """Return the longest computing of each group, ``[way, group]``: after its push and after its pull (T' and T).

    Parameters
    ----------
    members
        Indices of the jobs that count; all if None.
    """
    longest = np.zeros((2, groups))
    for n in range(len(jobs)) if members is None else members:
        job, k = jobs.jobs[n], group[n]
        longest[PUSH, k] = max(longest[PUSH, k], after_push_s(job, reading))
        longest[PULL, k] = max(longest[PULL, k], job.train_s)
    return longest


def circuits_change(links: NDArray[np.integer]) -> Bools:
    """Return, for ``[group, i, j]`` links of the pushes, whether circuits change when each group's stages begin.

    A group without links leaves circuits as they are. Its pull begins with a change whenever its
    push does: the links of a pull are transposed, and so are those before it.
    """
    change = np.zeros(len(links), np.bool_)
    using = [k for k in range(len(links)) if links[k].any()]
    for at, k in enumerate(using):
        before = links[using[at - 1]]
        change[k] = not np.array_equal(links[k], before.T if at == 0 else before)
    return change


def phases_of(
    communication_s: Floats,
    computing: Floats,
    dark_s: Floats,
    *,
    all_train: bool,
    delay_inside: bool,
) -> tuple[Phase, ...]:
    """Return the phases of one cycle.

    A phase lasts its dark time plus the longer of communicating and computing (with
    ``delay_inside`` computing goes on in the dark). In a phase in which all train, computing is
    what is still missing of the half round max(sum of c_k, max of c_k + T_k).

    Parameters
    ----------
    communication_s
        Of each group.
    computing
        ``[way, group]`` as :func:`computing_s` returns it.
    dark_s
        Reconfiguration at the start of each group's stages.
    """
    plan: list[tuple[int, int, float, float, float]] = []
    groups = len(communication_s)
    for way in (PUSH, PULL):
        if groups == 2 and not all_train:
            # (0, push) stands against what B does after its last stage, its pull; (1, push) against
            # what A does after its push.
            others = (computing[1 - way, 1], computing[way, 0])
            plan += [(k, way, dark_s[k], communication_s[k], others[k]) for k in (0, 1)]
            continue
        plan += [(k, way, dark_s[k], communication_s[k], 0.0) for k in range(groups)]
        busy = communication_s + (dark_s if delay_inside else 0.0)
        plan.append(
            (NOBODY, way, 0.0, 0.0, max(0.0, float((busy + computing[way]).max() - busy.sum())))
        )
    phases: list[Phase] = []
    now = 0.0
    for k, way, dark, talk, compute in plan:
        length = max(dark + talk, compute) if delay_inside else dark + max(talk, compute)
        phases.append(
            Phase(k, way, now, now + float(length), float(dark), float(talk), float(compute))
        )
        now += float(length)
    return tuple(phases)


@dataclass(frozen=True)
class _Measured:
    """Links ``[pod group, group, i, j]``, times ``[pod group, group]`` and rings of a grouping."""

    links: NDArray[np.int32]
    communication_s: Floats
    rings: tuple[Ring, ...]


def _split(
    table: StageTable, pod_group: int, group: Sequence[int], groups: int
) -> list[tuple[int, ...]]:
    return [tuple(n for n in table.members[pod_group] if group[n] == k) for k in range(groups)]


def _measured(
    table: StageTable, group: Sequence[int], groups: int, static: bool, rings: Rings | None
) -> _Measured:
    network = table.jobs.network
    pods = network.pods_per_group
    links = np.zeros((network.pod_groups, groups, pods, pods), np.int32)
    seconds = np.zeros((network.pod_groups, groups))
    chosen: list[Ring] = [()] * len(table.jobs)
    for g, members in enumerate(table.members):
        if not members:
            continue
        parts = _split(table, g, group, groups)
        if static:
            stage = table.stage(g, members, rings)
            seconds[g], links[g] = _one_topology(table, stage, parts)
            laps = stage.rings
        else:
            stages = [table.stage(g, part, rings) for part in parts]
            links[g], seconds[g] = (
                [stage.links for stage in stages],
                [stage.communication_s for stage in stages],
            )
            laps = {n: lap for stage in stages for n, lap in stage.rings.items()}
        for n, lap in laps.items():
            chosen[n] = lap
    return _Measured(links, seconds, tuple(chosen))


def _one_topology(
    table: StageTable, whole: Stage, parts: Sequence[tuple[int, ...]]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the times of a pod group's parts over one topology, kept through push and pull, and its links.

    Links follow the largest demand that each pair has in any stage, which is symmetric: what one
    stage pushes it pulls.
    """
    jobs, fabric = table.jobs.jobs, table.fabric
    shape = whole.demand_gbit.shape
    demand = [
        sum(
            (between_pods_gbit(jobs[n], table.reading, whole.rings[n]) for n in part),
            np.zeros(shape),
        )
        for part in parts
    ]
    tor_s = [
        float(sum((inside_pods_gbit(jobs[n]) for n in part), np.zeros(shape[0])).max())
        / fabric.tor_gbps
        for part in parts
    ]
    most = np.maximum.reduce([np.maximum(matrix, matrix.T) for matrix in demand])
    longest, links = allocated(most, 0.0, fabric, both_ways=True)
    if longest == np.inf:
        refuse_few_ports(most, fabric.ports, whole.pod_group, table.jobs.name, both_ways=True)
    linked = links > 0
    pair_s = [
        float((matrix[linked] / (fabric.port_gbps * links[linked])).max(initial=0.0))
        for matrix in demand
    ]
    return np.maximum(pair_s, tor_s), links


def _cycles(
    table: StageTable,
    measured: _Measured,
    group: Sequence[int],
    groups: int,
    all_train: bool,
    barrier: Barrier,
    static: bool,
) -> tuple[Cycle, ...]:
    network = table.jobs.network
    everything = tuple(range(network.pod_groups))
    delay_s = 0.0 if static else network.reconfiguration_ms / 1000.0
    dark_s = np.zeros((network.pod_groups, groups))
    if delay_s:
        dark_s[:] = delay_s * np.array([circuits_change(links) for links in measured.links])
    cycles = []
    for behind in [everything] if barrier == "one" else [(g,) for g in everything]:
        rows = list(behind)
        members = None if barrier == "one" else table.members[behind[0]]
        phases = phases_of(
            measured.communication_s[rows].max(0),
            computing_s(table.jobs, group, groups, table.reading, members),
            dark_s[rows].max(0),
            all_train=all_train,
            delay_inside=table.reading.delay_inside,
        )
        cycles.append(Cycle(behind, phases))
    return tuple(cycles)


def round_of(
    table: StageTable,
    group: Sequence[int],
    *,
    algorithm: str,
    groups: int = 2,
    all_train: bool = False,
    barrier: Barrier = "one",
    static: bool = False,
    rings: Rings | None = None,
    status: Status = "feasible",
    stopped_by: StoppedBy = "heuristic",
    bound_s: float = 0.0,
    bound_by: str = "",
    bound_for: str = "",
    wall_s: float = 0.0,
    seed: int = 0,
    story: Sequence[RoundTracePoint] = (),
    message: str = "",
) -> Round:
    """Return the round of a grouping, with its phases, rings and links.

    Parameters
    ----------
    group
        Of each job, 0 to ``groups`` - 1.
    all_train
        Allow a phase in which all train after the second and after the fourth; always so unless
        there are two groups.
    barrier
        ``one`` for all pod groups together, or one for each ``pod_group``.
    static
        Keep one topology through the round.
    rings
        Rings by job, where Algorithm 3 is not to decide.

    Raises
    ------
    InputError
        If ports are too few for the pairs that must talk in a stage.
    """
    measured = _measured(table, group, groups, static, rings)
    cycles = _cycles(table, measured, group, groups, all_train, barrier, static)
    if status == "feasible" and bound_s >= max(cycle.round_s for cycle in cycles) * (1.0 - 1e-9):
        status, stopped_by = "optimal", "proof"
    return Round(
        jobs=table.jobs,
        reading=table.reading,
        algorithm=algorithm,
        status=status,
        stopped_by=stopped_by,
        group=tuple(int(k) for k in group),
        groups=groups,
        rings=measured.rings,
        links=measured.links,
        communication_s=measured.communication_s,
        cycles=cycles,
        bound_s=bound_s,
        bound_by=bound_by,
        bound_for=bound_for,
        wall_s=wall_s,
        seed=seed,
        static=static,
        story=tuple(story),
        message=message,
    )


def round_s_of(
    table: StageTable,
    group: Sequence[int],
    *,
    groups: int = 2,
    all_train: bool = False,
    barrier: Barrier = "one",
    static: bool = False,
    rings: Rings | None = None,
) -> float:
    """Return only the length of the round of :func:`round_of`, in seconds; infinite where ports are too few."""
    if not static and not rings:
        seconds = np.array(
            [
                [table.communication_s(g, part) for part in _split(table, g, group, groups)]
                for g in range(len(table.members))
            ]
        )
        if np.isinf(seconds).any():
            return float("inf")
        if not table.jobs.network.reconfiguration_ms:
            measured = _Measured(np.zeros((0, groups, 0, 0), np.int32), seconds, ())
            cycles = _cycles(table, measured, group, groups, all_train, barrier, static)
            return max(cycle.round_s for cycle in cycles)
    measured = _measured(table, group, groups, static, rings)
    return max(
        cycle.round_s
        for cycle in _cycles(table, measured, group, groups, all_train, barrier, static)
    )


def iterations_per_s(answer: Round) -> Floats:
    """Return the training iterations of each job in a second.

    A ring or all-to-all job trains before each of its two communications, a parameter-server job
    once a round: between its pull and its next push. This holds under every reading: eq. 3 as
    printed charges the training of a parameter-server job twice, but it still pushes and pulls
    once.
    """
    cycle_s = np.array([answer.cycle_of(g).round_s for g in range(answer.jobs.network.pod_groups)])
    per_round = np.array(
        [1.0 if job.collective == "parameter_server" else 2.0 for job in answer.jobs.jobs]
    )
    with np.errstate(
        divide="ignore"
    ):  # nothing to send and nothing to compute: as often as one likes
        rates: Floats = per_round / cycle_s[[job.pod_group for job in answer.jobs.jobs]]
    return rates
