"""A server on a free port of this machine, Chromium, and tabs that are watched while they are used."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

from tests.e2e.tab import LAPTOP, Tab

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_S = 180
NewTab = Callable[..., Tab]
TABS = pytest.StashKey[list[Tab]]()


@dataclass(frozen=True)
class Server:
    """A running workbench."""

    base: str
    process_id: int
    log: Path


def installed() -> str | None:
    """Return the browser to use: the one that ``CHROMIUM`` names, or one that is installed."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if shutil.which(named) else None
    places = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
    return next((found for place in places if (found := shutil.which(place))), None)


def without_browser(reason: str) -> None:
    """Skip, or fail where a browser is required: silence must not pass for success there."""
    if os.environ.get("TOPOX_REQUIRE_BROWSER") == "1":
        pytest.fail(f"TOPOX_REQUIRE_BROWSER=1, but {reason}", pytrace=False)
    pytest.skip(f"browser tests: {reason}")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    path = installed()
    if path is None:
        without_browser(
            "there is no Chromium here (Debian, Ubuntu: apt-get install chromium; or name one in CHROMIUM)"
        )
    assert path is not None
    return path


# A package's scope, not a session's: playwright keeps an event loop running that tests elsewhere
# should not meet.
@pytest.fixture(scope="package")
def chromium(chromium_path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=chromium_path, args=FLAGS)
        except Error as error:
            without_browser(f"{chromium_path} does not start: {str(error).splitlines()[0]}")
        yield started
        started.close()


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


SERVED = {
    "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
    "STREAMLIT_SERVER_HEADLESS": "true",
    "STREAMLIT_SERVER_FILE_WATCHER_TYPE": "none",
}
APP = ("streamlit", "run", "app.py")


def start_server(
    port: int, log: Path, *module: str, cwd: Path = ROOT, **environment: str
) -> subprocess.Popen[bytes]:
    """Start a workbench on a port of this machine; what it prints is appended to a file."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", *(module or APP)],
            cwd=cwd,
            # A tab that is closed in a test ends what it started while the test still looks; the
            # library of whoever runs the tests is not theirs.
            env=os.environ
            | {"TOPOX_REJOIN_S": "20", "TOPOX_LIBRARY": str(log.with_name("runs.sqlite"))}
            | SERVED
            | {"STREAMLIT_SERVER_PORT": str(port)}
            | environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


@pytest.fixture(scope="session")
def server(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(free_port(), tmp_path_factory.mktemp("server") / "server.log") as one:
        yield one


@contextmanager
def serving(
    port: int, log: Path, *module: str, cwd: Path = ROOT, **environment: str
) -> Iterator[Server]:
    """Serve a workbench until nobody needs it any longer."""
    process, base = (
        start_server(port, log, *module, cwd=cwd, **environment),
        f"http://127.0.0.1:{port}",
    )
    try:
        wait_until_it_answers(process, base, log)
        yield Server(base, process.pid, log)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until_it_answers(process: subprocess.Popen[bytes], base: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with suppress(OSError), urllib.request.urlopen(base + "/_stcore/health", timeout=5):
            return
        time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text()[-2000:]}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave a picture of every tab where a test failed, in ``test-output``."""
    report = yield
    if report.when == "call" and report.failed:
        for number, tab in enumerate(item.stash.get(TABS, [])):
            with suppress(Error):
                tab.picture(ROOT / "test-output" / f"{item.name}-{number}.png")
    return report


@pytest.fixture
def new_tab(chromium: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[NewTab]:
    """Open tabs; afterwards, whatever the test was about, none may have complained or asked anybody else for anything."""
    tabs = request.node.stash[TABS] = []

    def open_one(**options: str) -> Tab:
        context = chromium.new_context(viewport=LAPTOP, accept_downloads=True, **options)  # type: ignore[arg-type]
        tabs.append(Tab(context, server.base))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        tab.context.close()
    assert [tab.complaints for tab in tabs] == [[] for _ in tabs]
    assert [tab.outside for tab in tabs] == [[] for _ in tabs]


@pytest.fixture(scope="package")
def used_tabs() -> list[Tab]:
    return []


@pytest.fixture
def tab(
    chromium: Browser, server: Server, used_tabs: list[Tab], request: pytest.FixtureRequest
) -> Iterator[Tab]:
    """A tab as good as new, for tests that need one: a page that is new compiles every script again, for seconds."""
    if not used_tabs or used_tabs[0].page.is_closed():
        used_tabs[:] = [Tab(chromium.new_context(viewport=LAPTOP), server.base)]
    one = used_tabs[0].as_new()
    request.node.stash[TABS] = [one]
    yield one
    if not one.page.is_closed():
        one.rest()
    assert (one.complaints, one.outside) == ([], [])
