"""Circuits laid for a job by TopologyFinder, once for all sessions; and the finding on them."""

from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.fabrics.run import JobRequest
from topox_core.text.numbers import and_more, count, enumeration, percent, plural, short, size, time
from topox_core.topology.finder import Demand, LayoutResult, find_layout
from topox_core.topology.ring_circuits import (
    Frame,
    bandwidth_tax,
    circuit_loads,
    frames,
    link_loads,
)
from topox_core.topology.traffic import Pair, all_reduce_demand, traffic_of
from topox_ui.answers.contest import WORTH_A_WORD, contest_of, run_all
from topox_ui.answers.solving import best
from topox_ui.shell.charts import (
    as_label,
    escape,
    headline,
    kpis,
    quiet,
)
from topox_ui.state.choices import VARIANTS, ContestState, TopologyState
from topox_ui.state.loading import Loaded, cluster_words
from topox_ui.state.widgets import pick, sidebar_part, slide

MAX_STRIDES = 6
NAMED = 3  # of the busiest circuits a sentence names so many


def topology_headline(loaded: Loaded, job: JobRequest, laid: "LaidTopology") -> None:
    """Write what these circuits make of the job, then in numbers how they do it."""
    of_job = TopologyState.now().traffic == "graph"
    at_degree = replace(job, cluster=job.cluster.changed(ports_per_server=laid.result.degree))
    iteration_ms, by_graph_ms = _iteration_ms(at_degree) if of_job else (None, None)
    planned_ms = _planned_ms(at_degree) if iteration_ms is not None else None
    result, busiest = laid.result, laid.busiest
    traffic = escape(loaded.title) if of_job else "one all-reduce"
    headline(
        f"Fixed circuits · {traffic} · {cluster_words(job.cluster)}, TopologyFinder as {result.variant}",
        _finding(laid, iteration_ms, planned_ms, by_graph_ms),
    )
    longest = result.longest_route
    source, _, parallel = result.layout.links
    links, circuits = len(source), int(parallel.sum())
    each = "of one circuit each" if circuits == links else f"made of {plural(circuits, 'circuit')}"
    gives = "–" if iteration_ms is None else time(iteration_ms)
    against = "as on Compare" if planned_ms is None else f"planned circuits {time(planned_ms)}"
    kpis(
        ("Iteration time", gives, against if of_job else "of a job only"),
        (
            "Busiest circuit",
            f"{short(busiest)}×" if busiest else "–",
            "the bytes of the average one",
        ),
        ("Longest route", plural(longest, "hop"), "that data takes"),
        ("Bandwidth tax", short(laid.tax), "hops that a byte travels"),
        ("Links", count(links), each),
    )


def _finding(
    laid: "LaidTopology",
    iteration_ms: float | None,
    planned_ms: float | None,
    by_graph_ms: float | None,
) -> str:
    """Return the answer: how long the iteration takes and what that loses, the busiest circuit, how far data goes."""
    words, busiest = [], laid.busiest
    if not busiest:
        return "<b>No data</b> crosses the network here."
    several = len(laid.busiest_links) > 1
    carries = (
        "All circuits carry <b>the same</b>"
        if laid.even
        else f"The busiest circuit{'s' * several}, {busiest_words(laid)}, {'carry' if several else 'carries'} "
        f"<b>{short(busiest)}×</b> the average"
    )
    if iteration_ms is not None:
        words.append(
            f"Circuits fixed by TopoOpt take <b>{time(iteration_ms)}</b>{_lost(iteration_ms, planned_ms)}."
        )
        if by_graph_ms is not None and by_graph_ms * (1 + EQUAL) < iteration_ms:
            words.append(
                f"Fixed circuits searched for the task graph take only <b>{time(by_graph_ms)}</b>."
            )
    words.append(f"{carries}.")
    longest = laid.result.longest_route
    words.append(
        "All data goes directly, over <b>1&nbsp;hop</b>."
        if longest <= 1
        else f"Data takes up to <b>{plural(longest, 'hop')}</b>."
    )
    return " ".join(words)


def busiest_words(laid: "LaidTopology") -> str:
    """Return between which servers the busiest circuits lead: S3 → S4; several of them, and how many more."""
    links = laid.busiest_links
    named = [f"S{a}\u00a0→\u00a0S{b}" for a, b in links[:NAMED]]
    more = and_more(len(links), NAMED)
    return f"{', '.join(named)}{more}" if more else enumeration(named)


def ports_line(laid: "LaidTopology") -> None:
    """Write what the ports are for, and which servers have no path because they never talk."""
    result, demand = laid.result, laid.demand
    rings, others = result.degree_all_reduce, result.degree_model_parallel
    strides = sorted({stride for of_size in result.strides.values() for stride in of_size})
    listed = ", ".join(map(str, strides[:MAX_STRIDES])) + (" …" * (len(strides) > MAX_STRIDES))
    sets = (
        [f"{rings} for all-reduce rings" + f" (stride {listed})" * bool(strides)] if rings else []
    )
    sets += [f"{others} for matchings"] if others else []
    words = [
        f"Degree {result.degree}: each server has {plural(result.degree, 'circuit')}, {' and '.join(sets)}."
    ]
    total = demand.all_reduce_bytes + demand.model_parallel_bytes
    if demand.all_reduce_bytes and demand.model_parallel_bytes:
        share = percent(demand.all_reduce_bytes / total)
        words.append(
            f"Rings carry {share} of {size(total)}: that traffic is mutable; the rest must go between given servers."
        )
    elif demand.all_reduce_bytes:
        words.append("Rings carry all data: it is mutable traffic.")
    if result.hops.unreachable:
        words.append(
            f"{plural(result.hops.unreachable, 'pair')} of servers exchange no data and have no path."
        )
    quiet(" ".join(words))


def _lost(iteration_ms: float, planned_ms: float | None) -> str:
    """Return what fixed circuits lose against those that are planned to change."""
    if planned_ms is None:
        return ""
    if iteration_ms <= planned_ms * (1 + EQUAL):
        return ", as fast as planned circuits"
    return f", <b>{short(iteration_ms / planned_ms)}×</b> the time of planned circuits ({time(planned_ms)})"


def _planned_ms(job: JobRequest) -> float | None:
    """Return what Schedule says of this job; None where there is no schedule."""
    try:
        return best(job).makespan_ms
    except InputError:
        return None


def _iteration_ms(job: JobRequest) -> tuple[float | None, float | None]:
    """Return what Compare says of these fixed circuits, and of those searched for the task graph.

    The first is None, and a line says the reason, where they cannot run the job; the second where
    the search refuses, or the task graph is too large to be searched for one sentence.
    """
    contest = contest_of(job)
    try:
        runs, _ = run_all(job, replace(contest, fabrics=("static",)))
    except InputError as error:
        st.warning(as_label(str(error)))
        return None, None
    searched = None
    if len(job.task_graph.tasks) < WORTH_A_WORD:
        with suppress(InputError):
            searched = run_all(job, replace(contest, fabrics=("static_graph",)))[0]["static_graph"]
    return runs["static"].iteration_ms, searched and searched.iteration_ms


LAID_BY = {"topoopt": "TopoOpt", "matrix": "bytes", "graph": "graph"}
TRAFFIC = {"graph": "this job", "ring": "all-reduce"}


@dataclass(frozen=True)
class LaidTopology:
    """What TopologyFinder found for a demand, and its pictures.

    Attributes
    ----------
    tax
        Hops that a byte travels.
    busiest, busiest_links
        Bytes of the busiest circuit over the average of those in use, 0 where nothing is sent; the links whose circuits are as busy.
    """

    demand: Demand
    result: LayoutResult
    pictures: tuple[Frame, ...]
    tax: float
    busiest: float
    busiest_links: tuple[Pair, ...]

    @property
    def even(self) -> bool:
        """Whether all circuits in use carry the same."""
        return self.busiest <= 1 + EQUAL


def degree_of(job: JobRequest) -> int:
    """Return the chosen degree; the cluster's ports per server if none was chosen."""
    chosen = TopologyState.now().degree
    return job.cluster.ports_per_server if chosen is None else chosen


def degree_slider(job: JobRequest) -> None:
    """Draw the choice of the degree."""
    slide(
        TopologyState,
        "degree",
        value=degree_of(job),
        help="Circuits out of and into each server. The other pages use the cluster's ports per server, "
        f"{job.cluster.ports_per_server}.",
    )


def controls(job: JobRequest) -> None:
    """Draw the sidebar's choices."""
    with sidebar_part("What if"):
        degree_slider(job)
        pick(
            TopologyState,
            "layout_by",
            LAID_BY,
            label="Circuits laid by",
            help="TopologyFinder; the bytes between servers alone; or a search that simulates the iteration "
            "of the loaded task graph (after DELTA, built from its abstract).",
        )
        pick(
            ContestState,
            "variant",
            VARIANTS,
            label="Algorithm",
            help="TopoOpt (NSDI 2023) as printed in the paper, or as in the code published with it.",
        )
        pick(
            TopologyState,
            "traffic",
            TRAFFIC,
            label="Traffic",
            help="Of the loaded task graph, or of one all-reduce over all servers: the textbook case.",
        )


def lay(job: JobRequest) -> LaidTopology:
    """Find the circuits; raises InputError where there are none."""
    degree, variant = degree_of(job), ContestState.now().variant
    traffic = TopologyState.now().traffic
    drawn = f"{job.settings.lowering}|{job.settings.seed}|{job.cluster.servers}"
    key = f"{job.task_graph.digest}|{drawn}|{degree}|{variant}|{traffic}"
    return _laid(key, job, degree, variant, traffic)


@st.cache_resource(max_entries=24, show_spinner="Laying circuits")
def _laid(key: str, _job: JobRequest, degree: int, variant: str, traffic: str) -> LaidTopology:  # noqa: ARG001
    servers = _job.cluster.servers
    demand = (
        all_reduce_demand(servers)
        if traffic == "ring"
        else traffic_of(_job.task_graph, servers, _job.settings.lowering)
    )
    result = find_layout(demand, degree, variant, seed=_job.settings.seed)
    each, parallel = circuit_loads(result, demand), result.layout.circuits
    most, circuits = max(each.values(), default=0.0), sum(parallel[pair] for pair in each)
    mean = sum(link_loads(result, demand).values()) / max(1, circuits)
    links = tuple(
        sorted(pair for pair, carried in each.items() if 0 < most <= carried * (1 + EQUAL))
    )
    busiest, tax = float(most / mean) if mean else 0.0, bandwidth_tax(result, demand)
    return LaidTopology(demand, result, frames(result), tax, busiest, links)
