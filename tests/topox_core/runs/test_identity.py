"""The version of the code: the same wherever it lies, another after any change of a line."""

import pickle
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import topox_core
from topox_core.runs.identity import code_version, identity


def test_the_version_follows_every_line_of_the_package_and_nothing_else(tmp_path, monkeypatch):
    package = tmp_path / "topox_core"
    shutil.copytree(
        Path(topox_core.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("__pycache__", "sample_data"),
    )
    here = code_version()
    monkeypatch.setattr(topox_core, "__file__", str(package / "__init__.py"))
    version_there = code_version.__wrapped__
    (package / "notes.txt").write_text("no code")
    assert version_there() == here
    assert here.startswith(f"{topox_core.__version__}+")
    changed = package / "runs" / "cores.py"
    changed.write_text(changed.read_text() + "\n# one line more\n")
    second = version_there()
    changed.rename(changed.with_name("other_cores.py"))
    assert len({here, second, version_there()}) == 3


def test_two_identities_say_in_what_they_differ():
    mine = identity()
    assert mine.difference(pickle.loads(pickle.dumps(mine))) == ""
    assert mine.python == sys.version.split()[0]
    said = f"runs numba 0.1, this machine {mine.numba}"
    assert mine.difference(replace(mine, numba="0.1")) == said
