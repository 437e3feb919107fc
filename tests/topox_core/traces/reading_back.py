"""Made-up files into the reader and back out: what the tests of recorded runs share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topox_core.traces.importing import Imported, import_kineto
from topox_core.traces.settings import ImportSettings
from topox_core.traces.source import Source


def sources(files: Mapping[str, bytes]) -> list[Source]:
    return [Source.of_bytes(name, data) for name, data in files.items()]


def imported(files: Mapping[str, bytes], **settings: Any) -> Imported:
    return import_kineto(sources(files), ImportSettings(**settings))


def status(found: Imported, name: str) -> str:
    return next(one.status for one in found.checks if one.name == name)
