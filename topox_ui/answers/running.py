"""The Compare page's runs: one case on every chosen fabric, each kept by its setting."""

from __future__ import annotations

from contextlib import nullcontext

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from topox_core.errors import InputError
from topox_core.fabrics.compare import check_delay, compare
from topox_core.fabrics.comparison_words import why_not
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.registry import ENTRIES
from topox_core.fabrics.run import FabricRun
from topox_core.fabrics.scheduled import better_run
from topox_core.runs.stopping import Stop
from topox_core.text.numbers import plural
from topox_ui.answers.case import Case, listing
from topox_ui.answers.contest import Contest
from topox_ui.answers.known_maps import map_plans
from topox_ui.answers.solving import joined, known, known_plans, with_plans
from topox_ui.runs.owner import session_over

Runs = dict[str, FabricRun]
WORTH_A_WORD = 1_500  # tasks; fewer run before a spinner could be read


def run_all(case: Case, contest: Contest) -> tuple[Runs, tuple[str, ...]]:
    """Run what has not been run for this very setting; return the runs, and a line for each reason why others cannot.

    Raises
    ------
    InputError
        If the delay is absurd, or no fabric can run.
    """
    check_delay(case.cluster)
    runs: Runs = {}
    refused: dict[str, InputError] = {}
    large = len(case.graph.tasks) >= WORTH_A_WORD
    # The ideal switch comes last: what the others do is among its candidates.
    order = sorted(contest.fabrics, key=lambda name: name == "ideal")
    for k, name in enumerate(order, start=1):
        words = f"{contest.labels[name]}, {k} of {len(contest.fabrics)}: {plural(len(case.graph.tasks), 'task')}"
        try:
            with st.spinner(words) if large else nullcontext():
                run = _run(
                    _key(case, name, contest.options, runs),
                    case,
                    name,
                    contest.options,
                    runs,
                    session_over(),
                )
        except InputError as error:
            refused[name] = error
            if len(refused) == len(contest.fabrics):
                raise
            continue
        runs[name] = _best_plan(case, contest, run) if name == "scheduled" else run
    ordered = {name: runs[name] for name in contest.fabrics if name in runs}
    return ordered, why_not(refused, contest.labels)


def _key(case: Case, name: str, options: FabricOptions, runs: Runs) -> str:
    # No page gives a layout.
    own = [getattr(options, one) for one in ENTRIES[name].options if one != "layout"]
    # A plan that is better by now may be better than the ideal switch was; a plan may keep circuits
    # that were searched.
    known = [
        run.iteration_ms
        for one, run in runs.items()
        if name == "ideal" or (name == "scheduled" and one == "static_graph")
    ]
    return f"{case.key}|{case.settings.seed}|{name}|{own}|{known}"


@st.cache_resource(max_entries=256, show_spinner=False)
def _run(
    key: str,  # noqa: ARG001
    _case: Case,
    name: str,
    _options: FabricOptions,
    _known: Runs,
    _over: Stop,
) -> FabricRun:
    settings = listing(_case.settings)
    runs = compare(_case.graph, _case.cluster, settings, (name,), _options, _over, known=_known)
    if _over():  # nobody is there to see it, and what was cut short is not for others
        raise StopException
    return runs[name]


def _best_plan(case: Case, contest: Contest, run: FabricRun) -> FabricRun:
    """Return the run of the best plan that is known, from the map and other pages too, who hear of it."""
    for plan in map_plans(case, contest):
        known_plans().add(case.job_key, plan)
    mine, proved = run.result, known(case)
    if mine is None or mine.makespan_ms is None:
        return run
    best = with_plans(case, mine if proved is None else joined(mine, proved))
    return run if best is mine else better_run(run, best)
