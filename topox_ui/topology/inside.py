"""One collective on circuits that change between its steps: how long each way takes, and what each port does."""

from __future__ import annotations

import streamlit as st

from topox_core.fabrics.compare import EQUAL, same_time
from topox_core.fabrics.one_collective import (
    PERMUTATIONS,
    OneCollective,
    StepsOnPorts,
    sent_rows,
)
from topox_core.figures.palette import Theme
from topox_core.figures.topology import steps_on_ports
from topox_core.model.cluster import DELAYS_MS
from topox_core.model.transfer_graph import transfer_ms
from topox_core.text.choices import kind_words
from topox_core.text.numbers import delay_label, percent, plural, short, size, time
from topox_ui.answers.case import Case
from topox_ui.runs.shared import once
from topox_ui.shell.charts import chart, kpis, show_input_errors
from topox_ui.shell.page import headline, quiet
from topox_ui.state.widgets import menu, pick, slide
from topox_ui.topology.laying import degree_of
from topox_ui.topology.state import COLLECTIVES, CollectiveState

MEMBERS = (2, 4, 8, 16, 32, 64)
MEGABYTES = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
MAX_PORTS, MAX_COLOURS = 16, 8
KICKER = "One collective"
NOT_SO = "This collective <b>cannot run</b> this way. Change it, or the ports on the left."
WAYS = {"together": "all ports together", "one_port": "one port per step", "split": "uneven split"}


def inside_one_collective(case: Case, theme: Theme) -> None:
    """Draw the finding, the choices, the times of all ways in numbers, and the ports of the one that is chosen."""
    top = st.container()
    first, second, third, fourth = st.columns(4)
    kinds = {k: kind_words(k) for k in COLLECTIVES}
    menu("Collective", CollectiveState, "collective", kinds, at=first)
    slide("Members", CollectiveState, "members", MEMBERS, at=second)
    slide(
        "Tensor",
        CollectiveState,
        "tensor_mb",
        MEGABYTES,
        words=lambda megabytes: size(1e6 * megabytes),
        at=third,
    )
    slide(
        "Delay",
        CollectiveState,
        "switch_ms",
        DELAYS_MS,
        value=_delay_ms(case),
        words=delay_label,
        at=fourth,
        help="Of one circuit change. Default: the delay of the cluster, unless that is 0.",
    )
    with top, show_input_errors(KICKER, NOT_SO, None):
        one = _collective(case)
    ways = {
        "together": one.together(),
        "one_port": one.one_port_a_step(),
        "split": once("uneven split", repr(one), one.split),
    }
    with top:
        _finding(one, ways)
    _times(one, ways)
    pick("Ports", CollectiveState, "collective_way", WAYS, label_visibility="collapsed")
    chosen = CollectiveState.now().collective_way
    way = ways[chosen]
    chart(
        steps_on_ports(one, way, theme),
        "inside",
        f"One row per port: the steps of {kind_words(one.kind)} with {WAYS[chosen]}, {time(way.makespan_ms)} in all, "
        "and the set-ups between them.",
        lambda: sent_rows(one, way),
        "What each port sends",
    )
    colours = len(set(one.steps.circuits.tolist()))
    same = "; equal colours are equal circuits" if colours <= MAX_COLOURS else ""
    quiet(
        f"{plural(len(one.steps.busy), 'step')} by {one.algorithm.replace('_', '-')}, numbered in the bars{same}. "
        "Thin bars are set-ups. After SWOT (arXiv 2510.19322), built from its abstract. "
        "The split is found by a search; the command <code>collective</code> proves it."
    )


def _collective(case: Case) -> OneCollective:
    """Return the collective of the page's state on the cluster's ports."""
    now, cluster = CollectiveState.now(), case.cluster
    return OneCollective(
        now.collective,
        PERMUTATIONS[now.collective],
        now.members,
        min(max(1, degree_of(case)), MAX_PORTS),
        transfer_ms(1e6 * now.tensor_mb, cluster.port_gbps),
        cluster.latency_us / 1000,
        _delay_ms(case),
    )


def _delay_ms(case: Case) -> float:
    """Return the chosen delay; the cluster's own, or one that shows what switching costs."""
    chosen = CollectiveState.now().switch_ms
    return chosen if chosen is not None else case.cluster.reconfiguration_ms or 1.0


def _finding(one: OneCollective, ways: dict[str, StepsOnPorts]) -> None:
    """Write who wins."""
    split_ms, rings_ms = ways["split"].makespan_ms, one.rings_ms
    other_ms = min(ways["together"].makespan_ms, ways["one_port"].makespan_ms)
    if rings_ms is not None and rings_ms <= split_ms * (1 + 1e-9):
        words = f"Rings on all ports change no circuit and win: <b>{time(rings_ms)}</b>."
    elif split_ms < other_ms and not same_time(split_ms, other_ms):
        less = short(100 * (1 - split_ms / other_ms))
        words = f"Uneven parts hide set-ups: <b>{time(split_ms)}</b>, {less} % less than the better simple way."
    else:
        words = f"An uneven split gains nothing here, or less than {percent(EQUAL)}: <b>{time(other_ms)}</b>."
    headline(
        f"{KICKER} · {kind_words(one.kind)} of {plural(one.members, 'server')}, {plural(one.ports, 'port')} each, "
        f"{delay_label(one.delay_ms)} delay",
        words,
    )


def _times(one: OneCollective, ways: dict[str, StepsOnPorts]) -> None:
    """Write the time of every way."""
    split_ms, rings_ms = ways["split"].makespan_ms, one.rings_ms
    kpis(
        ("All ports together", time(ways["together"].makespan_ms), "every port changes at once"),
        ("One port per step", time(ways["one_port"].makespan_ms), "the others are set up"),
        ("Uneven split", time(split_ms), f"at least {time(one.bound_ms)}"),
        (
            "A ring on each port",
            "–" if rings_ms is None else time(rings_ms),
            "no change" if rings_ms is not None else "this kind has none",
        ),
    )
