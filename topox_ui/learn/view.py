"""Learn: the tour, six screens each with one slider and a live line; and the glossary, all entries or those asked for."""

from collections.abc import Callable, Set
from functools import partial
from typing import Annotated

import plotly.graph_objects as go
import streamlit as st
from msgspec import defstruct

from topox_core.figures.iteration.circuits import around_a_switch, matrix
from topox_core.figures.iteration.gantt import gantt
from topox_core.figures.iteration.lanes import bars_of, lanes_of
from topox_core.figures.jobs.rounds import timeline
from topox_core.figures.networks.crossover import HEIGHT, over_delay
from topox_core.figures.palette import Theme
from topox_core.figures.rails.traffic import strip, strip_legend
from topox_core.figures.rails.windows import by_length
from topox_core.figures.template import DOTS, line, upright
from topox_core.labs.tour import (
    IN_TURNS,
    SCREENS,
    TOGETHER,
    Screen,
    circuits_run,
    live_line,
    notice,
    partner,
    ports_run,
    rail_picture,
    round_of,
    screen,
    slots_run,
    times_at,
)
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import state_at
from topox_core.schedule.results.result import Result
from topox_core.schema.fields import setting
from topox_core.text.glossary import Entry, entry_of, glossary
from topox_core.text.numbers import time
from topox_ui.shell.charts import (
    button,
    chart,
    chart_title,
    escape,
    headline,
    legend_line,
    quiet,
    task_table,
    write_html,
)
from topox_ui.shell.menu import page_link, sample_link
from topox_ui.shell.preparing import prepared, wait_for_kernels
from topox_ui.shell.terms import with_terms
from topox_ui.state.session import NotNegative, PageState
from topox_ui.state.widgets import control, slide


class LearnState(  # type: ignore[misc]
    defstruct(
        "Sliders",
        [(name, NotNegative | None, None) for name in SCREENS],
        bases=(PageState,),
        frozen=True,
    )
):
    """The screen of the tour, whether its sentences are left out, and where each screen's slider stands."""

    prefix = "learn."

    step: Annotated[int, setting(ge=1, le=len(SCREENS))] = 1
    short: bool = False


class GlossaryState(PageState):
    """The words that are looked for, and the entry that a link leads to."""

    prefix = "glossary."

    find: Annotated[str, setting(max_length=60)] = ""
    term: Annotated[str, setting(choices=[*(entry.id for entry in glossary()), ""])] = ""


STEM = 5  # letters by which forms of one word are known


def draw_glossary(_theme: Theme) -> None:
    """Draw the view Glossary: the filter and the entries."""
    state = GlossaryState.now()
    every = sorted(glossary(), key=lambda one: one.term.casefold())
    headline(
        "Glossary",
        f"<b>{len(every)}</b> words of the field, from A to Z, each in a sentence or two.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        find = control(
            "text_input",
            GlossaryState,
            "find",
            label="Find a word",
            placeholder="Type part of a word",
            max_chars=60,
            width=320,
        )
        if state.find or state.term:
            st.button(
                "All words",
                key="all_words",
                on_click=GlossaryState.choose,
                kwargs={"find": None, "term": None},
            )
    if state.term:
        st.html(
            f'<dl class="glossary asked">{_entry(entry_of(state.term), {one.id for one in every})}</dl>'
        )
    shown = [one for one in every if one.id != state.term and _has(one, find)]
    if shown:
        here = {one.id for one in shown}
        st.html(f'<dl class="glossary">{"".join(_entry(one, here) for one in shown)}</dl>')
    elif not state.term:
        quiet(f"No entry has “{escape(find)}”. Try a shorter word, or only its beginning.")


def _has(entry: Entry, find: str) -> bool:
    text = " ".join((entry.term, entry.text, *entry.also, *entry.labels)).casefold()
    return all(word in text for word in find.casefold().split())


def _entry(entry: Entry, here: Set[str]) -> str:
    """Return an entry as HTML, the terms of others in it explained; it leads to related ones that are on the page."""
    others = [word for word in entry.also if not _varies(word, entry.term)]
    also = f'<span class="also">Also: {", ".join(others)}</span>' if others else ""
    related = ", ".join(
        f'<a href="#entry-{name}">{entry_of(name).term}</a>'
        if name in here
        else entry_of(name).term
        for name in entry.see
    )
    see = f'<span class="also">See: {related}</span>' if related else ""
    return f'<div id="entry-{entry.id}"><dt>{entry.term}</dt><dd>{with_terms(entry.text, entry.id)}{see}{also}</dd></div>'


def _varies(word: str, term: str) -> bool:
    """Whether a word is only another form of a term: in it, or made of the same stems."""
    word, term = word.casefold(), term.casefold()
    stems = [part[:STEM] for part in term.split() if not part.startswith("(")]
    return word in term or all(stem in word for stem in stems)


def _alt(name: str, value: float) -> str:
    """Return what a figure shows, in the words of its live line."""
    return f"{screen(name).figure}. {live_line(name, value)}".replace("<b>", "").replace("</b>", "")


def _circuits(at_ms: float, theme: Theme) -> None:
    execution = circuits_run().execution
    state = state_at(execution, at_ms)
    left, right = st.columns([1, 1.1], gap="small")
    with left:
        figure = around_a_switch(execution, state, theme)
        chart(figure, "tour_switch", _alt("circuits", at_ms))
    with right:
        squares = matrix(execution, state, theme)
        squares.update_layout(height=round(HEIGHT * theme.scale), showlegend=False)
        servers = range(execution.cluster.servers)
        chart(
            squares,
            "tour_matrix",
            "The same circuits as a square: sender down, receiver across.",
            lambda: {
                "server": [f"S{s}" for s in servers],
                "sends to": [
                    "–" if (to := partner(execution, s, at_ms)) is None else f"S{to}"
                    for s in servers
                ],
            },
        )


def _gantt(
    name: str,
    run: Callable[[float], Result],
    until_ms: float,
    bound: bool,
    value: float,
    theme: Theme,
) -> None:
    """Draw the schedule that a slider leads to, with its lower bound if that is asked for."""
    result = run(value)
    execution = result.execution
    lanes = lanes_of(execution)
    lanes = lanes.showing(0, lanes.servers - 1)
    path = critical_path(execution, result.settings.exclusive_devices)
    figure = gantt(execution, bars_of(execution, lanes), lanes, (0.0, until_ms), path, theme)
    _in_plain_words(figure, theme)
    if bound:
        figure.add_shape(upright(result.bound_ms, line(theme.ink, 2, DOTS)))
    chart(
        figure,
        f"tour_{name}",
        _alt(name, value),
        lambda: task_table(execution, path),
    )


def _in_plain_words(figure: go.Figure, theme: Theme) -> None:
    """Say in the legend what the bars do, for who knows no training; leave room for the numbers in them."""
    for trace in figure.data:
        trace.name = _GANTT_WORDS.get(trace.name, trace.name)
        if trace.type == "bar":
            trace.textfont.size = 12 * theme.scale
            if trace.name == COMPUTES:
                trace.text = None
    rows = (figure.layout.height or 0) - figure.layout.margin.t - figure.layout.margin.b
    figure.update_layout(height=round((figure.layout.height or 0) + 0.55 * rows))


COMPUTES, SENDS = "computes", "sends, to the server with this number"
_GANTT_WORDS = {"forward": COMPUTES, "pipeline send": SENDS, "transfer": SENDS}


def _delay(delay_ms: float, theme: Theme) -> None:
    delays = screen("delay").values
    times = [times_at(one) for one in delays]
    names = tuple(times[0])
    columns = {name: [one[name] for one in times] for name in names}
    labels = {name: LINES[name] for name in names}
    chart(
        over_delay(delays, columns, labels, delay_ms, theme),
        "tour_delay",
        _alt("delay", delay_ms),
        lambda: {"delay (ms)": delays, **{f"{LINES[name]} (ms)": columns[name] for name in names}},
    )


# The rows of windows are named by these letters.
_TRAFFIC_WORDS = {"pipeline send": "pipeline send (pp)"}
LINES = {
    "static": "fixed circuits",
    "reactive": "circuits on demand",
    "provisioned": "provisioned circuits",
}


def _windows(delay_ms: float, theme: Theme) -> None:
    picture = rail_picture()
    view = (0.0, picture.iteration_ms)
    pattern = strip(picture.phases, picture.windows, delay_ms, view, theme, legend=False)
    pattern.update_layout(margin={"l": round(78 * theme.scale)})
    keys = strip_legend(pattern, theme)
    legend_line([(look, _TRAFFIC_WORDS.get(words, words)) for look, words in keys], theme)
    chart(
        pattern,
        "tour_rail",
        "What one GPU sends on its rail in one iteration, and the windows between.",
    )
    chart(
        by_length(picture.windows, delay_ms, theme),
        "tour_windows",
        _alt("windows", delay_ms),
        lambda: {
            "window begins (ms)": [one.begin_ms for one in picture.windows],
            "length (ms)": [one.length_ms for one in picture.windows],
            "a change fits": [
                "yes" if one.length_ms >= delay_ms else "no" for one in picture.windows
            ],
        },
    )


def _sharing(value: float, theme: Theme) -> None:
    round_ = round_of(value)
    name = "Together" if value == TOGETHER else "In turns"
    chart(
        timeline([(name, round_)], theme),
        "tour_sharing",
        _alt("sharing", value),
        lambda: {
            "jobs send": ["together", "in turns"],
            "round (s)": [round_of(0.0).round_s, round_of(1.0).round_s],
        },
    )


_FIGURES: dict[str, Callable[[float, Theme], None]] = {
    "circuits": _circuits,
    "slots": partial(_gantt, "slots", slots_run, 16.5, False),
    "delay": _delay,
    "ports": partial(_gantt, "ports", lambda ports: ports_run(int(ports)), 15.5, True),
    "windows": _windows,
    "sharing": _sharing,
}


SAMPLE = "moe"
WORDS = {TOGETHER: "Together", IN_TURNS: "In turns"}


def draw_tour(theme: Theme) -> None:
    """Draw the view Tour: the screen that the address names."""
    state = LearnState.now()
    one = screen(SCREENS[state.step - 1])
    headline(f"Learn · screen {state.step} of {len(SCREENS)}", f"<b>{one.title}</b>")
    with st.container(horizontal=True, vertical_alignment="center", key="tour_length"):
        label = "With all sentences" if state.short else "60-second version"
        button(label, "tour_short", "timer", partial(LearnState.choose, short=not state.short))
        st.html(
            '<p class="quiet">Six screens, each with one slider; the 60-second version leaves the sentences out.</p>',
            width="content",
        )
    words, picture = st.columns([1, 1.75], gap="large")
    with words:
        if not state.short:
            lines = "".join(f"<p>{sentence}</p>" for sentence in one.sentences)
            write_html(f'<div class="lesson">{lines}</div>')
        if prepared():
            value = _slider(one)
            write_html(f'<p class="live" role="status">{live_line(one.id, value)}</p>')
            quiet(notice(one.id))
    with picture:
        if prepared():
            chart_title(one.figure, one.figure_note)
            _FIGURES[one.id](value, theme)
    _steps(state)
    _contents(state)
    with picture:  # last: it ends the page
        wait_for_kernels()


def _slider(one: Screen) -> float:
    chosen = getattr(LearnState.now(), one.id)
    wanted = one.start if chosen is None else chosen
    value = min(one.values, key=lambda step: abs(step - wanted))
    return float(
        slide(
            LearnState,
            one.id,
            one.values,
            label=one.slider,
            value=value,
            words=lambda v: _word(one, v),
        )
    )


def _word(one: Screen, value: float) -> str:
    if one.id == "sharing":
        return WORDS[value]
    return time(value) if one.unit else f"{value:g}"


def _steps(state: LearnState) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="tour_steps"):
        if state.step > 1:
            button(
                "Back", "tour_back", "arrow_back", partial(LearnState.choose, step=state.step - 1)
            )
        st.html(f'<p class="step">{state.step} of {len(SCREENS)}</p>', width="content")
        if state.step < len(SCREENS):
            button(
                "Next",
                "tour_next",
                "arrow_forward",
                partial(LearnState.choose, step=state.step + 1),
                primary=True,
            )
        else:
            _ways_on()


def _contents(state: LearnState) -> None:
    """List the screens, so that a reader knows what comes and how long it is."""
    chart_title("All six screens")
    with st.container(horizontal=True, key="tour_contents"):
        for step, name in enumerate(SCREENS, start=1):
            label = f"{step}. {screen(name).title}"
            st.button(
                label,
                key=f"tour_to_{step}",
                type="tertiary",
                disabled=step == state.step,
                on_click=LearnState.choose,
                kwargs={"step": step},
            )


def _ways_on() -> None:
    """Lead from the last screen to the first lab, to a sample, to the reader's own job."""
    page_link("Labs", "Try the first lab", **{"lab.id": "six-tasks", "lab.seed": "1"})
    with st.container(key="see", width="content"):
        sample_link(SAMPLE, "**Open a sample**")
    page_link("Home", "Bring your own job", way="files")
