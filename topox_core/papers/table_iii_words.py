"""TOPO-X Table III in words: the finding and the reasons, made from the numbers.

No speed-up without its mode.
"""

from __future__ import annotations

from collections.abc import Sequence

from topox_core.fabrics.compare import EQUAL
from topox_core.papers.card import TREND, Row, Settings, Verdict, counted_verdicts, geometric_mean
from topox_core.papers.table_iii_runs import STATIC_SIDE, Known

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
