"""What is put into the library comes back as it was, once, only what was asked for, and so in comparisons and tables."""

import csv
import io
import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.refusal import refusal
from tests.topox_core.library.records import inputs_of, key, packed, record
from topox_core.library.rows import RunFilter, RunRecord, StoredRun, deflated, inflated
from topox_core.library.run_library import KeptInput, RunLibrary
from topox_core.library.tables import (
    alike,
    compare_runs,
    different,
    run_table,
    runs_csv,
    runs_parquet,
)


@pytest.fixture
def library(tmp_path: Path) -> Any:
    with RunLibrary.open(tmp_path / "runs.sqlite") as library:
        yield library


TEXTS = st.text(max_size=30)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SETTINGS = st.dictionaries(
    TEXTS, st.one_of(st.none(), st.booleans(), st.integers(), NUMBERS, TEXTS), max_size=5
)
RECORDS = st.builds(
    RunRecord,
    key=TEXTS.map(key),
    version=TEXTS,
    kind=TEXTS,
    subject=TEXTS,
    graph=TEXTS,
    cluster=TEXTS,
    settings=SETTINGS,
    status=TEXTS,
    stopped_by=TEXTS,
    measures=st.dictionaries(
        st.sampled_from(["iteration_ms", "bound_ms", "gap", "changes", "windows", "x y"]),
        st.one_of(st.none(), NUMBERS, st.integers(-(10**6), 10**6)),
    ),
    message=TEXTS,
    seed=st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    name=TEXTS,
    link=TEXTS,
    host=TEXTS,
    started=NUMBERS,
    wall_s=NUMBERS,
    result=st.none() | st.binary(max_size=50).map(deflated),
)


@examples(40)
@given(st.lists(RECORDS, max_size=8, unique_by=lambda one: (one.key, one.version)))
def test_whatever_is_added_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, records: list[RunRecord]
) -> None:
    with RunLibrary.open(tmp_path_factory.mktemp("library") / "runs.sqlite") as library:
        ids = library.add(records)
        stored = [library.get(run) for run in ids]
        assert [one.record for one in stored] == [replace(one, result=None) for one in records]
        results = [one.result and inflated(one.result, "", "") for one in records]
        assert [library.result(run) for run in ids] == results
        assert library.runs(limit=100) == sorted(stored, key=lambda one: one.place, reverse=True)


@pytest.mark.parametrize(
    "lesser",
    [
        record("a", status="failed", measures={}, message="the worker ended", name="mine"),
        record("a", stopped_by="cancelled", result=packed("half"), name="mine"),
    ],
    ids=["failed", "cancelled"],
)
def test_a_run_that_did_not_end_gives_way_to_one_that_did_and_keeps_its_name(
    library: RunLibrary, lesser: RunRecord
) -> None:
    (run,) = library.add([lesser])
    assert library.add([record("a", result=packed("whole"))]) == (run,)
    assert library.get(run).record == record("a", name="mine")
    assert library.result(run) == b"whole"
    library.add([lesser, record("a", host="there")])
    assert [one.record for one in library.each()] == [record("a", name="mine")]


def test_a_missing_result_is_filled_in_by_the_same_outcome_only(library: RunLibrary) -> None:
    (run,) = library.add([record("a", measures={"iteration_ms": 2.0, "gap": math.nan})])
    assert library.get(run).record.measures == {"iteration_ms": 2.0, "gap": None}
    library.add([record("a", measures={"iteration_ms": 1.0}, result=packed("another"))])
    assert library.result(run) is None
    outcome = {"iteration_ms": 2.0, "gap": None}
    library.add([record("a", measures=outcome, result=packed("the same"))])
    assert library.result(run) == b"the same"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"key": "abc"}, "run, race, field key: must be a SHA-256"),
        ({"settings": {"x": math.nan}}, "run, race, field settings: cannot be kept"),
        ({"settings": {"x": object()}}, "run, race, field settings: cannot be kept"),
        ({"seed": 1 << 63}, "run, race, field seed: must be a whole number of at most 63 bits"),
    ],
)
def test_a_run_that_cannot_be_kept_is_refused_with_all_that_came_with_it(
    library: RunLibrary, changes: dict[str, Any], words: str
) -> None:
    assert words in refusal(library.add, [record("fine"), record("wrong", **changes)])
    assert library.count() == 0


def test_known_runs_are_found_by_key_in_any_number(library: RunLibrary) -> None:
    records = [record(number) for number in range(650)]
    library.add(records[:620])
    library.add([record(3, version="2.0+def", started=2000.0)])
    known = library.known((one.key for one in records), "1.0+abc")
    assert set(known) == {one.key for one in records[:620]}
    assert all(one.record.key == at for at, one in known.items())
    assert library.known([key(3)])[key(3)].record.version == "2.0+def"


# filters, against the same in plain Python

SUBJECTS, VALUES = ["race", "Ring", "ÄR"], [None, True, False, 1, 1.5, "1", "yes", 0.1]


def meant(which: RunFilter, stored: StoredRun, members: set[int]) -> bool:
    one = stored.record
    iteration_ms = one.measures.get("iteration_ms")
    text = which.text.lower()
    return (
        which.subject in ("", one.subject, one.graph)
        and which.status in ("", one.status)
        and which.kind in ("", one.kind)
        and which.version in ("", one.version)
        and (which.study is None or stored.id in members)
        and (text in one.name.lower() or text in one.subject.lower())
        and (
            which.shortest_ms is None
            or (iteration_ms is not None and iteration_ms >= which.shortest_ms)
        )
        and (
            which.longest_ms is None
            or (iteration_ms is not None and iteration_ms <= which.longest_ms)
        )
        and all(one.settings.get(name) == value for name, value in which.settings.items())
    )


SMALL = st.builds(
    lambda word, subject, status, kind, version, name, iteration_ms, settings, started: record(
        word,
        subject=subject,
        graph=key(subject),
        status=status,
        kind=kind,
        version=version,
        name=name,
        measures={"iteration_ms": iteration_ms},
        settings=settings,
        started=started,
    ),
    word=st.integers(),
    subject=st.sampled_from(SUBJECTS),
    status=st.sampled_from(["feasible", "failed"]),
    kind=st.sampled_from(["fabric", "rail"]),
    version=st.sampled_from(["1", "2"]),
    name=st.sampled_from(["", "my race", "100 %", "a_b"]),
    iteration_ms=st.none() | st.floats(0, 10),
    settings=st.dictionaries(
        st.sampled_from(["cluster.port_gbps", 'a"b', "seed"]), st.sampled_from(VALUES)
    ),
    started=st.sampled_from([0.0, 1.0, 2.0]),
)
FILTERS = st.builds(
    RunFilter,
    subject=st.sampled_from(["", *SUBJECTS, key("race")]),
    status=st.sampled_from(["", "feasible", "failed"]),
    kind=st.sampled_from(["", "fabric", "bill"]),
    version=st.sampled_from(["", "1"]),
    study=st.sampled_from([None, 1]),
    text=st.sampled_from(["", "RACE", "%", "_", "r"]),
    shortest_ms=st.none() | st.floats(0, 10),
    longest_ms=st.none() | st.floats(0, 10),
    settings=st.dictionaries(
        st.sampled_from(["cluster.port_gbps", 'a"b', "seed"]), st.sampled_from(VALUES), max_size=1
    ),
)


@examples(60)
@given(
    st.lists(SMALL, min_size=5, max_size=20, unique_by=lambda one: (one.key, one.version)),
    st.lists(FILTERS, min_size=1, max_size=8),
)
def test_a_filter_keeps_what_plain_python_keeps(
    tmp_path_factory: pytest.TempPathFactory, records: list[RunRecord], filters: list[RunFilter]
) -> None:
    with RunLibrary.open(tmp_path_factory.mktemp("library") / "runs.sqlite") as library:
        study = library.add_study(key("study"), "study", {}, len(records), "1")
        members = set(library.add(records[::2]))
        library.link_points(study, dict(enumerate(members)))
        library.add(records)
        stored = library.runs(limit=1000)
        for which in filters:
            expected = [one for one in stored if meant(which, one, members)]
            assert library.runs(which, limit=1000) == expected
            assert library.count(which) == len(expected)
            assert sorted(library.each(which, 3), key=lambda one: one.place) == expected[::-1]
            paged: list[StoredRun] = []
            while page := library.runs(which, paged[-1].place if paged else None, 2):
                paged += page
            assert paged == expected


def test_what_is_not_there_and_what_is_no_value_is_one_line(library: RunLibrary) -> None:
    study = library.add_study(key("s"), "s", {}, 1, "1")
    filters = [RunFilter(settings={"x": wrong}) for wrong in ([1], math.nan, 10**400)]
    for asked, words in (
        (lambda: library.get(77), "run 77: there is no such run"),
        (lambda: library.rename(77, "x"), "run 77: there is no such run"),
        (lambda: library.set_study_state(9, "x"), "study 9: there is no such study"),
        (lambda: library.link_points(study, {1: 99}), "cannot be used"),
        *((partial(library.runs, one), "filter, field x: must be a finite") for one in filters),
    ):
        assert words in refusal(asked)


# names, deletion


def test_deleted_runs_can_be_put_back_as_they_were_unless_they_were_computed_again(
    library: RunLibrary,
) -> None:
    study = library.add_study(key("s"), "s", {}, 2, "1")
    ids = library.add([record("a", result=packed("{}")), record("b")])
    library.link_points(study, dict(enumerate(ids)))
    points = RunFilter(study=study)
    library.rename(ids[0], "the good one")
    before = list(library.each(points))
    deleted = library.delete([*ids, 999])
    assert (library.count(), library.count(points)) == (0, 0)
    assert library.restore(deleted) == 2
    assert (list(library.each(points)), library.result(ids[0])) == (before, b"{}")
    deleted = library.delete(ids)
    (again,) = library.add([record("a", host="there")])
    assert again not in ids, "a number is never used twice"
    assert (library.restore(deleted), library.get(again).record.host) == (1, "there")


# studies


def test_a_study_is_found_again_with_what_it_became(library: RunLibrary) -> None:
    study = library.add_study(key("s"), "old name", {"axes": []}, 3, "1")
    library.link_points(
        study, dict(zip((2, 0), library.add([record("c"), record("a")]), strict=True))
    )
    assert library.add_study(key("s"), "new name", {"axes": [1]}, 3, "1") == study
    assert library.add_study(key("s"), "new name", {"axes": [1]}, 3, "2") != study
    library.set_study_state(study, "cancelled")
    (found,) = (one for one in library.studies() if one.id == study)
    assert (found.name, found.record) == ("new name", {"axes": [1]})
    assert (found.points, found.kept, found.state) == (3, 2, "cancelled")
    assert {one.record.key for one in library.each(RunFilter(study=study))} == {key("a"), key("c")}


def test_a_run_may_be_a_point_of_two_studies_and_two_points_one_run(library: RunLibrary) -> None:
    first, second = (library.add_study(key(name), name, {}, 2, "1") for name in "st")
    (run,) = library.add([record("a")])
    for study in (first, second):
        library.link_points(study, dict(enumerate(library.add([record("a"), record("a")]))))
        assert [one.id for one in library.each(RunFilter(study=study))] == [run]
    assert [one.kept for one in library.studies()] == [2, 2]


def test_points_of_studies_are_told_from_what_a_person_kept(library: RunLibrary) -> None:
    ids = library.add(
        [record("a"), record("b", link="sample=race"), record("c", kind="schedule"), record("d")]
    )
    library.rename(ids[3], "mine")
    kept = RunFilter(kept_only=True)
    assert {one.id for one in library.runs(kept)} == set(ids[1:])
    # Kept from a page as well, a point has the page's link.
    assert library.add([record("a", link="sample=race")]) == ids[:1]
    assert library.count(kept) == 4


# inputs, subjects


def test_inputs_are_kept_once_and_whole_and_subjects_are_named_newest_first(
    library: RunLibrary,
) -> None:
    content = json.dumps({"tasks": list(range(1000))}).encode()
    for name, data in (("race.json", content), ("other.json", b"")):
        library.keep_inputs([KeptInput(key("g"), "graph", name, data)])
    kept = library.input(key("g"))
    assert (kept.kind, kept.name, kept.content) == ("graph", "race.json", content)
    assert library.input(key("none")) is None and inputs_of(library) == [key("g")]
    library.add([record(1), record(2, started=5000.0), record(3, subject="ring", started=3000.0)])
    assert library.subjects() == ["race", "ring"]


# side by side and in tables


def stored(*records: RunRecord) -> list[StoredRun]:
    return [StoredRun(number, one, False) for number, one in enumerate(records, 1)]


def test_what_differs_is_told_from_what_is_equal() -> None:
    one = record("a", measures={"iteration_ms": 200.0, "gap": None, "windows": 3})
    other = replace(
        one,
        cluster=key("faster"),
        settings={**one.settings, "cluster.port_gbps": 400.0, "subject": {"name": "race"}},
        measures={"iteration_ms": 50.0, "gap": None, "windows": 3, "dollars": 7.0},
        status="optimal",
    )
    compared = compare_runs(stored(one, other))
    assert {row.name: row.values for row in different(compared.settings)} == {
        "cluster.port_gbps": (100.0, 400.0),
        "subject.name": (None, "race"),
    }
    assert alike(compared.settings)["fabric"] == "scheduled"
    assert {row.name: row.values for row in different(compared.outcome)} == {
        "status": ("feasible", "optimal"),
        "iteration_ms": (200.0, 50.0),
        "dollars": (None, 7.0),
    }
    assert alike(compared.outcome) == {"stopped_by": "heuristic", "gap": None, "windows": 3}
    ratios = {row.name: row.ratios for row in compared.outcome}
    assert (ratios["iteration_ms"], ratios["status"]) == ((1.0, 0.25), (None, None))


def test_clusters_that_differ_in_no_key_that_was_kept_differ_by_digest() -> None:
    one = record("a")
    compared = compare_runs(stored(one, replace(one, cluster=key("other"), version="2")))
    assert [row.name for row in different(compared.settings)] == ["cluster", "version"]


RUNS = [
    record(
        "a",
        name="=1+1",
        started=0.5,
        settings={"cluster.port_gbps": 100.0, "seed": 0, "strides": [1, 3], "status": "asked"},
        measures={"iteration_ms": 1.5, "gap": -0.25, "windows": 3},
    ),
    record(
        "b", settings={"subject": {"kind": "sample"}, "on": True}, measures={"iteration_ms": None}
    ),
]


def test_every_run_is_a_row_and_no_cell_is_a_formula(library: RunLibrary) -> None:
    library.add(RUNS)
    first, second = csv.DictReader(io.StringIO(runs_csv(library).decode()))
    cells = {"name": "'=1+1", "run": "1", "started": "1970-01-01T00:00:00.500+00:00"}
    cells |= {"cluster.port_gbps": "100.0", "gap": "-0.25", "windows": "3"}
    assert first == first | cells | {"strides": "[1, 3]", "settings.status": "asked"}
    cells = {"subject": "race", "subject.kind": "sample", "on": "True"}
    assert second == second | cells | {"iteration_ms": "", "seed": "0"}
    assert "settings.seed" not in first


def test_parquet_holds_the_same_table_with_numbers_as_numbers(library: RunLibrary) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    library.add(RUNS)
    columns, rows = run_table(library)
    read = parquet.read_table(io.BytesIO(runs_parquet(library)))
    assert tuple(read.column_names) == columns
    assert [tuple(row.values()) for row in read.to_pylist()] == list(rows)
    names = ("iteration_ms", "windows", "on", "name")
    kinds = [str(read.schema.field(name).type) for name in names]
    assert kinds == ["double", "int64", "bool", "string"]
