"""The version of the code: the same wherever it lies, another after any change of a line."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import topox_core
from tests.real_inputs import ROOT
from topox_core.runs.identity import code_version, identity


def copied_package(folder: Path) -> Path:
    """Copy the code of this package into a folder."""
    skipped = shutil.ignore_patterns("__pycache__", "sample_data")
    return shutil.copytree(ROOT / "topox_core", folder / "topox_core", ignore=skipped)


def test_the_version_follows_every_line_of_the_package_and_nothing_else(tmp_path, monkeypatch):
    package, here, version_there = (
        copied_package(tmp_path),
        code_version(),
        code_version.__wrapped__,
    )
    monkeypatch.setattr(topox_core, "__file__", str(package / "__init__.py"))
    (package / "notes.txt").write_text("no code")
    assert version_there() == here
    changed = package / "runs" / "cores.py"
    changed.write_text(changed.read_text() + "\n# one line more\n")
    second = version_there()
    changed.rename(changed.with_name("other_cores.py"))
    assert len({here, second, version_there()}) == 3


def test_two_identities_say_in_what_they_differ():
    mine = identity()
    assert mine.difference(pickle.loads(pickle.dumps(mine))) == ""
    said = f"runs numba 0.1, this machine {mine.numba}"
    assert mine.difference(replace(mine, numba="0.1")) == said
