"""The first minute where nothing is compiled, as hosted Streamlit starts the app: a sample's chart, and what is coming."""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import ROOT, free_port, serving
from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser

SHIPPED = (
    "app.py",
    "requirements.txt",
    ".streamlit",
    "pages",
    "sample_data",
    "topox_core",
    "topox_ui",
)
SOON_MS = 60_000


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what is deployed, without machine code."""
    for name in SHIPPED:
        source, target = ROOT / name, tmp_path / "checkout" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    return tmp_path / "checkout"


def test_a_sample_is_there_before_anything_is_compiled(
    chromium: Browser, checkout: Path, tmp_path: Path
) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with serving(free_port(), tmp_path / "server.log", cwd=checkout, **home) as server:
        tab = Tab(chromium.new_context(), server.base)
        tab.page.goto(server.base)
        tab.page.get_by_role("link", name=re.compile("Llama 3 8B")).first.click()
        expect(tab.page).to_have_title(re.compile("Schedule"), timeout=SOON_MS)
        expect(tab.chart("gantt")).to_be_visible(timeout=SOON_MS)
        expect(tab.headline).to_contain_text("557")
        coming = tab.page.get_by_text("Preparing fast kernels").first
        expect(coming).to_be_visible()
        tab.menu_link("Compare").click()
        expect(tab.page.get_by_text("kernels are being compiled").first).to_be_visible(
            timeout=SOON_MS
        )
        assert tab.complaints == [] and tab.outside == []
        tab.context.close()
