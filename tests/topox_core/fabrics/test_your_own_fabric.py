"""The fabric of docs/your-own-fabric.md, installed, is met wherever fabrics are, without a line of ours changed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import long_after
from tests.real_inputs import ROOT

PAGE = (ROOT / "docs" / "your-own-fabric.md").read_text(encoding="utf-8")
CODE, PROJECT, SHELL = re.findall(r"```(?:python|toml|bash)\n(.*?)```", PAGE, re.DOTALL)
NAME, LABEL = "software_controller", "Software controller"
JOB = [str(ROOT / "sample_data" / f"race.{what}.json") for what in ("taskgraph", "cluster")]
# Every page with the fabric chosen in the address, and the texts and tables of Compare.
VISIT = """
import json, sys
from streamlit.testing.v1 import AppTest
import topox_ui.answers.contest, topox_ui.cost.which_switch, topox_ui.compare.map
from topox_ui.shell.pages import PAGES

# Work in the background would outlive the pages.
for one in (topox_ui.answers.contest, topox_ui.cost.which_switch, topox_ui.compare.map):
    one.AUTOMATIC = False
seen, errors = "", {}
for page in PAGES[1:]:
    at = AppTest.from_file("app.py", default_timeout=300)
    at.query_params.update(page.query | {"sample": "race", "fabrics": sys.argv[1], "effort": "first"})
    at.switch_page(page.path)
    at.run()
    if at.exception:
        errors[page.title] = [one.value for one in at.exception]
    if page.title == "Compare":
        seen = " ".join(one.value for one in (*at.markdown, *at.caption))
        seen += " ".join(one.value.to_csv() for one in at.dataframe)
print(json.dumps({"seen": seen, "errors": errors}))
"""
# A map of two delays, drawn, with its legend.
MAP = """
import sys
from topox_core.api import load_sample
from topox_core.fabrics.crossover.map_run import map_run
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.crossover.map_run import MapPicture
from topox_core.fabrics.crossover.sweep import Axes, Sweep
from topox_core.figures.studies.cells import map_legend, winner_map
from topox_core.figures.palette import LIGHT
from topox_core.runs.run import finish
from topox_core.schedule.settings import Settings

axes = Axes((0.0, 1.0), (100.0,))
points = finish(map_run(Sweep(*load_sample("race"), Settings(), axes, (sys.argv[1],)))).points
picture = MapPicture(axes, points, {}, FABRICS)
winner_map(picture, (100.0, 1.0), LIGHT)
print(*(words for _, words in map_legend(picture, LIGHT)))
"""


def installed(folder: Path, code: str = CODE, project: str = PROJECT) -> dict[str, str]:
    """Put a package into a folder as an installer does; return an environment that has it."""
    (point,) = re.findall(r'^(\w+) = "(software_controller:\w+)"$', project, re.MULTILINE)
    about = folder / "software_controller-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "software_controller.py").write_text(code)
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: software-controller\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text(f"[topox.fabrics]\n{' = '.join(point)}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def python(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def with_fabric(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return installed(tmp_path_factory.mktemp("installed"))


def test_the_command_of_the_page_runs_it_beside_ours(with_fabric: dict[str, str]) -> None:
    words = SHELL.splitlines()[1].split()[1:]
    run = python(with_fabric, *words, "--json")
    found = json.loads(run.stdout)["fabrics"]
    assert "topox.fabrics" not in run.stderr and list(found) == ["reactive", NAME]
    # Each of its changes takes half a millisecond more.
    assert found[NAME]["iteration_ms"] > found["reactive"]["iteration_ms"]


def test_a_study_varies_it_beside_ours(with_fabric: dict[str, str], tmp_path: Path) -> None:
    study = {
        "format": "topox-study",
        "version": 1,
        "name": "Mine",
        "subject": {"kind": "sample", "name": "race"},
        "axes": [{"key": "fabric", "values": ["reactive", NAME]}],
    }
    file = tmp_path / "mine.study.json"
    file.write_text(json.dumps(study))
    library = {**with_fabric, "TOPOX_LIBRARY": str(tmp_path / "runs.sqlite")}
    run = python(library, "-m", "topox_core", "study", "run", str(file), "--json")
    ours, its = (float(row["iteration_ms"]) for row in json.loads(run.stdout)["points"])
    assert ours < its


def test_a_map_shows_it_by_its_letter_and_name(with_fabric: dict[str, str]) -> None:
    run = python(with_fabric, "-c", MAP, NAME)
    assert f"S {LABEL}" in run.stdout, run.stderr


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    long_after(
        4,
        [
            ('letter="S"', 'letter="P"', "letter must be one that is not taken"),
            ("ENTRY = FabricEntry(", "ENTRY = dict(", "must be a FabricEntry (got dict)"),
            ("DECIDING_MS = 0.5", "DECIDING_MS = 1 / 0", "cannot be loaded (ZeroDivisionError"),
            ('letter="S"', 'letter="S", alone_on=("none",)', "alone_on must be of ideal, "),
            ('"topoopt_ocs"', '"a_cheap_one"', "built_as must be of fat_tree, "),
            (
                'letter="S"',
                'letter="S", options=("speed",)',
                "options must be of oversubscription, ",
            ),
            (
                '"#997700"',
                '"red"',
                "field colours[0]: must be a colour such as #4B3FA8 (got 'red')",
            ),
            ('letter="S"', 'letter="S", mark="blob"', "field mark: must be one of circle, "),
        ],
    ),
)
def test_one_that_is_no_good_is_left_out_with_a_line(
    old: str, new: str, problem: str, tmp_path: Path
) -> None:
    run = python(
        installed(tmp_path, CODE.replace(old, new)),
        "-m",
        "topox_core",
        "compare",
        *JOB,
        "--fabrics",
        "reactive",
    )
    (line,) = [line for line in run.stderr.splitlines() if "topox.fabrics" in line]
    assert run.returncode == 0 and problem in line and NAME in line


@pytest.mark.long
def test_compare_shows_it_and_every_page_opens(with_fabric: dict[str, str]) -> None:
    run = python(with_fabric, "-c", VISIT, f"reactive,{NAME}")
    found = json.loads(run.stdout.splitlines()[-1])
    assert LABEL in found["seen"] and not found["errors"]
