"""Answers that are gone on with: no lock is lost, nothing that a file claims is believed."""

from dataclasses import replace

import pytest

from tests.labs_answered import AT, LABS, answered
from topox_core.errors import InputError
from topox_core.labs.answers import Attempt, Worked
from topox_core.labs.answers_file import taken_up, together
from topox_core.labs.student import (
    attempt,
    begin,
    closed,
    give_up,
    lock,
    may_compute,
    revealed,
    revealed_on,
    still_asked,
)

SIX = LABS["six-tasks"]
LATER = "2026-10-05T09:30:00Z"


def test_points_that_a_file_claims_are_not_believed() -> None:
    claimed = replace(answered(SIX, 1, 1), given={"W2": Worked((Attempt(AT, 3, points=1.0),), "")})
    read = taken_up(SIX, claimed, "edited.json")
    assert read.worked("W2").attempts[0].points == 0
    assert [closed(one, SIX.question("W2")) for one in (claimed, read)] == [True, False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lab": "crossover"}, "lab: must be 'six-tasks'"),
        ({"digest": "0" * 16}, "another version"),
        ({"versions": {"board": 2, "patience": 1}}, "another version"),
        ({"given": {"Z9": Worked()}}, "question Z9: is no question"),
        ({"given": {"P1": Worked()}}, "question P1: must be the answer of a predict screen"),
        ({"given": {"W2": Worked((Attempt(AT, "many", 0.0),))}}, "question W2"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(change, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        taken_up(SIX, replace(answered(SIX, 1, 1), **change), "x.json")
    assert str(refused.value).startswith("x.json") and "\n" not in str(refused.value)


def test_of_two_tabs_the_earlier_lock_and_all_attempts_hold() -> None:
    start = begin(SIX, "c", "s", AT, 1)
    first = lock(SIX, start, "P1", 9, AT)
    second = lock(SIX, lock(SIX, start, "P1", 12, LATER), "P2", "x", LATER)
    for both in (together(first, second), together(second, first)):
        held = both.prediction("P1").value, both.prediction("P2").value, both.finished
        assert held == (9, "x", LATER)
    tried = attempt(SIX, lock(SIX, first, "P2", "y", AT), "W2", 3, AT)[0]
    twice = attempt(SIX, tried, "W2", 4, LATER)[0]
    assert len(together(tried, twice).worked("W2").attempts) == 2
    ended = give_up(SIX, tried, "W2", LATER)
    assert together(ended, twice).worked("W2").given_up == LATER


@pytest.mark.parametrize("lab", LABS.values(), ids=list(LABS))
def test_no_figure_may_compute_before_a_reveal_and_none_shows_what_is_still_asked(lab) -> None:
    """A prediction that is locked is still asked for, until all is answered that its reveal waits for."""
    stages, nothing = [screen.stage for screen in lab.screens], begin(lab, "c", "s", AT, 1)
    assert not any(may_compute(lab, nothing, k) for k, one in enumerate(stages) if one == "reveal")
    for at in range(len(lab.screens) + 1):
        given = answered(lab, 1, at)
        for place, screen in enumerate(lab.screens):
            reveal = stages.index("reveal", place) if "reveal" in stages[place:] else len(stages)
            rest = [q for one in lab.screens[at:reveal] for q in one.questions]
            keys = {q.key for q in screen.questions if isinstance(q.key, str)}
            if any(q.stage != "explain" for q in rest):
                assert keys <= still_asked(lab, given, screen.instance)
    assert not any(still_asked(lab, given, screen.instance) for screen in lab.screens)


@pytest.mark.parametrize("lab", LABS.values(), ids=list(LABS))
def test_every_question_with_a_reveal_after_it_is_told_at_exactly_one(lab) -> None:
    done = answered(lab, 1, len(lab.screens))
    told = [name for at in range(len(lab.screens)) for name in revealed_on(lab, done, at)]
    last = max(at for at, screen in enumerate(lab.screens) if screen.stage == "reveal")
    assert told == [q.id for screen in lab.screens[:last] for q in screen.questions]
    assert all(revealed(lab, done, name).right for name in told)
