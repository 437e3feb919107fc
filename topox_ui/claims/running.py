"""The studies: as they come with the release, or computed beside the page in worker processes, watched, stopped, kept."""

from __future__ import annotations

from collections.abc import Callable

from topox_core.claims.rivals_run import Results, known_results, rivals_run, shipped_results
from topox_ui.answers.run_library import existing_library, keeps_runs, writable_library
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.panel import run_note, run_panel
from topox_ui.runs.slots import shared_workers
from topox_ui.shell.page import button, quiet

KEY = "who is right"
ARGUE = RunKind(
    "argue",
    most_slots=0,
    cancel_help="Stops at once; the cells that are there are kept.",
    cancelled="Stopped. The cells that were computed are kept; computing goes on from there.",
)


def _start() -> None:
    owner = run_owner()

    def keep(results: Results) -> str:
        owner.results(ARGUE)[KEY] = results
        lost = [line for one in results.values() for line in one.lost]
        return f"Cells are missing. {lost[0]}." if lost else ""

    library, workers = writable_library(), shared_workers()
    owner.start(ARGUE, KEY, lambda _slots: rivals_run(library, workers), keep)


def results(draw: Callable[[Results], None]) -> None:
    """Draw what was computed here, in this session or the run library, or while some is missing what comes with the release."""
    owner = run_owner()
    if owner.run(ARGUE, KEY) is not None:
        run_panel(ARGUE, "Running six jobs on every network", lambda run: draw(run.result()))
        return
    run_note(ARGUE)
    known: Results | None = owner.results(ARGUE).get(KEY)
    if known is None:
        known = known_results(existing_library() if keeps_runs() else None)
        owner.results(ARGUE)[KEY] = known
    missing = sum(len(one.rows) - one.done for one in known.values())
    draw(shipped_results() if missing else known)
    if missing:
        total = sum(len(one.rows) for one in known.values())
        quiet("What is shown was computed for this release.")
        button(
            f"Run the six jobs here ({total:,} points)"
            if missing == total
            else f"Compute {missing:,} missing points",
            "argue",
            "play_arrow",
            _start,
            help="About five minutes on two cores, beside this page; every point is kept as soon as it is there.",
        )
