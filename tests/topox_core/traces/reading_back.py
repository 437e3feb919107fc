"""Made-up files into the reader and back out: what the tests of recorded runs share."""

import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WITHOUT_REAL_INPUTS
from topox_core.traces.importing import Imported, import_kineto
from topox_core.traces.source import ImportSettings, Source


def sources(files: Mapping[str, bytes]) -> list[Source]:
    return [Source.of_bytes(name, data) for name, data in files.items()]


def imported(files: Mapping[str, bytes], **settings: Any) -> Imported:
    return import_kineto(sources(files), ImportSettings(**settings))


def status(found: Imported, name: str) -> str:
    return next(one.status for one in found.checks if one.name == name)


def said(found: Imported, name: str) -> str:
    return next(one.words for one in found.checks if one.name == name)


Events = list[dict[str, Any]]


def edited(
    files: Mapping[str, bytes], change: Callable[[Events], Events | None], *names: str
) -> dict[str, bytes]:
    """The files with the events of some of them, or of all, changed in place or for others."""
    changed = dict(files)
    for name in names or files:
        record = json.loads(files[name])
        events = change(record["traceEvents"])
        record["traceEvents"] = record["traceEvents"] if events is None else events
        changed[name] = json.dumps(record).encode()
    return changed


def communications(events: Events) -> Events:
    """The kernels that communicate, in the order in which they were posted."""
    return [one for one in events if one["name"].startswith("nccl")]


def unpacked(archive: Path) -> dict[str, bytes]:
    """The files in an archive of public recordings; the test is skipped where it is not there."""
    if not archive.is_file():
        pytest.skip(WITHOUT_REAL_INPUTS)
    with tarfile.open(archive) as tar:
        return {
            Path(member.name).name: file.read()
            for member in tar
            if member.isfile() and (file := tar.extractfile(member))
            if not Path(member.name).name.startswith(".")
        }
