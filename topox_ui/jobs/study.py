"""What time division gains over many seeds: a study, computed beside the page in worker processes, kept point by point."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import streamlit as st

from topox_core.figures.jobs.gains import GainPoint, gain_map, gains
from topox_core.figures.palette import Theme
from topox_core.studies.ready import rounds_record
from topox_core.studies.study import study_of
from topox_core.studies.study_run import PointRow, StudyPlan, StudyResult, StudyRun
from topox_core.studies.subject import resolve
from topox_core.tdm.algorithms.catalogue import ALGORITHMS, BASELINE, DEFAULT_ALGORITHMS
from topox_core.tdm.mixes.deployment import CONTEXTS, JOBS
from topox_core.text.numbers import in_1024s, percent, plural
from topox_ui.jobs.state import ACROSS, JobsState
from topox_ui.runs.limits import CORES
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.shell.charts import button, chart, chart_title, csv_of
from topox_ui.shell.downloads import offer
from topox_ui.shell.panel import watched
from topox_ui.state.widgets import menu, pick

# The quick study has few seeds and leaves out large sets of jobs, which take nearly all of the time.
QUICK_JOBS, QUICK_SEEDS = 128, 5
SEEDS = (QUICK_SEEDS, 10, 20, 30)
MAX_POINTS = 20_000
WAYS = (BASELINE, *DEFAULT_ALGORITHMS)
TITLES = {name: ALGORITHMS[name].title for name in DEFAULT_ALGORITHMS}
STUDY = RunKind(
    "study",
    MAX_POINTS,
    CORES,
    cancelled="Stopped. The points that were computed are kept; computing goes on from there.",
)


def _start(plan: StudyPlan) -> None:
    owner = run_owner()
    known = owner.results(STUDY)
    owner.start(STUDY, plan.study.digest, lambda slots: StudyRun(plan, None, slots, known), _note)


def _note(result: StudyResult) -> str:
    """Return why points are missing, in words."""
    refused = [row.message for row in result.rows if row.failed]
    lines = [
        *result.lost,
        *(
            f"{why}: {refused.count(why)} of {len(result.rows)} points are missing"
            for why in dict.fromkeys(refused)
        ),
    ]
    return "; ".join(lines[:2])


@st.cache_resource(max_entries=16, show_spinner=False)
def _plan(
    jobs: Sequence[int], contexts: Sequence[int], seeds: int, fixed: Mapping[str, float]
) -> StudyPlan:
    record = rounds_record(jobs, contexts, seeds, WAYS, fixed)
    study = study_of({"name": "What time division gains", **record}, "study")
    return StudyPlan(study, resolve(study.subject))


def _fixed(now: JobsState) -> dict[str, float]:
    """Return the network and the reading of the page as keys of the study."""
    held = now.network | {name: value for name, value in asdict(now.reading).items() if value}
    return {f"tdm.{name}": value for name, value in held.items()}


def plan_of(now: JobsState, across: str, seeds: int) -> StudyPlan:
    """Return the study along one axis, on the draft's set-up with the network and the reading of the page; quick with few seeds."""
    quick = seeds <= QUICK_SEEDS
    jobs = [min(now.jobs, QUICK_JOBS) if quick else now.jobs]
    contexts = CONTEXTS
    if across == "jobs":
        jobs = [n for n in JOBS if n <= QUICK_JOBS or not quick]
        contexts = (now.context,)
    return _plan(tuple(jobs), contexts, seeds, _fixed(now))


def everything(now: JobsState) -> StudyPlan:
    """Return all points that may have been computed for the network and the reading of the page, along whichever axis."""
    jobs, contexts = sorted({*JOBS, now.jobs}), sorted({*CONTEXTS, now.context})
    return _plan(tuple(jobs), tuple(contexts), max(SEEDS), _fixed(now))


def points(plan: StudyPlan, known: Mapping[str, PointRow]) -> pd.DataFrame:
    """Return the points that are there, one a row: seed, context, jobs and algorithm, and what was measured."""
    names = [axis.key.name.removeprefix("tdm.") for axis in plan.study.axes]
    there = [row for row in plan.rows(known) if row.measures]
    table = pd.DataFrame(
        [{**dict(zip(names, row.point, strict=True)), **row.measures} for row in there]
    )
    if not table.empty:
        table["ratio"] = table.communicating_s / table.computing_s.where(table.computing_s > 0)
    return table


def reductions(table: pd.DataFrame, across: str) -> dict[str, dict[float, list[float]]]:
    """Return each algorithm's reduction against the baseline, seed by seed, at each place along the axis."""
    reduced = table[table.algorithm != BASELINE].groupby(["algorithm", across], sort=False)
    values: dict[str, dict[float, list[float]]] = {name: {} for name in DEFAULT_ALGORITHMS}
    for (name, place), one in reduced.reduction:
        values[name][float(place)] = one.tolist()
    return values


def gain_points(table: pd.DataFrame, across: str) -> dict[str, list[GainPoint]]:
    """Return each algorithm's sets of jobs for the map over C/T, marked by their place along the axis."""
    return {
        name: [
            GainPoint(row.ratio, row.reduction, float(getattr(row, across)), words_of(row))
            for row in table[(table.algorithm == name) & (table.ratio > 0)].itertuples()
        ]
        for name in DEFAULT_ALGORITHMS
    }


def words_of(row: Any) -> str:
    """Return which set of jobs a point is of, in words."""
    return f"{plural(row.jobs, 'job')}, {_value_words('context', row.context)}, seed {row.seed}"


def _value_words(across: str, value: float) -> str:
    if across == "jobs":
        return plural(int(value), "job")
    return f"{in_1024s(value)} {'tokens' if value % 1024 else 'context'}"


def study(now: JobsState, theme: Theme) -> None:
    """Draw the study as far as it is known, with the button that computes the rest."""
    title, left, right = st.columns([2.2, 1.1, 0.8], vertical_alignment="bottom")
    across = pick(
        JobsState, "across", ACROSS, label="Across", at=left, label_visibility="collapsed"
    )
    words = {n: f"{'quick' if n == QUICK_SEEDS else 'full'}, {n} seeds" for n in SEEDS}
    seeds = menu(JobsState, "seeds", words, label="Seeds", at=right, label_visibility="collapsed")
    wanted, owner = plan_of(now, across, seeds), run_owner()
    many = min(now.jobs, QUICK_JOBS) if seeds <= QUICK_SEEDS else now.jobs
    fixed = f"{now.context // 1024}k context" if across == "jobs" else plural(many, "job")
    with title:
        chart_title(
            "Gain of time division, seed by seed",
            f"the paper’s set-up, {fixed}: round against no time division on the same jobs. Line: mean; band: middle half; "
            "dots: single seeds",
        )
    known = owner.results(STUDY)
    if watched(
        STUDY,
        "Computing the study",
        lambda _run: _drawn(points(wanted, known), now, across, theme, live=True),
        wanted.study.digest,
    ):
        return
    sets = len(wanted.keys) // len(WAYS)
    missing = sum(key not in known for key in wanted.keys.values())
    if missing:
        nothing_yet = missing == len(wanted.keys)
        button(
            "Compute the study" if nothing_yet else f"Compute the other {-(-missing // len(WAYS))}",
            "compute_study",
            "query_stats",
            _start,
            wanted,
            primary=True,
            beside=f"{plural(sets, 'set of jobs', 'sets of jobs')}, "
            f"{len(WAYS)} algorithms each, beside this page. The quick study has at most {QUICK_JOBS} jobs "
            f"in a set and takes seconds; the full one, in the menu above, up to {max(JOBS)}, and takes minutes.",
        )
    _drawn(points(wanted, known), now, across, theme, live=False)


def _drawn(there: pd.DataFrame, now: JobsState, across: str, theme: Theme, live: bool) -> None:
    if there.empty:
        return
    values = reductions(there, across)
    here = float(getattr(now, across)) if now.source == "generator" else None
    words = "jobs" if across == "jobs" else "context length, tokens"
    figure = gains(values, TITLES, words, theme, here)
    means = "; ".join(
        f"{TITLES[name]} at {place:,.0f}: {percent(sum(of) / len(of))}"
        for place in sorted({place for of in values.values() for place in of})
        for name, places in values.items()
        if (of := places.get(place))
    )
    chart(
        figure,
        "study_live" if live else "study",
        f"Mean reduction of the round. {means}. The table has the spread.",
        None if live else lambda: table(there),
        "Every point",
    )
    if not live:
        _map(now, across, theme)
        with st.columns([1, 4])[0]:
            offer("study", [("Study (CSV)", ".csv", lambda: csv_of(table(there)))])


def _map(now: JobsState, across: str, theme: Theme) -> None:
    """Draw where the gain is: every set of jobs that was computed, over communicating to computing."""
    there = points(everything(now), run_owner().results(STUDY))
    words = {value: _value_words(across, value) for value in map(float, there[across].unique())}
    sets = len(there.drop_duplicates(["jobs", "context", "seed"]))
    chart(
        gain_map(gain_points(there, across), TITLES, words, theme),
        "gain_map",
        "Reduction over C/T from "
        f"{there.ratio.min():.2g} to {there.ratio.max():.2g}, an algorithm a panel. The table has every set of jobs.",
        lambda: gain_table(there),
        "Every set of jobs",
        title=(
            "Gain by communication over computing",
            f"All {plural(sets, 'set of jobs', 'sets of jobs')} computed so far, along both axes. Dotted: what hiding "
            "computing behind communicating saves; above it, smaller groups leave more links to each pair",
        ),
    )


def gain_table(there: pd.DataFrame) -> pd.DataFrame:
    """Return a row a set of jobs: where it is and what each algorithm takes off its round."""
    place = ["jobs", "context", "seed"]
    times = {"communicating_s": "communicating (s)", "computing_s": "computing (s)", "ratio": "C/T"}
    sets = there.groupby(place, sort=False)[list(times)].first().rename(columns=times)
    for name in DEFAULT_ALGORITHMS:
        one = there[there.algorithm == name].set_index(place)
        sets[f"{TITLES[name]}, reduction"] = one.reduction
    return sets.reset_index()


_SPREAD = {
    "mean": "mean",
    "least": "min",
    "lower quartile": lambda one: one.quantile(0.25),
    "median": "median",
    "upper quartile": lambda one: one.quantile(0.75),
    "most": "max",
}


def table(there: pd.DataFrame) -> pd.DataFrame:
    """Return a row per point and algorithm: how many seeds, and what was measured with its spread over them."""
    by = there.groupby(["jobs", "context", "algorithm"], sort=False)
    columns = {"seeds": by.seed.nunique()}
    for name in ("round_s", "reduction", "mean_round_s", "mean_reduction", "gap"):
        for words, how in _SPREAD.items():
            columns[f"{name} {words}".replace("_", " ")] = by[name].agg(how)
    return pd.DataFrame(columns).reset_index()
