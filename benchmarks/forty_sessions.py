"""Forty visitors on one server: sliders while ten of them prove, nobody turned away, memory over many sessions.

    python -m benchmarks.forty_sessions [--sessions 40] [--proving 10] [--seconds 60] [--visits 400]

Starts a server of its own and talks to it as browsers do, over websockets with Streamlit's own messages, but
draws nothing, so that it is the server which is measured. Every session opens the Schedule page of a sample and
then moves a slider again and again, with a pause in between; the last ``--proving`` press "Prove it" first, with a
time limit, and look at their panel as often as a browser does. A move lasts from its message to the end of the
run of the page. The second part opens and closes sessions and looks at the memory of the server's process.

Prints the median, the 90th percentile and the longest move, what those who prove were told, and the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

ROOT = Path(__file__).resolve().parents[1]
GOAL_S = 0.5
LIMIT_S = 10.0  # of a proof
WARM_S, WARM_MOVE_S = 90.0, 0.6  # kernels are loaded once a move takes so long, or after that time
LOOKS_S = (0.5, 2.0)  # between two looks at a panel: of a run, of a place in the line


def serve(port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command += ["--server.headless", "true", "--server.address", "127.0.0.1"]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **quiet)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
            return process
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the server does not answer")


def memory_mb(process: subprocess.Popen[bytes]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


class Visitor:
    """One session: the controls of its page, and the messages that a browser would send."""

    def __init__(self, port: int, query: str, page: str = "Schedule") -> None:
        self.port, self.query, self.page = port, query, page
        self.fragment, self.look_s = "", 1.0
        self.sliders: dict[str, Any] = {}
        self.buttons: dict[str, Any] = {}
        self.values: dict[str, WidgetState] = {}
        self.bars: list[str] = []
        self.alerts: list[str] = []

    async def open(self) -> float:
        address = f"127.0.0.1:{self.port}/_stcore/stream"
        self.socket = await websockets.connect(
            f"ws://{address}",
            subprotocols=["streamlit"],
            origin=f"http://127.0.0.1:{self.port}",
            max_size=None,
            ping_interval=None,
        )
        return await self.rerun()

    async def close(self) -> None:
        await self.socket.close()

    async def rerun(self, pressed: str = "", fragment: str = "") -> float:
        """Ask for a run of the page and take in what it sends; return how long it took in s."""
        message = BackMsg()
        state = message.rerun_script
        state.query_string, state.page_name = self.query, self.page
        state.fragment_id = fragment
        state.is_auto_rerun = bool(fragment)
        state.widget_states.widgets.extend(self.values.values())
        if pressed:
            state.widget_states.widgets.append(WidgetState(id=pressed, trigger_value=True))
        began = time.monotonic()
        self.bars = []
        await self.socket.send(message.SerializeToString())
        while True:
            told = ForwardMsg()
            told.ParseFromString(await asyncio.wait_for(self.socket.recv(), 300))
            self._take(told)
            if told.WhichOneof("type") == "script_finished":
                if told.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    continue
                return time.monotonic() - began

    def _take(self, told: ForwardMsg) -> None:
        kind = told.WhichOneof("type")
        if kind == "auto_rerun" and told.auto_rerun.interval in LOOKS_S:
            self.fragment, self.look_s = told.auto_rerun.fragment_id, told.auto_rerun.interval
        elif kind == "page_info_changed":
            self.query = told.page_info_changed.query_string
        elif kind == "delta" and told.delta.WhichOneof("type") == "new_element":
            element = told.delta.new_element
            what = element.WhichOneof("type")
            if what == "slider":
                self.sliders[element.slider.label] = element.slider
            elif what == "button":
                self.buttons[element.button.label] = element.button
            elif what == "progress":
                self.bars = [element.progress.text]
            elif what == "alert":
                self.alerts.append(element.alert.body)

    async def move(self, label: str) -> float:
        """Move a slider to another of its stops."""
        slider = self.sliders[label]
        now = self.values.get(slider.id)
        at = now.double_array_value.data[0] if now else slider.default[0]
        stops = [k for k in range(len(slider.options)) if k != at]
        state = WidgetState(id=slider.id)
        state.double_array_value.data.append(float(random.choice(stops)))
        self.values = {slider.id: state}
        return await self.rerun()


class Figures:
    """What was measured."""

    def __init__(self) -> None:
        self.moves_s: list[float] = []
        self.opened_s: list[float] = []
        self.waited: list[str] = []
        self.searched = self.proved = 0
        self.refused: list[str] = []


async def slide(visitor: Visitor, until: float, pause_s: float, into: Figures) -> None:
    await asyncio.sleep(random.uniform(0, pause_s))
    while time.monotonic() < until:
        into.moves_s.append(
            await visitor.move(random.choice(("Port speed", "Reconfiguration delay")))
        )
        await asyncio.sleep(random.uniform(0.5, 1.5) * pause_s)


async def prove(visitor: Visitor, until: float, into: Figures) -> None:
    button = visitor.buttons["Prove it"]
    await visitor.rerun(pressed=button.id)
    waited = searched = False
    while visitor.bars:
        if "in line" in visitor.bars[0] and not waited:
            waited = True
            into.waited.append(visitor.bars[0])
        searched = searched or "gap" in visitor.bars[0]
        if time.monotonic() > until:
            break
        await asyncio.sleep(visitor.look_s)
        await visitor.rerun(fragment=visitor.fragment)
    into.searched += searched
    into.refused += visitor.alerts


async def together(port: int, options: argparse.Namespace) -> Figures:
    """Let everybody in, then slide and prove at once."""
    into = Figures()
    query = f"sample={options.sample}&time_limit_s={LIMIT_S:g}"
    first = Visitor(port, query)
    await first.open()
    until = time.monotonic() + WARM_S
    while await first.move("Port speed") > WARM_MOVE_S and time.monotonic() < until:
        await asyncio.sleep(1)  # the server loads its kernels
    await first.close()
    visitors = [Visitor(port, query) for _ in range(options.sessions)]
    for visitor in visitors:
        into.opened_s.append(await visitor.open())
    until = time.monotonic() + options.seconds
    proving = visitors[: options.proving]
    work = [prove(one, until, into) for one in proving]
    work += [slide(one, until, options.pause, into) for one in visitors[options.proving :]]
    await asyncio.gather(*work)
    for visitor in visitors:
        await visitor.close()
    return into


async def visits(port: int, number: int, process: subprocess.Popen[bytes]) -> list[float]:
    """Open and close sessions, four at a time; return the server's memory after each tenth part of them."""
    memory = []

    async def one() -> None:
        visitor = Visitor(port, "sample=patience")
        await visitor.open()
        await visitor.close()

    for part in range(10):
        for _ in range(max(1, number // 40)):
            await asyncio.gather(*(one() for _ in range(4)))
        await asyncio.sleep(1)
        memory.append(memory_mb(process))
        print(f"  after {(part + 1) * max(1, number // 40) * 4} sessions: {memory[-1]:.0f} MB")
    return memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--proving", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--pause", type=float, default=10.0, help="s between two moves of a session"
    )
    parser.add_argument("--visits", type=int, default=400)
    parser.add_argument("--sample", default="moe")
    options = parser.parse_args()
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    process = serve(port)
    try:
        into = asyncio.run(together(port, options))
        moves = sorted(into.moves_s)
        tenth = moves[int(0.9 * len(moves))]
        print(
            f"{options.sessions} sessions, {options.proving} proving, {len(moves)} moves: median "
            f"{statistics.median(moves):.2f} s (goal {GOAL_S:g}), 90 % below {tenth:.2f} s, longest {moves[-1]:.2f} s"
        )
        print(f"opening a session: median {statistics.median(into.opened_s):.2f} s")
        print(
            f"of {options.proving} who prove {into.searched} have searched so far, {len(into.waited)} saw their place in the line:"
        )
        for text in into.waited:
            print(f"  {text}")
        print(f"told anything else: {sorted(set(into.refused)) or 'nobody'}")
        print(f"memory {memory_mb(process):.0f} MB")
        if options.visits:
            asyncio.run(visits(port, options.visits, process))
    finally:
        os.killpg(process.pid, signal.SIGTERM)


if __name__ == "__main__":
    main()
