"""``rails``: photonic rails; here the number of windows, what a delay costs, the switches, rules of thumb, the bill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from topox_core.cli.rails.simulate import (
    CHANGES,
    ON_FABRIC,
    executed,
    graph,
    preset_of,
    rail_bytes,
    simulate,
    window_lengths,
)
from topox_core.cli.shared.command import Answer, Arguments, Commands, command
from topox_core.cli.shared.options import (
    JSON,
    Group,
    Option,
    errors_of_option,
    number,
    of_options,
    options_of,
    whole,
)
from topox_core.cli.shared.printing import columns, figure, percent, table
from topox_core.economics.comparison import Question, Running, caveats_of, year_of
from topox_core.economics.networks import NETWORKS, Counting, bills, saving, savings
from topox_core.economics.price_sets import DEFAULT_SET, Catalogue, load_parts, price_set
from topox_core.errors import errors_in_file, needed, refuse_if
from topox_core.io.content import read, record_of
from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, WIDEST, gpus
from topox_core.training.plan import ORDERS

if TYPE_CHECKING:
    from topox_core.rails.delay import DelayStudy, Source


@command(
    "Count the windows of one rank of every pipeline stage under FSDP, and by formula.",
    Option("--stages P", whole, "pipeline stages", required=True),
    Option("--microbatches M", whole, "micro-batches of an iteration", required=True),
    Option(
        f"--schedule {'|'.join(ORDERS)}",
        str,
        "order of the passes (default 1f1b; afab: all forward, then all backward)",
        "1f1b",
    ),
    Option("--chunks V", whole, "model chunks of a stage when interleaved (default 2)", 2),
    JSON,
)
def count(options: Arguments) -> Answer:
    """Return the windows of a rank of each stage."""
    from topox_core.rails.windows import FORMULA_NOTE, windows_by_formula, windows_by_stage

    windows = windows_by_stage(
        options.stages, options.microbatches, options.schedule, options.chunks
    )
    formula = windows_by_formula(options.microbatches)
    record = {
        **record_of(options, "stages microbatches schedule"),
        "windows": windows,
        "formula": formula,
        "formula_note": FORMULA_NOTE,
    }
    rows = [*enumerate(windows), ("formula", formula)]
    lines = columns(rows, {"stage": lambda row: row[0], "windows": lambda row: f"{row[1]:,}"})
    return Answer(record, (lines, f"formula: {FORMULA_NOTE}"))


@command(
    "Table 3 of the paper: how fast each optical switch is, and how many GPUs one switch per rail can join.",
    JSON,
)
def switches(_: Arguments) -> Answer:
    """Return the optical switches."""
    joined = {
        one.key: {name: gpus(one, size) for name, size in SCALE_UP.items()} for one in TECHNOLOGIES
    }
    rows = (
        (
            one.key,
            one.name,
            one.vendor,
            figure(one.reconfiguration_ms, "ms"),
            f"{one.radix:,}",
            *(f"{count:,}" for count in joined[one.key].values()),
        )
        for one in TECHNOLOGIES
    )
    head = ("key", "switch", "vendor", "delay", "ports", *(f"GPUs, {name}" for name in SCALE_UP))
    return Answer(
        {"switches": [asdict(one) | {"gpus": joined[one.key]} for one in TECHNOLOGIES]},
        table(head, *rows),
    )


@command(
    "Rules of thumb of the paper (Tables 1 and 2): which parallelisms suit a model and its GPUs, and what each "
    "communicates.",
    Option("--parameters X", number, "of the model, such as 70e9", required=True),
    Option("--gpus N", whole, "GPUs", required=True),
    JSON,
)
def advise(options: Arguments) -> Answer:
    """Return which parallelisms suit a model and its GPUs."""
    from topox_core.rails.advice import TABLE_2, advise

    advice = advise(options.parameters, options.gpus)
    record = {
        "model": advice.model,
        **record_of(options, "parameters gpus"),
        "note": advice.note,
        "strategies": list(advice.practice.strategies) if advice.practice else [],
        "parallelisms": [asdict(row) for row in TABLE_2],
    }
    rules = columns(
        TABLE_2,
        {
            "parallelism": "title",
            "splits": "memory",
            "operation": "collective",
            "how often": "frequency",
            "on the rail": lambda row: "yes" if row.on_rail else "no",
        },
    )
    return Answer(record, (advice.note, "", rules))


@command(
    "Iteration time at reconfiguration delays, on demand and provisioned. Of a list of windows in series: on demand "
    "every window pays all of the delay, provisioned what does not fit into the window. A job, or an execution "
    "of any fabric carried by one photonic rail, is simulated.",
    Option("--base-ms T", number, "iteration without switching (default: the file's)"),
    Option("--window-ms A", number, "a window; may be repeated", repeated=True),
    Option("--windows FILE", str, "a list of windows (.json, .csv) instead"),
    Option("--measured", bool, "the authors' measured list instead"),
    Option("--preset NAME", str, "a job instead (rails simulate --list shows them)"),
    CHANGES,
    Option("--execution GRAPH CLUSTER", str, "a task graph as a fabric runs it instead", nargs=2),
    *ON_FABRIC,
    Option(
        "--delay-ms R",
        number,
        "reconfiguration delay; may be repeated",
        required=True,
        repeated=True,
    ),
    Option(
        "--limit-percent X",
        number,
        "also find the slowest switch that keeps the overhead within X %%",
    ),
    JSON,
    flags={"windows": "--window-ms", "delays_ms": "--delay-ms", "PRESET": "--preset"},
)
def delay(options: Arguments) -> Answer:
    """Return iteration times at delays."""
    from topox_core.rails.delay import slowest_switch, study

    source, windows = _source(options)
    result = study(source, options.delay_ms)
    record: dict[str, Any] = {
        "source": result.source,
        "base_ms": result.base_ms,
        "windows": windows,
        **record_of(result.rows[0], "delay_ms on_demand_ms provisioned_ms"),
        "rows": [asdict(row) for row in result.rows],
    }
    if options.limit_percent is not None:
        record["slowest_switch_ms"] = {
            name: slowest_switch(source, options.limit_percent, name == "provisioned")
            for name in ("on_demand", "provisioned")
        }
    return Answer(record, _delay_lines(options, result, record))


def _delay_lines(options: Arguments, result: DelayStudy, record: dict[str, Any]) -> Iterator[str]:
    rows = (
        (
            figure(row.delay_ms, "ms"),
            figure(row.on_demand_ms, "ms"),
            percent(result.overhead(row.on_demand_ms) / 100),
            figure(row.provisioned_ms, "ms"),
            percent(result.overhead(row.provisioned_ms) / 100),
        )
        for row in result.rows
    )
    yield table(("delay", "on demand", "over", "provisioned", "over"), *rows)
    for name, value in record.get("slowest_switch_ms", {}).items():
        words = "any switch" if value is None else figure(value, "ms")
        control = name.replace("_", " ")
        yield f"slowest switch within {options.limit_percent:g} %, {control}: {words}"


def _source(options: Arguments) -> tuple[Source, int | None]:
    """Return the source of a delay study, and its number of listed windows (None: simulated)."""
    from topox_core.rails.builder import build
    from topox_core.rails.delay import execution_source, iteration_source
    from topox_core.rails.iteration import Rail

    sources = ("window_ms", "windows", "measured", "preset", "execution")
    chosen = [f"--{name.replace('_', '-')}" for name in sources if getattr(options, name)]
    first, other, *_ = (*chosen, "", "")
    listed = not options.preset and not options.execution
    refuse_if(
        (other, f"cannot be given with {first}", other),
        (options.changes and not options.preset, "changes a preset: needs --preset", "--set"),
        (
            options.base_ms is not None and not listed,
            f"cannot be given with {first}, which has a length of its own",
            "--base-ms",
        ),
        file="command line",
    )
    if listed:
        return _listed(options)
    if options.preset:
        job = preset_of(options)
        return iteration_source(
            build(job, fold=True), Rail(nic_gbps=job.machine.network_gbps)
        ), None
    graph, execution = executed(options.execution, options)
    with errors_in_file(options.execution[0]):
        return replace(execution_source(execution), name=graph.name), None


def _listed(options: Arguments) -> tuple[Source, int]:
    """Return the windows as what a delay study asks, from options, a file or the authors' list, and their number."""
    from topox_core.rails.delay import windows_source
    from topox_core.rails.measured import WINDOWS, WINDOWS_ITERATION_MS
    from topox_core.rails.window_lengths import load_windows

    windows, own_ms = (WINDOWS, WINDOWS_ITERATION_MS) if options.measured else ((), None)
    if options.windows:
        listed = load_windows(read(options.windows), options.windows)
        windows, own_ms = listed.windows, listed.iteration_ms
    lanes = len({(one.rank, one.rail) for one in windows})
    several = (
        f"holds windows of {lanes} ranks and rails; a delay study needs those of one, in series"
    )
    refuse_if((options.windows and lanes > 1, several), file=options.windows)
    lengths = [one.length_ms for one in windows] or options.window_ms or []
    base = own_ms if options.base_ms is None else options.base_ms
    problem = "is needed: how long the iteration lasts without switching"
    base_ms = needed(base, problem, file="command line", field="--base-ms")
    return windows_source(base_ms, lengths), len(lengths)


@command(
    "Count and price a fat-tree, rail-optimised, rail-only and photonic rails, and TopoOpt with a patch panel or "
    "optical switches, for a number of GPUs.",
    Option("--gpus N", whole, "GPUs, in whole servers", required=True),
    *options_of(
        Counting,
        *("gpus_per_server", "method", "nics", "fibre", "joined_rails"),
        *("ocs_ports_per_gpu", "ocs_transceivers_per_gpu"),
        written={
            "method": "--counting",
            "ocs_transceivers_per_gpu": "--transceivers-per-gpu",
        },
        switches=True,
    ),
    Option(
        "--prices SET", str, "price set: mixnet (default), opus-v1, opus-v3-h200, opus-v3-gb200"
    ),
    Option("--parts FILE", str, "prices and watts of your own: .parts.json"),
    Option(
        "--radix N",
        whole,
        "ports of the optical switch, which say whether photonic rails can be built of it (default: 576, "
        "the widest of those that switch within a second)",
    ),
    Group("a year (assumed figures)", options_of(Running)),
    JSON,
)
def cost(options: Arguments) -> Answer:
    """Price the networks."""
    from topox_core.studies.buying.offers import sources_of

    catalogue = _catalogue(options)
    counting, running = of_options(Counting, options), of_options(Running, options)
    question = Question(options.gpus, catalogue, counting)
    priced = bills(options.gpus, catalogue, counting)
    caveats = [one.text for one in caveats_of(question, *_switch(options.radix))]
    years = {name: year_of(one, running) for name, one in priced.items()}
    record = {
        "gpus": question.gpus,
        "gpus_per_server": counting.gpus_per_server,
        "counting": counting.method,
        "prices": catalogue.name,
        "fabrics": {
            name: {
                **one.as_record(),
                "year_usd": years[name].total_usd,
                "year_kwh": years[name].energy_kwh,
            }
            for name, one in priced.items()
        },
        "savings": savings(priced),
        "findings": caveats,
    }
    mine = priced["photonic_rails"]
    rows = (
        (
            NETWORKS[name],
            f"${one.cost_usd:,.0f}",
            f"{one.power_w / 1000:,.2f} kW",
            f"${one.cost_usd / one.gpus:,.0f}",
            f"${years[name].total_usd:,.0f}",
            "" if one is mine else percent(round(saving(mine.cost_usd, one.cost_usd), 6)),
            "" if one is mine else percent(round(saving(mine.power_w, one.power_w), 6)),
        )
        for name, one in priced.items()
    )
    head = ("network", "cost", "power", "a GPU", "a year", "photonic saves", "its power saves")
    words = (
        f"{question.gpus:,} GPUs, {counting.gpus_per_server} per server; {catalogue.name}; "
        f"counted by {counting.method}"
    )
    return Answer(
        record, (table(head, *rows), words, *caveats), figures=sources_of(prices=catalogue)
    )


def _switch(radix: int | None) -> tuple[int, str]:
    """Return ports and name of the optical switch; by default the widest that switches in a job."""
    if radix is not None:
        return radix, "the optical switch"
    return WIDEST.radix, f"{WIDEST.vendor}, the widest that switches within a second,"


def _catalogue(options: Arguments) -> Catalogue:

    if options.parts is not None:
        refuse_if(
            (
                options.prices is not None,
                "cannot be given with --prices: a parts file says itself which set it is based on",
            ),
            file="command line",
            field="--parts",
        )
        return load_parts(read(options.parts), options.parts)
    with errors_of_option("--prices"):
        return price_set(options.prices or DEFAULT_SET)


COMMANDS = Commands(
    "Photonic rails: what a job sends on a rail, the windows between, what switching in them costs.",
    {
        "count": (count, "windows of an iteration, by stage and by formula"),
        "delay": (
            delay,
            "iteration time at reconfiguration delays: of windows, a job, or an execution",
        ),
        "switches": (switches, "optical switches: their delay, ports, and the GPUs they join"),
        "simulate": (
            simulate,
            "run a job's iteration on a rail with its control plane",
        ),
        "graph": (graph, "write a job's iteration on one rail as a task graph"),
        "windows": (
            window_lengths,
            "windows of a list, or of an execution on any fabric",
        ),
        "bytes": (
            rail_bytes,
            "bytes that a rank of each stage moves over its rail, class by class",
        ),
        "advise": (advise, "which parallelisms for a model and its GPUs"),
        "cost": (cost, "price and power of six networks for a number of GPUs"),
    },
)
