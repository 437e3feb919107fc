"""A folder with one small job, and the command line called in it."""

import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from topox_core.cli import main
from topox_core.library.opening import VARIABLE

# 50 MB over 100 Gbit/s last 4 ms: 3 + 4 + 6 = 13 ms, and nothing can be shorter than this chain.
GRAPH: dict[str, Any] = {
    "format": "topox-taskgraph",
    "version": 1,
    "name": "chain",
    "tasks": [
        {"id": "f0", "kind": "forward", "server": 0, "duration_ms": 3.0, "dependencies": []},
        {
            "id": "act",
            "kind": "communication",
            "source": 0,
            "destination": 1,
            "size_bytes": 50_000_000,
            "dependencies": ["f0"],
        },
        {"id": "b1", "kind": "backward", "server": 1, "duration_ms": 6.0, "dependencies": ["act"]},
    ],
}
CLUSTER: dict[str, Any] = {
    "format": "topox-cluster",
    "version": 1,
    "servers": 2,
    "ports_per_server": 1,
    "switches": 1,
    "ports_per_switch": 2,
    "port_gbps": 100.0,
}


parser = cache(main.parser)  # building one takes longer than most calls


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "g.json").write_text(json.dumps(GRAPH))
    (tmp_path / "c.json").write_text(json.dumps(CLUSTER))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "parser", parser)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "runs.sqlite"))
    return tmp_path


@pytest.fixture
def topox(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Call the command line; return its exit status and what it printed."""

    def call(*words: str) -> tuple[int, str, str]:
        status = main.main([part for word in words for part in shlex.split(word)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def answered(topox: Any) -> Any:
    """Call the command line with --json; return its object."""

    def call(*words: str, status: int = 0) -> Any:
        ended, out, err = topox(*words, "--json")
        assert (ended, out.count("\n")) == (status, 1), err
        return json.loads(out)

    return call
