"""Fixtures that every test may use, and how many examples a property is tried on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import is_hypothesis_test, settings

from topox_core.library.location import VARIABLE as LIBRARY_VARIABLE

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
ALL, QUICK, FEWEST = 100, 20, 5


def pytest_configure(config: pytest.Config) -> None:
    """Let the long run try every property on all its examples, the quick run on a part."""
    # No deadline: the first example of a test may wait for a kernel to be compiled. The same examples
    # on every machine, so that a change is judged by what it changed; `make fuzz` draws new cases.
    always = {"deadline": None, "derandomize": True}
    settings.register_profile("quick", **always, max_examples=QUICK)
    settings.register_profile("long", **always, max_examples=ALL)
    settings.load_profile("long" if only_long(config) else "quick")


def only_long(config: pytest.Config) -> bool:
    """Return whether this is the run of the long tests, or of a part of them ("long and not browser")."""
    expression = str(config.option.markexpr)
    return expression.startswith("long")


@pytest.fixture(autouse=True, scope="session")
def library_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no test, nor any process that one starts, touch the run library of whoever runs the tests."""
    before = os.environ.get(LIBRARY_VARIABLE)
    os.environ[LIBRARY_VARIABLE] = str(tmp_path_factory.mktemp("library") / "runs.sqlite")
    yield
    if before is None:
        del os.environ[LIBRARY_VARIABLE]
    else:
        os.environ[LIBRARY_VARIABLE] = before


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what tries only a part of its cases in the quick run with the long tests as well."""
    if only_long(config):
        for item in items:
            whole = is_hypothesis_test(getattr(item, "obj", None))
            if whole or item.get_closest_marker("sampled"):
                item.add_marker(pytest.mark.long)


def examples(count: int, **more: Any) -> settings:
    """Return settings for so many examples in the long run, and a part of them in the quick one."""
    part = count * settings().max_examples // ALL
    return settings(max_examples=max(part, min(count, FEWEST)), **more)


def some(cases: Sequence[T], quick: int) -> Sequence[T]:
    """Return all cases in the long run and the first few in the quick one; for tests marked ``sampled``."""
    return cases if settings().max_examples == ALL else cases[:quick]


def long_after(quick: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a test, with all but the first few for the long run only."""
    return [
        case if number < quick else pytest.param(*as_values(case), marks=pytest.mark.long)
        for number, case in enumerate(cases)
    ]


def as_values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


# Real inputs and, beside them, the instances of the suite: a folder that a checkout does not hold.
REAL_INPUTS = Path(os.environ.get("TOPOX_REAL_INPUTS") or ROOT.parent / "shared" / "data")
WITHOUT_REAL_INPUTS = "needs real inputs: TOPOX_REAL_INPUTS names their folder (../shared/data)"


def suite_instance(name: str) -> tuple[Path, Path]:
    """Return graph and cluster file of an instance of the suite; the test is skipped where that is not there."""
    folder = REAL_INPUTS.parent / "bench" / "instances"
    found = sorted(folder.glob(f"{name}.taskgraph.json*"))
    if not found:
        pytest.skip(WITHOUT_REAL_INPUTS)
    return found[0], folder / f"{name}.cluster.json"


@pytest.fixture(scope="session")
def real_inputs() -> Path:
    """The folder of real inputs."""
    if not REAL_INPUTS.is_dir():
        pytest.skip(WITHOUT_REAL_INPUTS)
    return REAL_INPUTS
