"""The public interface gives the numbers of the commands, and one line for every mistake."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import topox_core
from tests.refusal import refusal
from topox_core.io.sample_folder import SAMPLE_FOLDER


def test_importing_the_package_loads_neither_numba_nor_plotly() -> None:
    program = "import sys, topox_core; print({'numba', 'plotly', 'numpy'} & set(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["moe", "race"])
def test_a_script_and_the_command_get_one_number(name: str, ask: Any) -> None:
    files = [str(SAMPLE_FOLDER / f"{name}.{kind}.json") for kind in ("taskgraph", "cluster")]
    graph, cluster = topox_core.load_graph(files[0]), topox_core.load_cluster(files[1])
    result = topox_core.schedule_iteration(graph, cluster)
    assert ask("schedule", *files, "--engine", "list")["makespan_ms"] == result.makespan_ms
    runs = topox_core.compare_fabrics(graph, cluster, ["fat_tree", "scheduled"])
    assert runs["scheduled"].iteration_ms == result.makespan_ms
    record = ask("compare", *files, "--fabrics", "fat_tree,scheduled")["fabrics"]
    assert record["fat_tree"]["iteration_ms"] == runs["fat_tree"].iteration_ms
    assert topox_core.check_schedule(graph, cluster, result).ok


def test_every_kind_of_result_has_a_figure() -> None:
    graph, cluster = topox_core.load_sample("blackboard")
    for subject in (
        topox_core.schedule_iteration(graph, cluster),
        topox_core.compare_fabrics(graph, cluster, ["ideal", "scheduled"]),
        topox_core.study_rail_delay("llama3-8b-perlmutter", [0, 25]),
        topox_core.share_fabric(SAMPLE_FOLDER / "four-pods.jobs.json"),
        topox_core.price_networks(64),
    ):
        assert len(topox_core.draw(subject).data) > 0
    with pytest.raises(topox_core.InputError, match="no figure for int"):
        topox_core.draw(3)


def test_mistakes_are_one_line_that_names_the_place(tmp_path: Path) -> None:
    graph, cluster = topox_core.load_sample("blackboard")
    for words, asked in (
        ("nothing.json: cannot be read", lambda: topox_core.load_graph(tmp_path / "nothing.json")),
        (
            "settings, field colour: unknown setting",
            lambda: topox_core.schedule_iteration(graph, cluster, colour="red"),
        ),
        ("engine", lambda: topox_core.schedule_iteration(graph, cluster, engine="oracle")),
    ):
        assert words in refusal(asked)


@pytest.mark.long
def test_a_study_is_one_call(tmp_path: Path) -> None:
    question = {
        "subject": {"kind": "sample", "name": "blackboard"},
        "axes": [{"key": "fabric", "values": ["static", "scheduled"]}],
    }
    library = tmp_path / "runs.sqlite"
    first = topox_core.run_study(question, library=library, workers=1)
    assert [row.measures["iteration_ms"] for row in first.rows if row.measures][1] == 10.0
    assert topox_core.run_study(question, library=library, workers=1) == first
    wrong = {**question, "axes": [{"key": "fabrik", "values": [1]}]}
    assert "fabrik" in refusal(topox_core.run_study, wrong)
