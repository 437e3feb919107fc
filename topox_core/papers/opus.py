"""All cards on photonic rails (arXiv 2507.08119), with their claims."""

from __future__ import annotations

from topox_core.papers import (
    opus_constraints,
    opus_cost,
    opus_practices,
    opus_provisioning,
    opus_rails,
    opus_switches,
    opus_window_lengths,
    opus_windows,
)

CARDS = (
    opus_practices.CARD,
    opus_constraints.CARD,
    opus_windows.CARD,
    opus_window_lengths.CARD,
    opus_switches.CARD,
    opus_cost.CARD,
    opus_provisioning.CARD,
    opus_rails.CARD,
)
CLAIMS = (
    *opus_practices.CLAIMS,
    *opus_constraints.CLAIMS,
    *opus_windows.CLAIMS,
    *opus_window_lengths.CLAIMS,
    *opus_switches.CLAIMS,
    *opus_cost.CLAIMS,
    *opus_provisioning.CLAIMS,
    *opus_rails.CLAIMS,
)
