"""A round as a file: what ``tdm --json`` prints and what is downloaded, format ``topox-round`` version 1."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from topox_core.io.content import record_of
from topox_core.tdm.model.bottleneck import bottlenecks
from topox_core.tdm.model.jobs import NOBODY, PULL, Phase, Round, TdmSettings
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
        "cycles": [
            {
                "pod_groups": list(cycle.pod_groups),
                "round_s": cycle.round_s,
                "stages": [_stage(number, phase) for number, phase in enumerate(cycle.phases, 1)],
            }
            for cycle in answer.cycles
        ],
        "bottlenecks": [limit.as_record(answer) for limit in bottlenecks(answer)],
        "communication_s": [
            [_finite(float(seconds)) for seconds in row] for row in answer.communication_s
        ],
    }
    if non_tdm_s:
        record["reduction"] = 1.0 - answer.round_s / non_tdm_s
    # The links of every push that has any; pull turns them round.
    record["links"] = [
        {
            "pod_group": int(g),
            "group": int(k),
            "from": int(i),
            "to": int(j),
            "links": int(answer.links[g, k, i, j]),
        }
        for g, k, i, j in np.argwhere(answer.links)
    ]
    rates = iterations_per_s(answer).tolist()
    record["jobs"] = [
        {
            **record_of(job, "id collective pod_group"),
            "group": answer.group[n],
            "ring": list(answer.rings[n]),
            "round_s": answer.cycle_of(job.pod_group).round_s,
            "iterations_per_s": _finite(rates[n]),
        }
        for n, job in enumerate(answer.jobs.jobs)
    ]
    return record


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
