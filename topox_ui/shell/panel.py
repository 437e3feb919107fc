"""The one panel of a run: what it does, how far it is, the time left, Cancel, and what was kept."""

from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st

from topox_core.runs.run import RunProgress
from topox_core.text.numbers import seconds
from topox_ui.runs.owner import RunKind, run_owner
from topox_ui.runs.slots import Ticket
from topox_ui.shell.charts import as_label, button, quiet

POLL_S = 0.5
LINE_POLL_S = 2.0
BEFORE = "For the setting before your last change; its result is kept for when you go back."


def run_note(kind: RunKind) -> None:
    """Write the note of the last run of a kind, if there is one; raise what ended it, if that was a defect."""
    owner = run_owner()
    if owner.ended(kind):
        st.rerun()  # it ended while this page was being drawn, or another was
    note = as_label(owner.note(kind))
    if note and owner.refused(kind):
        st.error(note, icon="⚠️")
    elif note:
        st.warning(note)


def run_panel(
    kind: RunKind, title: str, draw: Callable[[Any], None] | None = None, place: str = ""
) -> None:
    """Draw the run of a kind twice a second, or its place in the line; redraw the page when it has ended.

    Parameters
    ----------
    title
        What the run does.
    draw
        Draws what the run has so far, under the bar.
    place
        Tells apart the panels of one kind on one page.
    """
    in_line = isinstance(run_owner().run(kind), Ticket)
    # The line less often: many may wait.
    part = st.fragment(_panel, run_every=LINE_POLL_S if in_line else POLL_S)
    part(kind, title, draw, place, in_line)


def watched(
    kind: RunKind,
    title: str,
    draw: Callable[[Any], None] | None = None,
    key: Hashable = None,
) -> bool:
    """Draw the panel of a run (of this very key, if one is given) while it goes on, else its note; return whether it does."""
    running = run_owner().run(kind, key) is not None
    if running:
        run_panel(kind, title, draw)
    else:
        run_note(kind)
    return running


def begun_beside(
    kind: RunKind, key: Hashable, start: Callable[[], object], there: Callable[[], bool]
) -> bool:
    """Start a run that nobody asked for, and draw the page again once its answer is there; return False where the last one failed.

    Parameters
    ----------
    start
        Starts the run of this key.
    there
        Whether the answer is there, which another session may have had worked out.
    """
    owner = run_owner()
    if owner.run(kind, key) is None:
        if owner.note(kind):
            return False
        start()
    _draw_again(kind, there)
    return True


@st.fragment(run_every=POLL_S)
def _draw_again(kind: RunKind, there: Callable[[], bool]) -> None:
    if run_owner().ended(kind) or there():
        st.rerun()


def _panel(
    kind: RunKind, title: str, draw: Callable[[Any], None] | None, place: str, in_line: bool
) -> None:
    owner = run_owner()
    run, ended = owner.run(kind), owner.ended(kind)
    if ended or run is None:
        # The whole page is drawn next; a click is answered before that.
        quiet(f"{title}: ended, what is complete is kept.")
        st.rerun()
        return
    if isinstance(run, Ticket) != in_line:  # its turn has come, or another one of the kind waits
        st.rerun()
    progress, stopping = run.progress, owner.stopping(kind)
    words = f"{title}: {progress.words}" if in_line else progress_words(title, progress)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(1.0, progress.share or 0.0), text=as_label(words))
        button(
            "Stopping …" if stopping else "Cancel",
            f"cancel_{place or kind.name}",
            "stop_circle",
            owner.cancel,
            kind,
            disabled=stopping,
            help="Leaves the line." if in_line else kind.cancel_help,
        )
    if draw is not None and not in_line:
        draw(run)


def progress_words(title: str, progress: RunProgress) -> str:
    """Return in a line what a run does, how far it is and how long it will take."""
    parts = [title]
    if progress.total:
        parts.append(f"{progress.done or 0:,} of {progress.total:,} {progress.unit}".rstrip())
    if progress.words:
        parts.append(progress.words)
    parts.append(f"{seconds(round(progress.elapsed_s, 1))} so far")
    if progress.left_s is not None:
        parts.append(f"about {seconds(max(1, round(progress.left_s)))} left")
    return ", ".join(parts)
