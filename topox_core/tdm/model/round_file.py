"""A round as a file: what ``tdm --json`` prints and what is downloaded, format ``topox-round`` version 1."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from topox_core.io.json import record_of
from topox_core.tdm.model.bottleneck import bottlenecks
from topox_core.tdm.model.jobs import NOBODY, PULL, Cycle, Job, Phase, Round, TdmSettings
from topox_core.tdm.model.rounds import iterations_per_s

FORMAT, VERSION = "topox-round", 1
EVERYBODY_TRAINS = "all train"


def to_record(
    answer: Round,
    *,
    non_tdm_s: float | None = None,
    settings: TdmSettings | None = None,
) -> dict[str, Any]:
    """Return a round as JSON keys; times that are infinite or unknown are null.

    Parameters
    ----------
    non_tdm_s
        The round of the same jobs without time division, for comparison.
    settings
        What was asked for; the reading alone, if None.
    """
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": answer.jobs.name,
        "jobs_digest": answer.jobs.digest,
        **record_of(answer, "algorithm status stopped_by"),
        "round_s": _finite(answer.round_s),
        "mean_round_s": _finite(answer.mean_round_s),
        "non_tdm_s": None if non_tdm_s is None else _finite(non_tdm_s),
        "bound_s": _finite(answer.bound_s),
        "gap": answer.gap,
        "bound_by": answer.bound.by,
        "bound_for": answer.bound.holds_for,
        **record_of(answer, "wall_s seed static message"),
        "settings": {"reading": asdict(answer.reading)} if settings is None else asdict(settings),
        "groups": [
            [job.id for n, job in enumerate(answer.jobs.jobs) if answer.group[n] == k]
            for k in range(answer.groups)
        ],
        "cycles": [_cycle(cycle) for cycle in answer.cycles],
        "bottlenecks": [limit.as_record(answer) for limit in bottlenecks(answer)],
        "communication_s": [
            [_finite(float(seconds)) for seconds in row] for row in answer.communication_s
        ],
    }
    if non_tdm_s:
        record["reduction"] = 1.0 - answer.round_s / non_tdm_s
    record["links"] = links_of(answer)
    record["jobs"] = jobs_of(answer)
    return record


def links_of(answer: Round) -> list[dict[str, int]]:
    """Return the links of every push that has any: pod group, group, from, to, and how many.

    Pull turns them round.
    """
    return [
        {
            "pod_group": int(g),
            "group": int(k),
            "from": int(i),
            "to": int(j),
            "links": int(answer.links[g, k, i, j]),
        }
        for g, k, i, j in np.argwhere(answer.links)
    ]


def jobs_of(answer: Round) -> list[dict[str, Any]]:
    """Return one record a job: where it is, its group, its ring, and its iterations a second."""
    rates = iterations_per_s(answer)
    return [_job(answer, n, job, float(rates[n])) for n, job in enumerate(answer.jobs.jobs)]


def _job(answer: Round, n: int, job: Job, rate: float) -> dict[str, Any]:
    return {
        **record_of(job, "id collective pod_group"),
        "group": answer.group[n],
        "ring": list(answer.rings[n]),
        "round_s": answer.cycle_of(job.pod_group).round_s,
        "iterations_per_s": _finite(rate),
    }


def _cycle(cycle: Cycle) -> dict[str, Any]:
    return {
        "pod_groups": list(cycle.pod_groups),
        "round_s": cycle.round_s,
        "stages": [_stage(position + 1, phase) for position, phase in enumerate(cycle.phases)],
    }


def _stage(number: int, phase: Phase) -> dict[str, Any]:
    what = (
        EVERYBODY_TRAINS
        if phase.group == NOBODY
        else f"group {phase.group} {'pulls' if phase.way == PULL else 'pushes'}"
    )
    return {
        "stage": number,
        "what": what,
        **record_of(phase, "start_s end_s dark_s communication_s computing_s"),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
