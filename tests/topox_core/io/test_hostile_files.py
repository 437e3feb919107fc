"""A file that wants memory, time or a wrong line gets one short line before much was spent on it, and the process goes on."""

import gzip
import json
import resource
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.refusal import refusal
from topox_core.check.schedule_file import read_schedule
from topox_core.economics.price_sets import load_parts
from topox_core.errors import InputError, one_line, printable, shown, visible
from topox_core.io import content, limits, resource_limits
from topox_core.io.cluster_file import load_cluster
from topox_core.io.limits import MB
from topox_core.io.resource_limits import limited_reading
from topox_core.io.task_graph_file import load_graph
from topox_core.rails.window_lengths import load_windows
from topox_core.schedule.rcpsp.psplib import read_psplib
from topox_core.strategy.strategy import load_strategy
from topox_core.tdm.model.jobs_file import load_jobs

ROOT = Path(__file__).resolve().parents[3]
Load = Callable[[bytes, str], object]


def head(name: str) -> bytes:
    return b'{"format": "topox-%s", "version": 1, ' % name.encode()


def packed(begin: bytes, unit: bytes, times: int, end: bytes = b"") -> bytes:
    """A gzip file of a unit repeated, made without holding what it unpacks to."""
    engine = zlib.compressobj(1, wbits=31)
    many = unit * 10_000
    parts = [engine.compress(begin), *(engine.compress(many) for _ in range(times // 10_000))]
    return b"".join([*parts, engine.compress(end), engine.flush()])


@contextmanager
def memory_left(most: int) -> Iterator[None]:
    """Let the process grow by so many bytes only."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def line_of(load: Load, data: bytes, file: str = "f") -> str:
    line = refusal(load, data, file)
    assert len(line) < 400 and visible(line) == line
    return line


TASK = b'{"id":"a","kind":"barrier",' + b",".join(b'"k%d":1' % i for i in range(100)) + b"},"

BOMBS: dict[str, tuple[Load, tuple[Any, ...], str]] = {
    "numbers for parts": (
        load_parts,
        (head("parts") + b'"parts": [', b"1,", 500_000, b"1]}"),
        "field parts: holds more than the 1,000 entries a file may have",
    ),
    "numbers for operators": (
        load_strategy,
        (
            head("strategy") + b'"model": "m", "servers": 1, "operators": [',
            b"1,",
            1_900_000,
            b"1]}",
        ),
        "field operators: holds more than the 10,000 entries a file may have",
    ),
    "words for a plan": (
        load_strategy,
        (head("strategy") + b'"model": "m", "servers": 1, "plan": [', b'"xx",', 700_000, b"1]}"),
        "field plan: is no longer read here",
    ),
    "words for units": (
        load_jobs,
        (head("jobs") + b'"jobs": [{"units_per_pod": [', b'"xx",', 1_000_000, b"1]}]}"),
        "job 1, field id: is missing",
    ),
    "blank windows": (load_windows, (b"length_ms\n", b" ", 60_000_000), "a row of more than"),
    "commas in a header": (
        load_windows,
        (b"length_ms", b",", 40_000_000),
        "holds a row of more than 8,000,000 characters",
    ),
    "unknown keys": (
        load_graph,
        (head("taskgraph") + b'"tasks": [', TASK, 100_000, b"1]}"),
        "task a: holds an object of more than 17 keys",
    ),
    "wide rows": (
        load_graph,
        (b"id,kind\n", b"," * 2_000 + b"\n", 10_000),
        "more than the 256 cells in one row",
    ),
    "blank rows": (
        load_graph,
        (b"id,kind\n", b",,,\n", 3_000_000),
        "more than the 1,000,000 rows",
    ),
    "lists in lists": (
        load_graph,
        (head("taskgraph") + b'"tasks": [[', b"[],", 4_000_000, b"1]]}"),
        "entry 1: must be an object",
    ),
    "strings in a schedule": (
        read_schedule,
        (
            head("schedule") + b'"status": "feasible", "settings": {}, "tasks": [',
            b'{"a":"xx","b":"yy","c":"zz"},',
            2_000_000,
            b"1]}",
        ),
        "holds more than the 1,201,000 objects a file may have",
    ),
    "words in a schedule": (
        read_schedule,
        (head("schedule") + b'"x": [', b'"xx",', 3_000_000, b"1]}"),
        "field status: must be one of",
    ),
    "many lists in a schedule": (
        read_schedule,
        (head("schedule") + b'"x": [', b"[],", 15_000_000, b"1]}"),
        "holds more than the 28,000,000 values a file may have",
    ),
    "lines for the scheduler": (
        read_psplib,
        (b"", b"x\n", 12_000_000),
        "unpacks to more than",
    ),
}


# These take seconds.
SLOW = (
    "blank rows",
    "lists in lists",
    "many lists in a schedule",
    "strings in a schedule",
    "words in a schedule",
    "words for units",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in BOMBS]
)
def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_held(name: str) -> None:
    load, parts, words = BOMBS[name]
    data = packed(*parts)
    assert len(data) < 1_500_000
    file = "f" if load is not load_graph else "f.csv" if name.endswith("rows") else "f.json"
    with memory_left(700_000_000):
        assert words in line_of(load, data, file)


def test_reading_stops_after_a_thousand_mistakes() -> None:
    data = head("taskgraph") + b'"tasks": [' + b"[]," * 100_000 + b"[]]}"
    expected = "f, entry 1: must be an object (got a list of 0 entries) (and at least 999 more)"
    assert line_of(load_graph, data) == expected


def test_gzip_of_very_many_parts_is_refused() -> None:
    many = gzip.compress(b"{}") * (limits.MAX_GZIP_MEMBERS + 1)
    assert line_of(load_cluster, many) == "f: is gzip of more than 10,000 parts"


def test_a_file_far_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "PIECE", None)  # whoever reads a piece fails
    assert line_of(load_parts, bytes(2_000_000)).endswith(
        "more than the 1.0 MB such a file may have"
    )


@pytest.mark.parametrize(
    ("load", "data"),
    [
        (load_cluster, head("cluster") + rb'"\ud800": 1}'),
        (load_parts, head("parts") + rb'"parts": [], "\ud800": 1}'),
        (load_parts, head("parts") + rb'"parts": [{"id": "nic", "\ud800": 1}]}'),
        (load_parts, head("parts") + rb'"parts": [{"id": "\ud800"}]}'),
        (load_strategy, head("strategy") + rb'"\ud800": 1}'),
        (load_strategy, head("strategy") + rb'"model": "\ud800", "servers": 1, "operators": []}'),
        (load_jobs, head("jobs") + rb'"\ud800": 1}'),
        (load_windows, head("windows") + rb'"\ud800": 1}'),
        (load_windows, head("windows") + rb'"windows": [{"length_ms": 1, "before": "\ud800"}]}'),
        (load_windows, b"\xef\xbb\xbf"),
        (load_windows, b"\x1c"),
        (load_windows, "\u2028".encode()),
        (load_windows, b"\x00"),
        (load_windows, "length_ms\n1\n".encode("utf-16")),
        (read_psplib, b"\xff"),
    ],
)
def test_odd_characters_give_one_line(load: Load, data: bytes) -> None:
    assert line_of(load, data)


def test_foreign_text_in_a_line_is_short_and_seen() -> None:
    long_format = json.dumps({"format": "topox-" + "x" * 100_000, "version": 1}).encode()
    assert "field format: must be 'topox-cluster'" in line_of(load_cluster, long_format)
    for unseen in ("\u200b", "\u3164", "\u2800", "\ufe0f", "\u0301", "\u202e", "\ud800", "\x1b"):
        assert visible(unseen).startswith("\\"), ascii(unseen)
        assert unseen not in printable(unseen * 3) + shown(unseen * 3)
    twice = [{"id": "\u3164", "kind": "barrier"}] * 2
    data = head("taskgraph") + b'"tasks": ' + json.dumps(twice).encode() + b"}"
    assert r"\u3164" in line_of(load_graph, data)
    # What is read by people stays as it is.
    for seen in ("naïve", "e\u0301tude", "नमस्ते", "日本語", "👍🏽", "Gbit/s – 3 µs"):
        assert visible(seen) == seen


def test_every_error_is_one_line_below_400_characters_that_keeps_its_end() -> None:
    long = str(InputError("x" * 1000 + " (got 7)", file="f" * 500, item="i" * 500, field="k" * 500))
    assert len(f"topox: error: {long}") < 400
    assert long.startswith("fff") and long.endswith(" (got 7)")
    assert one_line("a\nb\tc") == "a b c"


def within() -> tuple[object, object]:
    return resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGPROF)


def test_more_memory_than_reading_may_take_is_one_line_and_the_limit_ends_with_the_reading(
    monkeypatch,
):
    monkeypatch.setattr(resource_limits, "MAX_READING_BYTES", 50 * MB)
    before = within()
    with (
        pytest.raises(
            InputError, match=r"^a\.json: needs more than the 50\.0 MB that reading it may take$"
        ),
        limited_reading("a.json", 10),
    ):
        bytes(200 * MB)
    assert within() == before
    assert len(bytes(200 * MB)) == 200 * MB


def test_more_time_than_reading_may_take_is_one_line_through_readers_that_go_on_after_an_error(
    monkeypatch,
):
    monkeypatch.setattr(resource_limits, "READING_S", 0.05)
    before = within()
    with (
        pytest.raises(
            InputError, match=r"^a\.json: takes more than 0 s of computing to be read: given up$"
        ),
        limited_reading("a.json", 10),
    ):
        while True:
            try:
                sum(range(10_000))
            except Exception:
                continue
    assert within() == before
    began = time.process_time()
    while time.process_time() - began < 0.2:  # the timer is off
        pass


def test_what_is_read_within_its_limits_is_read_and_other_errors_pass():
    with limited_reading("a.json", 10):
        held = bytes(MB)
    assert len(held) == MB
    with pytest.raises(KeyError), limited_reading("a.json", 10):
        raise KeyError


def test_outside_the_main_thread_only_memory_is_limited(monkeypatch):
    monkeypatch.setattr(resource_limits, "READING_S", 0.0)

    def read() -> int:
        with limited_reading("a.json", 0):
            return sum(range(100_000))

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(read).result() == sum(range(100_000))
