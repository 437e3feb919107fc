"""The files of a recorded run on the page: the way in, ranks as numbered cells, how to record a good one."""

from __future__ import annotations

import streamlit as st

from topox_core.io.limits import MB, RECORDING_IN_BROWSER
from topox_core.text.numbers import plural
from topox_core.traces.recorded_run import spans
from topox_ui.recorded.reading import (
    READING,
    Opened,
    forget,
    most_bytes,
    open_example,
    opened,
    take_files,
)
from topox_ui.recorded.state import RecordedState
from topox_ui.runs.panel import watched
from topox_ui.shell.charts import show_error
from topox_ui.shell.page import button, chart_title, headline, quiet, write_html
from topox_ui.state.session import Passing

KICKER = "Your trace"
# More ranks than these are told in words alone.
MAX_CELLS = 64
# What was taken out of the box already: it hands over all its files at every change.
_TAKEN = Passing[set[str]]("recorded_taken")
# docs/recorded-runs.md has the same lines.
SCRIPT = """\
import os, torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch._C._profiler import _ExperimentalConfig

rank = int(os.environ["RANK"])
exact = _ExperimentalConfig(
    enable_cuda_sync_events=True
)  # which stream waits for which: exact, not found
with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    record_shapes=True,
    experimental_config=exact,
    schedule=schedule(wait=5, warmup=2, active=3, repeat=1),
    on_trace_ready=lambda p: p.export_chrome_trace(f"run_rank{rank}.json.gz"),
) as profiler:
    for step, batch in zip(range(10), loader):
        train(batch)
        profiler.step()
"""


def nothing_yet() -> None:
    """Draw the page before there is a run: what to record, how, and the way in."""
    headline(
        f"{KICKER} · from PyTorch's profiler",
        "Bring a recording of <b>your own job</b>: see what its network costs, and what a faster one would save.",
    )
    write_html(
        '<ul class="claim"><li>Record three steps after a warm-up, on all ranks, with shapes.</li>'
        "<li>The profiler writes one file per rank: bring all of them, .json or .json.gz.</li>"
        "<li>From one rank alone, waiting for other ranks cannot be separated from network time.</li></ul>"
    )
    _box(opened())
    watched(READING, "Reading")
    button(
        "Open a made-up run",
        "recorded_example",
        "play_arrow",
        _example,
        help="Four ranks, pipeline and data parallel, recorded at 100 Gbit/s. Its true times are known.",
    )
    chart_title("How to record", "paste these lines around the training loop")
    st.code(SCRIPT, language=None)
    quiet(
        "Do not sample or filter events, and do not record Python stacks. docs/recorded-runs.md says what is read and "
        "how far to trust it."
    )


def files_of_run(now: Opened) -> None:
    """Draw the ranks that were read, and the box for more files."""
    _cells(now)
    with st.expander("Files", key="recorded_files", expanded=bool(now.lines)):
        _box(now)
        button("Read another run", "recorded_forget", "restart_alt", _forget)


def _example() -> None:
    open_example()
    RecordedState.choose(example=True)


def _forget() -> None:
    forget()
    RecordedState.choose(example=False)


def _box(now: Opened) -> None:
    st.file_uploader(
        "Files of PyTorch's profiler, one per rank",
        key="up_recording",
        type=["json", "gz"],
        accept_multiple_files=True,
        on_change=_uploaded,
    )
    for line in now.lines:
        show_error(line)
    quiet(
        f"Limits: {RECORDING_IN_BROWSER.file_bytes // MB:,} MB per file after unpacking, {most_bytes() / MB:,.0f} MB "
        "uploaded in all. For more, use topox trace import. Files stay in the "
        "memory of this server, for this tab alone."
    )


def _uploaded() -> None:
    files = st.session_state["up_recording"]
    taken = _TAKEN.get_or(set)
    new = [one for one in files if one.file_id not in taken]
    _TAKEN.set({one.file_id for one in files})
    if new:
        take_files([(one.name, one.getvalue()) for one in new])
        RecordedState.choose(example=False, step=None)


def _cells(now: Opened) -> None:
    """Draw the ranks as a row of numbered cells: read, absent, twice."""
    read = now.of_rank()
    world = max([1 + max(read), *(one.world for one in now.recordings)])
    absent = sorted(set(range(world)) - set(read))
    words = f"{plural(len(read), 'rank')} read of {world:,}"
    if absent:
        words += f"; absent: {spans(absent)}"
    if now.twice:
        words += f"; twice: {spans(sorted(now.twice))}"
    if world > MAX_CELLS:
        quiet(f"{words}.")
        return
    cells = []
    for rank in range(world):
        state = "twice" if rank in now.twice else "read" if rank in read else "absent"
        mark = {"twice": "2x", "read": "✓", "absent": "–"}[state]
        cells.append(f'<li class="{state}" title="rank {rank}: {state}"><b>{rank}</b> {mark}</li>')
    st.html(
        "<style>.ranks { display: flex; flex-wrap: wrap; gap: .25rem; list-style: none; margin: 0 !important; "
        "padding: 0 !important; font-size: .78rem; } .ranks li { margin: 0 !important; padding: .1rem .45rem; "
        "border: 1px solid currentColor; border-radius: 4px; } .ranks .absent { border-style: dashed; } "
        ".ranks .twice { border-width: 2px; }</style>"
        f'<ul class="ranks" aria-label="{words}">{"".join(cells)}</ul>'
    )
    quiet(f"{words}. ✓ read, – absent, 2x more than one file: the first was taken.")
