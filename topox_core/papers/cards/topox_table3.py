"""TOPO-X Table III: 14 networks, TopoOpt against TOPO-X, with the all-reduce on and off the network."""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean, geometric_mean
from typing import Any

from topox_core.fabrics.compare import EQUAL
from topox_core.io.json import record_of
from topox_core.papers.card import Call, CardRun, Settings
from topox_core.papers.rows import (
    TREND,
    Row,
    Verdict,
    judged,
)
from topox_core.papers.table_iii_runs import (
    STATIC_SIDE,
    TABLE,
    Known,
    ours,
    topoopt_ms,
)


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


USES = {"on": "uses", "off": "does not use"}


def topox_reason(one: Known, mode: str, verdict: Verdict) -> str:
    """Return why the reported time in a mode is where it is."""
    theirs, side = one.printed.topox_ms, one.off if mode == "off" else one.on
    if one.out_of_reach(mode):
        return (
            f"The printed {theirs:g} ms is impossible if the all-reduce {USES[mode]} this network: the bound is "
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


def calls(run: CardRun) -> list[Call]:
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


def rows(run: CardRun) -> Iterator[Row]:
    for one in _known(run):
        yield from _rows(one)


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


def said(run: CardRun) -> dict[str, Any]:
    known = _known(run)
    off, on = (max(known, key=partial(Known.speed_up, mode=mode)) for mode in ("off", "on"))
    columns = {
        "Mean speed-up, as printed": [
            one.printed.topoopt_ms / one.printed.topox_ms for one in known
        ],
        "Ours, all-reduce off TOPO-X's network": [one.speed_up("off") for one in known],
        "Ours, all-reduce on both networks": [one.speed_up("on") for one in known],
        "Most the bound allows, on both": [one.most for one in known],
    }
    remains = f"at most {on.speed_up('on'):.2f}× remains (row {on.printed.number})"
    return {
        "off_most": off.speed_up("off"),
        "off_row": off.printed.number,
        "left": remains if on.speed_up("on") > 1 + EQUAL else "no speed-up remains",
        "near": sum(abs(one.topoopt_ms / one.printed.topoopt_ms - 1) <= TREND for one in known),
        "networks": len(known),
        "fallen_back": _fallen_back(known),
        "out_of_reach": _out_of_reach(known),
        "elements": _elements(run.settings),
        "facts": tuple(
            (
                name,
                f"{fmean(values):.2f}×",
                f"arithmetic; geometric {geometric_mean(values):.2f}×",
            )
            for name, values in columns.items()
        ),
    }


def _fallen_back(known: Sequence[Known]) -> str:
    """Say on which rows the plan loses with the all-reduce off the network; empty if on none."""
    backs = [str(one.printed.number) for one in known if one.falls_back("off")]
    if not backs:
        return ""
    why = ", where a slot is long against a transfer" if known[0].off.on_slots else ""
    return (
        f"With the all-reduce off the network the plan loses to the TopoOpt column on rows {', '.join(backs)}"
        f"{why}. The printed table repeats TopoOpt's time on rows 9, 13 and 14."
    )


def _elements(settings: Settings) -> str:
    """Say that the columns are read with embedding elements of different sizes; empty if they are not."""
    if settings["topoopt_bytes"] == settings["bytes"]:
        return ""
    return (
        f"The columns are read with different embedding elements on the network, {settings['topoopt_bytes']} "
        f"bytes in the TopoOpt column and {settings['bytes']} in ours: no one size fits both printed columns. The switches "
        "show each."
    )


def _out_of_reach(known: Sequence[Known]) -> str:
    """Say why the printed speed-up is impossible if the all-reduce uses this network; empty if it is possible."""
    below = [one for one in known if one.out_of_reach("on")]
    if not below:
        return ""
    worst = max(below, key=lambda one: one.printed.topoopt_ms / one.printed.topox_ms)
    printed, bound = worst.printed, worst.on.bound_ms
    numbers = ", ".join(str(one.printed.number) for one in below)
    return (
        f"With the all-reduce on the network the printed times of rows {numbers} lie below the bound. On row "
        f"{printed.number} it is {bound:.4g} ms ({worst.on.bound_by}), so TOPO-X's {printed.topox_ms:g} ms and the printed "
        f"{printed.topoopt_ms / printed.topox_ms:.2f}× (all-reduce off TOPO-X's network, on TopoOpt's) are impossible: at "
        f"most {printed.topoopt_ms / bound:.2f}× against the printed TopoOpt time, {worst.most:.2f}× against our own "
        "static fabric."
    )
