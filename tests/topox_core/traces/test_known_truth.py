"""What a recording predicts, against programs whose times are known at every speed."""

import statistics
from itertools import product

import pytest

from tests.conftest import long_after, some
from tests.topox_core.traces.made import JOBS, Call, Kernel, Style, Wait, recordings, simulate
from tests.topox_core.traces.reading_back import imported, status
from topox_core.traces.run_graph import at_speed, recorded_time, replay_ms

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
    assert max(errors) < 0.02
    assert statistics.median(errors) < 0.0005


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
