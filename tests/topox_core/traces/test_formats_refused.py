"""What is given for a trace and is none: one line says what it is."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from topox_core.errors import InputError
from topox_core.traces.formats import format_of
from topox_core.traces.source import Source


def packed(kind: str) -> bytes:
    """A trace inside an archive."""
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("rank0.json", '{"traceEvents": []}')
    else:
        with tarfile.open(fileobj=out, mode="w:gz" if kind == "tar.gz" else "w") as archive:
            info = tarfile.TarInfo("rank0.json")
            info.size = 2
            archive.addfile(info, io.BytesIO(b"{}"))
    return out.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_an_archive_asks_to_be_unpacked(kind: str) -> None:
    with pytest.raises(InputError, match="is an archive: unpack it and give its folder"):
        format_of(Source.of_bytes(f"run.{kind}", packed(kind)))


def test_a_text_is_no_trace() -> None:
    with pytest.raises(InputError, match="holds no traceEvents"):
        format_of(Source.of_bytes("notes.txt", "Schritte: drei, jeder überall\n".encode()))
