"""A lab on the projector: slides in order, votes counted in the room, and the plan's clock."""

from __future__ import annotations

import pytest

from tests.labs_answered import LABS
from topox_core.errors import InputError
from topox_core.labs.presentation import START, planned_until, slides
from topox_core.labs.tally import MOST_VOTES, counted_statistics, read_called_out

LAB = LABS["six-tasks"]
EACH = pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)


@EACH
def test_next_shows_every_question_then_its_tally_then_its_reveal(lab) -> None:
    every = [(one.place, one.show) for one in slides(lab)]
    assert every[0][0] == START and len(set(every)) == len(every)
    asked = [one for one in every if one[0] in {question.id for question in lab.questions}]
    assert asked == [
        (question.id, show)
        for question in lab.questions
        for show in ("ask", "tally", "reveal")
        if show != "tally" or question.stage != "explain"
    ]
    asks_nothing = [one.id for one in lab.screens if not one.questions]
    assert [place for place, _ in every if place in asks_nothing] == asks_nothing


@EACH
def test_a_plan_never_runs_backwards(lab) -> None:
    asked = [one for one in slides(lab) if one.show == "ask"]
    known = [until for one in asked if (until := planned_until(lab, one)) is not None]
    assert known == sorted(known) and known[-1] <= lab.minutes


def test_hands_are_counted_before_and_after_the_discussion() -> None:
    question = LAB.question("P2")  # seed 0: y goes first
    one = counted_statistics(LAB, question, {"x": 6, "y": 4}, {"x": 2, "y": 8})
    assert (one.count, one.right, one.right_again) == (10, 0.4, 0.8)
    assert one.options == (("x", 6), ("y", 4), ("either", 0), ("both", 0))


@pytest.mark.parametrize(
    ("text", "votes"),
    [
        ("9", {9: 1}),
        ("9, 10 x5, 12x3", {9: 1, 10: 5, 12: 3}),
        ("9 10×5; 9", {9: 2, 10: 5}),
        ("10,4 x2, 10.4", {10: 3}),  # decimal comma; rounded to the digits that are asked for
        ("", {}),
    ],
)
def test_numbers_called_out_are_read_with_how_many_said_them(text: str, votes: dict) -> None:
    question = LAB.question("P1")
    assert read_called_out(LAB, question, text) == votes
    assert counted_statistics(LAB, question, votes).count == sum(votes.values())


@pytest.mark.parametrize(
    "text", ["nine", "9 x", "9 x99999", f"9 x{MOST_VOTES + 1}", "nan", "9 xx2"]
)
def test_what_is_no_number_is_named(text: str) -> None:
    with pytest.raises(InputError):
        read_called_out(LAB, LAB.question("P1"), text)
