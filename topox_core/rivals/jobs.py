"""The six jobs on which the claims are tried: each a study file, fixed before it is run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from topox_core.studies.study import Study
from topox_core.studies.study_file import load_study

FOLDER = Path(__file__).with_name("studies")
# In the order of every table.
JOBS: Mapping[str, str] = {
    "dense": "Dense transformer",
    "experts": "Mixture of experts",
    "recommendation": "Recommendation (DLRM)",
    "sharded": "Sharded weights (FSDP)",
    "pipeline": "Deep pipeline",
    "serving": "Serving in bursts",
}


def file_of(job: str) -> Path:
    """Return the study file of a job."""
    return FOLDER / f"{job}.study.json"


@cache
def study_of_job(job: str) -> Study:
    """Return the study of a job, as its file has it."""
    path = file_of(job)
    return load_study(path.read_bytes(), path.name)
