"""TopoOpt's figure 17: how fast a switch must be before circuits that change within the iteration match fixed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topox_core.fabrics.compare import EQUAL
from topox_core.fabrics.options import FabricOptions
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
    judged,
)
from topox_core.papers.switches import VARIANT
from topox_core.papers.topoopt_jobs import iteration_ms, network
from topox_core.runs.stopping import Stop

DELAYS_US = (1, 5, 20, 100, 1_000, 10_000)
SERVERS, DEGREE, PORT_GBPS = 16, 8, 100.0
SERIES = {
    "forwarding": "Re-evaluated, servers forward, over fixed",
    "direct": "Re-evaluated, nothing forwarded, over fixed",
    "reactive": "On demand over fixed",
    "provisioned": "Provisioned over fixed",
}
SWITCHED = ("reactive", "provisioned")
# The paper: a switch of about a microsecond is needed to match circuits fixed before the job.
PRINTED_US, PRINTED = 1, 1.0
JUDGED = ("forwarding", "direct")  # the others change circuits as no line of the figure does
RINGS = (1, 2, 4, 8)

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
    Choice(
        "rings",
        "Rings of an all-reduce",
        "On circuits on demand and provisioned; fixed circuits use all rings that TopologyFinder laid.",
        (("best", "the fastest number at each delay"), *((n, str(n)) for n in RINGS)),
        "best",
    ),
    Choice(
        "interval_ms",
        "Re-evaluated every",
        "How often the controller looks at what is not sent; the paper has 50 ms.",
        ((50, "50 ms"), (10, "10 ms"), (2, "2 ms")),
        50,
    ),
    Choice(
        "pause",
        "A change darkens",
        "All circuits of the re-evaluated network, or only those that change.",
        (("all", "all circuits"), ("changed", "those that change")),
        "all",
    ),
    replace(VARIANT, meaning="How TopologyFinder lays out the fixed circuits."),
)
# (series, delay, rings) of a time; fixed circuits stand under their own name.
Key = tuple[str, int, int]
FIXED: Key = ("static", 0, 0)


def _play(settings: Settings, stop: Stop, on_row: OnRow) -> Answer:
    lost: list[str] = []
    times: dict[Key, float] = {}
    told: set[tuple[str, int]] = set()
    for key, time in answers(_calls(settings), stop, lost):
        times[key] = time
        for point in _complete(times, settings):
            if point not in told:
                told.add(point)
                on_row(_row(point, times))
    rows = [
        row
        for series in SERIES
        for row in _line(
            [_row((series, delay), times) for delay in DELAYS_US if (series, delay) in told]
        )
    ]
    return CARD.answer(settings, rows, _finding(rows, settings), _remarks(rows, settings), lost)


def _rings(settings: Settings) -> tuple[int, ...]:
    return RINGS if settings["rings"] == "best" else (int(settings["rings"]),)


def _calls(settings: Settings) -> list[Call]:
    """Return the calls, those with most transfers first."""
    model, variant = str(settings["model"]), str(settings["variant"])
    static = FabricOptions(topology_variant=variant)
    watched = {
        series: replace(
            static,
            reevaluate_ms=float(settings["interval_ms"]),
            pause=str(settings["pause"]),
            forwarding=series == "forwarding",
        )
        for series in ("forwarding", "direct")
    }
    at = {delay: network(SERVERS, DEGREE, PORT_GBPS, delay / 1000) for delay in DELAYS_US}
    calls = [Call(FIXED, iteration_ms, (model, at[1], "static", static))]
    for rings in reversed(_rings(settings)):
        calls += [
            Call(
                (fabric, delay, rings),
                iteration_ms,
                (model, at[delay], fabric, FabricOptions(), rings),
            )
            for delay in DELAYS_US
            for fabric in SWITCHED
        ]
    return calls + [
        Call((series, delay, 0), iteration_ms, (model, at[delay], "reevaluated", options))
        for delay in DELAYS_US
        for series, options in watched.items()
    ]


def _complete(times: Mapping[Key, float], settings: Settings) -> list[tuple[str, int]]:
    """Return the points whose times are all there."""
    if FIXED not in times:
        return []
    return [
        (series, delay)
        for series in SERIES
        for delay in DELAYS_US
        if all(
            (series, delay, rings) in times
            for rings in (_rings(settings) if series in SWITCHED else (0,))
        )
    ]


def _row(point: tuple[str, int], times: Mapping[Key, float]) -> Row:
    series, delay = point
    rings, time = min(
        ((key[2], time) for key, time in times.items() if key[:2] == point),
        key=lambda pair: (pair[1], pair[0]),
    )
    over = time / times[FIXED]
    data = {"static_ms": times[FIXED], f"{series}_ms": time}
    words = ""
    if series in SWITCHED:
        data["rings"] = float(rings)
        words = f" {'1 ring' if rings == 1 else f'{rings} rings'}, {time:.4g} ms on {times[FIXED]:.4g} ms."
    theirs = PRINTED if series == JUDGED[0] and delay == PRINTED_US else None
    reason = f"{NOT_PRINTED if series in JUDGED else 'The figure has no such line.'}{words}"
    if theirs is not None:
        reason = f"The paper: about a microsecond is needed to match fixed circuits.{words}"
    return Row(
        series,
        f"{delay:,} µs",
        f"{SERVERS} servers, {DEGREE} × {PORT_GBPS:g} Gbit/s",
        theirs,
        over,
        "not printed" if theirs is None else judged(theirs, over),
        reason,
        data=data,
    )


def _line(rows: list[Row]) -> list[Row]:
    """Return the rows of a line, judged by the way it goes if the figure has it."""
    return drawn(rows, rising=True) if rows and rows[0].series in JUDGED else rows


def _finding(rows: list[Row], settings: Settings) -> str:
    if len(rows) < len(SERIES) * len(DELAYS_US):
        return "Not all points were computed."
    by_series = {series: [row for row in rows if row.series == series] for series in SERIES}
    clauses = []
    for series, words in (
        ("forwarding", f"re-evaluated every {settings['interval_ms']} ms"),
        ("reactive", "changed on demand"),
        ("provisioned", "changed ahead of demand"),
    ):
        line = by_series[series]
        level = [row.item for row in line if row.ours <= 1 + EQUAL]
        until = f"match fixed ones up to {level[-1]}" if level else "match fixed ones at no delay"
        clauses.append(
            f"circuits {words} {until} ({line[0].ours:.2f}× at {line[0].item}, {line[-1].ours:.1f}× at {line[-1].item})"
        )
    return f"On {settings['model']}, {'; '.join(clauses)}."


def _remarks(rows: list[Row], settings: Settings) -> tuple[str, ...]:
    if not rows:
        return ()
    return (
        f"{counted_verdicts(rows)}. The paper prints no numbers for this figure: it says that about a microsecond is "
        "needed to match circuits fixed before the job.",
        f"Re-evaluated: every {settings['interval_ms']} ms unsent bytes are dealt circuits greedily; iterations are "
        "repeated until three intervals are covered, and the mean is shown. Where an iteration is short against the "
        "interval, circuits chosen for one moment stand for several iterations: the stale choice costs more than the "
        "delay.",
        "On demand and provisioned change circuits transfer by transfer, forward nothing, and split an all-reduce over "
        "as many rings as are fastest, since fixed circuits use all rings of a server: another experiment than the paper's, "
        "which is not judged.",
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
    takes_s=5.0,
)
