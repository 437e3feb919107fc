"""A library from anybody, with any bytes in it, is read whole or refused in one line."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import some
from tests.topox_core.library.records import filled
from topox_core.errors import InputError
from topox_core.library.exports import runs_csv
from topox_core.library.run_library import RunLibrary


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


def read_all(path: Path) -> None:
    with RunLibrary.open(path, create=False, read_only=True) as library:
        for one in library.each():
            library.result(one.id)
        for study in library.studies():
            library.study_runs(study.id)
        for digest in library.input_digests():
            library.input(digest)
        library.subjects()
        runs_csv(library)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return filled(tmp_path_factory.mktemp("whole") / "a.sqlite", 40).read_bytes()


def test_a_harmed_library_is_read_or_refused_in_one_line(tmp_path: Path, whole: bytes) -> None:
    read = refused = 0
    for case in some(range(200), quick=20):
        path = tmp_path / f"{case}.sqlite"
        path.write_bytes(harmed(whole, case))
        try:
            read_all(path)
            read += 1
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 400
            refused += 1
    assert read > 0 and refused > 0


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
def test_a_library_with_contents_that_none_of_ours_has_is_refused(
    tmp_path: Path, whole: bytes, change: str, words: str
) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as other, other:
        assert other.execute(change).rowcount == 1
    with pytest.raises(InputError, match=words):
        read_all(path)
