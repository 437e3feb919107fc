"""The line in front of the solver places: first come first served, a share for every session, nobody lost."""

import random

import pytest

from tests.conftest import long_after
from tests.patience import wait_until
from tests.topox_ui.conftest import SCHEDULE, buttons, press, unbroken
from topox_ui.runs.slots import SolverPlaces, solver_places


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
    assert next(iter(places._holding)) is second


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
