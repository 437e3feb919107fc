"""Kept runs: what is kept on Schedule and Compare is listed, set side by side, opened as it was, deleted and put back."""

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st

from tests.topox_ui.conftest import (
    SCHEDULE,
    address,
    bring,
    chart,
    choose,
    control,
    library,
    metric,
    press,
    table,
    the_error,
    turn_to,
    unbroken,
    ways_on,
    words,
)
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.library.run_library import RunLibrary
from topox_core.library.tables import RunComparison
from topox_core.workloads.samples import load_sample
from topox_ui.library.listing import RunsState, _ticked
from topox_ui.library.side_by_side import execution_of, finding
from topox_ui.shell.charts import _edited

COMPARE, RUNS = "Compare", "Kept runs"


def iteration_ms(run: int) -> float:
    return library().get(run).record.measures["iteration_ms"]


@pytest.fixture
def keep(visit):
    """Keep what a page shows."""

    def kept(page: str = SCHEDULE, **query: str):
        at = press(visit(page, **query), "keep_run")
        assert not at.error
        return at

    return kept


@pytest.fixture
def page(visit):
    return lambda **query: visit(RUNS, **{f"runs.{key}": value for key, value in query.items()})


def test_who_only_looks_begins_no_library_and_one_that_is_none_is_a_line_and_stays(
    page, owner_sets
) -> None:
    at, path = page(), Path(os.environ["TOPOX_LIBRARY"])
    assert "No run is kept yet." in words(at) and not path.exists()
    (fold,) = [one for one in at.expander if one.label == "Where runs are kept"]
    assert not fold.proto.expanded and str(path.parent) in words(at)
    owner_sets(ADDRESS="0.0.0.0", RUN_LIBRARY="yes")
    assert "No run is kept yet." in words(elsewhere := page())
    assert str(path.parent) not in words(elsewhere), "the folder is on another computer"
    owner_sets(ADDRESS="127.0.0.1")
    # It explains itself with one kept run: the sample's schedule that ships with the release.
    (example,) = table(at, "Outcome").to_dict("records")
    assert (example["Name"], example["Fabric"]) == ("race", "Planned circuits")
    assert "Subject" not in example and "Go to Studies" not in ways_on(at)
    assert all(example[name] for name in ("Name", "When", "Delay"))
    assert {"Open the example", "Go to Schedule", "Go to Compare"} <= set(ways_on(at))
    path.write_bytes(b"somebody else's notes" * 100)
    assert "is no run library" in the_error(page())
    assert path.read_bytes().startswith(b"somebody else's notes")


def test_a_solve_is_kept_with_what_the_page_shows(keep) -> None:
    at = keep(sample="race", reconfiguration_ms="5")
    assert "Kept as run 1." in words(at)
    record = library().get(1).record
    assert f"{record.measures['iteration_ms']:.4g}"[:4] in metric(at, "Iteration time")
    assert record.settings["cluster.reconfiguration_ms"] == 5.0
    assert record.link == "sample=race&reconfiguration_ms=5"
    assert "Kept before as run 1." in words(press(at, "keep_run"))
    assert library().count() == 1


def test_compare_keeps_a_run_a_fabric_and_planned_circuits_as_the_solve_of_schedule(keep) -> None:
    keep(sample="race")
    at = keep(COMPARE, sample="race")
    assert "Kept before as run 1." in words(at)
    kept = {one.record.settings["fabric"] for one in library().runs()}
    assert len(kept) == len(table(at, "Bandwidth tax")) > 4


@pytest.mark.long
def test_every_run_of_compare_can_be_drawn_and_says_nothing_where_it_comes_out_alike(keep) -> None:
    keep(COMPARE, sample="race", reconfiguration_ms="2", rings="1")
    ours = library()
    for one in ours.runs():
        execution, note = execution_of(ours, one)
        expected = pytest.approx(one.record.measures["iteration_ms"], rel=1e-12)
        assert (execution.makespan_ms, note) == (expected, "")


def test_two_runs_side_by_side_say_what_one_setting_does(keep, page) -> None:
    keep(sample="race")
    keep(sample="race", reconfiguration_ms="5")
    at = page(chosen="1,2")
    text, (first, second) = words(at), map(iteration_ms, (1, 2))
    assert "With reconfiguration delay 0 ms instead of 5 ms an iteration takes" in text
    assert f"{100 * (second - first) / second:.3g} % less" in text
    clocks = [chart(at, f"clock_{letter}")["layout"]["xaxis"]["range"] for letter in "AB"]
    assert clocks[0] == clocks[1] == [0, second]
    # A run that is gone is no longer chosen, and a choice by name is in the address.
    at = page(chosen="1,77")
    assert address(at)["runs.chosen"] == "1"
    assert address(choose(at, runs_chosen=[1, 2]))["runs.chosen"] == "1,2"


def test_points_of_a_study_stay_with_it_and_are_listed_where_it_is_asked_for(keep, page) -> None:
    keep(sample="blackboard")
    ours, point = library(), replace(library().get(1).record, key="a" * 64, kind="fabric", link="")
    study = ours.add_study("b" * 64, "Delay", {}, 1, "1")
    ours.link_points(study, {0: ours.add([point])[0]})
    assert "1 run to open again" in words(page())
    assert "Kept runs · 1 point of a study" in words(page(study=str(study)))
    assert "Kept runs · 1 kept on this computer · 1 chosen" in words(page(chosen="2"))


def test_a_run_is_named_deleted_and_put_back_even_from_the_empty_page(keep, page) -> None:
    keep(sample="blackboard")
    at = page(chosen="1")
    unbroken(at.text_input(key="name_1-0").set_value("for the class").run())
    assert library().get(1).record.name == "for the class"
    assert "for the class: an iteration takes" in words(at)
    press(at, "delete_runs")
    assert library().count() == 0 and "No run is kept yet." in words(at)
    assert "1 deleted run" in at.button(key="undo_delete").label.replace("\u00a0", " ")
    press(at, "undo_delete")
    assert library().get(1).record.name == "for the class" and library().result(1)
    assert "1 run to open again" in words(at)


@pytest.mark.long
def test_a_kept_proof_opens_with_its_result_and_not_with_another(keep, page) -> None:
    keep(sample="race", reconfiguration_ms="5", port_gbps="30")
    at = press(page(chosen="1"), "open_A")
    assert not at.error and "Schedule · race" in words(at)
    assert address(at) == {"sample": "race", "reconfiguration_ms": "5", "port_gbps": "30"}
    assert "from the run library" in at.info[0].value
    assert f"{iteration_ms(1):.3g}" in metric(at, "Iteration time")


@pytest.mark.long
def test_own_files_are_opened_from_the_library_with_their_what_ifs(visit, page) -> None:
    graph, cluster = load_sample("race")
    at = visit("Home", way="files")
    mine = dump_graph_json(replace(graph, name="mine"))
    bring(at, "up_graph", "mine.taskgraph.json", mine)
    bring(at, "up_cluster", "mine.cluster.json", dump_cluster(cluster))
    turn_to(at, SCHEDULE)
    press(choose(at, port_gbps=100.0), "keep_run")
    record = library().get(1).record
    assert record.link == "port_gbps=100"
    assert json.loads(library().input(record.settings["subject"]["digests"]["graph"]).content)
    at = press(page(chosen="1"), "open_A")
    assert not at.error and "Schedule · mine" in words(at)
    assert control(at, "port_gbps").value == 100.0
    assert f"{iteration_ms(1):.3g}" in metric(at, "Iteration time")


@pytest.mark.long
def test_another_version_s_run_is_marked_and_said_when_it_is_computed_again(keep, page) -> None:
    keep(COMPARE, sample="race")
    ours = library()
    old = next(one for one in ours.runs() if one.record.settings["fabric"] == "static")
    changed = {**old.record.measures, "iteration_ms": 1.0}
    (new,) = ours.add([replace(old.record, version="0.0.1", measures=changed, started=1.0)])
    at = page(chosen=f"{old.id},{new}")
    assert "B: computed by another version, and computed again by this one" in words(at)
    assert "another one" not in words(page(mine="yes"))


@pytest.mark.long
def test_what_is_exported_is_what_is_listed_and_nonsense_is_a_line(
    keep, page, downloads, tmp_path
) -> None:
    keep(COMPARE, sample="race")
    at = page(before="yesterday", kind="spaceship", chosen="a,b")
    assert len(at.warning) == 1 and "runs.before=yesterday" in at.warning[0].value
    page(kind="fabric")
    assert len(downloads["Table (CSV)"]().splitlines()) == 8
    brought = downloads["Library (SQLite), with results and inputs"]()
    (tmp_path / "theirs.sqlite").write_bytes(brought)
    with RunLibrary.open(tmp_path / "theirs.sqlite", create=False) as theirs:
        assert theirs.count() == 7


@pytest.mark.long
def test_every_solve_is_kept_where_the_reader_wants_that(visit) -> None:
    at = choose(visit(RUNS), keep_every_solve=True)
    assert "keep" not in " ".join(address(at))
    at.query_params["sample"] = "race"
    turn_to(at, SCHEDULE)
    assert library().count() == 1
    choose(at, reconfiguration_ms=5.0).run()
    assert library().count() == 2


@pytest.mark.long
def test_a_server_for_several_people_keeps_no_runs_unless_its_owner_says_so(
    owner_sets, visit, page
) -> None:
    owner_sets(ADDRESS="0.0.0.0")
    assert "keeps no runs" in words(page())
    assert visit(SCHEDULE, sample="race").button(key="keep_run").disabled
    assert not Path(os.environ["TOPOX_LIBRARY"]).exists()
    owner_sets(RUN_LIBRARY="yes")
    assert not visit(SCHEDULE, sample="race").button(key="keep_run").disabled


def test_runs_that_tie_are_the_fastest_together() -> None:
    runs = tuple(
        SimpleNamespace(
            record=SimpleNamespace(measures={"iteration_ms": ms}, subject="", graph="", name="")
        )
        for ms in (100.4, 100.0, 120.0)
    )
    said = finding(RunComparison(runs, (), ()))
    assert said.startswith("A and B are the fastest of 3 runs: <b>100")
    assert "C is the slowest" in said


def test_a_tick_is_taken_by_its_row_and_the_oldest_choice_gives_way(monkeypatch) -> None:
    kept = [RunsState(chosen=(1, 2, 3, 4))]
    monkeypatch.setattr(RunsState, "now", lambda: kept[0])
    monkeypatch.setattr(RunsState, "choose", lambda **one: kept.insert(0, kept[0].changed(**one)))

    def ticked(row: int, on: bool) -> tuple[int, ...]:
        edited = {"edited_rows": {row: {"Choose": on}}}
        monkeypatch.setattr(st, "session_state", {"table": edited})
        _edited("table", partial(_ticked, [7, 4, 3]))
        return kept[0].chosen

    assert ticked(0, True) == (2, 3, 4, 7)
    assert ticked(1, False) == (2, 3, 7)
