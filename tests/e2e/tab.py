"""One browser tab on the workbench, in the words of its reader: headline, KPIs, sliders, charts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Response, expect

from topox_ui.shell.pages import Page as View, page_of

# Nothing here is a claim about speed: a busy machine may take its time, a page that hangs may not
# take for ever.
PATIENCE_MS = 180_000
LAPTOP = {"width": 1366, "height": 768}
MAX_STOPS = 160

# The page is still when the script has ended, nothing is greyed out or in waiting, and every chart
# has been drawn.
STILL = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  if (!app || app.dataset.testConnectionState !== 'CONNECTED' || app.dataset.testScriptState !== 'notRunning') return false;
  if (document.querySelector('[data-testid="stSkeleton"], [data-stale="true"]')) return false;
  // While a chart is replaced, the old and the new one stand side by side for a moment.
  if ([...document.querySelectorAll('.js-plotly-plot')].some((plot, i, all) => {
    const home = plot.closest('[class*="st-key-"]');
    return all.some((other, k) => k > i && home && other.closest('[class*="st-key-"]') === home);
  })) return false;
  return [...document.querySelectorAll('[data-testid="stPlotlyChart"]')].every(chart => chart.querySelector('.main-svg'));
}"""

expect.set_options(timeout=PATIENCE_MS)


class Tab:
    """A tab in a browser window of its own, so that no cookie and no session is shared with another."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.context, self.base = context, base
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("response", self._see)
        self.page.on("pageerror", lambda error: self._complain(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))

    def _hear(self, message: ConsoleMessage) -> None:
        # What could not be loaded is told with its address by the response itself.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self._complain(message.text)

    def _see(self, response: Response) -> None:
        # Opened at a page other than the first, Streamlit asks for its server below that page's
        # address before it finds it.
        if response.status >= 400 and "/_stcore/" not in response.url:
            self._complain(f"{response.status} {response.url}")

    def _complain(self, words: str) -> None:
        self.complaints.append(words[:300])

    @property
    def outside(self) -> list[str]:
        """Return the addresses asked for that are not the workbench's own (nor made within the page)."""
        own = urlsplit(self.base).netloc
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != own
        ]

    def as_new(self) -> Tab:
        """Forget all that the tests before left in this tab: its session, what it stores, its window, what was heard of it."""
        self.rest()
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.context.clear_cookies()
        self.complaints.clear()
        self.requests.clear()
        return self.in_window(LAPTOP["width"], "light")

    def rest(self) -> None:
        """Go where nothing runs, at the same origin: a page that is left open goes on drawing and computing."""
        self.page.goto(self.base + "/_stcore/health")

    def in_window(self, width: int, theme: Literal["light", "dark"] = "light") -> Tab:
        """Give the window a width, and its reader a theme; a page that is opened next begins with both."""
        self.page.set_viewport_size(LAPTOP | {"width": width})
        self.page.emulate_media(color_scheme=theme)
        return self

    def open(self, address: str = "/") -> Tab:
        """Go to an address of the workbench, as if it had been typed in, and wait until the page is still."""
        self.page.goto(self.base + address)
        return self.still()

    def still(self) -> Tab:
        """Wait until the page is still; a traceback on it is a failure wherever it comes up."""
        self.page.wait_for_function(STILL)
        shown = self.page.get_by_test_id("stException").all_inner_texts()
        assert not shown, shown
        return self

    def leave(self) -> None:
        """Close the tab."""
        self.page.close()

    @property
    def headline(self) -> Locator:
        return self.page.locator(".headline")

    @property
    def kicker(self) -> Locator:
        return self.page.locator(".kicker")

    @property
    def job(self) -> Locator:
        """The box of the sidebar that says what is loaded."""
        return self.page.locator(".st-key-job_box")

    @property
    def seal(self) -> Locator:
        """The certificate's verdict: proved optimal, or within how much."""
        return self.page.locator(".seal")

    @property
    def certificate(self) -> Locator:
        return self.page.locator(".st-key-certificate")

    def picture(self, file: Path) -> None:
        """Write what the window shows into a file."""
        file.parent.mkdir(exist_ok=True)
        self.page.screenshot(path=file, timeout=10_000)

    @property
    def message(self) -> Locator:
        """The line that says what went wrong."""
        return self.page.get_by_test_id("stAlert")

    def kpi(self, name: str) -> Locator:
        """Return the value under a KPI's name; one that a page before left behind does not count."""
        label = self.page.get_by_test_id("stMetricLabel").get_by_text(name, exact=True)
        metric = '[data-testid="stMetric"]'
        now = self.page.locator(f'{metric}:not([data-stale="true"] {metric})')
        return now.filter(has=label).get_by_test_id("stMetricValue")

    def control(self, field: str) -> Locator:
        """Return the control of a field of the page's state, such as ``port_gbps`` or ``jobs_ports``."""
        return self.page.locator(f'[class*="st-key-w_"][class*="_{field}-"]')

    def slider(self, field: str) -> Locator:
        """Return the first handle of the slider of a field."""
        return self.control(field).locator("input[type=range]").first

    def push(self, field: str, stroke: str = "ArrowRight") -> None:
        """Move a slider by a key stroke."""
        self.slider(field).press(stroke)

    def button(self, words: str) -> Locator:
        return self.page.get_by_role("button", name=words)

    def reach(self, where: Locator) -> None:
        """Press Tab until something has the focus: by keyboard alone, as far as it takes."""
        for _ in range(MAX_STOPS):
            if where.evaluate("one => one === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {where}")

    def prove(self) -> None:
        """Press the button that starts the exact engine."""
        self.button("Prove it").click()

    def unfold(self, key: str) -> None:
        """Open an expander of the page, and wait until what it holds stands in its place."""
        box = self.page.locator(f".st-key-{key}")
        box.locator("summary").first.click()
        _slid(box)
        self.still()

    def upload(self, key: str, file: Path) -> None:
        """Give a file to one of the two uploaders."""
        self.page.locator(f".st-key-{key} input[type=file]").set_input_files(file)

    def go_to(self, title: str) -> Tab:
        """Follow the link of the row of views to a page, or that of the sidebar to its entry first."""
        page = page_of(title)
        entry = page.views[0]
        if page is entry or not self.view_link(page).count():
            self._follow(self.menu_link(entry.title), entry.title)
        here = self.page.title().startswith(f"{page.title} ·")
        return self if here else self._follow(self.view_link(page), page.title)

    def _follow(self, link: Locator, *titles: str) -> Tab:
        link.click()
        self.page.wait_for_function(
            "names => names.some(name => document.title.startsWith(name))",
            arg=[f"{title} ·" for title in titles],
        )
        return self.still()

    def view_link(self, page: View) -> Locator:
        """Return the link to a page in the row of views."""
        label = re.escape(page.label or page.title)
        return self.page.locator(".st-key-views a", has_text=re.compile(f"^{label}$"))

    def menu_link(self, page_name: str) -> Locator:
        """Return the link of the sidebar to an entry, its group open."""
        menu = self.page.locator(".st-key-menu")
        named = self.page.locator("a", has_text=re.compile(f"^{re.escape(page_name)}$"))
        expect(menu.locator("a").first).to_be_attached()
        group = menu.locator("details:not([open])", has=named)
        if group.count():
            group.locator("summary").click()
            _slid(menu)
        return menu.locator("a", has_text=re.compile(f"^{re.escape(page_name)}$"))

    def chart(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key} .js-plotly-plot").last

    def marks(self, key: str) -> list[Any]:
        """Return what the traces of a chart say of their marks (customdata), as plotly holds it in the browser."""
        says = self.chart(key).evaluate(
            "chart => JSON.stringify(chart.data.map(trace => trace.customdata || []))"
        )
        return [mark for trace in json.loads(says) for mark in trace]

    def settled_text(self, where: Locator) -> str:
        """Return what is written somewhere, once the page is still."""
        self.still()
        return where.inner_text().replace("\xa0", " ")


def saved(page: Page, folder: Path, act: Callable[[], None]) -> Path:
    """Return the file that an action of a page saves."""
    with page.expect_download() as waiting:
        act()
    file = folder / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def _slid(where: Locator) -> None:
    """Wait until nothing slides: a click on what is still moving may hit its neighbour, or nothing."""
    where.evaluate(
        "where => Promise.allSettled(where.getAnimations({subtree: true}).map(one => one.finished))"
    )
