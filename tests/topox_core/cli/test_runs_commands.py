"""The command ``runs``: a script gets the numbers of the library, and every mistake is one line."""

from __future__ import annotations

import csv
import json
import re
import shlex
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.topox_core.cli.test_command_line import CLUSTER, GRAPH
from tests.topox_core.library.records import key, packed, record
from tests.topox_core.library.test_safety import zero_the_head
from topox_core.cli.main import main
from topox_core.library.run_library import RunLibrary
from topox_core.runs.identity import code_version


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPOX_LIBRARY", str(tmp_path / "runs.sqlite"))
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["runs", *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def filled(folder: Path) -> Path:
    path = folder / "runs.sqlite"
    with RunLibrary.open(path) as library:
        study = library.add_study(key("s"), "speeds", {}, 3, code_version())
        library.add(
            [
                record(
                    speed,
                    version=code_version(),
                    started=float(speed),
                    settings={"cluster.port_gbps": float(speed), "fabric": "scheduled"},
                    measures={"iteration_ms": 20_000.0 / speed, "gap": 0.25},
                    result=packed(f'{{"speed": {speed}}}') if speed == 100 else None,
                )
                for speed in (100, 200, 400)
            ],
            study,
            range(3),
        )
        library.add([record("ring", subject="ring", status="failed", measures={}, started=0.0)])
        library.keep_input(key("race graph"), "graph", "../../race.json", b'{"tasks": []}')
    return path


def test_list_prints_runs_newest_first_with_the_settings_in_which_they_differ(
    run: Any, filled: Path
) -> None:
    status, out, _ = run("list", "--subject", "race")
    lines = out.splitlines()
    assert status == 0
    assert [line.split()[0] for line in lines[1:4]] == ["3", "2", "1"]
    assert "50 ms" in lines[1] and "cluster.port_gbps=400" in lines[1]
    assert "fabric=" not in out
    assert f"3 of 3\u00a0runs in {filled}" in out
    assert "study 1: speeds, 3 of 3 points, begun" in out


def test_a_run_of_another_version_has_a_star(run: Any, filled: Path) -> None:
    _, out, _ = run("list", "--status", "failed")
    assert out.splitlines()[1].startswith("4*")


def test_list_as_json_filters_and_pages(run: Any, filled: Path) -> None:
    def listed(*arguments: str) -> list[int]:
        status, out, _ = run("list", "--json", *arguments)
        assert status == 0 and out.count("\n") == 1
        return [one["run"] for one in json.loads(out)["runs"]]

    assert listed() == [3, 2, 1, 4]
    assert listed("--limit", "2") == [3, 2]
    assert listed("--limit", "2", "--before", "2") == [1, 4]
    assert listed("--set", "cluster.port_gbps=200") == [2]
    assert listed("--set", "fabric=scheduled", "--to-ms", "100") == [3, 2]
    assert listed("--from-ms", "100.0001") == [1]
    assert listed("--text", "RIN") == [4]
    assert listed("--study", "1", "--code", code_version(), "--kind", "fabric") == [3, 2, 1]
    (one,) = json.loads(
        run("list", "--json", "--subject", "race", "--set", "cluster.port_gbps=100")[1]
    )["runs"]
    assert one["measures"] == {"iteration_ms": 200.0, "gap": 0.25}
    assert one["settings"] == {"cluster.port_gbps": 100.0, "fabric": "scheduled"}
    assert one["has_result"] and one["this_version"]


def test_show_prints_all_and_writes_result_and_inputs(run: Any, filled: Path, folder: Path) -> None:
    status, out, _ = run("show", "1", "--output", "r.json", "--inputs", ".")
    assert status == 0
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert (rows["iteration_ms"], rows["cluster.port_gbps"]) == ("200", "100")
    assert (folder / "r.json").read_text() == '{"speed": 100}'
    name = f"{key('race graph')[:12]}.taskgraph.json"
    assert (folder / name).read_bytes() == b'{"tasks": []}'
    assert json.loads(run("show", "1", "--json")[1])["key"] == key(100)


def test_compare_tells_what_differs(run: Any, filled: Path) -> None:
    status, out, _ = run("compare", "1", "3")
    lines = [line.split() for line in out.splitlines()]
    assert status == 0
    assert ["cluster.port_gbps", "100", "400"] in lines
    assert ["iteration_ms", "200", "50", "(0.25x)"] in lines
    compared = json.loads(run("compare", "1-3", "--json")[1])
    assert compared["different_settings"] == {"cluster.port_gbps": [100.0, 200.0, 400.0]}
    assert compared["different_outcome"] == {"iteration_ms": [200.0, 100.0, 50.0]}
    assert compared["equal_outcome"]["gap"] == 0.25


def test_export_and_import_carry_runs_to_another_library(
    run: Any, filled: Path, folder: Path
) -> None:
    assert run("export", "t.csv", "--subject", "race")[0] == 0
    rows = list(csv.DictReader((folder / "t.csv").open()))
    assert [row["iteration_ms"] for row in rows] == ["200.0", "100.0", "50.0"]
    assert run("export", "t.parquet", "--json")[1] == '{"runs": 4, "output": "t.parquet"}\n'
    assert (folder / "t.parquet").read_bytes()[:4] == b"PAR1"
    assert run("export", "part.sqlite", "--subject", "race")[0] == 0
    status, out, _ = run("import", "part.sqlite", "--library", "new.sqlite", "--json")
    assert status == 0
    assert json.loads(out) == {
        "new": 3,
        "there": 0,
        "studies": 1,
        "inputs": 1,
        "library": "new.sqlite",
    }
    assert json.loads(run("import", "part.sqlite", "--json")[1])["there"] == 3
    before, after = (
        json.loads(run("show", "1", "--library", name, "--json")[1])
        for name in ("runs.sqlite", "new.sqlite")
    )
    assert before == after


def test_name_and_delete(run: Any, filled: Path) -> None:
    assert run("name", "2", "the good one")[0] == 0
    assert json.loads(run("list", "--text", "good", "--json")[1])["in_all"] == 1
    assert run("delete", "2-4", "99")[1] == "deleted 3\u00a0runs\n"
    assert json.loads(run("list", "--json")[1])["in_all"] == 1


def test_a_damaged_library_is_said_and_rescued(run: Any, filled: Path, folder: Path) -> None:
    zero_the_head(filled)
    status, out, err = run("list", "--json")
    assert status == 0 and json.loads(out)["in_all"] == 0
    assert err.count("\n") == 1 and "is damaged" in err
    (aside,) = folder.glob("runs.sqlite.damaged-*")
    status, out, _ = run("rescue", aside.name, "--json")
    assert status == 0
    assert json.loads(out)["runs"] == 4 and json.loads(out)["lost"] == 0
    assert json.loads(run("list", "--json")[1])["in_all"] == 4
    assert "4\u00a0runs read, 0 of them new" in run("rescue", aside.name)[1]


# answers of other commands that are kept


@pytest.fixture
def job(folder: Path) -> Path:
    (folder / "g.json").write_text(json.dumps(GRAPH))
    (folder / "c.json").write_text(json.dumps(CLUSTER))
    return folder


def test_a_kept_schedule_is_the_one_printed_with_its_files(
    run: Any, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solve = ["schedule", "g.json", "c.json", "--engine", "list", "--port-gbps", "50", "--json"]
    assert main([*solve, "--keep", "the slow one"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == f"kept in {job / 'runs.sqlite'}: 1\u00a0run (1)"
    one = json.loads(run("show", "1", "--json", "--output", "r.json", "--inputs", ".")[1])
    assert (one["kind"], one["name"], one["this_version"]) == ("schedule", "the slow one", True)
    assert one["measures"]["iteration_ms"] == json.loads(printed.out)["makespan_ms"] == 17.0
    assert one["settings"]["cluster.port_gbps"] == 50.0
    digests = one["settings"]["subject"]["digests"]
    for part in ("graph", "cluster"):
        (kept,) = job.glob(f"{digests[part][:12]}.*")
        assert kept.read_bytes() == (job / f"{part[0]}.json").read_bytes()
    assert main(["check", "g.json", "c.json", "r.json", "--port-gbps", "50"]) == 0
    assert main([*solve, "--keep"]) == 0
    capsys.readouterr()
    listed = json.loads(run("list", "--json")[1])["runs"]
    assert [one["name"] for one in listed] == ["the slow one"]


def test_a_kept_comparison_is_a_run_for_each_fabric(
    run: Any, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(
        [
            *("compare", "g.json", "c.json", "--fabrics", "ideal,reactive,scheduled", "--json"),
            *("--keep", "all", "--library", "mine.sqlite"),
        ]
    )
    printed = json.loads(capsys.readouterr().out)["fabrics"]
    listed = json.loads(run("list", "--library", "mine.sqlite", "--text", "all", "--json")[1])
    assert status == 0
    assert {
        one["settings"]["fabric"]: one["measures"]["iteration_ms"] for one in listed["runs"]
    } == {name: one["iteration_ms"] for name, one in printed.items()}


def test_the_page_on_the_library_shows_commands_and_code_that_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in commands.splitlines():
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    assert len((folder / "first.csv").read_text().splitlines()) == 2
    capsys.readouterr()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "docs/runs.md", "exec"), {})
    assert "race" in capsys.readouterr().out.lower()


def test_a_library_that_cannot_keep_is_refused_before_anything_is_computed(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more, words in (
        (["--keep", "--library", "g.json"], "g.json: is no run library"),
        (["--library", "x.sqlite"], "field --library: says where to keep the answer"),
    ):
        assert main(["schedule", "g.json", "c.json", *more]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.count("\n") == 1 and words in printed.err


def test_an_empty_library_is_no_error(run: Any) -> None:
    status, out, err = run("list")
    assert (status, err) == (0, "")
    assert out.startswith("0 of 0\u00a0runs in ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--library", "typo.sqlite"], "typo.sqlite: there is no such file"),
        (["list", "--library", "table.csv"], "table.csv: is no run library"),
        (
            ["list", "--set", "fabric"],
            "command line, field --set: must be KEY=VALUE (got 'fabric')",
        ),
        (["list", "--set", "x=1e999"], "filter, field x: must be a finite number or a word"),
        (["list", "--before", "77"], "run 77: there is no such run"),
        (["show", "77"], "run 77: there is no such run"),
        (["show", "99999999999999999999"], "runs.sqlite: has no number of more than 63 bits"),
        (["show", "2", "--output", "r.json"], "run 2: has no result file"),
        (["show", "4", "--inputs", "nowhere"], "cannot be written: there is no folder nowhere"),
        (["compare", "1"], "runs to compare: must be 2 to 20 (got 1)"),
        (
            ["compare", "1", "x"],
            "field run: must be the number of a run, such as 7 or 7-12 (got 'x')",
        ),
        (["delete", "1-999999"], "field run: must be at most 100,000 runs"),
        (["delete", "77"], "77: there is no such run"),
        (["name", "77", "x"], "run 77: there is no such run"),
        (["export", "t.xlsx"], "t.xlsx: must end in .csv, .csv.gz, .parquet or .sqlite"),
        (["export", "none/t.csv"], "none/t.csv: cannot be written: there is no folder none"),
        (["export", "runs.sqlite"], "runs.sqlite: is there already"),
        (["import", "none.sqlite"], "none.sqlite: there is no such file"),
        (["import", "table.csv"], "table.csv: is no run library"),
        (["import", "runs.sqlite"], "runs.sqlite: is the library itself"),
        (["rescue", "table.csv"], "table.csv: is no run library"),
        (["rescue", "runs.sqlite"], "runs.sqlite: is the library itself"),
    ],
)
def test_a_mistake_is_one_line(
    run: Any, filled: Path, folder: Path, arguments: list[str], words: str
) -> None:
    (folder / "table.csv").write_text("a,b\n1,2\n")
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("topox: error: ") and err.count("\n") == 1
    assert words in err
    assert (folder / "table.csv").read_text() == "a,b\n1,2\n"


def test_what_a_foreign_library_says_is_drawn_as_text(run: Any, folder: Path) -> None:
    with RunLibrary.open(folder / "runs.sqlite") as library:
        library.add(
            [record("x", subject="a\x1b[31m\nb", name="\u202ename", result=zlib.compress(b""))]
        )
    for command in (["list"], ["show", "1"]):
        out = run(*command)[1]
        assert "\x1b" not in out and "\u202e" not in out
