"""Runs: what is kept on Schedule and Compare is listed, set side by side, opened as it was, deleted and put back."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.topox_ui.conftest import SCHEDULE, address, chart, control, metric, words
from topox_core.fabrics.registry import FABRICS
from topox_core.library.filters import RunFilter
from topox_core.library.merging import export_library
from topox_core.library.run_library import RunLibrary
from topox_core.papers.catalogue import CARDS
from topox_core.papers.kept_answers import keep as keep_answer
from topox_core.runs.identity import code_version
from topox_core.runs.stopping import never
from topox_ui.library.executions import drawn_run, execution_of
from topox_ui.library.listing import PAGE, run_words
from topox_ui.runs.limits import server_limits

COMPARE, RUNS = "pages/3_Compare.py", "pages/14_Runs.py"


def library() -> RunLibrary:
    return RunLibrary.open(Path(os.environ["TOPOX_LIBRARY"]))


@pytest.fixture
def keep(visit):
    """Keep what a page shows."""

    def kept(page: str = SCHEDULE, **query: str):
        at = visit(page, **query)
        at.button(key="keep_run").click().run()
        assert not at.exception and not at.error
        return at

    return kept


@pytest.fixture
def page(visit):
    def opened(**query: str):
        at = visit(RUNS, **{f"runs.{key}": value for key, value in query.items()})
        assert not at.exception
        return at

    return opened


def test_without_a_run_the_page_leads_to_where_one_is_kept_and_makes_no_file(page) -> None:
    at = page()
    assert "No run is kept yet." in words(at)
    assert {"Go to Schedule", "Go to Compare"} <= {
        link.proto.label for link in at.main.get("page_link")
    }
    assert not Path(os.environ["TOPOX_LIBRARY"]).exists()


@pytest.mark.long
def test_answers_of_published_cards_are_listed_only_when_they_are_asked_for(page, keep) -> None:
    card = CARDS["opus-cost"]
    keep_answer(library(), card, card.run(None, never, lambda _row: None), 1.0)
    assert "No run is kept yet." in words(page())
    keep(sample="race")
    at = page()
    assert len(at.dataframe[0].value) == 1
    assert card.title not in words(at)
    listed = page(kind="card").dataframe[0].value
    assert len(listed) == 1
    assert card.title in listed["Subject"][0]


def test_a_solve_is_kept_with_what_the_page_shows(keep) -> None:
    at = keep(sample="race", reconfiguration_ms="5")
    assert "Kept as run 1." in words(at)
    (one,) = library().runs()
    record = one.record
    assert f"{record.measures['iteration_ms']:.4g}"[:4] in metric(at, "Iteration time")
    assert record.settings["cluster.reconfiguration_ms"] == 5.0
    assert record.link == "sample=race&reconfiguration_ms=5"
    at.button(key="keep_run").click().run()
    assert "Kept before as run 1." in words(at)
    assert library().count() == 1


def test_compare_keeps_a_run_a_fabric_and_planned_circuits_as_the_solve_of_schedule(keep) -> None:
    keep(sample="race")
    at = keep(COMPARE, sample="race")
    assert "Kept before as run 1." in words(at)
    kept = {one.record.settings["fabric"]: one.record for one in library().runs()}
    shown = next(f.value for f in at.dataframe if "Bandwidth tax" in f.value.columns)
    assert len(kept) == len(shown) > 4
    for label, text in zip(shown["Fabric"], shown["Iteration time"], strict=True):
        name = next(name for name in FABRICS if FABRICS[name].split(",")[0] in label)
        assert f"{kept[name].measures['iteration_ms']:.3g}" in text.replace("\u00a0", " ")


@pytest.mark.long
def test_every_run_of_compare_can_be_drawn_and_says_nothing_where_it_comes_out_alike(keep) -> None:
    keep(COMPARE, sample="race", reconfiguration_ms="2", rings="1")
    ours = library()
    for one in ours.runs():
        execution, note = execution_of(ours, one)
        assert execution.makespan_ms == pytest.approx(
            one.record.measures["iteration_ms"], rel=1e-12
        )
        assert note == ""


def test_two_runs_side_by_side_say_what_one_setting_does(keep, page) -> None:
    keep(sample="race")
    keep(sample="race", reconfiguration_ms="5")
    at = page(chosen="1,2")
    text = words(at)
    first, second = (library().get(run).record.measures["iteration_ms"] for run in (1, 2))
    assert "With reconfiguration delay 0 ms instead of 5 ms an iteration takes" in text
    assert f"{100 * (second - first) / second:.3g} % less" in text
    assert "What differs" in text and "Equal:" in text
    clocks = [chart(at, f"clock_{letter}")["layout"]["xaxis"]["range"] for letter in "AB"]
    assert clocks[0] == clocks[1] == [0, second]
    assert chart(at, "clock_A")["layout"]["shapes"][0]["x0"] == first


@pytest.mark.long
def test_windows_of_both_runs_are_drawn_on_one_axis(keep, page) -> None:
    keep(sample="moe")
    keep(sample="moe", port_gbps="100")
    at = page(chosen="2,1")
    drawn = chart(at, "windows_compared")["data"]
    assert [trace["name"] for trace in drawn] == ["A", "B"]
    ours = library()
    for trace, run in zip(drawn, (2, 1), strict=True):
        assert len(trace["x"]) == len(drawn_run(ours, ours.get(run)).windows_ms) + 2


@pytest.mark.long
def test_more_than_two_runs_name_the_fastest_and_the_slowest(keep, page) -> None:
    keep(COMPARE, sample="race")
    ours = library().runs()
    order = sorted(ours, key=lambda one: one.record.measures["iteration_ms"])
    chosen = [order[-1], order[2], order[0]]
    text = words(page(chosen=",".join(str(one.id) for one in chosen)))
    assert "C is the fastest of 3 runs" in text and "A is the slowest" in text


@pytest.mark.long
def test_different_jobs_are_called_that(keep, page) -> None:
    keep(sample="race")
    keep(sample="blackboard")
    assert "Two different jobs: A, race, takes" in words(page(chosen="1,2"))


@pytest.mark.long
def test_filters_leave_what_matches_and_a_link_restores_them(keep, page) -> None:
    keep(COMPARE, sample="race")
    keep(sample="blackboard")
    at = page(kind="schedule", text="RACE")
    assert "6 kept" not in words(at)
    assert "1 match" in words(at)
    control(at, "runs_text").set_value("nothing like it").run()
    assert "No run matches." in words(at) and not at.exception
    assert address(at)["runs.text"] == "nothing like it"


@pytest.mark.long
def test_a_run_is_named_deleted_and_put_back(keep, page) -> None:
    keep(sample="race")
    keep(sample="blackboard")
    at = page(chosen="2")
    at.text_input(key="name_2").set_value("for the class").run()
    assert library().get(2).record.name == "for the class"
    assert "for the class: an iteration takes" in words(at)
    at.button(key="delete_runs").click().run()
    assert not at.exception and library().count() == 1
    assert "1 deleted run" in at.button(key="undo_delete").label.replace("\u00a0", " ")
    at.button(key="undo_delete").click().run()
    assert library().get(2).record.name == "for the class" and library().result(2)


@pytest.mark.long
def test_the_last_run_can_be_put_back_from_the_empty_page(keep, page) -> None:
    keep(sample="race")
    at = page(chosen="1")
    at.button(key="delete_runs").click().run()
    assert "No run is kept yet." in words(at)
    at.button(key="undo_delete").click().run()
    assert library().count() == 1 and "1 run to open again" in words(at)


@pytest.mark.long
def test_a_kept_proof_opens_with_its_result_and_not_with_another(keep, page) -> None:
    keep(sample="race", reconfiguration_ms="5", port_gbps="30")
    record = library().get(1).record
    at = page(chosen="1")
    at.button(key="open_A").click().run()
    assert not at.exception and not at.error
    assert "Schedule · race" in words(at)
    assert address(at) == {"sample": "race", "reconfiguration_ms": "5", "port_gbps": "30"}
    assert "from the run library" in at.info[0].value
    assert f"{record.measures['iteration_ms']:.3g}" in metric(at, "Iteration time")


@pytest.mark.long
def test_own_files_are_opened_from_the_library_with_their_what_ifs(keep, visit, page) -> None:
    import json

    from topox_core.io.cluster_file import dump_cluster
    from topox_core.io.task_graph_file import dump_graph_json
    from topox_core.workloads.samples import load_sample

    graph, cluster = load_sample("race")
    mine = replace(graph, name="mine")
    at = visit("app.py", way="files")
    at.file_uploader(key="up_graph").upload("mine.taskgraph.json", dump_graph_json(mine))
    at.file_uploader(key="up_cluster").upload("mine.cluster.json", dump_cluster(cluster)).run()
    assert not at.exception and not at.error, [e.value for e in at.error]
    at.switch_page(SCHEDULE).run()
    control(at, "port_gbps").set_value(100.0).run()
    at.button(key="keep_run").click().run()
    (one,) = library().runs()
    assert one.record.link == "port_gbps=100"
    assert json.loads(library().input(one.record.settings["subject"]["digests"]["graph"]).content)
    at = page(chosen=str(one.id))
    at.button(key="open_A").click().run()
    assert not at.exception and not at.error
    assert "Schedule · mine" in words(at)
    assert control(at, "port_gbps").value == 100.0
    assert f"{one.record.measures['iteration_ms']:.3g}" in metric(at, "Iteration time")


@pytest.mark.long
def test_the_list_has_pages(keep, page) -> None:
    keep(sample="race")
    ours = library()
    record = ours.get(1).record
    more = [
        replace(record, key=f"{k:064x}", started=float(k), name=f"run {k}", result=None)
        for k in range(1, PAGE + 11)
    ]
    ours.add(more)
    at = page()
    assert len(at.dataframe[0].value) == PAGE
    at.button(key="runs_older").click().run()
    second = list(at.dataframe[0].value["Name"])
    assert second == [f"run {k}" for k in range(11, 0, -1)]
    assert "runs.before" in address(at)
    at.button(key="runs_newest").click().run()
    assert next(iter(at.dataframe[0].value["Run"])) == 1


@pytest.mark.long
def test_a_choice_by_name_is_in_the_address_and_a_run_that_is_gone_is_no_longer_chosen(
    keep, page
) -> None:
    keep(sample="race")
    keep(sample="race", reconfiguration_ms="5")
    at = page(chosen="1,77")
    assert address(at)["runs.chosen"] == "1"
    known = library()
    control(at, "runs_chosen").set_value([1, 2]).run()
    assert address(at)["runs.chosen"] == "1,2"
    assert run_words(known.get(2)).startswith("2: race")


@pytest.mark.long
def test_another_version_s_run_is_marked_and_said_when_it_is_computed_again(keep, page) -> None:
    keep(COMPARE, sample="race")
    ours = library()
    old = next(one for one in ours.runs() if one.record.settings["fabric"] == "static")
    changed = {**old.record.measures, "iteration_ms": 1.0}
    (new,) = ours.add([replace(old.record, version="0.0.1", measures=changed, started=1.0)])
    at = page(chosen=f"{old.id},{new}")
    text = words(at)
    assert "B: computed by another version, and computed again by this one" in text
    assert "where 1 ms was kept" in text
    assert set(at.dataframe[0].value["Version"]) == {"this one", "another one"}
    assert "another one" not in words(page(mine="yes"))
    assert library().count(RunFilter(version=code_version())) == len(ours.runs()) - 1


@pytest.mark.long
def test_a_link_with_nonsense_is_one_line(page, keep) -> None:
    keep(sample="race")
    at = page(before="yesterday", kind="spaceship", chosen="a,b")
    assert len(at.warning) == 1 and "runs.before=yesterday" in at.warning[0].value
    assert "1 run to open again" in words(at)


@pytest.mark.long
def test_what_is_exported_is_what_is_listed_and_can_be_taken_in(
    keep, page, downloads, tmp_path
) -> None:
    keep(COMPARE, sample="race")
    page(kind="fabric")
    rows = downloads["Table (CSV)"]().decode().splitlines()
    assert len(rows) == 6 and "iteration_ms" in rows[0]
    assert downloads["Table (Parquet)"]()[:4] == b"PAR1"
    brought = downloads["Library (SQLite), with results and inputs"]()
    assert brought.startswith(b"SQLite format 3")
    before = library()
    before.delete([one.id for one in before.runs()])
    at = page()
    at.file_uploader(key="up_library").upload("theirs.sqlite", brought).run()
    assert not at.exception
    assert "theirs.sqlite: 5 runs taken in" in at.info[0].value.replace("\u00a0", " ")
    assert library().count() == 5
    export_library(library(), tmp_path / "again.sqlite")


@pytest.mark.long
def test_a_file_that_is_no_library_is_one_line(page, keep) -> None:
    keep(sample="race")
    at = page()
    at.file_uploader(key="up_library").upload("notes.txt", b"not a library at all").run()
    assert not at.exception and len(at.error) == 1
    assert "notes.txt" in at.error[0].value and "is no run library" in at.error[0].value


def test_a_library_that_cannot_be_used_is_one_line_and_stays(page) -> None:
    path = Path(os.environ["TOPOX_LIBRARY"])
    path.write_bytes(b"somebody else's notes" * 100)
    at = page()
    assert len(at.error) == 1 and "is no run library" in at.error[0].value
    assert path.read_bytes().startswith(b"somebody else's notes")


@pytest.mark.long
def test_every_solve_is_kept_where_the_reader_wants_that(visit) -> None:
    at = visit(RUNS)
    control(at, "keep_every_solve").set_value(True).run()
    assert "keep" not in " ".join(address(at))
    at.query_params["sample"] = "race"
    at.switch_page(SCHEDULE).run()
    assert not at.exception and library().count() == 1
    control(at, "reconfiguration_ms").set_value(5.0).run()
    assert library().count() == 2
    at.run()
    assert library().count() == 2


@pytest.fixture
def shared_server(monkeypatch):
    monkeypatch.setenv("TOPOX_ADDRESS", "0.0.0.0")
    server_limits.cache_clear()
    yield
    server_limits.cache_clear()


@pytest.mark.long
def test_a_server_for_several_people_keeps_no_runs_unless_its_owner_says_so(
    shared_server, visit, page, monkeypatch
) -> None:
    assert "keeps no runs" in words(page())
    at = visit(SCHEDULE, sample="race")
    assert at.button(key="keep_run").disabled
    assert not Path(os.environ["TOPOX_LIBRARY"]).exists()
    monkeypatch.setenv("TOPOX_RUN_LIBRARY", "yes")
    server_limits.cache_clear()
    assert not visit(SCHEDULE, sample="race").button(key="keep_run").disabled
