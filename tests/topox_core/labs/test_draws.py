"""Draws with names: the published vectors, and that a student's seed does not depend on spelling."""

import pytest

from topox_core.errors import InputError
from topox_core.labs.generators.generator import (
    KEPT_SEEDS,
    MAX_ATTEMPTS,
    Draws,
    first_that,
    seed_of,
)


def test_draws_are_those_that_any_language_makes() -> None:
    assert Draws("a", 1, 0).whole("x", 1, 6) == 3
    assert Draws("a", 1, 0).shuffle("s", [1, 2, 3, 4]) == [1, 2, 4, 3]


@pytest.mark.parametrize(
    ("course", "student", "seed"),
    [
        ("NET-401", "s1234567", 58157343),
        (" net-401 ", "S1234567", 58157343),
        ("NET-401", "s1234568", 13495181),
        ("optics 2026", "ada", 64546851),
    ],
)
def test_a_student_has_one_seed(course: str, student: str, seed: int) -> None:
    assert seed_of(course, student) == seed


def test_no_student_has_a_seed_of_the_class() -> None:
    assert all(seed_of("c", str(k)) >= KEPT_SEEDS for k in range(2_000))


def test_the_first_attempt_that_holds_is_the_instance() -> None:
    assert first_that("a", 0, lambda draws: draws if draws.attempt >= 3 else None).attempt == 3


def test_a_generator_that_never_holds_says_so() -> None:
    with pytest.raises(InputError, match=f"generator a in {MAX_ATTEMPTS:,} attempts"):
        first_that("a", 7, lambda draws: None)
    with pytest.raises(InputError, match="at least 0"):
        first_that("a", -1, lambda draws: draws)
