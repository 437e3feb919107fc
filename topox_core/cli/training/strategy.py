"""``strategy``: how to split a model over servers, searched or enumerated."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, command, ctrl_c_stops
from topox_core.cli.shared.files import write
from topox_core.cli.shared.options import (
    JSON,
    Group,
    Option,
    given_of,
    of_options,
    options_of,
    positive,
)
from topox_core.cli.shared.printing import figure, note, percent, table
from topox_core.cli.training.iteration import machine_of
from topox_core.cli.training.strategy_fabric import (
    OPTIONS as ON_FABRIC,
    PROPOSALS,
    fabric_lines,
    names_of,
    search_on_fabric,
)
from topox_core.errors import errors_in_file, needed, printable, refuse_if
from topox_core.io.content import read, record_of
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.model.cluster import Cluster
from topox_core.strategy.models import MODELS, Model, named
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.plans import RankedPlan, best_plans, timed
from topox_core.strategy.search.evaluator import FastEvaluator, non_blocking
from topox_core.strategy.search.moves import Move, MoveProgress, SearchSettings
from topox_core.strategy.search.search import Alternated, SearchResult, search, search_circuits
from topox_core.strategy.strategy import (
    Placement,
    Strategy,
    data_parallel,
    dump_strategy,
    load_strategy,
    task_graph as graph_of,
)
from topox_core.text.numbers import and_more
from topox_core.training.job import Job, dump_job, load_job
from topox_core.training.machine import Machine, status_of
from topox_core.training.pipeline.graph import task_graph

SHOWN_PLANS = 5
SHOWN_MOVES = 5


def _list(options: Arguments) -> Answer:
    """Return the models, or the one that is named."""
    models = [named(options.model)] if options.model else list(MODELS.values())
    rows = ((one.name, f"{one.servers} servers", one.meaning) for one in models)
    return Answer(
        {"models": [record_of(one, "name servers meaning") for one in models]}, table(*rows)
    )


@command(
    "Search into how many partitions each operator of a model is split, and where they go, starting from data "
    "parallel. For a language model, rank all parallel plans (TP x PP x DP x CP x EP x microbatches) that fit "
    "the memory. --list shows the models.",
    Option(
        "model MODEL",
        str,
        "a model, such as dlrm-16",
        nargs="?",
        needed="a model must be named (--list shows them)",
    ),
    Option("--list", bool, "show the models, search nothing", dest="listing"),
    Option("--servers N", positive, "servers (default: the model's own)"),
    Option(
        "--method",
        ("search", "plans"),
        "Markov-chain search over operators, or ranked plans (default: plans for a language model)",
    ),
    *options_of(SearchSettings, "memory_gb"),
    Option(
        "--fix FILE",
        str,
        "a strategy file: the operators it names stay as they are there "
        "(plans: a job file, .job.json; only that job is timed)",
    ),
    Option(
        "--output FILE",
        str,
        "write the strategy (.strategy.json); of plans the job (.job.json)",
        over=("fix",),
    ),
    Option("--graph FILE", str, "write its task graph (.taskgraph.json)", over=("fix",)),
    JSON,
    Group(
        "search",
        (
            *options_of(SearchSettings, "proposals", "seed", "alpha"),
            *options_of(
                Cluster,
                *("ports_per_server", "port_gbps"),
                usual={"ports_per_server": 4, "port_gbps": 100.0},
            ),
            Option(
                "--alternate",
                bool,
                "on circuits fixed before the job, found anew as the strategy changes (default: non-blocking)",
            ),
        ),
    ),
    Group("on a fabric", ON_FABRIC),
    Group(
        "plans",
        (
            Option("--machine NAME", str, "what the GPUs are (default h100)"),
            Option("--gpus-per-server N", positive, "default: the machine's own"),
            Option("--batch N", positive, "sequences of an iteration (default: the model's own)"),
        ),
    ),
    listing=_list,
)
def run(options: Arguments) -> Answer:
    """Search or enumerate, and write what was asked for."""
    model = named(options.model)
    method = options.method or ("plans" if model.shape and not options.fabric else "search")
    # A job file says itself for how many servers it is.
    if options.servers is None and not (options.fix and method == "plans"):
        options.servers = model.servers
    on_fabric = options.fabric or not (options.beside or options.cluster)
    refuse_if(
        (not on_fabric, "must be given with --beside or --cluster"),
        file="command line",
        field="--fabric",
    )
    if options.fabric:
        names_of(options)
    return _plans(options, model) if method == "plans" else _search(options, model)


def _search(options: Arguments, model: Model) -> Answer:
    settings = of_options(SearchSettings, options)
    if options.fabric and options.proposals is None:
        settings = replace(settings, proposals=PROPOSALS)
    graph = model.build(options.servers)
    fixed = _fixed(options, graph)
    head = {"model": model.name, "servers": options.servers, "method": "search"}
    if options.fabric:
        found = search_on_fabric(options, graph, settings, fixed)
        if found is None:
            return Answer(status=1)
        ranked, record = found
        strategy = ranked.best(options.fabric).strategy
        start = _started(graph, ranked.start.strategy, bool(fixed))
        _write_strategy(options, graph, strategy)
        rest = {"start": start, "fixed": len(fixed), "operators": _operators(graph, strategy)}
        return Answer(head | record | rest, fabric_lines(ranked, record, start))
    began = time.perf_counter()
    result, proof, topologies = _found(options, graph, settings, fixed)
    wall_s = time.perf_counter() - began
    _write_strategy(options, graph, result.strategy)
    record = {
        **head,
        **record_of(result, "iteration_ms start_ms speed_up stopped_by proposals tried"),
        "start": _started(graph, result.start, bool(fixed)),
        "proved": proof,
        "moves": len(result.moves),
        "fixed": len(fixed),
        "seed": settings.seed,
        "wall_s": round(wall_s, 3),
        "network": "static circuits" if options.alternate else "non-blocking",
        **topologies,
        "operators": _operators(graph, result.strategy),
        "trace": [
            record_of(move, "proposal operator reason before_ms after_ms")
            | {
                "changes": [
                    {
                        "operator": new.operator,
                        "from": [old.partitions, old.start],
                        "to": [new.partitions, new.start],
                    }
                    for old, new in zip(move.before, move.after, strict=True)
                ]
            }
            for move in result.moves
        ],
    }
    return Answer(record, _search_lines(record, graph, result.strategy, result.moves))


def _fixed(options: Arguments, graph: OperatorGraph) -> tuple[Placement, ...]:
    """Return the operators of a strategy file, which stay as they are there."""
    if not options.fix:
        return ()
    pinned = load_strategy(read(options.fix), options.fix, graph)
    refuse_if(
        (
            pinned.servers != options.servers,
            f"must be {options.servers}, the servers asked for (got {pinned.servers})",
        ),
        file=options.fix,
        field="servers",
    )
    return pinned.placements


def _operators(graph: OperatorGraph, strategy: Strategy) -> list[dict[str, Any]]:
    return [
        record_of(p, "operator partitions start")
        | {"cost_source": graph.operator(p.operator).costs[p.partitions].source}
        for p in strategy.placements
    ]


def _write_strategy(options: Arguments, graph: OperatorGraph, strategy: Strategy) -> None:
    """Write the files that were asked for."""
    write(options.output, lambda: dump_strategy(strategy))
    write(options.graph, lambda: dump_graph_json(graph_of(graph, strategy, options.memory_gb)))


def _note_progress(progress: MoveProgress) -> None:
    if progress.proposals * 10 % max(10, progress.budget) == 0:
        note(
            f"proposal {progress.proposals:,} of {progress.budget:,}: {figure(progress.current_ms, 'ms')}, best "
            f"{figure(progress.best_ms, 'ms')}"
        )


def _found(
    options: Arguments,
    graph: OperatorGraph,
    settings: SearchSettings,
    fixed: tuple[Placement, ...],
) -> tuple[SearchResult | Alternated, bool, dict[str, Any]]:
    """Return what a search found, whether it is proved, and what there is to say of topologies."""
    sizes = options.servers, options.ports_per_server, options.port_gbps
    with ctrl_c_stops() as stop:
        more: Any = {"fixed": fixed, "stop": stop, "on_progress": _note_progress}
        if options.alternate:
            both = search_circuits(graph, *sizes, settings, **more)
            return both, False, {"topologies": both.topologies, "topologies_kept": both.kept}
        evaluate = FastEvaluator(graph, non_blocking(*sizes))
        result = search(graph, options.servers, evaluate, settings, **more)
        return result, result.proved, {}


def _started(graph: OperatorGraph, start: Strategy, fixed: bool) -> str:
    """Return in words where a search began."""
    if fixed:
        return "with what is fixed"
    return "data parallel" if start == data_parallel(graph, start.servers) else "whole operators"


def _search_lines(
    record: dict[str, Any], graph: OperatorGraph, strategy: Strategy, moves: tuple[Move, ...]
) -> Iterator[str]:
    proved = ", proved best on this simulator" if record["proved"] else ""
    counts = Counter(placement.partitions for placement in strategy.placements)
    partitions = ", ".join(f"{count} operators in {p}" for p, count in sorted(counts.items()))
    yield table(
        ("model", f"{graph.title} on {record['servers']} servers"),
        ("iteration", f"{figure(record['iteration_ms'], 'ms')}{proved}"),
        (record["start"], figure(record["start_ms"], "ms")),
        ("speed-up", figure(record["speed_up"])),
        (
            "tried",
            f"{record['tried']:,} strategies, {record['moves']:,} moves, {figure(record['wall_s'], 's')}",
        ),
        ("partitions", partitions),
    )
    better = [move for move in moves if move.after_ms < move.before_ms and move.reason != "reset"]
    for move in better[-SHOWN_MOVES:]:
        where = ", ".join(
            f"{new.operator} {old.partitions}@{old.start} to {new.partitions}@{new.start}"
            for old, new in zip(move.before[:2], move.after[:2], strict=True)
        )
        times = f"{figure(move.before_ms)} to {figure(move.after_ms, 'ms')}"
        more = and_more(len(move.after), 2)
        yield f"strategy {move.proposal:,}: {where or 'new topology'}{more}: {times}"


def _plans(options: Arguments, model: Model) -> Answer:

    problem = f"{model.name} is no language model: only those have plans"
    shape = needed(model.shape, problem, file="command line", field="--method")
    if options.fix:
        ranked: tuple[RankedPlan, ...] = (timed(_job(options, model), options.fix),)
        considered, too_large = 1, 0
    else:
        machine = _machine(options, machine_of(options.machine or "h100", "--machine"))
        with ctrl_c_stops() as stop:
            result = best_plans(
                shape, machine, options.servers, options.batch or model.batch, stop=stop
            )
        ranked, considered, too_large = result.ranked, result.considered, result.too_large
        if not ranked:
            note("stopped before a plan that fits was found")
            return Answer(status=1)
    best = ranked[0]
    write(options.output, lambda: dump_job(best.job))
    write(options.graph, lambda: dump_graph_json(task_graph(best.job)))
    return Answer(
        {
            "model": model.name,
            "servers": best.job.servers,
            "machine": best.job.machine.name,
            "method": "plans",
            "iteration_ms": best.total_ms,
            "considered": considered,
            "too_large": too_large,
            "plans": [
                {
                    **asdict(one.plan),
                    "recompute": one.recomputes,
                    "iteration_ms": one.total_ms,
                    "time": {
                        **{f"{part}_ms": ms for part, ms in one.parts.items()},
                        "utilisation": one.iteration.utilisation,
                    },
                    "memory_bytes": one.memory.total_bytes,
                    "memory": asdict(one.memory),
                }
                for one in ranked[:20]
            ],
        },
        _plan_lines(ranked, considered, too_large),
    )


def _plan_lines(ranked: tuple[RankedPlan, ...], considered: int, too_large: int) -> Iterator[str]:

    job = ranked[0].job
    gpus = f"{job.plan.gpus:,} {job.machine.title} ({status_of(job.machine)})"
    fit = f"{considered - too_large:,} of them fit {job.machine.memory_gb:g} GB per GPU"
    yield table(("model", f"{job.shape.title} on {gpus}"), ("plans", f"{considered:,} suit, {fit}"))
    rows = (
        (
            figure(round(one.total_ms, 1), "ms"),
            f"{one.memory.total_bytes / 1e9:.1f} GB",
            f"{percent(one.iteration.utilisation)} of peak",
            one.words,
        )
        for one in ranked[:SHOWN_PLANS]
    )
    yield table(*rows)


def _machine(options: Arguments, machine: Machine) -> Machine:
    """Return a machine with what the options change of it."""
    changes = given_of(options, ("memory_gb", "gpus_per_server"))
    return replace(machine, **changes) if changes else machine


def _job(options: Arguments, model: Model) -> Job:
    """Return the job of the file; it must be of the model, and of as many servers as were asked for."""
    job = load_job(read(options.fix), options.fix)
    with errors_in_file(options.fix):
        known = machine_of(options.machine, "--machine") if options.machine else job.machine
        job = job.changed(machine=_machine(options, known))
    asked = options.servers or job.servers
    theirs = f"{printable(job.shape.name)} on {job.servers:,} servers"
    refuse_if(
        (
            (job.shape.name, job.servers) != (model.name, asked),
            f"is for {theirs}, not {model.name} on {asked:,}",
        ),
        file=options.fix,
    )
    return job
