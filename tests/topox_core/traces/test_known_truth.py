"""What a recording predicts: programs whose times are known at every speed, and public recordings where they are at hand."""

from itertools import product
from pathlib import Path

import pytest

from tests.conftest import long_after, some
from tests.topox_core.traces.made import JOBS, Call, Kernel, Style, Wait, recordings, simulate
from tests.topox_core.traces.reading_back import imported, sources, status, unpacked
from topox_core.papers.accuracy import RECORDINGS
from topox_core.traces.chakra.reading import import_chakra
from topox_core.traces.importing import import_kineto, inspect_run
from topox_core.traces.recorded.recorded_run import read_run, step_of
from topox_core.traces.recorded.windows import windows_of_step
from topox_core.traces.run_graph import at_speed, recorded_time, replay_ms
from topox_core.traces.source import ImportSettings, Source

RECORDED = (25.0, 100.0, 400.0, 1600.0)
ASKED = (10.0, 25.0, 100.0, 400.0, 1600.0, 1e5, 1e6)
OFFSETS = (0.0, 200_000.0, -150_000.0, 1_000_000.0)


@pytest.mark.parametrize(
    ("job", "waits"),
    long_after(
        3,
        sorted(
            product(JOBS, ("stream", "seq", "sync")),
            key=lambda pair: (
                pair not in [("experts", "stream"), ("pipeline", "seq"), ("fsdp", "sync")]
            ),
        ),
    ),
)
def test_a_run_recorded_at_one_speed_predicts_every_other(job: str, waits: str) -> None:
    program, errors = JOBS[job](), []
    truth = {gbps: simulate(program, gbps).end_us / 1000 for gbps in ASKED}
    for recorded in some(RECORDED, quick=2):
        found = imported(recordings(program, recorded, Style(waits=waits, offsets_us=OFFSETS)))
        errors += [abs(replay_ms(found.run, at_speed(x)) / truth[x] - 1) for x in ASKED]
    assert max(errors) < RECORDINGS["most"]


def test_as_many_answers_as_the_page_says() -> None:
    asked = len(JOBS) * 3 * len(RECORDED) * len(ASKED)
    assert asked == RECORDINGS["answers"]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("gbps", long_after(1, RECORDED))
def test_the_replay_with_recorded_times_is_the_recording(job: str, gbps: float) -> None:
    program = JOBS[job]()
    found = imported(recordings(program, gbps, Style()))
    assert replay_ms(found.run, recorded_time) == pytest.approx(found.run.recorded_ms, rel=1e-9)
    assert found.run.recorded_ms == pytest.approx(simulate(program, gbps).end_us / 1000, rel=1e-6)
    assert status(found, "replay") == "passed"


@pytest.mark.parametrize("job", JOBS)
def test_clocks_a_second_apart_come_back(job: str) -> None:
    found = imported(recordings(JOBS[job](), 100.0, Style(offsets_us=OFFSETS)))
    offsets = found.report["clocks"]["offset_us"]
    assert [offsets[str(rank)] for rank in range(4)] == pytest.approx(list(OFFSETS), abs=1.0)
    assert found.report["clocks"]["largest_us"] < 0.1


def test_ranks_that_share_no_call_keep_the_clocks_of_their_hosts() -> None:
    """Two pairs that never meet: within each clocks are made one, between them the hosts' are believed."""
    program = {
        rank: [
            Kernel(300.0),
            Call(f"g{pair}", "all_reduce", pair, 1_000_000),
            Wait(f"g{pair}"),
            Kernel(50.0),
        ]
        for pair in ((0, 1), (2, 3))
        for rank in pair
    }
    found = imported(recordings(program, 100.0, Style(offsets_us=(0.0, 300.0, 5_000.0, 5_200.0))))
    offsets = found.report["clocks"]["offset_us"]
    assert offsets == pytest.approx({"0": 0.0, "1": 300.0, "2": 0.0, "3": 200.0}, abs=1.0)


def test_kernels_do_not_matter() -> None:
    program = JOBS["fsdp"](layers=3)
    one, many = (imported(recordings(program, 100.0, Style(split=k))) for k in (1, 7))
    for a, b in zip(one.graph.tasks, many.graph.tasks, strict=True):
        assert (a.id, a.dependencies) == (b.id, b.dependencies)
        assert a.duration_ms == pytest.approx(b.duration_ms, abs=1e-5)


def test_the_order_of_files_does_not_matter() -> None:
    files = recordings(JOBS["pipeline"](), 100.0, Style(offsets_us=OFFSETS))
    assert imported(files).graph.digest == imported(dict(reversed(files.items()))).graph.digest


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
