"""A library from anybody, with any bytes in it, is read whole or refused in one line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conftest import some
from tests.topox_core.library.test_merging import contents, large
from topox_core.errors import InputError
from topox_core.library.exports import runs_csv
from topox_core.library.merging import merge
from topox_core.library.rescue import rescue
from topox_core.library.run_library import RunLibrary

CASES = range(200)


def harmed(content: bytes, case: int) -> bytes:
    """Return a file with some bytes overwritten, taken out or put in."""
    drawn = random.Random(case)
    data = bytearray(content)
    for _ in range(drawn.choice((1, 1, 3, 30))):
        at = drawn.randrange(100, len(data)) if drawn.random() < 0.8 else drawn.randrange(100)
        length = drawn.choice((1, 1, 4, 100))
        kind = drawn.random()
        if kind < 0.8:
            data[at : at + length] = drawn.randbytes(length)
        elif kind < 0.9:
            del data[at : at + length]
        else:
            data[at:at] = drawn.randbytes(length)
    return bytes(data)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, object]]:
    path = tmp_path_factory.mktemp("whole") / "a.sqlite"
    kept = large(path, 40)
    return path.read_bytes(), kept


@pytest.mark.sampled
def test_a_harmed_library_is_read_or_refused_in_one_line(
    tmp_path: Path, whole: tuple[bytes, dict[str, object]]
) -> None:
    content, _ = whole
    read = refused = 0
    for case in some(CASES, quick=20):
        path = tmp_path / f"{case}.sqlite"
        path.write_bytes(harmed(content, case))
        with RunLibrary.open(tmp_path / f"{case}-new.sqlite") as target:
            try:
                with RunLibrary.open(path, create=False, read_only=True) as source:
                    merge(source, target)
                    runs_csv(source)
                    source.subjects()
                    read += 1
            except InputError as error:
                assert "\n" not in str(error) and len(str(error)) < 400
                refused += 1
    assert read > 0 and refused > 0


@pytest.mark.sampled
def test_what_is_rescued_of_a_harmed_library_is_true(
    tmp_path: Path, whole: tuple[bytes, dict[str, object]]
) -> None:
    content, kept = whole
    rescued = 0
    for case in some(CASES, quick=20):
        path = tmp_path / f"{case}.sqlite"
        path.write_bytes(harmed(content, case))
        with RunLibrary.open(tmp_path / f"{case}-new.sqlite") as target:
            try:
                rescue(path, target)
            except InputError as error:
                assert "\n" not in str(error)
            rescued += len(contents(target))
            contents(target)
    assert rescued > len(kept)
