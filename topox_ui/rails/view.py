"""Photonic rails: what a job sends on a rail, the windows between, and what switching in them costs."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme, parallelism_word
from topox_core.figures.rails.traffic import MAX_GROUPS, strip, timeline
from topox_core.figures.rails.windows import breakdown, cdf, counts, traffic_words
from topox_core.rails.iteration import RailRun
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.rails.window_lengths import by_traffic
from topox_core.rails.windows import FORMULA_NOTE, windows_by_formula, windows_by_stage
from topox_core.text.numbers import count, plural, short, time
from topox_core.training.job import Job
from topox_core.training.plan import ORDERS
from topox_ui.rails.delay import curves_of, delay_chart, delay_figure, switch_table
from topox_ui.rails.finding import KICKER, answer_first, needed_ms
from topox_ui.rails.first_screen import (
    NOT_TOGETHER,
    nothing_yet,
    simulating,
    traffic_strip,
    window_lengths,
    windows_in_numbers,
)
from topox_ui.rails.reference import (
    advice_section,
    against_the_paper,
    bytes_section,
    files_of_rail,
    source_words,
)
from topox_ui.rails.rivals import experts_section, rivals_section
from topox_ui.rails.state import SECTIONS, RailsState, controls, reset
from topox_ui.rails.subject import Pattern, Simulated, Subject, answered, known, simulate, subject
from topox_ui.shell.charts import (
    Content,
    beside,
    chart,
    chart_title,
    escape,
    frame,
    quiet,
    show_error,
    show_input_errors,
    when_opened,
)
from topox_ui.shell.downloads import Figures
from topox_ui.state.widgets import section

MAX_MESSAGES = 500


def windows_section(subject: Subject, theme: Theme) -> None:
    """Draw the windows in numbers and figures; these are folded where no circuit changes, so that none has to be long."""
    windows_in_numbers(subject)
    draw_figures = partial(_figures, subject, theme)
    if subject.stays:
        when_opened("Windows (none has to be long)", "rails_windows", draw_figures, compact=True)
    else:
        draw_figures()


def _figures(subject: Subject, theme: Theme) -> None:
    """Draw how long the windows are, by the traffic after them, how many by formula and by counting, and the paper's."""
    job, pattern, needed = subject.training, subject.pattern, needed_ms(subject)
    left, right = st.columns(2, gap="medium")
    with left:
        window_lengths(subject, theme)
        against_the_paper(subject)
    with right:
        chart_title(
            "Windows by the traffic that follows",
            f"a dot is a window, in the row of the traffic after it (its tensors); tick: mean{'; line: your delay' * bool(needed)}",
        )
        if not pattern.windows:
            quiet("There is no window.")
        else:
            groups = by_traffic(pattern.windows)
            chart(
                breakdown(groups, needed, theme),
                "breakdown",
                "Windows by traffic: "
                + "; ".join(
                    f"{traffic_words(g)}: {g.count}, mean {short(g.mean_idle_ms)} ms"
                    for g in groups
                ),
                lambda: [
                    {
                        "traffic": traffic_words(g),
                        "parallelism": parallelism_word(g.parallelism),
                        "windows": g.count,
                        "mean (ms)": g.mean_idle_ms,
                        "shortest (ms)": g.min_ms,
                        "longest (ms)": g.max_ms,
                        "bytes": g.mean_bytes,
                    }
                    for g in groups
                ],
            )
        # What is counted is FSDP's; context and expert parallelism add windows that neither count nor formula has.
        if (
            (plan := job and job.plan)
            and plan.fsdp
            and plan.pipeline > 1
            and plan.context == plan.expert == 1
        ):
            _counts(pattern, job, theme)


def _counts(pattern: Pattern, job: Job, theme: Theme) -> None:
    exact = windows_by_stage(
        job.plan.pipeline, job.plan.microbatches, job.schedule.order, job.schedule.virtual
    )
    formula = windows_by_formula(job.plan.microbatches)
    seen = {rank: len(pattern.of((rank, rail))[1]) for rank, rail in pattern.lanes}
    chart(
        counts(exact, formula, theme),
        "counts",
        f"Windows by stage, counted: {', '.join(map(str, exact))}; by formula: {formula}.",
        lambda: {
            "stage": list(range(len(exact))),
            "counted": exact,
            "in this simulation": [seen.get(stage) for stage in range(len(exact))],
            "formula": [formula] * len(exact),
        },
        title=(
            "How many windows?",
            f"one GPU of each stage, {ORDERS[job.schedule.order]}, {job.plan.microbatches} microbatches; counted in the order of "
            "its communications, beside the paper's formula",
        ),
    )
    quiet(f"Formula: {escape(FORMULA_NOTE)}.")


def control_section(subject: Simulated, theme: Theme) -> None:
    """Draw circuits in time and the messages that made them."""
    question = subject.switched()
    if not answered([question]):
        doing, offer = "Simulating the control plane", "Simulate the control plane"
        simulate([question], doing, offer, "rails_control_run")
        return
    run = known(question)
    kinds, messages = Counter(one.word for one in run.messages), run.messages[:MAX_MESSAGES]
    facts = f"Circuits of a group change {plural(run.reconfigurations, 'time')} per iteration, each {time(run.rail.dark_ms)} dark"
    chart(
        timeline(run, theme),
        "timeline",
        f"Circuits of {min(MAX_GROUPS, len(run.iteration.groups))} groups over {time(run.iteration_ms)}: {facts}.",
        lambda: _circuits(run),
        "Every circuit",
        title=(
            "Which group uses the rail",
            f"{facts}. Hatched: dark. A group keeps its circuits until another one asks",
        ),
    )
    shown = len({one.group for one in run.circuits})
    if shown > MAX_GROUPS:
        quiet(f"The first {MAX_GROUPS} of {plural(shown, 'group')}; the table has all of them.")
    left, right = st.columns([1.42, 1], gap="medium")
    with left:
        frame(
            {
                "at (ms)": [one.at_ms for one in messages],
                "from": [one.sender for one in messages],
                "to": [one.receiver for one in messages],
                "message": [one.word for one in messages],
                "group": [one.group for one in messages],
                "about": [one.note for one in messages],
            },
            title=(
                "Control messages",
                f"{count(len(messages))} of {count(run.messages_sent)} messages, the first ones; before 0 ms: sent during the "
                "iteration before",
            ),
        )
    with right:
        frame(
            {
                "word": list(MEANINGS),
                "meaning": list(MEANINGS.values()),
                "shown": [kinds[word] for word in MEANINGS],
            },
            title=("Kinds of messages", "of the shims and the controller"),
        )
        quiet(
            "A shim in every server sees the communication of its server, the controller that of the whole rail. In the first "
            "iteration groups ask for circuits on demand and the order is profiled. Afterwards, provisioned, each group asks "
            "as soon as the traffic before it has ended. The controller serves requests in order, breaks no circuit in use, "
            "and switches a group once all its ranks have asked."
        )


MEANINGS = {
    "COMM": "a rank is ready to communicate",
    "CHECKIN_ACK": "which network carries it: the rail",
    "CONFIG_REQ": "a group asks for its circuits",
    "CONFIG_ACK": "the circuits are set up",
    "NACK": "the circuits were set up already",
}


def _circuits(run: RailRun) -> Content:
    groups = run.iteration.groups
    return [
        {
            "group": groups[one.group].name,
            "traffic": parallelism_word(groups[one.group].parallelism),
            "members": groups[one.group].size,
            "asked (ms)": one.setup_ms,
            "set up (ms)": one.start_ms,
            "until (ms)": one.end_ms,
            "changed": one.changed,
        }
        for one in run.circuits
    ]


def sections(subject: Subject, theme: Theme) -> None:
    """Draw the choice of a section, and that section: a list of windows has no control plane, an execution no model."""
    job, simulated = subject.training, subject if isinstance(subject, Simulated) else None
    draws: dict[str, Callable[[], None]] = {
        "windows": partial(windows_section, subject, theme),
        "experts": partial(experts_section, simulated, theme),
        "advice": partial(advice_section, job),
    }
    if simulated is not None:
        draws["control"] = partial(control_section, simulated, theme)
        if job is not None:
            draws["bytes"] = partial(bytes_section, job)
            if not subject.stays:  # else the other wirings are the first figure
                draws["rivals"] = partial(rivals_section, simulated, theme)
    try:
        section("Details", RailsState, SECTIONS, draws)
    except InputError as error:
        show_error(error)


def figures_of(subject: Subject) -> Figures:
    """Return the first screen's figures for download, built when asked for: outside the session, whose choices are read here."""
    pattern, needed, now = subject.pattern, needed_ms(subject), RailsState.now()
    whole = (0.0, max(pattern.iteration_ms, 1e-9))
    figures: Figures = {
        "Pattern": partial(strip, *pattern.of(pattern.lane), needed, whole),
    }
    if not subject.stays:
        figures["Delay study"] = partial(delay_figure, [*curves_of(subject).values()], now)
    if pattern.windows:
        figures["Windows"] = partial(cdf, pattern.windows, needed)
    return figures


def draw(theme: Theme) -> None:
    """Draw the page."""
    controls()
    with show_input_errors(KICKER, NOT_TOGETHER, reset):
        source = subject()
        if source is None:
            nothing_yet()
            return
        if isinstance(source, Simulated) and not simulating(source):
            return

    answer_first(source)
    by_delay = partial(
        beside, (1.42, 1), partial(delay_chart, source, theme), partial(switch_table, source)
    )
    if source.stays:  # over the delay there is nothing to see
        if isinstance(source, Simulated) and source.training is not None:
            rivals_section(source, theme)
        when_opened("Every delay and switch: no overhead", "rails_flat", by_delay, compact=True)
    else:
        by_delay()
    traffic_strip(source, theme)
    files_of_rail(source, figures_of(source))
    with st.expander("What this rests on", key="rails_rests", type="compact"):
        delays = TECHNOLOGIES[0].provenance.replace(": ", " in ", 1)
        quiet(f"{source_words(source)} Delays and ports of switches: {escape(delays)}.")
        if isinstance(source, Simulated):
            machine = source.training and source.training.machine
            speed = (
                f", at {machine.network_gbps:g} of its {machine.nic_gbps:g} Gbit/s as on Schedule"
                if machine and machine.network_share < 1
                else ""
            )
            quiet(
                f"One rail is simulated, with a NIC of every server on it{speed}; all rails carry the same."
            )
            if source.training and source.training.plan.expert > 1:
                quiet(
                    "The closed form of Home and Plans hides gradients behind the backward pass even while tokens travel; "
                    "on a rail both take turns, so that an electrical switch can take longer here."
                )
    sections(source, theme)
