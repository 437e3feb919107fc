"""The first screen of Rails: the curve by delay, windows in numbers, the traffic of one GPU."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from topox_core.figures.palette import Theme, parallelism_word
from topox_core.figures.rails.delay import switch_word
from topox_core.figures.rails.traffic import strip, strip_legend
from topox_core.figures.rails.windows import cdf
from topox_core.model.arrays.intervals import covered_ms
from topox_core.rails.iteration import Window
from topox_core.rails.technologies import PORTS_PER_GPU, SPLIT_NOTE, WIDEST
from topox_core.rails.window_lengths import hides, median_ms
from topox_core.rails.windows import Phase
from topox_core.text.numbers import count, percent, plural, short, time
from topox_ui.rails.delay import over
from topox_ui.rails.finding import KICKER, dark_ms, needed_ms
from topox_ui.rails.state import MEASURED, UPLOAD, RailsState
from topox_ui.rails.subject import (
    Listed,
    Pattern,
    Simulated,
    Subject,
    answered,
    lane_words,
    simulate,
    switches_needed,
)
from topox_ui.shell.charts import (
    Content,
    chart,
    chart_title,
    escape,
    headline,
    kpis,
    legend_line,
    quiet,
    title_row,
)
from topox_ui.shell.menu import page_link
from topox_ui.state.widgets import menu, stretch_in_view

MAX_AT_ONCE = 48  # windows of a strip; beyond, a slider picks the stretch in view
NOT_TOGETHER = "These choices <b>do not go together</b>. Change one on the left, or go back to where the page begins."
EXAMPLE = """before,after,length_ms
fsdp,pp,32.9
pp,fsdp,55.2
fsdp,pp,0.84
pp,dp,1961.5
"""


def nothing_yet() -> None:
    """Say what to do where there is nothing to look at."""
    if RailsState.now().runs == UPLOAD:
        headline(
            KICKER,
            "Load <b>a list of windows</b> on the left: this page says how slow a switch they can hide.",
        )
        left, right = st.columns([1, 1.6], gap="medium")
        left.code(EXAMPLE, language=None)
        left.download_button(
            "This example",
            EXAMPLE,
            "example.windows.csv",
            "text/csv",
            on_click="ignore",
            key="get_example",
            icon=":material/download:",
        )
        right.html(
            '<p class="quiet">A table (CSV) or JSON, one window per row. Only <b>length_ms</b> is required: from the end '
            "of one kind of traffic to the start of the next; negative where they overlap. <b>before</b> and "
            "<b>after</b> name the two kinds (dp, fsdp, pp, cp, ep), <b>begin_ms</b> the start. <b>operation</b> and "
            "<b>size_bytes</b> describe the traffic after the window, <b>rank</b> and <b>rail</b> where it is. The windows "
            "of every job on this page download in both forms.</p>"
        )
        with right:
            page_link(
                "Rails",
                "Or open the windows that the authors measured",
                icon=":material/arrow_forward:",
                **{"rails.source": MEASURED},
            )
        return
    headline(KICKER, "No task graph is loaded. <b>Load one on Home</b>, or pick a job on the left.")
    page_link("Home", "Go to the samples", icon=":material/arrow_forward:", way="samples")


def simulating(subject: Simulated) -> bool:
    """Return whether the main simulations are there; if not, draw their progress (or the button that starts them)."""
    questions = [subject.undisturbed(), subject.at(dark_ms())]
    if answered(questions):
        return True
    headline(
        f"{KICKER} · {escape(subject.words)}",
        f"<b>{escape(subject.title)}</b> is large: it is simulated beside this page.",
    )
    simulate(
        questions,
        "Simulating without and with switching",
        "Simulate",
        "rails_simulate",
        begins=True,
        primary=True,
    )
    return False


def window_lengths(subject: Subject, theme: Theme) -> None:
    """Draw how long the windows are."""
    windows, dark = subject.pattern.windows, needed_ms(subject)
    chart_title(
        "How long are the windows?",
        f"share of windows up to each length, {_where(subject)}"
        + "; none has to be long" * subject.stays,
    )
    if not windows:
        quiet("There is no window: the rail carries only one kind of traffic.")
        return
    chart(
        cdf(windows, dark, theme),
        "cdf",
        f"Distribution of {len(windows)} windows"
        + (
            f"; {percent(_long(windows, dark)[2])} are at least {time(dark)} long." if dark else "."
        ),
        lambda: windows_table(windows, dark),
        "Every window",
    )


def _where(subject: Subject) -> str:
    several = "all stages" if subject.training else "all servers"
    return several if len(subject.pattern.lanes) > 1 else "of one GPU"


def _long(windows: Sequence[Window], dark: float) -> tuple[int, int, float]:
    """Return how many windows are long enough, of how many, as a share."""
    enough = sum(hides(one, dark) for one in windows)
    return enough, len(windows), enough / len(windows) if windows else 0.0


def windows_in_numbers(subject: Subject) -> None:
    """Draw how many windows there are, how many are long enough, and what the switch adds."""
    pattern, dark, stay = subject.pattern, dark_ms(), subject.stays
    base, (on_demand, provisioned) = subject.base_ms, subject.both_ms(dark)
    enough, every, share = _long(pattern.windows, dark)
    mine = [one.length_ms for one in pattern.of(pattern.lane)[1]]
    median = median_ms(pattern.windows)
    longest = max((one.length_ms for one in pattern.windows), default=0.0)
    overlaps = sum(one.length_ms <= 0 for one in pattern.windows)
    how = "by formula" if isinstance(subject, Listed) else "simulated"
    kpis(
        (
            "Windows per iteration",
            count(len(mine)),
            "of the GPU shown"
            + (f"; {count(every)} on {_where(subject)}" if every > len(mine) else ""),
        ),
        (
            "Windows long enough",
            "none needed" if stay else percent(share),
            (
                "no circuit changes"
                if stay
                else f"{count(enough)} of {count(every)} last {time(dark)} or more"
            )
            + (f"; {count(overlaps)} of no length" if overlaps else ""),
        ),
        (
            "Median window",
            "–" if median is None else time(max(0.0, median)),
            f"longest {time(max(0.0, longest))}",
        ),
        *(
            (name, time(max(0.0, takes - base)), f"{over(takes / base - 1)}, {how}")
            for name, takes in (
                ("Added time, provisioned", provisioned),
                ("Added time, on demand", on_demand),
            )
            if not stay
        ),
    )


def traffic_strip(subject: Subject, theme: Theme) -> None:
    """Draw what one GPU sends on its rail and the windows between, and how many switches the rail takes."""
    pattern = subject.pattern
    traffic, windows = pattern.of(pattern.lane)
    ends = np.array([(one.begin_ms, one.end_ms) for one in traffic]).reshape(-1, 2).T
    busy_ms = covered_ms(np.zeros(len(traffic), np.int64), *ends)  # kinds that overlap count once
    note = (
        f"one iteration of {time(pattern.iteration_ms)}; data flow for {time(busy_ms)} of it, drawn at least 3 px "
        "wide. Outlined: windows, with their length where it fits (ms unless it says s)"
    )
    if subject.run is None:
        note = (
            "windows to scale; the list has no times, so the traffic between them is drawn evenly"
            if pattern.drawn_evenly
            else "one iteration; a list of windows does not say where traffic of one kind pauses"
        )
    [pick] = title_row((2.6, 1), "Traffic of one GPU on its rail, and the windows between", note)
    if len(pattern.lanes) > 1:
        menu(
            RailsState,
            "lane",
            {k: lane_words(subject, one) for k, one in enumerate(pattern.lanes)},
            label="Rank",
            value=pattern.lanes.index(pattern.lane),
            at=pick,
            label_visibility="collapsed",
        )
    _strip_in_view(pattern, traffic, windows, needed_ms(subject), theme)
    if subject.run is not None:
        _width(sum(subject.run.iteration.stands_for.tolist()))


def _width(servers: int) -> None:
    """Say where a rail is wider than a switch: than the chosen one, or than any that turns within a second."""
    needed, ports = switches_needed(servers), PORTS_PER_GPU * servers
    if not needed and ports > WIDEST.radix:
        most = f"{count(WIDEST.radix)} ({switch_word(WIDEST.name)})"
        quiet(
            f'<span class="bad">✗</span> A rail of {plural(servers, "server")} takes {count(ports)} ports; '
            f"no switch that changes within a second has more than {most}, so this rail cannot use one switch. Choose a "
            "switch on the left, or split the rail."
        )
    if needed > 1:
        note = escape(SPLIT_NOTE.capitalize())
        quiet(f"This rail takes {plural(needed, 'switch', 'switches')}. {note}.")


@st.fragment
def _strip_in_view(
    pattern: Pattern,
    traffic: tuple[Phase, ...],
    windows: tuple[Window, ...],
    dark: float,
    theme: Theme,
) -> None:
    """Draw the strip; with many windows a slider picks the stretch in view, and only this part of the page is drawn again."""
    whole = max(pattern.iteration_ms, 1e-9)
    view = (0.0, whole)
    if len(windows) > MAX_AT_ONCE:
        view = stretch_in_view(RailsState, whole, (0.0, whole * MAX_AT_ONCE / len(windows)))
    gaps = ", ".join(f"{short(one.length_ms)} ms before {one.after}" for one in windows[:24])
    drawn = strip(traffic, windows, dark, view, theme, legend=False)
    legend_line(strip_legend(drawn, theme), theme)
    chart(
        drawn,
        "strip",
        f"Traffic of one rank over {time(whole)} with {len(windows)} windows: {gaps}.",
        lambda: windows_table(windows, dark),
        "Windows of this GPU",
    )


def windows_table(windows: Sequence[Window], dark: float) -> Content:
    """Return windows as a table, with all digits; ``dark``: how long each has to be, in ms, 0 where none has to."""
    return [
        {
            "rank": one.rank,
            "rail": one.rail,
            "before": parallelism_word(one.before),
            "after": parallelism_word(one.after),
            "first operation": one.operation.replace("_", " "),
            "begins (ms)": one.begin_ms,
            "length (ms)": one.length_ms,
            "bytes after it": one.size_bytes,
            **({"long enough": "✓" if hides(one, dark) else "✗"} if dark else {}),
        }
        for one in windows
    ]
