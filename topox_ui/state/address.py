"""The one owner of the address: choices go into it, those of a link come out of it, and a reload finds its session again."""

import time
from collections.abc import Callable, Collection, Iterable
from functools import partial

import streamlit as st
from msgspec.structs import replace

from topox_core.schema.fields import fields_of
from topox_ui.runs.owner import all_tabs, connection, run_owner
from topox_ui.state.loading import (
    AWAITED,
    GENERATE,
    MENUS,
    NotYet,
    load,
    loaded,
    open_source,
    scenario,
)
from topox_ui.state.scenario import SOURCE, Scenario
from topox_ui.state.session import (
    ADDRESS_DUE,
    CARRIED,
    PLACE,
    VIEW_KEY,
    Lasting,
    PageState,
    Passing,
    agreeing,
    has_error,
    lasting,
    link_query,
    notify,
    notify_errors,
    put_back,
    states,
    view_query,
)

MAX_NAMED = 5
ADDRESS = Lasting[dict[str, str]]("address")
# The link that this session began with.
CAME_BY = Passing[dict[str, str]]("came_by")
# What an address would open in place of the reader's own job: they are asked first.
ASKED = Passing[Scenario]("asked")
_AGREED = Passing[bool]("agreed")
# Which models the keys of a link may belong to: the registry of pages knows.
Models = Callable[[Iterable[str]], Iterable[type[PageState]]]


def restore(place: tuple[str, str], carried: Collection[str], models: Models) -> None:
    """Bring choices and address in step when a page begins.

    A cold link and the browser's Back win over what was there, a choice that was just made wins over
    both. Of these two nothing is taken where it would replace the reader's own job: they are asked
    first. A menu link that was drawn before the last choice, in a fragment or while the page was
    still being drawn, is known by its parameters: another page asked for with those of a menu that
    this page has offered.

    Parameters
    ----------
    place
        The script of the page, and the word of its view: no choice, but part of which page it is.
    carried
        The names of the models whose choices the address of the page carries.
    """
    before = PLACE.get()
    PLACE.set(place)
    script, view = place
    query = st.query_params.to_dict()
    if query.get(VIEW_KEY) == view:
        del query[VIEW_KEY]
    CAME_BY.get_or(lambda: query)
    CARRIED.set(carried)
    _take_generated()
    agreed = _AGREED.pop()
    moved = before != place
    within = before is not None and before[0] == script
    linked = within and (moved or query != (ADDRESS.get() or {}))
    outdated = moved and query in [link_query(of=menu) for menu in MENUS.get_or(list)]
    if ADDRESS_DUE.pop() or outdated:
        _write()
    elif query != (ADDRESS.get() or {}):
        ADDRESS.set(query)
        AWAITED.pop()
        ASKED.pop()
        other = None if agreed else _in_place_of_own(query)
        try:
            if other is not None:
                ASKED.set(other)
            elif not read(query, models(query)):
                _write()
        except NotYet:  # the link is read again when its graph is there
            AWAITED.set(None)
    if linked:  # the browser has the address of a link from script to script only
        st.query_params.from_dict(st.query_params.to_dict())
    menus = [] if moved else MENUS.get_or(list)
    MENUS.set([*menus, dict(states())][-20:])


def follow_address() -> None:
    """Take what the address says when a page is drawn next, whatever it opens: the reader has asked for it."""
    _AGREED.set(True)
    ADDRESS_DUE.pop()
    ADDRESS.pop()


def _in_place_of_own(query: dict[str, str]) -> Scenario | None:
    """Return what a link would open in place of the reader's own files, which no address brings back."""
    named, _ = Scenario.of_query({k: text for k, text in query.items() if Scenario.owns(k)})
    own = scenario().source == "upload" and loaded() is not None
    return named if own and named.source != "none" else None


def _take_generated() -> None:
    """Go on with what waited for a graph that was generated beside the page, once its run has ended."""
    owner = run_owner()
    if not AWAITED.there or owner.run(GENERATE) is not None:
        return
    owner.ended(GENERATE)
    awaited = AWAITED.pop()
    if not (owner.results(GENERATE) or owner.refusals(GENERATE)):
        notify("info", "The task graph was not generated; what was loaded stays.")
        ADDRESS_DUE.set(True)
    elif awaited is not None:
        open_source(awaited)
    else:
        follow_address()


def keep_address() -> None:
    """Write a choice made inside a fragment into the address (a page's frame does it for the whole page)."""
    if ADDRESS_DUE.pop():
        _write()


def _write() -> None:
    ASKED.pop()
    query = link_query()
    ADDRESS.set(query)
    said = view_query() | query
    if st.query_params.to_dict() != said:
        st.query_params.from_dict(said)


def read(query: dict[str, str], models: Iterable[type[PageState]]) -> bool:
    """Take the choices of a link; name in one line those that are none or do not go together, and return False.

    What no link can carry, such as an uploaded file, stays where the link does not replace it, and so
    do the choices of other pages than that in view, which the link does not name.
    """
    refused = dict.fromkeys(query, "")
    carried = CARRIED.get_or(tuple)
    for model in models:
        given = {key: text for key, text in query.items() if model.owns(key)}
        if not given and model.__name__ not in carried:
            continue
        new, wrong = model.of_query(given)
        old = model.now()
        local = old.local()
        named = {name for name in local if model.prefix + name in given} | new.choices().keys()
        if not named & set(local):
            new = replace(new, **{name: getattr(old, name) for name in local})
        check = type(new).check
        if isinstance(new, Scenario):
            new = _with_graph(new)
            now = loaded()
            if now is None:
                continue
            check = partial(Scenario.check_on, base=now.cluster)
        fields = [name for name in fields_of(model) if model.prefix + name in given]
        new, dropped = agreeing(new, fields, check)
        for key in given:
            del refused[key]
        wrong |= {model.prefix + name: problem for name, problem in dropped.items()}
        refused |= {key: problem and f" ({problem})" for key, problem in wrong.items()}
        states()[model.__name__] = new
    if refused:
        names = [f"{key[:40]}={query[key][:40]}{why}" for key, why in refused.items()]
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        if not has_error():  # it says why the link's graph could not be loaded
            notify("warning", f"Ignored in the link: {', '.join(names[:MAX_NAMED])}{more}")
    return not refused


def _with_graph(new: Scenario) -> Scenario:
    """Load what the scenario of a link names; where it names nothing or cannot be loaded, keep what is there."""
    old = Scenario.now()
    if new.source == "none":
        return replace(new, **{name: getattr(old, name) for name in SOURCE})
    if any(getattr(new, name) != getattr(old, name) for name in SOURCE) or loaded() is None:
        with notify_errors():
            load(new)
            states().update({name: type(one)() for name, one in states().items() if one.of_graph})
            return new
        return old
    return new


# A reloaded page may be here before the server has noticed that the old one is gone: on a busy
# machine seconds before, and whoever is refused has lost their files (one reload in some hundreds with 5 s
# beside three browsers on two cores). A duplicated tab waits as long.
PATIENCE_S = 10.0
KEY = "tab_id"
_REFUSED = Passing[str]("claim_refused")
_SCRIPT = """
const NAME = "topox-tab";
export default function ({ data, setTriggerValue }) {
  let mine = null;
  try { mine = sessionStorage.getItem(NAME); } catch { return; }
  clearTimeout(window.topoxClaim);
  if (!mine || mine === data.id || mine === data.refused) {
    sessionStorage.setItem(NAME, data.id);
    return;
  }
  const ask = () => {
    setTriggerValue("claim", mine);
    window.topoxClaim = setTimeout(ask, AGAIN_MS);
  };
  // A claim may be lost while the first run of a page goes on, so it is made again until it is answered.
  if (window.topoxAskedFor === mine) window.topoxClaim = setTimeout(ask, AGAIN_MS);
  else { window.topoxAskedFor = mine; ask(); }
}
""".replace("AGAIN_MS", str(round(1500 * PATIENCE_S)))
_component = st.components.v2.component("topox_tab_id", js=_SCRIPT)


def keep_tab() -> None:
    """Give the tab its id, and note what it would find again after a reload; call it when a page begins."""
    tab = connection().tab
    tab.held = lasting()
    data = {"id": tab.token, "refused": _REFUSED.get() or ""}
    _component(key=KEY, data=data, on_claim_change=_claimed)


def _claimed() -> None:
    """Go over to the tab that this one says it is, if that one has left, and take what it had."""
    claim = st.session_state[KEY].get("claim")
    if not isinstance(claim, str) or claim == connection().tab.token:
        return
    until = time.monotonic() + PATIENCE_S
    while all_tabs().connected(claim) and time.monotonic() < until:
        time.sleep(0.02)
    if connection().move(claim):
        rejoin(connection().tab.held)
    else:  # the script runs again where what it is given has changed
        _REFUSED.set(claim)


def rejoin(held: dict[str, object]) -> None:
    """Put back what a tab held; the link that it came by is followed if it is another one than it had."""
    put_back(held)
    came_by = CAME_BY.get()
    if came_by and came_by != ADDRESS.get():
        ADDRESS.pop()
        st.query_params.from_dict(view_query() | came_by)
    else:
        ADDRESS_DUE.set(True)
