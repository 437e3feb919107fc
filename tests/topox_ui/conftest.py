"""Pages as a visitor meets them, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.conftest import ROOT
from topox_ui.shell.terms import ASK, explanations

SCHEDULE, CIRCUITS = "pages/1_Schedule.py", "pages/2_Circuits.py"


@pytest.fixture(autouse=True)
def fresh_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Keep tests from answering each other's questions, from computing maps that they do not look at, and off the user's runs."""
    monkeypatch.setattr("topox_ui.compare.map.AUTOMATIC", False)
    monkeypatch.setattr("topox_ui.gallery.last_runs.AUTOMATIC", False)
    monkeypatch.setattr("topox_ui.buying.running.AUTOMATIC", False)
    monkeypatch.setenv("TOPOX_LIBRARY", str(tmp_path / "runs.sqlite"))
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Open a page cold, with query parameters."""
    monkeypatch.chdir(ROOT)

    def opened(page: str = "app.py", **query: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=180)
        for key, value in query.items():
            at.query_params[key] = value
        if page != "app.py":
            at.switch_page(page)
        return at.run()

    return opened


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


def metric(at: AppTest, label: str) -> str:
    """Return the value of a KPI."""
    return next(m.value for m in at.metric if m.label == label).replace("\u00a0", " ")


def chart(at: AppTest, key: str) -> dict:
    """Return the figure of a chart by its key."""
    for element in at.get("plotly_chart"):
        if element.proto.id.endswith(f"-{key}"):
            return json.loads(element.proto.spec)
    raise AssertionError(f"no chart {key} among {[e.proto.id for e in at.get('plotly_chart')]}")


def address(at: AppTest) -> dict[str, str]:
    """Return the query parameters (AppTest keeps those it was given as lists, those the app wrote as text)."""
    return {
        key: value if isinstance(value, str) else value[-1]
        for key, value in dict(at.query_params).items()
    }
