"""The job mixes in ``sample_data``: small inputs, each with a line on what to see in it."""

from dataclasses import dataclass, field
from typing import Any

from topox_core.io.sample_folder import SAMPLE_FOLDER, named_sample, samples_of
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


JOB_SAMPLES = samples_of("job_mixes", JobSample)


def load_job_sample(name: str) -> Jobs:
    """Return a sample's network and jobs.

    Raises
    ------
    InputError
        If there is no sample of that name.
    """
    sample = named_sample(JOB_SAMPLES, name)
    return load_jobs((SAMPLE_FOLDER / sample.file).read_bytes(), sample.file)
