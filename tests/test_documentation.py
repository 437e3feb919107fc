"""What the documentation shows works: its examples load, its commands run, its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from tests.real_inputs import ROOT
from topox_core.cli.main import main
from topox_core.fabrics.crossover.verdict import verdict
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.schedule.settings import FREE, Settings
from topox_core.workloads.samples import load_sample

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_verdict_on_the_first_screen_is_the_one_of_that_sample() -> None:
    found = verdict(*load_sample("llama3-8b"))
    assert "> {}\n".format(found.sentence.replace("\xa0", " ")) in README


def test_the_readme_s_example_files_load_and_fit_together() -> None:
    graph_text, cluster_text = blocks("json")
    graph = load_graph(graph_text.encode(), "README.json")
    cluster = load_cluster(cluster_text.encode(), "README.json")
    check_fits(graph, cluster)
    result = schedule(graph, cluster, Settings.of(engine="list", free=FREE))
    assert result.status == "optimal" and f"takes {result.execution.makespan_ms:g} ms" in README
    assert result.execution.circuits.changed.any(), "its circuits change"


def test_the_commands_shown_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [
        shlex.split(line)[3:]
        for block in blocks("sh", (ROOT / "docs" / "commands.md").read_text(encoding="utf-8"))
        for line in block.splitlines()
        if line.startswith(".venv/bin/python -m topox_core")
    ]
    assert len(commands) == 13
    for command in commands[:-1]:  # the file of the last is not ours to ship
        short = ["--time-limit", "0.5"] if command[0] == "schedule" else []
        assert main([*command, *short]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("document", PAGES, ids=[path.name for path in PAGES])
def test_links_between_pages_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!\w+://)([^)\s#]+)", text)
    assert [link for link in links if not (document.parent / link).exists()] == []
    tests = re.findall(r"`(tests/[\w/.]+\.py)`", text)
    assert [test for test in tests if not (ROOT / test).exists()] == []


def test_the_make_targets_that_pages_name_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?:^|`)make ([a-z]+)\b", text, re.MULTILINE))
    assert {"run", "test"} <= named <= {*targets}


def test_the_page_on_python_shows_code_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    exec(compile(code, "docs/python.md", "exec"), {})
    makespan_ms, bound_ms, status = capsys.readouterr().out.splitlines()[0].split()
    assert float(makespan_ms) >= float(bound_ms) > 0
    assert status in ("optimal", "feasible")
    assert (tmp_path / "moe.html").stat().st_size > 10_000
