"""When circuits change between stages: what an exact model must decide to count switching exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pair = tuple[int, int]
Tie = Literal["free", "same", "transposed", "symmetric"]


@dataclass(frozen=True)
class LinkRule:
    """How the links of the two groups are tied to each other, and what the round then pays for switching.

    Attributes
    ----------
    tie
        ``free``: not at all; ``same``: equal while both push; ``transposed``: group 1 pushes on the
        links on which group 0 pulls; ``symmetric``: both of them, nothing ever switches.
    dark
        Of the two stages of each group, how many seconds their start is dark.
    """

    tie: Tie
    dark: tuple[float, float]

    def key(self, group: int, pair: Pair) -> tuple[int, int, int]:
        """Return what stands for the links of a pair while a group pushes."""
        i, j = pair
        if self.tie == "free":
            return group, i, j
        if self.tie == "symmetric":
            return 0, min(i, j), max(i, j)
        return (0, j, i) if self.tie == "transposed" and group else (0, i, j)


def link_rules(reconfiguration_s: float) -> tuple[LinkRule, ...]:
    """Return the rules whose best rounds are together the best round, cheapest model first.

    Of the four changes between stages, A push to B push happens if and only if A pull to B pull
    does, and the other two alike, because pull runs on push's links transposed.
    """
    r = reconfiguration_s
    free = LinkRule("free", (r, r))
    return (
        (free,)
        if r == 0
        else (
            free,
            LinkRule("same", (r, 0.0)),
            LinkRule("transposed", (0.0, r)),
            LinkRule("symmetric", (0.0, 0.0)),
        )
    )
