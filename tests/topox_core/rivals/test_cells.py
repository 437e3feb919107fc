"""The table of Who is right: sides, leads, plans of longer delays, and claims judged by what they count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from topox_core.fabrics.registry import FABRICS
from topox_core.rivals.cells import Cell, cells_of
from topox_core.rivals.claims import CLAIMS, argument, crossings, tried
from topox_core.rivals.jobs import JOBS, study_of_job
from topox_core.rivals.report import cell_rows, verdict_words
from topox_core.studies.study_run import PointRow, StudyResult
from topox_core.studies.subject import resolve


def cell(delay_ms: float = 1.0, unchanged: tuple[str, ...] = (), **times: float) -> Cell:
    return Cell("dense", 2, 100.0, delay_ms, times, {}, frozenset(unchanged))


def claim(name: str):
    return next(one for one in CLAIMS if one.name == name)


def result_of(times: dict[tuple[str, float], float], changes: float = 3.0) -> StudyResult:
    """A result that has only some points of the job ``dense`` on two ports of 100 Gbit/s."""
    study = study_of_job("dense")
    rows = []
    for number, point in enumerate(study.points):
        value = study.values(point)
        key = (str(value["fabric"]), float(value["cluster.reconfiguration_ms"]))
        network = (value["cluster.degree"], value["cluster.port_gbps"])
        measures = None
        if key in times and network == (2, 100.0):
            measures = {"iteration_ms": times[key], "changes": changes, "dollars": 10.0}
        rows.append(PointRow(number, point, measures=measures))
    return StudyResult(study, tuple(rows))


def test_a_side_wins_by_more_than_two_percent() -> None:
    assert cell(static=100.0, scheduled=97.0).side == "changing"
    assert cell(static=100.0, scheduled=97.0).lead == pytest.approx(0.03)
    assert cell(static=100.0, scheduled=99.0).side == "even"
    assert cell(static=100.0, fat_tree=90.0, scheduled=97.0).side == "fixed"
    assert cell(static=100.0).side == "even"
    assert cell().side == ""


def test_a_controller_that_changes_nothing_is_a_fixed_network() -> None:
    one = cell(static=100.0, scheduled=80.0, reactive=200.0, unchanged=("scheduled",))
    assert one.side == "fixed"
    assert one.lead == pytest.approx(0.6)


def test_the_fastest_of_equal_fabrics_is_the_simplest() -> None:
    assert cell(static=100.0, scheduled=99.5).fastest == "static"
    assert cell(static=100.0, scheduled=90.0).fastest == "scheduled"


def test_a_plan_for_a_longer_delay_is_carried_out_at_the_shorter_ones() -> None:
    times = {("scheduled", 10.0): 50.0, ("scheduled", 1.0): 60.0, ("scheduled", 0.1): 40.0}
    found = cells_of({"dense": result_of(times)})
    assert [(one.delay_ms, one.times_ms["scheduled"]) for one in found] == [
        (0.1, 40.0),
        (1.0, 50.0),
        (10.0, 50.0),
    ]


def test_a_plan_may_stay_as_the_circuits_that_are_fixed_from_the_task_graph() -> None:
    (one,) = cells_of({"dense": result_of({("scheduled", 1.0): 50.0, ("static_graph", 1.0): 45.0})})
    assert one.times_ms["scheduled"] == 45.0
    assert one.unchanged == {"scheduled"}
    assert one.side == "even"


def test_a_point_without_changes_is_read_as_unchanged() -> None:
    (one,) = cells_of({"dense": result_of({("scheduled", 1.0): 50.0}, changes=0.0)})
    assert one.unchanged == {"scheduled"}


def test_changing_circuits_win_up_to_a_delay() -> None:
    cells = [
        cell(delay, static=100.0, scheduled=ms)
        for delay, ms in ((0.1, 80.0), (1.0, 90.0), (10.0, 100.0))
    ]
    assert crossings(cells, "dense") == ((2, 100.0, 1.0),)
    assert "2 of 3 cells" in argument(cells)
    assert "up to a delay of 1 ms" in argument(cells)
    assert crossings([cell(static=50.0, scheduled=80.0)], "dense") == ((2, 100.0, None),)
    assert argument([]) == "Nothing is computed yet."


@pytest.mark.parametrize(
    ("true", "verdict"), [(10, "match"), (9, "match"), (8, "trend"), (5, "trend"), (4, "differs")]
)
def test_a_claim_holds_by_the_share_of_cells_it_is_true_of(true: int, verdict: str) -> None:
    cells = [cell(k + 0.0, static=100.0, scheduled=90.0 if k < true else 110.0) for k in range(10)]
    one = tried(claim("planned-hides-delay"), cells)
    assert (one.trials, one.share, one.verdict) == (10, true / 10, verdict)
    assert one.by_job == {"dense": (true, 10)}
    assert verdict_words(one).endswith(f"true of {10 * true} % of 10".replace(" %", "\u00a0%"))


def test_what_did_not_run_is_not_tried() -> None:
    for one in CLAIMS:
        assert tried(one, [cell(fat_tree=1.0)]).verdict == "not printed"


def test_a_delay_is_hidden_where_provisioned_circuits_take_no_longer() -> None:
    cells = [cell(1e-5, provisioned=100.0), cell(10.0, provisioned=103.0)]
    assert tried(claim("windows-hide"), cells).share == 1.0
    assert (
        tried(
            claim("windows-hide"), [cells[0], replace(cells[1], times_ms={"provisioned": 104.0})]
        ).share
        == 0.0
    )


def test_iterations_a_dollar_count_price_and_time() -> None:
    one = Cell(
        "experts",
        2,
        100.0,
        1.0,
        {"fat_tree": 100.0, "regional": 80.0},
        {"fat_tree": 3.0, "regional": 2.0},
    )
    found = tried(claim("regional-100"), [one])
    assert found.middle == pytest.approx(100 / 80 * 3 / 2)
    assert found.verdict == "match"


def test_every_job_is_a_study_of_every_fabric_but_the_ideal_switch() -> None:
    for job in JOBS:
        study = study_of_job(job)
        axes = {axis.key.name: axis.values for axis in study.axes}
        assert set(axes["fabric"]) == set(FABRICS) - {"ideal"}
        assert (
            min(axes["cluster.reconfiguration_ms"]),
            max(axes["cluster.reconfiguration_ms"]),
        ) == (1e-5, 1e3)
        assert resolve(study.subject).graph is not None


def test_every_cell_is_a_row_with_every_fabric() -> None:
    rows = cell_rows([cell(static=100.0, scheduled=90.0)])
    assert rows[0]["Fixed circuits (ms)"] == 100.0
    assert rows[0]["ahead"] == "changing circuits"
