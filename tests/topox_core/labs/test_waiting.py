"""What a screen waits for: nothing behind a reveal is open before that reveal could be."""

from __future__ import annotations

from tests.labs_answered import LABS
from topox_core.labs.student import begin, give_up, lock, waiting_for

LAB = LABS["six-tasks"]
PLACE = {screen.id: at for at, screen in enumerate(LAB.screens)}
NOW = "2026-11-01T10:00:00Z"


def test_a_screen_behind_a_reveal_waits_for_what_the_reveal_waits_for() -> None:
    answers = begin(LAB, "course", "student", NOW, 1)
    assert waiting_for(LAB, answers, PLACE["by-hand"]) == ("P1", "P2")
    answers = lock(LAB, lock(LAB, answers, "P1", 9, NOW), "P2", "x", NOW)
    assert waiting_for(LAB, answers, PLACE["critical"]) == ()
    assert waiting_for(LAB, answers, PLACE["both-orders"]) == ("W1", "W2")
    assert waiting_for(LAB, answers, PLACE["weights"]) == ("W1", "W2")
    assert waiting_for(LAB, answers, PLACE["reached"]) == ("W1", "W2", "P3", "W3")
    answers = give_up(LAB, give_up(LAB, answers, "W1", NOW), "W2", NOW)
    assert waiting_for(LAB, answers, PLACE["weights"]) == ()
    answers = lock(LAB, answers, "P3", "once", NOW)
    assert waiting_for(LAB, answers, PLACE["reached"]) == ("W3",)
