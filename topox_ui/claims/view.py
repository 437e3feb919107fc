"""Claims against each other: what published networks claim against each other, tried on six jobs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import streamlit as st

from topox_core.claims.cells import (
    JOBS,
    Cell,
    Results,
    cells_of,
    file_of,
    known_results,
    rivals_run,
    shipped_results,
    study_of_job,
)
from topox_core.claims.claims import (
    CLAIMS,
    Tried,
    argument,
    as_record,
    cell_rows,
    crossing_words,
    measured_words,
    tried,
    verdict_words,
)
from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.figures.palette import Theme
from topox_core.figures.studies.cells import sides_legend, sides_map
from topox_core.runs.pace import slowness
from topox_core.studies.study_run import StudyResult
from topox_core.text.numbers import about_seconds, percent
from topox_ui.answers.keeping import existing_library, writable_library
from topox_ui.runs.limits import CORES
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.slots import shared_workers
from topox_ui.shell.charts import (
    button,
    chart,
    chart_title,
    csv_of,
    escape,
    frame,
    headline,
    legend_line,
    quiet,
    write_html,
)
from topox_ui.shell.downloads import download_menu, link_menu, result_json
from topox_ui.shell.panel import watched
from topox_ui.state.session import PageState
from topox_ui.state.widgets import menu, sidebar

NETWORKS = {
    "2x100": "2 ports of 100 Gbit/s",
    "2x400": "2 ports of 400 Gbit/s",
    "4x100": "4 ports of 100 Gbit/s",
    "4x400": "4 ports of 400 Gbit/s",
}


class ArgumentState(PageState):
    """Of which network the map shows the cells."""

    prefix = "argument."

    network: Literal["2x100", "2x400", "4x100", "4x400"] = "2x100"


KEY = "who is right"
WORK_S = 600.0  # of one core, for all points, where pace.py's additions were timed
ARGUE = RunKind(
    "argue",
    most_slots=0,
    cancel_help="Stops at once; the cells computed so far are kept.",
    cancelled="Stopped. The cells that were computed are kept; computing goes on from there.",
)


def _start() -> None:
    library, workers = writable_library(), shared_workers()
    run_owner().start(ARGUE, KEY, lambda _slots: rivals_run(library, workers), note=_lost)


def _lost(results: Results) -> str:
    lost = [line for one in results.values() for line in one.lost]
    return f"Cells are missing. {lost[0]}." if lost else ""


def results(draw: Callable[[Results], None]) -> None:
    """Draw what was computed here, in this session or the run library, or while some is missing what comes with the release."""
    if watched(ARGUE, "Running six jobs on every network", lambda run: draw(run.result()), KEY):
        return
    owner = run_owner()
    known: Results | None = owner.results(ARGUE).get(KEY)
    if known is None:
        known = known_results(existing_library())
        owner.results(ARGUE)[KEY] = known
    missing = sum(len(one.rows) - one.done for one in known.values())
    draw(shipped_results() if missing else known)
    if missing:
        total = sum(len(one.rows) for one in known.values())
        button(
            f"Run the six jobs here ({total:,} points)"
            if missing == total
            else f"Compute {missing:,} missing points",
            "argue",
            "play_arrow",
            _start,
            help=f"About {about_seconds(WORK_S * slowness() * missing / total / CORES)} on this machine, beside this page; "
            "every point is kept once it is computed.",
        )


KICKER = "Claims against each other · six jobs, ten fabrics, four port settings, delays from 10 ns to 1 s"
KINDS_OF_JUDGEMENT = (
    "<b>✓</b> a claim holds if at least 90 % of what is counted supports it, <b>≈</b> in part from 50 %, else <b>✗</b> it does "
    "not. Not judged: a fabric built from an abstract alone, and what is true by construction, which nothing could refute."
)
NOT_YET = (
    "Is it worth <b>changing circuits inside an iteration</b>? Papers contradict each other; run their fabrics on the "
    "same six jobs and see."
)


def show(results: Mapping[str, StudyResult], theme: Theme) -> None:
    """Draw what is there."""
    cells = cells_of(results)
    complete = all(one.complete for one in results.values())
    if not any(one.side for one in cells):
        headline(KICKER, NOT_YET)
    else:
        release = " · computed for this release" if results is shipped_results() else ""
        headline(f"{KICKER}{release}", escape(argument(cells, complete)))
        _map(cells, theme)
    _claims([tried(claim, cells) for claim in CLAIMS])
    _how(cells, complete)


def _map(cells: Sequence[Cell], theme: Theme) -> None:
    network = ArgumentState.now().network
    ports, gbps = map(float, network.split("x"))
    shown = [one for one in cells if (one.ports, one.port_gbps) == (ports, gbps)]
    if not shown:
        return
    chart_title("Which side is faster", f"{NETWORKS[network]} per server")
    quiet(
        f"A cell is one job at one port setting and one delay, on every fabric: {len(shown)} of {len(cells)} cells are in this "
        "picture, the claims below count all. The six jobs are the study's own, not the loaded one, whose map is on Compare."
    )
    legend_line(sides_legend(theme), theme)
    jobs = {job: title for job, title in JOBS.items() if any(one.job == job for one in shown)}
    ahead = "; ".join(f"{title}: {crossing_words(shown, job)}" for job, title in jobs.items())
    chart(
        sides_map(shown, jobs, theme),
        "who_is_right",
        f"Which side is faster at each job and delay. Changing circuits win: {ahead}.",
        lambda: cell_rows(shown),
        "Every fabric in every cell of this picture",
    )


def _claims(claims: Sequence[Tried]) -> None:
    chart_title(
        "Claims of the papers",
        "each tested on every cell that its sentence speaks of, at all four port settings",
    )
    quiet(KINDS_OF_JUDGEMENT)
    judged = [one for one in claims if one.verdict != "not printed"]
    others = [one for one in claims if one.verdict == "not printed"]
    for one in judged + others:
        if others and one is others[0]:
            chart_title("Not judged", "claims that nothing here can decide, and why")
        colour = {"match": "good", "differs": "bad"}.get(one.verdict, "")
        verdict, _, true = verdict_words(one).partition(": ")
        abstract = " Built from the abstract alone." if one.claim.abstract else ""
        write_html(
            f'<p class="claim"><b class="{colour}">{escape(verdict)}</b>{true and f", {escape(true)}"}: {escape(one.claim.says)} '
            f'<span class="quiet">{escape(one.claim.source)}.{abstract}</span></p>'
        )
        with st.expander("How the claim was tested", key=f"tried_{one.claim.name}", type="compact"):
            quiet(escape(f"Counted: {one.claim.counted}."))
            if measured := measured_words(one):
                printed = f" Printed: {one.claim.published}." if one.claim.published else ""
                quiet(escape(f"{one.claim.measured.capitalize()}: {measured}.{printed}"))
            if one.by_job:
                frame(
                    [
                        {"Job": JOBS[job], "true": true_of, "of": count}
                        for job, (true_of, count) in one.by_job.items()
                    ]
                )


def _how(cells: Sequence[Cell], complete: bool) -> None:
    with st.expander("Jobs, fabrics, and how a claim is judged"):
        quiet(
            "Each job is a study file, fixed before it was run: seeds, ports, speeds, delays and fabrics are in it. Every "
            f"decade of the delay has the same weight. Times closer than {percent(EQUAL)} are even and support no claim of being "
            "faster. The side of changing circuits is every fabric that changes a circuit during the iteration."
        )
    with st.container(horizontal=True, key="argument_files"):
        download_menu(
            "who-is-right",
            [
                ("Every cell (CSV)", ".csv", lambda: csv_of(cell_rows(cells))),
                (
                    "Cells and verdicts (JSON)",
                    ".claims.json",
                    result_json(
                        lambda: as_record(cells, complete),
                        {job: study_of_job(job).digest for job in JOBS},
                    ),
                ),
                *(
                    (f"Study: {title}", f".{job}.study.json", file_of(job).read_bytes)
                    for job, title in JOBS.items()
                ),
            ],
        )
        link_menu()


def draw(theme: Theme) -> None:
    """Draw the view Claims against each other."""
    menu(ArgumentState, "network", NETWORKS, label="Ports per server", at=sidebar())
    results(lambda known: show(known, theme))
