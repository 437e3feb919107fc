"""Runs move between libraries whole, and what was there stays; of a damaged one the rest is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.topox_core.library.records import filled, key, record
from tests.topox_core.library.test_safety import overwrite_the_middle
from topox_core.errors import InputError
from topox_core.library.filters import RunFilter
from topox_core.library.merging import Merged, export_library, merge, with_result
from topox_core.library.rescue import rescue
from topox_core.library.run_library import RunLibrary


def contents(library: RunLibrary) -> dict[str, object]:
    return {one.record.key: with_result(library, one) for one in library.each()}


def test_an_exported_library_comes_in_whole_and_what_is_there_stays(tmp_path: Path) -> None:
    with RunLibrary.open(filled(tmp_path / "a.sqlite", 250)) as source:
        whole = contents(source)
        assert export_library(source, tmp_path / "b.sqlite") == Merged(250, 0, 1, 1)
        with pytest.raises(InputError, match=r"b\.sqlite: is there already"):
            export_library(source, tmp_path / "b.sqlite")
        part = export_library(source, tmp_path / "part.sqlite", RunFilter(shortest_ms=0.5))
        assert part.new == source.count(RunFilter(shortest_ms=0.5)) < 250
        with pytest.raises(InputError, match="is the library itself"):
            merge(source, source)
    with (
        RunLibrary.open(tmp_path / "b.sqlite", read_only=True) as exported,
        RunLibrary.open(tmp_path / "c.sqlite") as target,
    ):
        (mine,) = target.add([record(3, name="mine")])
        assert merge(exported, target) == Merged(249, 1, 1, 1)
        assert merge(exported, target) == Merged(0, 250, 1, 1)
        assert target.get(mine).record.name == "mine"
        assert contents(target) == whole | {key(3): record(3, name="mine")}
        (study,) = target.studies()
        assert (study.record, study.kept) == ({"axes": [1, 2]}, 250)
        assert [point for point, _ in target.study_runs(study.id)] == list(range(250))


def test_of_a_library_with_bad_pages_the_rest_is_rescued_and_all_of_it_is_true(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "a.sqlite", 600)
    with RunLibrary.open(path) as library:
        whole = contents(library)
    overwrite_the_middle(path)
    content = path.read_bytes()
    with RunLibrary.open(tmp_path / "c.sqlite") as target:
        out = rescue(path, target)
        left = contents(target)
    assert out.runs + out.lost == 600 and out.runs == len(left) > 400
    assert sum(one != whole[key] for key, one in left.items()) == out.results_lost
    assert path.read_bytes() == content
