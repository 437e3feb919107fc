"""Fixed circuits: what they make of a job, how TopologyFinder lays them; and one collective on circuits that change inside it."""

import math
from dataclasses import dataclass, replace

import streamlit as st

from topox_core.fabrics.comparison.compare import EQUAL, same_time, ties
from topox_core.fabrics.controllers.one_collective import (
    PERMUTATIONS,
    WAYS,
    OneCollective,
    StepsOnPorts,
    largest_collective,
    sent_rows,
    set_ups,
)
from topox_core.fabrics.fixed.layout_search import LayoutAnswer, layout_by_matrix
from topox_core.fabrics.fixed.static import graph_layout
from topox_core.fabrics.planning.lowering_search import lowered
from topox_core.fabrics.run import JobRequest
from topox_core.figures.networks.topology import steps_on_ports
from topox_core.figures.palette import Theme
from topox_core.model.execution import Layout
from topox_core.model.transfer_graph import transfer_ms
from topox_core.text.choices import kind_words
from topox_core.text.numbers import (
    count,
    delay_label,
    enumeration,
    from_to,
    percent,
    plural,
    short,
    size,
    time,
)
from topox_core.topology.routing import RoutedNetwork
from topox_ui.answers.clicks import delay_clicks
from topox_ui.answers.contest import contest_of, run_all
from topox_ui.answers.solving import job_of
from topox_ui.runs.owner import once, session_over
from topox_ui.shell.charts import (
    chart,
    escape,
    frame,
    headline,
    kpis,
    quiet,
    show_input_errors,
    when_opened,
)
from topox_ui.state.choices import COLLECTIVES, MAX_MEMBERS, CollectiveState, TopologyState
from topox_ui.state.loading import Loaded, cluster_words, scenario
from topox_ui.state.widgets import menu, pick, sidebar_part, slide
from topox_ui.topology.laying import (
    LaidTopology,
    controls,
    degree_of,
    degree_slider,
    lay,
    ports_line,
    topology_headline,
)
from topox_ui.topology.player import PLAYER, hops_chart, link_table, step_by_step

MAX_ROWS = 5_000


def searched(job: JobRequest) -> tuple[LayoutAnswer, float | None]:
    """Lay the circuits as the page says; return them, and the time of TopologyFinder's (None where those cannot run).

    Raises
    ------
    InputError
        If there are none.
    """
    by = TopologyState.now().layout_by
    at_degree = replace(job, cluster=job.cluster.changed(ports_per_server=degree_of(job)))
    contest = contest_of(at_degree)
    fabrics = ("static", "static_graph") if by == "graph" else ("static",)
    runs, _ = run_all(at_degree, replace(contest, fabrics=fabrics))
    fixed = {name: run for name, run in runs.items() if name == "static"}
    job = replace(at_degree.by_rules, options=contest.options, runs=fixed)
    request = lowered(fabrics[-1], job, job.settings.lowering)
    answer = layout_by_matrix(request) if by == "matrix" else graph_layout(request, session_over())
    return answer, fixed["static"].iteration_ms if fixed else None


def searched_topology(
    loaded: Loaded, job: JobRequest, answer: LayoutAnswer, topoopt_ms: float | None, theme: Theme
) -> None:
    """Write what these circuits make of the job, and draw and list them."""
    by, best = TopologyState.now().layout_by, answer.best
    words = "the task graph" if by == "graph" else "the bytes between servers"
    headline(
        f"Fixed circuits · {escape(loaded.title)} · {cluster_words(job.cluster)}, circuits by {words}",
        f"Fixed circuits laid by {words} take <b>{time(best.time_ms)}</b>{_against(best.time_ms, topoopt_ms)}.",
    )
    ports = best.layout.servers * degree_of(job)
    tried = "every possible layout" if answer.every else "starting from the best known"
    kpis(
        ("Iteration time", time(best.time_ms), "links shared fairly"),
        (
            "TopoOpt",
            "–" if topoopt_ms is None else time(topoopt_ms),
            "the same job on its circuits",
        ),
        ("Circuits", count(answer.circuits), f"of {count(ports)} that the ports allow"),
        ("Given back", count(answer.given_back), "without losing time"),
        ("Layouts tried", count(answer.evaluations), tried),
    )
    left, right = st.columns([1.1, 1], gap="medium")
    with left:
        hops_chart("searched_hops", RoutedNetwork(best.layout.circuits).hop_matrix(), theme)
    with right:
        frame(
            {
                "Iteration time": [
                    time(value) if value < math.inf else "not connected"
                    for _, value in answer.starts
                ],
                "Layout": [name for name, _ in answer.starts],
            },
            title=("Layouts at the start of the search", "iteration time of each"),
        )
        if by == "graph":
            quiet("Built from the abstract of DELTA, whose formulas we could not read.")
    when_opened("Every circuit", "searched_circuits", lambda: _circuits(best.layout), compact=True)


def _against(time_ms: float, topoopt_ms: float | None) -> str:
    """Return how these circuits compare with TopologyFinder's."""
    if topoopt_ms is None:
        return ""
    share = 1 - time_ms / topoopt_ms
    if same_time(time_ms, topoopt_ms):
        return ", as long as TopologyFinder's"
    less = "less" if share > 0 else "more"
    return f", <b>{percent(abs(share))}</b> {less} than TopologyFinder's ({time(topoopt_ms)})"


def _circuits(layout: Layout) -> None:
    source, destination, parallel = (ends.tolist()[:MAX_ROWS] for ends in layout.links)
    frame(
        {
            "from": [f"S{a}" for a in source],
            "to": [f"S{b}" for b in destination],
            "circuits": parallel,
        }
    )


MAX_PORTS, MAX_COLOURS = 16, 8
KICKER = "One collective"
NOT_SO = "This collective <b>cannot run</b> this way. Change it, or the ports on the left."
SPOKEN = {name: f"an {words}" if name == "split" else words for name, words in WAYS.items()}


@dataclass(frozen=True)
class Tensor:
    """A collective as far as this view chooses it."""

    kind: str
    members: int
    megabytes: float

    @property
    def words(self) -> str:
        """Kind, members and bytes: all-reduce of 8 servers, 64 MB each."""
        return (
            f"{kind_words(self.kind)} of {plural(self.members, 'server')}, "
            f"{size(1e6 * self.megabytes)} each"
        )


EXAMPLE = Tensor("all_to_all", 8, 100.0)


def largest_of(job: JobRequest) -> Tensor | None:
    """Return the largest collective of the loaded job that runs this way."""
    one = largest_collective(job.task_graph, COLLECTIVES, MAX_MEMBERS)
    return one and Tensor(one.kind, len(one.members or ()), (one.size_bytes or 0.0) / 1e6)


def chosen_tensor(job: JobRequest) -> Tensor:
    """Return the collective in view: what was chosen of it, the rest as the largest of the loaded job has it."""
    now, own = CollectiveState.now(), largest_of(job) or EXAMPLE
    return Tensor(
        now.collective or own.kind,
        now.members or own.members,
        now.tensor_mb or own.megabytes,
    )


def whose(loaded: Loaded, job: JobRequest) -> None:
    """Say whether the collective is one of the loaded job, and whose ports, speed and delay it has."""
    own, name = largest_of(job), f"<b>{escape(loaded.title)}</b>"
    ports = f"Port speed{' and delay are those' if CollectiveState.now().switch_ms is None else ' is that'} of {name}"
    if own is None:
        quiet(f"{ports}, which has no collective that runs by such steps: this one is an example.")
    elif own == chosen_tensor(job):
        quiet(f"{ports}, and this is its largest collective.")
    else:
        quiet(f"{ports}; its largest collective is the {own.words}.")


def inside_one_collective(loaded: Loaded, job: JobRequest, theme: Theme) -> None:
    """Draw the finding, the choices, the times of all ways in numbers, and the ports of the one that is chosen."""
    top, now = st.container(), chosen_tensor(job)
    first, second, third, fourth = st.columns(4)
    menu(
        CollectiveState,
        "collective",
        {k: kind_words(k) for k in COLLECTIVES},
        value=now.kind,
        at=first,
    )
    slide(CollectiveState, "members", value=now.members, at=second)
    slide(
        CollectiveState,
        "tensor_mb",
        value=now.megabytes,
        words=lambda megabytes: size(1e6 * megabytes),
        at=third,
    )
    slide(
        CollectiveState,
        "switch_ms",
        label="Delay",
        value=_delay_ms(job),
        at=fourth,
        help="Of one circuit change. Default: the delay of the cluster.",
    )
    with top, show_input_errors(KICKER, NOT_SO, None):
        one = _collective(job)
    ways = {
        "together": one.together(),
        "one_port": one.one_port_a_step(),
        "split": once("uneven split", repr(one), one.split),
    }
    with top:
        _finding(one, ways, job.cluster.port_gbps)
        whose(loaded, job)
        delay_clicks(one.delay_ms, lambda ms: CollectiveState.choose(switch_ms=ms))
    split_ms, rings_ms = ways["split"].makespan_ms, one.rings_ms
    kpis(
        ("All ports together", time(ways["together"].makespan_ms), "every port changes at once"),
        ("One port per step", time(ways["one_port"].makespan_ms), "the others are set up"),
        ("Uneven split", time(split_ms), f"unequal parts per port; at least {time(one.bound_ms)}"),
        (
            "A ring on each port",
            "–" if rings_ms is None else time(rings_ms),
            "no change" if rings_ms is not None else "this kind has none",
        ),
    )
    pick(CollectiveState, "collective_way", WAYS, label="Ports", label_visibility="collapsed")
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
        f"{'Thin bars are set-ups. ' if set_ups(one, way) else ''}After SWOT (arXiv 2510.19322), built from its abstract. "
        "The split is found by a search; the command <code>collective</code> proves it."
    )


def _collective(job: JobRequest) -> OneCollective:
    """Return the collective of the page's state on the cluster's ports."""
    now, cluster = chosen_tensor(job), job.cluster
    return OneCollective(
        now.kind,
        PERMUTATIONS[now.kind],
        now.members,
        min(max(1, degree_of(job)), MAX_PORTS),
        transfer_ms(1e6 * now.megabytes, cluster.port_gbps),
        cluster.latency_us / 1000,
        _delay_ms(job),
    )


def _delay_ms(job: JobRequest) -> float:
    """Return the chosen delay, or the cluster's own."""
    chosen = CollectiveState.now().switch_ms
    return chosen if chosen is not None else job.cluster.reconfiguration_ms


def _finding(one: OneCollective, ways: dict[str, StepsOnPorts], port_gbps: float) -> None:
    """Write what switching gains over rings that never change; of a kind that has none what an uneven split gains."""
    split_ms, rings_ms = ways["split"].makespan_ms, one.rings_ms
    other_ms = min(ways["together"].makespan_ms, ways["one_port"].makespan_ms)
    rings = {} if rings_ms is None else {"rings": rings_ms}
    switching = {SPOKEN[name]: way.makespan_ms for name, way in ways.items()}
    first, tied = ties(rings | switching), ties(switching)
    best = tied[0]
    here = f"in this one {kind_words(one.kind)}"  # a job of many may gain
    if rings_ms is not None and "rings" in first:
        others = (
            f"{enumeration(first[1:])} {'takes' if len(first) == 2 else 'take'} as long within {percent(EQUAL)}"
            if len(first) > 1
            else f"{enumeration(tied)}, the best {'way that switches, takes' if len(tied) == 1 else 'ways that switch, take'} "
            f"<b>{from_to(switching[name] for name in tied)}</b>"
        )
        words = f"Switching gains nothing {here}: <b>{time(rings_ms)}</b> with rings that never change; {others}."
    elif rings_ms is not None:
        gain = percent(1 - switching[best] / rings_ms)
        words = (
            f"Switching gains <b>{gain}</b> {here}: <b>{time(switching[best])}</b> with {best} instead of "
            f"{time(rings_ms)} with rings that never change."
        )
    elif split_ms < other_ms and not same_time(split_ms, other_ms):
        less = percent(1 - split_ms / other_ms)
        words = f"Uneven parts hide set-ups: <b>{time(split_ms)}</b>, {less} less than the better simple way."
    else:
        free = ", since circuits change for free at this setting" if not one.delay_ms else ""
        words = f"An uneven split gains nothing {here}, or less than {percent(EQUAL)}{free}: <b>{time(other_ms)}</b>."
    headline(
        f"{KICKER} · {kind_words(one.kind)} of {plural(one.members, 'server')}, {plural(one.ports, 'port')} of "
        f"{short(port_gbps)}G each, {delay_label(one.delay_ms)} delay",
        words,
    )


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Fixed circuits."""
    with show_input_errors(f"Fixed circuits · {opened.title}"):
        job = job_of(opened, scenario())
        controls(job)
        found = lay(job) if TopologyState.now().layout_by == "topoopt" else searched(job)
    if isinstance(found, LaidTopology):
        topology_headline(opened, job, found)
        PLAYER.draw(step_by_step, found, theme)
        ports_line(found)
        link_table(found)
    else:
        searched_topology(opened, job, *found, theme)


def draw_collective(theme: Theme, opened: Loaded) -> None:
    """Draw the view One collective."""
    with show_input_errors(f"{KICKER} · {opened.title}"):
        job = job_of(opened, scenario())
    with sidebar_part("What if"):
        degree_slider(job)
    inside_one_collective(opened, job, theme)
