"""TOPO-X Table III: 14 networks, TopoOpt against TOPO-X, with the all-reduce on and off the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

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
from topox_core.papers.table_iii_runs import TABLE, Ours, Printed, ours, topoopt_ms
from topox_core.schedule.answer import Stop

NAME = "topox-table3"
# Times that differ by less than this share are called the same; speed-ups of so little are none.
SAME = 1e-6
# A plan on 1 ms slots cannot be told closer than a few of them.
CLOSE_MS = 3.5

VARIANTS = (("published", "as published"), ("released", "as released"))
SERIES = {"topoopt": "TopoOpt", "off": "TOPO-X, all-reduce off the network", "on": "TOPO-X, all-reduce on the network"}
CHOICES = (
    Choice("variant", "Static circuits", "How TopologyFinder lays out our static fabric.", VARIANTS, "published"),
    Choice("topoopt_variant", "TopoOpt's circuits", "Which TopologyFinder the rebuilt TopoOpt column uses.", VARIANTS, "released"),
    Choice("links", "TopoOpt's links", "Booked first come, first served as its simulator does, or shared max-min fairly.",
           (("booked", "booked in turn"), ("shared", "shared fairly")), "booked"),
    Choice("topoopt_bytes", "TopoOpt's embedding element", "Bytes of an embedding element on the network in the TopoOpt column.",
           ((4, "4 bytes"), (8, "8 bytes")), 4),
    Choice("bytes", "Embedding element", "Bytes of an embedding element on the network in our fabrics; FlexNet released 8.",
           ((8, "8 bytes"), (4, "4 bytes")), 8),
    Choice("model", "Scheduled model", "Circuits that stay on one switch, drawn afresh each slot, or the equations as printed.",
           (("continuous", "continuous circuits"), ("per-slot", "circuits per slot"), ("printed", "as printed")), "continuous"),
    Choice("slot_ms", "Slot", "Length of a slot; section V has 1 ms.",
           ((1.0, "1 ms"), (0.5, "0.5 ms"), (0.25, "0.25 ms"), (0.1, "0.1 ms")), 1.0),
    Choice("rings", "Rings of a planned all-reduce", "Rings that the scheduled fabric splits an all-reduce over.",
           ((1, "1"), (2, "2"), ("degree", "one a port")), 1),
    Choice("seed", "Seed", "Of the ties in the released routing.", tuple((i, str(i)) for i in range(5)), 0),
)


@dataclass(frozen=True)
class Known:
    """All that was computed for one row of the table."""

    printed: Printed
    topoopt_ms: float
    off: Ours
    on: Ours

    def reported_ms(self, mode: str) -> float:
        """Return what the paper would report: the plan, or the static fabric where that is faster.

        With the all-reduce off the network the static side is the TopoOpt column, which carries it: so the paper compares.
        With it on, the static side is our own, on the same graph and clock.
        """
        return min(self.static_ms(mode), self.off.scheduled_ms if mode == "off" else self.on.scheduled_ms)

    def static_ms(self, mode: str) -> float:
        """Return the static side of the comparison in a mode."""
        return self.topoopt_ms if mode == "off" else self.on.static_ms

    def falls_back(self, mode: str) -> bool:
        """Whether the static fabric is reported because the plan is not faster."""
        return self.reported_ms(mode) >= self.static_ms(mode) * (1 - SAME)

    def speed_up(self, mode: str) -> float:
        """Return static over reported, 1 where it falls back."""
        return self.static_ms(mode) / self.reported_ms(mode)

    @property
    def most(self) -> float:
        """The most that any schedule could gain over our own static result with the all-reduce on the network."""
        return self.on.static_ms / self.on.bound_ms


def _play(settings: Settings, stop: Stop, on_row: OnRow, table: Sequence[Printed] = TABLE) -> Answer:
    lost: list[str] = []
    parts: dict[int, dict[str, float | Ours]] = {row.number: {} for row in table}
    known: list[Known] = []
    rows: list[Row] = []
    for (number, part), answer in answers(_calls(table, settings), stop, lost):
        parts[number][part] = answer
        if len(parts[number]) < 3:
            continue
        printed = next(row for row in table if row.number == number)
        known.append(_known(printed, parts[number]))
        for row in _rows(known[-1]):
            rows.append(row)
            on_row(row)
    known.sort(key=lambda one: one.printed.number)
    order = list(SERIES)
    rows.sort(key=lambda row: (int(row.item), order.index(row.series)))
    return Answer(NAME, settings, tuple(rows), finding(known), facts(known), remarks(known, rows), tuple(lost))


def _calls(table: Sequence[Printed], settings: Settings) -> list[Call]:
    """Return three calls a row, those of large clusters first."""
    calls = []
    for row in sorted(table, key=lambda row: (-row.servers, -row.degree, row.number)):
        calls += [Call((row.number, "on"), ours, (row, True, settings)), Call((row.number, "off"), ours, (row, False, settings)),
                  Call((row.number, "topoopt"), topoopt_ms, (row, settings))]
    return calls


def _known(printed: Printed, parts: Mapping[str, float | Ours]) -> Known:
    time, off, on = parts["topoopt"], parts["off"], parts["on"]
    assert isinstance(time, float)
    assert isinstance(off, Ours)
    assert isinstance(on, Ours)
    return Known(printed, time, off, on)


def _rows(one: Known) -> list[Row]:
    printed = one.printed
    make = partial(Row, item=str(printed.number), about=printed.about, unit="ms")
    verdict = judged(printed.topoopt_ms, one.topoopt_ms)
    rows = [make(series="topoopt", theirs=printed.topoopt_ms, ours=one.topoopt_ms, verdict=verdict,
                 reason=_topoopt_reason(one, verdict), bound=None, data={"static_ms": one.on.static_ms})]
    for mode, side in (("off", one.off), ("on", one.on)):
        time = one.reported_ms(mode)
        verdict = _verdict(printed.topox_ms, time)
        rows.append(make(
            series=mode, theirs=printed.topox_ms, ours=time, verdict=verdict, reason=_topox_reason(one, mode, verdict),
            bound=side.bound_ms, data={
                "static_ms": side.static_ms, "scheduled_ms": side.scheduled_ms, "plan_bound_ms": side.plan_bound_ms,
                "falls_back": float(one.falls_back(mode)), "speed_up": one.speed_up(mode),
                "their_speed_up": printed.topoopt_ms / printed.topox_ms, "most_speed_up": side.static_ms / side.bound_ms}))
    return rows


def _verdict(theirs: float, time: float) -> Verdict:
    """Return the verdict on a planned time: within a few slots and the trend's share counts as the trend."""
    verdict = judged(theirs, time)
    close = abs(time - theirs) <= CLOSE_MS and abs(time / theirs - 1) <= TREND
    return "trend" if verdict == "differs" and close else verdict


def _topoopt_reason(one: Known, verdict: Verdict) -> str:
    static = one.on.static_ms / one.printed.topoopt_ms - 1
    fair = f"Our own static fabric, with links shared fairly, takes {one.on.static_ms:.4g} ms ({static:+.0%})."
    if verdict == "match":
        return f"The same within a tenth. {fair}"
    side = "longer" if one.topoopt_ms > one.printed.topoopt_ms else "shorter"
    return (f"{abs(one.topoopt_ms / one.printed.topoopt_ms - 1):.0%} {side}: which of several shortest paths a transfer takes, and who "
            f"books a link first, is not printed. {fair}")


def _topox_reason(one: Known, mode: str, verdict: Verdict) -> str:
    theirs, side = one.printed.topox_ms, one.off if mode == "off" else one.on
    if theirs < side.bound_ms * (1 - SAME):
        return (f"The printed {theirs:g} ms cannot be had with the all-reduce {mode} the network: {side.bound_by} makes it at least "
                f"{side.bound_ms:.4g} ms.")
    plan = f"the plan on slots takes {side.scheduled_ms:.4g} ms"
    if one.falls_back(mode):
        what = "TopoOpt column" if mode == "off" else "static fabric"
        said = f"Falls back to the {what}, {one.static_ms(mode):.4g} ms: {plan}, as every transfer fills whole slots."
        return said + (" The paper falls back here too." if one.printed.topoopt_ms == theirs else "")
    if verdict != "differs":
        return f"{plan[0].upper()}{plan[1:]}, {abs(one.reported_ms(mode) - theirs):.2g} ms from the printed time."
    other = one.reported_ms("on" if mode == "off" else "off")
    aside = f" With the all-reduce {'on' if mode == 'off' else 'off'} the network it would be {other:.4g} ms ({other / theirs - 1:+.0%})."
    return f"{plan[0].upper()}{plan[1:]}, not the printed {theirs:g} ms.{aside}"


def finding(known: Sequence[Known]) -> str:
    """Return the result of the card in words; no speed-up without its mode."""
    if not known:
        return "No row was computed."
    near = sum(abs(one.topoopt_ms / one.printed.topoopt_ms - 1) <= TREND for one in known)
    off = max(known, key=lambda one: one.speed_up("off"))
    on = max(known, key=lambda one: one.speed_up("on"))
    gain = (f"with it on the network for both, {on.speed_up('on'):.2f}× is the most (row {on.printed.number})"
            if on.speed_up("on") > 1 + SAME else "with it on the network for both, nothing remains of it on any row")
    return (f"TopoOpt's column comes out within 25 % on {near} of {len(known)} rows. The largest speed-up, "
            f"{off.speed_up('off'):.2f}× on row {off.printed.number}, appears only where the all-reduce is off TOPO-X's network and on "
            f"TopoOpt's; {gain}.")


def facts(known: Sequence[Known]) -> tuple[tuple[str, str], ...]:
    """Return the mean speed-ups, each with its mode."""
    if not known:
        return ()
    their = [one.printed.topoopt_ms / one.printed.topox_ms for one in known]
    columns = [("printed", their), ("all-reduce off TOPO-X's network", [one.speed_up("off") for one in known]),
               ("all-reduce on both networks", [one.speed_up("on") for one in known]),
               ("most that the bound allows, all-reduce on", [one.most for one in known])]
    return tuple((f"Mean speed-up, {words}", f"{sum(values) / len(values):.2f}× (geometric {geometric_mean(values):.2f}×)")
                 for words, values in columns)


def remarks(known: Sequence[Known], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return why it came out so, from the numbers."""
    if not known:
        return ()
    said = [f"{words}: {counted_verdicts(row for row in rows if row.series == key)}." for key, words in SERIES.items()]
    backs = [str(one.printed.number) for one in known if one.falls_back("off")]
    if backs:
        said.append(f"The plan loses to the TopoOpt column on rows {', '.join(backs)}, where a slot is long against a transfer; the "
                    "printed table repeats TopoOpt's time on rows 9, 13 and 14.")
    below = [one for one in known if one.printed.topox_ms < one.on.bound_ms * (1 - SAME)]
    if below:
        worst = max(below, key=lambda one: one.printed.topoopt_ms / one.printed.topox_ms)
        printed = worst.printed
        said.append(
            f"With the all-reduce on the network the printed times of rows {', '.join(str(one.printed.number) for one in below)} lie "
            f"below the bound. On row {printed.number} {worst.on.bound_by} needs {worst.on.bound_ms:.4g} ms, so TOPO-X's "
            f"{printed.topox_ms:g} ms and the printed {printed.topoopt_ms / printed.topox_ms:.2f}× (all-reduce off TOPO-X's network, on "
            f"TopoOpt's) cannot be had: at most {printed.topoopt_ms / worst.on.bound_ms:.2f}× against the printed TopoOpt time, "
            f"{worst.most:.2f}× against our own static fabric.")
    said.append("The bound holds for this strategy (dense layers data parallel over all servers) and full-duplex ports.")
    return tuple(said)


CARD = Card(
    name=NAME, title="TOPO-X against TopoOpt on DLRM", source="TOPO-X, section V, Table III",
    shows="Iteration times of two DLRM configurations on 14 networks, and a speed-up of up to 6.08× that the paper gives to circuits "
          "scheduled inside the iteration. Read as printed, the all-reduce is on TopoOpt's network and off TOPO-X's.",
    choices=CHOICES, series=SERIES, row_count=3 * len(TABLE), play=_play, logarithmic=True)
