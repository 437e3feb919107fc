"""TOPO-X Table III: 14 networks, TopoOpt against TOPO-X, with the all-reduce on and off the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from topox_core.fabrics.compare import EQUAL
from topox_core.io.json import record_of
from topox_core.papers.calls import Call, answers
from topox_core.papers.card import (
    TREND,
    Answer,
    Card,
    Choice,
    OnRow,
    Row,
    Settings,
    Verdict,
    counted_verdicts,
    geometric_mean,
    judged,
)
from topox_core.papers.switches import BYTES, VARIANT, VARIANTS, seeds
from topox_core.papers.table_iii_runs import (
    STATIC_SIDE,
    TABLE,
    Known,
    Ours,
    Printed,
    ours,
    topoopt_ms,
)
from topox_core.runs.stopping import Stop

SERIES = {
    "topoopt": "TopoOpt",
    "off": "TOPO-X, all-reduce off the network",
    "on": "TOPO-X, all-reduce on the network",
}


def topoopt_reason(one: Known, verdict: Verdict) -> str:
    """Return why the rebuilt TopoOpt time is where it is."""
    theirs = one.printed.topoopt_ms
    shared = (
        f"Our own static fabric, with links shared fairly, takes {one.on.static_ms:.4g} ms "
        f"({one.on.static_ms / theirs - 1:+.0%})."
    )
    if verdict == "match":
        return f"The same within a tenth. {shared}"
    side = "longer" if one.topoopt_ms > theirs else "shorter"
    return (
        f"{abs(one.topoopt_ms / theirs - 1):.0%} {side}: which shortest path a transfer takes and who books a link first "
        f"is not printed. {shared}"
    )


def topox_reason(one: Known, mode: str, verdict: Verdict) -> str:
    """Return why the reported time in a mode is where it is."""
    theirs, side = one.printed.topox_ms, one.off if mode == "off" else one.on
    if one.out_of_reach(mode):
        return (
            f"The printed {theirs:g} ms cannot be had with the all-reduce {mode} the network: the bound is "
            f"{side.bound_ms:.4g} ms ({side.bound_by})."
        )
    plan = f"the plan {'on slots ' if side.on_slots else ''}takes {side.scheduled_ms:.4g} ms"
    if one.falls_back(mode):
        why = ", as every transfer fills whole slots" if side.on_slots else ""
        words = f"Falls back to {STATIC_SIDE[mode]}, {one.static_ms(mode):.4g} ms: {plan}{why}."
        return words + (
            " The paper falls back here too." if one.printed.topoopt_ms == theirs else ""
        )
    words = f"{plan[0].upper()}{plan[1:]}, {abs(one.reported_ms(mode) - theirs):.2g} ms from the printed time."
    if verdict == "match":
        return words
    other = "on" if mode == "off" else "off"
    time = one.reported_ms(other)
    return f"{words} With the all-reduce {other} the network it would be {time:.4g} ms ({time / theirs - 1:+.0%})."


def finding(known: Sequence[Known]) -> str:
    """Return the result of the card in words."""
    if not known:
        return "No row was computed."
    near = sum(abs(one.topoopt_ms / one.printed.topoopt_ms - 1) <= TREND for one in known)
    off = max(known, key=lambda one: one.speed_up("off"))
    on = max(known, key=lambda one: one.speed_up("on"))
    some = on.speed_up("on") > 1 + EQUAL
    left = (
        f"{on.speed_up('on'):.2f}× remains (row {on.printed.number})"
        if some
        else "no speed-up remains"
    )
    return (
        f"Up to {off.speed_up('off'):.2f}× (row {off.printed.number}), but only while the all-reduce is on TopoOpt's "
        f"network and off TOPO-X's; with it on both, {left}. TopoOpt's column comes out within 25 % on {near} of "
        f"{len(known)} rows."
    )


def facts(known: Sequence[Known]) -> tuple[tuple[str, str, str], ...]:
    """Return the mean speed-ups, each with its mode."""
    if not known:
        return ()
    their = [one.printed.topoopt_ms / one.printed.topox_ms for one in known]
    columns = [
        ("Mean speed-up, as printed", their),
        ("Ours, all-reduce off TOPO-X's network", [one.speed_up("off") for one in known]),
        ("Ours, all-reduce on both networks", [one.speed_up("on") for one in known]),
        ("Most the bound allows, on both", [one.most for one in known]),
    ]
    return tuple(
        (
            words,
            f"{sum(values) / len(values):.2f}×",
            f"arithmetic; geometric {geometric_mean(values):.2f}×",
        )
        for words, values in columns
    )


def remarks(known: Sequence[Known], rows: Sequence[Row], settings: Settings) -> tuple[str, ...]:
    """Return why it came out so, from the numbers."""
    if not known:
        return ()
    lines = [
        f"{words}: {counted_verdicts(row for row in rows if row.series == key)}."
        for key, words in SERIES.items()
    ]
    backs = [str(one.printed.number) for one in known if one.falls_back("off")]
    if backs:
        why = ", where a slot is long against a transfer" if known[0].off.on_slots else ""
        lines.append(
            f"With the all-reduce off the network the plan loses to the TopoOpt column on rows {', '.join(backs)}"
            f"{why}. The printed table repeats TopoOpt's time on rows 9, 13 and 14."
        )
    below = [one for one in known if one.out_of_reach("on")]
    if below:
        lines.append(_out_of_reach(below))
    if settings["topoopt_bytes"] != settings["bytes"]:
        lines.append(
            f"The columns are read with different embedding elements on the network, {settings['topoopt_bytes']} "
            "bytes in the "
            f"TopoOpt column and {settings['bytes']} in ours: no one size fits both printed columns. The switches "
            "show each."
        )
    lines.append(
        "The bound holds for this strategy (dense layers data parallel over all servers) and full-duplex ports."
    )
    return tuple(lines)


def _out_of_reach(below: Sequence[Known]) -> str:
    """Say why the printed speed-up cannot be had with the all-reduce on the network."""
    worst = max(below, key=lambda one: one.printed.topoopt_ms / one.printed.topox_ms)
    printed, bound = worst.printed, worst.on.bound_ms
    numbers = ", ".join(str(one.printed.number) for one in below)
    return (
        f"With the all-reduce on the network the printed times of rows {numbers} lie below the bound. On row "
        f"{printed.number} it is {bound:.4g} ms ({worst.on.bound_by}), so TOPO-X's {printed.topox_ms:g} ms and the printed "
        f"{printed.topoopt_ms / printed.topox_ms:.2f}× (all-reduce off TOPO-X's network, on TopoOpt's) cannot be had: at "
        f"most {printed.topoopt_ms / bound:.2f}× against the printed TopoOpt time, {worst.most:.2f}× against our own "
        "static fabric."
    )


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
