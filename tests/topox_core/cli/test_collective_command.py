"""The command ``collective``: one collective, several ways, one line for a mistake."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from topox_core.cli.main import main

ASKED = ["collective", "--delay-ms", "2", "--size-bytes", "1e8"]  # 8 ms on a port of 100 Gbit/s


@pytest.mark.long
def test_the_ways_stand_beside_rings_that_never_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(ASKED) == 0
    told = capsys.readouterr().out
    for words in ("15 ms", "14 ms", "12 ms", "7 ms"):
        assert words in told


def test_what_each_port_sends_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sent.csv"
    assert main([*ASKED, "--json", "--output", str(out), "--time-limit", "0"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["together_ms"] == pytest.approx(15)
    assert 12 <= printed["split_ms"] <= 14
    rows = [row for row in csv.DictReader(out.open()) if row["way"] == "split"]
    assert max(float(row["end_ms"]) for row in rows) == pytest.approx(printed["split_ms"])
    assert all(sum(share) == pytest.approx(1) for share in printed["shares"])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--kind", "gossip"], "--kind: must be one of"),
        (["--members", "1"], "--members: must be a whole number from 2 to 256"),
        (["--size-bytes", "0"], "--size-bytes: must be greater than 0"),
        (["--delay-ms", "nan"], "--delay-ms: must be a number"),
        (["--algorithm", "direct"], "--algorithm: direct: a member sends or receives twice"),
    ],
)
def test_mistakes_are_one_line(
    more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ASKED, *more]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.strip().splitlines()) == 1
