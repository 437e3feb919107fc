"""TOPO-X Table III: 14 networks, TopoOpt against TOPO-X, with the all-reduce on and off the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from topox_core.io.record import record_of
from topox_core.papers.calls import Call, answers
from topox_core.papers.card import (
    Answer,
    Card,
    Choice,
    OnRow,
    Row,
    Settings,
    judged,
)
from topox_core.papers.switches import BYTES, VARIANT, VARIANTS, seeds
from topox_core.papers.table_iii_runs import TABLE, Known, Ours, Printed, ours, topoopt_ms
from topox_core.papers.table_iii_words import (
    SERIES,
    facts,
    finding,
    remarks,
    topoopt_reason,
    topox_reason,
)
from topox_core.runs.stopping import Stop

NAME = "topox-table3"

CHOICES = (
    replace(VARIANT, meaning="How TopologyFinder lays out our static fabric."),
    Choice(
        "topoopt_variant",
        "TopoOpt's circuits",
        "Which TopologyFinder the rebuilt TopoOpt column uses.",
        VARIANTS,
        "released",
    ),
    Choice(
        "links",
        "TopoOpt's links",
        "Booked first come, first served as its simulator does, or shared max-min fairly.",
        (("booked", "first come"), ("shared", "shared fairly")),
        "booked",
    ),
    Choice(
        "topoopt_bytes",
        "TopoOpt's embedding element",
        "Bytes of an embedding element on the network in the TopoOpt column.",
        ((4, "4 bytes"), (8, "8 bytes")),
        4,
    ),
    replace(
        BYTES,
        meaning="Bytes of an embedding element on the network in our fabrics; FlexNet released 8.",
    ),
    Choice(
        "model",
        "Scheduled model",
        "Circuits that stay on one switch, drawn afresh each slot, or the equations as printed.",
        (
            ("continuous", "continuous circuits"),
            ("per-slot", "circuits per slot"),
            ("printed", "as printed"),
        ),
        "continuous",
    ),
    Choice(
        "clock",
        "Clock of the plan",
        "Whole slots as in the paper, or unrounded times; circuits per slot know slots only.",
        (("slots", "whole slots"), ("continuous", "continuous time")),
        "slots",
    ),
    Choice(
        "slot_ms",
        "Slot",
        "Length of a slot; section V has 1 ms.",
        ((1.0, "1 ms"), (0.5, "0.5 ms"), (0.25, "0.25 ms"), (0.1, "0.1 ms")),
        1.0,
    ),
    Choice(
        "circuits",
        "Circuits of a switch",
        "Of the plan: at most d_OCS at once (eq. 7), or d_OCS / 2, as section V counts N_OCS d_OCS / 2 in all.",
        (("whole", "d_OCS"), ("half", "d_OCS / 2")),
        "whole",
    ),
    Choice(
        "duplex",
        "Ports of a server",
        "Of the plan: d_S out and d_S in, or d_S in and out together (eq. 8 as printed).",
        (("full", "each way"), ("half", "both ways together")),
        "full",
    ),
    Choice(
        "release",
        "After a transfer",
        "On slots, what follows may start at the end of its last slot, or at its unrounded end (eq. 5 as printed).",
        (("slot", "at the slot's end"), ("unrounded", "at its unrounded end")),
        "slot",
    ),
    Choice(
        "rings",
        "Rings of a planned all-reduce",
        "Rings that the scheduled fabric splits an all-reduce over.",
        ((1, "1"), (2, "2"), ("degree", "one a port")),
        1,
    ),
    seeds("Of the ties in the released routing."),
)


def _play(
    settings: Settings, stop: Stop, on_row: OnRow, table: Sequence[Printed] = TABLE
) -> Answer:
    lost: list[str] = []
    topoopt: dict[int, float] = {}
    sides: dict[tuple[int, str], Ours] = {}
    known: list[Known] = []
    for (number, part), answer in answers(_calls(table, settings), stop, lost):
        if part == "topoopt":
            topoopt[number] = answer
        else:
            sides[number, part] = answer
        if number in topoopt and (number, "off") in sides and (number, "on") in sides:
            printed = next(row for row in table if row.number == number)
            known.append(Known(printed, topoopt[number], sides[number, "off"], sides[number, "on"]))
            for row in _rows(known[-1]):
                on_row(row)
    known.sort(key=lambda one: one.printed.number)
    rows = [row for one in known for row in _rows(one)]
    return Answer(
        NAME,
        settings,
        tuple(rows),
        finding(known),
        facts(known),
        remarks(known, rows, settings),
        tuple(lost),
    )


def _calls(table: Sequence[Printed], settings: Settings) -> list[Call]:
    """Return three calls a row, those of large clusters first."""
    calls = []
    for row in sorted(table, key=lambda row: (-row.servers, -row.degree, row.number)):
        calls += [
            Call((row.number, "on"), ours, (row, True, settings)),
            Call((row.number, "off"), ours, (row, False, settings)),
            Call((row.number, "topoopt"), topoopt_ms, (row, settings)),
        ]
    return calls


def _rows(one: Known) -> list[Row]:
    """Return the rows of one network, in the order of the series."""
    printed = one.printed
    make = partial(Row, item=str(printed.number), about=printed.about, unit="ms")
    verdict = judged(printed.topoopt_ms, one.topoopt_ms)
    rows = [
        make(
            series="topoopt",
            theirs=printed.topoopt_ms,
            ours=one.topoopt_ms,
            verdict=verdict,
            reason=topoopt_reason(one, verdict),
            bound=None,
            data={"static_ms": one.on.static_ms},
        )
    ]
    for mode, side in (("off", one.off), ("on", one.on)):
        time = one.reported_ms(mode)
        verdict = judged(printed.topox_ms, time)
        rows.append(
            make(
                series=mode,
                theirs=printed.topox_ms,
                ours=time,
                verdict=verdict,
                reason=topox_reason(one, mode, verdict),
                bound=side.bound_ms,
                data={
                    **record_of(side, "static_ms scheduled_ms plan_bound_ms"),
                    "falls_back": float(one.falls_back(mode)),
                    "speed_up": one.speed_up(mode),
                    "their_speed_up": printed.topoopt_ms / printed.topox_ms,
                    "most_speed_up": side.static_ms / side.bound_ms,
                },
                counts_with=one.counts_with(mode),
            )
        )
    return rows


CARD = Card(
    name=NAME,
    title="TOPO-X, Table III",
    source="TOPO-X, section V, Table III",
    shows="Iteration times of two DLRM configurations on 14 networks. The printed speed-up of changing circuits, "
    "up to 6.08×, counts the all-reduce on TopoOpt's network. By the printed times, it is not counted on TOPO-X's.",
    choices=CHOICES,
    series=SERIES,
    row_count=3 * len(TABLE),
    play=_play,
    logarithmic=True,
    takes_s=16.0,
)
