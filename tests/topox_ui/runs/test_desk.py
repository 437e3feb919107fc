"""A session's desk: places are given back whoever looks, and the best of two results is kept."""

import threading
import time
from dataclasses import replace

import pytest

from tests.topox_core.small_graphs import list_schedule
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample
from topox_ui.schedule.racing import Ask, RaceDesk
from topox_ui.schedule.solving import BUSY, Case, Desk


def case(**settings) -> Case:
    graph, cluster = load_sample("moe")
    return Case(graph, cluster, Settings.of(**settings))


def free(places: threading.BoundedSemaphore) -> bool:
    if places.acquire(blocking=False):
        places.release()
        return True
    return False


def wait_until(condition, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.05)


@pytest.fixture
def one_place() -> threading.BoundedSemaphore:
    return threading.BoundedSemaphore(1)


def test_a_proof_that_nobody_watches_still_ends_keeps_its_result_and_gives_its_place_back(
    one_place,
):
    desk, asked = Desk(one_place), case(time_limit_s=0.5)
    desk.start(asked)
    assert not free(one_place)
    wait_until(lambda: free(one_place))
    assert desk.ended()
    assert not desk.ended()
    assert desk.proof is None
    assert desk.results[asked.key].wall_s < 20


def test_a_second_session_is_told_when_all_places_are_taken(one_place):
    first, second = Desk(one_place), Desk(one_place)
    first.start(case(time_limit_s=60.0))
    second.start(case(time_limit_s=60.0))
    assert (second.note, second.proof) == (BUSY, None)
    first.close()
    wait_until(lambda: free(one_place))
    second.start(case(time_limit_s=60.0))
    assert second.proof is not None
    second.close()


def test_cancel_keeps_the_schedule_and_another_start_takes_the_same_place(one_place):
    desk, asked = Desk(one_place), case(time_limit_s=600.0)
    desk.start(asked)
    desk.cancel()
    wait_until(lambda: desk.proof is None)
    assert desk.results[asked.key].stopped_by == "cancelled"
    desk.start(asked)
    assert desk.proof is not None
    desk.close()
    wait_until(lambda: free(one_place))


def test_cancel_answers_before_the_engines_are_gone(one_place, monkeypatch):
    desk, asked = Desk(one_place), case(time_limit_s=600.0)
    desk.start(asked)
    closed, proof = threading.Event(), desk.proof
    leave = proof.close

    def slowly() -> None:
        closed.wait(30)
        leave()

    monkeypatch.setattr(proof, "close", slowly)
    desk.cancel()
    assert desk.proof is None
    assert desk.results[asked.key].stopped_by == "cancelled"
    assert desk.ended()
    assert not free(one_place)
    closed.set()
    wait_until(lambda: free(one_place))


def test_of_two_equally_long_schedules_the_one_with_fewer_circuit_changes_is_kept():
    desk, asked = Desk(threading.BoundedSemaphore(1)), case()
    listed = list_schedule(asked.graph, asked.cluster, asked.settings)
    circuits = listed.execution.circuits
    quieter = replace(
        listed,
        execution=replace(
            listed.execution, circuits=replace(circuits, changed=circuits.changed & False)
        ),
    )
    for results in ((listed, quieter), (quieter, listed)):
        desk.results.clear()
        for result in results:
            desk.keep("key", result)
        assert desk.results["key"].execution is quieter.execution


def test_the_better_schedule_and_the_better_bound_are_both_kept():
    desk, asked = Desk(threading.BoundedSemaphore(1)), case()
    listed = list_schedule(asked.graph, asked.cluster, asked.settings)
    better_bound = replace(
        listed, makespan_ms=listed.makespan_ms + 1, bound_ms=listed.bound_ms + 5, bound_by="search"
    )
    for results in ((listed, better_bound), (better_bound, listed)):
        desk.results.clear()
        for result in results:
            desk._keep("key", result)
        kept = desk.results["key"]
        assert (kept.makespan_ms, kept.bound_ms, kept.bound_by) == (
            listed.makespan_ms,
            listed.bound_ms + 5,
            "search",
        )
        # The story that the page tells ends where the result stands.
        assert (kept.story[-1].incumbent_ms, kept.story[-1].bound_ms) == (
            kept.makespan_ms,
            kept.bound_ms,
        )


def small() -> Case:
    graph, cluster = load_sample("patience")
    return Case(graph, cluster, Settings.of())


def test_a_race_runs_every_engine_keeps_what_they_reach_and_gives_its_place_back(one_place):
    kept = []
    racing, asked = (
        RaceDesk(one_place, lambda key, result: kept.append((key, result.engine))),
        Ask(small(), 5.0),
    )
    racing.start(asked)
    assert not free(one_place)
    wait_until(racing.ended, 60)
    runners = racing.runners(asked)
    assert [r.engine for r in runners] == ["list", "highs", "cpsat", "auto"]
    assert {r.makespan_ms for r in runners if r.proved_s is not None} == {14.0}
    assert all(r.makespan_ms >= 14.0 >= r.bound_ms for r in runners)
    # The page learns what the engines found; the list schedule it has already.
    assert kept == [(asked.case.key, engine) for engine in ("highs", "cpsat", "auto")]
    assert free(one_place)
    assert racing.runners(replace(asked, limit_s=6.0)) == []


def test_a_cancelled_race_keeps_who_had_ended_and_goes_on_from_there(one_place):
    racing, asked = RaceDesk(one_place, lambda key, result: None), Ask(case(), 300.0)
    racing.start(asked)
    wait_until(lambda: len(racing.runners(asked)) == 1 and racing.heat.on_the_way() is not None)
    racing.cancel()
    assert racing.heat is None
    assert racing.ended()
    assert racing.note.startswith("Stopped")
    wait_until(lambda: free(one_place))
    assert [r.engine for r in racing.runners(asked)] == ["list"]
    racing.start(asked)
    wait_until(lambda: racing.heat.engine == "highs")
    racing.close()
    wait_until(lambda: free(one_place))


def test_a_race_waits_for_a_free_place(one_place):
    racing, asked = RaceDesk(one_place, lambda key, result: None), Ask(small(), 1.0)
    one_place.acquire()
    racing.start(asked)
    assert (racing.note, racing.heat) == (BUSY, None)
