"""TopoOpt's figure 12: what all-to-all traffic costs as DLRM's batch grows."""

from collections.abc import Iterator

from topox_core.fabrics.options import FabricOptions
from topox_core.model.cluster import Cluster
from topox_core.papers.card import Call, CardRun, Settings
from topox_core.papers.rows import (
    NOT_PRINTED,
    Row,
    Verdict,
    drawn,
    judged,
    stated,
)
from topox_core.papers.topoopt_jobs import (
    BATCHES,
    DEGREES,
    SERVERS,
    iterations_ms,
    network,
    rival_fabrics,
)

# The points of Figure 12b's statement: the batch with most all-to-all, at both degrees.
MITIGATED = ((2048, 4), (2048, 8))


def calls(run: CardRun) -> list[Call]:
    """Return a call for every batch, the one with most traffic first."""
    cases = tuple(case for _, case in _cases(run.settings))
    return [
        Call(batch, iterations_ms, (f"dlrm-batch/{batch}/{run.settings['bytes']}", cases))
        for batch in reversed(BATCHES)
    ]


def _cases(settings: Settings) -> list[tuple[int, tuple[Cluster, str, FabricOptions]]]:
    """Return what every batch is run on: degree, and cluster, fabric, options."""
    cases = []
    for degree in DEGREES:
        cluster = network(SERVERS, degree, float(settings["port_gbps"]))
        cases += [
            (degree, (cluster, fabric, chosen))
            for fabric, chosen in rival_fabrics(settings, cluster).items()
        ]
    return cases


def rows(run: CardRun) -> Iterator[Row]:
    times: dict[tuple[int, int], dict[str, float]] = {}
    for batch in BATCHES:
        for (degree, (_, fabric, _)), ms in zip(
            _cases(run.settings), run.answers.get(batch, ()), strict=False
        ):
            times.setdefault((batch, degree), {})[fabric] = ms
    for series, over, under, rising in (
        ("fat_tree", "fat_tree", "static", False),
        ("ideal", "static", "ideal", True),
    ):
        for degree in DEGREES:
            line = [
                _point(series, batch, degree, point[over] / point[under], point, run)
                for (batch, of), point in times.items()
                if of == degree
            ]
            yield from drawn(line, rising)
    if MITIGATED[0] in times:
        small, large = (times[key]["fat_tree"] / times[key]["static"] for key in MITIGATED)
        yield Row(
            "degree",
            f"batch {MITIGATED[0][0]}",
            f"{SERVERS} servers, {run.settings['port_gbps']} Gbit/s per port",
            None,
            large / small,
            stated(large / small),
            "No number is printed: the paper says that a larger degree mitigates the problem (Figure 12b). Fat-tree over "
            f"TopoOpt is {small:.2f} at degree {MITIGATED[0][1]} and {large:.2f} at degree {MITIGATED[1][1]}.",
            data={
                f"d{key[1]}_{name}_ms": ms for key in MITIGATED for name, ms in times[key].items()
            },
        )


def _point(
    kind: str, batch: int, degree: int, value: float, point: dict[str, float], run: CardRun
) -> Row:
    series, item = f"{kind}_d{degree}", f"batch {batch}"
    theirs = run.card.printed.get(f"{series}/{item}")
    verdict, reason = _judged_point(kind, theirs, value, run.settings)
    about = f"{SERVERS} servers, {degree} × {run.settings['port_gbps']} Gbit/s"
    data = {f"{name}_ms": ms for name, ms in point.items()}
    return Row(series, item, about, theirs, value, verdict, reason, data=data)


def _judged_point(
    kind: str, theirs: float | None, value: float, settings: Settings
) -> tuple[Verdict, str]:
    if theirs is None:
        return "not printed", NOT_PRINTED
    verdict = judged(theirs, value, level=1.0)
    if verdict == "match":
        return verdict, "The same within a tenth."
    if kind == "ideal":
        return verdict, (
            "The forwarded all-to-all adds to the all-reduce on the same circuits, which the ideal switch "
            "carries without detour."
        )
    share = float(settings["fat_tree"])
    return verdict, (
        f"A fat-tree of {share:g} × d × B can be at most {1 / share:.2f} times as slow as circuits that lose "
        "nothing; what its price buys is not printed."
    )


def said(run: CardRun) -> dict[str, str]:
    behind = {batch: run.row("fat_tree_d4", f"batch {batch}").ours < 1 for batch in BATCHES}
    first = next((batch for batch in BATCHES if behind[batch]), None)
    wins = f"At degree 4 the fat-tree of {float(run.settings['fat_tree']):g} × d × B wins from batch {first} on."
    return {
        "ends": "is behind it" if behind[2048] else "is still ahead",
        "crossing": "" if first is None else wins,
    }
