"""Files as they come: cut, damaged, repaired, packed, of other writers; each error is the line that is promised."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import some
from tests.refusal import refusal
from tests.topox_core.traces.made import JOBS, Style, recordings
from tests.topox_core.traces.reading_back import Events, communications, edited, imported, sources
from topox_core.errors import InputError
from topox_core.io.limits import Limits
from topox_core.traces.importing import inspect_run
from topox_core.traces.recorded.kineto import read_kineto
from topox_core.traces.recorded.recorded_run import read_run
from topox_core.traces.source import ImportSettings, Refused, Source, format_of


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return recordings(JOBS["experts"](layers=1), 100.0, Style())


def one(files: dict[str, bytes]) -> bytes:
    return files["run_rank0.json"]


def changed(data: bytes, **changes: Any) -> bytes:
    return json.dumps(json.loads(data) | changes).encode()


def error_of(data: bytes, name: str = "run_rank0.json", **settings: Any) -> str:
    return refusal(imported, {name: data}, **settings)


def test_writers_differ_and_the_recording_is_the_same(files: dict[str, bytes]) -> None:
    data = one(files)
    record = json.loads(data)
    plain = imported({"rank0.json": data}).graph.digest
    turned = [dict(sorted(event.items(), reverse=True)) for event in record["traceEvents"]]
    for variant in (
        json.dumps(record, separators=(",", ":")).encode(),
        json.dumps(record, indent=2).encode(),
        gzip.compress(data[:5_000]) + gzip.compress(data[5_000:]),
        json.dumps(record | {"traceEvents": turned}).encode(),
    ):
        assert imported({"rank0.json": variant}).graph.digest == plain
    bare = json.dumps(record["traceEvents"]).encode()
    assert len(imported({"rank0.json": bare}).graph.tasks) > 10


def test_a_value_that_was_left_out_is_repaired_and_told(files: dict[str, bytes]) -> None:
    broken = one(files).replace(
        b'"Process Group Description": "data_parallel"', b'"Process Group Description": '
    )
    assert broken != one(files)
    found = imported({"rank0.json": broken})
    assert any("read as null" in line for line in found.report["warnings"])


def test_a_chunk_boundary_falls_anywhere(
    files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = imported({"rank0.json": one(files)}).graph.digest
    monkeypatch.setattr("topox_core.traces.source.PIECE", 701)
    monkeypatch.setattr("topox_core.traces.recorded.event_stream.CHUNK", 3_001)
    for data in (one(files), gzip.compress(one(files))):
        assert imported({"rank0.json": data}).graph.digest == plain


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_cut_anywhere_is_read_or_refused_in_one_line(
    files: dict[str, bytes], packed: bool
) -> None:
    data = gzip.compress(one(files), 1) if packed else one(files)
    # Up to the last event: what stands behind all events may be missing.
    for at in range(0, len(data) - 100, len(data) // len(some(range(300), quick=30))):
        try:
            run = read_run(sources({"rank0.json": data[:at]}), ImportSettings())
            report = inspect_run(run, ImportSettings())
            assert any("ends early" in line for line in report["warnings"])
        except InputError as error:
            assert "\n" not in str(error) and len(str(error)) < 400
            assert "rank0.json" in str(error)


def test_a_file_whose_last_step_is_cut_keeps_the_steps_before(files: dict[str, bytes]) -> None:
    whole = one(files)
    at = whole.rindex(b'"ncclDevKernel_all_reduce') + 5
    found = imported({"rank0.json": whole[:at]})
    (line,) = (line for line in found.report["warnings"] if "ends early" in line)
    assert "step 7 is incomplete and left out" in line
    assert found.report["step"] in (5, 6)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", "run_rank0.json: is empty"),
        (
            b"{}",
            "run_rank0.json: holds no traceEvents (a profiler trace has them; a task graph has tasks)",
        ),
        (b'{"tasks": []}', "run_rank0.json: holds no traceEvents"),
        ("Schritte: drei, jeder überall\n".encode(), "holds no traceEvents"),
        (b'{"traceEvents": []}', "run_rank0.json: has no GPU kernel (0 host events)"),
        (b"\x1f\x8b\x08 no gzip", "run_rank0.json: is empty"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "x", "dur": 1}]}',
            "must be numbers",
        ),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": NaN, "dur": 1}]}',
            "no numbers",
        ),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -4}]}',
            "no numbers",
        ),
        (b'{"traceEvents": [' + b"[" * 20_000, "is not JSON near byte"),
    ],
)
def test_what_is_no_recording_is_refused_in_a_line(data: bytes, line: str) -> None:
    assert line in error_of(data)


def test_damage_within_names_the_byte(files: dict[str, bytes]) -> None:
    data = one(files)
    at = data.index(b'"args": {', len(data) // 2)
    assert "is not JSON near byte" in error_of(data[:at] + b"\x00{{" + data[at:])


def test_a_rank_is_found_in_the_file_or_its_name(files: dict[str, bytes]) -> None:
    nameless = changed(one(files), distributedInfo={})
    assert error_of(nameless, "trace.json") == (
        "trace.json: names no rank: rename it to ..._rank0.json, or give --ranks"
    )
    for name in ("worker0_step_3.json", "x.rank-0.json", "trace_0.json"):
        assert read_kineto(Source.of_bytes(name, nameless)).rank == 0
    assert imported({"trace.json": nameless}, ranks=(0,)).report["ranks"] == [0]


def test_files_that_do_not_go_together(files: dict[str, bytes]) -> None:
    data = one(files)
    assert (
        refusal(imported, {"a.json": data, "b.json": data})
        == "b.json: rank 0 was already read from a.json"
    )
    other = recordings(JOBS["experts"](layers=2), 100.0, Style(first_step=20))
    assert "step 5: holds steps 20 to 22; no step is on all ranks" in refusal(
        imported, {"run_rank0.json": data, "run_rank1.json": other["run_rank1.json"]}
    )
    assert "run_rank0.json, step 9: holds steps 5 to 7" in refusal(imported, files, step=9)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda events: [e for e in events if e["pid"]],
            "run_rank0.json: has no GPU kernel (",
        ),
        (
            lambda events: [e | {"cat": "mtia_ccp_events"} for e in events if e["pid"]],
            r"has mtia_ccp_events but no kernel events; this device is not read yet",
        ),
        (
            lambda events: [e for e in events if "nccl" not in e["name"]],
            "and no communication: a job on one GPU needs no network",
        ),
    ],
)
def test_a_recording_without_a_gpu_or_without_communication(
    files: dict[str, bytes], change: Callable[[Events], Events], line: str
) -> None:
    assert line in refusal(imported, edited({"run_rank0.json": one(files)}, change))


def test_what_lies_apart_is_not_one_recording(files: dict[str, bytes]) -> None:
    def move(events: Events) -> None:
        for number, event in enumerate(communications(events)):
            event["ts"] += 40_000 * (number % 3)

    with pytest.raises(Refused, match="not one recording, or events were left out"):
        imported(edited(files, move, "run_rank1.json"))


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar"])
def test_an_archive_asks_to_be_unpacked(kind: str, tmp_path: Path) -> None:
    packed = Path(shutil.make_archive(str(tmp_path / "run"), kind, Path(__file__).parent))
    assert "is an archive: unpack it and give its folder" in refusal(
        format_of, Source.of_bytes(packed.name, packed.read_bytes())
    )


def test_ranks_that_are_absent_are_told(files: dict[str, bytes]) -> None:
    found = imported({"run_rank0.json": one(files)})
    line = "ranks 1 to 3 of 4 are absent: the time others waited for them counts as transfer"
    assert line in found.report["warnings"]
    assert found.graph.servers == 4


def test_a_list_in_nine_hundred_lists_costs_nothing(files: dict[str, bytes]) -> None:
    deep = one(files).replace(b'"traceEvents": [', b'"traceEvents": [@, ', 1)
    scope = b'{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 0, "dur": 1, '
    nested = b'"args": {"Collective name": ' + b"[" * 900 + b"]" * 900 + b"}}"
    assert imported({"rank0.json": deep.replace(b"@", scope + nested)}).graph.tasks


def test_a_file_that_unpacks_to_too_much_is_refused_in_time() -> None:
    data = gzip.compress(b'{"traceEvents": [' + b" " * (4 << 20))
    line = "run_rank0.json.gz: is more than the 1.0 MB unpacked that a trace may have"
    assert line == refusal(
        read_kineto, Source.of_bytes("run_rank0.json.gz", data, Limits(1 << 20, 10))
    )


def test_too_many_events_are_refused(
    files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topox_core.traces.recorded.kineto.RECORDING", Limits(1 << 30, 100))
    assert "holds more than the 100 events of use" in error_of(one(files))
