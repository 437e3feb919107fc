"""A study seen along its axes says what its rows say: means seed by seed, ratios, who wins, the front."""

import pytest

from topox_core.fabrics.compare import EQUAL
from topox_core.library.rows import FAILED
from topox_core.studies.slices import Slice, Wins, cells, cloud, wins
from topox_core.studies.study import study_of
from topox_core.studies.study_run import PointRow, StudyResult

STUDY = study_of(
    {
        "subject": {"kind": "sample", "name": "race"},
        "axes": [
            {"key": "cluster.reconfiguration_ms", "values": [0, 1, 10]},
            {"key": "fabric", "values": ["static", "scheduled"]},
            {"key": "seed", "values": [0, 1]},
        ],
    },
    "x",
)


def time_of(delay: float, fabric: str, seed: int) -> float:
    return 100.0 + seed if fabric == "static" else 60.0 + 10 * delay + 3 * seed


def result(missing: int = 0, failing: tuple = (), time=time_of) -> StudyResult:
    def row(number: int, point: tuple) -> PointRow:
        if number >= len(STUDY.points) - missing:
            return PointRow(number, point)
        if point in failing:
            return PointRow(number, point, number + 1, {}, FAILED, "no port is left")
        measures = {"iteration_ms": time(*point), "dollars": 10.0 + number}
        return PointRow(number, point, number + 1, measures, "feasible")

    return StudyResult(STUDY, tuple(row(*one) for one in enumerate(STUDY.points)))


def test_a_cell_is_the_mean_over_the_seeds_of_its_rows() -> None:
    found = cells(result(), Slice("iteration_ms", {}), "cluster.reconfiguration_ms", "fabric")
    assert len(found) == 6
    for (delay, fabric), cell in found.items():
        least, most = sorted(time_of(delay, fabric, seed) for seed in (0, 1))
        assert (cell.mean, cell.least, cell.most) == ((least + most) / 2, least, most)
        assert cell.values == len(cell.runs) == 2


def test_what_is_still_to_come_and_what_cannot_run_are_told_apart() -> None:
    failing = ((0.0, "static", 0), (0.0, "static", 1))
    asked = Slice("iteration_ms", {}), "cluster.reconfiguration_ms", "fabric"
    some, late = (cells(result(missing, failing), *asked) for missing in (1, 2))
    found = [some[0.0, "static"], some[10.0, "scheduled"], late[10.0, "scheduled"]]
    assert [(one.values, bool(one.failed)) for one in found] == [(0, True), (1, False), (0, False)]


def test_a_ratio_is_taken_seed_by_seed() -> None:
    of = Slice("iteration_ms", {"fabric": "scheduled"}, "static")
    found = cells(result(), of, "cluster.reconfiguration_ms", "fabric")
    assert set(found) == {(d, "scheduled") for d in (0.0, 1.0, 10.0)}
    expected = [time_of(1.0, "scheduled", s) / time_of(1.0, "static", s) for s in (0, 1)]
    assert found[1.0, "scheduled"].mean == pytest.approx(sum(expected) / 2)


def test_only_settings_in_which_every_fabric_has_its_answer_are_counted() -> None:
    assert wins(result()) == Wins(6, {"scheduled": 4, "static": 2})
    assert wins(result(missing=1)).settings == 5
    assert wins(result(failing=((10.0, "static", 0),))).by_fabric["scheduled"] == 5


def test_nobody_wins_by_less_than_counts_as_equal() -> None:
    times = {"static": 100.0 * (1 + EQUAL / 2), "scheduled": 100.0}
    nearly = result(time=lambda _delay, fabric, _seed: times[fabric])
    assert wins(nearly) == Wins(6, {"scheduled": 0, "static": 0})


def test_the_cloud_has_every_row_with_both_measures_and_its_front() -> None:
    found = cloud(result(failing=((0.0, "static", 0),)), "dollars", "iteration_ms")
    assert len(found.rows) == 11 and found.missing == 1
    places = list(zip(found.x, found.y, strict=True))
    for on, (x, y) in zip(found.on_front, places, strict=True):
        assert on != any(a <= x and b <= y and (a, b) != (x, y) for a, b in places)
