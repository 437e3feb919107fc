"""Who is right: as it comes with the release, with points of the library, and as a link has it."""

from typing import Any

from tests.topox_ui.conftest import address, chart, choose, forget_answers, library, words
from topox_core.claims.cells import JOBS, study_of_job
from topox_core.claims.claims import CLAIMS
from topox_core.studies.point import run_cell
from topox_core.studies.study_run import plan_of

PAGE = "Claims against each other"


def some_points() -> None:
    """Keep the points of one cell of one job, as a run does."""
    plan = plan_of(study_of_job("serving"))
    chosen = [
        number
        for number, point in enumerate(plan.study.points)
        if (value := plan.study.values(point))["cluster.reconfiguration_ms"] == 100.0
        and (value["cluster.degree"], value["cluster.port_gbps"]) == (2, 100.0)
    ]
    library().add([run_cell(plan.job, plan.cells[number]) for number in chosen])


def test_every_claim_is_judged_by_the_release_and_what_the_library_lacks_can_be_run_here(
    visit: Any,
) -> None:
    at = visit(PAGE, **{"argument.network": "3x3"})
    why = "must be one of 2x100, 2x400, 4x100, 4x400 (got '3x3')"
    refused = [f"Ignored in the link: argument.network=3x3 ({why})"]
    assert [one.value for one in at.warning] == refused
    assert all(claim.says in words(at) for claim in CLAIMS)
    assert "cell so far" not in words(at) and "computed for this release" in words(at)
    written = [one["text"] for one in chart(at, "who_is_right")["layout"]["annotations"]]
    assert {*JOBS.values()} <= {*written}
    assert "Run the six jobs here" in at.button(key="argue").label
    some_points()
    forget_answers()  # of the session before
    at = visit(PAGE)
    assert "computed for this release" in words(at)
    assert "missing points" in at.button(key="argue").label
    assert address(choose(at, argument_network="4x400"))["argument.network"] == "4x400"
