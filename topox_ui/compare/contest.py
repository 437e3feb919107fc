"""The Compare page's runs and its main figures: one case on every chosen fabric, each run kept by its setting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from topox_core.economics.clusters import same_cost_nic_gbps, same_cost_ratio
from topox_core.errors import InputError
from topox_core.fabrics.circuit_traffic import circuit_traffic
from topox_core.fabrics.compare import check_delay, compare, fastest, gap
from topox_core.fabrics.registry import FABRICS
from topox_core.fabrics.run import Breakdown, FabricOptions, FabricRun
from topox_core.fabrics.verdict import YARDSTICK, sentence
from topox_core.figures.fabrics import iteration_bars, parts_of
from topox_core.figures.palette import Theme
from topox_core.model.cluster import Cluster
from topox_core.model.critical_path import critical_path
from topox_core.text.choices import chosen_by_all
from topox_core.text.numbers import count, percent, plural, short, time
from topox_ui.compare.state import CompareState
from topox_ui.runs.owner import run_owner
from topox_ui.schedule.solving import PROOF, Case, keep, known, listing
from topox_ui.shell.charts import chart, frame, show_error
from topox_ui.shell.page import chart_title, escape, headline, quiet
from topox_ui.state.loading import Loaded, cluster_words
from topox_ui.state.prices import cluster_catalogue
from topox_ui.state.store import state_of

Runs = dict[str, FabricRun]
NUMBERS = ("Iteration", "Gap", "Changes", "Dark", "Tax")
WORTH_A_WORD = 1_500  # tasks; fewer run before a spinner could be read


@dataclass(frozen=True)
class Contest:
    """Which fabrics compete, with their options and their names in words."""

    fabrics: tuple[str, ...]
    options: FabricOptions
    labels: Mapping[str, str]


def contest_of(case: Case) -> Contest:
    """Return the contest that the Compare page chooses on a case's cluster."""
    cluster, now = case.cluster, state_of(CompareState)
    options = FabricOptions(topology_variant=now.variant)
    words = "Fat-tree, full"
    if now.fat_tree == "cost":
        nic_gbps = same_cost_nic_gbps(cluster, cluster_catalogue(), now.cost_ratio)
        options = replace(options, equivalent_gbps=nic_gbps)
        words = "Fat-tree, same cost"
    elif now.fat_tree == "racks":
        rack = now.servers_per_rack or max(1, cluster.servers // 4)
        options = replace(
            options,
            oversubscription=now.oversubscription,
            servers_per_rack=min(rack, cluster.servers),
        )
        words = f"Fat-tree, {options.oversubscription:g}:1"
    fabrics = tuple(name for name in FABRICS if name in now.fabrics)
    return Contest(fabrics, options, {**FABRICS, "fat_tree": words})


def priced_ratio(cluster: Cluster) -> float:
    """Return the ratio of a fat-tree of the same cost, by the prices that hold."""
    return same_cost_ratio(cluster, cluster_catalogue())


def priced_words(cluster: Cluster) -> str:
    """Say what the circuits' money buys, and by whose prices."""
    full, ratio = cluster.ports_per_server * cluster.port_gbps, priced_ratio(cluster)
    ports = f"{plural(cluster.ports_per_server, 'optical port')} a server {'costs' if cluster.ports_per_server == 1 else 'cost'}"
    bought = (
        f"{ports} as much as one NIC of {short(full / ratio)}G and its fat-tree"
        if ratio > 1
        else f"{ports} no less than one NIC of {full:g}G and its fat-tree, which therefore has all of it"
    )
    return (
        f"Same cost: {bought}. Prices by speed: {cluster_catalogue().name} (Cost page); a port has a NIC, a transceiver and "
        "an optical-switch port, a packet link five switch ports and six transceivers."
    )


def scaled(options: FabricOptions, case: Case) -> FabricOptions:
    """Return options for a map over port speeds or degrees.

    A NIC of the same cost becomes as slow a link above racks of one server, which follows speed and
    ports.
    """
    if options.equivalent_gbps is None:
        return options
    full = case.cluster.ports_per_server * case.cluster.port_gbps
    return replace(
        options,
        equivalent_gbps=None,
        servers_per_rack=1,
        oversubscription=max(1.0, full / options.equivalent_gbps),
    )


def run_all(case: Case, contest: Contest) -> tuple[Runs, tuple[str, ...]]:
    """Run what has not been run for this very setting; return the runs, and a line for each reason why others cannot.

    Raises
    ------
    InputError
        If the delay is absurd, or no fabric can run.
    """
    check_delay(case.cluster)
    runs: Runs = {}
    failed: dict[str, list[str]] = {}
    large = len(case.graph.tasks) >= WORTH_A_WORD
    # The ideal switch comes last: what the others do is among its candidates.
    order = sorted(contest.fabrics, key=lambda name: name == "ideal")
    for k, name in enumerate(order, start=1):
        words = f"{contest.labels[name]}, {k} of {len(contest.fabrics)}: {plural(len(case.graph.tasks), 'task')}"
        try:
            with st.spinner(words) if large else nullcontext():
                run = _run(_key(case, name, contest.options), case, name, contest.options, runs)
        except InputError as error:
            item = error.item.removeprefix(f"fabric {name}").removeprefix(", ")
            problem = str(InputError(error.problem, file=error.file, item=item, field=error.field))
            failed.setdefault(problem, []).append(contest.labels[name])
            if len(contest.fabrics) == sum(map(len, failed.values())):
                raise
            continue
        runs[name] = _best_plan(case, run) if name == "scheduled" else run
    return {name: runs[name] for name in contest.fabrics if name in runs}, tuple(
        f"{', '.join(names)} cannot run: {problem}" for problem, names in failed.items()
    )


def _key(case: Case, name: str, options: FabricOptions) -> str:
    own = {
        "fat_tree": (options.oversubscription, options.servers_per_rack, options.equivalent_gbps),
        "static": (options.topology_variant, case.settings.seed),
    }.get(name, ())
    return f"{case.key}|{name}|{own}"


@st.cache_resource(max_entries=256, show_spinner=False)
def _run(
    key: str,  # noqa: ARG001
    _case: Case,
    name: str,
    _options: FabricOptions,
    _known: Runs,
) -> FabricRun:
    settings = listing(_case.settings)
    return compare(_case.graph, _case.cluster, settings, (name,), _options, known=_known)[name]


def _best_plan(case: Case, run: FabricRun) -> FabricRun:
    """Return the run of the best plan this session knows of; Schedule and Circuits get to know the one found here."""
    best, mine = known(case), run.result
    if mine is None or mine.makespan_ms is None:
        return run
    if (
        best is not None
        and best.execution is not None
        and best.makespan_ms is not None
        and (best.makespan_ms, -best.bound_ms) < (mine.makespan_ms, -mine.bound_ms)
    ):
        circuits = best.execution.circuits
        path = critical_path(best.execution, case.settings.exclusive_devices)
        return replace(
            run,
            execution=best.execution,
            bound_ms=max(run.bound_ms, best.bound_ms),
            bound_by=best.bound_by,
            traffic=circuit_traffic(best.execution),
            result=best,
            message=best.message,
            path=path,
            breakdown=Breakdown.of(best.execution.graph, path),
            circuits_changed=int(circuits.changed.sum()),
            dark_ms=float((circuits.start_ms - circuits.setup_ms).sum()),
        )
    if best is not mine:
        keep(run_owner().results(PROOF), case.key, mine)
    return run


def compare_headline(loaded: Loaded, case: Case, contest: Contest, runs: Runs, turn: str) -> None:
    """Write who wins and why: the verdict's first clause as the headline; the rest, and where the answer turns, under it."""
    verdict = (
        sentence(runs)
        .rstrip(".")
        .replace(
            "Fat-tree",
            contest.labels["fat_tree"].replace(", ", " of the ", 1)
            if contest.labels["fat_tree"].endswith("cost")
            else contest.labels["fat_tree"],
        )
    )
    first, *rest = verdict.split("; ")
    delay = (
        f"{short(case.cluster.reconfiguration_ms)}&nbsp;ms delay"
        if case.cluster.reconfiguration_ms
        else "no delay"
    )
    headline(
        f"Compare · {escape(loaded.title)} · {cluster_words(case.cluster)}, {delay}",
        f"{_emphasised(first)}.",
    )
    tail = "; ".join(rest)
    verdict = " ".join(
        part for part in (turn, f"{escape(tail[0].upper() + tail[1:])}." if tail else "") if part
    )
    if verdict:
        st.html(f'<p class="quiet" style="margin-top:-.55rem">{verdict}</p>')


def _emphasised(words: str) -> str:
    """Return a sentence as HTML, its fabrics and numbers with units in bold."""
    text = escape(words)
    names = "|".join(
        sorted(
            (*(w for k, w in FABRICS.items() if k != "fat_tree"), "Fat-tree[^ ]*"),
            key=len,
            reverse=True,
        )
    )
    text = re.sub(rf"({names})", r"<b>\1</b>", text)
    return re.sub(r"(?<![\w.,])(\d[\d.,]*)\s(ms|s|%|times)(?!\w)", r"<b>\1&nbsp;\2</b>", text)


def cannot_run(failed: tuple[str, ...]) -> None:
    """Write why some fabrics cannot run here, a line a reason; the others are compared."""
    for line in failed:
        show_error(line)


def main_figures(contest: Contest, runs: Runs, theme: Theme) -> None:
    """Draw the bars and the same in numbers beside them."""
    left, right = st.columns([1.42, 1], gap="medium")
    buildable = {name: run for name, run in runs.items() if name != YARDSTICK}
    first = fastest(buildable)
    notes = (
        dict.fromkeys(first, "equal")
        if len(first) > 1
        else dict.fromkeys(first, "fastest buildable")
    )
    with left:
        chart_title(
            "One iteration on every fabric, and where its time goes",
            "ms along the critical chain; tick: no iteration on that fabric can be shorter",
        )
        chart(
            iteration_bars(runs, contest.labels, notes, theme),
            "iterations",
            "Iteration time by fabric: "
            + "; ".join(f"{contest.labels[n]} {short(r.iteration_ms)} ms" for n, r in runs.items()),
            lambda: _breakdown_table(contest, runs),
            "Where the time goes",
        )
    with right:
        chart_title("The same in numbers", "gap: to the lower bound; tax: hops a byte travels")
        frame(
            {
                "Fabric": [contest.labels[name] for name in runs],
                "Iteration": [time(run.iteration_ms) for run in runs.values()],
                "Gap": [_gap_words(run) for run in runs.values()],
                "Changes": [count(run.circuits_changed) for run in runs.values()],
                "Dark": [percent(dark_share(run)) for run in runs.values()],
                "Tax": [short(run.traffic.bandwidth_tax) for run in runs.values()],
            },
            column_config={
                name: st.column_config.TextColumn(alignment="right") for name in NUMBERS
            },
        )
        words = {contest.labels[name]: run.chosen_words for name, run in runs.items()}
        if sentence := chosen_by_all(words):
            quiet(escape(sentence))
        for name in ("scheduled", "fat_tree", "static"):
            if name in runs and runs[name].message:
                quiet(f"{escape(contest.labels[name])}: {escape(_polished(runs[name].message))}")
        if "fat_tree" in runs and contest.options.equivalent_gbps is not None:
            quiet(f"{escape(priced_words(runs['fat_tree'].execution.cluster))}")


def _gap_words(run: FabricRun) -> str:
    share = gap(run.iteration_ms, run.bound_ms)
    return percent(share) if share >= 0.0005 else "0\u00a0%"


def _polished(message: str) -> str:
    """Return a message with its times to three digits: the table has all of them."""
    return re.sub(r"\d+\.\d{4,}|\d{5,}", lambda number: short(float(number.group())), message)


def dark_share(run: FabricRun) -> float:
    """Return the share of out-port time that is dark."""
    cluster = run.execution.cluster
    whole = cluster.servers * cluster.ports_per_server * run.iteration_ms
    return run.dark_ms / whole if whole > 0 else 0.0


def _breakdown_table(contest: Contest, runs: Runs) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "fabric": contest.labels[name],
            "iteration (ms)": run.iteration_ms,
            "compute (ms)": parts_of(run.breakdown)[0],
            "exposed transfer (ms)": run.breakdown.exposed_ms,
            "dark (ms)": run.breakdown.dark_ms,
            "waiting (ms)": run.breakdown.waiting_ms,
            "bound (ms)": run.bound_ms,
            "what binds": run.bound_by,
            "circuit changes": run.circuits_changed,
            "dark, all circuits (ms)": run.dark_ms,
            "bandwidth tax": run.traffic.bandwidth_tax,
            "mean hops": run.traffic.mean_hops,
            "longest hops": run.traffic.longest_hops,
        }
        for name, run in runs.items()
    )
