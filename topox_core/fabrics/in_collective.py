"""Switching inside collectives: circuits that change between the steps of an algorithm while other ports send.

After SWOT (arXiv 2510.19322), of which the abstract is public. The controller is the provisioned one;
what is new is which algorithm a collective runs, and in which parts its messages go.
"""

from __future__ import annotations

from dataclasses import replace

from topox_core.fabrics.circuits import run_provisioned
from topox_core.fabrics.run import FabricRequest, FabricRun
from topox_core.runs.stopping import Stop


def run_in_collective(order: FabricRequest, stop: Stop) -> FabricRun:
    """Run an iteration on provisioned circuits, its collectives as they were lowered.

    Where the settings leave algorithms open, each collective takes the one that is fastest alone, those
    with messages split unevenly over the ports among them
    (:mod:`topox_core.fabrics.collective_choice`), so that no iteration is longer than provisioned.

    Raises
    ------
    InputError, Stopped
        As :func:`~topox_core.fabrics.circuits.run_reactive`.
    """
    return replace(run_provisioned(order, stop), fabric="in_collective")
