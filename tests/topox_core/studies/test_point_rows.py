"""A plan for a harder point serves the easier ones of its study."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.topox_core.studies.test_study_run import run
from topox_core.studies.study import Study, study_of
from topox_core.studies.study_run import SERVED, PointRow, chains, with_harder_plans

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
