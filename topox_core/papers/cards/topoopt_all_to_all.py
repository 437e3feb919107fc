"""TopoOpt's figure 12: what all-to-all traffic costs as DLRM's batch grows."""

from topox_core.fabrics.options import FabricOptions
from topox_core.model.cluster import Cluster
from topox_core.papers.card import Call, CardRun, Rows, Settings
from topox_core.papers.rows import drawn
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


def rows(run: CardRun) -> Rows:
    share = float(run.settings["fat_tree"])
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
            line = []
            for (batch, of), point in times.items():
                if of == degree:
                    data = {f"{name}_ms": ms for name, ms in point.items()}
                    at, ours = (f"{series}_d{degree}", f"batch {batch}"), point[over] / point[under]
                    row = run.row(*at, ours, data=data, degree=degree, share=share, limit=1 / share)
                    line.append(row)
            yield from drawn(line, rising)
    if MITIGATED[0] in times:
        small, large = (times[key]["fat_tree"] / times[key]["static"] for key in MITIGATED)
        data = {f"d{key[1]}_{name}_ms": ms for key in MITIGATED for name, ms in times[key].items()}
        item = f"batch {MITIGATED[0][0]}"
        yield run.row("degree", item, large / small, data=data, small=small, large=large)


def said(run: CardRun) -> dict[str, str]:
    behind = {batch: run.ours("fat_tree_d4", f"batch {batch}") < 1 for batch in BATCHES}
    first = next((batch for batch in BATCHES if behind[batch]), None)
    wins = f"At degree 4 the fat-tree of {float(run.settings['fat_tree']):g} × d × B wins from batch {first} on."
    return {
        "ends": "is behind it" if behind[2048] else "is still ahead",
        "crossing": "" if first is None else wins,
    }
