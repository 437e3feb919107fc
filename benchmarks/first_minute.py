"""Measure the first minute in a real browser: from nothing to a sample's chart, by each of the ways to start.

    python -m benchmarks.first_minute [--runs 3] [--ways make,hosted,upload,wheel,second]

Each run has a fresh clone, a home of its own and no machine code; ``make`` and ``wheel`` also a fresh environment, whose
packages come from the network. ``server`` is from the command until the server answers, ``page`` from there until Home
stands in the browser, ``chart`` from the click on a sample until its Gantt chart stands (``upload``: from the file's
arrival), ``kernels`` from there until the page no longer says that kernels are prepared. Prints medians, then how long
``import topox_core`` and the command's ``--help`` take. Needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.slider_repaint import FLAGS, ROOT, chromium

SAMPLE, GRAPH, CLUSTER = "llama3-8b", "llama3-8b.taskgraph.json", "llama3-8b.cluster.json"
WAYS = ("make", "hosted", "upload", "wheel", "second")
PATIENCE_MS = 600_000


@contextmanager
def machine() -> Iterator[tuple[Path, dict[str, str]]]:
    """Give a clone, and the environment of somebody who has nothing yet."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        clone = home / "clone"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
        yield clone, kept | {"HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@contextmanager
def served(
    command: list[str], folder: Path, environment: dict[str, str], port: int
) -> Iterator[float]:
    """Start a server, and give the seconds until it answers."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        health = f"http://127.0.0.1:{port}/_stcore/health"
        while subprocess.run(["curl", "-fs", health], capture_output=True, check=False).returncode:
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
            time.sleep(0.1)
        yield time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def home(page: Page, base: str) -> float:
    """Return the seconds until Home stands."""
    began = time.perf_counter()
    page.goto(base)
    page.locator(f'a[href*="sample={SAMPLE}"]').first.wait_for(timeout=PATIENCE_MS)
    return time.perf_counter() - began


def sample(page: Page) -> float:
    """Click a sample on Home, and return the seconds until its chart."""
    began = time.perf_counter()
    page.locator(f'a[href*="sample={SAMPLE}"]').first.click()
    return _chart(page, began)


def upload(page: Page, folder: Path) -> float:
    """Bring a graph that no answer is shipped for, and return the seconds from its arrival to its chart."""
    graph = json.loads((ROOT / "sample_data" / GRAPH).read_text(encoding="utf-8"))
    for task in graph["tasks"]:
        if task.get("duration_ms"):
            task["duration_ms"] *= 1.25
    file = folder / "mine.taskgraph.json"
    file.write_text(json.dumps(graph), encoding="utf-8")
    page.get_by_text("Your own files", exact=True).click()
    page.locator('.st-key-up_cluster input[type="file"]').set_input_files(
        ROOT / "sample_data" / CLUSTER
    )
    page.wait_for_timeout(1_000)
    began = time.perf_counter()
    page.locator('.st-key-up_graph input[type="file"]').set_input_files(file)
    page.get_by_role("link", name="Schedule").first.click()
    return _chart(page, began)


def _chart(page: Page, began: float) -> float:
    page.locator(".st-key-gantt .js-plotly-plot").first.wait_for(timeout=PATIENCE_MS)
    return time.perf_counter() - began


def compiled(page: Page) -> float:
    """Return the seconds until the page no longer says that kernels are prepared."""
    began = time.perf_counter()
    page.get_by_text("Preparing fast kernels").first.wait_for(state="hidden", timeout=PATIENCE_MS)
    return time.perf_counter() - began


def measure(way: str, browser: Browser) -> tuple[float, float, float, float]:
    """Return the seconds of one start: until the server answers, to Home, to the chart, until all is compiled."""
    with machine() as (clone, environment):
        port = free_port()
        command, folder = _command(way, clone, environment, port)
        base = f"http://127.0.0.1:{port}"
        for _ in range(2 if way == "second" else 1):
            with served(command, folder, environment, port) as server_s:
                page = browser.new_page()
                page_s = home(page, base)
                chart_s = upload(page, clone) if way == "upload" else sample(page)
                kernels_s = compiled(page)
                page.close()
    return server_s, page_s, chart_s, kernels_s


def _command(
    way: str, clone: Path, environment: dict[str, str], port: int
) -> tuple[list[str], Path]:
    """Return what is typed, and where; what is installed for it before counts only for ``make``."""
    if way == "make":
        return ["make", "run", f"PORT={port}"], clone
    if way == "wheel":
        python = clone.parent / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        install = [python, "-m", "pip", "install", "-q", clone]
        subprocess.run(install, check=True, env=environment)
        for built in (clone / "topox_core", clone / "topox_ui"):
            shutil.rmtree(built)
        return [
            *(str(python.with_name("topox")), "dashboard"),
            *("--no-browser", "--port", str(port)),
        ], clone.parent
    run = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    return run, clone


def main() -> None:
    """Measure every way and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    print(f"{'way':8} {'server s':>9} {'page s':>9} {'chart s':>9} {'kernels s':>10}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for way in options.ways.split(","):
            seconds = [measure(way, browser) for _ in range(options.runs)]
            medians = [statistics.median(one) for one in zip(*seconds, strict=True)]
            print(f"{way:8} {' '.join(f'{one:9.1f}' for one in medians)}", flush=True)
        browser.close()
    for words in (["-c", "import topox_core"], ["-m", "topox_core", "--help"]):
        times = []
        for _ in range(options.runs):
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, *words], check=True, stdout=subprocess.DEVNULL, cwd=ROOT
            )
            times.append(time.perf_counter() - began)
        print(f"python {' '.join(words)}: {statistics.median(times):.2f} s")


if __name__ == "__main__":
    main()
