"""The owner of a session's runs: slots are always given back, ends are noticed, nothing outlives the session."""

import threading
import time
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest

from tests.patience import wait_until
from tests.topox_core.runs.test_run import alive, processes, squares
from tests.topox_core.small_graphs import list_schedule
from topox_core.errors import InputError
from topox_core.fabrics.scheduled import prove
from topox_core.runs.run import FunctionRun
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample
from topox_ui.answers.case import Case
from topox_ui.answers.solving import joined
from topox_ui.runs.owner import RunKind, RunOwner
from topox_ui.runs.slots import InLine, SolverPlaces
from topox_ui.schedule.proving import RACE, Race, run_race

WORK = RunKind("work", most_kept=2, cancelled="Stopped.")
FREE = RunKind("free", most_slots=0)


@pytest.fixture
def slot() -> SolverPlaces:
    return SolverPlaces(1)


@pytest.fixture
def owner(slot):
    owner = RunOwner(slot)
    yield owner
    owner.close()


def is_free(slot: SolverPlaces) -> bool:
    return slot.free == slot.places


def counted(until, stop, on_step):
    for k in range(until):
        if stop():
            return k
        on_step(k)
        time.sleep(0.01)
    return until


def counting(until=10**9):
    return lambda _slots: FunctionRun(partial(counted, until))


def failing(error):
    return lambda _slots: FunctionRun(Mock(side_effect=error))


def test_a_run_that_nobody_watches_still_ends_keeps_its_result_and_gives_its_slot_back(owner, slot):
    owner.start(WORK, "a", counting(20))
    assert not is_free(slot)
    wait_until(lambda: is_free(slot))
    assert (owner.results(WORK), owner.run(WORK)) == ({"a": 20}, None)
    assert [owner.ended(WORK), owner.ended(WORK)] == [True, False]


def test_a_second_session_waits_in_line_and_begins_when_a_place_is_free(owner, slot):
    second = RunOwner(slot)
    owner.start(WORK, "a", counting())
    second.start(WORK, "b", counting(20))
    assert isinstance(second.run(WORK, "b"), InLine)
    assert "first in line, about " in second.run(WORK).progress.words
    second.start(FREE, "c", counting())
    wait_until(lambda: second.run(FREE, "c").steps)
    assert isinstance(second.run(WORK, "b"), InLine)
    owner.close()
    wait_until(lambda: second.results(WORK) == {"b": 20})
    assert second.ended(WORK)
    second.close()
    assert is_free(slot)


def test_cancel_and_the_end_of_a_session_leave_the_line(owner, slot):
    second, third = RunOwner(slot), RunOwner(slot)
    owner.start(WORK, "a", counting())
    second.start(WORK, "b", counting())
    third.start(WORK, "c", counting(20))
    assert "second in line" in third.run(WORK).progress.words
    second.cancel(WORK)
    wait_until(lambda: slot.waiting == 1)
    assert (second.run(WORK), second.note(WORK)) == (None, "")
    assert "first in line" in third.run(WORK).progress.words
    third.close()
    assert slot.waiting == 0
    third.start(WORK, "c", counting())  # a script that has not noticed yet that its session is over
    assert (third.run(WORK), slot.waiting) == (None, 0)


def test_what_cannot_begin_when_its_turn_comes_gives_its_place_to_the_next(owner, slot):
    others = [RunOwner(slot) for _ in range(3)]
    owner.start(WORK, "a", counting(20))
    others[0].start(WORK, "b", Mock(side_effect=InputError("is wrong")))
    others[1].start(WORK, "c", lambda _slots: 1 / 0)
    others[2].start(WORK, "d", counting(3))
    wait_until(lambda: others[2].results(WORK) == {"d": 3})
    assert (others[0].note(WORK), others[0].refused(WORK)) == ("is wrong", True)
    with pytest.raises(ZeroDivisionError):
        others[1].ended(WORK)
    wait_until(lambda: is_free(slot))


def test_a_run_of_cells_gives_places_back_while_others_wait(tmp_path):
    slots = SolverPlaces(2)
    owner, second = RunOwner(slots), RunOwner(slots)
    many = RunKind("many", most_slots=2)
    owner.start(many, "a", lambda places: squares(tmp_path, [1, 99], {}, workers=places))
    assert slots.free == 0
    second.start(WORK, "b", counting(20))
    wait_until(lambda: second.results(WORK) == {"b": 20})
    assert owner.run(many) is not None
    wait_until(lambda: slots.free == 0)  # and has them again once nobody waits
    for one in (owner, second):
        one.close()
    wait_until(lambda: is_free(slots))


def test_no_run_holds_a_place_beyond_the_longest_time_of_the_server(slot, monkeypatch):
    monkeypatch.setattr("topox_ui.runs.owner.LATE_S", 0.0)
    owner = RunOwner(slot, longest_s=0.2)
    owner.start(WORK, "a", counting())
    wait_until(lambda: is_free(slot))
    assert owner.results(WORK)["a"] > 0
    assert "takes at most 0.2\u00a0s" in owner.note(WORK).replace(" s", "\u00a0s")


def test_cancel_keeps_what_is_complete(owner, slot):
    owner.start(WORK, "a", counting())
    wait_until(lambda: owner.run(WORK).steps)
    owner.cancel(WORK)
    wait_until(lambda: owner.run(WORK) is None)
    assert owner.results(WORK)["a"] > 0 and owner.note(WORK) == "Stopped."
    assert owner.cancelled(WORK, "a")
    wait_until(lambda: is_free(slot))
    owner.start(WORK, "a", counting())
    assert not owner.cancelled(WORK, "a")
    owner.start(
        WORK, "b", counting()
    )  # takes the place of the one before, of which nothing is said
    assert (owner.key(WORK), owner.note(WORK)) == ("b", "")


def test_a_cancelled_run_that_does_not_listen_keeps_its_slot_until_it_ends(owner, slot):
    gate = threading.Event()
    owner.start(WORK, "a", lambda _slots: FunctionRun(lambda stop, on_step: gate.wait(60)))
    owner.cancel(WORK)
    assert owner.stopping(WORK) and not is_free(slot)
    gate.set()
    wait_until(lambda: is_free(slot))
    assert owner.results(WORK) == {"a": True}


def test_bad_input_is_a_note_and_a_defect_is_raised_once(owner, slot):
    owner.start(WORK, "a", failing(InputError("is wrong")))
    wait_until(lambda: owner.run(WORK) is None)
    assert (owner.note(WORK), owner.refused(WORK)) == ("is wrong", True)
    assert str(owner.refusals(WORK)["a"]) == "is wrong"
    assert owner.ended(WORK)
    owner.start(WORK, "a", failing(ValueError("a defect")))
    with pytest.raises(ValueError, match="a defect"):
        owner.wait(WORK, 60)
    assert not owner.ended(WORK)
    wait_until(lambda: is_free(slot))


def test_a_run_that_cannot_begin_gives_its_slot_back(owner, slot):
    owner.start(WORK, "a", Mock(side_effect=InputError("is wrong")))
    assert owner.note(WORK) == "is wrong" and is_free(slot)
    with pytest.raises(ValueError):
        owner.start(WORK, "a", Mock(side_effect=ValueError("a defect")))
    assert is_free(slot)


@pytest.mark.long
def test_the_end_of_a_session_ends_its_processes_and_keeps_complete_cells(owner, slot, tmp_path):
    cells = owner.results(WORK)
    owner.start(WORK, "a", lambda slots: squares(tmp_path, [1, 2, 99], cells, workers=slots))
    wait_until(lambda: len(list(tmp_path.iterdir())) == 3)
    began = time.monotonic()
    owner.close()
    assert is_free(slot) and cells == {"1": 1, "2": 4}
    wait_until(lambda: not any(map(alive, processes(tmp_path))))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("through_first", [0, 1])
def test_of_two_runs_of_a_kind_that_begin_at_once_the_one_started_last_goes_on(
    owner, through_first
):
    runs = [counting()(0), counting()(0)]
    begins, gates = ([threading.Event(), threading.Event()] for _ in range(2))

    def start(number: int) -> None:
        def begin(_slots: int) -> FunctionRun:
            begins[number].set()
            gates[number].wait(60)
            return runs[number]

        owner.start(FREE, number, begin)

    threads = [threading.Thread(target=start, args=(number,)) for number in (0, 1)]
    for thread, begun in zip(threads, begins, strict=True):
        thread.start()
        assert begun.wait(60)
    for number in (through_first, 1 - through_first):
        gates[number].set()
        threads[number].join(60)
    wait_until(lambda: not runs[0].running)
    assert (owner.key(FREE), owner.run(FREE) is runs[1], runs[1].running) == (1, True, True)


def test_a_run_that_is_ended_while_it_begins_does_not_go_on(owner):
    run = counting()(0)

    def begin(_slots: int) -> FunctionRun:
        owner.end(FREE)
        return run

    owner.start(FREE, "a", begin)
    wait_until(lambda: not run.running)
    assert owner.run(FREE) is None


def test_a_run_that_cannot_be_closed_leaves_the_others_attended(owner, slot):
    owner.start(FREE, "a", counting())
    run, closing = owner.run(FREE), threading.Event()

    def broken() -> None:
        closing.set()
        raise ValueError("a defect")

    run.close = broken
    owner.end(FREE)
    assert closing.wait(60)
    owner.start(WORK, "b", counting(20))
    wait_until(lambda: owner.results(WORK) == {"b": 20})
    wait_until(lambda: is_free(slot))
    with pytest.raises(ValueError, match="a defect"):
        owner.ended(FREE)


# -- proofs and races ------------------------------------------------------------------------------


def test_cancel_of_a_proof_answers_before_the_engines_are_gone(owner, slot, monkeypatch):
    long = Settings.of(time_limit_s=600.0)
    owner.start(WORK, "a", lambda _slots: prove(*load_sample("moe"), long))
    closed, proof = threading.Event(), owner.run(WORK)
    close = proof.close

    def slowly() -> None:
        closed.wait(30)
        close()

    monkeypatch.setattr(proof, "close", slowly)
    owner.cancel(WORK)
    assert owner.run(WORK) is None
    assert owner.results(WORK)["a"].stopped_by == "cancelled"
    assert owner.ended(WORK)
    assert not is_free(slot)
    closed.set()
    wait_until(lambda: is_free(slot))


def test_of_two_equally_long_schedules_the_one_with_fewer_circuit_changes_is_kept():
    listed = list_schedule(*load_sample("moe"), Settings.of())
    circuits = listed.execution.circuits
    unchanged = replace(circuits, changed=circuits.changed & False)
    quieter = replace(listed, execution=replace(listed.execution, circuits=unchanged))
    for results in ((listed, quieter), (quieter, listed)):
        assert joined(*results).execution is quieter.execution


def test_the_better_schedule_and_the_better_bound_are_both_kept():
    listed = list_schedule(*load_sample("moe"), Settings.of())
    better_bound = replace(
        listed,
        makespan_ms=listed.makespan_ms + 1,
        bound_ms=listed.bound_ms + 5,
        bound_by="search",
        classes=tuple(replace(one, bound_ms=one.bound_ms + 5) for one in listed.classes),
    )
    for results in ((listed, better_bound), (better_bound, listed)):
        kept, both = joined(*results), (listed.makespan_ms, listed.bound_ms + 5)
        assert (kept.makespan_ms, kept.bound_ms, kept.bound_by) == (*both, "search")
        # The trace that the page shows ends where the result stands.
        assert (kept.trace[-1].incumbent_ms, kept.trace[-1].bound_ms) == both


@pytest.mark.long
def test_a_cancelled_race_keeps_who_had_ended_and_goes_on_from_there(owner, slot):
    race, outcomes = Race(Case(*load_sample("moe"), Settings.of()), 300.0), owner.results(RACE)

    def begin() -> None:
        run = partial(run_race, race, outcomes, lambda _kept: None, None)
        owner.start(WORK, race.key, lambda _slots: FunctionRun(run), lambda _outcome: None)

    begin()
    wait_until(lambda: owner.run(WORK).steps and owner.run(WORK).steps[-1].contestant is not None)
    owner.cancel(WORK)
    wait_until(lambda: owner.run(WORK) is None)
    assert owner.note(WORK) == "Stopped."
    assert [one.engine for one in race.contestants(outcomes)] == ["list"]
    wait_until(lambda: is_free(slot))
    begin()
    wait_until(lambda: owner.run(WORK).steps)
    assert owner.run(WORK).steps[0].engine == "highs"
