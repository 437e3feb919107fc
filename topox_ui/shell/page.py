"""What every page begins with: page settings, style, navigation, the session's scenario, the theme."""

from __future__ import annotations

import gc
import html
import threading
from dataclasses import dataclass

import streamlit as st

from topox_core.figures.palette import Theme, theme_of
from topox_core.warm_up import warm_up, warm_up_fabrics, warm_up_jobs
from topox_ui.shell.style import css
from topox_ui.state import session

PAGES = (
    ("app.py", "Home"),
    ("pages/1_Schedule.py", "Schedule"),
    ("pages/2_Circuits.py", "Circuits"),
    ("pages/3_Compare.py", "Compare"),
    ("pages/4_Topology.py", "Topology"),
    ("pages/5_Strategy.py", "Strategy"),
    ("pages/6_Jobs.py", "Jobs"),
    ("pages/7_Rails.py", "Rails"),
    ("pages/8_Cost.py", "Cost"),
    ("pages/9_Gallery.py", "Gallery"),
)
PLAIN = {"displayModeBar": False, "responsive": True}


@dataclass(frozen=True)
class PageStyle:
    """How figures are drawn on this page: the theme's tokens and the scale of type."""

    theme: Theme
    scale: float = 1.0


def frame(page: str) -> PageStyle:
    """Begin a page; call it first, once."""
    st.set_page_config(
        page_title=f"{page} · TOPO-X Workbench",
        page_icon="🔀",
        layout="wide",
        initial_sidebar_state="expanded",
    )
    warmed()
    session.restore()
    large = bool(st.session_state.get("large", False))
    theme = theme_of(st.context.theme.type or "light")
    st.html(css(theme, large))
    query = session.scenario().as_query()
    with st.sidebar:
        for path, name in PAGES:
            st.page_link(path, label=f"**{name}**" if name == page else name, query_params=query)
        _follow_theme(theme.name)
    return PageStyle(theme, 1.2 if large else 1.0)


@st.cache_resource
def warmed() -> threading.Thread:
    """Load the compiled kernels beside the first visitor, so that no click waits for them."""
    thread = threading.Thread(target=_warm_all, name="warm up", daemon=True)
    thread.start()
    return thread


def _warm_all() -> None:
    warm_up()
    warm_up_fabrics()
    warm_up_jobs()
    # Streamlit collects garbage after every run of a page, twice a second while a solve is watched.
    # Modules and compiled code are none and by far the most of what it would look through: 0.13 s
    # in which nothing else is answered.
    gc.collect()
    gc.freeze()


@st.fragment(run_every=2)
def _follow_theme(drawn: str) -> None:
    """Redraw when the viewer switches the theme: figures carry explicit colours, and a switch alone does not rerun."""
    if theme_of(st.context.theme.type or "light").name != drawn:
        st.rerun()


def size_switch() -> None:
    """Offer the presentation size at the foot of the sidebar."""
    with st.sidebar:
        st.toggle(
            "Larger text",
            value=bool(st.session_state.get("large", False)),
            key="w_large",
            help="For a projector: 18 px type.",
            on_change=lambda: st.session_state.update(large=st.session_state["w_large"]),
        )


def headline(kicker: str, finding: str) -> None:
    """Write the kicker and the finding; ``finding`` is HTML made of our own words and escaped names."""
    st.html(f'<p class="kicker">{kicker}</p><h1 class="headline">{finding}</h1>')
    session.said()


def chart_title(title: str, note: str = "", under: bool = False) -> None:
    """Write a chart's title and its grey line, beside the title or under it."""
    gap = "" if under else "&ensp;"
    st.html(
        f'<p class="chart">{title}{gap}<span{" class=under" if under else ""}>{note}</span></p>'
    )


def escape(text: str) -> str:
    """Return text from a file or the address, safe within our HTML."""
    return html.escape(str(text), quote=True)


def nothing_loaded() -> None:
    """Say what to do on a page that needs a task graph, and stop."""
    headline(
        "Nothing is loaded yet",
        "Pick a sample, or bring <b>a task graph and a cluster</b>, and this page fills itself.",
    )
    st.page_link("app.py", label="Go to the samples", icon="➡️")
    st.stop()
