"""The six studies one after the other: a point is the study's own, what is kept is not computed again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.document_parts import part_of
from benchmarks.who_is_right_page import computed, job_part
from topox_core.cli.main import main
from topox_core.library.run_library import RunLibrary
from topox_core.rivals.jobs import study_of_job
from topox_core.rivals.rivals_run import RivalsRun, known_results
from topox_core.runs.run import finish
from topox_core.studies.study_run import StudyRun, plan_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "who-is-right.md"


@pytest.mark.long
def test_a_cancelled_run_keeps_what_it_has(tmp_path: Path) -> None:
    library = RunLibrary.open(tmp_path / "runs.sqlite")
    run = RivalsRun(library, 1, ("serving", "pipeline"))
    while run.running and not run.progress.done:
        run.poll()
    run.cancel()
    done = sum(one.done for one in run.result().values())
    assert not run.running and done > 0
    assert sum(one.done for one in known_results(library).values()) >= done


def test_a_job_nobody_knows_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "rivals", "--jobs", "dense,sparse"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--jobs: must be one of dense, experts" in error


@pytest.mark.long
def test_its_points_are_those_of_the_study_and_none_is_computed_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.sqlite"
    library = RunLibrary.open(path)
    alone = finish(StudyRun(plan_of(study_of_job("serving")), library, 2))
    assert alone is not None
    together = RivalsRun(library, 2, ("serving",))
    assert not together.running
    assert together.result()["serving"].rows == alone.rows
    given = ["study", "rivals", "--jobs", "serving", "--library", str(path), "--json"]
    assert main(given) == 0
    assert len(json.loads(capsys.readouterr().out)["cells"]) == 36


@pytest.mark.long
@pytest.mark.parametrize("job", ["pipeline", "serving"])
def test_the_document_is_what_a_run_gives(job: str) -> None:
    """If it is not: python -m benchmarks.who_is_right_page --document docs/who-is-right.md."""
    cells = computed((job,))
    assert part_of(DOCUMENT.read_text(encoding="utf-8"), job) == job_part(cells, job)
