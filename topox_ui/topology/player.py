"""Fixed circuits: TopologyFinder step by step, on a circle of servers."""

from typing import Any

import pandas as pd
import streamlit as st

from topox_core.figures.networks.topology import hops, ring
from topox_core.figures.palette import Theme
from topox_core.text.numbers import plural, short, size
from topox_core.topology.ring_circuits import (
    Frame,
    circuit_loads,
    link_loads,
    used_for,
)
from topox_core.topology.routing import RoutedNetwork
from topox_core.topology.traffic import Pair
from topox_ui.shell.charts import (
    chart,
    escape,
    frame,
    when_opened,
    write_html,
)
from topox_ui.shell.player import Player
from topox_ui.state.address import keep_address
from topox_ui.state.choices import TopologyState
from topox_ui.state.widgets import control, menu
from topox_ui.topology.laying import LaidTopology, busiest_words

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
        hops_now = RoutedNetwork(picture.circuits(servers)).hop_matrix()
        hops_chart("hops", hops_now, theme, laid.result.hops.diameter, silent)
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
    if laid.even:
        return None
    return laid.busiest_links, f"busiest, {busiest_words(laid)}: {short(laid.busiest)}×"


def _buttons(at: int, last: int) -> None:
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    PLAYER.buttons(at, last, row)
    if last:
        control(
            "slider",
            TopologyState,
            "step",
            label="Step",
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
            TopologyState,
            f"route_{word}",
            {None: empty} | {s: f"{word} S{s}" for s in range(n)},
            label=word.capitalize(),
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
