"""Runs move between libraries whole, and what was there stays."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.topox_core.library.records import key, packed, record
from tests.topox_core.library.test_safety import (
    cut_in_half,
    overwrite_the_middle,
    zero_the_first_page,
    zero_the_head,
)
from topox_core.errors import InputError
from topox_core.library.filters import RunFilter
from topox_core.library.merging import Merged, export_library, merge, with_result
from topox_core.library.rescue import rescue
from topox_core.library.run_library import RunLibrary


def contents(library: RunLibrary) -> dict[str, object]:
    return {one.record.key: with_result(library, one) for one in library.each()}


def large(path: Path, count: int) -> dict[str, object]:
    drawn = random.Random(0)
    with RunLibrary.open(path) as library:
        study = library.add_study(key("s"), "delay and speed", {"axes": [1, 2]}, count, "1")
        records = [
            record(
                number,
                started=float(number),
                measures={"iteration_ms": drawn.random(), "windows": number},
                result=packed(repr([drawn.random() for _ in range(20)])),
            )
            for number in range(count)
        ]
        library.add(records, study, range(count))
        library.keep_input(key("race graph"), "graph", "race.json", b"tasks" * 1000)
        return contents(library)


def test_an_exported_library_is_one_file_and_comes_in_whole(tmp_path: Path) -> None:
    whole = large(tmp_path / "a.sqlite", 450)
    with RunLibrary.open(tmp_path / "a.sqlite") as source:
        merged = export_library(source, tmp_path / "b.sqlite")
        assert merged == Merged(450, 0, 1, 1)
        with pytest.raises(InputError, match=r"b\.sqlite: is there already"):
            export_library(source, tmp_path / "b.sqlite")
    assert not [
        one.name for one in tmp_path.iterdir() if "part" in one.name or "b.sqlite-" in one.name
    ]
    with (
        RunLibrary.open(tmp_path / "b.sqlite", read_only=True) as exported,
        RunLibrary.open(tmp_path / "c.sqlite") as target,
    ):
        assert merge(exported, target) == Merged(450, 0, 1, 1)
        assert merge(exported, target) == Merged(0, 450, 1, 1)
        assert contents(target) == whole
        (study,) = target.studies()
        assert (study.name, study.record, study.kept) == ("delay and speed", {"axes": [1, 2]}, 450)
        assert [point for point, _ in target.study_runs(study.id)] == list(range(450))
        kept = target.input(key("race graph"))
        assert kept is not None and kept.content == b"tasks" * 1000
    assert not [one.name for one in tmp_path.iterdir() if one.name.startswith("b.sqlite-")]


def test_what_is_there_stays_and_a_part_can_be_exported(tmp_path: Path) -> None:
    large(tmp_path / "a.sqlite", 20)
    with (
        RunLibrary.open(tmp_path / "a.sqlite") as source,
        RunLibrary.open(tmp_path / "c.sqlite") as target,
    ):
        (mine,) = target.add([record(3, name="mine", host="my machine")])
        export_library(source, tmp_path / "part.sqlite", RunFilter(shortest_ms=0.5))
        with RunLibrary.open(tmp_path / "part.sqlite") as part:
            some = source.count(RunFilter(shortest_ms=0.5))
            assert 0 < some < 20 and part.count() == some
            assert part.studies()[0].kept == some
        merged = merge(source, target)
        assert (merged.new, merged.there) == (19, 1)
        stored = target.get(mine).record
        assert (stored.name, stored.host) == ("mine", "my machine")


def test_a_library_is_not_merged_into_itself(tmp_path: Path) -> None:
    with (
        RunLibrary.open(tmp_path / "a.sqlite") as library,
        pytest.raises(InputError, match="is the library itself"),
    ):
        merge(library, library)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE runs SET settings = '[1]' WHERE id = 5", "run 5, field settings: must be a JSON"),
        ("UPDATE runs SET measures = '{' WHERE id = 5", "run 5, field measures: must be a JSON"),
        (
            'UPDATE runs SET measures = \'{"gap": "x"}\' WHERE id = 5',
            "run 5, field measures: holds",
        ),
        ("UPDATE runs SET iteration_ms = 7 WHERE id = 5", "run 5, field iteration_ms: is not the"),
        ("UPDATE runs SET key = 'x' WHERE id = 5", "run 5, field key: must be a SHA-256"),
        ("UPDATE runs SET started = 'x' WHERE id = 5", "run 5, field started: must be a number"),
        ("UPDATE runs SET subject = x'00' WHERE id = 5", "run 5, field subject: must be text"),
        ("UPDATE runs SET seed = 'x' WHERE id = 5", "run 5, field seed: must be a whole number"),
        ("UPDATE results SET content = x'00' WHERE run = 5", "run 5: (its result )?is damaged"),
        ("UPDATE results SET content = 'text' WHERE run = 5", "run 5: (its result )?is damaged"),
        ("DELETE FROM results WHERE run = 5", "run 5: its result is damaged"),
        ("UPDATE inputs SET content = x'00'", "input .*: is damaged"),
        ("UPDATE studies SET record = x'00'", "study 1: is damaged"),
        ("UPDATE studies SET points = 'many'", "study 1, field points: is damaged"),
    ],
)
def test_a_library_with_other_contents_changes_nothing(
    tmp_path: Path, change: str, words: str
) -> None:
    large(tmp_path / "a.sqlite", 10)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as other, other:
        assert other.execute(change).rowcount == 1
    with (
        RunLibrary.open(tmp_path / "a.sqlite", read_only=True) as source,
        RunLibrary.open(tmp_path / "c.sqlite") as target,
    ):
        with pytest.raises(InputError, match=words):
            merge(source, target)
        assert target.count() == 0 and target.studies() == []


# what is left of a damaged library


def test_a_whole_library_is_rescued_whole(tmp_path: Path) -> None:
    whole = large(tmp_path / "a.sqlite", 300)
    with RunLibrary.open(tmp_path / "c.sqlite") as target:
        out = rescue(tmp_path / "a.sqlite", target)
        assert (out.runs, out.lost, out.new, out.results_lost) == (300, 0, 300, 0)
        assert (out.studies, out.inputs) == (1, 1)
        assert contents(target) == whole
        assert target.studies()[0].kept == 300


def test_a_library_without_its_head_is_rescued_whole(tmp_path: Path) -> None:
    for harm in (zero_the_head, zero_the_first_page):
        path = tmp_path / f"{harm.__name__}.sqlite"
        whole = large(path, 300)
        harm(path)
        with RunLibrary.open(tmp_path / f"of-{path.name}") as target:
            out = rescue(path, target)
            assert (out.runs, out.lost) == (300, 0)
            assert contents(target) == whole


def test_of_a_library_with_bad_pages_the_rest_is_rescued_and_all_of_it_is_true(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.sqlite"
    whole = large(path, 3000)
    overwrite_the_middle(path)
    content = path.read_bytes()
    with RunLibrary.open(tmp_path / "c.sqlite") as target:
        out = rescue(path, target)
        assert out.runs + out.lost == 3000
        assert out.runs > 2500
        left = contents(target)
        assert len(left) == out.runs
        without = [key for key, one in left.items() if one != whole[key]]
        assert len(without) == out.results_lost
    assert path.read_bytes() == content


def test_of_half_a_library_something_is_rescued(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    whole = large(path, 3000)
    cut_in_half(path)
    with RunLibrary.open(tmp_path / "c.sqlite") as target:
        out = rescue(path, target)
        left = contents(target)
        assert out.runs == len(left) > 500
        assert set(left) < set(whole)


def test_a_file_that_is_no_library_is_not_rescued(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n")
    with RunLibrary.open(tmp_path / "c.sqlite") as target:
        with pytest.raises(InputError, match=r"table\.csv: is no run library"):
            rescue(tmp_path / "table.csv", target)
        with pytest.raises(InputError, match="there is no such file"):
            rescue(tmp_path / "none.sqlite", target)
