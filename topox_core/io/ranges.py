"""Numbers in range: one test and one sentence for every setting that must be a number."""

import math
from collections.abc import Iterable
from typing import TypeGuard

from topox_core.errors import InputError, shown


def is_whole(value: object, least: int = 1, most: float = math.inf) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number (no truth value) from ``least`` to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(
    value: object, least: float = 0.0, most: float = math.inf, *, above: bool = False
) -> TypeGuard[float]:
    """Return whether ``value`` is a finite number from (or above) ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (value > least if above else value >= least) and value <= most and value < math.inf


def number_in(text: str) -> float:
    """Return the number that a text is; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_one_of(
    value: object, choices: Iterable[str], *, file: str = "", item: str = "", field: str = ""
) -> None:
    """Refuse what is none of the words in ``choices``.

    Raises
    ------
    InputError
        If it is not; file, item and field are named.
    """
    names = list(choices)
    if value not in names:
        problem = f"must be one of {', '.join(names)} (got {shown(value)})"
        raise InputError(problem, file=file, item=item, field=field)


def check_text(
    value: object, most: int, least: int = 0, *, file: str = "", item: str = "", field: str = ""
) -> None:
    """Refuse what is not printable text of ``least`` (blank counts as nothing) to ``most`` characters.

    Raises
    ------
    InputError
        If it is not; file, item and field are named.
    """
    readable = isinstance(value, str) and value.isprintable() and len(value) <= most
    if not readable or (least and not str(value).strip()):
        span = f"{least} to {most}" if least else f"at most {most}"
        problem = f"must be printable text of {span} characters (got {shown(value)})"
        raise InputError(problem, file=file, item=item, field=field)


def check_whole(
    value: object,
    least: int = 1,
    most: int | None = None,
    *,
    file: str = "",
    item: str = "",
    field: str = "",
) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``.

    Raises
    ------
    InputError
        If it is not; file, item and field are named.
    """
    if not is_whole(value, least, math.inf if most is None else most):
        span = f"of at least {least}" if most is None else f"from {least:,} to {most:,}"
        problem = f"must be a whole number {span} (got {shown(value)})"
        raise InputError(problem, file=file, item=item, field=field)


def check_number(
    value: object, least: float = 0.0, *, above: bool = False, file: str = "", field: str = ""
) -> None:
    """Refuse what is not a finite number of at least (or above) ``least``.

    Raises
    ------
    InputError
        If it is not; file and field are named.
    """
    if not is_number(value, least, above=above):
        span = f"{'above' if above else 'of at least'} {least:g}"
        raise InputError(f"must be a number {span} (got {shown(value)})", file=file, field=field)
