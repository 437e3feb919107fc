"""The Topology page: TopologyFinder step by step, on a circle of servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.figures.topology import Frame, frames, hops, ring, used_for
from topox_core.model.lowering import lower
from topox_core.text.numbers import count, plural, short, size
from topox_core.topology.finder import Demand, LayoutResult, demand_of, find_layout
from topox_core.topology.link_load import bandwidth_tax, link_loads
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import all_reduce_demand
from topox_ui.compare.controls import VARIANTS
from topox_ui.compare.state import CompareState
from topox_ui.schedule.solving import Case
from topox_ui.shell.charts import chart, frame, kpis
from topox_ui.shell.page import chart_title, escape, headline
from topox_ui.state.address import keep_address
from topox_ui.state.loading import Loaded, cluster_words
from topox_ui.state.store import choose, state_of
from topox_ui.state.widgets import control, menu, pick, slide
from topox_ui.topology.state import TopologyState

DEGREES = (1, 2, 3, 4, 6, 8)
TRAFFIC = {"graph": "this job", "ring": "all-reduce"}
STEP_WORDS = {
    "split": "Split the ports",
    "connect": "Connect everybody",
    "candidates": "Candidate strides",
    "choose": "Choose strides",
    "matching": "Match pairs",
    "route": "Route",
    "repair": "Repair",
}
MOST_LINKS = 5_000


@dataclass(frozen=True)
class LaidTopology:
    """What TopologyFinder found for a demand, and its pictures."""

    demand: Demand
    result: LayoutResult
    pictures: tuple[Frame, ...]
    tax: float
    key: str


def degree_of(case: Case) -> int:
    """Return the chosen degree; the cluster's ports a server if none was chosen."""
    chosen = state_of(TopologyState).degree
    return case.cluster.ports_per_server if chosen is None else chosen


def controls(case: Case) -> None:
    """Draw the sidebar's choices."""
    with st.sidebar:
        st.divider()
        st.html('<p class="side">What if</p>')
        slide(
            "Degree",
            TopologyState,
            "degree",
            DEGREES,
            value=degree_of(case),
            help="Circuits out of and into each server. The other pages use the cluster's ports per server, "
            f"{case.cluster.ports_per_server}.",
        )
        pick(
            "Algorithm",
            CompareState,
            "variant",
            VARIANTS,
            help="TopoOpt (NSDI 2023) as the paper prints it, or as the code that came with it does it.",
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
    degree, variant = degree_of(case), state_of(CompareState).variant
    traffic = state_of(TopologyState).traffic
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
    return LaidTopology(demand, result, frames(result), bandwidth_tax(result, demand), key)


@st.cache_resource(max_entries=64, show_spinner=False)
def _hops(key: str, _laid: LaidTopology, at: int) -> Any:  # noqa: ARG001
    return RoutedNetwork(_laid.pictures[at].circuits(_laid.result.layout.servers)).hop_matrix()


def topology_headline(loaded: Loaded, case: Case, laid: LaidTopology) -> None:
    """Write what was laid and what it costs."""
    result, far = laid.result, laid.result.hops
    sets = [f"<b>{result.degree_all_reduce}</b> for rings"] if result.degree_all_reduce else []
    sets += (
        [f"<b>{result.degree_model_parallel}</b> for matchings"]
        if result.degree_model_parallel
        else []
    )
    traffic = (
        escape(loaded.title) if state_of(TopologyState).traffic == "graph" else "one all-reduce"
    )
    cut = (
        f" {plural(far.unreachable, 'pair')} that never talk cannot reach one another."
        if far.unreachable
        else ""
    )
    headline(
        f"Topology · {traffic} · {cluster_words(case.cluster)}, as {result.variant}",
        f"Of <b>{result.degree}</b> circuits a server, {' and '.join(sets)}: any server reaches any other in at most "
        f"<b>{plural(far.diameter, 'hop')}</b>, and a byte travels <b>{short(laid.tax)}</b> on average.{cut}",
    )
    source, _, parallel = result.layout.links
    kpis(
        ("Diameter", plural(far.diameter, "hop"), "farthest two servers"),
        ("Mean distance", f"{short(far.mean)} hops", "over all pairs"),
        ("Bandwidth tax", short(laid.tax), "hops a byte travels"),
        ("Links", count(len(source)), f"{plural(int(parallel.sum()), 'circuit')} in all"),
        (
            "Rings carry",
            size(laid.demand.all_reduce_bytes)
            if laid.demand.model_parallel_bytes
            else "everything",
            f"of {size(laid.demand.all_reduce_bytes + laid.demand.model_parallel_bytes)}"
            if laid.demand.model_parallel_bytes
            else "no other traffic",
        ),
    )


def player(laid: LaidTopology, theme: Theme) -> None:
    """Draw the player; it steps by itself while it plays."""
    playing = bool(st.session_state.get("playing"))
    st.fragment(_player, run_every=1.6 if playing else None)(laid, theme)


def _player(laid: LaidTopology, theme: Theme) -> None:
    last = len(laid.pictures) - 1
    step = state_of(TopologyState).step
    at = last if step is None else min(step, last)
    if st.session_state.get("playing"):
        ticks = st.session_state.get("play_ticks", 0)
        st.session_state["play_ticks"] = ticks + 1
        if ticks and at < last:
            at += 1
            chosen_step(at)
        elif ticks:
            st.session_state["playing"] = False
            st.rerun()
    at = _buttons(at, last)
    picture = laid.pictures[at]
    st.html(
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
                ring(picture, servers, routes, theme),
                "ring",
                f"{servers} servers on a circle. Circuits laid so far: {names}. Heavy lines are of this step.",
                lambda: _sets(picture),
                "What is laid",
            )
    with right:
        matrix = _hops(laid.key, laid, at)
        reach = matrix[matrix > 0]
        note = (
            f"{short(float(reach.mean()))} on average, {int(reach.max())} at most"
            if len(reach)
            else "no circuit yet"
        )
        missing = int((matrix < 0).sum())
        chart_title(
            "Hops from server (down) to server (across)",
            note + (f"; × no path: {missing:,} pairs" if missing else ""),
        )
        chart(
            hops(matrix, laid.result.hops.diameter, theme),
            "hops",
            f"Hop counts between {servers} servers: {note}.",
            lambda: (
                pd.DataFrame(matrix, columns=[f"S{s}" for s in range(servers)])
                .assign(source=[f"S{s}" for s in range(servers)])
                .set_index("source")
                .reset_index()
            ),
            "Hops as a table",
        )
        _details(picture)
    keep_address()


def _buttons(at: int, last: int) -> int:
    back, on, play, bar, place = st.columns([0.5, 0.5, 0.95, 5, 0.9], vertical_alignment="center")
    back.button(
        "",
        icon=":material/skip_previous:",
        key="step_back",
        disabled=at == 0,
        on_click=chosen_step,
        args=(at - 1,),
        help="One step back",
    )
    on.button(
        "",
        icon=":material/skip_next:",
        key="step_on",
        disabled=at == last,
        on_click=chosen_step,
        args=(at + 1,),
        help="One step on",
    )
    playing = bool(st.session_state.get("playing"))
    if play.button(
        "Stop" if playing else "Play",
        icon=":material/stop:" if playing else ":material/play_arrow:",
        key="play",
        help="From the first step to the last.",
    ):
        st.session_state.update(playing=not playing, play_ticks=0)
        if not playing:
            chosen_step(0)
        st.rerun()
    if last:
        control(
            "slider",
            "Step",
            TopologyState,
            "step",
            value=at,
            at=bar,
            min_value=0,
            max_value=last,
            format="%d",
            label_visibility="collapsed",
        )
    place.html(f'<p class="quiet">step {at} of {last}</p>')
    return at


def chosen_step(at: int) -> None:
    """Go to a step."""
    choose(TopologyState, step=at)


def _route(laid: LaidTopology) -> tuple[tuple[int, ...], ...]:
    """Let the reader pick two servers; return their routes."""
    n = laid.result.layout.servers
    row = st.columns([1, 1, 2], vertical_alignment="center")
    a, b = (
        menu(
            word.capitalize(),
            TopologyState,
            f"route_{word}",
            {None: empty} | {s: f"{word} S{s}" for s in range(n)},
            at=column,
            label_visibility="collapsed",
        )
        for column, word, empty in zip(
            row[:2], ("from", "to"), ("route from …", "to …"), strict=True
        )
    )
    if a is None or b is None or a == b:
        return ()
    paths = laid.result.layout.routes.get((a, b))
    if paths is None:
        result = laid.result.network
        paths = result.shortest_paths(a, b) if result.connected(a, b) else ()
        words = (
            "they never talk; a shortest path"
            if paths
            else "no path leads there, and they never talk"
        )
    else:
        words = "one route" if len(paths) == 1 else f"{len(paths)} routes, equal shares"
    row[2].html(f'<p class="quiet">{words}</p>')
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
    elif kind == "route":
        rows = {
            "talking pairs": [data["pairs"]],
            "paths": [data["paths"]],
            "mean hops": [short(data["mean_hops"])],
            "longest": [data["longest_hops"]],
        }
    else:
        return
    frame(rows)


def link_table(laid: LaidTopology) -> None:
    """Offer every link with what it was laid for, its switch planes and what it carries."""
    box = st.expander("Every link", key="links", on_change="rerun", type="compact")
    if not box.open:
        return
    result = laid.result
    source, destination, parallel = (ends.tolist() for ends in result.layout.links)
    purpose, carried = used_for(result), link_loads(result, laid.demand)
    planes: dict[tuple[int, int], list[str]] = {}
    wiring = result.wiring
    for a, b, plane in zip(
        wiring.source.tolist(), wiring.destination.tolist(), wiring.plane.tolist(), strict=True
    ):
        planes.setdefault((a, b), []).append(str(plane))
    rows = list(zip(source, destination, strict=True))[:MOST_LINKS]
    busiest = max(carried.values(), default=0.0)
    with box:
        frame(
            {
                "from": [f"S{a}" for a, _ in rows],
                "to": [f"S{b}" for _, b in rows],
                "circuits": parallel[:MOST_LINKS],
                "laid for": [purpose.get(pair, "") for pair in rows],
                "port plane": [", ".join(planes.get(pair, [])) for pair in rows],
                "carries (bytes)": [carried.get(pair, 0.0) for pair in rows],
                "of the busiest": [
                    carried.get(pair, 0.0) / busiest if busiest else 0.0 for pair in rows
                ],
            },
            column_config={
                "of the busiest": st.column_config.ProgressColumn(
                    format="percent", min_value=0.0, max_value=1.0
                )
            },
        )
        if len(source) > MOST_LINKS:
            st.caption(f"The first {MOST_LINKS:,} of {len(source):,} links.")


def load_words(laid: LaidTopology) -> str:
    """Return how evenly links are loaded, in words."""
    carried = np.array(list(link_loads(laid.result, laid.demand).values()))
    if not len(carried):
        return ""
    return (
        f"The busiest link carries {short(float(carried.max() / carried.mean()))} times the mean."
    )
