"""TOPO-X: its introduction, and table III without and with a delay."""

from dataclasses import replace
from statistics import fmean, geometric_mean
from typing import Any

from topox_core.fabrics.comparison.compare import EQUAL
from topox_core.io.content import record_of
from topox_core.papers.card import Call, CardRun, Rows, Settings
from topox_core.papers.catalogue import CARDS
from topox_core.papers.table_iii_runs import (
    STATIC_SIDE,
    TABLE,
    Known,
    Printed,
    lowered,
    ours,
    topoopt_ms,
)
from topox_core.papers.topoopt_jobs import fabric_ms
from topox_core.schedule.settings import Settings as PlannerSettings
from topox_core.training.costs.memory import memory
from topox_core.training.iteration import iteration
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import SHAPES


def topox_table3_calls(run: CardRun) -> list[Call]:
    """Return three calls a row, those of large clusters first."""
    made = []
    for row in sorted(TABLE, key=lambda row: (-row.servers, -row.degree, row.number)):
        made += [
            Call((row.number, "on"), ours, (row, True, run.settings)),
            Call((row.number, "off"), ours, (row, False, run.settings)),
            Call((row.number, "topoopt"), topoopt_ms, (row, run.settings)),
        ]
    return made


def _known(run: CardRun) -> list[Known]:
    """Return the networks of which everything is computed, in the order of the table."""
    parts = ("topoopt", "off", "on")
    return [
        Known(row, *(run.answers[row.number, part] for part in parts))
        for row in TABLE
        if all((row.number, part) in run.answers for part in parts)
    ]


def topox_table3(run: CardRun) -> Rows:
    """TOPO-X Table III: 14 networks, TopoOpt against TOPO-X, with the all-reduce on and off the network."""
    for one in _known(run):
        yield from table3_rows(run, one)


def table3_rows(run: CardRun, one: Known) -> Rows:
    """Yield the rows of one network, in the order of the series."""
    printed, item = one.printed, str(one.printed.number)
    yield run.row(
        "topoopt",
        item,
        one.topoopt_ms,
        theirs=printed.topoopt_ms,
        data={"static_ms": one.on.static_ms},
        network=printed.about,
    )
    for mode, side in (("off", one.off), ("on", one.on)):
        row = run.row(
            mode,
            item,
            one.reported_ms(mode),
            theirs=printed.topox_ms,
            data={
                **record_of(side, "static_ms scheduled_ms plan_bound_ms"),
                "falls_back": float(one.falls_back(mode)),
                "speed_up": one.speed_up(mode),
                "their_speed_up": printed.speed_up,
                "most_speed_up": side.static_ms / side.bound_ms,
            },
            counts_with=one.counts_with(mode),
            network=printed.about,
            one=one,
            side=side,
            mode=mode,
            column=STATIC_SIDE[mode],
        )
        yield replace(row, bound=side.bound_ms)


def topox_table3_said(run: CardRun) -> dict[str, Any]:
    known = _known(run)
    columns = {
        "Mean speed-up, as printed": [one.printed.speed_up for one in known],
        "Ours, all-reduce off TOPO-X's network": [one.speed_up("off") for one in known],
        "Ours, all-reduce on both networks": [one.speed_up("on") for one in known],
        "Most the bound allows, on both": [one.most for one in known],
    }
    return {
        "known": known,
        "below": [one for one in known if one.out_of_reach("on")],
        "equal": EQUAL,
        "facts": tuple(
            (
                name,
                f"{fmean(values):.2f}×",
                f"arithmetic; geometric {geometric_mean(values):.2f}×",
            )
            for name, values in columns.items()
        ),
    }


# Section I: gradients that an iteration transfers, and the share of training that communicates.
GPUS = 256
ENDLESS = 1e9
RECOMPUTED = Schedule(recompute="full")
SHAPE = SHAPES["gpt3-175b"]
PLANS = {
    "data parallel": Plan(data=GPUS, zero=3),
    "tensor and data parallel": Plan(tensor=8, data=GPUS // 8, sequence_parallel=True, zero=3),
    "tensor, pipeline and data parallel": Plan(
        tensor=8, pipeline=8, data=4, microbatches=32, sequence_parallel=True, zero=1
    ),
}


def topox_introduction(run: CardRun) -> Rows:
    """TOPO-X's introduction: gradients and communication of a 175-billion-parameter model on 256 GPUs."""
    weights, each = SHAPE.parameters, int(run.settings["bytes"])
    ring = 2 * (GPUS - 1) / GPUS
    # What one could mean by the gradients of an iteration.
    for item, terabytes in (
        ("sent by each GPU in a ring all-reduce", ring * weights * each / 1e12),
        ("one copy", weights * each / 1e12),
        (
            "sent by each GPU, weights split over 8 GPUs",
            2 * (GPUS // 8 - 1) / (GPUS // 8) * weights * each / 8 / 1e12,
        ),
    ):
        yield run.row("gradients", item, terabytes)
    machine = MACHINES[str(run.settings["machine"])]
    machine = replace(machine, nic_gbps=machine.nic_gbps * float(run.settings["network"]))
    # Links that take no time, inside servers and between them.
    endless = replace(
        machine,
        inside_gb_per_s=ENDLESS,
        nic_gbps=ENDLESS,
        inside_call_us=0.0,
        inside_step_us=0.0,
        network_call_us=0.0,
        network_step_us=0.0,
    )
    for words, plan in PLANS.items():
        job = Job(SHAPE, replace(plan, gradient_bytes=2 if each == 2 else 4), machine, RECOMPUTED)
        slow, fast = iteration(job), iteration(replace(job, machine=endless))
        share = 100 * (1 - fast.total_ms / slow.total_ms)
        needed = memory(job).total_bytes / 1e9
        yield run.row("share", words, share, machine=machine, plan=plan, needed=needed)
        yield run.row("time", words, slow.total_ms / 1000, machine=machine, plan=plan)


SMALL = TABLE[4:]  # the rows of 16 servers, each planned in a tenth of a second
DELAYS_MS = (0.0, 1.0, 10.0)


def planned_ms(row: Printed, delay_ms: float, settings: Settings) -> float:
    """Return the iteration with planned circuits on continuous time, a change taking ``delay_ms``."""
    graph = lowered(row.configuration, int(settings["bytes"]), settings["all_reduce"] == "on")
    planner = PlannerSettings.of(
        circuits="continuous",
        clock="continuous",
        switching="planned",
        engine="list",
        lowering=graph.lowering,
    )
    cluster = row.cluster.changed(reconfiguration_ms=delay_ms)
    return fabric_ms("scheduled", graph, cluster, planner=planner)


def _static_ms(row: Printed, settings: Settings) -> float:
    """Return TopoOpt's side: rebuilt as its simulator does, or ours where both carry the all-reduce."""
    if settings["all_reduce"] == "off":
        return topoopt_ms(row, CARDS["topox-table3"].settings())
    graph = lowered(row.configuration, int(settings["bytes"]), True)
    planner = PlannerSettings.of(engine="list", lowering=graph.lowering)
    return fabric_ms("static", graph, row.cluster, planner=planner)


def topox_delay(run: CardRun) -> Rows:
    """TOPO-X's table III when a change of circuits takes time: 1 ms as in section V, 10 ms as in section II."""
    for row in SMALL:
        static = _static_ms(row, run.settings)
        data, item = {"topoopt_ms": static}, str(row.number)
        for delay in DELAYS_MS:
            plan = planned_ms(row, delay, run.settings)
            ours = plan if run.settings["reported"] == "plan" else min(plan, static)
            data = {**data, f"plan_{delay:g}_ms": plan}
            fallen = " The fixed circuits are faster and are reported." if ours < plan else ""
            column = STATIC_SIDE[str(run.settings["all_reduce"])] if ours < plan else ""
            for series, our, theirs in (
                (f"at_{delay:g}", ours, row.topox_ms),
                (f"gain_{delay:g}", static / ours, row.topoopt_ms / row.topox_ms),
            ):
                # At 10 ms a direction is claimed, which a fall back refutes.
                beside = series != "gain_10"
                if series in run.card.series:
                    yield run.row(
                        series,
                        item,
                        our,
                        theirs=theirs if beside else None,
                        counts_with=column if beside else "",
                        data=data,
                        network=row.about,
                        plan=plan,
                        fallen=fallen,
                        printed=theirs,
                    )
