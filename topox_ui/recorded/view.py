"""A recorded run: what a step of a profiled job takes, what of it is the network's, and what a faster one would save."""

from collections.abc import Sequence

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import EQUAL, same_time
from topox_core.figures.iteration.recorded import speed_curve, steps
from topox_core.figures.palette import Theme
from topox_core.text.numbers import count, percent, plural, size, time
from topox_core.traces.checks import busy_share
from topox_ui.answers.clicks import TIMES, speed_clicks
from topox_ui.recorded.found import RecordedStep, found_of
from topox_ui.recorded.reading import (
    KICKER,
    READING,
    Opened,
    files_of_run,
    nothing_yet,
    open_example,
    opened,
    take_what_was_read,
)
from topox_ui.recorded.sections import (
    groups_section,
    timeline,
    trust_section,
    ways_on,
    windows_section,
)
from topox_ui.recorded.state import RecordedState
from topox_ui.shell.charts import (
    as_label,
    chart,
    chart_title,
    escape,
    headline,
    kpis,
    quiet,
    show_error,
    title_row,
)
from topox_ui.shell.panel import watched
from topox_ui.state.widgets import menu, number, sidebar_part, slide, switch

STANDS_FOR_ALL = (
    "One rank stands for all. Its waiting for others counts as network time in the recorded figures, and is left out of "
    "the task graph."
)
ONE_RANK = (
    "Only one rank was read: its waiting for others counts as transfer. Add the other ranks, or let this one "
    "stand for all."
)
WHEN = "Right where all ranks do the same, as with data or sharded data parallelism. Not for pipelines, whose stages differ."


def speed_words(gbps: float) -> str:
    """Return a network's speed: 400 Gbit/s."""
    return f"{gbps:,g}\u00a0Gbit/s"


def controls(now: Opened) -> None:
    """Draw the sidebar."""
    with sidebar_part("What if"):
        slide(
            RecordedState,
            "nic_gbps",
            label="Network speed",
            help="Of a server, all its ports together. The step is replayed at once, without contention.",
        )
        slide(RecordedState, "delay_ms", help="Windows at least this long hide a circuit change.")
        number(
            RecordedState,
            "gpus_per_server",
            step=1,
            help="Neighbouring ranks share a server; their calls take no network and keep their recorded time.",
        )
        if len(now.recordings) == 1:
            switch(RecordedState, "symmetry", label="This rank stands for all", help=WHEN)


def first_screen(found: RecordedStep, now: Opened) -> None:
    """Write the finding and the key figures."""
    files = plural(len(now.recordings), "file")
    name = "made-up example" if now.example else files
    network = max(0.0, found.recorded_ms - found.free_ms)
    words = f"{found.words} takes <b>{time(found.recorded_ms)}</b>; the network accounts for "
    # What waits for a call is in part inferred; its check says by how much that may be wrong.
    waits = next(one.words for one in found.checks if one.name == "waits")
    doubt = waits.partition("network's share may be ")[2]
    if network < EQUAL * found.recorded_ms:
        words += "<b>none of it</b>: no call holds up the work"
    else:
        words += f"{'about' if doubt else 'at most'} <b>{time(network)}</b> of it"
    words += f" (inferred from the recording: {escape(doubt)})." if doubt else "."
    speed = RecordedState.now().nic_gbps
    if found.imported is not None and network >= EQUAL * found.recorded_ms:
        words += f" At {speed_words(speed)}{_times_recorded(found, speed)} it would take <b>{time(found.at_ms(speed))}</b>."
    headline(f"{KICKER} · {name} · {plural(found.run.world, 'rank')}", words)
    if len(now.recordings) == 1 and found.run.world > 1:
        quiet(escape(f"{STANDS_FOR_ALL if found.settings.symmetry else ONE_RANK} {WHEN}"))
    _kpis(found, speed)
    _other_speeds(found, speed)


def _times_recorded(found: RecordedStep, speed: float) -> str:
    """Return how a speed compares with the recorded one, where a click chose it: twice the recorded speed."""
    own = found.recorded_gbps
    name = next(
        (name for name, by in TIMES.items() if own is not None and own * by == speed != own), ""
    )
    return f", {name} the recorded speed," if name else ""


def _other_speeds(found: RecordedStep, speed: float) -> None:
    """Say at which speed the step was recorded, and offer that speed, its half and its multiples at a click."""
    recorded = found.recorded_gbps
    if recorded is None:
        return
    speed_clicks(
        "recorded",
        f"Recorded at about <b>{speed_words(recorded)}</b> per server: at that speed the replay takes as "
        "long as the recording. The same step at",
        recorded,
        speed,
        lambda gbps: RecordedState.choose(nic_gbps=gbps),
    )


def _kpis(found: RecordedStep, speed: float) -> None:
    numbers = [one.number for one in found.steps]
    of = f"step {found.number} of {numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else ""
    calls = found.graph.calls
    sent = sum(node.size_bytes or 0.0 for node in calls)
    at_speed = ("–", "sizes are not known")
    if found.imported is not None:
        ms = found.at_ms(speed)
        change = found.recorded_ms - ms
        less = "less than recorded" if change >= 0 else "more than recorded"
        at_speed = (
            time(ms),
            "as recorded" if same_time(ms, found.recorded_ms) else f"{time(abs(change))} {less}",
        )
    kpis(
        ("Recorded step", time(found.recorded_ms), of or "the whole recording"),
        ("Without a network", time(found.free_ms), "replayed with an instant network"),
        (f"At {speed:,g} Gbit/s", *at_speed),
        (
            "GPU busy",
            percent(busy_share(found.step)),
            f"mean of {plural(len(found.run.ranks), 'rank')}",
        ),
        (
            "Bytes of all calls",
            size(sent),
            f"{count(len(calls))} calls, {plural(len(found.groups), 'group')}",
        ),
    )


def steps_section(found: RecordedStep, theme: Theme) -> None:
    """Draw the recording's steps, and the choice of one."""
    alike = opened().example and all(
        same_time(one.recorded_ms, found.recorded_ms) for one in found.steps
    )
    [choice] = title_row(
        (2.6, 1),
        "Steps of the recording",
        "outlined: the step in view, click another; pale: the most that the network can account for"
        + "; all alike, as the example repeats one step" * alike,
    )
    if len(found.steps) > 1:
        menu(
            RecordedState,
            "step",
            {one.number: f"Step {one.words}" for one in found.steps},
            label="Step",
            value=found.number,
            at=choice,
            label_visibility="collapsed",
        )
    chart(
        steps(found.steps, found.number, theme),
        "recorded_steps",
        "Recorded steps: "
        + "; ".join(
            f"step {one.words} {time(one.recorded_ms)}, without the network {time(one.free_ms)}"
            for one in found.steps[:12]
        ),
        lambda: {
            "step": [one.words for one in found.steps],
            "recorded (ms)": [one.recorded_ms for one in found.steps],
            "without a network (ms)": [one.free_ms for one in found.steps],
        },
        "Every step",
        on_click=_clicked,
    )


def _clicked(facts: Sequence[str]) -> None:
    """Show the step whose bar was clicked; a file without steps has only one."""
    if facts[0].isdecimal():
        RecordedState.choose(step=int(facts[0]))


def speed_section(found: RecordedStep, theme: Theme) -> None:
    """Draw the step at other speeds; where sizes are not known, say why and ask for a speed they are taken from."""
    chart_title(
        "This step on another network", "replayed as a longest path; no solver, no contention"
    )
    if found.imported is None:
        st.warning(as_label(found.refusal), icon="⚠️")
        number(
            RecordedState,
            "assume_gbps",
            label="Take sizes from a speed (Gbit/s)",
            step=100.0,
            placeholder="not taken",
            help="The bytes of a call are computed as the duration of its shortest kernel times this speed.",
        )
        return
    speed = RecordedState.now().nic_gbps
    now, points = (speed, found.at_ms(speed)), found.curve
    chart(
        speed_curve(points, now, found.recorded_ms, found.free_ms, theme),
        "recorded_speed",
        f"Iteration over the network's speed: {time(now[1])} at {speed_words(speed)}, recorded "
        f"{time(found.recorded_ms)}; "
        + "; ".join(f"{time(ms)} at {speed_words(gbps)}" for gbps, ms in points),
        lambda: {
            "network speed (Gbit/s)": [gbps for gbps, _ in sorted({*points, now})],
            "iteration (ms)": [ms for _, ms in sorted({*points, now})],
            "less than recorded (ms)": [found.recorded_ms - ms for _, ms in sorted({*points, now})],
        },
    )


def draw(theme: Theme) -> None:
    """Draw the page."""
    take_what_was_read()
    if RecordedState.now().example and not opened().recordings:
        open_example()
    now = opened()
    if not now.recordings:
        nothing_yet()
        return
    controls(now)
    try:
        found = found_of(now)
    except InputError as error:
        headline(KICKER, "These files <b>are not of one run</b>. Add the ranks of one recording.")
        show_error(error)
        watched(READING, "Reading")
        files_of_run(now)
        return

    first_screen(found, now)
    watched(READING, "Reading")
    files_of_run(now)
    ways_on(found)
    main, beside = st.columns([1.9, 1], gap="medium")
    with main:
        steps_section(found, theme)
        timeline(found, theme)
        windows_section(found, theme)
    with beside:
        speed_section(found, theme)
        groups_section(found)
        trust_section(found)
