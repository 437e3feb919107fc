"""The checker's verdict: each constraint with its equation, how much was checked, and what broke it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from topox_core.check.intervals import Bool, Int, Openings

# Enough to see the pattern of a mistake; a page or a terminal needs no more, and counting goes on.
KEPT_VIOLATIONS = 50


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken constraint: which, its equation, the item at fault, and what is wrong in one line."""

    constraint: str
    equation: str
    item: str
    message: str

    def __str__(self) -> str:
        return f"{self.constraint} ({equation_words(self.equation)}), {self.item}: {self.message}"


@dataclass(slots=True)
class ConstraintReport:
    """One constraint: ``checked`` instances of it were looked at, ``violated`` of them fail.

    ``equation`` is the number in the TOPO-X paper (``"5"``), or ``"p_j"`` (durations),
    ``"physical"`` (what the printed model leaves out) or ``"lowering"`` (collectives as transfers).
    ``violations`` keeps the first ones; whoever checks adds to them.
    """

    name: str
    equation: str
    checked: int = 0
    violations: list[Violation] = field(default_factory=list)
    violated: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing breaks it."""
        return self.violated == 0

    @property
    def label(self) -> str:
        """The equation in words, e.g. ``eq. 5``."""
        return equation_words(self.equation)

    def add(self, item: str, message: str) -> None:
        """Note one violation."""
        self.violated += 1
        if len(self.violations) < KEPT_VIOLATIONS:
            self.violations.append(Violation(self.name, self.equation, item, message))

    def each(self, positions: Iterable[int], describe: Callable[[int], tuple[str, str]]) -> None:
        """Note a violation for each position.

        ``describe`` gives its item and message, and is called only for those that are kept.
        """
        for position in positions:
            if len(self.violations) < KEPT_VIOLATIONS:
                self.add(*describe(int(position)))
            else:
                self.violated += 1

    def where(self, wrong: Bool, describe: Callable[..., tuple[str, str]]) -> None:
        """Note a violation for each place of an array that is wrong; ``describe`` is given its indices."""
        places = np.argwhere(wrong).tolist()
        self.each(range(len(places)), lambda n: describe(*places[n]))

    def above(
        self,
        openings: Openings,
        group: Int,
        capacity: int,
        describe: Callable[[int, int], tuple[str, str]],
    ) -> None:
        """Note a violation for each interval that takes its group above its capacity.

        ``describe`` is given the interval and how many are open then.
        """
        over, open_now = openings.above(group, capacity)
        self.each(range(len(over)), lambda n: describe(int(over[n]), int(open_now[n])))


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The verdict on one schedule, constraint by constraint; only those that apply are listed."""

    constraints: tuple[ConstraintReport, ...]

    @property
    def ok(self) -> bool:
        """Whether every constraint holds."""
        return all(constraint.ok for constraint in self.constraints)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations that were kept, in the order of the constraints."""
        return tuple(v for constraint in self.constraints for v in constraint.violations)

    @property
    def violated(self) -> int:
        """How many violations there are, kept or not."""
        return sum(constraint.violated for constraint in self.constraints)

    @property
    def equations(self) -> dict[str, bool]:
        """Of each equation that was checked, whether all that belongs to it holds."""
        wrong = {constraint.equation for constraint in self.constraints if not constraint.ok}
        return {one.equation: one.equation not in wrong for one in self.constraints}

    def lines(self, limit: int = 10) -> tuple[str, ...]:
        """Return the first violations in words, at most ``limit``, and how many more there are."""
        first = tuple(str(violation) for violation in self.violations[:limit])
        more = self.violated - len(first)
        return (*first, f"and {more:,} more") if more > 0 else first


def equation_words(equation: str) -> str:
    """Return ``eq. 5`` for a number of the paper, the word itself otherwise."""
    return f"eq. {equation}" if equation.isdigit() else equation


def ms(value: float) -> str:
    """Return a time for a message, e.g. ``12.5 ms``."""
    return f"{value:.9g} ms"
