"""``iteration``: one training iteration in closed form, piece by piece, and predictions beside measurements."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from topox_core.cli.shared.command import Answer, Arguments, Commands, command
from topox_core.cli.shared.files import cluster_beside, write, write_graph
from topox_core.cli.shared.options import JSON, Option, changes_of, setting_option, value_of
from topox_core.cli.shared.printing import columns, figure, percent, table
from topox_core.errors import refuse_if
from topox_core.io.content import read
from topox_core.io.limits import check_one_of
from topox_core.studies.buying.offers import sources_of
from topox_core.training.costs.memory import fits, memory
from topox_core.training.iteration import Iteration, Piece, iteration, pieces
from topox_core.training.job import JOBS, Job, dump_job, job_of, load_job
from topox_core.training.machine import MACHINES, Machine, figures, status_of
from topox_core.training.measured.measurements import read_measured
from topox_core.training.measured.validation import (
    BUILT_IN,
    Agreement,
    agreement,
    by_model,
    predicted,
    trust,
)
from topox_core.training.pipeline.graph import suggested_cluster, task_graph


def _list(_: Arguments) -> Answer:

    jobs = [{"name": one.name, "title": one.title} for one in JOBS.values()]
    return Answer({"jobs": jobs}, table(*((one.name, one.title) for one in JOBS.values())))


@command(
    "Print the pieces of a job's iteration, which add up, with utilisation, tokens per second and memory.",
    Option(
        "job JOB",
        str,
        "a job: .job.json, or the name of a known one",
        nargs="?",
        needed="a job must be named (--list shows them)",
    ),
    setting_option("--set PART.FIELD=VALUE", "change one field, such as plan.tensor=4"),
    Option("--output FILE", str, "write the job: .job.json", over=()),
    Option(
        "--graph FILE", str, "write its task graph, and beside it a cluster that suits it", over=()
    ),
    Option("--list", bool, "show the known jobs", dest="listing"),
    JSON,
    listing=_list,
)
def show(options: Arguments) -> Answer:
    """Return what an iteration of a job consists of."""
    beside = options.graph and cluster_beside(options.graph)
    job = _job(options)
    one, used, status = iteration(job), memory(job), status_of(job.machine)
    write(options.output, lambda: dump_job(job))
    if options.graph is not None:
        write_graph(options.graph, task_graph(job), beside, suggested_cluster(job))
    found = pieces(one)
    record = {
        "job": job.name,
        "words": job.words,
        "gpus": job.plan.gpus,
        "parameters": job.shape.parameters,
        "model_operations": job.operations,
        "tokens": job.plan.batch * job.shape.sequence,
        "iteration_ms": one.total_ms,
        "utilisation": one.utilisation,
        "tokens_per_s": one.tokens_per_s,
        "rank": one.busiest_rank,
        "pieces": [asdict(piece) for piece in found],
        "passes": [
            {"forward_ms": each.forward.total_ms, "backward_ms": each.backward.total_ms}
            for each in one.passes
        ],
        "memory": {**asdict(used), "total_bytes": used.total_bytes, "fits": fits(job)},
        "machine": {"name": job.machine.name, "status": status},
    }
    in_words = (
        f"memory of a GPU of stage {used.stage}: {used.total_bytes / 1e9:.3g} GB, "
        f"{'fits' if fits(job) else 'DOES NOT FIT'} in {job.machine.memory_gb:g} GB",
        f"figures of the machine: {status}; closed form, nobody else on the network",
    )
    return Answer(record, _lines(one, found, in_words), figures=sources_of(job.machine))


def _job(options: Arguments) -> Job:
    """Return the job of a file, or the known one of that name, with the fields that ``--set`` changes.

    Values are read as a file has them, words without quotes.
    """
    name = options.job
    known = name in JOBS or not (Path(name).exists() or name.endswith((".json", ".gz")))
    job = job_of(name) if known else load_job(read(name), Path(name).name)
    values: dict[str, object] = {}
    for key, text in changes_of(options.changes).items():
        part, dot, field = key.partition(".")
        named = dot and part in ("shape", "plan", "machine", "schedule")
        refuse_if(
            (not named, f"must be PART.FIELD=VALUE such as plan.tensor=4 (got {key[:60]!r})"),
            file="command line",
            field="--set",
        )
        values[f"{part}__{field}"] = value_of(text)
    return job.changed(**values)


def _lines(one: Iteration, found: list[Piece], in_words: tuple[str, ...]) -> Iterator[str]:

    yield one.job.words
    yield table(
        ("piece", "ms", "share", "hidden ms", "what", "bytes", "calls", "among"),
        *(_cells(piece, one.total_ms) for piece in found),
        ("iteration", figure(one.total_ms), "100 %", "", "", "", "", ""),
    )
    yield (
        f"pieces of stage {one.busiest_rank}, the busiest; utilisation {percent(one.utilisation)}, "
        f"{one.tokens_per_s:,.0f} tokens per second"
    )

    yield from (*in_words, trust(one.job.machine))


def _cells(piece: Piece, total_ms: float) -> tuple[str, ...]:
    among = ""
    if piece.group is not None:
        where = "across servers" if piece.group.crosses else "in a server"
        among = f"{piece.group.size:,} GPUs {where}"
    return (
        piece.name,
        figure(piece.exposed_ms),
        percent(piece.exposed_ms / total_ms),
        figure(piece.hidden_ms) if piece.hidden_ms else "",
        piece.kind.replace("_", "-"),
        f"{piece.size_bytes:,.0f}" if piece.calls else "",
        f"{piece.calls:,}" if piece.calls else "",
        among,
    )


@command(
    "Print the known machines; with a NAME every figure of it, its source and how sure it is.",
    Option("name NAME", str, "a machine, such as h100", nargs="?"),
    JSON,
)
def machines(options: Arguments) -> Answer:
    """Return the machines, or one with its figures."""
    shown = [machine_of(options.name, "NAME")] if options.name else list(MACHINES.values())
    record = {
        "machines": [
            asdict(one) | {"sources": [asdict(each) for each in figures(one)]} for one in shown
        ]
    }
    if not options.name:
        return Answer(record, table(*((one.name, one.title, one.status) for one in shown)))
    return Answer(
        record,
        columns(
            figures(shown[0]),
            {
                "figure": "field",
                "value": lambda one: figure(getattr(shown[0], one.field), one.unit),
                "status": "status",
                "source": "source",
            },
        ),
    )


def machine_of(name: str, option: str) -> Machine:
    """Return a known machine.

    Raises
    ------
    InputError
        If there is none of that name; the option that names it is named.
    """
    check_one_of(name, MACHINES, file="command line", field=option)
    return MACHINES[name]


@command(
    "Predict every row of a table of measured iterations (vTrain's columns) and say how far predictions are. "
    "vtrain and megatron name the two sets of measurements that come with this program, uncalibrated published "
    "iterations where nothing was fitted, production published runs of weeks on A100.",
    Option("file FILE", str, "a table (.csv), or vtrain, megatron, uncalibrated or production"),
    Option("--machine NAME", str, "what the rows of a file ran on (default vtrain)"),
    JSON,
)
def validate(options: Arguments) -> Answer:
    """Return predictions beside measured iterations."""
    machine = None if options.machine is None else machine_of(options.machine, "--machine")
    name = Path(options.file).name
    if options.file in BUILT_IN:
        rows = BUILT_IN[options.file]()
    else:
        rows = read_measured(read(options.file), name, machine)
    compared = predicted(rows, name)
    of_models = {model: _agreement(one) for model, one in by_model(compared).items()}
    record: dict[str, Any] = {
        "file": options.file,
        **_agreement(agreement(compared)),
        "by_model": of_models,
        "predictions": [
            {
                "row": row.measured.row,
                "model": row.measured.model,
                "plan": row.measured.job.plan.words,
                "schedule": row.measured.job.schedule.words,
                "measured_ms": row.measured.measured_ms,
                "predicted_ms": row.predicted_ms,
                "error": row.error,
                "contradicts_row": row.contradicts or None,
                "note": row.note,
            }
            for row in compared
        ],
    }
    return Answer(
        record,
        (
            columns(
                record["predictions"],
                {
                    "row": "row",
                    "model": lambda row: f"{row['model']} B",
                    "plan": lambda row: f"{row['plan']}, {row['schedule']}",
                    "measured ms": "measured_ms",
                    "predicted ms": "predicted_ms",
                    "error": lambda row: f"{row['error']:+.1%}",
                    "": "note",
                },
            ),
            "",
            columns(
                [
                    {"model": "all", **record},
                    *({"model": f"{model} B", **one} for model, one in of_models.items()),
                ],
                {
                    "model": "model",
                    "rows": "rows",
                    "mean": lambda one: percent(one["mean_absolute_error"]),
                    "median": lambda one: percent(one["median_absolute_error"]),
                    "worst": lambda one: percent(one["worst_absolute_error"]),
                    "within 10 %": lambda one: one["rows_within_percent"][10],
                    "rank correlation": lambda one: (
                        None
                        if one["rank_correlation"] is None
                        else f"{one['rank_correlation']:.3f}"
                    ),
                },
            ),
            "matmul and memory share were fitted to the rows of vtrain, how much longer production runs take to rows "
            "1 to 3 of production; nothing was fitted to any other row",
        ),
    )


def _agreement(one: Agreement) -> dict[str, Any]:
    """Return the agreement as JSON has it; errors are shares of what was measured."""
    return {
        "rows": one.rows,
        "mean_absolute_error": one.mean,
        "median_absolute_error": one.median,
        "worst_absolute_error": one.worst,
        "rows_within_percent": one.within,
        "rank_correlation": one.rank_correlation,
    }


COMMANDS = Commands(
    "One training iteration of a transformer in closed form, and how far such predictions are from measured ones.",
    {
        "show": (show, "what an iteration consists of"),
        "validate": (validate, "predictions beside measured iterations"),
        "machines": (machines, "the machines, and where their figures are from"),
    },
)
