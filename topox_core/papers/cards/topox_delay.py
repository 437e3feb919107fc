"""TOPO-X's table III when a change of circuits takes time: 1 ms as in section V, 10 ms as in section II."""

from statistics import fmean

from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.papers.catalogue import CARDS
from topox_core.papers.table_iii_runs import SAME, STATIC_SIDE, TABLE, Printed, lowered, topoopt_ms
from topox_core.papers.topoopt_jobs import fabric_ms
from topox_core.schedule.settings import Settings as PlannerSettings

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


def rows(run: CardRun) -> Rows:
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


def said(run: CardRun) -> dict[str, float]:
    close = [row.verdict == "match" for row in run.of("at_1") if not row.counts_with]
    slow = [row.ours for row in run.of("gain_10")]
    return {
        "close": sum(close),
        "plans": len(close),
        "mean_1": fmean(row.ours for row in run.of("gain_1")),
        "mean_10": fmean(slow),
        "faster": sum(one > 1 + SAME for one in slow),
    }
