"""Studies: built by choices, computed beside the page, kept point by point, drawn, gone on with, opened."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import address, chart, control, words
from topox_core.library.run_library import RunLibrary
from topox_core.studies.ready import READY
from topox_core.studies.slices import wins
from topox_core.studies.study_file import dump_study, load_study, study_of
from topox_core.studies.study_run import StudyResult, StudyRun, known_rows, plan_of
from topox_ui.runs.limits import server_limits
from topox_ui.studies.planning import text_of

STUDIES, RUNS, COMPARE = "pages/13_Studies.py", "pages/14_Runs.py", "pages/3_Compare.py"
RECORD = {
    "format": "topox-study",
    "version": 1,
    "name": "Delay and speed",
    "subject": {"kind": "sample", "name": "blackboard"},
    "axes": [
        {"key": "cluster.reconfiguration_ms", "values": [0, 1, 5]},
        {"key": "cluster.port_gbps", "values": [100, 200]},
        {"key": "fabric", "values": ["static", "reactive"]},
    ],
}


def library() -> RunLibrary:
    return RunLibrary.open(Path(os.environ["TOPOX_LIBRARY"]))


def computed(record: dict, budget: dict | None = None) -> StudyResult:
    """Compute a study into the library, as the command does."""
    plan = plan_of(study_of(record | ({"budget": budget} if budget else {}), "study"), library())
    run = StudyRun(plan, library(), 1)
    wait_until(lambda: not run.running, run.poll)
    run.close()
    return run.result()


@pytest.fixture
def page(visit, monkeypatch):
    """Open the page with a study; how long points take is not measured unless a test is about it."""
    monkeypatch.setattr("topox_ui.studies.first_screen.expected_s", lambda _now: 1.0)

    def opened(record: dict | None = RECORD, **query: str):
        given = {f"study.{key}": value for key, value in query.items()}
        of = {"study.of": text_of(record)} if record else {}
        at = visit(STUDIES, **of, **given)
        assert not at.exception
        return at

    return opened


def test_without_a_study_the_page_offers_ready_ones_and_begins_no_library(page) -> None:
    at = page(None)
    text = words(at)
    assert all(one.title in text and one.question in text for one in READY.values())
    assert not Path(os.environ["TOPOX_LIBRARY"]).exists()


@pytest.mark.parametrize("name", list(READY))
@pytest.mark.long
def test_every_ready_study_opens_with_its_points_counted(page, name: str) -> None:
    at = page(None)
    at.button(key=f"begin_{name}").click().run()
    assert not at.exception and not at.error
    study = READY[name].study()
    assert f"{len(study.points):,} points to compute" in words(at)
    assert load_study(address(at)["study.of"].encode(), "x").digest == study.digest


@pytest.mark.long
def test_a_study_is_computed_beside_the_page_and_every_point_kept(page) -> None:
    at = page()
    assert "12 points to compute: none is there yet." in words(at)
    at.button(key="start_study").click().run()
    wait_until(lambda: "✓ 12 points are there" in words(at), at.run)
    assert not at.exception and not at.error
    (stored,) = library().studies()
    assert (stored.kept, stored.points, stored.state) == (12, 12, "complete")
    plan = plan_of(study_of(RECORD, "x"), library())
    result = StudyResult(plan.study, plan.rows(known_rows(plan, library())))
    found = wins(result)
    name = max(found.by_fabric, key=found.by_fabric.__getitem__)
    share = round(100 * found.by_fabric[name] / found.settings)
    assert f"are fastest in {share} % of 6 settings" in words(at)


@pytest.mark.long
def test_what_is_missing_is_said_and_only_that_is_computed(page) -> None:
    computed(RECORD | {"axes": [{**RECORD["axes"][0], "values": [0, 1]}, *RECORD["axes"][1:]]})
    at = page()
    assert "8 of 12 points are there" in words(at)
    assert "So far " in words(at)
    assert next(b for b in at.button if b.key == "start_study").label == "Go on"
    map_text = chart(at, "study_map")["layout"]["annotations"]
    assert sum(mark["text"] == "·" for mark in map_text) == 2
    at.button(key="start_study").click().run()
    wait_until(lambda: "✓ 12 points" in words(at), at.run)
    assert library().count() == 12


@pytest.mark.long
def test_the_map_writes_what_the_points_say_and_a_link_restores_it(page) -> None:
    result = computed(RECORD)
    at = page(
        at="fabric|1", against="static", across="cluster.port_gbps", up="cluster.reconfiguration_ms"
    )
    values = {row.point: row.measures["iteration_ms"] for row in result.rows}
    drawn = chart(at, "study_map")["layout"]["annotations"]
    delays, speeds = (0.0, 1.0, 5.0), (100.0, 200.0)
    for mark in drawn:
        d, s = delays[mark["y"]], speeds[mark["x"]]
        ratio = values[d, s, "reactive"] / values[d, s, "static"]
        assert float(mark["text"].rstrip("x").replace(",", "")) == pytest.approx(ratio, rel=6e-3)
    assert address(at)["study.against"] == "static"


@pytest.mark.long
def test_the_front_holds_the_runs_and_a_click_opens_one(page, visit) -> None:
    result = computed(RECORD)
    at = page()
    traces = chart(at, "study_front")["data"]
    runs = {mark[0] for trace in traces for mark in trace.get("customdata", [])}
    assert runs == {row.run for row in result.rows if row.measures["dollars"] is not None}
    from topox_ui.studies import pictures

    pictures._clicked([[3, 4]])  # no script runs here: what a click leaves is the session's to read
    at = visit(RUNS, **{"runs.chosen": "3,4"})
    assert "2 chosen" in words(at)


@pytest.mark.long
def test_a_point_opens_on_compare_in_its_very_state(page, visit) -> None:
    result = computed(RECORD)
    row = next(r for r in result.rows if r.point == (5.0, 100.0, "static"))
    at = visit(RUNS, **{"runs.chosen": str(row.run)})
    at.button(key="open_A").click().run()
    assert not at.exception and not at.error
    known = address(at)
    assert (known["sample"], known["reconfiguration_ms"], known["port_gbps"]) == (
        "blackboard",
        "5",
        "100",
    )
    shown = next(f.value for f in at.dataframe if "Bandwidth tax" in f.value.columns)
    text = dict(zip(shown["Fabric"], shown["Iteration time"], strict=True))["Fixed circuits"]
    assert f"{row.measures['iteration_ms']:.3g}" in text


@pytest.mark.long
@pytest.mark.parametrize("see", ["lines", "parallel", "table", "build"])
def test_every_face_draws_with_points_and_without(page, see: str) -> None:
    at = page(see=see)
    assert not at.error
    computed(RECORD)
    at = page(see=see)
    assert not at.error


@pytest.mark.long
def test_lines_are_drawn_for_each_fabric_in_its_look(page) -> None:
    computed(RECORD)
    at = page(along="cluster.reconfiguration_ms", each="fabric")
    drawn = [t for t in chart(at, "study_lines")["data"] if t.get("name")]
    assert [one["name"] for one in drawn] == ["Fixed circuits", "Circuits on demand"]


@pytest.mark.long
def test_ranges_of_parallel_coordinates_list_the_points_inside(page) -> None:
    result = computed(RECORD)
    inside = [row for row in result.rows if row.point[0] <= 1.0]
    at = page(see="parallel", ranges="0|0.0|1.0")
    assert f"{len(inside)} of 12 points lie inside all ranges." in words(at)
    table = next(f.value for f in at.dataframe if "run" in f.value.columns)
    assert list(table["run"]) == [row.run for row in inside]


@pytest.mark.long
def test_a_tornado_is_drawn_where_one_axis_moves_at_a_time(page) -> None:
    record = READY["cost-tornado"].record()
    result = computed(record)
    at = page(record, measure="cost_saving")
    drawn = chart(at, "tornado")
    assert 0 < len(drawn["layout"]["yaxis"]["ticktext"]) <= 16
    assert drawn["data"][0]["base"] == pytest.approx(100 * result.rows[0].measures["cost_saving"])


def test_axes_are_added_changed_and_removed_by_choices(page) -> None:
    at = page(see="build")
    control(at, "study_build_values_0").set_value("0, 2, 4, 8").run()
    assert "16 points to compute" in words(at)
    control(at, "study_build_new_axis").set_value("cluster.latency_us").run()
    assert "80 points to compute" in words(at)
    control(at, "study_build_form_0").set_value("log").run()
    assert not at.error
    record = json.loads(address(at)["study.of"])
    assert record["axes"][0]["log"] == {"from": 2.0, "to": 8.0, "points": 4}
    at.button(key="remove_axis_3").click().run()
    assert "16 points to compute" in words(at)
    control(at, "study_build_design").set_value("latin").run()
    assert "100 points to compute" in words(at) and not at.error
    control(at, "study_build_name").set_value("Mine").run()
    assert json.loads(address(at)["study.of"])["name"] == "Mine"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0, x1", "must be numbers separated by commas"),
        ("1, 1", "twice"),
        ("-1", "must be a number from 0"),
        ("", "is empty"),
    ],
)
def test_a_wrong_axis_is_one_line_and_changes_nothing(page, text: str, says: str) -> None:
    at = page(see="build")
    control(at, "study_build_values_0").set_value(text).run()
    assert not at.exception
    assert len(at.error) == 1 and says in at.error[0].value
    assert "12 points to compute" in words(at)


def test_another_subject_drops_what_it_does_not_know(page) -> None:
    at = page(see="build")
    control(at, "study_build_subject").set_value("rails").run()
    assert not at.exception and not at.error
    record = json.loads(address(at)["study.of"])
    assert record["subject"]["kind"] == "rails" and record["axes"] == []


def test_a_million_points_are_refused_before_anything_is_made(page) -> None:
    at = page(see="build")
    control(at, "study_build_form_0").set_value("range").run()
    control(at, "study_build_points_0").set_value(100_000).run()
    assert len(at.error) == 1 and "limit 100,000" in at.error[0].value


@pytest.mark.long
def test_a_study_file_is_opened_and_saved(page, downloads) -> None:
    at = page(None)
    at.file_uploader(key="up_study").upload("mine.study.json", json.dumps(RECORD).encode()).run()
    assert not at.exception and not at.error
    assert "Studies · Delay and speed · blackboard" in words(at)
    saved = load_study(downloads["Study (JSON)"](), "saved")
    assert saved.digest == study_of(RECORD, "x").digest
    assert dump_study(saved) == downloads["Study (JSON)"]()
    computed(RECORD)
    page()
    rows = downloads["Every point (CSV)"]().decode().splitlines()
    assert len(rows) == 13 and "iteration_ms" in rows[0]


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        ({"kind": "files", "graph": "/etc/passwd", "cluster": "/etc/passwd"}, "is not here"),
        ({"kind": "recorded", "file": "/etc"}, "is not here"),
        ({"kind": "job", "file": "/etc/passwd"}, "is not here"),
        ({"kind": "sample", "name": "nothing"}, "nothing"),
        (
            {"kind": "files", "graph": "a", "cluster": "b", "digests": {"graph": "0" * 64}},
            "not here",
        ),
    ],
)
def test_a_study_names_no_files_of_the_server(page, subject: dict, says: str) -> None:
    at = page(RECORD | {"subject": subject})
    assert "cannot be read" in words(at)
    assert len(at.error) == 1 and says in at.error[0].value
    at.button(key="all_studies").click().run()
    assert "Many what-ifs at once" in words(at)


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"axes": 5}'])
def test_nonsense_in_a_link_is_one_line(visit, text: str) -> None:
    at = visit(STUDIES, **{"study.of": text})
    assert not at.exception and len(at.error) == 1


@pytest.mark.long
def test_kept_studies_are_listed_and_go_on(page) -> None:
    computed(RECORD | {"name": "Kept one"})
    at = page(None)
    assert "Kept one, 12 of 12 points" in words(at)
    at.button(key="open_study_1").click().run()
    assert not at.exception and "✓ 12 points are there" in words(at)


@pytest.mark.long
def test_the_expected_time_is_measured_beside_the_page(visit) -> None:
    at = visit(STUDIES, **{"study.of": text_of(RECORD)})
    wait_until(lambda: "12 points to compute, " in words(at), at.run)
    assert not at.exception


@pytest.mark.long
def test_without_a_library_points_stay_in_the_session(page, monkeypatch) -> None:
    monkeypatch.setenv("TOPOX_RUN_LIBRARY", "no")
    server_limits.cache_clear()
    try:
        at = page()
        at.button(key="start_study").click().run()
        wait_until(lambda: "✓ 12 points are there" in words(at), at.run)
        assert "this server keeps no runs" in words(at)
        assert not Path(os.environ["TOPOX_LIBRARY"]).exists()
    finally:
        server_limits.cache_clear()
