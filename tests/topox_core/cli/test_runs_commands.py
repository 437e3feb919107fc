"""The command ``runs``: a script gets the numbers of the library, and every mistake is one line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.real_inputs import ROOT
from tests.topox_core.library.records import key, packed, record
from tests.topox_core.library.test_safety import HARMS
from topox_core.library.run_library import KeptInput, RunLibrary
from topox_core.runs.identity import code_version


@pytest.fixture
def run(topox: Any) -> Any:
    return lambda *words: topox("runs", *words)


@pytest.fixture
def filled(folder: Path) -> Path:
    path = folder / "runs.sqlite"
    with RunLibrary.open(path) as library:
        study = library.add_study(key("s"), "speeds", {}, 3, code_version())
        runs = library.add(
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
            ]
        )
        library.link_points(study, dict(enumerate(runs)))
        library.add([record("ring", subject="ring", status="failed", measures={}, started=0.0)])
        graph = KeptInput(key("race graph"), "graph", "../../race.json", b'{"tasks": []}')
        library.keep_inputs([graph])
    return path


def test_list_prints_runs_newest_first_with_the_settings_in_which_they_differ(
    run: Any, filled: Path
) -> None:
    lines = run("list")[1].splitlines()
    assert [line.split()[0] for line in lines[1:5]] == ["3", "2", "1", "4*"]  # another version
    assert "50 ms" in lines[1] and "cluster.port_gbps=400" in lines[1]


@pytest.mark.parametrize(
    ("filters", "runs"),
    [
        ("", [3, 2, 1, 4]),
        ("--limit 2", [3, 2]),
        ("--limit 2 --before 2", [1, 4]),
        ("--set cluster.port_gbps=200", [2]),
        ("--set fabric=scheduled --to-ms 100", [3, 2]),
        ("--from-ms 100.0001", [1]),
        ("--text RIN", [4]),
        ("--status failed", [4]),
        (f"--study 1 --code {code_version()} --kind fabric", [3, 2, 1]),
    ],
)
def test_list_as_json_filters_and_pages(
    answered: Any, filled: Path, filters: str, runs: list[int]
) -> None:
    assert [one["run"] for one in answered("runs list", filters)["runs"]] == runs


def test_show_writes_result_and_inputs_and_runs_are_named_and_deleted(
    run: Any, answered: Any, filled: Path, folder: Path
) -> None:
    shown = answered("runs show 1 --output r.json --inputs .")
    assert (shown["key"], shown["has_result"], shown["this_version"]) == (key(100), True, True)
    result = json.loads((folder / "r.json").read_text())
    made = result.pop("manifest")
    assert result == {"speed": 100} and made["program"].endswith(shown["version"])
    assert made["inputs"] == {part: shown[part] for part in ("graph", "cluster")}
    assert made["options"]["settings"] == shown["settings"]
    inputs = folder / f"{key('race graph')[:12]}.taskgraph.json"
    assert inputs.read_text() == '{"tasks": []}'
    assert run("name 2 'the good one'")[0] == 0
    assert answered("runs list --text good")["in_all"] == 1
    assert run("delete 2-4 99")[1] == "deleted 3\u00a0runs\n"
    assert answered("runs list")["in_all"] == 1


def test_compare_tells_what_differs(run: Any, answered: Any, filled: Path) -> None:
    lines = [line.split() for line in run("compare 1 3")[1].splitlines()]
    assert ["iteration_ms", "200", "50", "(0.25x)"] in lines
    compared = answered("runs compare 1-3")
    assert compared["different_settings"] == {"cluster.port_gbps": [100.0, 200.0, 400.0]}


def test_an_export_carries_runs_to_another_library(
    run: Any, answered: Any, filled: Path, folder: Path
) -> None:
    assert run("export t.csv --subject race")[0] == 0
    assert len((folder / "t.csv").read_text().splitlines()) == 1 + 3
    exported = answered("runs export t.parquet")
    assert (exported["runs"], exported["output"]) == (4, "t.parquet")
    assert run("export part.sqlite --subject race")[0] == 0
    assert answered("runs list --library part.sqlite")["in_all"] == 3
    before, after = (answered(f"runs show 1 --library {n}.sqlite") for n in ("runs", "part"))
    assert before == after


def test_a_damaged_library_is_said_and_set_aside(
    run: Any, answered: Any, filled: Path, folder: Path
) -> None:
    HARMS["zeros at its head"](filled)
    status, out, err = run("list --json")
    assert (status, json.loads(out)["in_all"]) == (0, 0)
    assert err.count("\n") == 1 and "is damaged" in err
    assert len(list(folder.glob("runs.sqlite.damaged-*"))) == 1


# answers of other commands that are kept


def test_a_kept_schedule_is_the_one_printed_with_its_files(
    topox: Any, answered: Any, folder: Path
) -> None:
    solve = "schedule g.json c.json --engine list --port-gbps 50 --json --keep"
    printed = json.loads(topox(solve, "'the slow one'")[1])
    one = answered("runs show 1 --output r.json --inputs .")
    assert (one["kind"], one["name"], one["this_version"]) == ("schedule", "the slow one", True)
    assert one["measures"]["iteration_ms"] == printed["makespan_ms"] == 17.0
    assert one["settings"]["cluster.port_gbps"] == 50.0
    for part, digest in one["settings"]["subject"]["digests"].items():
        (kept,) = folder.glob(f"{digest[:12]}.*")
        assert kept.read_bytes() == (folder / f"{part[0]}.json").read_bytes()
    assert topox("check g.json c.json r.json --port-gbps 50")[0] == 0
    assert topox(solve)[0] == 0
    assert [one["name"] for one in answered("runs list")["runs"]] == ["the slow one"]
    compared = answered("compare g.json c.json --fabrics ideal,reactive --keep all")["fabrics"]
    listed = answered("runs list --text all")["runs"]
    kept_ms = {one["settings"]["fabric"]: one["measures"]["iteration_ms"] for one in listed}
    assert kept_ms == {name: one["iteration_ms"] for name, one in compared.items()}


def test_the_page_on_the_library_shows_commands_and_code_that_run(
    topox: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    (commands,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    for line in commands.splitlines():
        assert topox(line.partition(" ")[2])[0] == 0, line
    assert len((folder / "first.csv").read_text().splitlines()) == 2
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "docs/runs.md", "exec"), {})
    assert "race" in capsys.readouterr().out.lower()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("list --library typo.sqlite", "typo.sqlite: there is no such file"),
        ("list --library table.csv", "table.csv: is no run library"),
        (
            "list --set fabric",
            "argument --set: must be KEY=VALUE (got 'fabric')",
        ),
        ("list --set x=1e999", "filter, field x: must be a finite number or a word"),
        ("list --before 77", "run 77: there is no such run"),
        ("show 77", "run 77: there is no such run"),
        ("show 99999999999999999999", "runs.sqlite: has no number of more than 63 bits"),
        ("show 2 --output r.json", "run 2: has no result file"),
        ("show 4 --inputs nowhere", "cannot be written: there is no folder nowhere"),
        ("compare 1", "runs to compare: must be 2 to 20 (got 1)"),
        (
            "compare 1 x",
            "argument RUN: must be numbers such as 7, 0-7 or 0,2,4, at most 100,000 of them (got 'x')",
        ),
        ("delete 1-999999", "RUN: must be numbers such as 7, 0-7 or 0,2,4, at most 100,000"),
        ("delete 77", "77: there is no such run"),
        ("name 77 x", "run 77: there is no such run"),
        ("export t.xlsx", "t.xlsx: must end in .csv, .csv.gz, .parquet or .sqlite"),
        ("export none/t.csv", "none/t.csv: cannot be written: there is no folder none"),
        ("export runs.sqlite", "runs.sqlite: is there already"),
    ],
)
def test_a_mistake_is_one_line(
    run: Any, filled: Path, folder: Path, command: str, words: str
) -> None:
    (folder / "table.csv").write_text("a,b\n1,2\n")
    status, out, err = run(command)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("topox: error: ") and words in err
    assert (folder / "table.csv").read_text() == "a,b\n1,2\n"


def test_what_a_foreign_library_says_is_drawn_as_text(run: Any, folder: Path) -> None:
    with RunLibrary.open(folder / "runs.sqlite") as library:
        library.add([record("x", subject="a\x1b[31m\nb", name="\u202ename")])
    drawn = run("list")[1] + run("show 1")[1]
    assert "name" in drawn and "\x1b" not in drawn and "\u202e" not in drawn
