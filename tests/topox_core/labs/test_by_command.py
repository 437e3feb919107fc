"""Keys of the labs come out of the public commands as well: what `lab key` prints, anybody can compute from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import some
from topox_core.cli.main import main
from topox_core.economics.parts_file import dump_parts
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_json import dump_graph_json
from topox_core.labs.generators.board import board
from topox_core.labs.generators.fan_out import fan_out
from topox_core.labs.generators.four_jobs import four_jobs
from topox_core.labs.generators.mix import mix
from topox_core.labs.generators.pairs import pairs
from topox_core.labs.generators.patience import patience
from topox_core.labs.generators.price import price
from topox_core.labs.generators.turns import turns
from topox_core.labs.generators.windows import windows
from topox_core.tdm.model.jobs_file import dump_jobs

SEEDS = range(4)
# What every lab runs with (docs/labs.md), as options of the commands.
LESSON = ("--clock", "slots", "--switching", "planned", "--tick-ms", "slot", "--rings", "1")
LESSON += ("--algorithm", "default")
Ask = Callable[..., Any]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command and return the object that it prints."""

    def asked(*words: object) -> Any:
        assert main([*map(str, words), "--json"]) == 0, words
        return json.loads(capsys.readouterr().out)

    return asked


@pytest.fixture
def files(tmp_path: Path) -> Callable[[Any, Any], tuple[str, str]]:
    """Write a task graph and its cluster."""

    def written(graph: Any, cluster: Any) -> tuple[str, str]:
        paths = tmp_path / "g.taskgraph.json", tmp_path / "c.cluster.json"
        paths[0].write_bytes(dump_graph_json(graph))
        paths[1].write_bytes(dump_cluster(cluster))
        return str(paths[0]), str(paths[1])

    return written


def keys(ask: Ask, lab: str, seed: int) -> dict[str, Any]:
    found: dict[str, Any] = ask("lab", "key", lab, "--seed", seed)["seeds"][0]["keys"]
    return found


def proved(ask: Ask, paths: tuple[str, str]) -> float:
    """Return the makespan that an exact engine proves."""
    found = ask("schedule", *paths, *LESSON, "--engine", "auto", "--time-limit", 20)
    assert found["status"] == "optimal"
    return float(found["makespan_ms"])


@pytest.mark.long
def test_the_schedules_of_labs_1_and_2(ask: Ask, files) -> None:
    for seed in some(SEEDS, quick=1):
        six, binds = keys(ask, "six-tasks", seed), keys(ask, "what-binds", seed)
        for question, one in (("W1", board(seed)), ("W3", patience(seed))):
            assert proved(ask, files(one.graph(), one.cluster())) == six[question]
        star = fan_out(seed)
        at = ask("schedule", *files(star.graph(), star.cluster()), *LESSON, "--engine", "list")
        assert at["makespan_ms"] == binds["W2"] and "out-ports of server 0" in at["bound_by"]
        assert proved(ask, files(star.graph(), star.cluster(2))) == binds["W3"] == binds["P2"]
        assert proved(ask, files(star.graph(), star.cluster(port_gbps=16.0))) == binds["W4"]


def test_the_circuits_and_the_tax_of_lab_3(ask: Ask, files) -> None:
    for seed in some(SEEDS, quick=1):
        one, found = pairs(seed), keys(ask, "bandwidth-tax", seed)
        for degree, question in ((3, "W5"), (2, "P2")):
            paths = files(one.graph(), one.cluster(degree))
            run = ask("compare", *paths, *LESSON, "--fabrics", "static")["fabrics"]["static"]
            assert run["bandwidth_tax"] == pytest.approx(found[question], abs=1e-9)
        paths = files(one.graph(), one.cluster())
        laid = ask("topology", "--servers", one.servers, "--degree", 3, "--graph", paths[0])
        assert laid["degree_all_reduce"] == found["W2"]


def test_the_two_lines_of_lab_4_cross_where_its_key_says(ask: Ask, files) -> None:
    for seed in some(SEEDS, quick=1):
        one, found = mix(seed), keys(ask, "all-to-all", seed)
        equal = ("--equivalent-gbps", one.equivalent_gbps())
        for mb, wins in ((found["W5"] - 1, "static"), (found["W5"], "fat_tree")):
            paths = files(one.graph(mb), one.cluster())
            runs = ask("compare", *paths, *LESSON, "--fabrics", "static,fat_tree", *equal)
            times = {name: run["iteration_ms"] for name, run in runs["fabrics"].items()}
            assert (min(times, key=lambda name: times[name]) == wins) or len(
                set(times.values())
            ) == 1


def test_the_delays_of_lab_5(ask: Ask, files) -> None:
    for seed in some(SEEDS, quick=1):
        one, found = turns(seed), keys(ask, "crossover", seed)
        for delay_ms in (0.0, 10.0):
            paths = files(one.graph(), one.cluster(delay_ms))
            three = ask("compare", *paths, *LESSON, "--fabrics", "static,reactive,provisioned")
            times = {name: run["iteration_ms"] for name, run in three["fabrics"].items()}
            assert times["static"] == found["W2"]
            if delay_ms:
                assert times["provisioned"] == found["W4"]
            else:
                assert times["reactive"] == times["provisioned"] == found["W1"]


def test_the_windows_of_lab_6(ask: Ask) -> None:
    for seed in some(SEEDS, quick=1):
        one, found = windows(seed), keys(ask, "windows", seed)
        size = ("--stages", one.stages, "--microbatches", one.microbatches)
        counted = ask("rails", "count", *size)["windows"]
        assert [counted[-1], counted[0], counted[1]] == [found["P1"], found["W1"], found["W2"]]
        assert ask("rails", "count", *size, "--schedule", "afab")["windows"][0] == found["W3"]
        each = [word for ms in one.lengths_ms for word in ("--window-ms", ms)]
        base = ("--base-ms", one.base_ms, "--limit-percent", one.limit_percent)
        costs = ask("rails", "delay", *base, *each, "--delay-ms", 25)
        (row,) = costs["rows"]
        assert row["provisioned_ms"] - one.base_ms == pytest.approx(found["W5"])
        assert costs["slowest_switch_ms"]["provisioned"] == pytest.approx(found["W6"])


def test_the_rounds_of_lab_7(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "four.jobs.json"
    for seed in some(SEEDS, quick=1):
        found = keys(ask, "time-division", seed)
        file.write_bytes(dump_jobs(four_jobs(seed).jobs()))
        together = ask("tdm", file, "--algorithm", "non-tdm")["round_s"]
        climbed = ask("tdm", file, "--algorithm", "hill-climbing")["round_s"]
        best = ask("tdm", file, "--algorithm", "best-grouping")["round_s"]
        assert [together, best] == pytest.approx([found["W1"], found["P2"]])
        assert climbed == pytest.approx(together), "no single move helps"


def test_the_bills_of_lab_8(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "prices.parts.json"
    for seed in some(SEEDS, quick=1):
        one, found = price(seed), keys(ask, "price-tag", seed)
        file.write_bytes(dump_parts(one.question().catalogue))
        whole = ("--parts", file, "--counting", "whole-switches", "--years", one.years)
        priced = ask("rails", "cost", "--gpus", one.gpus, *whole)["fabrics"]
        mine, other = (priced[name]["cost_usd"] for name in ("photonic_rails", "rail_only"))
        assert [mine, other] == pytest.approx([found["W1"], found["W2"]], abs=0.5)
        assert 100 * (1 - mine / other) == pytest.approx(found["P1"], abs=0.01)
