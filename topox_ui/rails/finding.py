"""The finding of Rails in sentences: whether a switch can serve the job, what rings cost, and what differs from other pages."""

from dataclasses import replace

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import parallelism_word
from topox_core.rails.presets import PRESETS
from topox_core.text.numbers import enumeration, percent, plural, short, time
from topox_ui.answers.other_times import (
    RAILS_OF_GRAPH,
    RAILS_OF_MODEL,
    on_schedule,
    schedule_of_loaded,
)
from topox_ui.rails.delay import both_controls, over, slowest_words
from topox_ui.rails.state import JOB, SCENARIO, RailsState, why_not
from topox_ui.rails.subject import Simulated, Subject, answered, known
from topox_ui.shell.charts import escape, headline, quiet
from topox_ui.shell.menu import page_link
from topox_ui.state.loading import loaded, loaded_job

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
    return 0.0 if subject.stays else dark_ms()


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


def answer_first(subject: Subject) -> None:
    """Draw the answer, and what it is about."""
    rings = _rings_cost(subject)
    _headline(subject, rings)
    quiet(f"{WHAT} {_why_none_changes(subject)}")
    loaded_elsewhere()
    # Where circuits stay, the headline says it.
    told = bool(subject.stays and rings)
    quiet(f"{_other_times(subject.base_ms, told)} {'' if subject.stays else rings}".strip())


def _why_none_changes(subject: Subject) -> str:
    """Return why windows need not be long where no circuit changes; empty where one does."""
    kinds = dict.fromkeys(parallelism_word(one.parallelism) for one in subject.pattern.traffic)
    if not subject.pattern.windows or not subject.stays:
        return ""
    return (
        f"All traffic of this job, {enumeration(list(kinds))}, runs on the same rings: no circuit has to change, so no window "
        "has to be long."
    )


def _headline(subject: Subject, rings: str) -> None:
    base, job, windows = subject.base_ms, subject.training, subject.pattern.windows
    on_demand, provisioned = subject.both_ms(dark_ms())
    lasts = (
        f"scaled to the published {time(base)}"
        if job is not None and job.schedule.iteration_ms
        else time(base)
    )
    kicker = " · ".join(
        (KICKER, escape(subject.title), escape(subject.words), f"iteration {lasts}")
    )
    if not windows and on_demand - base < 1e-6 * base:
        headline(
            kicker,
            "There is <b>no window</b> and nothing to switch: the rail carries only one kind of traffic.",
        )
        return
    # Between two circuits of one kind of traffic there is no window either, but they change.
    first = (
        ""
        if windows
        else "There is <b>no window</b> between kinds of traffic, but circuits change within one. "
    )
    if subject.stays:
        headline(
            kicker,
            f"{rings} During an iteration <b>no circuit changes</b>: a faster switch saves nothing. {_joined_elsewhere(base)}".rstrip()
            if rings
            else "With a rail for each GPU, wired as rings, <b>any optical switch</b> "
            '<span class="good">✓ can serve this job</span>, however slow: during an iteration <b>no circuit changes</b>.',
        )
        return
    if dark_ms():
        first += _serves(base, on_demand, provisioned, job is not None)
    elif windows:
        first = (
            f"With a switch that takes no time the iteration takes <b>{time(base)}</b>; it has "
            f"{plural(len(windows), 'window')} in which circuits can change."
        )
    headline(kicker, f"{first}{_up_to(subject)}")


def _rings_cost(subject: Subject) -> str:
    """Return how much longer rings alone make a job than an electrical switch; empty where little, or not simulated yet."""
    if not isinstance(subject, Simulated) or subject.training is None:
        return ""
    electrical = replace(subject.undisturbed(), rail=replace(subject.rail, optical=False))
    try:
        if not answered([electrical]):
            return ""
    except InputError:
        return ""
    base, electrical_ms = subject.base_ms, known(electrical).iteration_ms
    if base <= electrical_ms * (1 + RINGS_COST):
        return ""
    switch = (
        ", however fast the optical switch"
        if subject.stays
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


def _up_to(subject: Subject) -> str:
    """Return the slowest switch that keeps the limit, under both controls; empty while it is not known."""
    now = RailsState.now()
    mine, other = (slowest_words(subject, one) for one in both_controls(now))
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
