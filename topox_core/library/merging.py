"""Runs taken from one library into another, with their results, inputs and studies."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from topox_core.errors import InputError
from topox_core.library.filters import RunFilter
from topox_core.library.opening import errors_of
from topox_core.library.record import RunRecord
from topox_core.library.rows import StoredRun
from topox_core.library.run_library import ALL, RunLibrary

_AT_ONCE = 200  # runs of one transaction: others write in between


@dataclass(frozen=True)
class Merged:
    """What came of taking runs over: how many are new, and how many were there and stayed."""

    new: int
    there: int
    studies: int
    inputs: int


def merge(source: RunLibrary, target: RunLibrary, which: RunFilter = ALL) -> Merged:
    """Take runs over; a run, an input or a point of a study that is there stays as it is.

    Everything is read once before the first run is written, so that a source that is not as it
    should be changes nothing.

    Raises
    ------
    InputError
        If either library is damaged, the source holds what no library of ours does, or the target
        cannot be written to.
    """
    if source.path.resolve() == target.path.resolve():
        raise InputError("is the library itself", file=str(source.path))
    digests = frozenset(source.input_digests())
    studies, needed = source.studies(), set[str]()
    for one in source.each(which):
        source.result(one.id)
        needed |= digests & digests_in(one)
    for study in studies:
        if which == ALL or which.study == study.id:
            needed |= digests & _words(study.record)
    for digest in sorted(needed):
        if (kept := source.input(digest)) is not None and target.input(digest) is None:
            target.keep_input(kept.digest, kept.kind, kept.name, kept.content)
    numbers: dict[int, int] = {}
    new = 0
    pieces = source.each(which)
    while piece := list(islice(pieces, _AT_ONCE)):
        added = target.add_each(with_result(source, one) for one in piece)
        numbers |= {one.id: run for one, (run, _) in zip(piece, added, strict=True)}
        new += sum(is_new for _, is_new in added)
    taken = 0
    for study in reversed(studies):
        points = {
            point: numbers[one.id]
            for point, one in source.study_runs(study.id)
            if one.id in numbers
        }
        if points or which == ALL:
            target.take_study(study, points)
            taken += 1
    return Merged(new, len(numbers) - new, taken, len(needed))


def with_result(library: RunLibrary, one: StoredRun) -> RunRecord:
    """Return a run as it was added, its result included."""
    return (
        replace(one.record, result=library.packed_result(one.id)) if one.has_result else one.record
    )


def digests_in(one: StoredRun) -> set[str]:
    """Return every text of a run that may be the digest of an input."""
    return {one.record.graph, one.record.cluster} | _words(one.record.settings)


def _words(record: object) -> set[str]:
    """Return every text in nested settings."""
    if isinstance(record, str):
        return {record}
    inside = list(record.values()) if isinstance(record, dict) else record
    return set().union(*map(_words, inside)) if isinstance(inside, list) else set()


def export_library(source: RunLibrary, path: Path, which: RunFilter = ALL) -> Merged:
    """Write runs as a library of their own, one file that another machine can import.

    Raises
    ------
    InputError
        If there is such a file already, or it cannot be written.
    """
    if path.exists():
        raise InputError("is there already; a library is exported to a new file", file=str(path))
    partial = path.with_name(f".topox-{os.getpid()}.part")
    with errors_of(path):
        try:
            with RunLibrary.open(partial) as target:
                merged = merge(source, target, which)
            # Without a log, so that it can be read where nothing can be written beside it.
            with closing(sqlite3.connect(partial)) as connection:
                connection.execute("PRAGMA journal_mode = DELETE")
            partial.rename(path)
        finally:
            for side in ("", "-wal", "-shm", "-journal"):
                with suppress(OSError):
                    partial.with_name(partial.name + side).unlink(missing_ok=True)
    return merged
