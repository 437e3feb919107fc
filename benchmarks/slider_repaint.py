"""Measure in a real browser how long the Schedule page takes from a slider's key stroke to the last repaint.

    python -m benchmarks.slider_repaint [--samples moe,llama3-70b] [--rounds 3] [--moves]

The clock starts at the key stroke in the browser. It stops when the KPIs show values of the new
setting, the Gantt chart holds a figure of it, the last change inside that figure's drawing has been
made, and the browser has put a frame on the screen after that. What is drawn of the old setting, or
in a first layout, does not stop it. What all choices of collectives make of the first plan is drawn
later, and measured beside it ("settled"). Each round has a server of its own, whose kernels are
loaded before the first stroke, and no setting is visited twice in a round, so nothing comes from a
cache.

Prints, for each sample, the median, the shortest and the longest move over all rounds, the best
median of a round, the median until the page is settled, and the goal. With ``--moves`` also every
move. Needs playwright and Chromium (the environment's ``CHROMIUM``, or one that is installed).
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
GOALS_S = {"moe": 0.35, "llama3-70b": 0.45}
# Where each walk begins, the slider, and its strokes. The delays avoid those that the delay curve
# computes ahead; in llama3-70b no circuit ever changes, so that its second slider is another.
SPEEDS = (
    "reconfiguration_ms=0.5&port_gbps=50",
    "port_gbps",
    ("ArrowRight", "ArrowRight", "ArrowRight"),
)
WALKS = {
    "moe": (
        SPEEDS,
        ("reconfiguration_ms=25&port_gbps=800", "reconfiguration_ms", ("ArrowRight",)),
        ("reconfiguration_ms=100&port_gbps=25", "reconfiguration_ms", ("ArrowLeft",)),
        ("reconfiguration_ms=0&port_gbps=40", "reconfiguration_ms", ("ArrowRight",)),
    ),
    "llama3-70b": (
        SPEEDS,
        ("port_gbps=100", "ports_per_server", ("ArrowRight", "ArrowRight")),
        ("port_gbps=25", "ports_per_server", ("ArrowRight",)),
    ),
}

# Runs in the page: notes when KPIs and Gantt chart change, by the browser's own clock, each time
# once a frame has been shown.
WATCH = """() => {
  const kpis = () => [...document.querySelectorAll('[data-testid="stMetricValue"]')].map(e => e.textContent).join(' | ');
  const gantt = () => document.querySelector('.st-key-gantt .js-plotly-plot');
  const watch = window.watch = {
    begin() { this.began = null; this.kpis = []; this.paints = []; this.touched = performance.now();
              this.figure = gantt().data; this.said = kpis(); },
    state() { return document.querySelector('[data-testid="stApp"]').dataset.testScriptState; },
    quiet(ms) { return this.state() === 'notRunning' && performance.now() - this.touched > ms; },
    over() {
      const last = this.paints.at(-1);
      return !!last && last.shown !== null && last.figure !== this.figure && this.quiet(1200) || this.quiet(10000);
    },
    result() {
      if (!this.paints.length) return {changed: false};
      const same = f => JSON.stringify(f.map(t => [t.name, t.x, t.base, t.y]));
      const before = same(this.figure), drawn = this.paints.map(p => same(p.figure));
      const first = drawn.find(d => d !== before);
      if (first === undefined) return {changed: false};
      const ofFirst = this.paints.filter((p, k) => drawn[k] === first);
      return {
        changed: true, kpis: this.kpis.length ? this.kpis[0].shown - this.began : 0,
        drawn: ofFirst.at(-1).shown - this.began, settled: this.paints.at(-1).shown - this.began, layouts: ofFirst.length,
        bars: ofFirst.at(-1).figure.reduce((n, t) => n + (t.type === 'bar' && t.customdata ? t.customdata.length : 0), 0),
      };
    },
  };
  const shownIn = note => requestAnimationFrame(() => { const c = new MessageChannel();
    c.port1.onmessage = () => { note.shown = performance.now(); }; c.port2.postMessage(0); });
  document.addEventListener('keydown', () => { watch.began ??= performance.now(); }, true);
  new MutationObserver(changes => {
    const now = performance.now();
    if (kpis() !== watch.said) {
      watch.said = kpis(); watch.touched = now;
      const note = {at: now, shown: null}; watch.kpis.push(note); shownIn(note);
    }
    const drawing = gantt();
    if (drawing && changes.some(c => drawing.contains(c.target))) {
      watch.touched = now;
      const note = {at: now, shown: null, figure: drawing.data}; watch.paints.push(note); shownIn(note);
    }
  }).observe(document.body, {childList: true, subtree: true, attributes: true, characterData: true});
}"""
LOADED = """() => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === 'notRunning'
  && !document.querySelector('[data-stale="true"], [data-testid="stSkeleton"]')
  && !!document.querySelector('.st-key-gantt .main-svg') && !!document.querySelector('[data-testid="stMetricValue"]')"""


@dataclass(frozen=True)
class Move:
    """One measured move: seconds to the first KPIs and Gantt chart of the new setting, and to the last ones."""

    slider: str
    value: str
    kpis_s: float
    drawn_s: float
    settled_s: float
    layouts: int
    bars: int

    @property
    def whole_s(self) -> float:
        return max(self.kpis_s, self.drawn_s)


def chromium() -> str | None:
    names = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
    places = (os.environ.get("CHROMIUM"), *names)
    return next((path for place in places if place and (path := shutil.which(place))), None)


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """Serve the workbench with empty caches on a free port; give its address and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"],
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
        try:
            for _ in range(600):
                with suppress(OSError), urllib.request.urlopen(base + "/_stcore/health", timeout=5):
                    break
                time.sleep(0.1)
            yield base, process.pid
        finally:
            process.terminate()
            process.wait()


def settle(server: int) -> None:
    """Wait until a server that has just started has loaded its kernels in the background."""
    before, until = -1.0, time.monotonic() + 180
    while time.monotonic() < until and (now := _worked_s(server)) - before > 0.1:
        before = now
        time.sleep(1)


def _worked_s(process: int) -> float:
    """Return the processor time of a process in seconds; 0 where the system does not say."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def measured(page: Page, slider: str, stroke: str) -> Move:
    """Make one move and wait until the page has long been quiet; raise if the picture did not change."""
    control = page.locator(f'[class*="st-key-w_"][class*="_{slider}-"]')
    handle = control.locator("input[type=range]").first
    handle.focus()
    page.evaluate("() => watch.begin()")
    handle.press(stroke)
    page.wait_for_function("() => watch.over()", timeout=120_000, polling=100)
    measured = page.evaluate("() => watch.result()")
    value = handle.get_attribute("aria-valuetext") or ""
    if not measured["changed"]:
        raise RuntimeError(
            f"{slider} at {value} draws the same Gantt chart as before: nothing to measure"
        )
    seconds = (measured[name] / 1000 for name in ("kpis", "drawn", "settled"))
    return Move(slider, value, *seconds, measured["layouts"], measured["bars"])


def one_round(browser: Browser, sample: str) -> list[Move]:
    """Walk every walk on a fresh server."""
    moves = []
    with serving() as (base, server):
        for start, slider, strokes in WALKS[sample]:
            context = browser.new_context(viewport={"width": 1366, "height": 768})
            page = context.new_page()
            page.goto(f"{base}/Schedule?sample={sample}&switching=planned&{start}")
            page.wait_for_function(LOADED, timeout=120_000)
            page.evaluate(WATCH)
            page.evaluate("() => watch.begin()")
            page.wait_for_function("() => watch.quiet(1500)", timeout=120_000, polling=100)
            settle(server)
            moves += [measured(page, slider, stroke) for stroke in strokes]
            context.close()
    return moves


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", default=",".join(WALKS), help=f"which of {', '.join(WALKS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--moves", action="store_true", help="also print every move")
    options = parser.parse_args()
    path = chromium()
    if path is None:
        print("not measured: there is no Chromium here (name one in CHROMIUM)")
        return 0
    print(
        f"{'sample':12} {'moves':>5} {'median s':>9} {'min s':>6} {'max s':>6} {'best round s':>13} {'settled s':>10} "
        f"{'KPIs s':>7} {'goal s':>7}"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for sample in options.samples.split(","):
            rounds = [one_round(browser, sample) for _ in range(options.rounds)]
            if options.moves:
                for i, moves in enumerate(rounds):
                    for m in moves:
                        print(
                            f"  round {i + 1} {m.slider:18} -> {m.value:8} KPIs {m.kpis_s:6.3f}  drawn {m.drawn_s:6.3f}  settled "
                            f"{m.settled_s:6.3f}  {m.layouts} drawings, {m.bars} bars"
                        )
            every = [m for moves in rounds for m in moves]
            whole = [m.whole_s for m in every]
            best = min(statistics.median(m.whole_s for m in moves) for moves in rounds)
            settled = statistics.median(max(m.settled_s, m.kpis_s) for m in every)
            goal = GOALS_S[sample]
            verdict = f"{goal:7.2f} {'met' if statistics.median(whole) < goal else 'MISSED'}"
            print(
                f"{sample:12} {len(every):5} {statistics.median(whole):9.2f} {min(whole):6.2f} {max(whole):6.2f} {best:13.2f} "
                f"{settled:10.2f} {statistics.median(m.kpis_s for m in every):7.2f} {verdict}",
                flush=True,
            )
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
