"""TopoOpt's figure 17: how fast a switch must be before circuits that change within the iteration match fixed ones."""

from __future__ import annotations

from dataclasses import replace

from topox_core.fabrics.run import FabricOptions
from topox_core.papers.calls import Call, answers
from topox_core.papers.card import (
    NOT_PRINTED,
    Answer,
    Card,
    Choice,
    OnRow,
    Row,
    Settings,
    counted_verdicts,
    drawn,
)
from topox_core.papers.switches import VARIANT
from topox_core.papers.topoopt_jobs import iteration_ms, network
from topox_core.runs.stopping import Stop

DELAYS_US = (1, 5, 20, 100, 1_000, 10_000)
SERVERS, DEGREE, PORT_GBPS = 16, 8, 100.0
SERIES = {"reactive": "On demand over fixed", "provisioned": "Provisioned over fixed"}
EQUAL = 0.05  # circuits that change and circuits that do not are called equal below this

CHOICES = (
    Choice(
        "model",
        "Job",
        "What is trained on 16 servers.",
        (
            ("dlrm-16", "DLRM"),
            ("candle-16", "CANDLE Uno"),
            ("bert-16", "BERT"),
            ("vgg16-measured", "VGG16"),
        ),
        "dlrm-16",
    ),
    replace(VARIANT, meaning="How TopologyFinder lays out the fixed circuits."),
)


def _play(settings: Settings, stop: Stop, on_row: OnRow) -> Answer:
    lost: list[str] = []
    model = str(settings["model"])
    base = network(SERVERS, DEGREE, PORT_GBPS)
    calls = [
        Call(
            ("static", 0),
            iteration_ms,
            (model, base, "static", FabricOptions(topology_variant=str(settings["variant"]))),
        )
    ]
    calls += [
        Call(
            (fabric, delay),
            iteration_ms,
            (model, network(SERVERS, DEGREE, PORT_GBPS, delay / 1000), fabric, FabricOptions()),
        )
        for delay in DELAYS_US
        for fabric in SERIES
    ]
    times: dict[tuple[str, int], float] = {}
    complete: set[tuple[str, int]] = set()
    for key, time in answers(calls, stop, lost):
        times[key] = time
        if ("static", 0) in times:
            for point in set(times) - complete - {("static", 0)}:
                complete.add(point)
                on_row(_row(point, times))
    rows = [
        row
        for fabric in SERIES
        for row in drawn(
            [_row((fabric, delay), times) for delay in DELAYS_US if (fabric, delay) in complete],
            rising=True,
        )
    ]
    return CARD.answer(settings, rows, _finding(times, model), _remarks(rows), lost)


def _row(key: tuple[str, int], times: dict[tuple[str, int], float]) -> Row:
    fabric, delay = key
    return Row(
        fabric,
        f"{delay:,} µs",
        f"{SERVERS} servers, {DEGREE} × {PORT_GBPS:g} Gbit/s",
        None,
        times[key] / times["static", 0],
        "not printed",
        NOT_PRINTED,
        data={"static_ms": times["static", 0], f"{fabric}_ms": times[key]},
    )


def _finding(times: dict[tuple[str, int], float], model: str) -> str:
    if len(times) < 1 + len(SERIES) * len(DELAYS_US):
        return "Not all points were computed."
    static = times["static", 0]
    clauses = []
    for fabric, words in (("reactive", "on demand"), ("provisioned", "ahead of demand")):
        level = [delay for delay in DELAYS_US if times[fabric, delay] <= static * (1 + EQUAL)]
        until = (
            f"match fixed ones up to {max(level):,} µs"
            if level
            else "come within 5 % of fixed ones at none of these delays"
        )
        clauses.append(
            f"circuits changed {words} {until} and take {times[fabric, 10_000] / static:.1f}× at 10,000 µs"
        )
    return f"On {model}, {'; '.join(clauses)}."


def _remarks(rows: list[Row]) -> tuple[str, ...]:
    if not rows:
        return ()
    return (
        f"{counted_verdicts(rows)}. The paper prints no numbers for this figure: it says that about a microsecond is "
        "needed to match circuits fixed before the job.",
        "The paper re-evaluates its circuits every 50 ms from the traffic of the last interval, and forwards what has no "
        "circuit; here circuits are changed transfer by transfer and nothing is forwarded, so the lines are other "
        "controllers under the same sweep.",
    )


CARD = Card(
    name="topoopt-reconfiguration-latency",
    title="Delay of a change",
    source="TopoOpt (NSDI 2023), section 5, Figure 17",
    shows="Iteration time when circuits change during the iteration, at delays of 1 to 10,000 µs (degree 8, 100 Gbit/s), "
    "against circuits fixed before the job.",
    choices=CHOICES,
    series=SERIES,
    row_count=len(SERIES) * len(DELAYS_US),
    play=_play,
    logarithmic=True,
)
