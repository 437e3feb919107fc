"""What a field of a job may be: refused by name, with the nearest values that work."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError
from topox_core.schema.fields import PRINTABLE, setting

MAX = 1_000_000  # more than any job has
MAX_NAME = 200


def degree(title: str, description: str, unit: str = "") -> Any:
    """Return what a field is annotated with that counts GPUs, layers or the like."""
    return setting(title, unit, description, ge=1, le=MAX)


def width(title: str, description: str, unit: str = "") -> Any:
    """Return what a field is annotated with that is a width of a model, or a length."""
    return setting(title, unit, description, ge=1, le=100_000_000)


def short_text() -> Any:
    """Return what a field is annotated with that is a name or a heading."""
    return setting(without=PRINTABLE, max_length=MAX_NAME)


@dataclass(frozen=True)
class Rule:
    """What a whole number must do, in words that follow "must", and whether it does."""

    words: str
    holds: Callable[[int], bool]


def obey(part: object, item: str, name: str, rules: Iterable[Rule], most: int = MAX) -> None:
    """Refuse a whole number that breaks a rule; the nearest ones that keep all of them are named.

    ``most`` is the largest number that is worth naming.

    Raises
    ------
    InputError
        If it breaks one; part (``item``) and field are named.
    """
    value, kept = getattr(part, name), list(rules)
    for rule in kept:
        if not rule.holds(value):
            near = nearest(value, lambda one: all(each.holds(one) for each in kept), most)
            hint = f"{' and '.join(f'{one:,}' for one in near)} would do" if near else ""
            got = "; ".join(filter(None, (f"got {value:,}", hint)))
            raise InputError(f"must {rule.words} ({got})", item=item, field=name)


def divides(total: int, what: str) -> Rule:
    """Return the rule that a number divides ``total``."""
    return Rule(f"divide {what}, {total:,}", lambda one: total % one == 0)


def nearest(value: int, works: Callable[[int], bool], most: int = MAX) -> list[int]:
    """Return the nearest number below and the nearest above that work, as far as there are such."""
    below = next((one for one in range(min(value - 1, most), 0, -1) if works(one)), None)
    above = next((one for one in range(value + 1, most + 1) if works(one)), None)
    return [one for one in (below, above) if one is not None]
