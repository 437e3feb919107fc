"""A reload finds its session again: the tab shows the id that it was given, and gets back what it had."""

import time

import streamlit as st

from topox_ui.runs.owner import all_tabs, connection
from topox_ui.state.address import ADDRESS, CAME_BY
from topox_ui.state.page_state import ADDRESS_DUE, view_query
from topox_ui.state.session import Passing, lasting, put_back

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
