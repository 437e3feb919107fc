"""What a recording predicts, against programs whose times are known at every speed."""

from __future__ import annotations

import statistics

import pytest

from tests.conftest import long_after
from tests.topox_core.traces.made import JOBS, Style, recordings, simulate
from tests.topox_core.traces.reading_back import imported, status
from topox_core.traces.run_graph import at_speed, recorded_time, replay_ms

RECORDED = (25.0, 100.0, 400.0, 1600.0)
ASKED = (10.0, 25.0, 100.0, 400.0, 1600.0, 1e5, 1e6)
OFFSETS = (0.0, 200_000.0, -150_000.0, 1_000_000.0)


@pytest.mark.parametrize("waits", ["stream", "seq", "sync"])
@pytest.mark.parametrize("job", JOBS)
def test_a_run_recorded_at_one_speed_predicts_every_other(job: str, waits: str) -> None:
    program, errors = JOBS[job](), []
    truth = {gbps: simulate(program, gbps).end_us / 1000 for gbps in ASKED}
    for recorded in RECORDED:
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


def test_kernels_do_not_matter() -> None:
    program = JOBS["fsdp"]()
    one, many = (imported(recordings(program, 100.0, Style(split=k))) for k in (1, 7))
    assert [task.id for task in one.graph.tasks] == [task.id for task in many.graph.tasks]
    for a, b in zip(one.graph.tasks, many.graph.tasks, strict=True):
        assert a.dependencies == b.dependencies
        assert a.duration_ms == pytest.approx(b.duration_ms, abs=1e-5)


@pytest.mark.long
def test_a_hundred_thousand_kernels_are_the_same_segments() -> None:
    program = JOBS["experts"](layers=2)
    few = imported(recordings(program, 100.0, Style(steps=2)))
    many = imported(recordings(program, 100.0, Style(steps=2, split=501)))
    kernels = sum(type(op).__name__ == "Kernel" for op in program[0])
    assert kernels * 501 * 4 * 2 > 100_000
    assert many.report["segments"] == few.report["segments"]


def test_the_order_of_files_does_not_matter() -> None:
    files = recordings(JOBS["pipeline"](), 100.0, Style(offsets_us=OFFSETS))
    backwards = dict(reversed(files.items()))
    assert imported(files).graph.digest == imported(backwards).graph.digest


def test_the_graph_takes_as_long_on_the_ideal_switch_as_the_replay_says() -> None:
    from topox_core.fabrics.compare import compare
    from topox_core.schedule.settings import Settings

    found = imported(recordings(JOBS["experts"](), 100.0, Style()))
    runs = compare(found.graph, found.cluster, Settings.of(engine="list"), ("ideal",))
    replayed = found.report["replay_ms"]["400_gbps"]
    assert runs["ideal"].execution.makespan_ms == pytest.approx(replayed, rel=1e-6)
