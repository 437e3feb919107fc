"""Pages as a visitor meets them, without a browser."""

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests.real_inputs import ROOT
from topox_core.library.run_library import RunLibrary
from topox_core.text.numbers import time
from topox_ui.runs.limits import server_limits
from topox_ui.shell.pages import page_of
from topox_ui.shell.terms import ASK, explanations
from topox_ui.state.session import VIEW_KEY

SCHEDULE, CIRCUITS = "Schedule", "Circuits"


@pytest.fixture(autouse=True, scope="session")
def what_a_server_does_once() -> Iterator[None]:
    """Let all visits share one look for components among the installed packages, and load kernels as they are needed."""
    found = cache(manifest_scanner.scan_component_manifests)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(manifest_scanner, "scan_component_manifests", found)
        patched.setattr("topox_ui.shell.page._load", lambda _coming: None)
        yield


def forget_answers() -> None:
    """Begin as a server does that nobody has asked yet."""
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(scope="module")
def answers_kept() -> Iterator[None]:
    """Let the tests of a module share what pages have answered: for those that change nothing by which answers are made."""
    yield
    forget_answers()


@pytest.fixture(autouse=True)
def fresh_caches(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """Keep tests from answering each other's questions, from computing maps that they do not look at, and off the user's runs."""
    monkeypatch.setattr("topox_ui.compare.map.AUTOMATIC", False)
    monkeypatch.setattr("topox_ui.cost.question.AUTOMATIC", False)
    monkeypatch.setattr("topox_ui.answers.verdicts.AUTOMATIC", False)
    monkeypatch.setattr("topox_ui.studies.planning.AUTOMATIC", False)
    monkeypatch.setenv("TOPOX_LIBRARY", str(tmp_path / "runs.sqlite"))
    yield
    if "answers_kept" not in request.fixturenames:
        forget_answers()


Visit = Callable[..., AppTest]


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Visit:
    """Open a page cold, by its title, with query parameters; whatever they say, no page breaks."""
    monkeypatch.chdir(ROOT)

    def opened(title: str = "Home", **query: str) -> AppTest:
        return follow(AppTest.from_file(str(ROOT / "app.py"), default_timeout=180), title, **query)

    return opened


def follow(at: AppTest, title: str, **query: str) -> AppTest:
    """Open a page in the same session at an address, as a menu link or the browser's Back does."""
    at.query_params.clear()
    at.query_params.update(query)
    return turn_to(at, title)


def turn_to(at: AppTest, title: str) -> AppTest:
    """Open another page with all that the address says of choices."""
    page = page_of(title)
    at.query_params.pop(VIEW_KEY, None)
    at.query_params.update(page.query)
    return unbroken(at.switch_page(page.path).run())


def unbroken(at: AppTest) -> AppTest:
    """Return a page that no exception ended."""
    assert not at.exception
    return at


def press(at: AppTest, key: str) -> AppTest:
    """Click a button."""
    return unbroken(at.button(key=key).click().run())


def bring(at: AppTest, box: str, name: str, content: bytes) -> AppTest:
    """Put a file into a box."""
    return unbroken(at.file_uploader(key=box).upload(name, content).run())


def choose(at: AppTest, **choices: Any) -> AppTest:
    """Make choices on an open page, one after the other, each by the control of its field."""
    for field, value in choices.items():
        unbroken(control(at, field).set_value(value).run())
    return at


def buttons(at: AppTest) -> set[str]:
    """Return the keys of the buttons on a page."""
    return {one.key for one in at.button}


def the_error(at: AppTest) -> str:
    """Return the one line that says what is wrong."""
    (line,) = [one.value for one in unbroken(at).error]
    assert "\n" not in line
    return str(line).replace("\u00a0", " ")


@pytest.fixture
def owner_sets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Let the owner of the server set variables of its environment, such as ``ADDRESS``."""

    def setting(**variables: str) -> None:
        for name, text in variables.items():
            monkeypatch.setenv(f"TOPOX_{name}", text)
        server_limits.cache_clear()

    yield setting
    server_limits.cache_clear()


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], bytes]]:
    """What the page that is open offers as files: by label, what builds each where no session is, as on a server."""
    offered: dict[str, Callable[[], bytes]] = {}
    draw = st.download_button

    def recorded(label: str, **options: Any) -> bool:
        offered[label] = options["data"]
        return draw(label, **options)

    monkeypatch.setattr(st, "download_button", recorded)
    return offered


CONTROLS = (
    "select_slider",
    "slider",
    "selectbox",
    "multiselect",
    "button_group",
    "toggle",
    "checkbox",
    "number_input",
    "text_input",
)


def control(at: AppTest, field: str) -> Any:
    """Return the control of a field of a page's state, such as ``port_gbps`` or ``jobs_ports``."""
    known = {w.key: w for kind in CONTROLS for w in at.get(kind) if w.key}
    found = [w for key, w in known.items() if re.fullmatch(rf"w_[0-9a-f]*_{field}-\d+", key)]
    assert len(found) == 1, f"{field} among {sorted(known)}"
    return found[0]


def words(at: AppTest) -> str:
    """Return everything that the page's own HTML says, without tags and hard spaces."""
    html = " ".join(element.proto.body for element in at.get("html"))
    html = html.replace(explanations(), "").replace(ASK, "")
    return re.sub(
        r"\s+",
        " ",
        re.sub(r"<style.*?</style>|<[^>]+>", "", html, flags=re.S)
        .replace("&nbsp;", " ")
        .replace("\u00a0", " "),
    )


def ways_on(at: AppTest) -> list[str]:
    """Return the labels of the links to pages, outside the menu."""
    return [link.proto.label for link in at.main.get("page_link")]


def spoken(value_ms: float) -> str:
    """Return a time in the words of a page, without hard spaces."""
    return time(value_ms).replace("\u00a0", " ")


def metric(at: AppTest, label: str) -> str:
    """Return the value of a KPI."""
    return next(m.value for m in at.metric if m.label == label).replace("\u00a0", " ")


def charts(at: AppTest) -> dict[str, Any]:
    """Return what a page sends for each of its charts, by key."""
    return {one.proto.id.rpartition("-")[2]: one.proto for one in at.get("plotly_chart")}


def chart(at: AppTest, key: str) -> dict:
    """Return the figure of a chart by its key."""
    return json.loads(charts(at)[key].spec)


def traces(at: AppTest, key: str) -> list[str]:
    """Return the names of what a chart draws."""
    return [trace.get("name", "") for trace in chart(at, key)["data"]]


def table(at: AppTest, column: str) -> Any:
    """Return the table with a column of that name."""
    return next(one.value for one in at.dataframe if column in one.value.columns)


def address(at: AppTest) -> dict[str, str]:
    """Return the choices that the address says (AppTest keeps those it was given as lists, those the app wrote as text)."""
    return {
        key: value if isinstance(value, str) else value[-1]
        for key, value in dict(at.query_params).items()
        if key != VIEW_KEY
    }


def library() -> RunLibrary:
    """Return the run library of the visit."""
    return RunLibrary.open(Path(os.environ["TOPOX_LIBRARY"]))
