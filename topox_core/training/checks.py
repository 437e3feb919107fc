"""What a field of a job may be: refused by name, with the nearest values that work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topox_core.errors import InputError, shown
from topox_core.io.ranges import check_one_of, check_text, check_whole, is_number

# More than any job has; speeds and times beyond these are typing errors.
MOST = 1_000_000
SLOWEST, FASTEST = 1e-6, 1e12
MAX_NAME = 200


@dataclass(frozen=True)
class Fields:
    """The fields of one part of a job, which errors call ``item``."""

    part: object
    item: str

    def whole(self, names: str, least: int = 1, most: int = MOST) -> None:
        """Refuse fields (names separated by blanks) that are not whole numbers from ``least`` to ``most``.

        Raises
        ------
        InputError
            Here and in every method below: if one is not; part and field are named.
        """
        for name in names.split():
            check_whole(getattr(self.part, name), least, most, item=self.item, field=name)

    def number(self, names: str, least: float = SLOWEST, most: float = FASTEST) -> None:
        """Refuse fields that are not numbers from ``least`` to ``most``."""
        for name in names.split():
            value = getattr(self.part, name)
            if not is_number(value, least, most):
                problem = f"must be a number from {least:g} to {most:g} (got {shown(value)})"
                raise self.wrong(name, problem)

    def flag(self, names: str) -> None:
        """Refuse fields that are neither true nor false."""
        for name in names.split():
            value = getattr(self.part, name)
            if not isinstance(value, bool):
                raise self.wrong(name, f"must be true or false (got {shown(value)})")

    def text(self, names: str, least: int = 0) -> None:
        """Refuse fields that are no short printable text."""
        for name in names.split():
            check_text(getattr(self.part, name), MAX_NAME, least, item=self.item, field=name)

    def choice(self, name: str, choices: Iterable[object]) -> None:
        """Refuse a field that is none of ``choices``."""
        known, value = list(choices), getattr(self.part, name)
        if all(isinstance(one, str) for one in known):
            check_one_of(value, map(str, known), item=self.item, field=name)
        elif isinstance(value, bool) or value not in known:
            words = ", ".join(map(str, known))
            raise self.wrong(name, f"must be one of {words} (got {shown(value)})")

    def wrong(self, name: str, problem: str) -> InputError:
        """Return the error of a field."""
        return InputError(problem, item=self.item, field=name)

    def obey(self, name: str, rules: Iterable[Rule], most: int = MOST) -> None:
        """Refuse a whole number that breaks a rule; the nearest ones that keep all of them are named.

        ``most`` is the largest number that is worth naming.
        """
        value, kept = getattr(self.part, name), list(rules)
        for rule in kept:
            if not rule.holds(value):
                near = nearest(value, lambda one: all(each.holds(one) for each in kept), most)
                hint = f"{' and '.join(f'{one:,}' for one in near)} would do" if near else ""
                got = "; ".join(filter(None, (f"got {value:,}", hint)))
                raise self.wrong(name, f"must {rule.words} ({got})")


@dataclass(frozen=True)
class Rule:
    """What a whole number must do, in words that follow "must", and whether it does."""

    words: str
    holds: Callable[[int], bool]


def divides(total: int, what: str) -> Rule:
    """Return the rule that a number divides ``total``."""
    return Rule(f"divide {what}, {total:,}", lambda one: total % one == 0)


def nearest(value: int, works: Callable[[int], bool], most: int = MOST) -> list[int]:
    """Return the nearest number below and the nearest above that work, as far as there are such."""
    below = next((one for one in range(min(value - 1, most), 0, -1) if works(one)), None)
    above = next((one for one in range(value + 1, most + 1) if works(one)), None)
    return [one for one in (below, above) if one is not None]
