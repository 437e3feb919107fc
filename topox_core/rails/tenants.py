"""Several jobs on the switch of one rail, each with servers and ports of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from topox_core.errors import wrong_setting
from topox_core.rails.iteration import RailIteration


def together(jobs: Sequence[RailIteration]) -> RailIteration:
    """Return jobs side by side as one iteration: ranks, groups and nodes of each after those of the ones before.

    All begin at time 0. Nothing of one waits for another.

    Raises
    ------
    InputError
        If there is no job.
    """
    if not jobs:
        raise wrong_setting("jobs", "at least one job is needed (the list is empty)")
    ranks = np.concatenate(([0], np.cumsum([job.ranks for job in jobs])))
    groups = np.concatenate(([0], np.cumsum([len(job.groups) for job in jobs])))
    nodes = np.concatenate(([0], np.cumsum([len(job) for job in jobs])))
    predecessors = np.concatenate(([0], np.cumsum([len(job.pred_idx) for job in jobs])))
    issues = np.concatenate(([0], np.cumsum([len(job.issue_idx) for job in jobs])))

    def joined(field: str) -> np.ndarray:
        return np.concatenate([getattr(job, field) for job in jobs])

    def shifted(field: str, by: np.ndarray) -> np.ndarray:
        """Return a column of numbers, each job's behind those before; -1 stays."""
        parts = [getattr(job, field) for job in jobs]
        return np.concatenate(
            [np.where(part < 0, part, part + at) for part, at in zip(parts, by, strict=False)]
        ).astype(parts[0].dtype)

    def pointer(field: str, by: np.ndarray) -> np.ndarray:
        parts = [getattr(job, field) for job in jobs]
        rows = [part[:-1] + at for part, at in zip(parts, by, strict=False)]
        return np.concatenate([*rows, [by[-1]]]).astype(parts[0].dtype)

    return RailIteration(
        name=" and ".join(job.name for job in jobs),
        ranks=int(ranks[-1]),
        stands_for=joined("stands_for"),
        stage=joined("stage"),
        replica=joined("replica"),
        kind=joined("kind"),
        rank=shifted("rank", ranks),
        duration_ms=joined("duration_ms"),
        work=joined("work"),
        group=shifted("group", groups),
        size_bytes=joined("size_bytes"),
        microbatch=joined("microbatch"),
        layer=joined("layer"),
        label=tuple(label for job in jobs for label in job.label),
        pred_ptr=pointer("pred_ptr", predecessors),
        pred_idx=shifted("pred_idx", nodes),
        issue_ptr=pointer("issue_ptr", issues),
        issue_idx=shifted("issue_idx", nodes),
        groups=tuple(
            replace(
                group,
                name=f"job {number}, {group.name}",
                ranks=tuple(rank + int(ranks[number]) for rank in group.ranks),
            )
            for number, job in enumerate(jobs)
            for group in job.groups
        ),
    )
