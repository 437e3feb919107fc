"""The one place that writes the session's scenario, and keeps the address in step with it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_ui.state.loading import Loaded, known_names, load, loaded
from topox_ui.state.scenario import Scenario, of_query

# Query keys that a page reads and writes itself (topox_ui/jobs/choices.py); the scenario leaves
# them alone.
OF_A_PAGE = ("jobs.",)


def scenario() -> Scenario:
    """Return the scenario of this session."""
    now: Scenario = st.session_state.get("scenario", Scenario())
    return now


def choose(key: str, value: Any) -> None:
    """Take one choice of the user (from a widget's callback)."""
    now = loaded()
    if now is not None:
        try:
            _set(scenario().with_choice(key, value, now.cluster))
        except InputError as error:
            say("error", str(error))


def chosen(key: str, widget: str, off: Any = None) -> None:
    """Take the choice that a widget made; ``off`` stands for a widget that was emptied."""
    value = st.session_state.get(widget)
    choose(key, off if value is None else value)


def reset() -> None:
    """Go back to the values of the files."""
    _set(scenario().without_what_ifs())


def open_source(new: Scenario) -> None:
    """Load a sample or a workload; if it cannot be loaded, say so and keep what was there."""
    try:
        found = load(new)
    except InputError as error:
        say("error", str(error))
        return
    if found is not None:
        adopt(found, new)


def adopt(found: Loaded, new: Scenario) -> None:
    """Make ``found`` the loaded graph and cluster; choices of view and what-ifs begin anew."""
    st.session_state["loaded"] = found
    for key in ("misfit", "said"):
        st.session_state.pop(key, None)
    _set(new)


def say(kind: str, line: str) -> None:
    """Keep one line (``error`` or ``warning``) for the next drawing of the page."""
    st.session_state["said"] = (kind, line)


def said() -> None:
    """Draw the line that was kept, once."""
    if "said" in st.session_state:
        kind, line = st.session_state.pop("said")
        {"error": st.error, "warning": st.warning, "info": st.info}[kind](line.replace("$", "\\$"))


def restore() -> None:
    """Bring scenario and address in step: a cold link or the browser's Back wins over what was there, a choice over both."""
    state = st.session_state
    query, _ = _address()
    if state.pop("touched", False):
        _write()
    elif query and query != state.get("written"):
        new, ignored = of_query(query, known_names())
        if ignored:
            more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
            say("warning", f"Ignored in the link: {', '.join(ignored[:5])}{more}")
        if new.source == "none" and loaded() is None:
            state["written"] = query
            return
        if new.source == "none":
            new = Scenario(
                scenario().source,
                scenario().name,
                scenario().parameters,
                new.cluster,
                new.settings,
                new.view,
            )
        _load_link(new)
        state["written"] = query
        state.pop("touched", None)


def _load_link(new: Scenario) -> None:
    now = scenario()
    if (new.source, new.name, new.parameters) == (
        now.source,
        now.name,
        now.parameters,
    ) and loaded() is not None:
        st.session_state["scenario"] = new
        return
    try:
        found = load(new)
    except InputError as error:
        say("error", str(error))
        return
    if found is not None:
        st.session_state["loaded"] = found
        st.session_state["scenario"] = new


def _set(new: Scenario) -> None:
    if new != scenario():
        st.session_state["scenario"] = new
        st.session_state["touched"] = True


def keep_address() -> None:
    """Write a choice made inside a fragment into the address (the frame does it for the whole page)."""
    if st.session_state.pop("touched", False):
        _write()


def _write() -> None:
    query = scenario().as_query()
    st.session_state["written"] = query
    now, of_a_page = _address()
    if now != query:
        st.query_params.from_dict({**query, **of_a_page})


def _address() -> tuple[dict[str, str], dict[str, str]]:
    """Return the query as it is: the scenario's keys, and those that belong to a page."""
    query = st.query_params.to_dict()
    of_a_page = {key: value for key, value in query.items() if key.startswith(OF_A_PAGE)}
    return {key: value for key, value in query.items() if key not in of_a_page}, of_a_page


def widget(key: str, value: Any) -> str:
    """Set a widget to what the scenario says, before it is drawn; return its key."""
    name = f"w_{key}"
    if st.session_state.get(name) != value or name not in st.session_state:
        st.session_state[name] = value
    return name
