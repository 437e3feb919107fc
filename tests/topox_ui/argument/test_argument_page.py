"""Who is right: before a run, with points of the library, and as a link has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import address, chart, control, words
from topox_core.library.run_library import RunLibrary
from topox_core.rivals.claims import CLAIMS
from topox_core.rivals.jobs import JOBS, study_of_job
from topox_core.runs.executor import LocalExecutor
from topox_core.studies.point import run_cell
from topox_core.studies.study_run import plan_of

PAGE = "pages/18_Who_is_right.py"


def some_points() -> None:
    """Keep a few points of one job, as a run does."""
    plan = plan_of(study_of_job("serving"))
    library = RunLibrary.open(Path(os.environ["TOPOX_LIBRARY"]))
    chosen = [
        number
        for number, point in enumerate(plan.study.points)
        if (value := plan.study.values(point))["fabric"] in ("static", "reactive")
        and (value["cluster.degree"], value["cluster.port_gbps"]) == (2, 100.0)
        and value["cluster.reconfiguration_ms"] in (1.0, 100.0)
    ]
    library.add([run_cell(plan.job, plan.cells[number]) for number in chosen])


def test_before_a_run_the_page_asks_and_lists_every_claim(visit: Any) -> None:
    at = visit(PAGE)
    assert not at.exception
    text = words(at)
    assert "Is it worth changing circuits inside an iteration" in text
    assert all(claim.says in text for claim in CLAIMS)
    assert "Run the six jobs" in at.button(key="argue").label


def test_what_the_library_has_is_drawn_and_the_rest_offered(visit: Any) -> None:
    some_points()
    at = visit(PAGE)
    assert not at.exception
    assert "So far: Changing circuits inside an iteration" in words(at)
    written = [one["text"] for one in chart(at, "who_is_right")["layout"]["annotations"]]
    assert JOBS["serving"] in written
    assert "missing points" in at.button(key="argue").label
    control(at, "argument_network").set_value("4x400").run()
    assert address(at)["argument.network"] == "4x400"
    assert not at.exception


def test_a_link_with_nonsense_is_one_line(visit: Any) -> None:
    at = visit(PAGE, **{"argument.network": "3x3"})
    assert not at.exception
    assert at.warning or at.error


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One worker process for this file, which the server would share among all sessions."""
    executor = LocalExecutor(1)
    monkeypatch.setattr("topox_ui.argument.running.shared_workers", lambda: executor)
    yield
    executor.kill()


@pytest.mark.long
def test_a_run_is_computed_beside_the_page_and_can_be_stopped(visit: Any, beside: None) -> None:
    at = visit(PAGE)
    at.button(key="argue").click().run()
    assert not at.exception
    wait_until(lambda: any(b.key == "cancel_argue" for b in at.button), at.run)
    at.button(key="cancel_argue").click().run()
    wait_until(lambda: not any(b.key == "cancel_argue" for b in at.button), at.run)
    assert not at.exception and not at.error
    assert "argue" in {b.key for b in at.button}
