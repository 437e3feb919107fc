"""TopoOpt's figure 17: how fast a switch must be before circuits that change within the iteration match fixed ones."""

from dataclasses import replace

from topox_core.fabrics.compare import EQUAL
from topox_core.fabrics.options import FabricOptions
from topox_core.papers.card import Call, CardRun, Rows, Settings
from topox_core.papers.rows import Row, drawn
from topox_core.papers.topoopt_jobs import iteration_ms, network

DELAYS_US = (1, 5, 20, 100, 1_000, 10_000)
SERVERS, DEGREE, PORT_GBPS = 16, 8, 100.0
SWITCHED = ("reactive", "provisioned")
JUDGED = ("forwarding", "direct")  # the others change circuits as no line of the figure does
RINGS = (1, 2, 4, 8)
# (series, delay, rings) of a time; fixed circuits stand under their own name.
FIXED = ("static", 0, 0)


def _rings(settings: Settings, series: str) -> tuple[int, ...]:
    """Return the numbers of rings that are tried on a line."""
    if series not in SWITCHED:
        return (0,)
    return RINGS if settings["rings"] == "best" else (int(settings["rings"]),)


def calls(run: CardRun) -> list[Call]:
    """Return the calls, those with most transfers first."""
    settings = run.settings
    model, variant = str(settings["model"]), str(settings["variant"])
    static = FabricOptions(topology_variant=variant)
    watched = {
        series: replace(
            static,
            reevaluate_ms=float(settings["interval_ms"]),
            pause=str(settings["pause"]),
            forwarding=series == "forwarding",
        )
        for series in JUDGED
    }
    at = {delay: network(SERVERS, DEGREE, PORT_GBPS, delay / 1000) for delay in DELAYS_US}
    made = [Call(FIXED, iteration_ms, (model, at[1], "static", static))]
    for rings in reversed(_rings(settings, SWITCHED[0])):
        made += [
            Call(
                (fabric, delay, rings),
                iteration_ms,
                (model, at[delay], fabric, FabricOptions(), rings),
            )
            for delay in DELAYS_US
            for fabric in SWITCHED
        ]
    return made + [
        Call((series, delay, 0), iteration_ms, (model, at[delay], "reevaluated", options))
        for delay in DELAYS_US
        for series, options in watched.items()
    ]


def rows(run: CardRun) -> Rows:
    if FIXED not in run.answers:
        return
    for series in run.card.series:
        rings = _rings(run.settings, series)
        line = [
            _row(series, delay, rings, run)
            for delay in DELAYS_US
            if all((series, delay, one) in run.answers for one in rings)
        ]
        yield from drawn(line, rising=True) if series in JUDGED else line


def _row(series: str, delay: int, tried: tuple[int, ...], run: CardRun) -> Row:
    fixed = run.answers[FIXED]
    time, rings = min((run.answers[series, delay, one], one) for one in tried)
    data = {"static_ms": fixed, f"{series}_ms": time}
    if series in SWITCHED:
        data["rings"] = float(rings)
    words = "1 ring" if rings == 1 else f"{rings} rings"
    return run.row(series, f"{delay:,} µs", time / fixed, data=data, on_rings=words, time=time)


def said(run: CardRun) -> dict[str, str]:
    clauses = []
    for series, changed in (
        ("forwarding", f"re-evaluated every {run.settings['interval_ms']} ms"),
        ("reactive", "changed on demand"),
        ("provisioned", "changed ahead of demand"),
    ):
        line = run.of(series)
        level = [row.item for row in line if row.ours <= 1 + EQUAL]
        until = f"match fixed ones up to {level[-1]}" if level else "match fixed ones at no delay"
        clauses.append(
            f"circuits {changed} {until} ({line[0].ours:.2f}× at {line[0].item}, {line[-1].ours:.1f}× at {line[-1].item})"
        )
    return {"clauses": "; ".join(clauses)}
