"""What a visitor sees while all solver places are taken: the place in the line, and a Cancel that leaves it."""

from tests.patience import wait_until
from tests.topox_ui.conftest import SCHEDULE, buttons, press, unbroken
from topox_ui.runs.slots import solver_places


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
