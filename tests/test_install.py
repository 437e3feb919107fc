"""The same install tomorrow: every package in the locks, with its hashes, as the requirements say."""

import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.real_inputs import ROOT

DIRECT = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)$", re.M)
LOCKED = re.compile(r"^([a-z0-9._-]+)==(\S+)(?: ; [^\\\n]+?)? \\\n((?:    .*\n)+)", re.M)


@dataclass(frozen=True)
class Locked:
    """A package of a lock."""

    version: str
    hashes: int
    because: str


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def direct(file: str) -> dict[str, str]:
    text = (ROOT / file).read_text(encoding="utf-8")
    return {canonical(name): version for name, version in DIRECT.findall(text)}


def lock(name: str) -> dict[str, list[Locked]]:
    packages: dict[str, list[Locked]] = defaultdict(list)
    for package, version, rest in LOCKED.findall((ROOT / "locks" / name).read_text("utf-8")):
        because = rest[rest.index("# via") :]
        packages[package].append(Locked(version, rest.count("--hash=sha256:"), because))
    return packages


def versions(name: str) -> dict[str, set[str]]:
    return {package: {one.version for one in ones} for package, ones in lock(name).items()}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("run.txt", ["requirements.txt"]),
        ("dask.txt", ["requirements.txt", "requirements-dask.txt"]),
        ("dev.txt", ["requirements.txt", "requirements-dask.txt", "requirements-dev.txt"]),
    ],
)
def test_the_lock_holds_what_the_requirements_say_and_nothing_they_no_longer_say(
    name: str, files: list[str]
) -> None:
    packages = lock(name)
    asked = {package: version for file in files for package, version in direct(file).items()}
    held = {package: {one.version for one in packages.get(package, [])} for package in asked}
    assert held == {package: {version} for package, version in asked.items()}, "make lock"
    named = {
        package
        for package, ones in packages.items()
        for one in ones
        if "# via -r" in one.because or "#   -r requirements" in one.because
    }
    assert named == set(asked), "make lock"


@pytest.mark.parametrize("name", ["run.txt", "dask.txt", "dev.txt"])
def test_every_package_of_a_lock_has_hashes_and_no_address(name: str) -> None:
    text = (ROOT / "locks" / name).read_text(encoding="utf-8")
    packages = [one for ones in lock(name).values() for one in ones]
    assert len(packages) == len(re.findall(r"^[^\s#]", text, re.M))
    assert min(one.hashes for one in packages) >= 1
    assert not re.search(r"https?:|file:|--index|--find-links|/(tmp|home|work|opt)/", text)


def test_tests_run_with_the_versions_that_users_have() -> None:
    run, dask, dev = (versions(name) for name in ("run.txt", "dask.txt", "dev.txt"))
    assert run.items() <= dask.items() <= dev.items()


def test_setting_up_and_testing_install_from_the_locks_and_nowhere_else() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"install --quiet (.*)", makefile) == [
        "--require-hashes -r locks/run.txt",
        "--require-hashes -r locks/dev.txt",
    ]


@pytest.mark.long
def test_the_bill_of_materials_names_every_package_of_the_lock(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py", reason="make bom needs the packages of locks/dev.txt")
    bill = tmp_path / "bill.json"
    command = ["cyclonedx_py", "requirements", "--output-reproducible", "-o", str(bill)]
    subprocess.run(
        [sys.executable, "-m", *command, "locks/run.txt"], cwd=ROOT, check=True, capture_output=True
    )
    found = json.loads(bill.read_text("utf-8"))["components"]
    named = {(canonical(one["name"]), one["version"]) for one in found}
    assert named == {(p, one.version) for p, ones in lock("run.txt").items() for one in ones}
