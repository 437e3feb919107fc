"""Circuits laid for a job by TopologyFinder, once for all sessions: the finding on them, and how they were laid, step by step."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.compare import EQUAL
from topox_core.figures.palette import Theme
from topox_core.figures.topology import hops, ring
from topox_core.model.lowering import lower
from topox_core.text.numbers import and_more, count, enumeration, percent, plural, short, size, time
from topox_core.topology.finder import Demand, LayoutResult, demand_of, find_layout
from topox_core.topology.ring_circuits import (
    Frame,
    bandwidth_tax,
    circuit_loads,
    frames,
    link_loads,
    used_for,
)
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import Pair, all_reduce_demand
from topox_ui.answers.contest import WORTH_A_WORD, contest_of, run_all
from topox_ui.answers.solving import Case, best
from topox_ui.runs.owner import once
from topox_ui.shell.charts import (
    as_label,
    chart,
    escape,
    frame,
    headline,
    kpis,
    quiet,
    when_opened,
    write_html,
)
from topox_ui.shell.player import Player
from topox_ui.state.address import keep_address
from topox_ui.state.choices import VARIANTS, ContestState, TopologyState
from topox_ui.state.loading import Loaded, cluster_words
from topox_ui.state.widgets import control, menu, pick, sidebar_part, slide

MAX_STRIDES = 6
EVEN = 1.005  # a busiest circuit below this many times the average is like all others, one this near to it as busy
NAMED = 3  # of the busiest circuits a sentence names so many


def topology_headline(loaded: Loaded, case: Case, laid: "LaidTopology") -> None:
    """Write what these circuits make of the job, then in numbers how they do it."""
    of_job = TopologyState.now().traffic == "graph"
    at_degree = replace(case, cluster=case.cluster.changed(ports_per_server=laid.result.degree))
    iteration_ms, by_graph_ms = _iteration_ms(at_degree) if of_job else (None, None)
    planned_ms = _planned_ms(at_degree) if iteration_ms is not None else None
    result, busiest = laid.result, laid.busiest
    traffic = escape(loaded.title) if of_job else "one all-reduce"
    headline(
        f"Fixed circuits · {traffic} · {cluster_words(case.cluster)}, TopologyFinder as {result.variant}",
        _finding(laid, iteration_ms, planned_ms, by_graph_ms),
    )
    longest = result.longest_route
    source, _, parallel = result.layout.links
    links, circuits = len(source), int(parallel.sum())
    each = "of one circuit each" if circuits == links else f"of {plural(circuits, 'circuit')}"
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
        if busiest <= EVEN
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


def _planned_ms(case: Case) -> float | None:
    """Return what Schedule says of this job; None where there is no schedule."""
    try:
        return best(case).makespan_ms
    except InputError:
        return None


def _iteration_ms(case: Case) -> tuple[float | None, float | None]:
    """Return what Compare says of these fixed circuits, and of those searched for the task graph.

    The first is None, and a line says the reason, where they cannot run the job; the second where
    the search refuses, or the task graph is too large to be searched for one sentence.
    """
    contest = contest_of(case)
    try:
        runs, _ = run_all(case, replace(contest, fabrics=("static",)))
    except InputError as error:
        st.warning(as_label(str(error)))
        return None, None
    searched = None
    if len(case.graph.tasks) < WORTH_A_WORD:
        with suppress(InputError):
            searched = run_all(case, replace(contest, fabrics=("static_graph",)))[0]["static_graph"]
    return runs["static"].iteration_ms, searched and searched.iteration_ms


DEGREES = (1, 2, 3, 4, 6, 8)
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
    key: str


def degree_of(case: Case) -> int:
    """Return the chosen degree; the cluster's ports a server if none was chosen."""
    chosen = TopologyState.now().degree
    return case.cluster.ports_per_server if chosen is None else chosen


def degree_slider(case: Case) -> None:
    """Draw the choice of the degree."""
    slide(
        "Degree",
        TopologyState,
        "degree",
        DEGREES,
        value=degree_of(case),
        help="Circuits out of and into each server. The other pages use the cluster's ports per server, "
        f"{case.cluster.ports_per_server}.",
    )


def controls(case: Case) -> None:
    """Draw the sidebar's choices."""
    with sidebar_part("What if"):
        degree_slider(case)
        pick(
            "Circuits laid by",
            TopologyState,
            "layout_by",
            LAID_BY,
            help="TopologyFinder; the bytes between servers alone; or a search that simulates the iteration "
            "of the loaded task graph (after DELTA, built from its abstract).",
        )
        pick(
            "Algorithm",
            ContestState,
            "variant",
            VARIANTS,
            help="TopoOpt (NSDI 2023) as printed in the paper, or as in the code published with it.",
        )
        pick(
            "Traffic",
            TopologyState,
            "traffic",
            TRAFFIC,
            help="Of the loaded task graph, or of one all-reduce over all servers: the textbook case.",
        )


def lay(case: Case) -> LaidTopology:
    """Find the circuits; raises InputError where there are none."""
    degree, variant = degree_of(case), ContestState.now().variant
    traffic = TopologyState.now().traffic
    drawn = f"{case.settings.lowering}|{case.settings.seed}|{case.cluster.servers}"
    key = f"{case.graph.digest}|{drawn}|{degree}|{variant}|{traffic}"
    return _laid(key, case, degree, variant, traffic)


@st.cache_resource(max_entries=24, show_spinner="Laying circuits")
def _laid(key: str, _case: Case, degree: int, variant: str, traffic: str) -> LaidTopology:
    servers = _case.cluster.servers
    demand = (
        all_reduce_demand(servers)
        if traffic == "ring"
        else demand_of(lower(_case.graph, _case.settings.lowering), servers)
    )
    result = find_layout(demand, degree, variant, seed=_case.settings.seed)
    each, parallel = circuit_loads(result, demand), result.layout.circuits
    most, circuits = max(each.values(), default=0.0), sum(parallel[pair] for pair in each)
    mean = sum(link_loads(result, demand).values()) / max(1, circuits)
    links = tuple(sorted(pair for pair, carried in each.items() if 0 < most <= carried * EVEN))
    busiest, tax = float(most / mean) if mean else 0.0, bandwidth_tax(result, demand)
    return LaidTopology(demand, result, frames(result), tax, busiest, links, key)


def hops_of_step(laid: LaidTopology, at: int) -> Any:
    """Return the hops between all servers on the circuits that lie after a step."""
    circuits = laid.pictures[at].circuits(laid.result.layout.servers)
    return once("hops", f"{laid.key}|{at}", lambda: RoutedNetwork(circuits).hop_matrix())


STEP_WORDS = {
    "split": "Split the ports",
    "connect": "Connect all servers",
    "candidates": "Candidate strides",
    "choose": "Choose strides",
    "matching": "Match pairs",
    "route": "Route",
    "repair": "Repair",
}
MAX_LINKS = 5_000


PLAYER = Player("topology", lambda at: TopologyState.choose(step=at))


def step_by_step(laid: LaidTopology, theme: Theme) -> None:
    """Draw the step in view; it steps by itself while it plays."""
    last = len(laid.pictures) - 1
    step = TopologyState.now().step
    at = PLAYER.step(last if step is None else min(step, last), last)
    _buttons(at, last)
    picture = laid.pictures[at]
    write_html(
        f'<p class="note"><b>{STEP_WORDS.get(picture.step.kind, picture.step.kind)}.</b> {escape(picture.words)}</p>'
    )
    left, right = st.columns([1.1, 1], gap="medium")
    servers = laid.result.layout.servers
    with left:
        drawing = st.container()
        routes = _route(laid) if at == last else ()
        names = ", ".join(one.name for one in (*picture.laid, *picture.added)) or "none"
        with drawing:
            chart(
                ring(picture, servers, routes, theme, _busiest(laid) if at == last else None),
                "ring",
                f"{servers} servers on a circle. Circuits laid so far: {names}. Heavy lines are of this step.",
                lambda: _sets(picture),
                "What is laid",
                title=(
                    "Circuits between servers",
                    "a stride is a ring through all servers, a matching joins pairs; in brackets: how many circuits",
                ),
            )
    with right:
        silent = ", which exchange no data" if at == last else ""
        hops_chart("hops", hops_of_step(laid, at), theme, laid.result.hops.diameter, silent)
        _details(picture)
    keep_address()


def hops_chart(
    key: str, matrix: Any, theme: Theme, most: int | None = None, without: str = ""
) -> None:
    """Draw the hops between all servers.

    Parameters
    ----------
    most
        Where the colours end; by default at the longest way.
    without
        What is to be said of pairs that have no path.
    """
    reach, servers = matrix[matrix > 0], len(matrix)
    longest = int(reach.max()) if len(reach) else 0
    note = f"{plural(longest, 'hop')} at most" if longest else "no circuit yet"
    missing = int((matrix < 0).sum())
    chart(
        hops(matrix, longest if most is None else most, theme),
        key,
        f"Hop counts between {servers} servers: {note}.",
        lambda: (
            pd.DataFrame(matrix, columns=[f"S{s}" for s in range(servers)])
            .assign(source=[f"S{s}" for s in range(servers)])
            .set_index("source")
            .reset_index()
        ),
        "Hops as a table",
        title=(
            "Hops from server (down) to server (across)",
            note + (f"; × no path: {missing:,} pairs{without}" if missing else ""),
        ),
    )


def _busiest(laid: LaidTopology) -> tuple[tuple[Pair, ...], str] | None:
    """Return the links whose circuits stand out once all lie, with what is to be said of them."""
    if laid.busiest <= EVEN:
        return None
    return laid.busiest_links, f"busiest, {busiest_words(laid)}: {short(laid.busiest)}×"


def _buttons(at: int, last: int) -> None:
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    PLAYER.buttons(at, last, row)
    if last:
        control(
            "slider",
            "Step",
            TopologyState,
            "step",
            value=at,
            at=row,
            min_value=0,
            max_value=last,
            format="%d",
            label_visibility="collapsed",
        )
    row.html(f'<p class="quiet">step {at} of {last}</p>', width="content")


def _route(laid: LaidTopology) -> tuple[tuple[int, ...], ...]:
    """Let the reader pick two servers; return their routes."""
    n = laid.result.layout.servers
    row = st.container(horizontal=True, vertical_alignment="center")
    a, b = (
        menu(
            word.capitalize(),
            TopologyState,
            f"route_{word}",
            {None: empty} | {s: f"{word} S{s}" for s in range(n)},
            at=row,
            label_visibility="collapsed",
            width=160,
        )
        for word, empty in (("from", "route from …"), ("to", "to …"))
    )
    if a is None or b is None or a == b:
        return ()
    paths = laid.result.layout.routes.get((a, b))
    if paths is None:
        result = laid.result.network
        paths = result.shortest_paths(a, b) if result.connected(a, b) else ()
        words = (
            "they exchange no data; a shortest path"
            if paths
            else "no path, and they exchange no data"
        )
    else:
        words = "one route" if len(paths) == 1 else f"{len(paths)} routes, equal shares"
    row.html(f'<p class="quiet">{words}</p>', width="content")
    return paths


def _sets(picture: Frame) -> dict[str, list[Any]]:
    every = [*picture.laid, *picture.added]
    return {
        "what": [one.name for one in every],
        "kind": [one.kind for one in every],
        "circuits": [len(one.pairs) for one in every],
        "first circuits": [", ".join(f"S{a} → S{b}" for a, b in one.pairs[:4]) for one in every],
    }


def _details(picture: Frame) -> None:
    """Show the numbers behind the step."""
    data, kind = picture.step.data, picture.step.kind
    if kind == "split":
        rows: dict[str, list[Any]] = {
            "traffic": ["rings", "other"],
            "bytes": [size(data["all_reduce_bytes"]), size(data["model_parallel_bytes"])],
            "ports": [data["degree_all_reduce"], data["degree_model_parallel"]],
        }
    elif kind in ("candidates", "choose"):
        chosen = set(data.get("chosen", ()))
        listed = data.get("candidates") or data.get("chosen") or []
        ratio = data.get("ratio")
        rows = {"stride": list(listed[:64]), "hops of a ring": [data["size"]] * len(listed[:64])}
        if kind == "choose" and ratio:
            rows["aimed at"] = [short(float(ratio) ** k) for k in range(len(rows["stride"]))]
        if chosen and kind == "candidates":
            rows["chosen"] = ["✓" if p in chosen else "" for p in rows["stride"]]
    elif kind == "matching":
        rows = {
            "pair": [f"S{a} ↔ S{b}" for a, b, _ in data["pairs"]],
            "bytes between": [size(w) for *_, w in data["pairs"]],
        }
    else:
        return
    frame(rows)


def link_table(laid: LaidTopology) -> None:
    """Offer every link with what it was laid for, its switch planes and what it carries."""
    when_opened("Every link", "links", lambda: _links(laid), compact=True)


def _links(laid: LaidTopology) -> None:
    result = laid.result
    source, destination, parallel = (ends.tolist() for ends in result.layout.links)
    purpose, carried = used_for(result), link_loads(result, laid.demand)
    each = circuit_loads(result, laid.demand)
    planes: dict[tuple[int, int], list[str]] = {}
    wiring = result.wiring
    for a, b, plane in zip(
        wiring.source.tolist(), wiring.destination.tolist(), wiring.plane.tolist(), strict=True
    ):
        planes.setdefault((a, b), []).append(str(plane))
    rows = list(zip(source, destination, strict=True))[:MAX_LINKS]
    busiest = max(each.values(), default=0.0)
    frame(
        {
            "from": [f"S{a}" for a, _ in rows],
            "to": [f"S{b}" for _, b in rows],
            "circuits": parallel[:MAX_LINKS],
            "laid for": [purpose.get(pair, "") for pair in rows],
            "port plane": [", ".join(planes.get(pair, [])) for pair in rows],
            "carries (bytes)": [carried.get(pair, 0.0) for pair in rows],
            "each circuit (bytes)": [each.get(pair, 0.0) for pair in rows],
            "of the busiest": [each.get(pair, 0.0) / busiest if busiest else 0.0 for pair in rows],
        },
        column_config={
            "of the busiest": st.column_config.ProgressColumn(
                format="percent", min_value=0.0, max_value=1.0
            )
        },
    )
    if len(source) > MAX_LINKS:
        st.caption(f"The first {MAX_LINKS:,} of {len(source):,} links.")
