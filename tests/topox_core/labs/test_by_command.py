"""Keys of the labs come out of the public commands as well: what `lab key` prints, anybody can compute from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import long_after
from topox_core.cli.main import main
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_json import dump_graph_json
from topox_core.labs.generators.catalogue import generator

# What every lab runs with (docs/labs.md), as options of the commands.
LESSON = [
    "--clock",
    "slots",
    "--switching",
    "planned",
    "--tick-ms",
    "slot",
    "--rings",
    "1",
    "--algorithm",
    "default",
    *("--iteration", "first"),
]
EACH = pytest.mark.parametrize("seed", long_after(1, range(4)))


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command and return the object that it prints."""

    def asked(*words: object) -> Any:
        assert main([*map(str, words), "--json"]) == 0, words
        return json.loads(capsys.readouterr().out)

    return asked


@pytest.fixture
def compared(ask: Any, tmp_path: Path) -> Any:
    """Compare fabrics on a task graph and its cluster, as files."""

    def runs(graph: Any, cluster: Any, *more: object) -> Any:
        files = tmp_path / "g.taskgraph.json", tmp_path / "c.cluster.json"
        files[0].write_bytes(dump_graph_json(graph))
        files[1].write_bytes(dump_cluster(cluster))
        return ask("compare", *files, *LESSON, "--fabrics", *more)["fabrics"]

    return runs


def keys(ask: Any, lab: str, seed: int) -> Any:
    return ask("lab", "key", lab, "--seed", seed)["seeds"][0]["keys"]


@EACH
def test_the_delays_of_lab_5(ask: Any, compared: Any, seed: int) -> None:
    one, found = generator("turns").make(seed), keys(ask, "crossover", seed)
    free, slow = (
        compared(one.graph(), one.cluster(delay_ms=delay_ms), "static,reactive,provisioned")
        for delay_ms in (0.0, 10.0)
    )
    times = [run["iteration_ms"] for run in (*free.values(), slow["static"], slow["provisioned"])]
    assert times == [found[question] for question in ("W2", "W1", "W1", "W2", "W4")]


@EACH
def test_the_windows_of_lab_6(ask: Any, seed: int) -> None:
    one, found = generator("windows").make(seed), keys(ask, "windows", seed)
    size = ("--stages", one.stages, "--microbatches", one.microbatches)
    counted = ask("rails", "count", *size)["windows"]
    assert [counted[-1], counted[0], counted[1]] == [found["P1"], found["W1"], found["W2"]]
    assert ask("rails", "count", *size, "--schedule", "afab")["windows"][0] == found["W3"]
    each = [word for ms in one.lengths_ms for word in ("--window-ms", ms)]
    base = ("--base-ms", one.base_ms, "--limit-percent", one.limit_percent)
    costs = ask("rails", "delay", *base, *each, "--delay-ms", 25)
    assert costs["rows"][0]["provisioned_ms"] - one.base_ms == pytest.approx(found["W5"])
    assert costs["slowest_switch_ms"]["provisioned"] == pytest.approx(found["W6"])
