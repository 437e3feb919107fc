"""No plan serves a demand matrix sooner: three bounds on every line."""

from __future__ import annotations

import math

import numpy as np

from topox_core.model.transfer_graph import FloatArray
from topox_core.schedule.bounds.unrounded import Bound


def lower_bound(
    demand_ms: FloatArray, switches: int, delay_ms: float, first_free: bool = False
) -> Bound:
    """Return the largest bound over all lines (rows and columns) of the matrix.

    A line has the sum R, v entries and the largest entry m; there are s switches and a delay of
    delta. No plan is shorter than any of

    * (R + delta v) / s. A configuration serves at most one entry of a line, so v of them at least
      serve it; with their set-ups they hold the s switches for R + delta v together, and one switch
      for at least the mean.
    * delta ceil(v / s). One switch has at least ceil(v / s) of these configurations, each after its
      set-up.
    * m / s + delta. At most s switches serve the largest entry; one of them does for at least m / s,
      after its set-up.

    If the first configuration of a switch is free, the set-ups number v - s together (not below 0)
    and ceil(v / s) - 1 on one switch, and the last bound is m / s.
    """
    best = Bound(0.0, "nothing to send")
    s = switches
    for side, matrix in (("row", demand_ms), ("column", demand_ms.T)):
        for k, line in enumerate(np.asarray(matrix)):
            entries = int((line > 0).sum())
            if not entries:
                continue
            total, largest = float(line.sum()), float(line.max())
            free = first_free
            paid = max(0, entries - s) if free else entries
            most = math.ceil(entries / s) - (1 if free else 0)
            name = f"{side} {k + 1}"
            for ms, by in (
                ((total + delay_ms * paid) / s, f"all of {name} on {s} switches"),
                (delay_ms * most, f"the set-ups for the {entries} entries of {name}"),
                (
                    largest / s + (0.0 if free else delay_ms),
                    f"the largest entry of {name} on {s} switches",
                ),
            ):
                if ms > best.ms * (1 + 1e-12):
                    best = Bound(ms, by)
    return best
