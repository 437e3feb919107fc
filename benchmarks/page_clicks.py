"""Measure in a real browser how long each page takes from a click on its link to its first paint, and until all of it is drawn.

    python -m benchmarks.page_clicks [--sample moe] [--rounds 3]

Each round has a server of its own, whose kernels are loaded, and one session that goes over all pages by the menu and the
rows of views twice: the first time a page computes what it shows, the second time it may know. The clock starts at the
click, in the browser. ``paint`` is the first frame with the headline of the new page, ``drawn`` the last change of what is
shown before the script has ended and every figure stands; what a page goes on to find beside its reader is drawn later.
Prints medians of the rounds, the longest first. Needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict

from playwright.sync_api import sync_playwright

from benchmarks.slider_repaint import FLAGS, chromium, serving, settle
from tests.e2e.tab import STILL, Tab
from topox_ui.shell.pages import PAGES

GOALS_S = (1.0, 2.5)
# Runs in the page: by its own clock, when a link was clicked, when the next headline was shown, and the last change since.
WATCH = """() => {
  const watch = window.watch = {};
  const headline = () => [...document.querySelectorAll('.kicker, .headline')].map(one => one.innerText).join(' ');
  document.addEventListener('click', event => {
    if (!event.target.closest('a')) return;
    Object.assign(watch, {clicked: performance.now(), said: headline(), paint: null, changed: null});
  }, true);
  new MutationObserver(() => {
    const now = performance.now();
    watch.changed = now;
    if (watch.paint === null && headline() && headline() !== watch.said) {
      watch.paint = now;
      requestAnimationFrame(() => { watch.paint = performance.now(); });
    }
  }).observe(document.body, {childList: true, subtree: true, attributes: true, characterData: true});
}"""
TIMES = "() => [watch.paint - watch.clicked, watch.changed - watch.clicked].map(ms => ms / 1000)"


def one_round(tab: Tab, sample: str) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the seconds of each page and visit in one session."""
    tab.open(f"/?sample={sample}").page.evaluate(WATCH)
    times = {}
    for visit in (1, 2):
        for page in PAGES:
            if page.listed and page.title != "Home":
                tab.go_to(page.title)
                tab.page.wait_for_function(STILL)
                times[page.title, visit] = tuple(tab.page.evaluate(TIMES))
    return times


def main() -> int:
    """Walk over all pages in each round, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", default="moe")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    seconds: defaultdict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for _ in range(options.rounds):
            with serving() as (base, server):
                tab = Tab(browser.new_context(viewport={"width": 1366, "height": 768}), base)
                tab.open()
                settle(server)
                for key, one in one_round(tab, options.sample).items():
                    seconds[key].append(one)
                tab.context.close()
        browser.close()
    medians = {
        key: tuple(statistics.median(one) for one in zip(*rounds, strict=True))
        for key, rounds in seconds.items()
    }
    for visit in (1, 2):
        rows = {title: one for (title, which), one in medians.items() if which == visit}
        print(f"{'visit ' + str(visit):26} {'paint s':>8} {'drawn s':>8}")
        for title, (paint_s, drawn_s) in sorted(rows.items(), key=lambda row: -row[1][1]):
            print(f"{title:26} {paint_s:8.2f} {drawn_s:8.2f}")
        over_all = [statistics.median(one) for one in zip(*rows.values(), strict=True)]
        said = [
            f"{one:.2f} s ({'met' if one <= goal else 'MISSED'}: {goal:g})"
            for one, goal in zip(over_all, GOALS_S, strict=True)
        ]
        print(f"median of all pages: paint {said[0]}, drawn {said[1]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
