"""What is known of crossover maps, by this session or another, and the plans in it."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.comparison_words import FULL, YARDSTICK
from topox_core.fabrics.passed_plans import PassedPlan
from topox_core.fabrics.sweep import CellResult, ColumnResult, Sweep, swept_options, usual_axes
from topox_ui.answers.case import Case, listing
from topox_ui.answers.contest import Contest
from topox_ui.runs.owner import Kept

MAX_CALLS = 500  # kept for all sessions: some seven maps, each call with a schedule


@st.cache_resource(show_spinner=False)
def map_calls() -> Kept[CellResult | ColumnResult]:
    """Return what has been computed for maps, for all sessions: the same input has the same map."""
    return Kept(MAX_CALLS)


def sweep_of(case: Case, contest: Contest, by: Literal["port_gbps", "degree"]) -> Sweep:
    """Return the map of a case: its own speed or degree says where it is cut; its delay does not matter.

    Raises
    ------
    InputError
        If a degree does not go with the cluster's switches.
    """
    fabrics = tuple(name for name in contest.fabrics if name not in (YARDSTICK, FULL))
    options = swept_options(contest.options, case.cluster)
    axes = usual_axes(case.cluster, by)
    return Sweep(case.graph, case.cluster, listing(case.settings), axes, fabrics, options)


def map_plans(case: Case, contest: Contest) -> tuple[PassedPlan, ...]:
    """Return the plans that maps have for a case at any delay."""
    if case.settings.circuits == "per-slot" or not set(contest.fabrics) - {YARDSTICK, FULL}:
        return ()
    try:
        sweep = sweep_of(case, contest, "port_gbps")
    except InputError:
        return ()
    if case.cluster.port_gbps not in sweep.axes.values:
        return ()
    return sweep.column(case.cluster.port_gbps, map_calls()).plans
