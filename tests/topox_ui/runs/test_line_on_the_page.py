"""What a visitor sees while all solver places are taken: the place in the line, a Cancel that leaves it, and then the proof."""

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import SCHEDULE, buttons, press, unbroken, words
from topox_ui.runs.slots import solver_places


def bars(at) -> list[str]:
    return [bar.proto.text for bar in at.get("progress")]


def in_line(visit):
    """Ask for a proof while another session has every place, and two more are in the line."""
    at, places = visit(SCHEDULE, sample="patience", clock="slots"), solver_places()
    held = [places.claim("another", at_most_s=40.0) for _ in range(places.places)]
    before = [places.claim(name, at_most_s=40.0) for name in ("a", "b")]
    press(at, "prove")
    assert "third in line, about " in bars(at)[0] and "prove" not in buttons(at)
    return at, [*before, *held]


@pytest.mark.long
def test_who_waits_sees_the_place_in_the_line_and_is_served_in_turn(visit):
    at, (first, *others) = in_line(visit)
    solver_places().give_back(first)
    assert "second in line, about " in bars(unbroken(at.run()))[0]
    for ticket in (first, *others):
        solver_places().give_back(ticket)
    wait_until(lambda: "Proved optimal" in words(at.run()))
    wait_until(lambda: solver_places().free == solver_places().places)


def test_cancel_leaves_the_line(visit):
    at, _ = in_line(visit)
    press(at, "cancel_proof")
    wait_until(lambda: solver_places().waiting == 2)
    unbroken(at.run())
    assert at.button(key="prove").label == "Prove it" and bars(at) == []
