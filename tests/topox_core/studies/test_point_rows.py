"""Points of a study: kept and computed once, harder plans serve easier points, what its axes and its front say."""

from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from tests.conftest import examples
from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.library.rows import FAILED
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import finish
from topox_core.studies.slices import Slice, cells, cloud, fastest_at, front_of, wins
from topox_core.studies.study import Study, study_of
from topox_core.studies.study_run import (
    SERVED,
    PointRow,
    StudyResult,
    StudyRun,
    chains,
    known_rows,
    plan_of,
    with_harder_plans,
)

DELAYS, SPEEDS, PORTS = (0.0, 1.0, 10.0), (50.0, 100.0), (1, 2)
AXES = [
    {"key": "cluster.reconfiguration_ms", "values": list(DELAYS)},
    {"key": "cluster.port_gbps", "values": list(SPEEDS)},
    {"key": "cluster.degree", "values": list(PORTS)},
    {"key": "fabric", "values": ["static", "scheduled"]},
]
PLACES = list(product(DELAYS, SPEEDS, PORTS))


def study(**changes: Any) -> Study:
    record = {"name": "Race", "subject": {"kind": "sample", "name": "race"}, "axes": AXES}
    return study_of(record | changes, "race.study.json")


def served(times: dict[tuple[float, float, int], float], fabric: str, changes: float = 3.0):
    """The rows of one fabric by delay, speed and ports, where every other row is still to come."""
    of = study()
    rows = [
        PointRow(number, point, number, None if ms is None else measures(ms, changes))
        for number, point in enumerate(of.points)
        for ms in [times.get(point[:3]) if point[3] == fabric else None]
    ]
    found = with_harder_plans(rows, chains(of))
    return {row.point[:3]: row for row in found if row.measures is not None}


def measures(ms: float, changes: float) -> dict[str, float | None]:
    return {
        "iteration_ms": ms,
        "bound_ms": 10.0,
        "gap": 1 - 10 / ms,
        "changes": changes,
        "dark_share": 0.3,
        "dollars": 7.0,
        "iterations_per_dollar": 100 / ms,
        "joules_per_iteration": ms,
    }


def test_by_hand() -> None:
    at = (1.0, 50.0, 1), (0.0, 50.0, 1), (0.0, 100.0, 1), (10.0, 100.0, 1), (1.0, 100.0, 1)
    found = served(dict(zip(at, (20.0, 25.0, 40.0, 16.0, 17.0), strict=True)), "scheduled")
    assert [found[one].measures["iteration_ms"] for one in at] == [20.0, 20.0, 16.0, 16.0, 16.0]
    assert [found[one].message == SERVED for one in at] == [False, True, True, False, True]
    dark = [found[one].measures["dark_share"] for one in at]
    assert dark == pytest.approx([0.3, 0.0, 0.0, 0.3, 0.03]), "a tenth of the delay, or none"
    assert found[0.0, 50.0, 1].status == "feasible"
    assert found[0.0, 50.0, 1].run == found[1.0, 50.0, 1].number
    of_plan = found[0.0, 50.0, 1].measures
    assert of_plan["gap"] == 0.5 and of_plan["dollars"] == 7.0
    assert of_plan["iterations_per_dollar"] == pytest.approx(5.0)
    assert of_plan["joules_per_iteration"] == pytest.approx(20.0)


def test_a_served_point_is_proved_where_the_plan_meets_its_bound() -> None:
    found = served({(1.0, 50.0, 1): 10.0, (0.0, 50.0, 1): 25.0}, "scheduled")
    assert (found[0.0, 50.0, 1].status, found[0.0, 50.0, 1].measures["gap"]) == ("optimal", 0.0)


def test_fixed_networks_and_plans_with_rules_of_their_own_stay_as_they_are() -> None:
    times = {(1.0, 50.0, 1): 20.0, (0.0, 50.0, 1): 25.0}
    found = served(times, "static")
    assert {place: row.measures["iteration_ms"] for place, row in found.items()} == times
    assert not chains(study(fixed={"settings.clock": "slots"}))
    # Pages say what holds anyway: the same question has the same answer.
    said = {
        "settings.clock": "auto",
        "settings.model": "physical",
        "settings.circuits": "continuous",
    }
    assert chains(study(fixed=said)) == chains(study())


def test_circuits_that_never_change_serve_a_shorter_delay_but_no_faster_ports() -> None:
    times = {(1.0, 50.0, 1): 20.0, (0.0, 50.0, 1): 25.0, (1.0, 100.0, 1): 25.0}
    found = served(times, "scheduled", changes=0.0)
    assert [found[place].measures["iteration_ms"] for place in times] == [20.0, 20.0, 25.0]


@given(st.lists(st.integers(11, 40), min_size=len(PLACES), max_size=len(PLACES)))
def test_every_point_has_the_best_plan_of_all_that_are_no_easier(times: list[int]) -> None:
    known = dict(zip(PLACES, map(float, times), strict=True))
    for place, row in served(known, "scheduled").items():
        delay, speed, ports = place
        harder = [ms for (d, s, p), ms in known.items() if d >= delay and s <= speed and p <= ports]
        assert row.measures["iteration_ms"] == min(harder)


def test_planned_times_of_a_study_never_grow_where_the_network_becomes_better() -> None:
    fixed = {"fabric": "scheduled"}
    result = run(study(fixed=fixed, axes=AXES[:3]))
    ms = {row.point: row.measures["iteration_ms"] for row in result.rows if not row.failed}
    for (one, slow), (other, fast) in product(ms.items(), repeat=2):
        if other[0] <= one[0] and other[1] >= one[1] and other[2] >= one[2]:
            assert fast <= slow * (1 + 1e-9), (one, other)


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
    assert wins(fastest_at(result()).values()) == {"scheduled": 4, "static": 2}
    assert len(fastest_at(result(missing=1))) == 5
    failing = fastest_at(result(failing=((10.0, "static", 0),)))
    assert wins(failing.values())["scheduled"] == 5


def test_nobody_wins_by_less_than_counts_as_equal() -> None:
    times = {"static": 100.0 * (1 + EQUAL / 2), "scheduled": 100.0}
    nearly = result(time=lambda _delay, fabric, _seed: times[fabric])
    assert len(fastest_at(nearly)) == 6 and not wins(fastest_at(nearly).values())


def test_the_cloud_has_every_row_with_both_measures_and_its_front() -> None:
    found = cloud(result(failing=((0.0, "static", 0),)), "dollars", "iteration_ms")
    assert len(found.rows) == 11 and found.missing == 1
    places = list(zip(found.x, found.y, strict=True))
    for on, (x, y) in zip(found.on_front, places, strict=True):
        assert on != any(a <= x and b <= y and (a, b) != (x, y) for a, b in places)


# Few values, so that ties are frequent.
VALUES = st.one_of(st.none(), st.integers(-3, 3).map(float))


def beats(a: tuple, b: tuple) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


@examples(100)
@given(
    st.integers(1, 4).flatmap(lambda d: st.lists(st.tuples(*[VALUES] * d), min_size=1, max_size=30))
)
@example([(1.0, 2.0), (1.0, 2.0), (0.0, 3.0)])  # equal points do not beat each other
def test_the_front_is_what_no_other_point_beats(points):
    found = front_of(list(zip(*points, strict=True)))
    known = [p for p in points if None not in p]
    for on, point in zip(found, points, strict=True):
        assert on == (None not in point and not any(beats(other, point) for other in known))


@examples(50)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=20))
def test_more_is_better_turns_a_measure_round(points):
    first, second = (list(column) for column in zip(*points, strict=True))
    turned = [None if v is None else -v for v in second]
    assert (front_of([first, second], (False, True)) == front_of([first, turned])).all()


def test_what_is_no_number_is_left_out():
    found = front_of([[1.0, float("nan"), 2.0, float("inf")], [2.0, 0.0, 1.0, 0.0]])
    assert found.tolist() == [True, False, True, False]


RACE: dict[str, Any] = {
    "name": "Race",
    "subject": {"kind": "sample", "name": "race"},
    "axes": [
        {"key": "cluster.reconfiguration_ms", "log": {"from": 0.01, "to": 100, "points": 6}},
        {"key": "fabric", "values": ["static", "provisioned", "scheduled"]},
    ],
}


def race(**changes: Any) -> Study:
    return study_of({**RACE, **changes}, "race.study.json")


def outcomes(result: StudyResult) -> list[Any]:
    return [(row.point, row.measures, row.status, row.message) for row in result.rows]


# Points are computed in this process where no test is about others: starting them takes longer.
HERE = ThreadPoolExecutor(1)


def run(
    study: Study, library: RunLibrary | None = None, workers: Executor | int = HERE
) -> StudyResult:
    return finish(StudyRun(plan_of(study, library), library, workers))


def test_a_point_that_took_too_long_has_more_time_where_a_study_gives_it() -> None:
    known: dict[str, PointRow] = {}

    def ended(seconds: float) -> StudyResult:
        study = race(axes=[], budget={"seconds_per_point": seconds})
        return finish(StudyRun(plan_of(study), None, HERE, known))

    assert [row.message for row in ended(1e-9).rows] == ["took longer than 1e-09 s"]
    assert not ended(1000.0).failed


@pytest.mark.long
def test_what_is_kept_is_not_computed_again_and_a_wider_study_only_computes_what_it_adds(
    tmp_path: Path,
) -> None:
    library = RunLibrary.open(tmp_path / "runs.sqlite")
    assert finish(StudyRun(plan_of(race(), library), library, HERE, listed=False)) is not None
    assert (library.count(), library.studies()) == (18, [])
    again = StudyRun(plan_of(race(), library), library, HERE)
    assert (again.running, again.progress.done) == (False, 18)
    assert outcomes(again.result()) == outcomes(run(race(), workers=2))
    again.close()
    (kept,) = library.studies()
    assert (kept.state, kept.points, kept.kept) == ("complete", 18, 18)
    wider = race(axes=[RACE["axes"][0], {"key": "fabric", "values": ["reactive", "scheduled"]}])
    assert len(known_rows(plan_of(wider, library), library)) == 6
    run(wider, library)
    assert library.count() == 24
    assert sorted(one.kept for one in library.studies()) == [12, 18]


def test_the_time_left_is_that_of_the_points_that_are_missing() -> None:
    plan = plan_of(race())
    assert plan.seconds({}, 2) is None
    known = {plan.key_of(0): PointRow(0, (), measures={}, status="simulated", wall_s=2.0)}
    assert plan.seconds(known, 2) == 2.0 * 17 / 2
    late = run(race(budget={"seconds": 1e-3}))
    assert late.lost and not late.complete
