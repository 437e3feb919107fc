"""One answer to one question: whether it can be read, whether it is right, what it is worth, what is said to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

from topox_core.errors import check_known, refuse_if, shown
from topox_core.io.limits import is_number, is_whole, number_in
from topox_core.labs.generators.four_jobs import NAMES, FourJobs, grouping_of
from topox_core.labs.generators.generator import Matrix, Value
from topox_core.labs.hand_schedule import HandVerdict, check_by_hand, check_starts
from topox_core.labs.keys import (
    instance_of,
    key_of,
    matrix_of,
    mistakes_of,
    options_of,
)
from topox_core.labs.lab import Lab, Question

LARGEST = 1e12
# Points of a schedule that only has to be feasible and shortest: what feasible alone is worth.
FEASIBLE_SHARE = 0.6
# Points of a grouping: better than hill climbing; any that may be.
BETTER_SHARE, LEGAL_SHARE = 2 / 3, 1 / 3
HALF = 0.5


@dataclass(frozen=True)
class Marked:
    """What an answer is worth.

    Attributes
    ----------
    right
        Whether nothing is missing.
    share
        Of the points, before the share of its attempt.
    say
        Text of the misconception that it matches, as the lab file has it; empty if none.
    verdict
        Of a schedule entered by hand.
    """

    right: bool
    share: float
    say: str = ""
    verdict: HandVerdict | None = None


def read_answer(lab: Lab, question: Question, given: Any, seed: int) -> Any:
    """Return an answer in the form it is kept in: numbers rounded to the digits that are asked for.

    Raises
    ------
    InputError
        If it is none to such a question; this costs no attempt.
    """
    return _READERS[question.type](lab, question, seed, given)


def mark(lab: Lab, question: Question, given: Any, seed: int) -> Marked:
    """Mark an answer that :func:`read_answer` returned.

    Raises
    ------
    InputError
        If the question has no key.
    """
    truth: Any = key_of(lab, question, seed)
    verdict: HandVerdict | None = None
    if question.type == "schedule":
        instance = _instance(lab, question, seed)
        verdict = check_by_hand(instance.graph(), instance.cluster(), given)
        share = _of_schedule(question, verdict, truth) if verdict.broken is None else 0.0
    else:
        share = float(_share(lab, question, given, truth, seed))
    say = "" if share >= 1 else _said(lab, question, given, seed, verdict)
    return Marked(share >= 1, share, say, verdict)


def points_of(question: Question, share: float, number: int) -> float:
    """Return the points of a worked answer in attempt ``number``, counted from 0, to two digits."""
    return round(question.points * share * question.share(number), 2)


def _share(lab: Lab, question: Question, given: Any, truth: Any, seed: int) -> float:
    """Return the share of points of an answer that is no schedule."""
    match question.type:
        case "number":
            return _is_near(question, given, truth)
        case "multi":
            return _of_several(question, set(given), set(truth))
        case "matrix":
            return _of_matrix(matrix_of(lab, question, seed), given, truth)
        case "grouping":
            return _of_grouping(_instance(lab, question, seed), given)
    several = question.type == "choice" and isinstance(truth, tuple)
    return given in truth if several else _compared(question, given) == truth


def _is_near(question: Question, given: float, truth: float) -> bool:
    width = question.tolerance.width(truth)
    if width == 0:
        return round(given, question.digits) == round(truth, question.digits)
    return abs(given - truth) <= width * (1 + 1e-9)


def _of_schedule(question: Question, verdict: HandVerdict, optimum_ms: float) -> float:
    """Return the share of points of a schedule that is feasible.

    With a tolerance: :data:`FEASIBLE_SHARE`, and all if it is the shortest within it. Without: the
    optimum over its own length, rounded down to half a point.
    """
    over_ms = verdict.makespan_ms - optimum_ms
    tolerance = question.tolerance
    if tolerance.absolute is not None or tolerance.percent is not None:
        return 1.0 if over_ms <= tolerance.width(optimum_ms) + 1e-9 else FEASIBLE_SHARE
    if over_ms <= 1e-9 or not question.points:
        return 1.0
    points = question.points * optimum_ms / verdict.makespan_ms
    return float(floor(points / HALF) * HALF / question.points)


def _of_several(question: Question, given: set[str], truth: set[str]) -> float:
    """Return the share of a set of options: half of it while no more are wrong than the tolerance."""
    wrong = len(given ^ truth)
    if wrong == 0:
        return 1.0
    return HALF if wrong <= (question.tolerance.absolute or 0) else 0.0


def _of_matrix(matrix: Matrix, given: Any, truth: Any) -> float:
    """Return the share of a matrix: of cells that are right, or of marks all or half for their number."""
    pairs: list[tuple[int, int]] = [
        (a, b)
        for row, true_row in zip(given, truth, strict=True)
        for a, b in zip(row, true_row, strict=True)
    ]
    if not matrix.marks:
        return sum(a == b for a, b in pairs) / len(pairs)
    if all(a == b for a, b in pairs):
        return 1.0
    once = all(sum(row) <= 1 for row in given)
    return HALF if once and sum(a for a, _ in pairs) == sum(b for _, b in pairs) else 0.0


def _of_grouping(instance: FourJobs, given: Mapping[str, str]) -> float:
    round_s = instance.round_s(grouping_of(_letters(given)))
    if round_s <= instance.best_s:
        return 1.0
    return BETTER_SHARE if round_s < instance.climb[1] else LEGAL_SHARE


def _said(lab: Lab, question: Question, given: Any, seed: int, verdict: HandVerdict | None) -> str:
    """Return what is said to a wrong answer: of its misconception, else of the question; may be empty."""
    for one in question.feedback:
        if one.option is not None and one.option == given:
            return one.say
        if verdict is not None and verdict.broken and one.equation == verdict.broken.equation:
            return one.say
    for feedback, value in mistakes_of(lab, question, seed):
        if _equals(question, given, value, verdict):
            return feedback.say
    return question.otherwise


def _equals(question: Question, given: Any, value: Value, verdict: HandVerdict | None) -> bool:
    if verdict is not None:
        return verdict.broken is None and verdict.makespan_ms == value
    if question.type == "number":
        return isinstance(value, int | float) and _is_near(question, given, float(value))
    return bool(_compared(question, given) == _compared(question, value))


def _compared(question: Question, one: Any) -> Any:
    """Return an answer, or a value, in the form in which equal ones are equal."""
    return _FORMS[question.type](one) if question.type in _FORMS else one


def _letters(groups: Mapping[str, str] | str) -> str:
    """Return the group of each of four jobs, in their order."""
    return groups if isinstance(groups, str) else "".join(groups[name] for name in NAMES)


_FORMS: Mapping[str, Callable[[Any], Any]] = {
    "multi": frozenset,
    "order": tuple,
    "matrix": lambda rows: tuple(map(tuple, rows)),
    "grouping": _letters,
}

# -- reading --------------------------------------------------------------------------------------


def _instance(lab: Lab, question: Question, seed: int) -> Any:
    return instance_of(lab, lab.screens[lab.screen_of(question.id)], seed)


def _number(_lab: Lab, question: Question, _seed: int, given: Any) -> float:
    read = given
    if isinstance(given, str):
        text = given.strip().replace("\u00a0", "")
        if unit := question.unit:  # the field names it, so people write it as well
            text = text.casefold().removesuffix(unit.casefold()).rstrip()
        if text.count(",") == 1 and "." not in text:
            text = text.replace(",", ".")
        read = number_in(text)
    refuse_if(
        (not is_number(read, -LARGEST, LARGEST), f"must be a number (got {shown(given)})"),
        field="value",
    )
    value = round(float(read), question.digits)
    return int(value) if value.is_integer() else value


def _one_option(lab: Lab, question: Question, seed: int, given: Any) -> str:
    check_known(given, options_of(lab, question, seed), "option", field="value")
    return str(given)


def _several(lab: Lab, question: Question, seed: int, given: Any) -> list[str]:
    options = options_of(lab, question, seed)
    refuse_if(
        (
            not isinstance(given, list | tuple) or len(given) > len(options),
            f"must be a list of options (got {shown(given)})",
        ),
        field="value",
    )
    chosen, ordered = (
        [_one_option(lab, question, seed, one) for one in given],
        question.type == "order",
    )
    refuse_if(
        (len(set(chosen)) < len(chosen), "has an option twice", "value"),
        (ordered and len(chosen) < len(options), "must have every option", "value"),
    )
    # A set has no order: two files of the same marks are the same.
    return chosen if ordered else [one for one in options if one in chosen]


def _matrix(lab: Lab, question: Question, seed: int, given: Any) -> list[list[int]]:
    matrix = matrix_of(lab, question, seed)
    rows = given if isinstance(given, list | tuple) else ()
    shaped = len(rows) == len(matrix.rows) and all(
        isinstance(row, list | tuple) and len(row) == len(matrix.columns) for row in rows
    )
    refuse_if(
        (
            not shaped,
            f"must be {len(matrix.rows)} rows of {len(matrix.columns)} cells (got {shown(given)})",
        ),
        field="value",
    )
    most = 1 if matrix.marks else 1_000
    wrong = [cell for row in rows for cell in row if not is_whole(cell, 0, most)]
    refuse_if(
        (wrong, f"must hold whole numbers from 0 to {most:,} (got {shown(*wrong[:1] or [''])})"),
        field="value",
    )
    uneven = matrix.symmetric and any(
        rows[i][j] != rows[j][i] or (i == j and rows[i][j])
        for i in range(len(rows))
        for j in range(len(rows))
    )
    refuse_if((uneven, "must mark both cells of a pair, and none of its own"), field="value")
    return [list(row) for row in rows]


def _starts(lab: Lab, question: Question, seed: int, given: Any) -> dict[str, Any]:
    refuse_if(
        (not isinstance(given, dict), f"must be an object: a start a task (got {shown(given)})"),
        field="value",
    )
    check_starts(_instance(lab, question, seed).graph(), given)
    return dict(given)


def _groups(_lab: Lab, _question: Question, _seed: int, given: Any) -> dict[str, str]:
    whole = isinstance(given, dict) and sorted(given) == sorted(NAMES)
    right = whole and all(group in ("A", "B") for group in given.values())
    refuse_if(
        (not right, f"must say A or B for each of {', '.join(NAMES)} (got {shown(given)})"),
        field="value",
    )
    return dict(given)


def _text(_lab: Lab, question: Question, _seed: int, given: Any) -> str:
    refuse_if((not isinstance(given, str), f"must be text (got {shown(given)})"), field="value")
    length = len(given.strip())
    refuse_if(
        (
            not question.least <= length <= question.most,
            f"must be {question.least:,} to {question.most:,} characters (got {length:,})",
        ),
        field="value",
    )
    return str(given)


_READERS = {
    "number": _number,
    "choice": _one_option,
    "multi": _several,
    "order": _several,
    "matrix": _matrix,
    "schedule": _starts,
    "grouping": _groups,
    "text": _text,
}
