"""Photonic rails: what a job sends on a rail, the windows between, what switching in them costs; and other ways to wire it."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme, parallelism_word
from topox_core.figures.rails.delay import expert_region, overhead_curves, wirings
from topox_core.figures.rails.traffic import MAX_GROUPS, strip, timeline
from topox_core.figures.rails.windows import breakdown, cdf, counts, traffic_words
from topox_core.rails.advice import constraints
from topox_core.rails.delay import BOTH, UNDISTURBED, Question
from topox_core.rails.iteration import Rail, RailRun
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.rails.window_lengths import by_traffic
from topox_core.rails.windows import FORMULA_NOTE, windows_by_formula, windows_by_stage
from topox_core.text.numbers import capitalised, count, delay_label, percent, plural, short, time
from topox_core.training.job import Job
from topox_ui.rails.delay import Curves
from topox_ui.rails.first_screen import (
    KICKER,
    NOT_TOGETHER,
    answer_first,
    by_delay,
    circuits_stay,
    dark_ms,
    lane_of,
    needed_ms,
    nothing_yet,
    pattern_of,
    simulating,
    traffic_strip,
    window_lengths,
    windows_in_numbers,
)
from topox_ui.rails.reference import (
    advice_section,
    against_the_paper,
    bytes_section,
    chosen_of_the_match,
    files_of_rail,
    source_words,
)
from topox_ui.rails.state import SCHEDULES, SECTIONS, RailsState, controls, reset
from topox_ui.rails.subject import (
    Pattern,
    Simulated,
    Subject,
    answered,
    known,
    refusal,
    simulate,
    subject,
)
from topox_ui.shell.charts import (
    Content,
    chart,
    chart_title,
    escape,
    frame,
    quiet,
    show_error,
    show_input_errors,
    when_opened,
    write_html,
)
from topox_ui.shell.downloads import Figures
from topox_ui.state.widgets import section, slide

STATIC_PORTS = 4  # a 400G NIC as four ports of 100G, the paper's example of a split
LATENCY_US = 10.0
LATENCIES_US = (0.0, 1.0, 5.0, 10.0, 20.0, 50.0)
EXPERT_DELAYS_MS = (0.01, 1.0, 10.0, 100.0)
EXPERT_DEGREES = (1, 2, 4, 8, 16, 32, 64)
EXPERT_PRESET = "deepseek-16b"
# Photonic rails (arXiv 2602.12521), artifact of Fig. 14: 256 GPUs against an instant switch, at 10
# ms.
PUBLISHED_10_MS = {8: 0.030, 16: 0.061, 32: 0.134, 64: 0.225}


# What each changes of the rail.
INSTANT = {"reconfiguration_ms": 0.0, "link_up_ms": 0.0}
WAYS: dict[str, dict[str, object]] = {
    "Electrical switch": {"optical": False},
    "Rings, instant switch": INSTANT,
    "Rings, provisioned": {"provisioned": True},
    "Rings, on demand": {"provisioned": False},
    "Ports split (C3)": {"static_split": True, "nic_ports": STATIC_PORTS},
}
# Where no circuit changes, all rings take as long, and there is nothing to split ports between.
STAYING = {name: WAYS.get(name, INSTANT) for name in ("Electrical switch", "Rings, any switch")}


def rivals_section(subject: Simulated, theme: Theme) -> None:
    """Draw the iteration under every way to wire the rail, and whether each of the paper's constraints limits the job."""
    left, right = st.columns([1.42, 1], gap="medium")
    with right:
        slide(
            "Latency of a step",
            RailsState,
            "latency_us",
            LATENCIES_US,
            words=lambda v: f"{v:g} µs",
            disabled=subject.training is None,
            help="A ring of n takes n - 1 steps where an electrical switch allows trees. What is said of C1 takes "
            f"{LATENCY_US:g} µs while this is 0.",
        )
        if subject.training is not None:
            chart_title(
                "What limits circuits, and this job?",
                "three constraints of the paper on photonic rails (section 3); ✓: does not limit this job",
            )
            latency = RailsState.now().latency_us or LATENCY_US
            for one in constraints(subject.training, subject.rail.nic_ports, latency):
                sign, colour = ("✗", theme.bad) if one.limits else ("✓", theme.good)
                found, asks = escape(capitalised(one.found)), escape(capitalised(one.asks))
                write_html(
                    f'<p class="claim"><b style="color:{colour}">{sign}</b> <b>{found} ({one.code}).</b> {asks}. '
                    f"Here: {escape(one.why)}.</p>"
                )
    with left:
        chart_title(
            "An iteration by the wiring of the rail",
            "in %: against the electrical switch. "
            + (
                "No circuit changes, so no split of ports (C3) is drawn"
                if circuits_stay(subject)
                else f"A circuit change takes {time(dark_ms())}. Ports split: fixed circuits, a NIC of "
                f"{STATIC_PORTS} ports in place of {subject.rail.nic_ports}"
            ),
        )
        _bars(subject, theme)


def _bars(subject: Simulated, theme: Theme) -> None:
    ways, failed = STAYING if circuits_stay(subject) else WAYS, {}
    questions = {name: subject.switched(**changes) for name, changes in ways.items()}
    ready = True
    for name, question in questions.items():
        try:
            ready = answered([question]) and ready
        except InputError as error:
            failed[name] = str(error)
    if not ready:
        left = [q for name, q in questions.items() if name not in failed and known(q) is None]
        offer = f"Simulate {plural(len(left), 'way')}"
        simulate(left, "Simulating the ways", offer, "rails_rivals")
        return
    runs = {name: known(question) for name, question in questions.items() if name not in failed}
    # What waits for the switch is told of those that change circuits.
    rows: list[tuple[str, float | None, float]] = [
        (name, runs[name].iteration_ms, runs[name].stall_ms if "provisioned" in way else 0.0)
        if name in runs
        else (name, None, 0.0)
        for name, way in ways.items()
    ]
    chart(
        wirings(rows, theme),
        "rivals",
        "Iteration by wiring: "
        + "; ".join(f"{n} {'impossible' if v is None else short(v) + ' ms'}" for n, v, _ in rows),
        lambda: [
            {"wiring": name, "iteration (ms)": ms, "of it waiting for the switch (ms)": stall_ms}
            for name, ms, stall_ms in rows
        ],
    )
    for name, why in failed.items():
        quiet(f"{name}: {escape(why)}")


def experts_of(base: Job) -> dict[int, Job]:
    """Return a job with every degree of expert parallelism that its experts and replicas allow."""
    jobs = {}
    for degree in EXPERT_DEGREES:
        with suppress(InputError):
            jobs[degree] = base.changed(plan__expert=degree)
    return jobs


def experts_section(subject: Simulated | None, theme: Theme) -> None:
    """Draw overhead against the degree of expert parallelism: the region where switching in the job fails."""
    job = subject.training if subject is not None else None
    base = job if job is not None and job.shape.experts > 1 else PRESETS[EXPERT_PRESET]
    jobs = experts_of(base)
    rail = subject.rail if subject is not None and base is job else None
    chart_title(
        "What waiting for the switch adds by degree of expert parallelism",
        f"{escape(base.heading)}, provisioned, against the same rings with a switch that takes no time; squares: published for "
        f"another 256-GPU job at {delay_label(10.0)}",
    )
    questions = {
        (delay, degree): Question(BOTH, job, rail or Rail(nic_gbps=job.machine.network_gbps), delay)
        for delay in EXPERT_DELAYS_MS
        for degree, job in jobs.items()
    }
    instant = {
        degree: Question(UNDISTURBED, job, questions[EXPERT_DELAYS_MS[0], degree].rail)
        for degree, job in jobs.items()
    }
    left = [
        one
        for one in [*instant.values(), *questions.values()]
        if known(one) is None and refusal(one) is None
    ]
    if left:
        # Degree by degree, so that the child keeps each prepared iteration.
        ordered = sorted(
            left,
            key=lambda one: (one.job.plan.expert if isinstance(one.job, Job) else 0, one.dark_ms),
        )
        simulate(
            ordered,
            "Simulating the points",
            f"Simulate {plural(len(left), 'point')}",
            "rails_experts",
            primary=True,
            help="Beside this page, in a process of its own.",
        )
    rows = {
        delay: [_overhead(questions[delay, degree], instant[degree]) for degree in jobs]
        for delay in EXPERT_DELAYS_MS
    }
    if not any(value is not None for row in rows.values() for value in row):
        quiet(
            "Where EP spans a part of the replicas, every layer asks for other circuits twice each way, a few milliseconds apart: "
            "windows too short for a slow switch. Where it spans all of them, it shares their ring: no circuit changes."
        )
        return
    published = {10.0: PUBLISHED_10_MS}
    degrees = list(jobs)
    chart(
        expert_region(degrees, rows, published, RailsState.now().limit / 100, theme),
        "experts",
        "What waiting adds by degree of expert parallelism: "
        + "; ".join(
            f"{delay_label(d)}: "
            + ", ".join(
                f"EP {e} {percent(v)}" for e, v in zip(degrees, row, strict=True) if v is not None
            )
            for d, row in rows.items()
        ),
        lambda: {"EP": degrees, **{f"{delay_label(d)}": row for d, row in rows.items()}},
    )
    quiet(
        "On rings servers forward the pieces of an all-to-all from neighbour to neighbour. Where EP spans a part of the replicas, "
        "every layer asks for other circuits twice each way; where it spans all, it shares their ring and no "
        "circuit changes. The published job computes longer between exchanges: compare the "
        "shape of the curves."
    )


def _overhead(question: Question, undisturbed: Question) -> float | None:
    both, base = known(question), known(undisturbed)
    return None if both is None or base is None else both[1] / base.iteration_ms - 1


MAX_MESSAGES = 500


def windows_section(subject: Subject, pattern: Pattern, theme: Theme) -> None:
    """Draw the windows in numbers and figures; these are folded where no circuit changes, so that none has to be long."""
    windows_in_numbers(subject, pattern)
    draw_figures = partial(_figures, subject, pattern, theme)
    if circuits_stay(subject):
        when_opened("Windows (none has to be long)", "rails_windows", draw_figures, compact=True)
    else:
        draw_figures()


def _figures(subject: Subject, pattern: Pattern, theme: Theme) -> None:
    """Draw how long the windows are, by the traffic after them, how many by formula and by counting, and the paper's."""
    job, needed = subject.training, needed_ms(subject)
    left, right = st.columns(2, gap="medium")
    with left:
        window_lengths(subject, pattern, theme)
        against_the_paper(subject, lane_of(pattern))
        chosen_of_the_match(subject)
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
            f"one GPU of each stage, {SCHEDULES[job.schedule.order]}, {job.plan.microbatches} microbatches; counted in the order of "
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


def sections(subject: Subject, pattern: Pattern, theme: Theme) -> None:
    """Draw the choice of a section, and that section: a list of windows has no control plane, an execution no model."""
    job, simulated = subject.training, subject if isinstance(subject, Simulated) else None
    draws: dict[str, Callable[[], None]] = {
        "windows": partial(windows_section, subject, pattern, theme),
        "experts": partial(experts_section, simulated, theme),
        "advice": partial(advice_section, job),
    }
    if simulated is not None:
        draws["control"] = partial(control_section, simulated, theme)
        if job is not None:
            draws["bytes"] = partial(bytes_section, job)
            if not circuits_stay(subject):  # else the other wirings are the first figure
                draws["rivals"] = partial(rivals_section, simulated, theme)
    try:
        section("Details", RailsState, SECTIONS, draws)
    except InputError as error:
        show_error(error)


def figures_of(pattern: Pattern, curves: Curves, needed: float) -> Figures:
    """Return the first screen's figures for download, built when asked for: outside the session, whose choices are read here."""
    lane, now = lane_of(pattern), RailsState.now()
    traffic, windows = pattern.of(lane)
    figures: Figures = {
        "Pattern": lambda theme: strip(
            traffic, windows, needed, (0.0, max(pattern.iteration_ms, 1e-9)), theme
        ),
    }
    if curves:
        figures["Delay study"] = lambda theme: overhead_curves(
            [one for one in curves.values() if one.delay_ms],
            now.switch_ms,
            now.limit / 100,
            {one.name: one.reconfiguration_ms for one in TECHNOLOGIES},
            theme,
        )
    if pattern.windows:
        figures["Windows"] = lambda theme: cdf(pattern.windows, needed, theme)
    return figures


def draw(theme: Theme) -> None:
    """Draw the page."""
    controls()
    with show_input_errors(KICKER, NOT_TOGETHER, reset):
        source = subject()
        if source is None:
            nothing_yet()
            return
        ready = not isinstance(source, Simulated) or simulating(source)
    if not ready:
        return

    pattern, run = pattern_of(source)
    lane, curves = lane_of(pattern), Curves()
    answer_first(source, pattern, lane)
    if circuits_stay(source):  # over the delay there is nothing to see
        if isinstance(source, Simulated) and source.training is not None:
            rivals_section(source, theme)
        draw_curves = partial(by_delay, source, lane, theme)
        when_opened("Every delay and switch: no overhead", "rails_flat", draw_curves, compact=True)
    else:
        curves = by_delay(source, lane, theme)
    traffic_strip(source, pattern, run, lane, theme)
    files_of_rail(source, pattern, figures_of(pattern, curves, needed_ms(source)))
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
    sections(source, pattern, theme)
