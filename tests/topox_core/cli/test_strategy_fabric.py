"""``strategy --fabric``: its figure is what ``compare`` prints for the files that it writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from topox_core.cli.main import main
from topox_core.fabrics.registry import FABRICS

TINY = ("strategy", "dlrm-16", "--servers", "2", "--ports-per-server", "1", "--port-gbps", "1")
QUICK = (*TINY, "--proposals", "2", "--reconfiguration-ms", "0.01")


@pytest.fixture
def topox(tmp_path, monkeypatch, capsys) -> Any:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        status = main(list(words))
        out, err = capsys.readouterr()
        return status, out, err

    return call


def test_compare_says_the_same_of_the_files_it_writes(topox, tmp_path) -> None:
    files = ("--graph", "best.taskgraph.json", "--cluster", "best.cluster.json")
    words = ("--fabric", "scheduled", "--beside", "static", "--output", "best.strategy.json")
    status, out, _ = topox(*QUICK, *words, *files, "--json")
    record = json.loads(out)
    assert status == 0
    assert record["iteration_ms"] < record["start_ms"]
    names = "static,scheduled"
    _, out, _ = topox("compare", files[1], files[3], "--fabrics", names, "--json")
    compared = json.loads(out)["fabrics"]
    assert compared["scheduled"]["iteration_ms"] == record["iteration_ms"]
    best = next(row for row in record["table"] if "scheduled" in row["found_for"])
    assert {name: one["iteration_ms"] for name, one in best["fabrics"].items()} == {
        name: one["iteration_ms"] for name, one in compared.items()
    }
    written = json.loads((tmp_path / "best.strategy.json").read_text())
    assert written["operators"] == [
        {key: one[key] for key in ("operator", "partitions", "start")}
        for one in record["operators"]
    ]


def test_the_table_has_a_column_a_fabric_and_a_sentence(topox) -> None:
    status, out, err = topox(*QUICK, "--fabric", "provisioned", "--beside", "reactive")
    lines = out.splitlines()
    assert status == 0
    columns = [words for words in lines[0].split("  ") if words.strip()]
    assert [words.strip() for words in columns] == [
        "strategy",
        FABRICS["reactive"],
        FABRICS["provisioned"],
    ]
    assert lines[1].startswith("data parallel")
    assert lines[-1].startswith(f"{FABRICS['provisioned']}: the strategy found for it takes")
    assert "running the most promising" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--fabric", "static", "--alternate"), "--alternate"),
        (("--fabric", "static", "--beside", "wifi"), "wifi"),
        (("--beside", "static"), "--fabric"),
        (("--cluster", "c.json"), "--fabric"),
        (("--fabric", "static", "--reconfiguration-ms", "-1"), "reconfiguration_ms"),
    ],
)
def test_what_does_not_go_together_is_one_line(topox, words: tuple[str, ...], says: str) -> None:
    status, out, err = topox(*TINY, *words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and says in err
