"""Rounds that nobody can undercut, whatever the grouping and the rings.

The communication time of a set of jobs is bounded without knowing its rings
(:mod:`topox_core.tdm.kernels.relaxed`). With these times for those of Algorithm 3 the best grouping
is found as :mod:`topox_core.tdm.algorithms.combination` finds it, and is a bound. Where a pod group
has too many jobs for all their splits, the lightest ones are left out, which only shortens times.
"""

from dataclasses import replace

import numpy as np

from topox_core.runs.run import never
from topox_core.tdm.algorithms.combination import Subsets, best_split, points_of, splits_of, timed
from topox_core.tdm.kernels.grouping import best_alone, three_windows
from topox_core.tdm.kernels.relaxed import Demand, least_stages
from topox_core.tdm.model.jobs import (
    DRAFT,
    SAME,
    Jobs,
    Reading,
    Round,
    RoundBound,
    RoundForm,
    StoppedBy,
    with_bound,
)
from topox_core.tdm.model.rounds import computing_s
from topox_core.tdm.model.traffic import job_seconds

# Jobs of a pod group that are not left out: of 14 the bound is hardly higher than of 12, and each
# doubles the work. Fewer where pods are very many: pod groups times pairs of pods times subsets.
MAX_JOBS, FEWEST_JOBS = 12, 6
WORK = 1 << 25


def lower_bound(jobs: Jobs, reading: Reading, form: RoundForm = DRAFT) -> RoundBound:
    """Return a time that no round of a form undercuts, over every grouping, every ring and every allocation of links.

    Reconfiguration counts nothing. Infinite where some pod has too few ports for every grouping.
    """
    round_s, by = _least(jobs, reading, form) if len(jobs) else (0.0, "no jobs")
    return RoundBound(round_s, by, f"{form.words}, any rings", any_rings=True)


def bounded(answer: Round) -> Round:
    """Return a round with the bound over every grouping and every ring, unless it has a higher one of that sort.

    A bound for given rings only says less and gives way. Where the bound meets the round, that is a
    proof, and what the message had to say about how the search ended no longer matters.
    """
    # With one pod group, its own barrier is the one barrier.
    form = replace(answer.form, per_pod_group=len(answer.cycles) > 1)
    bound = lower_bound(answer.jobs, answer.reading, form)
    if answer.bound.any_rings and answer.bound_s >= bound.round_s:
        return answer
    stopped_by: StoppedBy = "heuristic" if answer.stopped_by == "proof" else answer.stopped_by
    answer = with_bound(answer, bound, stopped_by)
    return replace(answer, message="") if answer.status == "optimal" else answer


def _least(jobs: Jobs, reading: Reading, form: RoundForm) -> tuple[float, str]:
    """Return the bound with what sets it: computing alone, one pod group alone, or several together."""
    used = sorted({job.pod_group for job in jobs.jobs})
    parts = [_relaxed(jobs, reading, g) for g in used]
    points = points_of([splits_of(one, switching=False) for one in parts])
    # With three groups the bound of one pod group alone holds for one barrier too.
    alone = [
        three_windows(one.seconds, one.computing_s)[0]
        if form.groups > 2
        else best_alone(points, at, 0.0, False, form.all_train)[0]
        for at, one in enumerate(parts)
    ]
    worst = int(np.argmax(alone))
    if alone[worst] == np.inf:
        return np.inf, _no_ports(jobs, reading, used[worst])
    one_barrier = form.groups == 2 and not form.per_pod_group
    if not one_barrier:
        return float(alone[worst]), f"the jobs of pod group {used[worst]}, in any grouping"
    together = best_split(points, 0.0, False, form.all_train, never)[1]
    if float(computing_s(jobs, (0,) * len(jobs), 1, reading).sum()) >= together * (1 - SAME):
        longest = max(jobs.jobs, key=lambda job: job.train_s)
        return together, f"computing alone, including that of job {longest.id}"
    everything = "over every grouping and every ring"
    if alone[worst] >= together * (1 - SAME):
        return together, f"ports and servers of pod group {used[worst]}, {everything}"
    above_all = f"above all pod group {used[worst]}, {everything}"
    return together, f"several pod groups behind one barrier, {above_all}"


def _relaxed(jobs: Jobs, reading: Reading, pod_group: int) -> Subsets:
    """Return all subsets of a pod group's heaviest jobs with what they need at least."""
    network = jobs.network
    members, demand = _heaviest(jobs, reading, pod_group)
    most = np.log2(WORK / (network.pod_groups * network.pods_per_group**2))
    kept = int(np.clip(most, FEWEST_JOBS, MAX_JOBS))
    pair, arc, on, local = demand
    heaviest = Demand(pair[:kept], arc[:kept], on[:kept], local[:kept])
    seconds = least_stages(heaviest, network.ports_per_pod)
    never_changes = np.zeros((2, len(seconds)), np.bool_)
    bundles = tuple((n,) for n in members[:kept])
    return timed(jobs, reading, bundles, seconds, never_changes)


def _heaviest(jobs: Jobs, reading: Reading, pod_group: int) -> tuple[list[int], Demand]:
    """Return a pod group's jobs by what each sends through the busiest pod, the heaviest first, and what they need."""
    members = jobs.of_group(pod_group)
    rows = [job_seconds(jobs.jobs[n], jobs.network, reading) for n in members]
    pair, arc, local = (np.array(column) for column in zip(*rows, strict=True))
    on = np.array([jobs.jobs[n].units_per_pod for n in members]) > 0
    on &= arc[:, None] > 0
    through = pair.sum(1) + pair.sum(2) + 2 * arc[:, None] * on
    order = np.lexsort((-through.max(1), -through[:, through.sum(0).argmax()]))
    return [members[n] for n in order], Demand(pair[order], arc[order], on[order], local[order])


def _no_ports(jobs: Jobs, reading: Reading, pod_group: int) -> str:
    """Name a pod that has too few ports, and for which job."""
    members, demand = _heaviest(jobs, reading, pod_group)
    for n, pair, on in zip(members, demand.pair > 0, demand.on, strict=True):
        need = np.maximum(pair.sum(0) + pair.sum(1), 2 * on)
        if need.max() > jobs.network.ports_per_pod:
            pod = int(need.argmax())
            return f"pod {pod} of pod group {pod_group} needs {int(need[pod])} ports for job {jobs.jobs[n].id} alone"
    return f"pod group {pod_group} has too few ports for every grouping"
