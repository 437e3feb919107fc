"""Windows of a recorded run: waiting is no traffic, skew is no window."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests.topox_core.traces.made import Call, Kernel, Op, Style, Wait, recordings
from tests.topox_core.traces.reading_back import sources
from topox_core.cli.main import main
from topox_core.rails.window_file import load_windows
from topox_core.traces.recorded_run import read_run, step_of
from topox_core.traces.settings import ImportSettings
from topox_core.traces.windows import RecordedWindows, windows_of_step


def program() -> dict[int, list[Op]]:
    """Two kinds of traffic in turn; rank 1 computes longer, so that rank 0 waits in its kernels."""
    group = (0, 1)
    made: dict[int, list[Op]] = {}
    for rank in group:
        own = 100.0 + 400.0 * rank
        made[rank] = [
            Kernel(own),
            Call("a", "all_to_all", group, 10_000_000, 20, "e", "expert"),
            Wait("a"),
            Kernel(1_000.0 + own),
            Call("b", "all_reduce", group, 10_000_000, 20, "d", "ddp"),
            Wait("b"),
            Kernel(50.0),
        ]
    return made


def found(gbps: float = 100.0) -> RecordedWindows:
    files = recordings(program(), gbps, Style(steps=2, offsets_us=(0.0, 3e5)))
    settings = ImportSettings()
    return windows_of_step(step_of(read_run(sources(files), settings), settings), {})


def test_a_window_ends_when_the_last_rank_is_there() -> None:
    windows = found()
    (one,) = windows.windows
    assert (one.before, one.after, one.operation, one.rank) == ("ep", "dp", "all_reduce", 0)
    assert one.length_ms == pytest.approx(1.5, abs=1e-6), (
        "from the exchange to when rank 1 is there"
    )
    assert windows.by_rank == 2
    lengths = sorted(w.length_ms for w in windows.naive)
    assert lengths == pytest.approx([1.1, 1.5], abs=1e-6), "rank 0's own kernel begins earlier"


def test_the_command_writes_a_file_that_rails_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, data in recordings(program(), 100.0, Style(steps=2)).items():
        (tmp_path / name).write_bytes(data)
    out = tmp_path / "run.windows.csv"
    assert main(["trace", "windows", str(tmp_path), "--output", str(out), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["windows"], record["by_rank"], record["naive"]) == (1, 2, 2)
    listed = load_windows(out.read_bytes(), out.name)
    assert [w.length_ms for w in listed.windows] == pytest.approx([1.5], abs=1e-6)
    assert main(["rails", "windows", str(out)]) == 0


def test_dlrm_has_three_windows_where_gaps_between_kernels_make_24(real_inputs: Path) -> None:
    archive = real_inputs / "traces" / "dlrm_kineto.tar.gz"
    if not archive.is_file():
        pytest.skip("needs the public recordings")
    with tarfile.open(archive) as tar:
        files = {
            Path(m.name).name: file.read()
            for m in tar
            if m.isfile() and not Path(m.name).name.startswith(".") and (file := tar.extractfile(m))
        }
    settings = ImportSettings()
    windows = windows_of_step(step_of(read_run(sources(files), settings), settings), {})
    lengths = [1000 * w.length_ms for w in windows.windows]
    assert lengths == pytest.approx([1_212, 1_744, 586], abs=1)
    naive = sorted(1000 * w.length_ms for w in windows.naive)
    assert (
        len(naive) == 24
        and naive[0] == pytest.approx(1, abs=1)
        and naive[-1] == pytest.approx(1_745, abs=1)
    )
