"""Forty visitors on one server: sliders while ten of them prove, nobody turned away, memory over many sessions.

    python -m benchmarks.forty_sessions [--sessions 40] [--proving 10] [--seconds 60] [--visits 400]

Starts a server of its own and talks to it as browsers do, over websockets with Streamlit's own messages, and with
every timer that a page sets, but draws nothing, so that it is the server which is measured. Every session opens the
Schedule page of a sample; then ``--proving`` of them press "Prove it", and again when a proof has ended, and the
others move a slider again and again, with a pause in between. A move lasts from its message to the headline of a
run that has the new value in its address, and to the end of that run; a run is known by its number, so that what was
still under way when the slider moved is no answer. The second part opens and closes sessions and looks at the
memory of the server's process.

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
import urllib.parse
import urllib.request
from collections import defaultdict
from contextlib import suppress
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
PATIENCE_S = 120.0
LATE_S = 10.0  # moves that are still under way at the end have this long
IDLE_S = 3.0  # after the end of a proof, before the next one
# What a slider is called, and the field of the address that it changes.
SLIDERS = {"Port speed": "port_gbps", "Reconfiguration delay": "reconfiguration_ms"}


def serve(port: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TOPOX_PORT": str(port)}
    command = [sys.executable, "-m", "topox_ui.serve"]
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **quiet)
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


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Return the CPU seconds of the server's own process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def number(words: str) -> float:
    """Return the number of a slider's stop or of an address: 5 ms, 100G, 5."""
    return float(words.removesuffix(" ms").removesuffix("G"))


class Run:
    """What one run of the page has sent so far."""

    def __init__(self) -> None:
        self.query: dict[str, str] = {}
        self.headline_s = 0.0
        self.headline = ""


class Visitor:
    """One session: the controls of its page, its timers, and the messages that a browser would send."""

    def __init__(self, port: int, query: str, page: str = "Schedule") -> None:
        self.port, self.query, self.page, self.page_hash = port, query, page, ""
        self.sliders: dict[str, Any] = {}
        self.of_file: dict[str, str] = {}  # which stop needs no word in the address
        self.buttons: dict[str, Any] = {}
        self.values: dict[str, WidgetState] = {}
        self.bar = ""
        self.alerts: list[str] = []
        self.errors: list[str] = []
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._run, self._number, self._fresh = Run(), "", False
        self.waits = False
        self._ended: asyncio.Queue[tuple[Run, float, bool]] = asyncio.Queue()

    async def open(self) -> float:
        """Connect and wait for the page; return how long it took in s."""
        began = time.monotonic()
        await self.connect()
        while True:
            _, at_s, _ = await self.next_run()
            if self.sliders:
                for label, one in self.sliders.items():
                    if one.options:
                        self.of_file[label] = one.options[int(one.default[0])]
                return at_s - began

    async def connect(self, address: str = "127.0.0.1") -> None:
        """Connect, and ask for the page."""
        self.socket = await websockets.connect(
            f"ws://{address}:{self.port}/_stcore/stream",
            subprotocols=["streamlit"],
            origin=f"http://{address}:{self.port}",
            max_size=None,
            ping_interval=None,
        )
        self._listener = asyncio.create_task(self._listen())
        await self._rerun()

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._listener.cancel()
        await self.socket.close()

    async def next_run(self) -> tuple[Run, float, bool]:
        """Wait for the end of a run of the whole page; return it, when it ended, and whether it began after the last message."""
        return await asyncio.wait_for(self._ended.get(), PATIENCE_S)

    async def _rerun(self, pressed: str = "", fragment: str = "") -> None:
        message = BackMsg()
        state = message.rerun_script
        state.query_string = self.query
        if self.page_hash:
            state.page_script_hash = self.page_hash
        else:  # known by its name until the server has told
            state.page_name = self.page
        state.fragment_id = fragment
        state.is_auto_rerun = bool(fragment)
        state.widget_states.widgets.extend(self.values.values())
        if pressed:
            state.widget_states.widgets.append(WidgetState(id=pressed, trigger_value=True))
        if not fragment:
            self._fresh = False
        await self.socket.send(message.SerializeToString())

    async def _every(self, seconds: float, fragment: str) -> None:
        """Ask for a fragment at every tick, as the browser's timer does."""
        while True:
            await asyncio.sleep(seconds)
            await self._rerun(fragment=fragment)

    async def _listen(self) -> None:
        with suppress(websockets.ConnectionClosed):
            async for data in self.socket:
                told = ForwardMsg()
                told.ParseFromString(data)
                self._take(told)

    def _take(self, told: ForwardMsg) -> None:
        kind = told.WhichOneof("type")
        if kind == "new_session":
            self._begin(told)
        elif kind == "script_finished" and not told.metadata.run.fragment_ids:
            if told.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                mine = told.metadata.run.script_run_id == self._number
                self._ended.put_nowait((self._run, time.monotonic(), mine and self._fresh))
        elif kind == "auto_rerun":
            ours = told.auto_rerun
            self._stop([ours.fragment_id])
            self._timers[ours.fragment_id] = asyncio.create_task(
                self._every(ours.interval, ours.fragment_id)
            )
        elif kind == "stop_auto_rerun":
            self._stop(told.stop_auto_rerun.fragment_ids)
        elif kind == "navigation":
            self.page_hash = told.navigation.page_script_hash
        elif kind == "page_info_changed":
            self.query = told.page_info_changed.query_string
        elif kind == "delta" and told.delta.WhichOneof("type") == "new_element":
            self._take_element(told.delta.new_element)

    def _begin(self, told: ForwardMsg) -> None:
        """A run begins: one of the whole page ends all timers."""
        if not told.metadata.run.fragment_ids:
            self._number, self._fresh = told.metadata.run.script_run_id, True
            self._run, self.bar = Run(), ""
            self._stop(list(self._timers))

    def _stop(self, fragments: Any) -> None:
        for fragment in fragments:
            timer = self._timers.pop(fragment, None)
            if timer is not None:
                timer.cancel()

    def _take_element(self, element: Any) -> None:
        what = element.WhichOneof("type")
        if what == "slider":
            self.sliders[element.slider.label] = element.slider
        elif what == "button":
            self.buttons[element.button.label] = element.button
        elif what == "progress":
            self.bar = element.progress.text
        elif what == "alert":
            self.alerts.append(element.alert.body)
        elif what == "exception":
            self.errors.append(element.exception.message)
        elif what == "html" and 'class="headline"' in element.html.body:
            self._run.headline, self._run.headline_s = element.html.body, time.monotonic()
            self._run.query = dict(urllib.parse.parse_qsl(self.query))

    async def move(self, label: str) -> tuple[float, float]:
        """Move a slider to another of its stops; return when the new headline came and when the page was done, in s."""
        slider = self.sliders[label]
        now = self.values.get(slider.id)
        at = now.string_array_value.data[0] if now else slider.options[int(slider.default[0])]
        stop = random.choice([one for one in slider.options if one != at])
        state = WidgetState(id=slider.id)
        state.string_array_value.data.append(stop)
        self.values[slider.id] = state
        while not self._ended.empty():
            self._ended.get_nowait()
        began, self.waits = time.monotonic(), True
        await self._rerun()
        while True:
            run, at_s, fresh = await self.next_run()
            if self.errors:
                raise SystemExit(f"the page ended in an error: {self.errors[0]}")
            value = run.query.get(SLIDERS[label], self.of_file[label])
            if fresh and run.headline and number(value) == number(stop):
                self.waits = False
                return run.headline_s - began, at_s - began

    async def press(self, label: str) -> None:
        await self._rerun(pressed=self.buttons[label].id)


class Figures:
    """What was measured."""

    def __init__(self) -> None:
        self.headlines_s: defaultdict[float, list[float]] = defaultdict(list)
        self.moves_s: defaultdict[float, list[float]] = defaultdict(list)
        self.opened_s: list[float] = []
        self.waited: list[str] = []
        self.searched = self.pressed = 0
        self.told: list[str] = []


async def slide(visitor: Visitor, until: float, pause_s: float, into: Figures) -> None:
    await asyncio.sleep(random.uniform(0, pause_s))
    while time.monotonic() < until:
        headline_s, move_s = await visitor.move(random.choice(list(SLIDERS)))
        into.headlines_s[pause_s].append(headline_s)
        into.moves_s[pause_s].append(move_s)
        await asyncio.sleep(random.uniform(0.5, 1.5) * pause_s)


async def prove(visitor: Visitor, until: float, into: Figures) -> None:
    """Press "Prove it", look at the panel until the end, and press again."""
    while time.monotonic() < until:
        await visitor.press("Prove it")
        into.pressed += 1
        waited = searched = False
        pressed_s, seen_s = time.monotonic(), 0.0
        while time.monotonic() < min(
            until, (seen_s + IDLE_S) if seen_s else pressed_s + PATIENCE_S
        ):
            await asyncio.sleep(0.1)
            seen_s = time.monotonic() if visitor.bar else seen_s
            if "in line" in visitor.bar and not waited:
                waited = True
                into.waited.append(visitor.bar)
            searched = searched or "gap" in visitor.bar
        into.searched += searched
        if "Prove it" not in visitor.buttons:
            return


async def together(port: int, options: argparse.Namespace) -> Figures:
    """Let everybody in, then slide and prove at once."""
    into = Figures()
    samples = options.samples.split(",")
    queries = [f"sample={one}&time_limit_s={LIMIT_S:g}" for one in samples]
    for query in queries:
        first = Visitor(port, query)
        await first.open()
        until = time.monotonic() + WARM_S
        while (await first.move("Port speed"))[1] > WARM_MOVE_S and time.monotonic() < until:
            await asyncio.sleep(1)  # the server loads its kernels
        await first.close()
    visitors = [Visitor(port, queries[k % len(queries)]) for k in range(options.sessions)]
    for visitor in visitors:
        into.opened_s.append(await visitor.open())
    print(f"opened {len(visitors)} sessions one by one: {spread(into.opened_s)}", flush=True)
    proving, sliding = visitors[: options.proving], visitors[options.proving :]
    until = time.monotonic() + options.seconds * len(options.pause)
    proofs = [asyncio.create_task(prove(one, until, into)) for one in proving]
    for pause in options.pause:
        until = time.monotonic() + options.seconds
        work = [asyncio.create_task(slide(one, until, pause, into)) for one in sliding]
        done, left = await asyncio.wait(work, timeout=options.seconds + LATE_S)
        late = sum(one.waits for one in sliding)
        for one in left:
            one.cancel()
        for one in done:
            one.result()
        print(
            f"{options.sessions} sessions, {options.proving} proving, a move of each other one every {pause:g} s: "
            f"{len(into.moves_s[pause])} moves (goal {GOAL_S:g} s), {late} not answered at the end\n"
            f"  to the headline: {spread(into.headlines_s[pause])}\n"
            f"  to the end of the page: {spread(into.moves_s[pause])}",
            flush=True,
        )
    for proof in proofs:
        proof.cancel()
    into.told = sorted({text for one in visitors for text in (*one.alerts, *one.errors)})
    with suppress(TimeoutError):  # a busy server is no reason to wait
        await asyncio.wait_for(asyncio.gather(*(one.close() for one in visitors)), LATE_S)
    return into


async def visits(port: int, number: int, process: subprocess.Popen[bytes]) -> None:
    """Open and close sessions, four at a time; print the server's memory after each tenth part of them."""

    async def one() -> None:
        visitor = Visitor(port, "sample=patience")
        await visitor.open()
        await visitor.close()

    print(f"  before: {memory_mb(process):.0f} MB")
    for part in range(10):
        for _ in range(max(1, number // 40)):
            await asyncio.gather(*(one() for _ in range(4)))
        await asyncio.sleep(1)
        opened = (part + 1) * max(1, number // 40) * 4
        print(f"  after {opened} sessions: {memory_mb(process):.0f} MB", flush=True)


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    if not ordered:
        return "none"
    return (
        f"median {statistics.median(ordered):.2f} s, 90 % below {ordered[int(0.9 * len(ordered))]:.2f} s, "
        f"longest {ordered[-1]:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--proving", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--pause", type=float, nargs="+", default=[10.0], help="s between two moves of a session"
    )
    parser.add_argument("--visits", type=int, default=400)
    parser.add_argument("--samples", default="moe", help="one or more, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    process = serve(port)
    try:
        if options.sessions:
            began, cpu = time.monotonic(), cpu_s(process)
            into = asyncio.run(together(port, options))
            print(
                f"{into.pressed} proofs asked for, {into.searched} have searched so far, "
                f"{len(into.waited)} saw their place in the line:"
            )
            for text in sorted(set(into.waited)):
                print(f"  {text}")
            print(f"told anything else: {into.told or 'nobody'}")
            print(
                f"memory {memory_mb(process):.0f} MB; the server's process took "
                f"{cpu_s(process) - cpu:.0f} CPU s in {time.monotonic() - began:.0f} s",
                flush=True,
            )
        if options.visits:
            asyncio.run(visits(port, options.visits, process))
    finally:
        os.killpg(process.pid, signal.SIGTERM)


if __name__ == "__main__":
    main()
