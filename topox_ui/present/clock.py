"""The clock of the plan: minutes since the lecturer started it; its border says that the plan is over, its text does not change."""

from __future__ import annotations

import time

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.labs.lab import Lab
from topox_core.labs.presentation import Slide, planned_until
from topox_ui.present.state import words
from topox_ui.state.session import Lasting

# When each lab was started, in s since 1970.
_STARTED = Lasting[dict[str, float]]("present_started")
# The browser counts on by itself: a timer of the server would draw the page again.
_SCRIPT = """
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".plan-clock");
  const since = performance.now();
  const draw = () => {
    const minutes = (data.elapsed_s + (performance.now() - since) / 1000) / 60;
    const late = data.until !== null && minutes > data.until;
    box.textContent = data.running.replace("{minutes}", Math.floor(minutes)) + data.plan;
    box.setAttribute('style', `border: ${late ? `3px double ${data.ink}` : `1px solid ${data.line}`}`);
    box.setAttribute("aria-label", box.textContent + (late ? `, ${data.over}` : ""));
  };
  draw();
  const timer = setInterval(draw, 5000);
  return () => clearInterval(timer);
}
"""
_HTML = '<div class="plan-clock" role="timer" aria-live="off"></div>'
_CSS = ".plan-clock { display: inline-block; padding: 2px 10px; border-radius: 6px; font-size: 17px; white-space: nowrap; }"
_clock = st.components.v2.component("topox_plan_clock", html=_HTML, css=_CSS, js=_SCRIPT)


def clock(lab: Lab, slide: Slide, theme: Theme) -> None:
    """Draw the clock of a lab, or the button that starts it."""
    say, started = words().say, _STARTED.get_or(dict).get(lab.id)
    if started is None:
        st.button(say("present.clock.start"), key="start_clock", on_click=_start, args=(lab.id,))
        return
    until = planned_until(lab, slide)
    plan = "" if until is None else f" · {say('present.clock.until', until=f'{until:g}')}"
    data = {
        "elapsed_s": max(0.0, time.time() - started),
        "until": until,
        "running": say("present.clock.running"),
        "plan": plan,
        "over": say("present.clock.over"),
        "ink": theme.ink,
        "line": theme.line,
    }
    _clock(key="plan_clock", data=data, width="content")


def _start(lab: str) -> None:
    _STARTED.get_or(dict)[lab] = time.time()
