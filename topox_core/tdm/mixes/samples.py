"""The job mixes in ``sample_data``: small inputs, each with a line on what to see in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from topox_core.errors import InputError
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.tdm.model.jobs import Jobs
from topox_core.tdm.model.jobs_file import load_jobs


@dataclass(frozen=True)
class JobSample:
    """One job mix as ``sample_data/index.json`` describes it.

    Attributes
    ----------
    name, title, see
        Its key, a heading, and one line on what to see in it.
    jobs, pods
        How many there are.
    file
        File name within :data:`SAMPLE_FOLDER`.
    non_tdm_s, hill_climbing_s
        Round without time division, and as Algorithm 1 leaves it.
    optimum_s
        The shortest round of two groups in four phases over all groupings and rings where it is
        known, and ``proof`` says in a line why it holds; else None.
    made_by
        Keywords of :class:`topox_core.tdm.mixes.deployment.SetUp` that made it; empty if written by hand.
    """

    name: str
    title: str
    see: str
    jobs: int
    pods: int
    file: str
    non_tdm_s: float
    hill_climbing_s: float
    optimum_s: float | None = None
    proof: str = ""
    made_by: dict[str, Any] = field(default_factory=dict)

    def jobs_bytes(self) -> bytes:
        """Return the file as it is."""
        return (SAMPLE_FOLDER / self.file).read_bytes()


@cache
def _index() -> dict[str, JobSample]:
    record = json.loads((SAMPLE_FOLDER / "index.json").read_text(encoding="utf-8"))
    return {entry["name"]: JobSample(**entry) for entry in record["job_mixes"]}


class _Samples(Mapping[str, JobSample]):
    """The index, read when it is first asked for."""

    def __getitem__(self, name: str) -> JobSample:
        return _index()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_index())

    def __len__(self) -> int:
        return len(_index())


JOB_SAMPLES: Mapping[str, JobSample] = _Samples()


def load_job_sample(name: str) -> Jobs:
    """Return a sample's network and jobs.

    Raises
    ------
    InputError
        If there is no sample of that name.
    """
    if name not in JOB_SAMPLES:
        raise InputError(
            f"must be one of {', '.join(JOB_SAMPLES)} (got {name[:80]})",
            file="sample",
            field="name",
        )
    sample = JOB_SAMPLES[name]
    return load_jobs(sample.jobs_bytes(), sample.file)
