"""The figures that were measured on public recordings, where their files are at hand."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tests.topox_core.traces.reading_back import sources
from topox_core.traces.importing import import_kineto, inspect_run
from topox_core.traces.recorded_run import read_run
from topox_core.traces.settings import ImportSettings


@pytest.fixture(scope="module")
def traces(real_inputs: Path) -> Path:
    folder = real_inputs / "traces"
    if not folder.is_dir():
        pytest.skip("needs the public recordings")
    return folder


def unpacked(archive: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file is not None and not Path(member.name).name.startswith("."):
                found[Path(member.name).name] = file.read()
    return found


def test_eight_ranks_of_dlrm(traces: Path) -> None:
    files = unpacked(traces / "dlrm_kineto.tar.gz")
    found = import_kineto(sources(files), ImportSettings(uneven="one"))
    report = found.report
    assert (report["step"], report["calls"], report["tasks"]) == (10, 8, 92)
    assert report["size_bytes"] == 2_549_700
    assert report["recorded_ms"] == pytest.approx(19.4035, abs=5e-5)
    assert report["replay_ms"]["400_gbps"] == pytest.approx(19.3819, abs=5e-5)
    assert report["recorded_call_ms"] == pytest.approx(0.30, abs=0.006)
    assert report["waits"] == {"found": 48, "seen": 4, "none": 12}
    assert max(map(abs, report["clocks"]["offset_us"].values())) <= 1.5
    assert (report["clocks"]["residual_us"], report["clocks"]["largest_us"]) == (0.5, 5.0)
    hosts = sources(unpacked(traces / "dlrm_pytorch_et.tar.gz"))
    told = import_kineto(sources(files), ImportSettings(), hosts)
    assert told.report["size_bytes"] == 2_549_700
    pairs = [t for t in told.graph.tasks if t.kind == "communication"]
    assert len(pairs) == 56, "its third exchange is uneven"


def test_one_rank_of_two_with_the_metadata_of_every_call(traces: Path) -> None:
    name = "nccl_parser_config_nccl_data.json.gz"
    files = {"nccl_data_rank0.json.gz": (traces / name).read_bytes()}
    settings = ImportSettings()
    steps = inspect_run(read_run(sources(files), settings), settings)["steps"]
    assert [one["step"] for one in steps] == [4, 5, 6]
    assert [one["calls"] for one in steps] == [7] * 3
    assert [one["size_bytes"] for one in steps] == [102_441_032] * 3
    assert [one["recorded_ms"] for one in steps] == pytest.approx([215.8, 213.5, 218.8], abs=0.05)
    assert [one["host_step_ms"] for one in steps] == pytest.approx([222.4, 219.7, 224.9], abs=0.05)
    assert steps[1]["gpu_busy"] * 213.5 == pytest.approx(39.3, abs=0.05)
    assert steps[1]["free_network_ms"] == steps[1]["recorded_ms"], "the network is hidden"
