"""Gating that changes from iteration to iteration: regional circuits beside the networks they compete with, and their prices."""

from dataclasses import replace

import streamlit as st

from topox_core.fabrics.comparison.compare import same_time, ties
from topox_core.fabrics.comparison.gated_iterations import (
    FAT_TREE,
    NETWORKS,
    PACKET_PORTS,
    REEVALUATED,
    REGIONAL,
    STATIC,
    GatedNetwork,
    gated_networks,
)
from topox_core.fabrics.controllers.gating import exchanges
from topox_core.fabrics.options import HALF, FabricOptions
from topox_core.fabrics.run import FabricRequest, JobRequest
from topox_core.figures.networks.crossover import gated_lines
from topox_core.figures.palette import Theme
from topox_core.text.numbers import enumeration, money, percent, plural, short, time
from topox_ui.runs.owner import once, session_over
from topox_ui.shell.charts import Content, chart, frame, kpis, quiet, show_input_errors
from topox_ui.state.choices import ContestState, GatingState
from topox_ui.state.prices import catalogue
from topox_ui.state.widgets import menu, number, pick, slide, switch

SHOWN = (FAT_TREE, PACKET_PORTS, STATIC, REEVALUATED, REGIONAL)
DRAWN = {
    "walk": "a slow random walk",
    "dirichlet": "new each time (Dirichlet)",
    "zipf": "a shifting ranking (Zipf)",
}
SKEW_HELP = {
    "walk": "Spread of the experts' log-popularity; larger is more uneven.",
    "dirichlet": "Concentration of the draws; smaller is more uneven.",
    "zipf": "Exponent of the ranking; larger is more uneven.",
}
ASKED = {"gate": "at the gate", "foreseen": "ahead", "fixed": "once"}
PAUSES = {"all": "all circuits", "changed": "those that change"}
Runs = dict[str, GatedNetwork]


def changing_gating(job: JobRequest, theme: Theme) -> None:
    """Offer the section; draw it where it is switched on."""
    on = switch(
        GatingState,
        "gated",
        label="Gating that changes from iteration to iteration",
        help="Which experts are popular is drawn anew for each iteration; every network runs the same iterations.",
    )
    if not on:
        return
    request = _request(job)
    if not exchanges(request.graph, request.cluster):
        quiet(
            "This job has no transfers between experts, so no gating can change. Open the sample <code>moe</code> on Home."
        )
        return
    _controls(job)
    with show_input_errors(reset=None):
        runs = _runs(job, request)
    _finding(request, runs)
    chart(
        gated_lines(runs, theme),
        "gated",
        "Iteration time by iteration: "
        + "; ".join(f"{NETWORKS[n]} {short(one.mean_ms)} ms on average" for n, one in runs.items()),
        lambda: _each(runs),
        "Every iteration",
    )
    frame(
        {
            "Network": [NETWORKS[name] for name in runs],
            "Mean": [time(one.mean_ms) for one in runs.values()],
            "Shortest": [time(min(one.iterations_ms)) for one in runs.values()],
            "Longest": [time(max(one.iterations_ms)) for one in runs.values()],
            "Packet part": [_money(one.packet_usd) for one in runs.values()],
            "Optical part": [_money(one.optical_usd) for one in runs.values()],
            "Work per dollar": [
                f"{short(one.work_a_dollar_over(runs[FAT_TREE]))}×" for one in runs.values()
            ],
        }
    )
    quiet(
        "Fixed and re-evaluated circuits begin with TopologyFinder’s layout for the bytes of the job as it is given. "
        "Gating does not change how long experts compute. After MixNet (arXiv 2501.03905), built from its abstract."
    )


def _controls(job: JobRequest) -> None:
    now, ports = GatingState.now(), job.cluster.ports_per_server
    first, second, third, fourth = st.columns(4)
    menu(GatingState, "gating", DRAWN, label="Popularity of experts", at=first)
    slide(
        GatingState,
        "gating_skew",
        label="Skew",
        words=lambda v: f"{v:g}",
        at=second,
        help=SKEW_HELP[now.gating],
    )
    number(GatingState, "gating_seed", label="Seed of the gating", at=third)
    number(GatingState, "gating_iterations", label="Iterations", at=fourth)
    first, second, third, fourth = st.columns(4)
    slide(
        GatingState,
        "packet_ports",
        range(ports + 1),
        label="Packet ports",
        value=_options(job).packet_ports_of(job.cluster),
        at=first,
        help=f"Of the {plural(ports, 'port')} of a server; the others are on the regional optical switch.",
    )
    pick(
        GatingState,
        "regional_circuits",
        ASKED,
        label="Regional circuits are asked for",
        at=second,
        help="At the gate: when an exchange is ready. Ahead: when the exchange before it has ended. Once: for all exchanges.",
    )
    slide(
        GatingState,
        "reevaluate_ms",
        label="Re-evaluated every",
        at=third,
        help="How often re-evaluated circuits are chosen anew, from what is not sent yet.",
    )
    pick(
        GatingState,
        "pause",
        PAUSES,
        label="A change darkens",
        at=fourth,
        help="Of re-evaluated circuits, for the reconfiguration delay.",
    )


def _options(job: JobRequest) -> FabricOptions:
    now, ports = GatingState.now(), job.cluster.ports_per_server
    return FabricOptions(
        topology_variant=ContestState.now().variant,
        regional_packet_ports=HALF if now.packet_ports is None else min(now.packet_ports, ports),
        regional_circuits=now.regional_circuits,
        gating=now.gating,
        gating_skew=now.gating_skew,
        gating_iterations=now.gating_iterations,
        reevaluate_ms=now.reevaluate_ms,
        pause=now.pause,
    )


def _request(job: JobRequest) -> FabricRequest:
    settings = replace(job.by_rules.settings, seed=GatingState.now().gating_seed)
    return replace(job, settings=settings, options=_options(job)).lowered(settings.lowering)


def _runs(job: JobRequest, request: FabricRequest) -> Runs:
    prices = catalogue()
    key = f"{job.key}|{request.settings.seed}|{request.options}|{prices.digest}"
    with st.spinner("Running the iterations on every network"):
        return once("gating", key, lambda: gated_networks(request, prices, SHOWN, session_over()))


def _finding(request: FabricRequest, runs: Runs) -> None:
    """Write how regional circuits do against the fat-tree, then both in numbers, and what both parts cost."""
    own, rival = runs[REGIONAL], runs[FAT_TREE]
    over = own.work_a_dollar_over(rival)
    if same_time(own.mean_ms, rival.mean_ms):
        against = "as long as a fat-tree on all ports"
    else:
        share = own.mean_ms / rival.mean_ms - 1
        against = f"{percent(abs(share))} {'longer' if share > 0 else 'shorter'} than a fat-tree on all ports"
    best = ties({name: 1 / one.work_a_dollar_over(rival) for name, one in runs.items()})
    most = ""
    if REGIONAL not in best:
        names = enumeration([NETWORKS[name].lower() for name in best])
        most = f" Most work per dollar: {names}, <b>{short(runs[best[0]].work_a_dollar_over(rival))}×</b>."
    st.html(
        f"<p>While the gating changes, regional circuits take <b>{time(own.mean_ms)}</b> on average, {against}. "
        f"They do <b>{short(over)}×</b> its work per dollar.{most}</p>"
    )
    packet_ports = request.options.packet_ports_of(request.cluster)
    optical_ports = request.cluster.ports_per_server - packet_ports
    kpis(
        (
            "Regional circuits",
            time(own.mean_ms),
            f"mean of {plural(len(own.iterations_ms), 'iteration')}",
        ),
        ("Fat-tree on all ports", time(rival.mean_ms), money(rival.usd)),
        ("Packet part", money(own.packet_usd), f"{plural(packet_ports, 'port')} per server"),
        ("Optical part", money(own.optical_usd), f"{plural(optical_ports, 'port')} per server"),
        ("Work per dollar", f"{short(over)}×", "that of the fat-tree"),
    )


def _money(usd: float) -> str:
    return money(usd) if usd else "–"


def _each(runs: Runs) -> Content:
    count = max(len(one.iterations_ms) for one in runs.values())
    columns = {f"{NETWORKS[name]} (ms)": one.iterations_ms for name, one in runs.items()}
    return {"iteration": range(1, count + 1), **columns}
