"""From a grouping to a round: who communicates when, how long each phase lasts, when circuits change.

Two groups in the drafts' form take four phases, A push, B push, A pull, B pull, each as long as the
longer of the communicating and the computing (eq. 1 to 3). With all-train phases, or with other
numbers of groups, the windows of the groups follow each other in two half rounds, and each half
ends in a phase in which all train.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topox_core.tdm.model.jobs import (
    DRAFT,
    NOBODY,
    PULL,
    PUSH,
    Cycle,
    Job,
    Jobs,
    Phase,
    Reading,
    Round,
    RoundForm,
    RoundTracePoint,
)
from topox_core.tdm.model.traffic import (
    Floats,
    Ring,
    Rings,
    Stage,
    StageTable,
    allocated,
    between_pods_gbit,
    inside_pods_gbit,
    refuse_few_ports,
)

Bools = NDArray[np.bool_]


def aggregates(job: Job, reading: Reading) -> bool:
    """Return whether a job only aggregates between push and pull, as a parameter server does, instead of training."""
    return job.collective == "parameter_server" and not reading.eq3_literal


def after_push_s(job: Job, reading: Reading) -> float:
    """Return what a job computes between push and pull: an iteration, or the aggregation of a parameter server."""
    return computing_after(job, PUSH, reading)[1]


def computing_after(job: Job, way: int, reading: Reading) -> tuple[str, float]:
    """Return what a job does after a push or a pull, ``train`` or ``aggregate``, and for how many seconds."""
    if way == PUSH and aggregates(job, reading):
        return "aggregate", job.aggregate_s
    return "train", job.train_s


def computing_of(jobs: Jobs, reading: Reading) -> Floats:
    """Return what each job computes, ``[way, job]``: after its push and after its pull."""
    each = [[computing_after(job, way, reading)[1] for job in jobs.jobs] for way in (PUSH, PULL)]
    return np.array(each, float)


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
    each, longest = computing_of(jobs, reading), np.zeros((2, groups))
    for n in range(len(jobs)) if members is None else members:
        longest[:, group[n]] = np.maximum(longest[:, group[n]], each[:, n])
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


def round_of(
    table: StageTable, group: Sequence[int], form: RoundForm = DRAFT, rings: Rings | None = None
) -> Round:
    """Return the round of a grouping, with its phases, rings and links.

    Parameters
    ----------
    group
        Of each job, 0 to ``form.groups`` - 1.
    rings
        Rings by job, where Algorithm 3 is not to decide.

    Raises
    ------
    TooFewPortsError
        If ports are too few for the pairs that must talk in a stage.
    """
    network = table.jobs.network
    pods = network.pods_per_group
    links = np.zeros((network.pod_groups, form.groups, pods, pods), np.int32)
    seconds = np.zeros((network.pod_groups, form.groups))
    chosen: list[Ring] = [()] * len(table.jobs)
    for g, members in enumerate(table.members):
        if not members:
            continue
        parts = [tuple(n for n in members if group[n] == k) for k in range(form.groups)]
        if form.static:
            stages = [table.stage(g, members, rings)]
            seconds[g], links[g] = _one_topology(table, stages[0], parts)
        else:
            stages = [table.stage(g, part, rings) for part in parts]
            links[g] = [stage.links for stage in stages]
            seconds[g] = [stage.communication_s for stage in stages]
        for stage in stages:
            for n, ring in stage.rings.items():
                chosen[n] = ring
    return Round(
        jobs=table.jobs,
        reading=table.reading,
        form=form,
        group=tuple(int(k) for k in group),
        rings=tuple(chosen),
        links=links,
        communication_s=seconds,
        cycles=cycles_of(table, group, form, seconds, links),
    )


def cycles_of(
    table: StageTable,
    group: Sequence[int],
    form: RoundForm,
    communication_s: Floats,
    links: NDArray[np.integer],
) -> tuple[Cycle, ...]:
    """Return the cycles of a grouping, given its ``[pod group, group]`` times and its links."""
    network = table.jobs.network
    everything = tuple(range(network.pod_groups))
    dark_s = np.zeros((network.pod_groups, form.groups))
    if network.reconfiguration_ms and not form.static:
        change = np.array([circuits_change(of_pod_group) for of_pod_group in links])
        dark_s[:] = network.reconfiguration_ms / 1000.0 * change
    cycles = []
    for behind in [(g,) for g in everything] if form.per_pod_group else [everything]:
        rows = list(behind)
        members = table.members[behind[0]] if form.per_pod_group else None
        phases = phases_of(
            communication_s[rows].max(0),
            computing_s(table.jobs, group, form.groups, table.reading, members),
            dark_s[rows].max(0),
            all_train=form.all_train,
            delay_inside=table.reading.delay_inside,
        )
        cycles.append(Cycle(behind, phases))
    return tuple(cycles)


def _one_topology(
    table: StageTable, whole: Stage, parts: Sequence[tuple[int, ...]]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the times of a pod group's parts over one topology, kept through push and pull, and its links.

    Links follow the largest demand that each pair has in any stage, which is symmetric: what one
    stage pushes it pulls.
    """
    jobs, fabric = table.jobs.jobs, table.fabric
    pods = len(whole.demand_gbit)
    demand, tor_s = np.zeros((len(parts), pods, pods)), []
    for sent, part in zip(demand, parts, strict=True):
        local = np.zeros(pods)
        for n in part:
            sent += between_pods_gbit(jobs[n], table.reading, whole.rings[n])
            local += inside_pods_gbit(jobs[n])
        tor_s.append(float(local.max()) / fabric.tor_gbps)
    most = np.maximum(demand, demand.transpose(0, 2, 1)).max(0)
    longest, links = allocated(most, 0.0, fabric, both_ways=True)
    if longest == np.inf:
        refuse_few_ports(most, fabric.ports, whole.pod_group, table.jobs.name, both_ways=True)
    linked = links > 0
    pair_s = [
        float((sent[linked] / (fabric.port_gbps * links[linked])).max(initial=0.0))
        for sent in demand
    ]
    return np.maximum(pair_s, tor_s), links


def alone_s(jobs: Jobs, reading: Reading) -> Floats:
    """Return how long a round of each job takes with the fabric to itself, in its own pods: push, compute, pull, compute.

    Raises
    ------
    TooFewPortsError
        If ports are too few even for one job.
    """
    each = (replace(jobs, jobs=(job,)) for job in jobs.jobs)
    return np.array([round_of(StageTable(one, reading), (0,)).round_s for one in each])


def iterations_per_round(jobs: Jobs) -> Floats:
    """Return the training iterations of each job in a round: 1 with a parameter server, 2 otherwise."""
    return np.array([1.0 if job.collective == "parameter_server" else 2.0 for job in jobs.jobs])


def iterations_alike(jobs: Jobs) -> float:
    """Return how many iterations of each job a round has; 0 where jobs differ."""
    each = set(iterations_per_round(jobs).tolist())
    return each.pop() if len(each) == 1 else 0.0


def an_iteration_of(answer: Round) -> Round:
    """Return the half of a round in which each job trains once, where all train twice; else the round.

    The other half repeats it: the same stages, with their links turned round.
    """
    if iterations_alike(answer.jobs) != 2:
        return answer
    bound, cycles = answer.bound, answer.cycles
    by = bound.by.replace("push, compute, pull and compute", "send and compute")
    return replace(
        answer,
        cycles=tuple(replace(one, phases=one.phases[: len(one.phases) // 2]) for one in cycles),
        bound=replace(
            bound,
            round_s=bound.round_s / 2,
            by=by.removesuffix(", twice"),
            holds_for=bound.holds_for.replace("in four phases", "that send in turns"),
        ),
        trace=per_iteration(answer.trace, 2.0),
    )


def per_iteration(
    trace: Sequence[RoundTracePoint], iterations: float
) -> tuple[RoundTracePoint, ...]:
    """Return a trace with times of an iteration in place of a round."""
    return tuple(
        replace(
            one, round_s=one.round_s and one.round_s / iterations, bound_s=one.bound_s / iterations
        )
        for one in trace
    )


def both_ways(cycle: Cycle) -> bool:
    """Return whether a cycle has pulls beside its pushes; not the half of a round that is an iteration."""
    return any(phase.way == PULL for phase in cycle.phases)


def iterations_per_s(answer: Round) -> Floats:
    """Return the training iterations of each job in a second.

    A ring or all-to-all job trains before each of its two communications, a parameter-server job
    once a round: between its pull and its next push. This holds under every reading: eq. 3 as
    printed charges the training of a parameter-server job twice, but it still pushes and pulls
    once.
    """
    cycle_s = np.array([answer.cycle_of(g).round_s for g in range(answer.jobs.network.pod_groups)])
    per_round = iterations_per_round(answer.jobs)
    # With nothing to send and nothing to compute the rate is infinite.
    with np.errstate(divide="ignore"):
        rates: Floats = per_round / cycle_s[[job.pod_group for job in answer.jobs.jobs]]
    return rates


@dataclass(frozen=True)
class Bar:
    """A stretch in the lane of a group: what it does, from when, for how long, and the job that takes longest."""

    group: int
    kind: str
    start_s: float
    length_s: float
    note: str = ""


def numbered(cycle: Cycle) -> list[tuple[int, Phase]]:
    """Return the stages of a cycle that take time, counted from 1: a phase in which all train may be over at once."""
    return list(enumerate((phase for phase in cycle.phases if phase.end_s > phase.start_s), 1))


def members(round_: Round, cycle: Cycle, group: int) -> list[Job]:
    """Return the jobs of a group behind a cycle's barrier."""
    behind = set(cycle.pod_groups)
    return [
        job
        for job, k in zip(round_.jobs.jobs, round_.group, strict=True)
        if k == group and job.pod_group in behind
    ]


def bars(round_: Round, cycle: Cycle) -> list[Bar]:
    """Return what every group does in a cycle: its own stages, and computing from the barrier after each of them.

    Computing that goes on into the next round is drawn at the beginning, where it ends.
    """
    drawn: list[Bar] = []
    for group in range(round_.groups):
        mine = members(round_, cycle, group)
        if not mine:
            continue
        for place, phase in enumerate(cycle.phases):
            if phase.group != group:
                continue
            pushes = "push" if both_ways(cycle) else "send"
            kind = pushes if phase.way == PUSH else "pull"
            if phase.communication_s > 0:
                drawn.append(Bar(group, kind, phase.start_s + phase.dark_s, phase.communication_s))
            after = cycle.phases[(place + 1) % len(cycle.phases)]
            begin = after.start_s + (0.0 if round_.reading.delay_inside else after.dark_s)
            drawn += [
                Bar(group, kind, start, length, job.id)
                for kind, job, length in _computing(round_, mine, phase.way)
                for start, length in _wrapped(begin, length, cycle.round_s)
            ]
    return drawn


def _computing(round_: Round, mine: Sequence[Job], way: int) -> list[tuple[str, Job, float]]:
    """Return what a group computes after a stage of its own: kind, the job that takes longest, seconds."""
    longest: dict[str, tuple[str, Job, float]] = {}
    for job in mine:
        kind, seconds = computing_after(job, way, round_.reading)
        if seconds > longest.get(kind, (kind, job, 0.0))[2]:
            longest[kind] = kind, job, seconds
    return [longest[kind] for kind in ("train", "aggregate") if kind in longest]


def _wrapped(start: float, length: float, round_s: float) -> list[tuple[float, float]]:
    """Return a stretch within a round, in two parts if it crosses its end."""
    if start + length <= round_s * (1 + 1e-9) or round_s <= 0:
        return [(start, length)]
    return [(start, round_s - start), (0.0, start + length - round_s)]


def cycle_in_view(round_: Round, pod_group: int | None) -> Cycle:
    """Return the cycle of a pod group, or the longest of a round."""
    if pod_group is None:
        return max(round_.cycles, key=lambda cycle: cycle.round_s)
    return round_.cycle_of(pod_group)
