"""The version of the code: the same wherever it lies, another after any change of a line."""

import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import topox_core
from topox_core.runs.identity import code_version, identity

SAYS = "from topox_core.runs.identity import code_version; print(code_version())"


def version_of(root: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.check_output(
        [sys.executable, "-c", SAYS], text=True, env=environment, cwd=root
    ).strip()


def test_the_version_follows_every_line_of_the_package_and_nothing_else(tmp_path):
    package = tmp_path / "topox_core"
    shutil.copytree(
        Path(topox_core.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    assert version_of(tmp_path) == code_version()
    assert code_version().startswith(f"{topox_core.__version__}+")
    (package / "notes.txt").write_text("no code")
    assert version_of(tmp_path) == code_version()
    changed = package / "runs" / "cores.py"
    changed.write_text(changed.read_text() + "\n# one line more\n")
    second = version_of(tmp_path)
    assert second != code_version()
    changed.rename(changed.with_name("other_cores.py"))
    (package / "runs" / "cores.py").write_text("from topox_core.runs.other_cores import *\n")
    assert version_of(tmp_path) not in (second, code_version())


def test_two_identities_say_in_what_they_differ():
    mine = identity()
    assert mine.difference(pickle.loads(pickle.dumps(mine))) == ""
    assert mine.python == sys.version.split()[0]
    assert mine.difference(replace(mine, numba="0.1")) == (
        f"runs numba 0.1, this machine {mine.numba}"
    )
