"""What time division gains over many seeds: computed beside the page in worker processes, kept cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from topox_core.figures.jobs_study import GainPoint, gain_map, gains
from topox_core.figures.palette import Theme
from topox_core.runs.cells import CellsResult
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.round import TdmSettings
from topox_core.tdm.study import BASELINE, Study, StudyAxes, StudyCell, StudyCellResult, StudyRow
from topox_core.text.numbers import in_1024s, percent, plural
from topox_ui.jobs.state import ACROSS, JobsState
from topox_ui.runs.limits import CORES
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.panel import run_note, run_panel
from topox_ui.shell.charts import chart
from topox_ui.shell.downloads import csv_of, offer
from topox_ui.shell.page import button, chart_title, quiet
from topox_ui.state.widgets import menu, pick

JOBS = (32, 64, 128, 256, 512)
CONTEXTS = (1024, 8192, 32768, 65536, 131072)
# The quick study has few seeds and leaves out large sets of jobs, which take nearly all of the time.
QUICK_JOBS, QUICK_SEEDS = 128, 5
SEEDS = (QUICK_SEEDS, 10, 20, 30)
MOST_CELLS = 5_000
STUDY = RunKind(
    "study",
    MOST_CELLS,
    CORES,
    cancelled="Stopped. The points that were computed are kept; computing goes on from there.",
)


def _start(wanted: Study) -> None:
    owner = run_owner()
    cells = owner.results(STUDY)
    owner.start(STUDY, wanted.digest, lambda slots: wanted.start(cells, slots), _note)


def _note(result: CellsResult[StudyCell, StudyCellResult]) -> str:
    """Return why cells or algorithms are missing, in words."""
    refused = [why for one in result.results.values() for why in set(one.failed.values())]
    lines = [
        *result.lost,
        *(
            f"{why}: {refused.count(why)} of {result.total} calls are missing"
            for why in dict.fromkeys(refused)
        ),
    ]
    return "; ".join(lines[:2])


def study_of(now: JobsState, across: str, seeds: int) -> Study:
    """Return the study along one axis, on the draft's set-up with the network and the reading of the page; quick with few seeds."""
    changes = {
        "ports_per_pod": now.ports,
        "port_gbps": now.port_gbps,
        "reconfiguration_ms": now.reconfiguration_ms,
    }
    setup = SetUp(**{key: value for key, value in changes.items() if value is not None})  # type: ignore[arg-type]
    quick = seeds <= QUICK_SEEDS
    if across == "jobs":
        axes = StudyAxes(tuple(n for n in JOBS if n <= QUICK_JOBS or not quick), (now.context,))
    else:
        axes = StudyAxes((min(now.jobs, QUICK_JOBS) if quick else now.jobs,), CONTEXTS)
    return Study(axes, tuple(range(seeds)), setup=setup, settings=TdmSettings(reading=now.reading))


def known(study: Study, cells: Mapping[str, StudyCellResult]) -> dict[StudyCell, StudyCellResult]:
    """Return the cells of a study that are there."""
    return {cell: cells[key] for cell in study.cells() if (key := study.key(cell)) in cells}


def everything(
    now: JobsState, cells: Mapping[str, StudyCellResult]
) -> dict[StudyCell, StudyCellResult]:
    """Return all cells that were computed for the network and the reading of the page, along whichever axis."""
    one = study_of(now, "jobs", max(SEEDS))
    axes = StudyAxes(tuple(sorted({*JOBS, now.jobs})), tuple(sorted({*CONTEXTS, now.context})))
    return known(replace(one, axes=axes), cells)


def reductions(
    study: Study, results: Mapping[StudyCell, StudyCellResult], across: str
) -> dict[str, dict[float, list[float]]]:
    """Return each algorithm's reduction against the baseline, seed by seed, at each place along the axis."""
    values: dict[str, dict[float, list[float]]] = {
        name: {} for name in study.algorithms if name != BASELINE
    }
    for cell, result in results.items():
        for name, of in values.items():
            if (reduction := result.reduction(name)) is not None:
                of.setdefault(float(getattr(cell, across)), []).append(reduction)
    return values


def gain_points(
    results: Mapping[StudyCell, StudyCellResult], algorithms: Sequence[str], across: str
) -> dict[str, list[GainPoint]]:
    """Return each algorithm's sets of jobs for the map over C/T, marked by their place along the axis."""
    return {
        name: [
            GainPoint(ratio, reduction, float(getattr(cell, across)), words_of(cell))
            for cell, result in results.items()
            if (ratio := result.ratio) and (reduction := result.reduction(name)) is not None
        ]
        for name in algorithms
        if name != BASELINE
    }


def words_of(cell: StudyCell) -> str:
    """Return which set of jobs a cell is, in words."""
    return f"{plural(cell.jobs, 'job')}, {_value_words('context', cell.context)}, seed {cell.seed}"


def _value_words(across: str, value: float) -> str:
    if across == "jobs":
        return plural(int(value), "job")
    return f"{in_1024s(value)} {'tokens' if value % 1024 else 'context'}"


def study(now: JobsState, theme: Theme) -> None:
    """Draw the study as far as it is known, with the button that computes the rest."""
    title, left, right = st.columns([2.2, 1.1, 0.8], vertical_alignment="bottom")
    across = pick("Across", JobsState, "across", ACROSS, at=left, label_visibility="collapsed")
    words = {n: f"{'quick' if n == QUICK_SEEDS else 'full'}, {n} seeds" for n in SEEDS}
    seeds = menu("Seeds", JobsState, "seeds", words, at=right, label_visibility="collapsed")
    wanted, owner = study_of(now, across, seeds), run_owner()
    many = plural(wanted.axes.jobs[0], "job")
    fixed = f"{now.context // 1024}k context" if across == "jobs" else many
    with title:
        chart_title(
            "What time division gains, seed by seed",
            f"the paper’s set-up, {fixed}: round against no time division on the same jobs. Line: mean; band: middle half; "
            "dots: seeds",
        )
    if owner.run(STUDY, wanted.digest) is not None:
        run_panel(STUDY, "Computing the study", lambda _run: _live(wanted, now, across, theme))
        return
    results = known(wanted, owner.results(STUDY))
    run_note(STUDY)
    left_over = len(wanted.cells()) - len(results)
    if left_over:
        with st.container(horizontal=True, vertical_alignment="center"):
            button(
                "Compute the study" if not results else f"Compute the other {left_over}",
                "compute_study",
                "query_stats",
                _start,
                wanted,
                primary=True,
            )
            quiet(
                f"{plural(len(wanted.cells()), 'set of jobs', 'sets of jobs')}, "
                f"{len(wanted.algorithms)} algorithms each, beside this page. The quick study has at most {QUICK_JOBS} jobs "
                f"in a set and takes seconds; the full one, in the menu above, up to {max(JOBS)}, and takes minutes."
            )
    if results:
        _drawn(wanted, results, now, across, theme, live=False)


def _live(wanted: Study, now: JobsState, across: str, theme: Theme) -> None:
    results = known(wanted, run_owner().results(STUDY))
    if results:
        _drawn(wanted, results, now, across, theme, live=True)


def _drawn(
    wanted: Study,
    results: dict[StudyCell, StudyCellResult],
    now: JobsState,
    across: str,
    theme: Theme,
    live: bool,
) -> None:
    values = reductions(wanted, results, across)
    titles = {name: ALGORITHMS[name].title for name in values}
    here = float(getattr(now, across)) if now.source == "generator" else None
    words = "jobs" if across == "jobs" else "context length, tokens"
    figure = gains(values, titles, words, theme, here)
    rows = wanted.rows(results)
    means = "; ".join(
        f"{titles[row.algorithm]} at {getattr(row, across):,}: {percent(row.reduction.mean)}"
        for row in rows
        if row.algorithm != BASELINE
    )
    chart(
        figure,
        "study_live" if live else "study",
        f"Mean reduction of the round. {means}. The table has the spread.",
        None if live else lambda: table(rows),
        "Every point",
    )
    if not live:
        _map(wanted, now, across, theme)
        with st.columns([1, 4])[0]:
            offer("study", [("Study (CSV)", ".csv", lambda: csv_of(table(rows)))])


def _map(wanted: Study, now: JobsState, across: str, theme: Theme) -> None:
    """Draw where the gain is: every set of jobs that was computed, over communicating to computing."""
    cells = everything(now, run_owner().results(STUDY))
    points = gain_points(cells, wanted.algorithms, across)
    titles = {name: ALGORITHMS[name].title for name in points}
    words = {
        value: _value_words(across, value)
        for value in {float(getattr(cell, across)) for cell in cells}
    }
    chart_title(
        "Where the gain is",
        f"All {plural(len(cells), 'set of jobs', 'sets of jobs')} computed so far, along both axes. Dotted: what hiding "
        "computing behind communicating saves; above it, smaller groups leave more links to each pair",
    )
    least, most = (
        f(p.ratio for of in points.values() for p in of) if cells else 0.0 for f in (min, max)
    )
    chart(
        gain_map(points, titles, words, theme),
        "gain_map",
        f"Reduction over C/T from {least:.2g} to {most:.2g}, an algorithm a panel. The table has every set of jobs.",
        lambda: gain_table(cells),
        "Every set of jobs",
    )


def gain_table(cells: Mapping[StudyCell, StudyCellResult]) -> pd.DataFrame:
    """Return a row a set of jobs: where it is and what each algorithm takes off its round."""
    return pd.DataFrame(
        {
            "jobs": cell.jobs,
            "context": cell.context,
            "seed": cell.seed,
            "communicating (s)": result.communicating_s,
            "computing (s)": result.computing_s,
            "C/T": result.ratio,
            **{
                f"{ALGORITHMS[name].title}, reduction": result.reduction(name)
                for name in result.outcomes
                if name != BASELINE
            },
        }
        for cell, result in cells.items()
    )


def table(rows: list[StudyRow]) -> pd.DataFrame:
    """Return the rows of a study, flat."""
    return pd.DataFrame([row.as_record() for row in rows])
