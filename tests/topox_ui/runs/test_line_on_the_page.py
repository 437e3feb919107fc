"""What a visitor sees while all solver places are taken: the place in the line, a Cancel that leaves it, and then the proof."""

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import SCHEDULE, words
from topox_ui.runs.slots import solver_places


def bars(at) -> list[str]:
    return [bar.proto.text for bar in at.get("progress")]


def taken():
    """Take every solver place as another session would, and put three more in the line."""
    places = solver_places()
    held = [places.claim("another", at_most_s=40.0) for _ in range(places.places)]
    return held, [places.claim(name, at_most_s=40.0) for name in ("a", "b")]


@pytest.mark.long
def test_who_waits_sees_the_place_in_the_line_and_is_served_in_turn(visit):
    at = visit(SCHEDULE, sample="patience", clock="slots")
    held, waiting = taken()
    at.button(key="prove").click().run()
    assert not at.exception and not at.warning and not at.error
    assert "third in line, about " in bars(at)[0]
    assert [b for b in at.button if b.key == "prove"] == []
    solver_places().give_back(waiting[0])
    assert "second in line, about " in bars(at.run())[0]
    for ticket in (*waiting, *held):
        solver_places().give_back(ticket)
    wait_until(lambda: "Proved optimal" in words(at.run()))
    wait_until(lambda: solver_places().free == solver_places().places)


def test_cancel_leaves_the_line(visit):
    at = visit(SCHEDULE, sample="patience", clock="slots")
    taken()
    at.button(key="prove").click().run()
    assert solver_places().waiting == 3
    at.button(key="cancel_proof").click().run()
    wait_until(lambda: solver_places().waiting == 2)
    at.run()
    assert at.button(key="prove").label == "Prove it"
    assert not at.exception and bars(at) == []
