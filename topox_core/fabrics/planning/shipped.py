"""What comes with the release for the samples: the schedule of a first visit, and the plan for another delay that beats its rules."""

import gzip
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from topox_core.errors import InputError
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.fabrics.run import JobRequest
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.latest import Latest
from topox_core.schedule.results.result import Result, TracePoint
from topox_core.schedule.results.result_file import from_record, to_record
from topox_core.schedule.source import Family, TraceSource

FOLDER = SAMPLE_FOLDER / "answers"
Record = Mapping[str, Any]
_plans = Latest[PassedPlan | None](64)


def file_of(graph: TaskGraph, what: str = "") -> Path:
    """Return where ``tools/make_answers.py`` writes the schedule of a sample, or the ``plan`` for another delay that beats it."""
    return FOLDER / f"{graph.digest[:16]}{what and '.'}{what}.json.gz"


def record_in(file: Path) -> Record:
    """Return what such a file holds; nothing where there is none."""
    record: Record = json.loads(gzip.decompress(file.read_bytes())) if file.is_file() else {}
    return record


def shipped_plan(job: JobRequest) -> PassedPlan | None:
    """Return the plan that the release has for a job, whatever its cluster; None for any other graph or choice."""
    file = file_of(job.task_graph, "plan")
    if not file.is_file():
        return None
    key = job.task_graph.digest, repr(job.settings.question)
    if key not in _plans:
        record = record_in(file)
        # Without the name of whose cluster asked first: others are served from here too.
        made_on = job.cluster.changed(**record["result"]["settings"]["cluster"], name="")
        _plans[key] = PassedPlan.of(result_of(record, replace(job, cluster=made_on)))
    return _plans.get(key)


def result_of(record: Record, job: JobRequest) -> Result | None:
    """Return the result of a record; None of an empty one, or one that was made with other choices or for another cluster."""
    with suppress(InputError):
        return _result(record, job) if record else None
    return None


def answer_record(result: Result) -> dict[str, Any]:
    """Return a result as plain values with what its own file leaves out: who found it, and what it beat."""
    return {
        "result": to_record(result),
        "lowered_bound_ms": result.lowered_bound_ms,
        "trace": [
            (
                *(point.elapsed_s, point.incumbent_ms, point.bound_ms),
                *((one.family, one.name) for one in (point.source, point.bound_source)),
            )
            for point in result.trace
        ],
        "alternative": result.alternative and answer_record(result.alternative),
    }


def _result(record: Record, job: JobRequest) -> Result:
    own = from_record(record["result"], job.task_graph, job.cluster, job.settings)
    trace = tuple(
        TracePoint(elapsed_s, incumbent_ms, bound_ms, _source(found), _source(bounded))
        for elapsed_s, incumbent_ms, bound_ms, found, bounded in record["trace"]
    )
    other = record["alternative"]
    return replace(
        own,
        lowered_bound_ms=record["lowered_bound_ms"],
        trace=trace,
        alternative=None if other is None else _result(other, job),
        message=str(record["result"].get("message", "")),
    )


def _source(words: tuple[str, str]) -> TraceSource:
    family, name = words
    return TraceSource(cast("Family", family), name)
