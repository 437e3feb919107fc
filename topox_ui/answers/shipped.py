"""The first answers of the samples, which come with the workbench: a first visit waits for no compiler.

``tools/make_answers.py`` writes them; each is read and tested by the checker like any file.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from topox_core.check.checker import check
from topox_core.errors import InputError
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.schedule.result import Result, TracePoint
from topox_core.schedule.result_file import to_record
from topox_core.schedule.result_from_file import from_record
from topox_core.schedule.source import Family, TraceSource
from topox_ui.answers.case import Case, listing

FOLDER = SAMPLE_FOLDER / "answers"


def shipped_answer(case: Case) -> Result | None:
    """Return the list schedule of a sample as a first visit shows it; None for any other graph, cluster or choice."""
    file = FOLDER / f"{case.graph.digest[:16]}.json.gz"
    if not file.is_file():
        return None
    record = json.loads(gzip.decompress(file.read_bytes()))
    try:
        result = _result(record, case)
    except InputError:  # made with other choices, or for another cluster
        return None
    return result if check(case.graph, case.cluster, record["result"]).ok else None


def answer_record(result: Result) -> dict[str, Any]:
    """Return a result as plain values with what its own file leaves out: who found it, and what it beat."""
    return {
        "result": to_record(result),
        "bound_tasks": result.bound_tasks,
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


def _result(record: Mapping[str, Any], case: Case) -> Result:
    own = from_record(record["result"], case.graph, case.cluster, listing(case.settings))
    trace = tuple(
        TracePoint(*numbers, _source(found), _source(bounded))
        for *numbers, found, bounded in record["trace"]
    )
    other = record["alternative"]
    return replace(
        own,
        bound_tasks=tuple(record["bound_tasks"]),
        lowered_bound_ms=record["lowered_bound_ms"],
        trace=trace,
        alternative=None if other is None else _result(other, case),
        message=str(record["result"].get("message", "")),
    )


def _source(words: tuple[str, str]) -> TraceSource:
    family, name = words
    return TraceSource(cast("Family", family), name)
