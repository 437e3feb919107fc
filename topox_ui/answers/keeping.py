"""The run library of this server, and the runs of pages that are put into it: at a click, or every one of them."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.options import FabricOptions
from topox_core.library.opening import default_path
from topox_core.library.rows import RunRecord
from topox_core.library.run_library import RunLibrary
from topox_core.schedule.result import Result
from topox_core.studies.kept_run import Kept, record_of_fabric_run, record_of_solve
from topox_core.studies.subject import Subject, resolved_of
from topox_core.text.sentences import enumeration
from topox_ui.answers.contest import Contest, Runs
from topox_ui.answers.solving import Case, listing, token
from topox_ui.runs.limits import server_limits
from topox_ui.shell.charts import button, quiet, show_error
from topox_ui.state.loading import Loaded, scenario
from topox_ui.state.prices import Prices, catalogue
from topox_ui.state.session import PageState, Passing, link_query, notify_errors

OFF = "This server keeps no runs."
HOW_ON = (
    "It is off where several people share one server, because all of them would see the same runs. The owner of the "
    "server can switch it on: TOPOX_RUN_LIBRARY=yes."
)


def keeps_runs() -> bool:
    """Return whether there is a run library on this server."""
    return server_limits().keeps_runs


@st.cache_resource(show_spinner=False)
def _opened(path: str) -> RunLibrary:
    return RunLibrary.open(Path(path))


def open_library() -> RunLibrary:
    """Return the run library; the first use of it begins its file.

    Raises
    ------
    InputError
        If its file cannot be used.
    """
    return _opened(str(default_path()))


def existing_library() -> RunLibrary | None:
    """Return the run library if this server keeps runs and its file is there: who only looks begins none.

    Raises
    ------
    InputError
        If its file cannot be used.
    """
    return open_library() if keeps_runs() and default_path().exists() else None


def kept_input(library: RunLibrary) -> Callable[[str], bytes | None]:
    """Return what finds the content of an input file by its digest."""

    def content(digest: str) -> bytes | None:
        found = library.input(digest)
        return None if found is None else found.content

    return content


def writable_library() -> RunLibrary | None:
    """Return the run library where this server keeps runs and it can be written."""
    if not keeps_runs():
        return None
    try:
        library = open_library()
    except InputError:
        return None
    return None if library.read_only else library


# What of a page's link is no part of what a run shows: how pages look, and what is asked of offers.
_NOT_OF_RUNS = re.compile(r"buy\.|large$")
MAX_SEEN = 500


class KeepState(PageState):
    """Whether every solve that Schedule shows goes into the library; a link does not say so."""

    prefix = "keep."

    every_solve: bool = False

    def local(self) -> Collection[str]:
        """Return the choice: whoever follows a link keeps only what they want to."""
        return ("every_solve",)

    @classmethod
    def owns(cls, key: str) -> bool:  # noqa: ARG003
        """Return False: no link may switch this on."""
        return False


# What became of the last click, said beside the button, which may be far below the headline.
_SAID = Passing[str]("kept_said")
# Solves that this session has put into the library, so that drawing a page again does not ask it.
_SEEN = Passing[dict[str, None]]("kept_solves")


def keep_every(opened: Loaded, case: Case, result: Result) -> None:
    """Put a solve that a page shows into the library, where the reader wants all of them there."""
    if not (keeps_runs() and KeepState.now().every_solve):
        return
    seen, key = _SEEN.get_or(dict), token(case, result)
    if key in seen:
        return
    seen[key] = None
    while len(seen) > MAX_SEEN:
        del seen[next(iter(seen))]
    try:
        _put(kept_of(opened, case), lambda kept: [record_of_solve(result, kept)])
    except InputError as error:
        show_error(error)


def keep_solve_button(opened: Loaded, case: Case, result: Result) -> None:
    """Offer to keep the solve that Schedule shows."""
    _button(
        "Keep this run",
        opened,
        case,
        FabricOptions(),
        lambda kept: [record_of_solve(result, kept)],
    )


def keep_contest_button(opened: Loaded, case: Case, contest: Contest, runs: Runs) -> None:
    """Offer to keep the runs that Compare shows, one a fabric; they are made by list scheduling."""
    _button(
        "Keep these runs",
        opened,
        replace(case, settings=listing(case.settings)),
        contest.options,
        lambda kept: [record_of_fabric_run(run, kept) for run in runs.values()],
    )


def _button(words: str, *given: object) -> None:
    on = keeps_runs()
    where = "Kept in the run library: Kept runs (Studies) lists it, opens it again and compares it with other runs."
    button(
        words,
        "keep_run",
        "bookmark_add",
        _keep,
        *given,
        disabled=not on,
        help=where if on else OFF,
    )
    if said := _SAID.pop():
        quiet(said)


Records = Callable[[Kept], Iterable[RunRecord]]


@notify_errors()
def _keep(opened: Loaded, case: Case, options: FabricOptions, records: Records) -> None:
    """Put runs into the library and say which numbers they have there."""
    new = _put(kept_of(opened, case, options), records)
    added = [run for run, is_new in new.items() if is_new]
    before = [run for run, is_new in new.items() if not is_new]
    words = [f"Kept as run {enumeration(added)}."] if added else []
    words += [f"Kept before as run {enumeration(before)}."] if before else []
    _SAID.set(" ".join(words))


def _put(kept: Kept, records: Records) -> dict[int, bool]:
    """Put runs and the files that they need into the library; return by number whether each is new there."""
    library = open_library()
    new = dict(library.add_each(records(kept)))
    if any(new.values()):
        for one in kept.resolved.files:
            library.keep_input(one.digest, one.kind, one.name, one.content)
    return new


def kept_of(opened: Loaded, case: Case, options: FabricOptions | None = None) -> Kept:
    """Return what runs of what is loaded belong to."""
    return Kept(
        resolved_of(named_subject(), opened.graph, opened.cluster),
        case.cluster,
        case.settings,
        options or FabricOptions(),
        catalogue(),
        Prices.now().prices,
        run_link(),
    )


def named_subject() -> Subject | None:
    """Return what is loaded as a study names it; None of own files, or where nothing is loaded."""
    now = scenario()
    if now.source == "sample":
        return Subject("sample", {"name": now.name})
    if now.source == "workload":
        return Subject("workload", {"generator": now.name, "parameters": now.typed_parameters})
    return None


def run_link() -> str:
    """Return the state of this session that shows its runs, as the query of a link; of own files the what-ifs on them."""
    query = {k: text for k, text in link_query().items() if not _NOT_OF_RUNS.match(k)}
    now = scenario()
    if now.source == "upload":
        what_ifs = now.model_copy(update={"source": "sample", "name": ""})
        query |= {k: text for k, text in what_ifs.to_query().items() if k != "sample"}
    # Never empty: by its link a run that a person kept is told from a study's point.
    return urlencode(query or {"large": "no"})
