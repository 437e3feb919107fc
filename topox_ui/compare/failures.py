"""What if something breaks: one element taken out, the static circuits repaired, the schedule planned again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.compare import run_freely
from topox_core.fabrics.registry import fabric
from topox_core.fabrics.run import FabricOptions, FabricRequest, FabricRun, JobRequest
from topox_core.fabrics.static import static_layout
from topox_core.figures.fabrics import before_after
from topox_core.figures.palette import Theme
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.transfer_graph import TransferGraph
from topox_core.runs.stopping import never
from topox_core.text.numbers import percent, short, time
from topox_core.topology.failures import Failure, fail_layout, repair
from topox_core.topology.finder import LayoutResult, demand_of
from topox_core.topology.mutation import on_rings
from topox_core.topology.replanning import fail_cluster, remaining_graph
from topox_ui.compare.contest import Contest, Runs
from topox_ui.compare.state import CompareState
from topox_ui.schedule.solving import Case
from topox_ui.shell.charts import chart, show_error
from topox_ui.shell.page import chart_title, escape, quiet
from topox_ui.state.widgets import control, menu, pick

KINDS = {"fibre": "a fibre", "port": "a port", "switch": "a switch", "server": "a server"}


@dataclass(frozen=True)
class FailureOutcome:
    """One way to go on after a failure: its label, its fabric, both times, and what was done; or why it cannot go on."""

    label: str
    fabric: str
    before_ms: float
    after_ms: float | None
    done: tuple[str, ...]


def failures(case: Case, contest: Contest, runs: Runs, theme: Theme) -> None:
    """Offer an expander in which one element is taken out of the static and the scheduled fabric."""
    box = st.expander(
        "What if something breaks", key="failures", on_change="rerun", icon=":material/link_off:"
    )
    if not box.open:
        return
    with box:
        if not {"static", "scheduled"} & set(runs):
            quiet("Choose the static or the scheduled fabric: a failure is repaired there.")
            return
        try:
            failure, at_share = _element(case, contest)
        except InputError as error:
            show_error(error)
            return
        with st.spinner("Repairing and running again"):
            outcomes = _static(case, contest, runs, failure) + _scheduled(
                case, runs, failure, at_share
            )
        _drawn(failure, outcomes, theme)


def _element(case: Case, contest: Contest) -> tuple[Failure, float]:
    """Draw the controls and return what fails, and when, as a share of the scheduled iteration."""
    cluster = case.cluster
    columns = st.columns([1.5, 1, 1, 1.6], vertical_alignment="bottom")
    kind = pick("What fails", CompareState, "fails", {k: k for k in KINDS}, at=columns[0])
    servers = {s: f"S{s}" for s in range(cluster.servers)}
    failure = Failure.of_switch(0)
    if kind == "fibre":
        links = {f"{a}-{b}": (a, b) for a, b in _links(case, contest)}
        chosen = menu(
            "Circuit",
            CompareState,
            "failed_circuit",
            {name: f"S{a} → S{b}" for name, (a, b) in links.items()},
            at=columns[1],
            help="A circuit of the static layout.",
        )
        failure = Failure.fibre(*links.get(chosen, (-1, -1)))
    elif kind == "port":
        server = menu("Server", CompareState, "failed_server", servers, at=columns[1])
        ports = range(cluster.ports_per_server)
        port = menu("Port", CompareState, "failed_port", ports, at=columns[2])
        failure = Failure.of_port(server, port)
    elif kind == "switch":
        switches = range(cluster.switches)
        failure = Failure.of_switch(
            menu("Switch", CompareState, "failed_switch", switches, at=columns[1])
        )
    else:
        server = menu("Server", CompareState, "failed_server", servers, at=columns[1])
        others = {s: word for s, word in servers.items() if s != server}
        if not others:
            raise InputError(
                "no other server could take the tasks over", file="failure", field="substitute"
            )
        other = menu("Its tasks go to", CompareState, "substitute", others, at=columns[2])
        failure = Failure.of_server(server, other)
    at = control(
        "slider",
        "Moment, for the schedule",
        CompareState,
        "failed_at",
        at=columns[3],
        min_value=0,
        max_value=90,
        step=5,
        format="%d %%",
        help="When it fails, in parts of the scheduled iteration: the rest is planned again from there.",
    )
    return failure, at / 100


def _layout_key(case: Case) -> str:
    return f"{case.key}|{case.settings.seed}"


@st.cache_resource(max_entries=12, show_spinner=False)
def _laid(key: str, _case: Case, variant: str) -> tuple[LayoutResult, TransferGraph]:  # noqa: ARG001
    """Return TopologyFinder's answer for a case, and the graph on its rings."""
    settings = _case.settings
    graph = lower(_case.graph, settings.lowering)
    return static_layout(graph, _case.cluster, variant, settings.seed)


def _links(case: Case, contest: Contest) -> list[tuple[int, int]]:
    layout, _ = _laid(_layout_key(case), case, contest.options.topology_variant)
    source, destination, _ = layout.layout.links
    return list(zip(source.tolist(), destination.tolist(), strict=True))


def _static(case: Case, contest: Contest, runs: Runs, failure: Failure) -> list[FailureOutcome]:
    if "static" not in runs:
        return []
    before = runs["static"].iteration_ms
    each = max(1, case.cluster.ports_per_server // case.cluster.switches)
    variant = contest.options.topology_variant
    outcomes = []
    for label, mended in (("Static, forwarded", False), ("Static, repaired", True)):
        if failure.kind == "server" and not mended:
            continue
        try:
            after, done = _broken(
                f"{_layout_key(case)}|{variant}|{failure!r}|{mended}",
                case,
                variant,
                failure,
                each,
                mended,
            )
            outcomes.append(FailureOutcome(label, "static", before, after, done))
        except InputError as error:
            outcomes.append(FailureOutcome(label, "static", before, None, (str(error),)))
    return outcomes


@st.cache_resource(max_entries=64, show_spinner=False)
def _broken(
    key: str,  # noqa: ARG001
    _case: Case,
    variant: str,
    _failure: Failure,
    each: int,
    mended: bool,
) -> tuple[float, tuple[str, ...]]:
    """Return the iteration on static circuits after a failure, and what was done."""
    cluster, settings = _case.cluster, _case.settings
    intact, graph = _laid(_layout_key(_case), _case, variant)
    plain = lower(_case.graph, settings.lowering)
    if not mended:
        layout = fail_layout(intact.layout, _failure, intact.wiring, each)
        done: tuple[str, ...] = ("What went over the lost circuits is forwarded by other servers.",)
    else:
        repaired = repair(intact, _failure, demand_of(plain, cluster.servers), each)
        if _failure.kind == "server":
            whole = fabric("static")(
                FabricRequest(plain, cluster, settings, FabricOptions(topology_variant=variant)),
                never,
            )
            moved = (
                remaining_graph(_case.graph, whole.execution, 0.0, _failure)
                if not plain.lowering.strides
                else _case.graph
            )
            plain = lower(moved, settings.lowering)
        graph = plain if plain.lowering.strides else on_rings(plain, repaired.result)
        layout, done = repaired.layout, repaired.done
    run = fabric("static")(
        FabricRequest(graph, cluster, settings, FabricOptions(layout=layout)), never
    )
    return run.iteration_ms, done


def _scheduled(case: Case, runs: Runs, failure: Failure, at_share: float) -> list[FailureOutcome]:
    if "scheduled" not in runs:
        return []
    run = runs["scheduled"]
    at_ms = at_share * run.iteration_ms
    outcomes = []
    for label, moment in (("Scheduled, this iteration", at_ms), ("Scheduled, the next ones", 0.0)):
        try:
            after, left = _planned_again(
                f"{case.key}|{run.iteration_ms}|{failure!r}|{moment:.9g}",
                case,
                run,
                failure,
                moment,
            )
            what = f"planned again at {time(moment)}" if moment else "planned for what is left"
            outcomes.append(
                FailureOutcome(
                    label,
                    "scheduled",
                    run.iteration_ms,
                    after,
                    (f"{what}: {_left(case.cluster, left)}.",),
                )
            )
        except InputError as error:
            outcomes.append(
                FailureOutcome(label, "scheduled", run.iteration_ms, None, (str(error),))
            )
    return outcomes


def _left(before: Cluster, left: Cluster) -> str:
    if left.switches == before.switches:
        return "all switches are left"
    return (
        f"{left.switches} of {before.switches} switches and {left.ports_per_server} of {before.ports_per_server} ports "
        "are used, at every server alike"
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _planned_again(
    key: str,  # noqa: ARG001
    _case: Case,
    _run: FabricRun,
    _failure: Failure,
    at_ms: float,
) -> tuple[float, Cluster]:
    """Return when the iteration ends if the rest is planned anew at ``at_ms``, and what is left of the cluster."""
    left = fail_cluster(_case.cluster, _failure, conservative=True)
    rest = remaining_graph(_case.graph, _run.execution, at_ms, _failure)
    settings = replace(_case.settings, engine="list")
    again = run_freely("scheduled", JobRequest(rest, left, settings))
    return at_ms + again.iteration_ms, left


def _drawn(failure: Failure, outcomes: list[FailureOutcome], theme: Theme) -> None:
    known = [one for one in outcomes if one.after_ms is not None]
    chart_title(
        f"Without {failure}", "iteration before and after; filled: undisturbed, hatched: degraded"
    )
    if known:
        rows = [(one.label, one.fabric, one.before_ms, float(one.after_ms or 0.0)) for one in known]
        chart(
            before_after(rows, theme),
            "failure",
            "Iteration before and after the failure: "
            + "; ".join(
                f"{label} {short(before)} ms to {short(after)} ms"
                for label, _, before, after in rows
            ),
            lambda: {
                "way": [one.label for one in outcomes],
                "undisturbed (ms)": [one.before_ms for one in outcomes],
                "degraded (ms)": [one.after_ms for one in outcomes],
                "longer": [
                    percent(one.after_ms / one.before_ms - 1)
                    if one.after_ms is not None
                    else "cannot go on"
                    for one in outcomes
                ],
                "what was done": [" ".join(one.done) for one in outcomes],
            },
            "Before and after",
        )
    items = "".join(
        f"<li>{'' if one.after_ms is not None else '<b class=bad>✗</b> '}<b>{escape(one.label)}</b>: "
        f"{escape(_first(one.done))}</li>"
        for one in outcomes
    )
    st.html(f'<ul class="quiet" style="padding-left:1.1rem">{items}</ul>')


def _first(done: tuple[str, ...], most: int = 3) -> str:
    more = f" And {len(done) - most} more, in the table." if len(done) > most else ""
    return " ".join(done[:most]) + more
