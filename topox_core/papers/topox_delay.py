"""TOPO-X's table III when a change of circuits takes time: 1 ms as in section V, 10 ms as in section II."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from topox_core.fabrics.compare import run_one
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.run import FabricRequest
from topox_core.papers.card import Card, Choice, Row, Settings, stated
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.direct import direct, directed, printed, row_of, unprinted
from topox_core.papers.switches import BYTES
from topox_core.papers.table_iii import CARD as TABLE_III
from topox_core.papers.table_iii_runs import SAME, STATIC_SIDE, TABLE, Printed, lowered, topoopt_ms
from topox_core.schedule.settings import Settings as PlannerSettings

NAME = "topox-delay"
SMALL = TABLE[4:]  # the rows of 16 servers, each planned in a tenth of a second
DELAYS_MS = (0.0, 1.0, 10.0)
SERIES = {
    "at_0": "No delay, as equations 2 to 10 are printed",
    "at_1": "1 ms a change, the latency of section V",
    "gain_1": "TopoOpt over planned circuits at 1 ms",
    "gain_10": "TopoOpt over planned circuits at 10 ms",
}
CHOICES = (
    Choice(
        "all_reduce",
        "All-reduce",
        "Off the network for planned circuits alone, as the printed times imply, or on it for both sides.",
        (("off", "off the network"), ("on", "on the network")),
        "off",
    ),
    BYTES,
    Choice(
        "reported",
        "A row reports",
        "The faster side, as the printed table does where both are equal, or the plan.",
        (("faster", "the faster side"), ("plan", "the plan")),
        "faster",
    ),
)


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
    return run_one("scheduled", FabricRequest(graph, cluster, planner)).iteration_ms


def _static_ms(row: Printed, settings: Settings) -> float:
    """Return TopoOpt's side: rebuilt as its simulator does, or ours where both carry the all-reduce."""
    if settings["all_reduce"] == "off":
        return topoopt_ms(row, TABLE_III.settings())
    graph = lowered(row.configuration, int(settings["bytes"]), True)
    planner = PlannerSettings.of(engine="list", lowering=graph.lowering)
    request = FabricRequest(graph, row.cluster, planner, FabricOptions())
    return run_one("static", request).iteration_ms


def _rows(settings: Settings) -> Iterator[Row]:
    for row in SMALL:
        static = _static_ms(row, settings)
        data = {"topoopt_ms": static}
        for delay in DELAYS_MS:
            plan = planned_ms(row, delay, settings)
            ours = plan if settings["reported"] == "plan" else min(plan, static)
            data[f"plan_{delay:g}_ms"] = plan
            fallen = " The fixed circuits are faster and are reported." if ours < plan else ""
            column = STATIC_SIDE[str(settings["all_reduce"])] if ours < plan else ""
            if delay < DELAYS_MS[-1]:
                yield printed(
                    f"at_{delay:g}",
                    str(row.number),
                    row.about,
                    row.topox_ms,
                    ours,
                    f"Planned on continuous time in place of slots of 1 ms: {plan:.2f} ms.{fallen}",
                    unit="ms",
                    data=dict(data),
                    counts_with=column,
                )
            if delay == DELAYS_MS[1]:
                theirs = row.topoopt_ms / row.topox_ms
                yield printed(
                    "gain_1",
                    str(row.number),
                    row.about,
                    theirs,
                    static / ours,
                    f"The printed speed-up is for changes that cost a slot.{fallen}",
                    unit="×",
                    data=dict(data),
                    counts_with=column,
                )
            elif delay > 0:
                yield _slow_gain(row, static / ours, fallen, dict(data))


def _slow_gain(row: Printed, gain: float, fallen: str, data: dict[str, float]) -> Row:
    """Return whether planned circuits are faster with switches of 10 ms, which a fall back refutes."""
    theirs = row.topoopt_ms / row.topox_ms
    series, number = "gain_10", str(row.number)
    if theirs <= 1 + SAME:
        return unprinted(
            series, number, row.about, gain, "The printed speed-up is 1.", unit="×", data=data
        )
    return directed(
        series,
        number,
        row.about,
        stated(gain) == "trend",
        gain,
        "Section II: “optimizing flow scheduling and carefully adjusting optical network topology within a single training "
        f"iteration” is enough with switches of about 10 ms; table III has {theirs:.2f}× for this row.{fallen}",
        unit="×",
        data=data,
    )


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    at_1 = [row for row in rows if row.series == "at_1" and not row.counts_with]
    close = sum(row.verdict == "match" for row in at_1)
    gains = [row.ours for row in rows if row.series == "gain_10"]
    faster = sum(one > 1 + SAME for one in gains)
    mean = fmean(row.ours for row in rows if row.series == "gain_1")
    return (
        f"With 1 ms a change on continuous time {close} of {len(at_1)} printed TOPO-X times come out within 10 % where the "
        f"plan is faster, the mean speed-up is {mean:.2f}×. At 10 ms it is {fmean(gains):.2f}×: planned circuits are "
        f"faster on {faster} of {len(gains)} rows.",
        (
            "Equations 2 to 10 have no dark time, and section V sets the latency to the slot: a delay of 1 ms on continuous "
            "time is another reading of the same millisecond.",
            "With the all-reduce off the network the two columns carry different traffic, as in the printed table.",
        ),
    )


CARD = Card(
    name=NAME,
    title="Table III with a delay",
    source="TOPO-X, sections II and V, Table III",
    shows="Iteration times of DLRM on 16 servers, with the reconfiguration latency of 1 ms that section V sets and the 10 ms "
    "that section II gives for switches.",
    choices=CHOICES,
    series=SERIES,
    row_count=4 * len(SMALL),
    play=direct(NAME, _rows, _words),
    logarithmic=True,
    takes_s=3.0,
)
CLAIMS = (
    Claim(
        NAME,
        "TOPO-X takes 32.2 ms on row 5 with 1 ms of latency",
        TABLE[4].topox_ms,
        Reading("at_1", lambda rows: row_of(rows, "at_1", "5").ours, 31.4),
        unit="\u00a0ms",
    ),
    Claim(
        NAME,
        "With switches of 10 ms planned circuits are faster on row 6 (printed speed-up 3.84×)",
        None,
        Reading("gain_10", lambda rows: row_of(rows, "gain_10", "6").ours, 1.0),
    ),
)
