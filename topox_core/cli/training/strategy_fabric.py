"""``strategy --fabric``: a strategy that is judged on the fabric that will run it."""

import time
from collections.abc import Iterator
from typing import Any

from topox_core.cli.shared.command import Arguments, ctrl_c_stops
from topox_core.cli.shared.files import write
from topox_core.cli.shared.options import Option, given_of, options_of
from topox_core.cli.shared.printing import figure, note, table
from topox_core.errors import refuse_if
from topox_core.fabrics.comparison.compare import chosen
from topox_core.fabrics.registry import FABRICS, USUAL
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.content import record_of
from topox_core.model.cluster import Cluster
from topox_core.strategy.co_optimisation import RUNNING, WALKING, CoProgress
from topox_core.strategy.fabric_table import StrategyTable, strategy_table, table_sentence
from topox_core.strategy.on_fabrics import ModelOnCluster, cluster_of
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.search.moves import SearchSettings
from topox_core.strategy.strategy import Placement

PROPOSALS = 100
OPTIONS = (
    Option(
        "--fabric",
        tuple(FABRICS),
        f"judge strategies on this fabric ({PROPOSALS} proposals unless said otherwise)",
    ),
    Option(
        "--beside LIST",
        str,
        "search for these fabrics too (names separated by commas, or all): every strategy found on every fabric",
    ),
    *options_of(Cluster, "reconfiguration_ms"),
    Option(
        "--cluster FILE",
        str,
        "write the cluster that it is judged on (.cluster.json)",
        over=("fix",),
    ),
)


def names_of(options: Arguments) -> tuple[str, ...]:
    """Return the fabrics asked for.

    Raises
    ------
    InputError
        If one is unknown, or options do not go together.
    """
    plans = options.method == "plans"
    refuse_if(
        (options.alternate, "is TopoOpt's own search: leave it out with --fabric", "--alternate"),
        (plans, "judges a search over operators: --method search", "--fabric"),
        file="command line",
    )
    beside = options.beside or ""
    listed = USUAL if beside.strip() == "all" else [name.strip() for name in beside.split(",")]
    return chosen([options.fabric, *(name for name in listed if name)])


def search_on_fabric(
    options: Arguments,
    graph: OperatorGraph,
    settings: SearchSettings,
    fixed: tuple[Placement, ...],
) -> tuple[StrategyTable, dict[str, Any]] | None:
    """Search, write the cluster if asked to, and return the table with the record of the best strategy.

    None if it was stopped before there was one.
    """
    cluster = cluster_of(
        options.servers,
        options.ports_per_server,
        options.port_gbps,
        **given_of(options, ("reconfiguration_ms",)),
    )
    began = time.perf_counter()
    with ctrl_c_stops() as stop:
        found = strategy_table(
            ModelOnCluster(graph, cluster),
            names_of(options),
            settings,
            fixed=fixed,
            stop=stop,
            on_progress=_show,
        )
    if found is None or options.fabric not in found.fabrics:
        note("stopped before a strategy was run")
        return None
    write(options.cluster, lambda: dump_cluster(cluster))
    name = options.fabric
    best, search = found.best(name), found.searches[name]
    return found, {
        "fabric": name,
        "reconfiguration_ms": cluster.reconfiguration_ms,
        **record_of(best.outcomes[name], "iteration_ms bound_ms bound_by"),
        "start_ms": search.start_outcome.iteration_ms,
        "speed_up": found.speed_up(name),
        "stopped_by": found.stopped_by,
        **record_of(search, "proposals estimated run"),
        "seed": settings.seed,
        "wall_s": round(time.perf_counter() - began, 3),
        "sentence": table_sentence(found, name),
        "table": [
            {
                "found_for": list(row.found_for),
                "fabrics": {
                    fabric: record_of(outcome, "iteration_ms bound_ms")
                    for fabric, outcome in row.outcomes.items()
                },
            }
            for row in found.rows
        ],
    }


def _show(progress: CoProgress) -> None:
    """Say how far it is, some ten times a search."""
    each = max(1, progress.total // 10)
    if progress.doing not in (WALKING, RUNNING) or progress.done % each:
        return
    note(
        f"{progress.fabric}: {progress.doing}, {progress.done:,} of {progress.total:,}, best "
        f"{figure(progress.best_ms, 'ms')}"
    )


def fabric_lines(found: StrategyTable, record: dict[str, Any], start: str) -> Iterator[str]:
    """Return the table, a row per strategy and a column per fabric, each time with its bound, and the sentence."""
    rows = [("strategy", *(FABRICS[name] for name in found.fabrics), "")]
    for k, row in enumerate(found.rows):
        words = [start] if k == 0 else []
        words += [f"best for {', '.join(row.found_for)}"] if row.found_for else []
        cells = [
            f"{figure(round(one.iteration_ms, 3), 'ms')} (bound {figure(round(one.bound_ms, 3))})"
            if (one := row.outcomes.get(name))
            else "-"
            for name in found.fabrics
        ]
        rows.append((", ".join(words), *cells, ""))
    yield table(*rows)
    yield (
        f"{record['proposals']:,} proposals, {record['estimated']:,} strategies estimated and {record['run']:,} run, "
        f"{figure(record['wall_s'], 's')}"
    )
    yield record["sentence"]
