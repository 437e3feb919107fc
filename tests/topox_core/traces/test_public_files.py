"""The figures that were measured on public recordings, where their files are at hand."""

from pathlib import Path

import pytest

from tests.topox_core.traces.reading_back import sources, unpacked
from topox_core.traces.chakra_in import import_chakra
from topox_core.traces.importing import import_kineto, inspect_run
from topox_core.traces.recorded_run import read_run, step_of
from topox_core.traces.source import ImportSettings, Source
from topox_core.traces.windows import windows_of_step


@pytest.fixture(scope="module")
def traces(real_inputs: Path) -> Path:
    return real_inputs / "traces"


def test_eight_ranks_of_dlrm(traces: Path) -> None:
    files = unpacked(traces / "dlrm_kineto.tar.gz")
    report = import_kineto(sources(files), ImportSettings(uneven="one")).report
    figures = ("step", "calls", "tasks", "size_bytes", "recorded_ms", "recorded_call_ms")
    assert [report[figure] for figure in figures] == pytest.approx(
        [10, 8, 92, 2_549_700, 19.4035, 0.30], rel=0.02
    )
    assert report["replay_ms"]["400_gbps"] == pytest.approx(19.3819, abs=5e-5)
    assert report["waits"] == {"found": 48, "seen": 4, "none": 12}
    assert max(map(abs, report["clocks"]["offset_us"].values())) <= 1.5
    hosts = sources(unpacked(traces / "dlrm_pytorch_et.tar.gz"))
    told = import_kineto(sources(files), ImportSettings(), hosts)
    pairs = [t for t in told.graph.tasks if t.kind == "communication"]
    assert len(pairs) == 56, "its third exchange is uneven"


def test_dlrm_has_three_windows_where_gaps_between_kernels_make_24(traces: Path) -> None:
    settings = ImportSettings()
    run = read_run(sources(unpacked(traces / "dlrm_kineto.tar.gz")), settings)
    windows = windows_of_step(step_of(run, settings), {})
    lengths = [1000 * w.length_ms for w in windows.windows]
    assert lengths == pytest.approx([1_212, 1_744, 586], abs=1)
    naive = sorted(1000 * w.length_ms for w in windows.naive)
    assert len(naive) == 24
    assert [naive[0], naive[-1]] == pytest.approx([1, 1_745], abs=1)


@pytest.mark.long
def test_the_trace_of_another_tool_agrees_with_the_profiler(traces: Path) -> None:
    data = unpacked(traces / "feeder_tests_trace.tar.gz")["chakra.0.et"]
    found = import_chakra([Source.of_bytes("chakra.0.et", data)], ImportSettings(world=2), {})
    report = found.report
    assert (report["nodes"], report["calls"], report["host_wrappers"]) == (3664, 7, 14)
    assert report["size_bytes"] == 102_441_032
    assert "control dependencies form cycles" in report["checks"][0]["words"]


def test_one_rank_of_two_with_the_metadata_of_every_call(traces: Path) -> None:
    name = "nccl_parser_config_nccl_data.json.gz"
    files = {"nccl_data_rank0.json.gz": (traces / name).read_bytes()}
    settings = ImportSettings()
    steps = inspect_run(read_run(sources(files), settings), settings)["steps"]
    assert [(one["step"], one["calls"]) for one in steps] == [(4, 7), (5, 7), (6, 7)]
    assert {one["size_bytes"] for one in steps} == {102_441_032}
    assert [one["recorded_ms"] for one in steps] == pytest.approx([215.8, 213.5, 218.8], abs=0.05)
    assert [one["host_step_ms"] for one in steps] == pytest.approx([222.4, 219.7, 224.9], abs=0.05)
    assert steps[1]["gpu_busy"] * 213.5 == pytest.approx(39.3, abs=0.05)
    assert steps[1]["free_network_ms"] == steps[1]["recorded_ms"], "the network is hidden"
