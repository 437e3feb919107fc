"""What is put into the library comes back as it was, once, and only what was asked for."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.library.records import key, packed, record
from topox_core.errors import InputError
from topox_core.library.filters import RunFilter
from topox_core.library.record import RunRecord
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import RunLibrary


@pytest.fixture
def library(tmp_path: Path) -> Any:
    with RunLibrary.open(tmp_path / "runs.sqlite") as library:
        yield library


def test_a_run_comes_back_as_it_was_added(library: RunLibrary) -> None:
    one = record("a", name="first", link="?delay=3", message="said", result=packed("{}"))
    (run,) = library.add([one])
    stored = library.get(run)
    assert stored.record == replace(one, result=None)
    assert stored.has_result
    assert library.result(run) == b"{}"


def test_a_run_without_result_has_none(library: RunLibrary) -> None:
    (run,) = library.add([record()])
    assert not library.get(run).has_result
    assert library.result(run) is None


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
    result=st.none() | st.binary(max_size=50),
)


@examples(60)
@given(st.lists(RECORDS, max_size=8, unique_by=lambda one: (one.key, one.version)))
def test_whatever_is_added_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, records: list[RunRecord]
) -> None:
    with RunLibrary.open(tmp_path_factory.mktemp("library") / "runs.sqlite") as library:
        ids = library.add(records)
        stored = [library.get(run) for run in ids]
        results = [library.packed_result(run) for run in ids]
        assert [replace(one.record, result=None) for one in stored] == [
            replace(one, result=None) for one in records
        ]
        assert results == [one.result for one in records]
        listed = library.runs(limit=100)
        assert {one.id for one in listed} == set(ids)
        assert [one.place for one in listed] == sorted((one.place for one in stored), reverse=True)


def test_the_same_computation_is_kept_once_a_version(library: RunLibrary) -> None:
    (first,) = library.add([record("a")])
    again, other = library.add([record("a", host="there"), record("a", version="2.0+def")])
    assert (again == first, other == first) == (True, False)
    assert library.get(first).record.host == "here"
    assert library.count() == 2


def test_a_run_that_failed_gives_way_to_one_that_did_not(library: RunLibrary) -> None:
    failed = record("a", status="failed", measures={}, message="the worker ended", name="mine")
    (run,) = library.add([failed])
    assert library.add([record("a", result=packed("{}"))]) == (run,)
    stored = library.get(run)
    assert (stored.record.status, stored.record.name) == ("feasible", "mine")
    assert library.result(run) == b"{}"
    library.add([failed])
    assert library.get(run).record.status == "feasible"


def test_a_cancelled_run_gives_way_to_a_whole_one(library: RunLibrary) -> None:
    (run,) = library.add([record("a", stopped_by="cancelled", result=packed("half"))])
    library.add([record("a", stopped_by="time_limit", result=packed("whole"))])
    assert library.get(run).record.stopped_by == "time_limit"
    assert library.result(run) == b"whole"


def test_a_missing_result_is_filled_in_by_the_same_outcome_only(library: RunLibrary) -> None:
    (run,) = library.add([record("a")])
    library.add([record("a", measures={"iteration_ms": 1.0}, result=packed("another"))])
    assert library.result(run) is None
    library.add([record("a", result=packed("the same"))])
    assert library.result(run) == b"the same"


def test_what_is_no_number_is_kept_as_no_value(library: RunLibrary) -> None:
    (run,) = library.add([record(measures={"iteration_ms": math.inf, "gap": math.nan})])
    assert library.get(run).record.measures == {"iteration_ms": None, "gap": None}


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
    with pytest.raises(InputError, match=words):
        library.add([record("fine"), record("wrong", **changes)])
    assert library.count() == 0


def test_known_runs_are_found_by_key_in_any_number(library: RunLibrary) -> None:
    records = [record(number) for number in range(1300)]
    library.add(records[:1250])
    library.add([record(3, version="2.0+def", started=2000.0)])
    known = library.known((one.key for one in records), "1.0+abc")
    assert list(known) and set(known) == {one.key for one in records[:1250]}
    assert all(one.record.key == at for at, one in known.items())
    assert library.known([key(3)])[key(3)].record.version == "2.0+def"
    assert library.known([]) == {}


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


@examples(100)
@given(
    st.lists(SMALL, min_size=5, max_size=20, unique_by=lambda one: (one.key, one.version)),
    st.lists(FILTERS, min_size=1, max_size=8),
)
def test_a_filter_keeps_what_plain_python_keeps(
    tmp_path_factory: pytest.TempPathFactory, records: list[RunRecord], filters: list[RunFilter]
) -> None:
    with RunLibrary.open(tmp_path_factory.mktemp("library") / "runs.sqlite") as library:
        study = library.add_study(key("study"), "study", {}, len(records), "1")
        members = set(library.add(records[::2], study, range(len(records[::2]))))
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


def test_a_filter_by_what_is_no_value_is_one_line(library: RunLibrary) -> None:
    for wrong in ([1], math.nan, 10**400):
        with pytest.raises(InputError, match="filter, field x: must be a finite number or a word"):
            library.runs(RunFilter(settings={"x": wrong}))  # type: ignore[dict-item]


# names, deletion


def test_a_name_is_given_and_taken_away(library: RunLibrary) -> None:
    (run,) = library.add([record()])
    library.rename(run, "the good one")
    assert library.get(run).record.name == "the good one"
    library.rename(run, "")
    assert library.get(run).record.name == ""
    with pytest.raises(InputError, match="run 77: there is no such run"):
        library.rename(77, "x")
    with pytest.raises(InputError, match="run 77: there is no such run"):
        library.get(77)


def test_deleted_runs_can_be_put_back_as_they_were(library: RunLibrary) -> None:
    study = library.add_study(key("s"), "s", {}, 2, "1")
    ids = library.add([record("a", result=packed("{}")), record("b")], study, [0, 1])
    before = library.study_runs(study)
    deleted = library.delete([*ids, 999])
    assert len(deleted) == 2
    assert library.count() == 0 and library.study_runs(study) == []
    assert library.packed_result(ids[0]) is None
    assert library.restore(deleted) == 2
    assert library.study_runs(study) == before
    assert library.result(ids[0]) == b"{}"


def test_a_deleted_run_that_was_computed_again_is_not_put_back_over_it(library: RunLibrary) -> None:
    (run,) = library.add([record("a")])
    deleted = library.delete([run])
    (again,) = library.add([record("a", host="there")])
    assert again != run, "a number is never used twice"
    assert library.restore(deleted) == 0
    assert library.get(again).record.host == "there"


# studies


def test_a_study_is_found_again_and_its_points_come_in_order(library: RunLibrary) -> None:
    study = library.add_study(key("s"), "old name", {"axes": []}, 3, "1")
    library.add([record("c")], study, [2])
    library.add([record("a")], study, [0])
    assert library.add_study(key("s"), "new name", {"axes": [1]}, 3, "1") == study
    assert library.add_study(key("s"), "new name", {"axes": [1]}, 3, "2") != study
    library.set_study_state(study, "cancelled")
    stored = next(one for one in library.studies() if one.id == study)
    assert (stored.name, stored.record, stored.points, stored.kept, stored.state) == (
        "new name",
        {"axes": [1]},
        3,
        2,
        "cancelled",
    )
    assert [(point, one.record.key) for point, one in library.study_runs(study)] == [
        (0, key("a")),
        (2, key("c")),
    ]


def test_a_run_may_be_a_point_of_two_studies_and_two_points_one_run(library: RunLibrary) -> None:
    first = library.add_study(key("s"), "s", {}, 1, "1")
    second = library.add_study(key("t"), "t", {}, 2, "1")
    (run,) = library.add([record("a")], first, [0])
    assert library.add([record("a"), record("a")], second, [0, 1]) == (run, run)
    assert [one.id for _, one in library.study_runs(first)] == [run]
    assert [one.id for _, one in library.study_runs(second)] == [run, run]
    assert library.count(RunFilter(study=second)) == 1
    library.delete_study(second)
    assert library.study_runs(second) == [] and library.count() == 1


def test_points_of_a_run_that_is_there_are_linked_without_it(library: RunLibrary) -> None:
    (run,) = library.add([record("a")])
    study = library.add_study(key("s"), "s", {}, 1, "1")
    library.link_points(study, {0: run})
    assert [one.id for _, one in library.study_runs(study)] == [run]
    with pytest.raises(InputError, match="cannot be used"):
        library.link_points(study, {1: 99})
    with pytest.raises(InputError, match="study 9: there is no such study"):
        library.set_study_state(9, "x")


# inputs, subjects


def test_an_input_is_kept_once_and_whole(library: RunLibrary) -> None:
    content = json.dumps({"tasks": list(range(1000))}).encode()
    library.keep_input(key("g"), "graph", "race.json", content)
    library.keep_input(key("g"), "graph", "other.json", b"")
    kept = library.input(key("g"))
    assert kept is not None
    assert (kept.kind, kept.name, kept.content) == ("graph", "race.json", content)
    assert library.input(key("none")) is None
    assert library.input_digests() == [key("g")]


def test_subjects_are_counted(library: RunLibrary) -> None:
    library.add([record(1), record(2, started=5000.0), record(3, subject="ring", started=3000.0)])
    assert [(one.name, one.runs, one.newest) for one in library.subjects()] == [
        ("race", 2, 5000.0),
        ("ring", 1, 3000.0),
    ]
    assert library.values("status") == ["feasible"]


def test_threads_write_and_read_at_once_and_lose_nothing(library: RunLibrary) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(20):
                library.add([record((number, step))])
                assert library.count() > 0
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert library.count() == 240
