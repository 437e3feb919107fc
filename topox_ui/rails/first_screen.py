"""The first screen of Rails: whether a switch can serve the job, the curve by delay, windows in numbers, a GPU's traffic."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme, parallelism_word
from topox_core.figures.rails.delay import switch_word
from topox_core.figures.rails.traffic import strip, strip_legend
from topox_core.figures.rails.windows import cdf
from topox_core.rails.iteration import RailRun, Window
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import PORTS_PER_GPU, SPLIT_NOTE, TECHNOLOGIES
from topox_core.rails.window_lengths import hides
from topox_core.rails.windows import Phase
from topox_core.text.numbers import count, enumeration, percent, plural, short, time
from topox_ui.answers.other_times import (
    RAILS_OF_GRAPH,
    RAILS_OF_MODEL,
    on_schedule,
    schedule_of_loaded,
)
from topox_ui.rails.delay import Curves, delay_chart, over, slowest_words, switch_table
from topox_ui.rails.state import JOB, MEASURED, SCENARIO, UPLOAD, RailsState, why_not
from topox_ui.rails.subject import (
    RAILS,
    Lane,
    Listed,
    Pattern,
    Simulated,
    Subject,
    answered,
    begun,
    gaps_in_words,
    known,
    lane_words,
    pattern_of_list,
    pattern_of_run,
    simulate,
    simulated,
    start,
    switches_needed,
)
from topox_ui.runs.panel import run_note
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
from topox_ui.state.loading import loaded, loaded_job
from topox_ui.state.widgets import menu, stretch_in_view

# From here on what rings cost against an electrical switch is worth a word in the headline.
RINGS_COST = 0.03
KICKER = "Rails"
WHAT = (
    "A rail is the network that joins the GPUs of the same number in all servers; here an optical switch carries it. A window "
    "is a pause on a rail between two kinds of traffic: a circuit change that fits into one costs no time."
)


def dark_ms() -> float:
    """Return how long a changed circuit is dark: the switch, then the NIC's link."""
    now = RailsState.now()
    return now.switch_ms + now.link_up_ms


def needed_ms(subject: Subject) -> float:
    """Return how long a window has to be: as a changed circuit is dark, 0 where none changes."""
    return 0.0 if circuits_stay(subject) else dark_ms()


def both_of(subject: Subject, lane: Lane) -> tuple[float, float, float]:
    """Return the iteration without switching, on demand and provisioned, in ms."""
    if isinstance(subject, Listed):
        source = subject.source(lane)
        return (source.base_ms, *source.both_ms(dark_ms()))
    return (known(subject.undisturbed()).iteration_ms, *known(subject.at(dark_ms())))


def loaded_elsewhere() -> None:
    """Say beside a preset why the loaded job is not what the page shows, with the way to what it can show of it."""
    opened = loaded()
    if opened is None or RailsState.now().runs not in PRESETS:
        return
    why = why_not(loaded_job())
    link = "Show its windows" if why else "Show it on rails"
    with st.container(horizontal=True, vertical_alignment="center", key="rails_loaded"):
        st.html(
            f'<p class="quiet">The loaded job, <b>{escape(opened.title)}</b>, is not used here{why and f": {why}"}.</p>',
            width="content",
        )
        source = {"rails.source": SCENARIO if why else JOB}
        page_link("Rails", link, icon=":material/arrow_forward:", **source)


def answer_first(subject: Subject, pattern: Pattern, lane: Lane) -> None:
    """Draw the answer, and what it is about."""
    _headline(subject, pattern, lane)
    quiet(f"{WHAT} {_why_none_changes(subject, pattern)}")
    loaded_elsewhere()
    base = both_of(subject, lane)[0]
    # Where circuits stay, the headline says it.
    stay, rings = circuits_stay(subject), _rings_cost(subject, base)
    quiet(f"{_other_times(base, bool(stay and rings))} {'' if stay else rings}".strip())


def circuits_stay(subject: Subject) -> bool:
    """Return whether a simulated job changes no circuit, though its traffic may have windows."""
    return isinstance(subject, Simulated) and not known(subject.undisturbed()).reconfigurations


def _why_none_changes(subject: Subject, pattern: Pattern) -> str:
    """Return why windows need not be long where no circuit changes; empty where one does."""
    kinds = dict.fromkeys(parallelism_word(one.parallelism) for one in pattern.traffic)
    if not pattern.windows or not circuits_stay(subject):
        return ""
    return (
        f"All traffic of this job, {enumeration(list(kinds))}, runs on the same rings: no circuit has to change, so no window "
        "has to be long."
    )


def _headline(subject: Subject, pattern: Pattern, lane: Lane) -> None:
    base, on_demand, provisioned = both_of(subject, lane)
    job, windows = subject.training, plural(len(pattern.windows), "window")
    lasts = (
        f"scaled to the published {time(base)}"
        if job is not None and job.schedule.iteration_ms
        else time(base)
    )
    kicker = " · ".join(
        (KICKER, escape(subject.title), escape(subject.words), f"iteration {lasts}")
    )
    if not pattern.windows and on_demand - base < 1e-6 * base:
        headline(
            kicker,
            "There is <b>no window</b> and nothing to switch: the rail carries only one kind of traffic.",
        )
        return
    # Between two circuits of one kind of traffic there is no window either, but they change.
    first = (
        ""
        if pattern.windows
        else "There is <b>no window</b> between kinds of traffic, but circuits change within one. "
    )
    if circuits_stay(subject):
        cost = _rings_cost(subject, base)
        headline(
            kicker,
            f"{cost} During an iteration <b>no circuit changes</b>: a faster switch saves nothing. {_joined_elsewhere(base)}".rstrip()
            if cost
            else "With a rail for each GPU, wired as rings, <b>any optical switch</b> "
            '<span class="good">✓ can serve this job</span>, however slow: during an iteration <b>no circuit changes</b>.',
        )
        return
    if dark_ms():
        first += _serves(base, on_demand, provisioned, job is not None)
    elif pattern.windows:
        first = (
            f"With a switch that takes no time the iteration takes <b>{time(base)}</b>; it has "
            f"{windows} in which circuits can change."
        )
    headline(kicker, f"{first}{_up_to(subject, lane)}")


def _rings_cost(subject: Subject, base: float) -> str:
    """Return how much longer rings alone make a job than an electrical switch; empty where little, or not simulated yet."""
    if not isinstance(subject, Simulated) or subject.training is None:
        return ""
    electrical = replace(subject.undisturbed(), rail=replace(subject.rail, optical=False))
    try:
        if not answered([electrical]):
            return ""
    except InputError:
        return ""
    electrical_ms = known(electrical).iteration_ms
    if base <= electrical_ms * (1 + RINGS_COST):
        return ""
    switch = (
        ", however fast the optical switch"
        if circuits_stay(subject)
        else " with a switch that takes no time"
    )
    return (
        f"On rings an iteration takes <b>{time(base)}</b>{switch}: "
        f"<b>{percent(base / electrical_ms - 1)} more</b> than on an electrical switch ({time(electrical_ms)})."
    )


def _other_times(base: float, cost: bool) -> str:
    """Say what is taken of the loaded job and why it takes another time here than on Schedule; empty of another job.

    ``cost``: the headline says what rings cost, and the time on Schedule where that is less.
    """
    runs = RailsState.now().runs
    if runs not in (JOB, SCENARIO):
        return ""
    of_model = runs == JOB and loaded_job() is not None
    words = RAILS_OF_MODEL if of_model else RAILS_OF_GRAPH
    there = f"{known} on Schedule" if (known := on_schedule()) else "another time on Schedule"
    told = cost and _joined_elsewhere(base)
    times = "" if told else f"an iteration takes {time(base)} here and {there}, and "
    return f"{words} So {times}a switch may serve here that does not pay there."


def _joined_elsewhere(base: float) -> str:
    """Say why circuits gain on Schedule where rings lose here; empty of another job, or where they do not."""
    job = loaded_job()
    known = schedule_of_loaded() if RailsState.now().runs == JOB else None
    if known is None or known.switching == "fixed" or (known.makespan_ms or 0.0) >= base:
        return ""
    overlaps = job is not None and job.schedule.overlap_exchanges
    there, here = (
        ("GPUs compute while tokens travel, and ", "GPUs wait, and ") if overlaps else ("", "")
    )
    return (
        f"On Schedule it takes {time(known.makespan_ms or 0.0)}: there {there}circuits join any two servers; here {here}rings "
        "pass data on from server to server."
    )


def _serves(base: float, on_demand: float, provisioned: float, rings: bool) -> str:
    """Return whether the switch can serve the job: how much slower than with one that takes no time, against the limit."""
    now = RailsState.now()
    link = f" with a link start-up of {time(now.link_up_ms)}" if now.link_up_ms else ""
    share = (provisioned if now.control == "provisioned" else on_demand) / base - 1
    limit = f"the {now.limit:g}&nbsp;% limit"
    can, against = (
        ('<span class="good">✓ can serve this job</span>', f"within {limit}")
        if share <= now.limit / 100
        else ('<span class="bad">✗ is too slow for this job</span>', f"more than {limit}")
    )
    instant = f"{'the same rings with ' if rings else ''}a switch that takes no time"
    if share >= 1:
        slower = f"an iteration takes <b>{short(1 + share)} times as long</b> as with {instant}"
    else:
        slower = f"<b>{over(share)} slower</b>" if share >= 5e-7 else "<b>no slower</b>"
        slower += f" than {instant}"
    return f"A {time(now.switch_ms)} switch{link} on the rail {can}: {slower}, {against}."


def _up_to(subject: Subject, lane: Lane) -> str:
    """Return the slowest switch that keeps the limit, under both controls; empty while it is not known."""
    now = RailsState.now()
    ahead, asked = (slowest_words(subject, lane, one) for one in ("provisioned", "on_demand"))
    mine, other = (ahead, asked) if now.control == "provisioned" else (asked, ahead)
    if not mine:
        return ""
    it = "it" if dark_ms() else f"the {now.limit:g}&nbsp;% limit"
    if mine == "any":
        words = f"Any slower switch stays within {it} too"
    elif mine == "none":
        words = f"No switch stays within {it}"
    else:
        words = f"The slowest switch within {it} takes {mine}"
    if other == mine:
        return f" {words}."
    way = (
        "if circuits are requested only on demand"
        if now.control == "provisioned"
        else "if circuits change ahead of time"
    )
    return f" {words}, {other or 'an unknown time'} {way}."


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
    if not begun(questions):
        start(questions)
    if not simulated(questions):
        run_note(RAILS)
    simulate(
        questions,
        "Simulating without and with switching",
        "Simulate",
        "rails_simulate",
        primary=True,
    )
    return False


def pattern_of(subject: Subject) -> tuple[Pattern, RailRun | None]:
    """Return windows and traffic of a subject, and the undisturbed run if it is simulated."""
    if isinstance(subject, Listed):
        return pattern_of_list(subject), None
    run = known(subject.undisturbed())
    return pattern_of_run(subject, run), run


def lane_of(pattern: Pattern) -> Lane:
    """Return the lane that was chosen, or the first."""
    at = RailsState.now().lane
    return pattern.lanes[at if at < len(pattern.lanes) else 0]


def by_delay(subject: Subject, lane: Lane, theme: Theme) -> Curves:
    """Draw overhead against the delay with the switches beside it; return the study's curves."""
    left, right = st.columns([1.42, 1], gap="medium")
    with left:
        curves = delay_chart(subject, lane, theme)
    with right:
        switch_table(subject, lane)
    return curves


def window_lengths(subject: Subject, pattern: Pattern, theme: Theme) -> None:
    """Draw how long the windows are."""
    dark = needed_ms(subject)
    chart_title(
        "How long are the windows?",
        f"share of windows up to each length, {_where(subject, pattern)}"
        + "; none has to be long" * circuits_stay(subject),
    )
    if not pattern.windows:
        quiet("There is no window: the rail carries only one kind of traffic.")
        return
    chart(
        cdf(pattern.windows, dark, theme),
        "cdf",
        f"Distribution of {len(pattern.windows)} windows"
        + (
            f"; {percent(_long(pattern.windows, dark)[2])} are at least {time(dark)} long."
            if dark
            else "."
        ),
        lambda: windows_table(pattern.windows, dark),
        "Every window",
    )


def _where(subject: Subject, pattern: Pattern) -> str:
    several = "all stages" if subject.training else "all servers"
    return several if len(pattern.lanes) > 1 else "of one GPU"


def _long(windows: Sequence[Window], dark: float) -> tuple[int, int, float]:
    """Return how many windows are long enough, of how many, as a share."""
    enough = sum(hides(one, dark) for one in windows)
    return enough, len(windows), enough / len(windows) if windows else 0.0


def windows_in_numbers(subject: Subject, pattern: Pattern) -> None:
    """Draw how many windows there are, how many are long enough, and what the switch adds."""
    lane, dark, stay = lane_of(pattern), dark_ms(), circuits_stay(subject)
    base, on_demand, provisioned = both_of(subject, lane)
    enough, every, share = _long(pattern.windows, dark)
    mine = [one.length_ms for one in pattern.of(lane)[1]]
    lengths = [max(0.0, one.length_ms) for one in pattern.windows]
    overlaps = sum(one.length_ms <= 0 for one in pattern.windows)
    how = "by formula" if isinstance(subject, Listed) else "simulated"
    kpis(
        (
            "Windows per iteration",
            count(len(mine)),
            "of the GPU shown"
            + (f"; {count(every)} on {_where(subject, pattern)}" if every > len(mine) else ""),
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
            time(float(np.median(lengths))) if lengths else "–",
            f"longest {time(max(lengths, default=0.0))}",
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


def traffic_strip(
    subject: Subject, pattern: Pattern, run: RailRun | None, lane: Lane, theme: Theme
) -> None:
    """Draw what one GPU sends on its rail and the windows between, and how many switches the rail takes."""
    traffic, windows = pattern.of(lane)
    note = (
        f"one iteration of {time(pattern.iteration_ms)}; data flow for {time(_busy_ms(traffic))} of it, drawn at least 3 px "
        "wide. Outlined: windows, with their length where it fits (ms unless it says s)"
    )
    if run is None:
        note = (
            "windows to scale; the list has no times, so the traffic between them is drawn evenly"
            if pattern.drawn_evenly
            else "one iteration; a list of windows does not say where traffic of one kind pauses"
        )
    [pick] = title_row((2.6, 1), "Traffic of one GPU on its rail, and the windows between", note)
    rails = len({rail for _, rail in pattern.lanes})
    if len(pattern.lanes) > 1:
        menu(
            "Rank",
            RailsState,
            "lane",
            {k: lane_words(subject, run, one, rails) for k, one in enumerate(pattern.lanes)},
            value=pattern.lanes.index(lane),
            at=pick,
            label_visibility="collapsed",
        )
    _strip_in_view(pattern, traffic, windows, needed_ms(subject), theme)
    if run is not None:
        _width(sum(run.iteration.stands_for.tolist()))


def _busy_ms(traffic: Sequence[Phase]) -> float:
    """Return how long some traffic is under way; kinds that overlap count once."""
    busy_ms = until_ms = 0.0
    for one in sorted(traffic, key=lambda one: one.begin_ms):
        busy_ms += max(0.0, one.end_ms - max(one.begin_ms, until_ms))
        until_ms = max(until_ms, one.end_ms)
    return busy_ms


def _width(servers: int) -> None:
    """Say where a rail is wider than a switch: than the chosen one, or than any that turns within a second."""
    needed, ports = switches_needed(servers), PORTS_PER_GPU * servers
    widest = max(
        (one for one in TECHNOLOGIES if one.reconfiguration_ms < 1000), key=lambda one: one.radix
    )
    if not needed and ports > widest.radix:
        most = f"{count(widest.radix)} ({switch_word(widest.name)})"
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
        view = stretch_in_view(
            RailsState, whole, (0.0, whole * MAX_AT_ONCE / len(windows)), "%.0f ms"
        )
    drawn = strip(traffic, windows, dark, view, theme, legend=False)
    legend_line(strip_legend(drawn, theme), theme)
    chart(
        drawn,
        "strip",
        f"Traffic of one rank over {time(whole)} with {len(windows)} windows: {gaps_in_words(windows)}.",
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
