"""Sizes from which CP-SAT is used differently; apart from its own file, which loads OR-Tools."""

from __future__ import annotations

WHOLE_TASKS = 600  # up to so many the problem is one model
LEARNING_TASKS = 250  # below, learning from conflicts decides sooner than linear programmes
