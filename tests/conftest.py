"""Fixtures that every test may use, and how many examples a property is tried on."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from tests.real_inputs import REAL_INPUTS, SUITE
from topox_core.cli.main import main
from topox_core.library.opening import VARIABLE as LIBRARY_VARIABLE

T = TypeVar("T")

ALL, QUICK, FEWEST = 100, 20, 5
MAX_REASONS = 4


def pytest_configure(config: pytest.Config) -> None:
    """Let the run of everything try every property on all its examples, any other on a part."""
    # No deadline: the first example of a test may wait for a kernel to be compiled. The same examples
    # on every machine, so that a change is judged by what it changed; `make fuzz` draws new cases.
    always = {"deadline": None, "derandomize": True}
    settings.register_profile("quick", **always, max_examples=QUICK)
    settings.register_profile("long", **always, max_examples=ALL)
    settings.load_profile("quick" if "not long" in config.option.markexpr else "long")


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


def examples(count: int, **more: Any) -> settings:
    """Return settings for so many examples in the long run, and a part of them in the quick one."""
    part = count * settings().max_examples // ALL
    return settings(max_examples=max(part, min(count, FEWEST)), **more)


def some(cases: Sequence[T], quick: int) -> Sequence[T]:
    """Return all cases in the long run and the first few in the quick one."""
    return cases if settings().max_examples == ALL else cases[:quick]


def long_after(quick: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a test, with all but the first few for the long run only."""
    return [
        case if number < quick else pytest.param(*as_values(case), marks=pytest.mark.long)
        for number, case in enumerate(cases)
    ]


def as_values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


WITHOUT_REAL_INPUTS = "needs real inputs: TOPOX_REAL_INPUTS names their folder (../shared/data)"


def suite_instance(name: str) -> tuple[Path, Path]:
    """Return graph and cluster file of an instance of the suite; the test is skipped where that is not there."""
    found = sorted(SUITE.glob(f"{name}.taskgraph.json*"))
    if not found:
        pytest.skip(WITHOUT_REAL_INPUTS)
    return found[0], SUITE / f"{name}.cluster.json"


@pytest.fixture(scope="session")
def real_inputs() -> Path:
    """The folder of real inputs."""
    if not REAL_INPUTS.is_dir():
        pytest.skip(WITHOUT_REAL_INPUTS)
    return REAL_INPUTS


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command and return the object that it prints."""

    def asked(*words: object) -> Any:
        capsys.readouterr()
        assert main([*map(str, words), "--json"]) == 0, words
        return json.loads(capsys.readouterr().out)

    return asked


# What a run leaves out, and why: counted where tests are collected, told where the run is summed up.
LEFT_OUT = pytest.StashKey[Counter[str]]()
WHERE = {"browser": "in a browser (make test-browser)", "long": "long (make test-long)"}


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what the marks of this run leave out; the tests that failed last may all stand in files that are left out whole."""
    if not items:
        return
    count = Counter(
        next((w for m, w in WHERE.items() if one.get_closest_marker(m)), "not asked for")
        for one in items
    )
    stash = items[0].config.stash
    stash[LEFT_OUT] = stash.get(LEFT_OUT, Counter()) + count


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what was left out from a worker to the run it belongs to."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(
            session.config.stash.get(LEFT_OUT, Counter())
        )


def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker left out: every worker collects the same tests."""
    node.config.stash[LEFT_OUT] = Counter(node.workeroutput.get("left_out", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say in five lines at most what was not run, and why."""
    skipped = Counter(str(one.longrepr[2]) for one in terminalreporter.stats.get("skipped", []))
    reasons = [*config.stash.get(LEFT_OUT, Counter()).items(), *skipped.most_common()]
    for reason, count in reasons[:MAX_REASONS]:
        terminalreporter.line(f"left out: {count}, {reason.removeprefix('Skipped: ')}")
    if rest := sum(count for _, count in reasons[MAX_REASONS:]):
        terminalreporter.line(f"left out: {rest} for other reasons (pytest -rs)")
