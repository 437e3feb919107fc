"""Other ways to wire a rail: an iteration under each, and under more expert parallelism."""

from contextlib import suppress

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.figures.rails.delay import expert_region, wirings
from topox_core.rails.advice import constraints
from topox_core.rails.delay import BOTH, UNDISTURBED, Question
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.text.numbers import capitalised, delay_label, percent, plural, short, time
from topox_core.training.job import Job
from topox_ui.rails.finding import dark_ms
from topox_ui.rails.state import RailsState
from topox_ui.rails.subject import Simulated, answered, known, refusal, simulate
from topox_ui.shell.charts import chart, chart_title, escape, quiet, write_html
from topox_ui.state.widgets import slide

STATIC_PORTS = 4  # a 400G NIC as four ports of 100G, the paper's example of a split
LATENCY_US = 10.0
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
            RailsState,
            "latency_us",
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
                if subject.stays
                else f"A circuit change takes {time(dark_ms())}. Ports split: fixed circuits, a NIC of "
                f"{STATIC_PORTS} ports in place of {subject.rail.nic_ports}"
            ),
        )
        _bars(subject, theme)


def _bars(subject: Simulated, theme: Theme) -> None:
    ways, failed = STAYING if subject.stays else WAYS, {}
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
            jobs[degree] = base.changed(expert=degree)
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
    # Degree by degree, so that the child keeps each prepared iteration.
    left = [
        one
        for degree in jobs
        for one in (instant[degree], *(questions[delay, degree] for delay in EXPERT_DELAYS_MS))
        if known(one) is None and refusal(one) is None
    ]
    if left:
        simulate(
            left,
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
