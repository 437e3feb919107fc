"""The owner of a session's runs and the line in front of the solver places: given back, first come first served, none lost."""

import random
import threading
import time
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest

from tests.conftest import long_after
from tests.patience import counted, wait_until
from tests.topox_core.runs.test_run import alive, processes, squares
from tests.topox_core.small_graphs import list_schedule
from tests.topox_ui.conftest import SCHEDULE, buttons, press, unbroken
from topox_core.errors import InputError
from topox_core.fabrics.planning.scheduled import prove
from topox_core.fabrics.run import JobRequest
from topox_core.runs.run import FunctionRun
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample
from topox_ui.answers.solving import joined
from topox_ui.runs.owner import RunKind, RunOwner
from topox_ui.runs.slots import SolverPlaces, Ticket, solver_places
from topox_ui.schedule.proving import RACE, race_key, run_race


def served(places: SolverPlaces, tickets: dict) -> list[str]:
    """End one holder after another; return the names in the order in which they were served."""
    order, open_tickets = [], dict(tickets)
    while open_tickets:
        for name in [n for n, t in open_tickets.items() if t.places]:
            order.append(name)
            places.give_back(open_tickets.pop(name))
    return order


def test_first_come_first_served_and_leaving_the_line_moves_the_others_up():
    places = SolverPlaces(1)
    tickets = {name: places.claim(name) for name in "abcd"}
    assert [places.position(t) for t in tickets.values()] == [0, 1, 2, 3]
    places.give_back(tickets.pop("b"))
    assert [places.position(t) for t in tickets.values()] == [0, 1, 2]
    assert served(places, tickets) == list("acd")


def test_a_session_that_holds_a_place_goes_behind_those_that_hold_none():
    places = SolverPlaces(2)
    greedy = object()
    first, second = places.claim(greedy), places.claim(greedy)
    third, other = places.claim(greedy), places.claim("other")
    assert (first.places, second.places) == (1, 1)
    assert (places.position(other), places.position(third)) == (1, 2)
    places.give_back(first)
    assert (other.places, third.places) == (1, 0)


def test_claims_of_one_session_wait_behind_the_first_claim_of_every_other():
    places = SolverPlaces(1)
    holder = places.claim("holder")
    mine = [places.claim("mine") for _ in range(3)]
    others = [places.claim(k) for k in range(3)]
    assert [places.position(t) for t in (mine[0], *others, mine[1], mine[2])] == [1, 2, 3, 4, 5, 6]
    places.give_back(holder)
    assert mine[0].places == 1


def test_nobody_waits_for_ever_behind_sessions_that_come_later():
    places = SolverPlaces(1)
    patient = "patient"
    first, second = places.claim(patient), places.claim(patient)
    for k in range(50):
        places.claim(k)
    places.give_back(first)  # holds nothing now, and came first
    assert second.places == 1


def test_who_can_use_several_places_has_them_while_nobody_waits():
    places = SolverPlaces(4)
    wide = places.claim("wide", most=4)
    assert wide.places == 4
    waiting = places.claim("other")
    assert (places.fit(wide), waiting.places) == (2, 1)
    places.give_back(waiting)
    assert places.fit(wide) == 4


def test_the_wait_follows_what_holders_know_and_what_runs_took_lately():
    places = SolverPlaces(1)
    holder, first, second = (places.claim(name, at_most_s=5.0) for name in "abc")
    holder.left_s = lambda: 40.0
    assert places.wait_s(first) == pytest.approx(40.0)
    assert places.wait_s(second) == pytest.approx(45.0)
    assert places.words(first).startswith("first in line, about 40")


@pytest.mark.parametrize("seed", long_after(4, range(20)))
def test_places_are_neither_lost_nor_made_up(seed):
    draw = random.Random(seed)
    places = SolverPlaces(draw.randint(1, 4))
    tickets = []
    for _ in range(300):
        what = draw.random()
        if what < 0.5:
            tickets.append(places.claim(draw.randrange(6), most=draw.randint(1, 5)))
        elif tickets and what < 0.8:
            places.give_back(tickets.pop(draw.randrange(len(tickets))))
        elif tickets:
            places.fit(draw.choice(tickets))
        assert sum(t.places for t in tickets) + places.free == places.places
        assert places.free == 0 or (places.free > 0 and places.waiting == 0)
        line = sorted(filter(None, map(places.position, tickets)))
        assert line == list(range(1, places.waiting + 1))


def test_who_waits_sees_the_place_in_the_line_and_cancel_leaves_it(visit):
    at, places = visit(SCHEDULE, sample="patience", clock="slots"), solver_places()
    for name in ("another",) * places.places + ("a", "b"):
        places.claim(name, at_most_s=40.0)
    press(at, "prove")
    (bar,) = at.get("progress")
    assert "third in line, about " in bar.proto.text and "prove" not in buttons(at)
    press(at, "cancel_proof")
    wait_until(lambda: places.waiting == 2)
    assert unbroken(at.run()).button(key="prove").label == "Prove it" and not at.get("progress")


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
    assert isinstance(second.run(WORK, "b"), Ticket)
    assert "first in line, about " in second.run(WORK).progress.words
    second.start(FREE, "c", counting())
    wait_until(lambda: second.run(FREE, "c").steps)
    assert isinstance(second.run(WORK, "b"), Ticket)
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
    assert owner.note(WORK) == "is wrong"
    wait_until(lambda: is_free(slot))
    owner.start(WORK, "a", Mock(side_effect=ValueError("a defect")))
    with pytest.raises(ValueError, match="a defect"):
        owner.ended(WORK)
    wait_until(lambda: is_free(slot))


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
    job, outcomes = (
        JobRequest(*load_sample("moe"), Settings.of(time_limit_s=300.0)),
        owner.results(RACE),
    )
    key = race_key(job)

    def begin() -> None:
        run = partial(run_race, job, outcomes, lambda _kept: None, None)
        owner.start(WORK, key, lambda _slots: FunctionRun(run), lambda _outcome: None)

    begin()
    wait_until(lambda: owner.run(WORK).steps and owner.run(WORK).steps[-1].engine != "list")
    owner.cancel(WORK)
    wait_until(lambda: owner.run(WORK) is None)
    assert owner.note(WORK) == "Stopped."
    assert [one.engine for one in outcomes[key]] == ["list"]
    wait_until(lambda: is_free(slot))
    begin()
    wait_until(lambda: owner.run(WORK).steps)
    assert owner.run(WORK).steps[0].engine == "highs"


def test_a_session_may_end_while_what_attends_its_run_is_about_to_start(monkeypatch, tmp_path):
    class SlowToStart(threading.Thread):
        def start(self) -> None:
            if self.name == "attend a run":
                time.sleep(0.2)
            super().start()

    owner, kind = RunOwner(SolverPlaces(1)), RunKind("kind")
    monkeypatch.setattr("topox_ui.runs.owner.threading.Thread", SlowToStart)
    begun = threading.Thread(
        target=owner.start, args=(kind, "key", lambda _slots: squares(tmp_path, [1]))
    )
    begun.start()
    wait_until(lambda: owner._attendants)
    owner.close()
    begun.join()
    assert owner.over() and not owner.busy
