"""One iteration of a job: ``rails simulate``, ``rails graph``, ``rails bytes``; and ``rails windows`` of any fabric."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, Lines, command
from topox_core.cli.shared.files import (
    cluster_beside,
    read_graph_and_cluster,
    write_graph,
    write_windows,
)
from topox_core.cli.shared.options import (
    JSON,
    Group,
    Option,
    changes_of,
    errors_of_option,
    given_of,
    number,
    options_of,
    reader,
    setting_option,
    value_of,
    whole,
    yes_or_no,
)
from topox_core.cli.shared.printing import columns, figure, note, percent, table
from topox_core.cli.shared.settings import FABRICS, fabric_options, settings
from topox_core.errors import check_known, errors_in_file, printable, refuse_if
from topox_core.io.content import read, record_of
from topox_core.model.execution import Execution
from topox_core.model.task_graph import TaskGraph
from topox_core.rails.iteration import Rail, RailRun, Window
from topox_core.rails.presets import KEYS, PRESETS, changed, degrees_in_words, preset
from topox_core.rails.technologies import SPLIT_NOTE, fits, technology
from topox_core.rails.window_lengths import (
    by_class,
    lengths_ms,
    load_windows,
    median_ms,
    share_above,
    share_hiding,
)
from topox_core.rails.windows import windows_of_execution
from topox_core.schema.fields import fields_of
from topox_core.schema.records import check_value
from topox_core.training.job import Job

CHANGES = setting_option(
    "--set KEY=VALUE",
    "change a key of the preset (gpus, tensor, pipeline, data, microbatches, shape, ...)",
)
PRESET = (
    Option(
        "preset PRESET",
        str,
        "a job, such as llama3-8b-perlmutter",
        nargs="?",
        needed="is needed (--list shows them)",
    ),
    Option("--list", bool, "show the presets", dest="listing"),
    CHANGES,
)
SHOWN = 12
# Of a NIC whose ports are dealt to two parallelisms for good.
STATIC_PORTS = 4
_on_or_off = reader(lambda text: {"on": True, "off": False}[text.lower()], "on or off")
CLASS_KEYS = "parallelism operation when calls size_bytes counted_bytes wire_bytes times"
LENGTH_KEYS = "name count mean_ms min_ms max_ms mean_bytes"
# The fabric of an execution, and how it is built.
ON_FABRIC = (
    Option(
        "--fabric NAME",
        str,
        "ideal, fat_tree, static, reactive, provisioned or scheduled (default)",
        "scheduled",
    ),
    FABRICS,
)


def preset_of(options: Arguments) -> Job:
    """Return the preset with what ``--set`` changes.

    Raises
    ------
    InputError
        If there is none of that name, a key is unknown, or the values do not go together.
    """
    with errors_of_option("PRESET"):
        base = preset(options.preset)
    changes: dict[str, Any] = {}
    for key, text in changes_of(options.changes).items():
        check_known(key, KEYS, file="command line", item="--set", field=printable(key))
        changes[key] = value_of(text)
    return changed(base, changes).changed(title=f"{base.heading}, changed") if changes else base


def _list(_: Arguments) -> Answer:
    """Return the presets."""
    rows = [(one.name, one.title, degrees_in_words(one), one.source) for one in PRESETS.values()]
    names = ("name", "title", "words", "source")
    return Answer(
        {"presets": [dict(zip(names, row, strict=True)) for row in rows]},
        table(("preset", "job", "degrees"), *(row[:3] for row in rows)),
    )


def _rail(options: Arguments, job: Job) -> tuple[Rail, int]:
    """Return the rail, and how many switches it takes (0 where none was named)."""
    usual: dict[str, Any] = {"nic_ports": STATIC_PORTS} if options.static_split else {}
    switches = 0
    if options.switch is not None:
        with errors_of_option("--switch"):
            one = technology(options.switch)
            switches = fits(one, job.servers, split=options.split)
        usual["reconfiguration_ms"] = one.reconfiguration_ms
    chosen = usual | given_of(options, fields_of(Rail))
    speed = job.machine.network_gbps
    return Rail(nic_gbps=speed, optical=not options.electrical, **chosen), switches


@command(
    "Simulate one iteration of a job on one photonic rail: profiled, then provisioned or on demand. The replicas "
    "of a stage are folded to one unless --fold no.",
    *PRESET,
    Group(
        "rail",
        (
            *options_of(
                Rail,
                *("reconfiguration_ms", "link_up_ms", "provisioned"),
                *("static_split", "nic_ports", "latency_us"),
                written={
                    "reconfiguration_ms": "--delay-ms",
                    "provisioned": ("--provisioning on|off", _on_or_off),
                },
                switches=True,
            ),
            Option(
                "--switch KEY",
                str,
                "plzt, sip, rotornet, mems, piezo, lc or robotic: its delay and its ports",
            ),
            Option(
                "--split",
                bool,
                "allow a rail that is wider than the switch, over several of them",
            ),
            Option("--electrical", bool, "a packet-switched rail: nothing is ever switched"),
        ),
    ),
    Option("--fold yes|no", yes_or_no, "default yes", True),
    Option(
        "--by-layer yes|no",
        yes_or_no,
        "a collective for each layer (default yes), or one a pass",
        True,
    ),
    Option(
        "--limit-percent X",
        number,
        "also find the slowest switch that keeps the overhead within X %%",
    ),
    Option("--output FILE", str, "write the undisturbed windows (.json or .csv)", over=()),
    JSON,
    listing=_list,
)
def simulate(options: Arguments) -> Answer:
    """Run the iteration of a job on one rail."""
    from topox_core.rails.builder import build
    from topox_core.rails.control.simulate import simulate
    from topox_core.rails.delay import LIMIT_PERCENT, iteration_source, slowest_switch

    job, percent_most = preset_of(options), options.limit_percent
    rail, switches = _rail(options, job)
    # What cannot be is refused before a large iteration is built.
    if percent_most is not None:
        check_value(LIMIT_PERCENT, percent_most, file="settings", field="limit_percent")
    iteration = build(job, fold=options.fold, by_layer=options.by_layer)
    run = simulate(iteration, rail)
    windows = run.windows
    if rail.dark_ms:
        undisturbed = replace(
            rail, provisioned=True, static_split=False, reconfiguration_ms=0.0, link_up_ms=0.0
        )
        windows = simulate(iteration, undisturbed).windows
    record: dict[str, Any] = {
        "preset": job.name,
        "gpus": job.plan.gpus,
        **record_of(run, "iteration_ms undisturbed_ms stall_ms reconfigurations"),
        "overhead": run.stall_ms / run.undisturbed_ms if run.undisturbed_ms else 0.0,
        "messages": run.messages_sent,
        "delay_ms": rail.reconfiguration_ms,
        **record_of(rail, "link_up_ms provisioned"),
        "windows_counted": len(windows),
        "share_above_1_ms": share_above(windows, 1.0) if windows else None,
        "share_above_delay": share_hiding(windows, rail.dark_ms) if windows else None,
        **({"switches_per_rail": switches} if switches else {}),
    }
    if percent_most is not None:
        record["slowest_switch_ms"] = slowest_switch(
            iteration_source(iteration, rail), percent_most, rail.provisioned, rail.link_up_ms
        )
    note(f"{job.heading}: {len(iteration):,} nodes on {iteration.ranks:,} ranks")
    write_windows(options.output, job.heading, run.undisturbed_ms, windows)
    return Answer(
        record | {"windows": [asdict(one) for one in windows]}, _lines(job, run, windows, record)
    )


def _lines(job: Job, run: RailRun, windows: tuple[Window, ...], record: dict[str, Any]) -> Lines:
    control = "provisioned" if run.rail.provisioned else "on demand"
    stall = f"{figure(run.stall_ms, 'ms')}, {percent(record['overhead'])}"
    above = percent(record["share_above_1_ms"])
    switches, slowest_ms = record.get("switches_per_rail", 1), record.get("slowest_switch_ms")
    slowest = "any" if slowest_ms is None else figure(slowest_ms, "ms")
    yield table(
        ("job", f"{job.heading}; {degrees_in_words(job)}"),
        ("iteration", figure(run.iteration_ms, "ms")),
        ("without switching", figure(run.undisturbed_ms, "ms")),
        ("stall", f"{stall} ({control}, {run.rail.dark_ms:g} ms a change)"),
        ("reconfigurations", f"{run.reconfigurations:,}"),
        ("messages", f"{run.messages_sent:,}"),
        ("windows", f"{record['windows_counted']:,}, {above} above 1 ms"),
        switches > 1 and ("switches of a rail", f"{switches:,}; {SPLIT_NOTE}"),
        "slowest_switch_ms" in record and ("slowest switch", slowest),
    )
    if windows:
        yield ""
        yield columns(
            windows[:SHOWN],
            {
                "rank": "rank",
                "before": "before",
                "after": lambda one: f"{one.after} {one.operation}".strip(),
                "begins": lambda one: figure(one.begin_ms, "ms"),
                "length": lambda one: figure(one.length_ms, "ms"),
                "bytes after it": lambda one: f"{one.size_bytes:,.0f}",
            },
        )
    more = len(windows) - SHOWN
    yield f"and {more:,} more (--json lists all)" if more > 0 else None


@command(
    "Write a job's iteration on one rail as a task graph for every fabric, and the cluster that suits it.",
    *PRESET,
    Option(
        "--by-layer yes|no",
        yes_or_no,
        "a collective for each layer, or one a pass (default no)",
        False,
    ),
    Option(
        "--output FILE",
        str,
        "where to: the cluster goes beside it",
        needed="is needed: where the task graph is written",
        over=(),
    ),
    JSON,
    listing=_list,
)
def graph(options: Arguments) -> Answer:
    """Write the task graph of a job on one rail."""
    from topox_core.rails.builder import as_task_graph

    beside = cluster_beside(options.output)
    graph, cluster = as_task_graph(preset_of(options), by_layer=options.by_layer)
    write_graph(options.output, graph, beside, cluster)
    record = {
        "graph": options.output,
        "cluster": beside,
        "tasks": len(graph.tasks),
        "servers": cluster.servers,
    }
    line = f"{options.output}: {len(graph.tasks):,} tasks; {beside}: {cluster.servers} servers"
    return Answer(record, line)


@command(
    "Say what a rank of every pipeline stage moves over its rail in an iteration, counted by parallelism and operation.",
    *PRESET,
    Option("--stage N", whole, "only this stage, from 0"),
    JSON,
    listing=_list,
)
def rail_bytes(options: Arguments) -> Answer:
    """Return the bytes that a rank of each stage moves."""
    from topox_core.rails.advice import byte_classes

    preset = preset_of(options)
    all_stages = range(preset.plan.pipeline)
    stages = all_stages if options.stage is None else (options.stage,)
    refuse_if(
        (
            not {*stages} <= {*all_stages},
            f"must be from 0 to {preset.plan.pipeline - 1} (got {options.stage})",
        ),
        file="command line",
        field="--stage",
    )
    classes = {str(stage): byte_classes(preset, stage) for stage in stages}
    return Answer(
        {
            "preset": preset.name,
            "stages": {
                stage: [record_of(one, CLASS_KEYS) for one in of_stage]
                for stage, of_stage in classes.items()
            },
        },
        columns(
            ((stage, one) for stage, of_stage in classes.items() for one in of_stage),
            {
                "stage": lambda row: row[0],
                "parallelism": lambda row: row[1].parallelism,
                "operation": lambda row: row[1].operation,
                "when": lambda row: row[1].when,
                "passes": lambda row: f"{row[1].times:,}",
                "calls": lambda row: f"{row[1].calls:,}",
                "MiB a pass": lambda row: f"{row[1].counted_bytes / 2**20:,.6g}",
                "MiB sent in all": lambda row: f"{row[1].wire_bytes * row[1].times / 2**20:,.6g}",
            },
        ),
    )


@command(
    "Say how long windows are: of a list (one file), or of a task graph as a fabric runs it (GRAPH CLUSTER).",
    Option("files FILE", str, "a list of windows, or a task graph and a cluster", nargs="+"),
    *ON_FABRIC,
    Option("--above-ms X", number, "threshold (default 1)", 1.0),
    Option("--output FILE", str, "write them (.json or .csv)", over=("files",)),
    JSON,
)
def window_lengths(options: Arguments) -> Answer:
    """Return how long windows are."""
    count = len(options.files)
    refuse_if(
        (
            count > 2,
            f"must be a list of windows, or a task graph and a cluster (got {count} files)",
        ),
        file="command line",
        field="FILE",
    )
    name, iteration_ms, windows = _listed_or_executed(options)
    refuse_if(
        (not windows, "has no window: the rail carries only one kind of traffic"),
        file=options.files[0],
    )
    write_windows(options.output, name, iteration_ms, windows)
    lengths, classes = lengths_ms(windows), by_class(windows)
    share, overlaps = share_above(windows, options.above_ms), int((lengths < 0).sum())
    return Answer(
        {
            "name": name,
            "iteration_ms": iteration_ms,
            "windows": len(windows),
            "above_ms": options.above_ms,
            "share_above": share,
            "overlaps": overlaps,
            "median_ms": median_ms(windows),
            "longest_ms": float(lengths.max()),
            "classes": [record_of(one, LENGTH_KEYS) for one in classes],
            "list": [asdict(one) for one in windows],
        },
        (
            table(
                ("windows", f"{len(windows):,} in {figure(iteration_ms, 'ms')}"),
                ("above", f"{percent(share)} are longer than {options.above_ms:g} ms"),
                ("overlaps", f"{overlaps:,}"),
                ("longest", figure(float(lengths.max()), "ms")),
            ),
            "",
            columns(
                classes,
                {
                    "traffic after the window": "name",
                    "windows": lambda one: f"{one.count:,}",
                    "mean": lambda one: figure(one.mean_ms, "ms"),
                    "shortest": lambda one: figure(one.min_ms, "ms"),
                    "longest": lambda one: figure(one.max_ms, "ms"),
                },
            ),
        ),
    )


def _listed_or_executed(options: Arguments) -> tuple[str, float, tuple[Window, ...]]:
    if len(options.files) == 1:
        listed = load_windows(read(options.files[0]), options.files[0])
        return listed.name, listed.iteration_ms, listed.windows

    graph, execution = executed(options.files, options)
    with errors_in_file(options.files[0]):
        return graph.name, execution.makespan_ms, windows_of_execution(execution)


def executed(files: Sequence[str], options: Arguments) -> tuple[TaskGraph, Execution]:
    """Return a task graph and how the fabric of ``options`` runs it, as ``compare`` has it.

    Raises
    ------
    InputError
        If a file cannot be used, there is no such fabric, or its options do not go together.
    """
    from topox_core.fabrics.comparison.compare import chosen, compare

    with errors_of_option("--fabric"):
        (name,) = chosen([options.fabric])
    graph, cluster = read_graph_and_cluster(files[0], files[1], {})
    by_rules = settings(Arguments(), engine="list")
    runs = compare(graph, cluster, by_rules, (name,), fabric_options(options, cluster))
    return graph, runs[name].execution
