"""Up to which size CP-SAT is given a problem as one model; apart from its own file, which loads OR-Tools."""

from __future__ import annotations

WHOLE_TASKS = 600
