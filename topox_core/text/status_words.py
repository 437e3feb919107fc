"""Why a search stopped, in words: one table for each place that says so, keyed by ``stopped_by``."""

from __future__ import annotations

# A schedule's card.
STOPPED_BY = {
    "proof": "proof",
    "lowering": "proof for this lowering",
    "time_limit": "time limit",
    "gap": "gap reached",
    "cancelled": "cancelled",
    "heuristic": "end of its search",
    "failed": "solver failed",
}
# A round of jobs.
ROUND_STOPPED_BY = {**STOPPED_BY, "cancelled": "you"}
# A search for a parallelisation strategy, under the number of strategies tried.
STRATEGY_STOPPED_BY = {
    "budget": "as many as allowed",
    "cancelled": "stopped by you",
    "proof": "then all tried",
    "fixed": "nothing left to choose",
}
# The end of a printed line.
ENDED = {
    "proof": "proved",
    "lowering": "proved for this lowering",
    "time_limit": "stopped by the time limit",
    "gap": "stopped at the gap asked for",
    "cancelled": "cancelled",
    "heuristic": "ended without a proof",
    "failed": "the solver failed",
}
