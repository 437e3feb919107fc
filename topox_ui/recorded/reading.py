"""Files of a recorded run: brought, read beside the page within limits, kept for the tab; and the recording they make."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

import streamlit as st

from topox_core.errors import InputError
from topox_core.io.limits import MB, RECORDING_IN_BROWSER, RECORDINGS_IN_BROWSER_BYTES
from topox_core.io.resource_limits import limited_reading
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.runs.run import RunProgress, Stop, never
from topox_core.text.numbers import plural
from topox_core.traces.recorded.kineto import read_kineto
from topox_core.traces.recorded.recorded_run import run_of, spans, step_of
from topox_core.traces.recorded.recording import Recording
from topox_core.traces.source import CHAKRA, KINETO, ImportSettings, Source, format_of
from topox_ui.recorded.state import RecordedState
from topox_ui.runs.limits import server_limits
from topox_ui.runs.owner import RunKind, run_owner, worker_run
from topox_ui.shell.charts import button, chart_title, headline, quiet, show_error, write_html
from topox_ui.shell.panel import watched
from topox_ui.state.session import Lasting, Passing

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
)  # which stream waits for which is recorded, not inferred
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
        open_example,
        help="Four ranks, pipeline and data parallel, recorded at 100 Gbit/s. Its true times are known.",
    )
    chart_title("How to record", "paste these lines around the training loop")
    st.code(SCRIPT, language=None)
    quiet(
        "Do not sample or filter events, and do not record Python stacks. Each reading says what was read, what was inferred "
        "and how far to trust it."
    )


def files_of_run(now: "Opened") -> None:
    """Draw the ranks that were read, and the box for more files."""
    _cells(now)
    with st.expander("Files", key="recorded_files", expanded=bool(now.lines)):
        _box(now)
        button("Read another run", "recorded_forget", "restart_alt", _forget)


def _forget() -> None:
    forget()
    RecordedState.choose(example=False)


def _box(now: "Opened") -> None:
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


def _cells(now: "Opened") -> None:
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
    marks = dict.fromkeys(range(world), ("absent", "–")) | dict.fromkeys(read, ("read", "✓"))
    marks |= dict.fromkeys(now.twice, ("twice", "2x"))
    cells = "".join(
        f'<li class="{state}" title="rank {rank}: {state}"><b>{rank}</b> {mark}</li>'
        for rank, (state, mark) in marks.items()
    )
    st.html(
        "<style>.ranks { display: flex; flex-wrap: wrap; gap: .25rem; list-style: none; margin: 0 !important; "
        "padding: 0 !important; font-size: .78rem; } .ranks li { margin: 0 !important; padding: .1rem .45rem; "
        "border: 1px solid currentColor; border-radius: 4px; } .ranks .absent { border-style: dashed; } "
        ".ranks .twice { border-width: 2px; }</style>"
        f'<ul class="ranks" aria-label="{words}">{cells}</ul>'
    )
    quiet(f"{words}. ✓ read, – absent, 2x more than one file: the first was taken.")


# Files that are larger together, and packed ones, which may be, are read beside the page: it should not stand
# still, and what they ask for is limited there.
AT_ONCE_BYTES, PACKED = MB // 4, b"\x1f\x8b"
# More communications, scopes and waits than these are put together there once, before the page does so.
TRIED_FIRST = 20_000
READING = RunKind(
    "recorded", 4, cancel_help="Stops at once; the ranks that were there before stay."
)
EXAMPLE = "recorded-run_rank{}.json.gz"
# (name, content)
File = tuple[str, bytes]
Step = tuple[str, float]


@dataclass(frozen=True)
class Opened:
    """The ranks that were read.

    Attributes
    ----------
    recordings
        One a rank, in order of rank.
    twice
        Ranks of which more than one file came; the first was taken.
    lines
        What is wrong with the files that came last, a line each.
    key
        Of the contents: it keys what is computed of them.
    example
        Whether they are the made-up run.
    """

    recordings: tuple[Recording, ...] = ()
    twice: frozenset[int] = frozenset()
    lines: tuple[str, ...] = ()
    key: str = ""
    example: bool = False

    def of_rank(self) -> dict[int, str]:
        """Return the file of each rank."""
        return {one.rank: one.file for one in self.recordings}


_OPENED = Lasting[Opened]("recorded_opened")
# Of a group its name or description, and the parallelism that the reader says it is of.
LABELS = Lasting[dict[str, str]]("recorded_labels")


def opened() -> Opened:
    """Return what this session has read."""
    return _OPENED.get() or Opened()


def forget() -> None:
    """Let go of the run: another one can be read."""
    run_owner().end(READING)
    _OPENED.pop()
    LABELS.pop()


def open_example() -> None:
    """Open the made-up run in place of what is there."""
    forget()
    names = [EXAMPLE.format(rank) for rank in range(4)]
    files = [(name, (SAMPLE_FOLDER / name).read_bytes()) for name in names]
    _add(read_files({}, files, never, lambda _step: None))
    _OPENED.set(replace(opened(), example=True))
    RecordedState.choose(example=True)


def most_bytes() -> float:
    """Return how much the page takes at once: no more than a session may hold on this server."""
    return min(RECORDINGS_IN_BROWSER_BYTES, server_limits().session_mb * MB)


def take_files(files: Collection[File]) -> None:
    """Read files and add their ranks: small ones now, large ones beside the page."""
    if opened().example:
        forget()
    size = sum(len(content) for _, content in files)
    if size > most_bytes():
        line = (
            f"the files hold {size / MB:,.0f} MB together, more than the {most_bytes() / MB:,.0f} MB that the page "
            "takes at once: give fewer, or use the command trace import"
        )
        _OPENED.set(replace(opened(), lines=(line,)))
        return
    known, given = opened().of_rank(), tuple(files)
    if size <= AT_ONCE_BYTES and not any(content.startswith(PACKED) for _, content in given):
        _add(read_files(known, given, never, lambda _step: None))
        return
    run_owner().start(
        READING,
        tuple(name for name, _ in given),
        worker_run(
            "were not read",
            "recorded run",
            partial(read_files, read=read_within_limits),
            known,
            given,
            measure=_measure,
        ),
    )


def take_what_was_read() -> None:
    """Take in what a run beside the page has read since."""
    results = run_owner().results(READING)
    for key in list(results):
        _add(results.pop(key))


def _add(more: Opened) -> None:
    now = opened()
    every = {one.rank: one for one in (*more.recordings, *now.recordings)}
    recordings = tuple(every[rank] for rank in sorted(every))
    key = sha256(f"{now.key}|{more.key}".encode()).hexdigest() if more.recordings else now.key
    _OPENED.set(Opened(recordings, now.twice | more.twice, more.lines, key))


def read_files(
    known: dict[int, str],
    files: Collection[File],
    stop: Stop,
    on_step: Callable[[Step], None],
    read: Callable[[str, bytes], Recording] | None = None,
) -> Opened:
    """Read files one after the other; what is wrong with one costs its line and no other file.

    Parameters
    ----------
    known
        By rank the file that was read before.
    read
        How one is read.
    """
    of_rank, lines = dict(known), list[str]()
    found: list[Recording] = []
    twice: set[int] = set()
    digest, whole, done = sha256(), sum(len(content) for _, content in files) or 1, 0
    for name, content in files:
        if stop():
            break
        on_step((name, done / whole))
        done += len(content)
        try:
            recording = (read or _read)(name, content)
            if (before := of_rank.get(recording.rank)) is not None:
                twice.add(recording.rank)
                problem = f"rank {recording.rank} was already read from {before}"
                raise InputError(f"{problem}: this file is left out", file=name)
        except InputError as error:
            lines.append(str(error))
            continue
        of_rank[recording.rank] = name
        found.append(recording)
        digest.update(sha256(content).digest())
    return Opened(tuple(found), frozenset(twice), tuple(lines), digest.hexdigest())


def _read(name: str, content: bytes) -> Recording:
    source = Source.of_bytes(name, content, RECORDING_IN_BROWSER)
    form = format_of(source)
    if form != KINETO:
        what = "is a Chakra execution trace" if form == CHAKRA else f"is of format {form}"
        problem = f"{what}: this page takes files of PyTorch's profiler; the command trace import takes others"
        raise InputError(problem, file=name)
    return read_kineto(source)


def read_within_limits(name: str, content: bytes) -> Recording:
    """Read a file in a process of its own: beyond its memory or time it costs its line, and the server nothing."""
    with limited_reading(name, len(content)):
        recording = _read(name, content)
        if (
            len(recording.kernels) + len(recording.scopes) + len(recording.stream_waits)
            > TRIED_FIRST
        ):
            with suppress(InputError):  # the page says it, of all files together
                step_of(run_of((recording,), ImportSettings()), ImportSettings())
        return recording


def _measure(steps: tuple[Step, ...], elapsed_s: float) -> RunProgress:
    name, share = steps[-1] if steps else ("", 0.0)
    left = elapsed_s * (1 / share - 1) if share else None
    return RunProgress(elapsed_s, share, words=name, left_s=left)
