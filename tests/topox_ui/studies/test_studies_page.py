"""Studies: built by choices, computed beside the page, kept point by point, drawn, gone on with, opened."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import some
from tests.patience import wait_until
from tests.topox_ui.conftest import (
    address,
    bring,
    buttons,
    chart,
    charts,
    choose,
    control,
    library,
    press,
    table,
    the_error,
    turn_to,
    words,
)
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.studies.point import run_cell
from topox_core.studies.ready import READY, SHIPPED
from topox_core.studies.study import load_study, study_of
from topox_core.studies.study_run import (
    PointRow,
    StudyResult,
    StudyRun,
    plan_of,
    row_of,
    shipped_rows,
)
from topox_core.workloads.samples import SAMPLES, load_sample
from topox_ui.studies.choosing import finding, point_words, view_of
from topox_ui.studies.first_screen import came_of
from topox_ui.studies.pictures import front_picture
from topox_ui.studies.planning import Asked, text_of

STUDIES, RUNS, COMPARE = "Studies", "Kept runs", "Compare"
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
        of = {"study.of": text_of(record)} if record else {}
        return visit(STUDIES, **of, **{f"study.{key}": value for key, value in query.items()})

    return opened


def test_without_a_study_the_page_shows_one_of_the_loaded_job_offers_others_and_begins_no_library(
    page, visit
) -> None:
    at = page(None)
    text = words(at)
    assert (
        "Port speed matters most: 85.7 ms at twice, 179 ms at half; ports per server nearly as much (87.2 ms, 176 ms). "
        "With a reconfiguration delay of 1 ms it is 152 ms, with 10 ms 165 ms. Iteration time now: 106 ms."
        in text
    )
    assert "planned circuits, a delay of 0 ms, 2 ports of 360 Gbit/s per server" in text
    picture = chart(at, "tornado_few")
    assert "study_loaded" not in buttons(at) and "begin_what-matters" in buttons(at)
    # Both ends of a bar are named, also where they lie on one side.
    rows = " ".join(picture["layout"]["yaxis"]["ticktext"]).replace("\u00a0", " ")
    assert "1 ms: 152 ms, 10 ms: 165 ms" in rows
    # The first study is the page's own; a card says what comes of another one and how long that takes.
    others = [one for name, one in READY.items() if name != "what-matters"]
    assert all(text.count(one.title) == 1 and one.question in text for one in others)
    assert READY["what-matters"].title not in text
    assert text.count("for this example.") == len(others), "else run tools/make_answers.py"
    assert "31 points, about 2" in came_of("cost-tornado").replace(" ", " ")
    plan = plan_of(READY["cost-tornado"].study())
    rows = {key: row_of(run_cell(plan.job, cell)) for cell, key in plan.keys.items()}
    said = finding(StudyResult(plan.study, plan.rows(rows)), plan.held)
    assert said in came_of("cost-tornado")
    assert said.replace("\u00a0", " ") == (
        "Price of optical-switch ports matters most: <b>$1.21 M</b> at half, <b>$2.80 M</b> at twice; "
        "optical ports per GPU as much. With NICs counted it is <b>$3.27 M</b>, which matters as much. "
        "Price of the network now, for 1,024 GPUs: <b>$1.74 M</b>."
    )
    assert "race" in words(visit(STUDIES, sample="race"))
    assert not Path(os.environ["TOPOX_LIBRARY"]).exists()


def test_one_click_computes_what_the_loaded_job_depends_on_from_its_own_what_ifs(
    visit, monkeypatch
) -> None:
    begun = []
    monkeypatch.setattr("topox_ui.studies.first_screen.start", begun.append)
    at = visit(STUDIES, sample="race", reconfiguration_ms="3")
    assert "What does an iteration of race depend on most" in words(at)
    assert "tornado_few" not in charts(at), "no example stands in its place"
    press(at, "study_loaded")
    record = json.loads(address(at)["study.of"])
    assert record["subject"] == {"kind": "sample", "name": "race"}
    assert record["fixed"] == {"cluster.reconfiguration_ms": 3.0}
    assert record["axes"][0]["values"] == [0.0, 30.0]
    [now] = begun
    assert (now.missing, now.different) == (5, 6), "no delay comes with the release"
    # A grid over the delay fixes none; another one begins from the delay that is chosen.
    for name, fixed in (("crossover-map", {}), ("ports-and-speed", record["fixed"])):
        at = press(visit(STUDIES, sample="race", reconfiguration_ms="3"), f"begin_{name}")
        assert json.loads(address(at)["study.of"]).get("fixed", {}) == fixed


def test_a_sample_at_other_settings_is_computed_without_a_click_and_begins_no_library(
    visit, monkeypatch
) -> None:
    begun = []
    monkeypatch.setattr("topox_ui.studies.planning.AUTOMATIC", True)
    monkeypatch.setattr(
        "topox_ui.studies.planning.start", lambda now, listed: begun.append((now, listed))
    )
    visit(STUDIES, sample="moe", reconfiguration_ms="15")
    [(now, listed)] = begun
    assert now.plan.held["cluster.reconfiguration_ms"] == 15.0 and not listed
    visit(STUDIES)
    assert len(begun) == 1, "its points come with the release"


@pytest.mark.long
def test_the_points_of_a_sample_at_other_settings_come_without_a_click(visit, monkeypatch) -> None:
    monkeypatch.setattr("topox_ui.studies.planning.AUTOMATIC", True)
    at = visit(STUDIES, sample="blackboard", reconfiguration_ms="1")
    wait_until(lambda: "Iteration time now:" in words(at), at.run)
    assert not Path(os.environ["TOPOX_LIBRARY"]).exists()


def test_a_study_that_is_not_computed_begins_with_its_question_and_the_answer_of_its_example(
    page,
) -> None:
    at = page(READY["ports-and-speed"].record({"kind": "sample", "name": "blackboard"}))
    text = words(at)
    assert f"{READY['ports-and-speed'].question} Only an example, race: At a delay of" in text
    assert "90 points to compute for blackboard" in text
    (button,) = [one for one in at.button if one.key == "start_study"]
    assert button.label.replace("\u00a0", " ") == "Compute, about 1 s"
    (fold,) = [one for one in at.expander if one.label == "Change the study"]
    assert not fold.proto.expanded
    # Once points are there it says what they say.
    computed(RECORD | {"name": READY["crossover-map"].title})
    text = words(page(RECORD | {"name": READY["crossover-map"].title}))
    assert READY["crossover-map"].question not in text and "full fat-tree is not compared" in text


def test_swings_that_end_alike_are_named_together_and_another_as_wide_one_is_said_to_be() -> None:
    axes = [
        {"key": "cluster.port_gbps", "values": [10, 20]},
        {"key": "cluster.degree", "values": [1]},
    ]
    axes.append({"key": "cluster.reconfiguration_ms", "values": [1]})
    record = {"axes": axes, "design": {"kind": "one_at_a_time"}, "measures": ["iteration_ms"]}
    study = study_of(RECORD | record, "study")
    result = StudyResult(
        study,
        tuple(
            PointRow(k, point, measures={"iteration_ms": ms})
            for k, (point, ms) in enumerate(
                zip(study.points, (100.0, 150.0, 50.0, 198.0, 101.0), strict=True)
            )
        ),
    )
    assert finding(result, {}).replace("\u00a0", " ") == (
        "Port speed matters most: <b>50 ms</b> at 20G, <b>150 ms</b> at 10G. With 1 port it is <b>198 ms</b>, "
        "which matters as much. Iteration time now: <b>100 ms</b>."
    )
    alike = [replace(row, measures={"iteration_ms": 100.0}) for row in result.rows]
    assert finding(replace(result, rows=tuple(alike)), {}).replace("\u00a0", " ") == (
        "Iteration time stays <b>100 ms</b> whatever the port speed, ports per server or reconfiguration delay."
    )


DELAYS = (0.0, 0.001, 1.0, 5.0)


def planned_win(upto: dict[int, float], missing: int = 0, fabrics=("static", "scheduled")):
    """Return a study in which planned circuits win at each port speed up to a delay, its last points missing."""
    axes = [
        {"key": "cluster.port_gbps", "values": list(upto)},
        {"key": "cluster.reconfiguration_ms", "values": list(DELAYS)},
        {"key": "fabric", "values": list(fabrics)},
    ]
    study = study_of(RECORD | {"axes": axes}, "study")
    rows = []
    for k, (gbps, delay, name) in enumerate(study.points):
        ms = {"scheduled": 50.0 if delay <= upto[int(gbps)] else 100.0}.get(name, 100.0)
        measures = {"iteration_ms": ms, "dollars": gbps * (2 if name == "scheduled" else 1)}
        measures["watts"] = measures["dollars"]
        rows.append(PointRow(k, (gbps, delay, name), measures=measures))
    left = len(rows) - missing
    rows[left:] = [PointRow(row.number, row.point) for row in rows[left:]]
    return StudyResult(study, tuple(rows))


@pytest.mark.parametrize(
    ("upto", "says"),
    [
        (
            {100: 1.0, 200: 0.001},
            "for every port speed up to a delay of <b>1 µs</b>, for some up to <b>1 ms</b>",
        ),
        ({100: 1.0, 200: 1.0}, "for every port speed up to a delay of <b>1 ms</b>"),
        ({100: 5.0, 200: 5.0}, "at every delay up to <b>5 ms</b>"),
        ({100: 1.0, 200: -1.0}, "up to a delay of <b>1 ms</b>, but not for every port speed"),
        ({100: 1.0}, "up to a delay of <b>1 ms</b>"),
    ],
)
def test_a_study_of_networks_says_up_to_which_delay_planned_circuits_win(upto, says) -> None:
    said = finding(planned_win(upto), {}).replace("\u00a0", " ")
    assert said == f"Planned circuits are fastest {says}; a full fat-tree is not compared."


def test_a_study_under_way_counts_its_points_and_one_without_delays_names_its_own() -> None:
    said = finding(planned_win({100: 1.0, 200: 1.0}, missing=3), {}, "moe").replace("\u00a0", " ")
    assert said == (
        "<b>13 of 16 points</b> of moe are computed: so far planned circuits are fastest in "
        "<b>5 of 6 settings</b>; a full fat-tree is not compared."
    )
    compared = planned_win({100: 1.0, 200: 1.0}, fabrics=("fat_tree_full", "scheduled"))
    assert "full fat-tree" not in finding(compared, {})
    none = planned_win({100: -1.0, 200: -1.0})
    assert finding(none, {}).startswith("No network is faster than all others in any of 8")
    axes = [RECORD["axes"][1], {"key": "fabric", "values": ["static", "scheduled"]}]
    study = study_of(RECORD | {"axes": axes}, "study")
    rows = [
        PointRow(k, point, measures={"iteration_ms": ms})
        for k, (point, ms) in enumerate(zip(study.points, (9.0, 5.0, 9.0, 9.0), strict=True))
    ]
    said = finding(StudyResult(study, tuple(rows)), {"cluster.reconfiguration_ms": 2.0})
    assert said.replace("\u00a0", " ") == (
        "At a delay of 2 ms planned circuits are fastest in <b>1 of 2 settings</b>, not with 200G; "
        "a full fat-tree is not compared."
    )


def test_a_point_that_is_the_same_at_many_delays_is_one_with_their_range() -> None:
    view = view_of(planned_win({100: 1.0, 200: 1.0}))
    names = front_picture(view)[0].names
    assert set(names) == {
        "100G, any delay, Fixed by TopoOpt",
        "200G, any delay, Fixed by TopoOpt",
        "100G, 0 ms to 1 ms, Planned circuits",
        "100G, 5 ms, Planned circuits",
        "200G, 0 ms to 1 ms, Planned circuits",
        "200G, 5 ms, Planned circuits",
    }


def test_a_rail_and_the_price_of_rails_are_studied_for_the_loaded_job_where_it_can_be(
    visit,
) -> None:
    at = press(visit(STUDIES, sample="moe"), "begin_rails-delay")
    subject = json.loads(address(at)["study.of"])["subject"]
    assert subject["name"] == "moe" and "64" in words(at)
    at = press(visit(STUDIES, sample="moe"), "begin_cost-tornado")
    assert json.loads(address(at)["study.of"])["fixed"]["network.gpus"] == 64
    at = press(visit(STUDIES, sample="blackboard"), "begin_rails-delay")
    assert json.loads(address(at)["study.of"])["subject"] == READY["rails-delay"].subject


def test_a_column_in_percent_has_percent_and_settings_that_stay_have_their_value(page) -> None:
    record = READY["what-matters"].record({"kind": "sample", "name": "moe"})
    shown = table(page(record, see="table"), "Ports dark (%)")
    slow = shown[shown["Reconfiguration delay (ms)"] == 1.0].iloc[0]
    assert slow["Ports dark (%)"] == pytest.approx(34.38, abs=0.01)
    assert slow["Port speed (Gbit/s)"] == 360 and slow["Ports per server, switches with them"] == 2
    assert shown["Reconfiguration delay (ms)"].tolist().count(0.0) == 5


def test_a_file_of_the_reader_s_own_is_studied_with_one_click_too(visit, monkeypatch) -> None:
    begun = []
    monkeypatch.setattr("topox_ui.studies.first_screen.start", begun.append)
    at = bring(visit(way="files"), "up_graph", "mine.json", dump_graph_json(load_sample("race")[0]))
    at = turn_to(at, STUDIES)
    assert "depend on most" in words(at)
    assert not press(at, "study_loaded").error
    assert begun[0].plan.study.subject.kind == "files" and begun[0].missing == begun[0].different


def test_points_of_another_version_are_counted_and_shown_or_computed_anew_at_a_click(
    page, monkeypatch
) -> None:
    plan = plan_of(study_of(RECORD, "study"))
    runs = [run_cell(plan.job, cell) for cell in plan.cells[:4]]
    library().add([replace(run, version="0.0+other") for run in runs])
    begun = []
    monkeypatch.setattr("topox_ui.studies.first_screen.start", begun.append)
    at = page()
    assert "4 points from another version of this program: not shown." in words(at)
    at = press(at, "others")
    assert "may differ" in words(at) and "4 of 12 points are computed" in words(at)
    at = press(at, "anew")
    assert "12 points to compute" in words(at) and begun[0].missing == 12


@pytest.mark.parametrize("name", some(tuple(SAMPLES), quick=3))
def test_points_of_the_release_are_what_is_computed_else_run_tools_make_answers(name) -> None:
    plan = plan_of(READY["what-matters"].study({"kind": "sample", "name": name}))
    shipped = shipped_rows(SHIPPED)
    made = {key: row_of(run_cell(plan.job, cell)) for cell, key in plan.keys.items()}
    for key, row in made.items():
        assert shipped[key].measures == pytest.approx(row.measures, nan_ok=True)
        assert shipped[key].message == row.message


@pytest.mark.long
def test_a_study_is_computed_beside_the_page_and_every_point_kept_and_only_once(page) -> None:
    computed(RECORD | {"axes": [{**RECORD["axes"][0], "values": [0, 1]}, *RECORD["axes"][1:]]})
    at = page()
    assert "8 of 12 points of blackboard are computed: so far " in words(at)
    press(at, "start_study")
    wait_until(lambda: "✓ All 12 points are computed" in words(at), at.run)
    assert not at.error and library().count() == 12


@pytest.mark.long
def test_pictures_of_a_study_say_what_its_points_say(page, visit) -> None:
    result = computed(RECORD)
    values = {row.point: row.measures["iteration_ms"] for row in result.rows}
    axes = {"across": "cluster.port_gbps", "up": "cluster.reconfiguration_ms"}
    at = page(at="fabric|1", against="static", **axes)
    delays, speeds = (0.0, 1.0, 5.0), (100.0, 200.0)
    for mark in chart(at, "study_map")["layout"]["annotations"]:
        d, s = delays[mark["y"]], speeds[mark["x"]]
        ratio = values[d, s, "reactive"] / values[d, s, "static"]
        assert float(mark["text"].rstrip("x").replace(",", "")) == pytest.approx(ratio, rel=6e-3)
    inside = [row for row in result.rows if row.point[0] <= 1.0]
    at = page(see="parallel", ranges="0|0.0|1.0")
    assert list(table(at, "run")["run"]) == [row.run for row in inside]
    assert not any(page(see=face).error for face in ("lines", "table", "build"))
    # A point opens on Compare in its very state.
    row = next(r for r in result.rows if r.point == (5.0, 100.0, "static"))
    at = press(visit(RUNS, **{"runs.chosen": str(row.run)}), "open_A")
    place = {"sample": "blackboard", "reconfiguration_ms": "5", "port_gbps": "100"}
    assert not at.error and address(at).items() >= place.items()


def test_axes_are_added_changed_and_removed_by_choices(page) -> None:
    def record(at) -> dict:
        return json.loads(address(at)["study.of"])

    at = choose(page(see="build"), study_build_values_0="0, 2, 4, 8")
    assert "16 points to compute" in words(at)
    assert "80 points" in words(choose(at, study_build_new_axis="cluster.latency_us"))
    assert not choose(at, study_build_form_0="log").error
    assert record(at)["axes"][0]["log"] == {"from": 2.0, "to": 8.0, "points": 4}
    assert "16 points to compute" in words(press(at, "remove_axis_3"))
    choose(at, study_build_design="latin", study_build_name="Mine")
    assert "100 points to compute" in words(at) and record(at)["name"] == "Mine"
    # Another subject drops what it does not know.
    at = choose(page(see="build"), study_build_subject="rails")
    assert not at.error and record(at)["subject"]["kind"] == "rails" and record(at)["axes"] == []
    # Whose network is not named has photonic rails, and says so.
    at = choose(at, study_build_subject="network")
    assert record(at)["subject"] == {"kind": "network", "network": "photonic_rails"}
    assert control(at, "study_build_which").value == "photonic_rails"


def test_a_wrong_axis_is_one_line_and_changes_nothing(page) -> None:
    at = page(see="build")
    for text, says in (
        ("0, x1", "must be numbers separated by commas"),
        ("1, 1", "twice"),
        ("-1", "must be at least 0"),
        ("", "is empty"),
    ):
        assert says in the_error(choose(at, study_build_values_0=text))
        assert "12 points to compute" in words(at)
    at = choose(page(see="build"), study_build_form_0="range", study_build_points_0=100_000)
    assert "limit 100,000" in the_error(at), "refused before anything is made"


@pytest.mark.long
def test_a_study_file_is_opened_and_saved(page, downloads) -> None:
    at = bring(page(None), "up_study", "mine.study.json", json.dumps(RECORD).encode())
    assert not at.error and "Studies · Delay and speed · blackboard" in words(at)
    saved = load_study(downloads["Study (JSON)"](), "saved")
    assert saved.digest == study_of(RECORD, "x").digest
    computed(RECORD)
    page()
    assert len(downloads["Every point (CSV)"]().splitlines()) == 13


NOWHERE = {"kind": "files", "graph": "a", "cluster": "b", "digests": {"graph": "0" * 64}}


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        ({"kind": "files", "graph": "/etc/passwd", "cluster": "/etc/passwd"}, "is not here"),
        ({"kind": "recorded", "file": "/etc"}, "is not here"),
        ({"kind": "job", "file": "/etc/passwd"}, "is not here"),
        ({"kind": "sample", "name": "nothing"}, "nothing"),
        (NOWHERE, "not here"),
    ],
)
def test_a_study_names_no_files_of_the_server(page, subject: dict, says: str) -> None:
    at = page(RECORD | {"subject": subject})
    assert "cannot be read" in words(at) and says in the_error(at)
    assert "many what-ifs at once" in words(press(at, "all_studies"))


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"axes": 5}'])
def test_nonsense_in_a_link_is_one_line(visit, text: str) -> None:
    assert the_error(visit(STUDIES, **{"study.of": text}))


@pytest.mark.long
def test_the_expected_time_is_measured_beside_the_page(visit) -> None:
    at = visit(STUDIES, **{"study.of": text_of(RECORD)})
    wait_until(lambda: any("Compute, " in one.label for one in at.button), at.run)


@pytest.mark.long
def test_without_a_library_points_stay_in_the_session(page, owner_sets) -> None:
    owner_sets(RUN_LIBRARY="no")
    at = press(page(), "start_study")
    wait_until(lambda: "✓ All 12 points are computed" in words(at), at.run)
    assert "this server keeps no runs" in words(at)
    assert not Path(os.environ["TOPOX_LIBRARY"]).exists()


def test_a_study_that_gives_its_points_more_time_is_another_one_to_the_page() -> None:
    """Points that took too long would else stand where no library tells which are missing."""
    plans = [
        plan_of(study_of(RECORD | {"budget": {"seconds_per_point": seconds}}, "study"))
        for seconds in (1.0, 60.0)
    ]
    short, longer = (Asked(plan, StudyResult(plan.study, ()), None) for plan in plans)
    assert short.digest != longer.digest


def test_all_points_that_buy_most_for_a_dollar_are_named() -> None:
    measures = ["iteration_ms", "dollars", "iterations_per_dollar"]
    study = study_of(RECORD | {"measures": measures}, "study")
    worth = (1.0, 1.004, 0.5)
    rows = [
        PointRow(k, point, measures=dict(zip(measures, (10.0, 100.0, worth[k]), strict=True)))
        for k, point in enumerate(study.points[:3])
    ]
    said = finding(StudyResult(study, tuple(rows)), {}).replace("\u00a0", " ")
    best, other = (point_words(StudyResult(study, ()), rows[k]) for k in (1, 0))
    assert (
        f"most iterations (within 0.5 %) come from <b>{best}</b>, <b>{other}</b>: 10 ms each"
        in said
    )
    assert point_words(StudyResult(study, ()), rows[2]) not in said.split("most iterations")[1]
