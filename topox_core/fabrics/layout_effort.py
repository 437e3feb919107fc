"""How far a search of layouts may go: layouts tried and work of simulating them, counted alike on every machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Of a first answer: layouts tried, and what simulating them may take, in paths looked at on links. It
# runs beside every plan: 0.1 to 1 s on the samples, where eight times the work takes up to 2.5 s and
# gives circuits that are 0 to 10 % faster.
FIRST_STEPS, FIRST_WORK = 20_000, 1_000_000
# In a descent so many layouts that were looked at before count as one that is tried; annealing counts
# each draw, for with few layouts in all it draws the same ones again and again.
DRAWS = 10


@dataclass
class Effort:
    """Layouts that may be tried and the work that simulating them may take, and what is spent of both."""

    steps: int
    work: float = math.inf
    tried: float = 0.0
    worked: int = 0

    @staticmethod
    def of(steps: int) -> Effort:
        """Return the effort of so many layouts; of a first answer for 0."""
        return Effort(steps) if steps else Effort(FIRST_STEPS, FIRST_WORK)

    @property
    def spent(self) -> float:
        """Share that is used up; 1 and more is the end."""
        return max(self.tried / self.steps, self.worked / self.work) if self.steps else 1.0

    def part(self, share: float) -> Effort:
        """Return a share of the effort, nothing of it spent."""
        return Effort(round(self.steps * share), self.work * share)
